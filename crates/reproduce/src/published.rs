//! Published values, as the project's `papers` directory has them: one `published.toml` for each table or figure.
//!
//! Neither ours nor the computation of ours: this is the outside oracle, with the criteria of agreement and the
//! recorded verdict. Numbers are text, as printed.

use serde::Deserialize;

use super::digits::Digits;
use super::verdict::Verdict;

/// A published table, or the claims of the text about a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The paper's title of it.
    pub title: String,
    /// Authors, year, number.
    pub source: String,
    /// The computation or measurement, in a sentence.
    pub scenario: String,
    /// Criteria of agreement, in a sentence.
    pub agreement: String,
    /// The recorded verdict of every cell that has none of its own.
    pub expected: Verdict,
    /// Names of the label columns, the first cells of each row.
    pub labels: Vec<String>,
    /// The columns of numbers.
    #[serde(default)]
    pub columns: Vec<Column>,
    /// Labels, then a printed number for each column, or nothing.
    #[serde(default)]
    pub rows: Vec<Vec<String>>,
    /// Cells that are inputs of ours or that something of ours was fitted to; `prefix*` names every cell that begins so.
    /// If there are any, every other cell is a prediction.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// Claims of a text, in the place of columns and rows.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Scenarios that claims refer to.
    #[serde(default)]
    pub runs: Vec<Run>,
    /// Cells with further facts.
    #[serde(default, rename = "cells")]
    pub exceptions: Vec<Exception>,
}

/// Returns the published values of a table or figure, which are compiled in.
macro_rules! compiled {
    ($key:literal) => {
        $crate::published::Table::compiled(include_str!(concat!("../../../papers/", $key, "/published.toml")))
    };
}
pub(crate) use compiled;

/// A column of printed numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Name in lower case; part of the cell's name.
    pub name: String,
    /// Unit of its numbers.
    pub unit: String,
    /// Rounding in print.
    pub digits: Digits,
    /// Relative tolerance of ours.
    pub within: Option<f64>,
    /// Absolute tolerance in the column's own unit, where a relative one makes no sense: points of a percentage.
    pub within_points: Option<f64>,
    /// The recorded verdict, where it is not the table's.
    pub expected: Option<Verdict>,
    /// Missing requirement of a test, if the column is not testable here.
    pub without: Option<String>,
    /// Value that separates the two outcomes of a comparison: 1 for a ratio.
    pub pivot: Option<f64>,
}

/// A sentence with a number or a comparison.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Name, in lower case.
    pub claim: String,
    /// Conditions under which it is claimed: network, page, visit, servers.
    pub setting: String,
    /// Its words.
    pub says: String,
    /// The number as printed, or the bound that the words set.
    pub published: String,
    /// Unit of the number.
    pub unit: String,
    /// Rounding in print, or the direction of a bound.
    pub digits: Digits,
    /// Relative tolerance of ours.
    pub within: Option<f64>,
    /// Absolute tolerance.
    pub within_points: Option<f64>,
    /// As in [`Column`].
    pub pivot: Option<f64>,
    /// Arithmetic on cells, runs and numbers (`claim`); absent: not testable.
    pub ours: Option<String>,
    /// The recorded verdict, where it is not the table's.
    pub verdict: Option<Verdict>,
    /// Whether the number is an input of ours.
    #[serde(default)]
    pub fitted: bool,
    /// Missing requirement of a test.
    pub without: Option<String>,
    /// Explanation.
    #[serde(default)]
    pub note: String,
}

/// A scenario whose result claims refer to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Name, used by claims.
    pub name: String,
    /// `simulate` or `model`.
    pub engine: String,
    /// The scenario, as a file of the command line.
    pub scenario: String,
    /// Its page as a graph ([`page::file`]), where no name or sizes describe it.
    pub graph: Option<String>,
}

/// Mechanism that may explain a difference from print, by the name that the data has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// A modem of 28.8 kbit/s with kilobits of 1000, as the other modems of the table.
    DecimalKilobits,
    /// Solaris 2.5 with its own timers, without the fix of May 1996.
    EarlyRetransmission,
    /// One packet of the server lost in each run, the mean over which.
    OneLostPacket,
    /// Both.
    OneLostPacketRetransmittedEarly,
    /// The printed number of packets, with our bytes.
    PrintedPackets,
    /// TCP/IP headers compressed on the telephone line (RFC 1144).
    HeaderCompression,
    /// The policy of Table VI in the place of Section VI's.
    EverySegmentAcknowledged,
    /// The same, and equation (6) without the round trip before its sum.
    SumWithoutItsRoundTrip,
}

impl Mechanism {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DecimalKilobits => "decimal-kilobits",
            Self::EarlyRetransmission => "early-retransmission",
            Self::OneLostPacket => "one-lost-packet",
            Self::OneLostPacketRetransmittedEarly => "one-lost-packet-retransmitted-early",
            Self::PrintedPackets => "printed-packets",
            Self::HeaderCompression => "header-compression",
            Self::EverySegmentAcknowledged => "every-segment-acknowledged",
            Self::SumWithoutItsRoundTrip => "sum-without-its-round-trip",
        }
    }
}

