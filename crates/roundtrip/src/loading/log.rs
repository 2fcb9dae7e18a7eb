//! Reads results files of runs; `load::log` defines the format.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use load::log::{self, Log};
use render::output::number;

use crate::failure::{Failure, shown};

/// Reads the results in a file.
pub fn read(path: &Path) -> Result<Log, Failure> {
    let unreadable = |error| Failure::Read { path: path.to_owned(), error };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(log::MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > log::MAX_BYTES {
        return Err(Failure::Value(format!(
            "{}: longer than {} bytes, the maximum of a results file; give logs that `load --log` wrote",
            shown(path),
            number::count(log::MAX_BYTES as f64)
        )));
    }
    log::read(&text).map_err(|error| Failure::Value(format!("{}: {error}", shown(path))))
}
