//! Sources of a capture: a file or standard input, compressed or not.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use unpack::unpacked;

/// Opens the capture at `path`, and decompresses it; `-` is standard input.
pub fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    if path == Path::new("-") {
        return unpacked(io::stdin());
    }
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    unpacked(file)
}
