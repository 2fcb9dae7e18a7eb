//! Tables in a build without the feature `parquet`: none is read.
//!
//! A caller that names one gets an error earlier ([`Part::require`]).

use accesslog::{ClientDefinition, Record, Tally};

use crate::error::Part;
use crate::table_format::{TableFormat, TableSource};

/// Batch that cannot exist.
#[derive(Debug)]
pub struct RecordBatch(Never);

/// Columns that cannot exist.
#[derive(Clone, Copy, Debug)]
pub struct Columns(Never);

#[derive(Clone, Copy, Debug)]
enum Never {}

/// Column names without effect.
#[derive(Clone, Debug, Default)]
pub struct ColumnNames {
    /// Column of the client.
    pub client: Option<String>,
}

/// Table that cannot be opened.
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
    pub fn read(
        &self,
        _: &RecordBatch,
        _: &ClientDefinition,
        _: impl FnMut(Record),
    ) -> Result<Tally, String> {
        match self.0 {}
    }
}

impl ColumnNames {
    /// Fails: a column name needs the feature.
    ///
    /// # Errors
    /// Always.
    pub fn name(&mut self, role: &str, _column: &str) -> Result<(), String> {
        Err(Part::Parquet.missing(role).to_string())
    }
}

/// Fails: a table needs the feature.
///
/// # Errors
/// Always.
pub fn batches(_: TableFormat, source: TableSource, _: &ColumnNames) -> Result<Batches, String> {
    let culprit = match source {
        TableSource::File(path) => path.display().to_string(),
        TableSource::Object(object) => object.name(),
        TableSource::Memory(bytes) => format!("a table of {} bytes", bytes.len()),
    };
    Err(Part::Parquet.missing(&culprit).to_string())
}
