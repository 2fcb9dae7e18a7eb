//! Streaming decoder of a body: after each piece, all output of that piece is available.
//!
//! Input is not trusted: the output is bounded, both in total and relative to the input. A bomb is detected at the
//! bound, before more is decoded.

use std::fmt;
use std::io::{self, Write};

#[cfg(not(target_family = "wasm"))]
use brotli::DecompressorWriter;
use flate2::{Decompress, FlushDecompress, Status};

use super::Coding;
#[cfg(target_family = "wasm")]
use super::without_brotli::DecompressorWriter;
use super::zstd::{Corrupt, Zstd};
use crate::message::Limits;

/// Decodes one body.
pub struct Decoder {
    coding: Coding,
    decompressor: Decompressor,
    bounds: Bounds,
}

enum Decompressor {
    Identity,
    /// `deflate`, whose first two bytes distinguish its two formats.
    Unknown(Vec<u8>),
    /// zlib, deflate or gzip; whether the end of a stream has been reached.
    Inflate(Box<Decompress>, bool),
    Brotli(Box<DecompressorWriter<OutputBuffer>>),
    Zstd(Box<Zstd>),
}

/// Limits on the decoded output.
#[derive(Debug)]
struct Bounds {
    input_bytes: u64,
    output_bytes: u64,
    bytes: u64,
    ratio: u64,
}

/// Reason why a body cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum DecodeFault {
    /// A coding that was not requested.
    #[error("the peer sent a body in a coding that is not known")]
    Unknown,
    /// Nested codings.
    #[error("the peer sent a body that is coded more than once")]
    Layers,
    /// Bytes that are invalid in this coding.
    #[error("the peer sent a body that is not {}", .0.name())]
    Corrupt(Coding),
    /// A premature end.
    #[error("the peer sent a body in {} that ends too early", .0.name())]
    Truncated(Coding),
    /// More decoded bytes than [`Limits::decoded_bytes`].
    #[error("the peer sent a body that decodes to more than the limit allows")]
    TooLarge,
    /// More decoded bytes than [`Limits::decoded_ratio`] times the coded size.
    #[error("the peer sent a body that decodes to many times its size; is it a bomb?")]
    TooDense,
}

/// Output always permitted, however small the input: a small page of mostly white space is not a bomb.
const FLOOR: u64 = 1 << 20;
/// Bytes of input per step: deflate expands it at most 1,032 times.
const PIECE: usize = 1_024;
const OUT: usize = 16_384;

impl Decoder {
    /// Creates a decoder for a body in this coding.
    pub fn new(coding: Coding, limits: &Limits) -> Self {
        let (decoded_bytes, decoded_ratio) = (limits.decoded_bytes, limits.decoded_ratio);
        let decompressor = match coding {
            Coding::Identity => Decompressor::Identity,
            Coding::Deflate => Decompressor::Unknown(Vec::new()),
            Coding::Gzip => Decompressor::Inflate(Box::new(Decompress::new_gzip(15)), false),
            Coding::Brotli => {
                Decompressor::Brotli(Box::new(DecompressorWriter::new(OutputBuffer::default(), OUT)))
            }
            Coding::Zstd => Decompressor::Zstd(Box::new(Zstd::new())),
        };
        let bounds = Bounds { input_bytes: 0, output_bytes: 0, bytes: decoded_bytes, ratio: decoded_ratio };
        Self { coding, decompressor, bounds }
    }

    /// Decodes the next bytes, and passes the output on in parts of at most 1 MiB.
    ///
    /// # Errors
    /// The fault of the body. Output before it has been passed on already; there is no more after it.
    pub fn take(&mut self, input: &[u8], mut decoded: impl FnMut(&[u8])) -> Result<(), DecodeFault> {
        input.chunks(PIECE).try_for_each(|piece| {
            self.bounds.input_bytes += piece.len() as u64;
            self.piece(piece, &mut decoded)
        })
    }

    /// Checks that the body may end here.
    ///
    /// # Errors
    /// If the body is truncated.
    pub fn end(&mut self) -> Result<(), DecodeFault> {
        let is_finished = match &mut self.decompressor {
            Decompressor::Identity => true,
            // Responses to HEAD, 304s, and some servers' empty files have no body at all.
            Decompressor::Unknown(_)
            | Decompressor::Inflate(..)
            | Decompressor::Brotli(_)
            | Decompressor::Zstd(_)
                if self.bounds.input_bytes == 0 =>
            {
                true
            }
            Decompressor::Unknown(_) => false,
            Decompressor::Inflate(_, ended) => *ended,
            Decompressor::Brotli(writer) => writer.close().is_ok(),
            Decompressor::Zstd(zstd) => zstd.is_finished(),
        };
        if is_finished { Ok(()) } else { Err(DecodeFault::Truncated(self.coding)) }
    }

