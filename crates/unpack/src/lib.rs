//! Compressed streams, unpacked: gzip, zstd, bzip2 and xz, recognised by their first bytes, not by their names.
//!
//! In flow bytes; out flow the decompressed bytes, or the same bytes where they are not compressed. Damage is an
//! error of one sentence that needs no knowledge of deflate. Memory is limited; the output is not: callers stream it.
//!
//! ```
//! use std::io::Read;
//!
//! let mut text = String::new();
//! roundtrip_unpack::unpacked(&b"GET / HTTP/1.1"[..])?.read_to_string(&mut text)?;
//! assert_eq!(text, "GET / HTTP/1.1");
//!
//! let truncated = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..];
//! let error = roundtrip_unpack::unpacked(truncated)?.read_to_string(&mut text).unwrap_err();
//! assert_eq!(error.to_string(), "its gzip data ends too early; copy or compress it again");
//! # std::io::Result::Ok(())
//! ```
//!
//! Not an archive reader.

#[cfg(any(test, target_arch = "wasm32"))]
mod zstd_frames;

use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

/// Read buffer, in bytes: large enough to be worth a system call.
const BUFFER: usize = 1 << 20;

/// Memory for the dictionary of one xz stream, in KiB: `xz -9` needs 65 MiB.
const MAX_XZ_KIB: u32 = 128 << 10;

/// Decompresses `bytes`. Consecutive members and frames, as parallel compressors write them, are one stream.
///
/// # Errors
/// When its first bytes cannot be read.
pub fn unpacked(mut bytes: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = Vec::new();
    bytes.by_ref().take(4).read_to_end(&mut magic)?;
    let whole = Cursor::new(magic.clone()).chain(bytes);
    let buffered = |whole| BufReader::with_capacity(BUFFER, whole);
    Ok(match magic.as_slice() {
        // RFC 1952, section 2.3.1.
        [0x1f, 0x8b, ..] => {
            Box::new(Decompressor { from: flate2::bufread::MultiGzDecoder::new(buffered(whole)), by: "gzip" })
        }
        // RFC 8878, section 3.1.1.
        [0x28, 0xb5, 0x2f, 0xfd] => {
            Box::new(Decompressor { from: zstd_decoder(buffered(whole))?, by: "zstd" })
        }
        [b'B', b'Z', b'h', _] => {
            Box::new(Decompressor { from: bzip2::bufread::MultiBzDecoder::new(buffered(whole)), by: "bzip2" })
        }
        // The xz format, section 2.1.1.1.
        [0xfd, b'7', b'z', b'X'] => {
            let from = lzma_rust2::XzReader::new_mem_limit(buffered(whole), true, MAX_XZ_KIB);
            Box::new(Decompressor { from, by: "xz" })
        }
        _ => Box::new(whole),
    })
}

/// The C library.
#[cfg(not(target_arch = "wasm32"))]
fn zstd_decoder<R: BufRead + Send>(from: R) -> io::Result<impl Read + Send + use<R>> {
    zstd::stream::read::Decoder::with_buffer(from)
}

/// Rust, slower: WebAssembly has no C library.
#[cfg(target_arch = "wasm32")]
fn zstd_decoder<R: BufRead + Send>(from: R) -> io::Result<impl Read + Send + use<R>> {
    Ok(zstd_frames::ZstdFrames::new(from))
}

/// Decompressed bytes of one format, with errors in plain words.
struct Decompressor<R> {
    from: R,
    by: &'static str,
}

impl<R: Read> Read for Decompressor<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let by = self.by;
        self.from.read(into).map_err(|error| match (error.raw_os_error(), error.kind()) {
            // System errors, and interruptions, which are not errors.
            (Some(_), _) | (None, ErrorKind::Interrupted) => error,
            (None, ErrorKind::UnexpectedEof) => {
                io::Error::other(format!("its {by} data ends too early; copy or compress it again"))
            }
            (None, _) => io::Error::other(format!("its {by} data is damaged; copy or compress it again")),
        })
    }
}
