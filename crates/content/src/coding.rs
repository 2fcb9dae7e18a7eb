//! Content codings (RFC 9110, section 8.4.1), at the levels that servers use for files compressed beforehand.
//!
//! Images are left out: they are compressed already.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

/// Content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// zlib's format at its default level, as in the note.
    Deflate,
    /// gzip, at level 9.
    Gzip,
    /// Brotli at quality 11, with a window of 4 MB.
    Brotli,
    /// Zstandard at level 19.
    Zstd,
}

impl Coding {
    /// Name in tables and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deflate => "deflate",
            Self::Gzip => "gzip",
            Self::Brotli => "brotli",
            Self::Zstd => "zstd",
        }
    }

    /// Encodes `bytes` in this coding; `None` where that fails.
    pub fn encode(self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Deflate => {
                finish(ZlibEncoder::new(Vec::new(), Compression::default()), bytes, ZlibEncoder::finish)
            }
            Self::Gzip => finish(GzEncoder::new(Vec::new(), Compression::best()), bytes, GzEncoder::finish),
            Self::Brotli => {
                let parameters =
                    brotli::enc::BrotliEncoderParams { quality: 11, lgwin: 22, ..Default::default() };
                let mut coded = Vec::new();
                brotli::BrotliCompress(&mut &bytes[..], &mut coded, &parameters).ok().map(|_| coded)
            }
            Self::Zstd => zstd::bulk::compress(bytes, 19).ok(),
        }
    }
}

/// Zstandard at level 19 with a dictionary that both ends have; `None` where it fails.
pub fn zstd_with_dictionary(bytes: &[u8], dictionary: &[u8]) -> Option<Vec<u8>> {
    zstd::bulk::Compressor::with_dictionary(19, dictionary).ok()?.compress(bytes).ok()
}

fn finish<E: Write>(
    mut encoder: E,
    bytes: &[u8],
    end: impl FnOnce(E) -> io::Result<Vec<u8>>,
) -> Option<Vec<u8>> {
    encoder.write_all(bytes).and_then(|()| end(encoder)).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_dictionary_shortens_a_short_document_that_can_be_decoded_with_it() {
        let text =
            b"<table border=\"0\" cellspacing=\"0\"><tr valign=\"top\"><td align=\"left\"><a href=\"x\">";
        let dictionary = crate::dictionary::HTML_AND_CSS.as_bytes();
        let coded = zstd_with_dictionary(text, dictionary).unwrap();
        assert!(coded.len() < Coding::Zstd.encode(text).unwrap().len());
        let mut decoder = zstd::bulk::Decompressor::with_dictionary(dictionary).unwrap();
        assert_eq!(decoder.decompress(&coded, text.len()).unwrap(), text);
    }

    #[test]
    fn encoded_bytes_can_be_decoded() {
        let text = b"<p>The same words, again and again. ".repeat(100);
        let decoded = |coding: Coding| {
            let coded = coding.encode(&text).unwrap();
            assert!(coded.len() < text.len() / 4, "{coding:?}: {}", coded.len());
            let mut plain = Vec::new();
            match coding {
                Coding::Deflate => {
                    flate2::read::ZlibDecoder::new(&coded[..]).read_to_end(&mut plain).map(drop)
                }
                Coding::Gzip => flate2::read::GzDecoder::new(&coded[..]).read_to_end(&mut plain).map(drop),
                Coding::Brotli => brotli::BrotliDecompress(&mut &coded[..], &mut plain),
                Coding::Zstd => zstd::stream::copy_decode(&coded[..], &mut plain),
            }
            .unwrap();
            plain
        };
        for coding in [Coding::Deflate, Coding::Gzip, Coding::Brotli, Coding::Zstd] {
            assert_eq!(decoded(coding), text, "{coding:?}");
        }
    }
}