    fn piece(&mut self, piece: &[u8], decoded: &mut impl FnMut(&[u8])) -> Result<(), DecodeFault> {
        let Self { coding, decompressor, bounds } = self;
        let corrupt = DecodeFault::Corrupt(*coding);
        let mut sink = |part: &[u8]| {
            bounds.add_decoded(part.len())?;
            if !part.is_empty() {
                decoded(part);
            }
            Ok(())
        };
        match decompressor {
            Decompressor::Identity => sink(piece),
            Decompressor::Unknown(start) => {
                start.extend_from_slice(piece);
                let [first, second, ..] = start[..] else { return Ok(()) };
                // RFC 1950, section 2.2: the method, and a check over both bytes.
                let is_zlib = first & 0x0f == 8 && u16::from_be_bytes([first, second]) % 31 == 0;
                let (mut inflate, start) = (Box::new(Decompress::new(is_zlib)), std::mem::take(start));
                let mut ended = false;
                let result = inflated(&mut inflate, &mut ended, false, &start, corrupt, &mut sink);
                *decompressor = Decompressor::Inflate(inflate, ended);
                result
            }
            Decompressor::Inflate(inflate, ended) => {
                inflated(inflate, ended, *coding == Coding::Gzip, piece, corrupt, &mut sink)
            }
            Decompressor::Brotli(writer) => {
                let written = writer.write_all(piece).and_then(|()| writer.flush());
                let out = std::mem::take(&mut writer.get_mut().0);
                // In parts, so that output within the bounds is passed on.
                out.chunks(OUT).try_for_each(&mut sink)?;
                written.map_err(|_| corrupt)
            }
            Decompressor::Zstd(zstd) => zstd.take(piece, sink),
        }
    }
}

/// Inflates a piece. After a gzip stream another may follow (RFC 1952, section 2.2); after the others nothing may.
fn inflated(
    inflate: &mut Decompress,
    ended: &mut bool,
    may_repeat: bool,
    mut piece: &[u8],
    corrupt: DecodeFault,
    sink: &mut impl FnMut(&[u8]) -> Result<(), DecodeFault>,
) -> Result<(), DecodeFault> {
    let mut out = vec![0; OUT];
    loop {
        if *ended && !piece.is_empty() {
            if !may_repeat {
                return Err(corrupt);
            }
            (*inflate, *ended) = (Decompress::new_gzip(15), false);
        }
        if *ended {
            return Ok(());
        }
        let (input_bytes, output_bytes) = (inflate.total_in(), inflate.total_out());
        let status = inflate.decompress(piece, &mut out, FlushDecompress::None).map_err(|_| corrupt)?;
        let length = |before: u64, after: u64| usize::try_from(after - before).unwrap_or(usize::MAX);
        let (input_bytes, output_bytes) =
            (length(input_bytes, inflate.total_in()), length(output_bytes, inflate.total_out()));
        sink(out.get(..output_bytes).unwrap_or_default())?;
        piece = piece.get(input_bytes..).unwrap_or_default();
        *ended = status == Status::StreamEnd;
        // Free space in `out` means that this input produces no more output.
        if !*ended && piece.is_empty() && output_bytes < OUT {
            return Ok(());
        }
        if input_bytes == 0 && output_bytes == 0 && !*ended {
            return Err(corrupt);
        }
    }
}

impl Bounds {
    fn add_decoded(&mut self, length: usize) -> Result<(), DecodeFault> {
        self.output_bytes = self.output_bytes.saturating_add(length as u64);
        if self.output_bytes > self.bytes {
            return Err(DecodeFault::TooLarge);
        }
        if self.output_bytes > FLOOR.max(self.input_bytes.saturating_mul(self.ratio)) {
            return Err(DecodeFault::TooDense);
        }
        Ok(())
    }
}

/// Output of a writer, limited for one piece.
#[derive(Default)]
struct OutputBuffer(Vec<u8>);

/// Maximum output of one piece; beyond it is a bomb. Brotli encodes a million repetitions in a few bytes.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

