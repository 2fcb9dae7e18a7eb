//! Counts a slice of time after a warm-up on the requests before it; or the whole log, under a rule that cannot divide it.
//!
//! Requests must be in order of time.

use accesslog::Request;
use accesslog::connections::{Counter, Counts, RuleCounter};
use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wire::Time;

use crate::partial;
use crate::query::{KernelQuery, refused};
use crate::requests::{self, MILLI};

/// A slice of time.
#[pyclass(module = "roundtrip._kernel")]
pub struct Slice {
    counting: Option<Counting>,
    durations: bool,
    from: Time,
    last: Time,
}

enum Counting {
    OnePass(Box<Counter>),
    ByRule(Box<RuleCounter>),
}

#[pymethods]
impl Slice {
    /// Starts a slice at this time; earlier requests only determine the open connections.
    #[new]
    fn new(query: &KernelQuery, from_ms: u64) -> PyResult<Self> {
        let query = &query.query;
        let counting = match query.one_pass() {
            true => Counting::OnePass(Box::new(Counter::new(query))),
            false if from_ms == 0 => Counting::ByRule(Box::new(RuleCounter::new(query))),
            false => return Err(refused("a log cannot be divided under this rule; count all of it from 0")),
        };
        let from = Time::from_nanos(from_ms.saturating_mul(MILLI));
        Ok(Self { counting: Some(counting), durations: query.durations(), from, last: Time::ZERO })
    }

    /// Counts requests in order of time, from a [`KernelQuery`] or [`Lines`](crate::lines::Lines).
    fn push(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<()> {
        py.detach(|| self.take(&requests::of_batch(&batch.0, self.durations)?))
    }

    /// Returns the counts, for `merge`.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let counts: Counts = match self.counting.take().ok_or_else(finished)? {
            Counting::OnePass(counter) => counter.finish(),
            Counting::ByRule(counter) => counter.finish(),
        };
        Ok(PyBytes::new(py, &partial::to_bytes(&counts)))
    }
}

impl Slice {
    fn take(&mut self, requests: &[Request]) -> PyResult<()> {
        let counting = self.counting.as_mut().ok_or_else(finished)?;
        let in_order = requests.is_sorted_by_key(|request| request.time);
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else { return Ok(()) };
        if !in_order || first.time < self.last {
            return Err(refused("the requests are not sorted; sort them by `time_ms`"));
        }
        self.last = last.time;
        match counting {
            Counting::OnePass(counter) => {
                let start = requests.partition_point(|request| request.time < self.from);
                let (before, from) = requests.split_at(start);
                if !before.is_empty() {
                    counter.warm_up(before);
                }
                counter.count(from);
            }
            Counting::ByRule(counter) => counter.count(requests),
        }
        Ok(())
    }
}

fn finished() -> PyErr {
    refused("the slice is finished; create another one")
}
