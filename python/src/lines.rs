//! Lines of a log, made into requests.
//!
//! Not files: whoever has them gives blocks of whole lines, as they are in the file or as a column of texts. A log
//! without a name for its format is known by its beginning, which also has the names of W3C's fields; so a stretch of
//! lines can be read anywhere by who has the beginning.

use arrow_array::{Array, RecordBatch};
use arrow_pyarrow::PyArrowType;
use accesslog::columns::row::texts;
use pyo3::prelude::*;
use accesslog::{Format, Reader, recognise};

use crate::question::{Question, refused};
use crate::requests::Read;

/// Reads lines, block after block.
#[pyclass(module = "roundtrip._kernel")]
pub struct Lines {
    question: Py<Question>,
    reader: Reader,
}

/// A line is seldom shorter, in bytes.
const SHORT_LINE: usize = 64;

#[pymethods]
impl Lines {
    /// Lines of the format that is named, or else of that which the log's beginning is in.
    #[new]
    fn new(question: Py<Question>, log_format: Option<&str>, beginning: &[u8]) -> PyResult<Self> {
        let who = question.get().who.clone();
        let format = match log_format {
            Some(text) => Format::named(text, &who).map_err(|bad| refused(format!("log_format: {bad}")))?,
            None => recognise(beginning, &who).ok_or_else(|| refused(not_a_log(beginning)))?,
        };
        format.can_name(&who).map_err(|bad| refused(format!("client_field: {bad}")))?;
        let mut reader = Reader::new(format, who);
        reader.skim(beginning);
        Ok(Self { question, reader })
    }

    /// A block of whole lines as requests.
    fn block(&mut self, py: Python<'_>, block: &[u8]) -> PyResult<Read> {
        let Self { question, reader } = self;
        let question = question.get();
        py.detach(|| question.requests(block.len() / SHORT_LINE, |sink| Ok(reader.read(block, sink))))
    }

    /// The lines in a batch's only column as requests.
    fn column(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<Read> {
        let block = py.detach(|| joined(&batch.0))?;
        self.block(py, &block)
    }
}

fn not_a_log(beginning: &[u8]) -> &'static str {
    match beginning.is_empty() {
        true => "there is nothing in the log; name another one",
        false => "not an access log that is known here; give its format as log_format",
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
