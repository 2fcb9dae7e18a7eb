//! A stretch of requests, counted after a warm-up on what came before it; or, under a rule for which a log cannot be
//! cut, all of them.
//!
//! Not the sorting: requests come in order of time.

use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use accesslog::Request;
use accesslog::connections::{RuleCounter, Counter, Counts};
use wire::Time;

use crate::partial;
use crate::question::{Question, refused};
use crate::requests::{self, MILLI};

/// A stretch of time.
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
    /// From this time on, requests count; earlier ones only say which connections are open.
    #[new]
    fn new(question: &Question, from_ms: u64) -> PyResult<Self> {
        let asked = &question.asked;
        let counting = match asked.one_pass() {
            true => Counting::OnePass(Box::new(Counter::new(asked))),
            false if from_ms == 0 => Counting::ByRule(Box::new(RuleCounter::new(asked))),
            false => return Err(refused("under this rule a log cannot be cut; count all of it from 0")),
        };
        let from = Time::from_nanos(from_ms.saturating_mul(MILLI));
        Ok(Self { counting: Some(counting), durations: asked.durations(), from, last: Time::ZERO })
    }

    /// Counts requests, which are in order of time, as a [`Question`] and [`Lines`](crate::lines::Lines) give them.
    fn push(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<()> {
        py.detach(|| self.take(&requests::of_batch(&batch.0, self.durations)?))
    }

    /// Counts, for `merge`.
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
            return Err(refused("requests are not in order of time; sort them by `time_ms`"));
        }
        self.last = last.time;
        match counting {
            Counting::OnePass(counter) => {
                let begins = requests.partition_point(|request| request.time < self.from);
                let (before, from) = requests.split_at(begins);
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
    refused("the slice is finished; begin another one")
}
