//! Everything people and programs see of results: tables, JSON, CSV.
//!
//! Not what the results mean: rows come in, text goes out. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`csv`] | lines for a spreadsheet |
//! | [`grid`] | columns that line up in a terminal of any width |
//! | [`number`] | numbers as the papers print them |

pub mod csv;
pub mod grid;
pub mod number;

use std::io::Write;

use serde::Serialize;

use crate::failure::Failure;

/// An array of objects, in full precision.
pub fn json<T: Serialize>(items: &[T]) -> String {
    let mut text =
        serde_json::to_string_pretty(items).expect("rows have text for keys and cannot fail to serialise");
    text.push('\n');
    text
}

/// Writes results to standard output.
pub fn to_stdout(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::Stdout)
}
