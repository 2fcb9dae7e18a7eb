//! What a paper prints, as it is written down in the papers folder: one `published.toml` for a table or a figure.
//!
//! Not ours and not how ours is made: this is the outside oracle, with what counts as agreement and the verdict that
//! is on record. Numbers stand as text, the way they are printed.

use serde::Deserialize;

use super::digits::Digits;
use super::verdict::Verdict;

/// A table, or what the text says about a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// As the paper calls it.
    pub title: String,
    /// Authors, year, number.
    pub source: String,
    /// What was computed or measured, in a sentence.
    pub scenario: String,
    /// What counts as agreement, in a sentence.
    pub agreement: String,
    /// The recorded verdict of every cell that has none of its own.
    pub expected: Verdict,
    /// What the first cells of a row name.
    pub labels: Vec<String>,
    /// The columns after those.
    pub columns: Vec<Column>,
    /// Labels, then a printed number for each column, or nothing.
    pub rows: Vec<Vec<String>>,
    /// Cells that something of ours was fitted to; where there are such, every other one is a prediction.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// Cells with more to say.
    #[serde(default, rename = "cells")]
    pub exceptions: Vec<Exception>,
}

/// A column of printed numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// In lower case; part of the cell's name.
    pub name: String,
    /// Of every number in it.
    pub unit: String,
    /// How it is rounded in print.
    pub digits: Digits,
    /// How far ours may be from it, as a part of it, and still agree within tolerance.
    pub within: Option<f64>,
    /// The same in the column's own unit, where a part of the number makes no sense: points of a percentage.
    pub within_points: Option<f64>,
    /// The recorded verdict, where it is not the table's.
    pub expected: Option<Verdict>,
    /// What would be needed, where there is nothing to test it with here.
    pub without: Option<String>,
    /// Why ours differs, where it always may.
    pub explained: Option<String>,
}

/// A cell with more to say.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// Its name: the row's labels and the column's name, with slashes between.
    pub cell: String,
    /// The recorded verdict.
    pub verdict: Verdict,
    /// What ours is instead of what is printed; the note explains that number and no other.
    pub ours: Option<String>,
    /// How far ours may be from that, as a part of it; absent: rounded as printed it must be the same.
    pub within: Option<f64>,
    /// Why.
    pub note: String,
}

/// One printed number and its place.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The row's labels.
    pub labels: Vec<String>,
    /// Its column.
    pub column: Column,
    /// As printed.
    pub text: String,
    /// The same as a number.
    pub published: f64,
}

impl Cell {
    /// `ethernet/tcp/small-page`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.labels.join("/"), self.column.name)
    }

    /// A label by its place; empty if there is none.
    pub fn label(&self, place: usize) -> &str {
        self.labels.get(place).map_or("", String::as_str)
    }
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// A sentence with the culprit: the TOML, a row that is too short or too long, a number that is none, an
    /// exception for a cell that there is not.
    pub fn read(text: &str) -> Result<Self, String> {
        let table: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let width = table.labels.len() + table.columns.len();
        if let Some(row) = table.rows.iter().find(|row| row.len() != width) {
            return Err(format!("row {row:?} has {} cells and should have {width}", row.len()));
        }
        let cells = table.cells();
        if let Some(cell) = cells.iter().find(|cell| !cell.published.is_finite()) {
            return Err(format!("cell {} holds {:?}, which is no number", cell.name(), cell.text));
        }
        let named = table.exceptions.iter().map(|exception| &exception.cell).chain(&table.fitted);
        let stray = |name: &&String| cells.iter().all(|cell| cell.name() != **name);
        match named.into_iter().find(stray).cloned() {
            Some(name) => Err(format!("there is no cell {name}")),
            None => Ok(table),
        }
    }

    /// Every printed number, row by row.
    pub fn cells(&self) -> Vec<Cell> {
        self.rows.iter().flat_map(|row| self.cells_of(row)).collect()
    }

    /// What else is said about a cell.
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
