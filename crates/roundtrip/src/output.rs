//! Writes results to standard output, and reports its errors, such as a closed pipe.

use std::io::Write;

use crate::failure::Failure;

/// Writes results to standard output.
pub fn to_stdout(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::Stdout)
}