impl Write for OutputBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        if self.0.len() > MAX_OUTPUT_BYTES { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl From<Corrupt> for DecodeFault {
    fn from(_: Corrupt) -> Self {
        Self::Corrupt(Coding::Zstd)
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("coding", &self.coding).field("bounds", &self.bounds).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::encoded;
    use super::*;

    const CODED: [Coding; 4] = [Coding::Deflate, Coding::Gzip, Coding::Brotli, Coding::Zstd];

    fn decoded(coding: Coding, body: &[u8], cut: usize) -> Result<Vec<u8>, DecodeFault> {
        bounded(coding, body, cut, &Limits::default())
    }

    fn bounded(coding: Coding, body: &[u8], cut: usize, limits: &Limits) -> Result<Vec<u8>, DecodeFault> {
        let mut decoder = Decoder::new(coding, limits);
        let mut all = Vec::new();
        for piece in body.chunks(cut) {
            decoder.take(piece, |part| all.extend_from_slice(part))?;
        }
        decoder.end().map(|()| all)
    }

    fn prose() -> Vec<u8> {
        (0..9_000)
            .flat_map(|number| format!("<td>{} of {}</td>\n", number * 7, number % 13).into_bytes())
            .collect()
    }

    #[test]
    fn encoded_bodies_decode_at_every_split() {
        let body = prose();
        for coding in Coding::ALL {
            let coded = encoded(coding, &body);
            for cut in [1, 7, 1_000, coded.len()] {
                assert!(decoded(coding, &coded, cut).as_ref() == Ok(&body), "{coding:?} {cut}");
            }
            assert_eq!(decoded(coding, &encoded(coding, b""), 1), Ok(Vec::new()), "{coding:?}");
            assert_eq!(decoded(coding, b"", 1), Ok(Vec::new()), "{coding:?}");
        }
    }

    #[test]
    fn output_is_available_as_far_as_its_input() {
        let body = prose();
        for coding in [Coding::Deflate, Coding::Gzip, Coding::Brotli] {
            let coded = encoded(coding, &body);
            let mut decoder = Decoder::new(coding, &Limits::default());
            let mut half = 0;
            decoder.take(&coded[..coded.len() / 2], |part| half += part.len()).unwrap();
            assert!(half > body.len() / 4, "{coding:?}: {half} of {}", body.len());
        }
    }

    #[test]
    fn deflate_without_zlib_header_is_accepted() {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&prose()).unwrap();
        assert!(decoded(Coding::Deflate, &encoder.finish().unwrap(), 1) == Ok(prose()));
    }

    #[test]
    fn only_another_gzip_member_may_follow_gzip() {
        for coding in CODED {
            let twice = encoded(coding, b"hello").repeat(2);
            let expected = if coding == Coding::Gzip {
                Ok(b"hellohello".to_vec())
            } else {
                Err(DecodeFault::Corrupt(coding))
            };
            for cut in [1, 3, twice.len()] {
                assert_eq!(decoded(coding, &twice, cut), expected, "{cut}");
            }
        }
    }

    #[test]
    fn rejects_truncated_and_corrupt_bodies() {
        for coding in CODED {
            let coded = encoded(coding, &prose());
            for length in [1, 2, 9, coded.len() / 2, coded.len() - 1] {
                let fault = decoded(coding, &coded[..length], 64).unwrap_err();
                assert_eq!(fault, DecodeFault::Truncated(coding), "{length}");
            }
            assert_eq!(decoded(coding, &[0xff; 99], 5), Err(DecodeFault::Corrupt(coding)));
        }
        for coding in [Coding::Deflate, Coding::Gzip, Coding::Zstd] {
            let mut coded = encoded(coding, &prose());
            let check = coded.len() - 4;
            coded[check..].fill(0);
            assert_eq!(decoded(coding, &coded, 64), Err(DecodeFault::Corrupt(coding)));
        }
    }

    #[test]
    fn rejects_decompression_bombs() {
        let zeros = vec![0; 4 << 20];
        for coding in CODED {
            let bomb = encoded(coding, &zeros);
            let mut decoder = Decoder::new(coding, &Limits::default());
            let mut output_bytes = 0;
            let fault = decoder.take(&bomb, |part| output_bytes += part.len()).unwrap_err();
            let is_found = [DecodeFault::TooDense, DecodeFault::Corrupt(coding)].contains(&fault);
            assert!(is_found && output_bytes <= 2 << 20, "{coding:?}: {output_bytes} {fault:?}");
            let limits = Limits { decoded_bytes: 999, ..Limits::default() };
            assert!(bounded(coding, &bomb, 64, &limits).is_err());
        }
        let limits = Limits { decoded_bytes: 999, ..Limits::default() };
        assert_eq!(
            bounded(Coding::Gzip, &encoded(Coding::Gzip, &[0; 1_000]), 64, &limits),
            Err(DecodeFault::TooLarge)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 1_usize..9) {
            for coding in CODED {
                let whole = decoded(coding, &bytes, 200);
                prop_assert_eq!(decoded(coding, &bytes, cut).is_ok(), whole.is_ok());
            }
        }
    }
}
