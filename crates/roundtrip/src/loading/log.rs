//! The results file of a run, read from a path.
//!
//! Not its format: that is `load::log`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use load::log::{self, Log};
use render::output::number;

use crate::failure::{Failure, shown};

/// The results in a file.
pub fn read(path: &Path) -> Result<Log, Failure> {
    let unreadable = |error| Failure::Read { path: path.to_owned(), error };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(log::MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > log::MAX_BYTES {
        return Err(Failure::Value(format!(
            "{} has more than {} bytes, more than any log of a load; give logs that `load --log` wrote",
            shown(path),
            number::count(log::MAX_BYTES as f64)
        )));
    }
    log::read(&text).map_err(|error| Failure::Value(format!("{}: {error}", shown(path))))
}
