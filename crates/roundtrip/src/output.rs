//! Writes results to standard output, and reports its errors, such as a closed pipe.
//!
//! Names of files, URLs and header fields come from elsewhere: no character of them reaches a terminal as a command.

use std::io::Write;

use render::terminal::printable;

use crate::failure::Failure;

/// Writes results to standard output.
pub fn to_stdout(text: &str) -> Result<(), Failure> {
    redraw("", text)
}

/// The same, after a sequence that erases what was written before.
pub fn redraw(erases: &str, text: &str) -> Result<(), Failure> {
    let text = erases.to_owned() + &printable(text, crate::terminal::of_stdout().colour);
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::Stdout)
}
