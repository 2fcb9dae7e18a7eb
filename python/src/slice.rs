//! A stretch of requests, counted after a warm-up on what came before it.
//!
//! Not the sorting: requests come in order of time.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, PrimitiveArray, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use scenario::access_log::{Client, Request};
use simulate::connections::Counter;
use wire::{Bytes, Duration, Time};

use crate::partial;
use crate::question::{MILLI, Question};

/// A stretch of time.
#[pyclass(module = "roundtrip._kernel")]
pub struct Slice {
    counter: Option<Counter>,
    from: Time,
    last: Time,
}

#[pymethods]
impl Slice {
    /// From this time on, requests count; earlier ones only say which connections are open.
    #[new]
    fn new(question: &Question, from_ms: u64) -> Self {
        let from = Time::from_nanos(from_ms.saturating_mul(MILLI));
        Self { counter: Some(Counter::new(&question.asked)), from, last: Time::ZERO }
    }

    /// Counts requests, which are in order of time, as [`Question::requests`] gives them.
    fn push(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<()> {
        py.detach(|| self.count(&batch.0))
    }

    /// What was counted, for `merge`.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let counter = self.counter.take().ok_or_else(finished)?;
        Ok(PyBytes::new(py, &partial::to_bytes(&counter.finish())))
    }
}

impl Slice {
    fn count(&mut self, batch: &RecordBatch) -> PyResult<()> {
        let counter = self.counter.as_mut().ok_or_else(finished)?;
        let requests = requests(batch)?;
        let in_order = requests.is_sorted_by_key(|request| request.time);
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else { return Ok(()) };
        if !in_order || first.time < self.last {
            return Err(PyValueError::new_err("requests are not in order of time; sort them by `time_ms`"));
        }
        self.last = last.time;
        let (before, from) = requests.split_at(requests.partition_point(|request| request.time < self.from));
        if !before.is_empty() {
            counter.warm_up(before);
        }
        counter.count(from);
        Ok(())
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("the slice is finished; begin another one")
}

fn requests(batch: &RecordBatch) -> PyResult<Vec<Request>> {
    let (times, clients, sizes) =
        (column(batch, "time_ms")?, column(batch, "client")?, column(batch, "bytes")?);
    let request = |row: usize| Request {
        time: Time::from_nanos(times.value(row).cast_unsigned().saturating_mul(MILLI)),
        client: Client::from_bits(clients.value(row).cast_unsigned()),
        bytes: Bytes::new(sizes.value(row).cast_unsigned()),
        taken: Duration::ZERO,
    };
    Ok((0..batch.num_rows()).map(request).collect())
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> PyResult<&'a PrimitiveArray<Int64Type>> {
    let column = batch.column_by_name(name).and_then(|column| column.as_primitive_opt::<Int64Type>());
    column.filter(|column| column.null_count() == 0).ok_or_else(|| {
        PyValueError::new_err(format!("there is no column `{name}` of whole numbers without nulls"))
    })
}
