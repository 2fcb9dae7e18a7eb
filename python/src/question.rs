//! What is asked, and rows made into requests: with numbers for times, clients and bytes, whatever came in.
//!
//! Not the counting ([`crate::slice`]).

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_pyarrow::PyArrowType;
use columns::row::texts;
use columns::{Columns, Named};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use scenario::access_log::{Format, HeaderBytes, MissingSize, Reader, Record, Request, Sizing, Tally, Who};
use simulate::connections as counting;
use wire::{Bytes, Duration, Time};

/// What is asked, and how rows are read.
#[pyclass(frozen, module = "roundtrip._kernel")]
pub struct Question {
    pub asked: counting::Question,
    named: Named,
    sizing: Sizing,
    who: Who,
    format: Format,
}

/// The column that lines of text are in, as Spark calls it.
const LINES: &str = "value";

/// Requests as a batch; rows that give none; rows that have no size and were left out.
type Requests = (PyArrowType<RecordBatch>, u64, u64);

#[pymethods]
impl Question {
    #[new]
    fn new(
        timeouts_ms: Vec<u64>,
        per_client: Vec<usize>,
        thresholds: Vec<u64>,
        header_bytes: Option<u64>,
        missing_size: &str,
        log_format: &str,
        columns: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let timeouts: Vec<Duration> = timeouts_ms.into_iter().map(Duration::from_millis).collect();
        let thresholds: Vec<Bytes> = thresholds.into_iter().map(Bytes::new).collect();
        let asked = counting::Question::new(&timeouts, &per_client, &thresholds, Duration::from_secs(15));
        let missing = match missing_size {
            "leave-out" => MissingSize::LeaveOut,
            "zero" => MissingSize::Zero,
            "large" => MissingSize::Large,
            _ => return Err(PyValueError::new_err("missing_size is leave-out, zero or large")),
        };
        let headers =
            header_bytes.map_or(HeaderBytes::ByStatus, |bytes| HeaderBytes::Fixed(Bytes::new(bytes)));
        let mut named = Named::default();
        for (role, column) in &columns {
            named.name(role, column).map_err(|unknown| PyValueError::new_err(unknown.to_string()))?;
        }
        let who = Who::default();
        Ok(Self {
            asked: asked.map_err(|bad| PyValueError::new_err(bad.to_string()))?,
            named,
            sizing: Sizing { missing, headers },
            format: Format::named(log_format, &who).map_err(|bad| PyValueError::new_err(bad.to_string()))?,
            who,
        })
    }

    /// The longest time-out, in milliseconds: what was longer ago does not matter.
    #[getter]
    fn longest_ms(&self) -> u64 {
        self.asked.longest().as_nanos() / MILLI
    }

    /// A batch's rows as requests: `time_ms`, `client` and `bytes`, all of them whole numbers.
    fn requests(&self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<Requests> {
        py.detach(|| self.read(&batch.0))
    }
}

pub const MILLI: u64 = Duration::from_millis(1).as_nanos();

impl Question {
    fn read(&self, batch: &RecordBatch) -> PyResult<Requests> {
        let mut requests = Vec::with_capacity(batch.num_rows());
        let mut without_size = 0;
        let sink = |record: Record| match self.sizing.request(&record) {
            Some(request) => requests.push(request),
            None => without_size += 1,
        };
        let tally = match batch.column_by_name(LINES).filter(|_| batch.num_columns() == 1) {
            Some(lines) => self.lines(lines, sink)?,
            None => {
                let columns = Columns::find(&batch.schema(), &self.named)
                    .map_err(|missing| PyValueError::new_err(format!("columns: {missing}")))?;
                columns
                    .read(batch, &self.who, sink)
                    .map_err(|error| PyValueError::new_err(error.to_string()))?
            }
        };
        Ok((PyArrowType(to_batch(&requests)?), tally.bad(), without_size))
    }

    fn lines(&self, lines: &ArrayRef, sink: impl FnMut(Record)) -> PyResult<Tally> {
        let lines =
            texts(lines).map_err(|error| PyValueError::new_err(format!("the column `value`: {error}")))?;
        let mut block = Vec::with_capacity(lines.value_data().len() + lines.len());
        for line in lines.iter().flatten() {
            block.extend_from_slice(line.as_bytes());
            block.push(b'\n');
        }
        Ok(Reader::new(self.format.clone(), self.who.clone()).read(&block, sink))
    }
}

fn to_batch(requests: &[Request]) -> PyResult<RecordBatch> {
    let column = |value: fn(&Request) -> i64| -> Arc<dyn Array> {
        Arc::new(requests.iter().map(|request| Some(value(request))).collect::<Int64Array>())
    };
    let columns = [
        ("time_ms", column(|request| (request.time.since(Time::ZERO).as_nanos() / MILLI).cast_signed())),
        ("client", column(|request| request.client.bits().cast_signed())),
        ("bytes", column(|request| request.bytes.get().cast_signed())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, false)))
        .map_err(|error| PyValueError::new_err(error.to_string()))
}
