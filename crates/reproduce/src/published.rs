//! Published values, as the project's `papers` directory has them: one `published.toml` for each table or figure.
//!
//! Not ours and not the computation of ours: this is the outside oracle, with the criteria of agreement and the
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
    pub columns: Vec<Column>,
    /// Labels, then a printed number for each column, or nothing.
    pub rows: Vec<Vec<String>>,
    /// Cells that something of ours was fitted to; if there are any, every other cell is a prediction.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// Cells with further facts.
    #[serde(default, rename = "cells")]
    pub exceptions: Vec<Exception>,
}

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
    /// Reason why ours may differ, if it may in every cell.
    pub explained: Option<String>,
}

/// Further facts about a cell.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// Its name: the row's labels and the column's name, with slashes between.
    pub cell: String,
    /// The recorded verdict.
    pub verdict: Verdict,
    /// Our value where it differs from the published one; the note explains that number and no other.
    pub ours: Option<String>,
    /// Relative tolerance of that; absent: it must be the same as rounded in print.
    pub within: Option<f64>,
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
    pub fn label(&self, place: usize) -> &str {
        self.labels.get(place).map_or("", String::as_str)
    }
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// A sentence with the culprit: the TOML, a row that is too short or too long, an invalid number, an exception for
    /// an unknown cell.
    pub fn read(text: &str) -> Result<Self, String> {
        let table: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let width = table.labels.len() + table.columns.len();
        if let Some(row) = table.rows.iter().find(|row| row.len() != width) {
            return Err(format!("row {row:?} has {} cells and should have {width}", row.len()));
        }
        let cells = table.cells();
        if let Some(cell) = cells.iter().find(|cell| !cell.published.is_finite()) {
            return Err(format!("cell {} holds {:?}, which is not a number", cell.name(), cell.text));
        }
        let named = table.exceptions.iter().map(|exception| &exception.cell).chain(&table.fitted);
        let stray = |name: &&String| cells.iter().all(|cell| cell.name() != **name);
        match named.into_iter().find(stray).cloned() {
            Some(name) => Err(format!("no such cell: {name}")),
            None => Ok(table),
        }
    }

    /// Every printed number, row by row.
    pub fn cells(&self) -> Vec<Cell> {
        self.rows.iter().flat_map(|row| self.cells_of(row)).collect()
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
