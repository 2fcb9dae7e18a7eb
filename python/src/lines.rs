//! Parses lines of a log into requests.
//!
//! The caller passes blocks of whole lines, as bytes or as a column of texts. The beginning of a log identifies its format,
//! and has the names of W3C's fields. So any part of a log can be read with its beginning.

use accesslog::columns::row::texts;
use accesslog::{Format, Reader, recognise};
use arrow_array::{Array, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;

use crate::query::{KernelQuery, refused};
use crate::requests::Read;

/// Reader of lines, block by block.
#[pyclass(module = "roundtrip._kernel")]
pub struct Lines {
    query: Py<KernelQuery>,
    reader: Reader,
}

/// Length of a short line, in bytes.
const SHORT_LINE: usize = 64;

#[pymethods]
impl Lines {
    /// Creates a reader of the named format, or of the format that the log's beginning identifies.
    #[new]
    fn new(query: Py<KernelQuery>, log_format: Option<&str>, beginning: &[u8]) -> PyResult<Self> {
        let who = query.get().who.clone();
        let format = match log_format {
            Some(text) => Format::named(text, &who).map_err(|bad| refused(format!("log_format: {bad}")))?,
            None => recognise(beginning, &who).ok_or_else(|| refused(not_a_log(beginning)))?,
        };
        format.check_client_field(&who).map_err(|bad| refused(format!("client_field: {bad}")))?;
        let mut reader = Reader::new(format, who);
        reader.skim(beginning);
        Ok(Self { query, reader })
    }

    /// Parses a block of whole lines.
    fn block(&mut self, py: Python<'_>, block: &[u8]) -> PyResult<Read> {
        let Self { query, reader } = self;
        let query = query.get();
        py.detach(|| query.requests(block.len() / SHORT_LINE, |sink| Ok(reader.read(block, sink))))
    }

    /// Parses the lines in a batch's only column.
    fn column(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<Read> {
        let block = py.detach(|| joined(&batch.0))?;
        self.block(py, &block)
    }
}

fn not_a_log(beginning: &[u8]) -> &'static str {
    match beginning.is_empty() {
        true => "the log is empty; name another one",
        false => "unknown access log format; name it as log_format",
    }
}

fn joined(batch: &RecordBatch) -> PyResult<Vec<u8>> {
    let lines = batch.columns().first().ok_or_else(|| refused("there is no column of lines"))?;
    let lines = texts(lines).map_err(|error| refused(format!("the column of lines: {error}")))?;
    let mut block = Vec::with_capacity(lines.value_data().len() + lines.len());
    for line in lines.iter().flatten() {
        block.extend_from_slice(line.as_bytes());
        block.push(b'\n');
    }
    Ok(block)
}
