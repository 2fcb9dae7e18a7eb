//! Tables in a build without the feature `parquet`: none is read, and none is written.
//!
//! A request for one is refused before ([`Feature::require`]).

use accesslog::{Record, Tally, Who};

use super::over_time::Minute;
use super::row::Row;
use super::table_format::{Kind, Place};
use crate::feature::Feature;

/// No batch.
#[derive(Debug)]
pub struct RecordBatch(Never);

/// No columns.
#[derive(Clone, Copy, Debug)]
pub struct Columns(Never);

#[derive(Clone, Copy, Debug)]
enum Never {}

/// No names of columns.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Name of the client column.
    pub client: Option<String>,
}

/// No table.
pub struct Batches {
    /// The columns.
    pub columns: Columns,
    /// The batches, in the file's order.
    pub batches: Box<dyn Iterator<Item = Result<RecordBatch, String>> + Send>,
}

impl RecordBatch {
    /// Rows in it.
    pub fn num_rows(&self) -> usize {
        match self.0 {}
    }
}

impl Columns {
    /// A batch's rows as records.
    ///
    /// # Errors
    /// None: there are no columns.
    pub fn read(&self, _: &RecordBatch, _: &Who, _: impl FnMut(Record)) -> Result<Tally, String> {
        match self.0 {}
    }
}

impl Named {
    /// Gives a role's column its name.
    ///
    /// # Errors
    /// Always.
    pub fn name(&mut self, role: &str, _column: &str) -> Result<(), String> {
        Err(Feature::Parquet.missing(role))
    }
}

/// Opens a table.
///
/// # Errors
/// Always.
pub fn batches(_: Kind, place: Place, _: &Named) -> Result<Batches, String> {
    let culprit = match place {
        Place::File(path) => path.display().to_string(),
        Place::Object(object) => object.name(),
        Place::Memory(bytes) => format!("a table of {} bytes", bytes.len()),
    };
    Err(Feature::Parquet.missing(&culprit))
}

/// The result's rows as a table.
///
/// # Errors
/// Always.
pub fn bytes(_: &[Row]) -> Result<Vec<u8>, String> {
    Err(Feature::Parquet.missing("table"))
}

/// Connections over time as a table.
///
/// # Errors
/// Always.
pub fn over_time(_: &[Minute]) -> Result<Vec<u8>, String> {
    Err(Feature::Parquet.missing("table"))
}
