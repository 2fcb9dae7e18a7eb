//! Compression of a whole body, in advance or per request.
//!
//! The caller chooses the coding. No streaming: objects of pages are small, and a known length needs no chunks.
//! The caller accounts for the CPU time.

use std::io::Write;

#[cfg(not(target_family = "wasm"))]
use brotli::CompressorWriter;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::Coding;
#[cfg(target_family = "wasm")]
use super::without_brotli::CompressorWriter;

/// Encodes the body, as small as the coding allows at acceptable cost. Deflate and gzip use level 9, as the W3C note did
/// beforehand (`papers/w3c#compression`). Brotli uses 9 of 11 with a 4 MiB window; zstd has only one level in Rust.
pub fn encoded(coding: Coding, body: &[u8]) -> Vec<u8> {
    let done = match coding {
        Coding::Identity => Some(body.to_vec()),
        Coding::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(body).and_then(|()| encoder.finish()).ok()
        }
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(body).and_then(|()| encoder.finish()).ok()
        }
        Coding::Brotli => {
            let mut encoder = CompressorWriter::new(Vec::new(), BROTLI_BUFFER, BROTLI_QUALITY, BROTLI_WINDOW);
            encoder.write_all(body).map(|()| encoder.into_inner()).ok()
        }
        Coding::Zstd => Some(compress_to_vec(body, CompressionLevel::Fastest)),
    };
    done.expect("a vector takes every byte that is written to it")
}

const BROTLI_BUFFER: usize = 4_096;
const BROTLI_QUALITY: u32 = 9;
/// Exponent of 2.
const BROTLI_WINDOW: u32 = 22;
