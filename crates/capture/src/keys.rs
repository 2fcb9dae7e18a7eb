//! Key logs of TLS in files.

use std::io::Read as _;
use std::path::Path;

use diagnose::{KeyLog, MAX_KEY_LOG_BYTES};

use crate::error::KeyLogFault;
use crate::{Error, open};

/// Reads a key log. What it has of malformed lines is left to the log itself.
pub(crate) fn read(path: &Path) -> Result<KeyLog, Error> {
    let unreadable = |error| Error::Unreadable { path: path.to_owned(), error };
    let source = open::open(path).map_err(unreadable)?;
    let mut text = Vec::new();
    let limit = MAX_KEY_LOG_BYTES as u64 + 1;
    source.take(limit).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() > MAX_KEY_LOG_BYTES {
        return Err(Error::KeyLog { path: path.to_owned(), fault: KeyLogFault::Long });
    }
    let mut log = KeyLog::default();
    log.read(&text);
    if log.is_empty() {
        return Err(Error::KeyLog { path: path.to_owned(), fault: KeyLogFault::NoSecrets(log.left_out()) });
    }
    Ok(log)
}