/// Further facts about a cell.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// Its name: the row's labels and the column's name, with slashes between.
    pub cell: String,
    /// The recorded verdict.
    pub verdict: Verdict,
    /// Our value on record where it differs from the published one: it may come nearer, not go further.
    pub ours: Option<String>,
    /// Relative tolerance of that.
    pub within: Option<f64>,
    /// Mechanism of the reason ([`crate::mechanism`]).
    pub mechanism: Option<Mechanism>,
    /// Maximum distance from print with the mechanism switched on, as a part of it; absent: equal as printed.
    pub bound: Option<f64>,
    /// The same in the unit of the column.
    pub points: Option<f64>,
    /// Explanation.
    pub note: String,
}

/// One printed number and its position.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The row's labels.
    pub labels: Vec<String>,
    /// Its column.
    pub column: Column,
    /// The number as printed.
    pub text: String,
    /// The same as a number.
    pub published: f64,
}

impl Cell {
    /// `ethernet/tcp/small-page`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.labels.join("/"), self.column.name)
    }

    /// A label by its index; empty if there is none.
    pub fn label(&self, index: usize) -> &str {
        self.labels.get(index).map_or("", String::as_str)
    }
}

impl Table {
    /// Reads the data of a table that is compiled in; a test reads all of them.
    pub(crate) fn compiled(text: &str) -> Self {
        Self::read(text).expect("a test reads every table that is compiled in")
    }

    /// Reads a table.
    ///
    /// # Errors
    /// A sentence with the culprit: invalid TOML, a row of the wrong length, an invalid number, or an exception for an
    /// unknown cell.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut table: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let exceptions = table.claims.iter().filter_map(Claim::exception).collect::<Vec<_>>();
        table.exceptions.extend(exceptions);
        let width = table.labels.len() + table.columns.len();
        if let Some(row) = table.rows.iter().find(|row| row.len() != width) {
            return Err(format!("row {row:?} has {} cells and should have {width}", row.len()));
        }
        let cells = table.cells();
        if let Some(cell) = cells.iter().find(|cell| !cell.published.is_finite()) {
            return Err(format!("cell {} holds {:?}, which is not a number", cell.name(), cell.text));
        }
        let is_blanket =
            |exception: &&Exception| exception.verdict == Verdict::Explained && exception.mechanism.is_none();
        if let Some(exception) = table.exceptions.iter().find(is_blanket) {
            return Err(format!("{} is explained without a mechanism", exception.cell));
        }
        let named = table.exceptions.iter().map(|exception| &exception.cell).chain(&table.fitted);
        let stray = |name: &&String| !cells.iter().any(|cell| names(name, &cell.name()));
        match named.into_iter().find(stray).cloned() {
            Some(name) => Err(format!("no such cell: {name}")),
            None => Ok(table),
        }
    }

    /// Every printed number, row by row, then every claim.
    pub fn cells(&self) -> Vec<Cell> {
        self.rows
            .iter()
            .flat_map(|row| self.cells_of(row))
            .chain(self.claims.iter().map(Claim::cell))
            .collect()
    }

    /// Whether a cell is an input of ours, or something that ours was fitted to.
    pub fn is_fitted(&self, cell: &Cell) -> bool {
        let name = cell.name();
        self.fitted.iter().any(|fitted| names(fitted, &name))
            || self.claims.iter().any(|claim| claim.fitted && claim.cell().name() == name)
    }

    /// The rows and claims whose labels begin with these.
    pub fn narrowed(mut self, row: &str) -> Self {
        let labels = self.labels.len();
        self.rows.retain(|cells| begins(&cells[..labels.min(cells.len())].join("/"), row));
        self.claims.retain(|claim| begins(&claim.cell().name(), row));
        self
    }

    /// The exception for a cell, if there is one.
    pub fn exception(&self, cell: &Cell) -> Option<&Exception> {
        let name = cell.name();
        self.exceptions.iter().find(|exception| exception.cell == name)
    }

    fn cells_of(&self, row: &[String]) -> impl Iterator<Item = Cell> {
        let (labels, texts) = row.split_at(self.labels.len().min(row.len()));
        let printed = self.columns.iter().zip(texts).filter(|(_, text)| !text.is_empty());
        printed.map(|(column, text)| Cell {
            labels: labels.to_vec(),
            column: column.clone(),
            text: text.clone(),
            published: text.parse().unwrap_or(f64::NAN),
        })
    }
}

impl Claim {
    /// The claim as a cell; its column is the direction.
    pub fn cell(&self) -> Cell {
        let name = match self.digits {
            Digits::AtLeast => "at-least",
            Digits::AtMost => "at-most",
            Digits::Significant(_) | Digits::Decimals(_) | Digits::Whole => "about",
        };
        Cell {
            labels: vec![self.claim.clone(), self.setting.clone()],
            column: Column {
                name: name.to_owned(),
                unit: self.unit.clone(),
                digits: self.digits,
                within: self.within,
                within_points: self.within_points,
                expected: self.verdict,
                without: self.without.clone(),
                pivot: self.pivot,
            },
            text: self.published.clone(),
            published: self.published.parse().unwrap_or(f64::NAN),
        }
    }

    fn exception(&self) -> Option<Exception> {
        Some(Exception {
            cell: self.cell().name(),
            verdict: self.verdict?,
            ours: None,
            within: None,
            mechanism: None,
            bound: None,
            points: None,
            note: self.note.clone(),
        })
    }
}

/// Whether a name of the data, which may end in `*`, is that of the cell.
fn names(name: &str, cell: &str) -> bool {
    match name.strip_suffix('*') {
        Some(prefix) => cell.starts_with(prefix),
        None => name == cell,
    }
}

/// Whether a name is `prefix`, or begins with it and a slash.
fn begins(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
