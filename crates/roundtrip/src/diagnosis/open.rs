//! Where a capture comes from: a file, or standard input; as it is, or compressed by gzip or zstd.
//!
//! By its first bytes, not its name. Not an archive reader.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// The bytes of the capture at `path`; `-` is standard input.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return plain(Box::new(io::stdin().lock()));
    }
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    plain(Box::new(file))
}

fn plain(source: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    let (magic, source) = peek(source)?;
    Ok(match magic.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 16, source))),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(Zstd { decoder: Some(frame(Box::new(source))?) }),
        _ => Box::new(source),
    })
}

/// The first four bytes, or fewer, and everything.
fn peek<R: Read>(mut source: R) -> io::Result<(Vec<u8>, impl Read + use<R>)> {
    let mut magic = Vec::new();
    source.by_ref().take(4).read_to_end(&mut magic)?;
    Ok((magic.clone(), Cursor::new(magic).chain(source)))
}

/// Frames one after the other, as parallel compressors write them.
struct Zstd {
    decoder: Option<Frame>,
}

type Frame = StreamingDecoder<Box<dyn Read>, ruzstd::decoding::FrameDecoder>;

fn frame(source: Box<dyn Read>) -> io::Result<Frame> {
    StreamingDecoder::new(source).map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("its zstd is damaged ({error})"))
    })
}

impl Read for Zstd {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            let read = decoder.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            let Some(ended) = self.decoder.take() else { return Ok(0) };
            let (magic, rest) = peek(ended.into_inner())?;
            if !magic.is_empty() {
                self.decoder = Some(frame(Box::new(rest))?);
            }
        }
    }
}
