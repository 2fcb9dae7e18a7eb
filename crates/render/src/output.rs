//! Output of results for people and programs: tables, JSON, CSV.
//!
//! Rows flow in, text flows out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`table`] | rows grouped by network and page, for people |
//! | [`comparison`] | engines side by side, and their agreement |
//! | [`conclusion`] | the same in sentences |
//! | [`csv`] | rows for a spreadsheet |
//! | [`grid`] | columns that line up in a terminal of any width |
//! | [`number`] | numbers as the papers print them |

pub mod comparison;
pub mod conclusion;
pub mod csv;
pub mod grid;
pub mod number;
pub mod table;

use scenario::{Engine, Scenario};
use serde::Serialize;
use trace::Row;

/// One engine's result of one scenario.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The input.
    pub scenario: Scenario,
    /// The result, with the page's own notes after the engine's.
    pub row: Row,
    /// Half the width of the 95% confidence interval of the row's `elapsed_ms`, where there were several runs.
    pub interval95_ms: Option<f64>,
    /// Reason for a missing time.
    pub missing: Option<Missing>,
}

/// Reason why a row has no time; the sentence is in its notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The engine does not support a part of the scenario.
    Refused,
    /// The engine failed.
    Failed,
}

impl Missing {
    /// The word in a table's cell.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

impl Outcome {
    /// A row, and the notes of its page.
    pub fn new(scenario: &Scenario, mut row: Row, interval95_ms: Option<f64>) -> Self {
        let missing = row.elapsed_ms.is_none().then_some(Missing::Failed);
        row.notes.extend(scenario.page.notes.iter().cloned());
        Self { scenario: scenario.clone(), row, interval95_ms, missing }
    }

    /// A row without results, which has the reason in its notes.
    pub fn missing(scenario: &Scenario, engine: Engine, missing: Missing, reason: String) -> Self {
        let row = Row {
            network: scenario.network.name.clone(),
            page: scenario.page.name.clone(),
            visit: scenario.visit.name().to_owned(),
            protocol: scenario.protocol.name().to_owned(),
            engine: engine.name().to_owned(),
            stack: scenario.stack.name.to_owned(),
            elapsed_ms: None,
            overhead: None,
            round_trips: None,
            packets_up: None,
            packets_down: None,
            payload_bytes: None,
            overhead_percent: None,
            connections: None,
            runs: 0,
            elapsed_ms_stddev: None,
            stalls: Vec::new(),
            notes: vec![reason],
        };
        Self { missing: Some(missing), ..Self::new(scenario, row, None) }
    }

    /// The elapsed time as in a table: a number, or the word for its absence.
    pub fn elapsed(&self) -> String {
        match (self.row.elapsed_ms, self.missing) {
            (Some(elapsed_ms), _) => number::significant(elapsed_ms),
            (None, missing) => missing.map(Missing::word).unwrap_or_default().to_owned(),
        }
    }

    /// The row's notes without the page's, which are next to the title.
    pub fn own_notes(&self) -> Vec<String> {
        self.row.notes.iter().filter(|note| !self.scenario.page.notes.contains(note)).cloned().collect()
    }
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
