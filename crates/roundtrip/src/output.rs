//! Everything people and programs see of results: tables, JSON, CSV.
//!
//! Not what the results mean: rows come in, text goes out. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`table`] | rows grouped by network and page, for people |
//! | [`comparison`] | engines side by side, and how far they agree |
//! | [`conclusion`] | the same in plain words |
//! | [`csv`] | rows for a spreadsheet |
//! | [`grid`] | columns that line up in a terminal of any width |
//! | [`number`] | numbers as the papers print them |

pub mod comparison;
pub mod conclusion;
pub mod csv;
pub mod grid;
pub mod number;
pub mod table;

use std::io::Write;

use scenario::Scenario;
use serde::Serialize;
use trace::Row;

use crate::failure::Failure;

/// What one engine made of one scenario.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was run.
    pub scenario: Scenario,
    /// What came of it.
    pub row: Row,
    /// Half the width of the 95% confidence interval of the row's `elapsed_ms`, where there were several runs.
    pub interval95_ms: Option<f64>,
}

/// The rows alone, for formats that programs read.
pub fn rows(outcomes: &[Outcome]) -> Vec<&Row> {
    outcomes.iter().map(|outcome| &outcome.row).collect()
}

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
