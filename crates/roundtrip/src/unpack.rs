//! Files as they are, or compressed by gzip, zstd or bzip2: told by their first bytes, not by their names.
//!
//! Not an archive reader. What comes out is not bounded: whoever reads it streams.

use std::io::{self, BufReader, Cursor, Read};

/// A buffer that is worth a system call.
const BUFFER: usize = 1 << 20;

/// What `bytes` are once unpacked. Members and frames that follow one another, as parallel compressors write them,
/// are one.
pub fn unpacked(mut bytes: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = Vec::new();
    bytes.by_ref().take(4).read_to_end(&mut magic)?;
    let whole = Cursor::new(magic.clone()).chain(bytes);
    let buffered = |whole| BufReader::with_capacity(BUFFER, whole);
    Ok(match magic.as_slice() {
        // RFC 1952, section 2.3.1.
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(whole))),
        // RFC 8878, section 3.1.1.
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::stream::read::Decoder::with_buffer(buffered(whole))?),
        [b'B', b'Z', b'h', _] => Box::new(bzip2::bufread::MultiBzDecoder::new(buffered(whole))),
        _ => Box::new(whole),
    })
}
