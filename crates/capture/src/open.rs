//! Where a capture comes from: a file, or standard input; as it is, or compressed.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use unpack::unpacked;

/// The bytes of the capture at `path`; `-` is standard input.
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
