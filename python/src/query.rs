//! A query, and the conversion of table rows to requests: times, clients and bytes as integers.
//!
//! [`crate::lines`] parses lines of text; [`crate::slice`] counts.

use accesslog::columns::{ColumnNames, Columns};
use accesslog::connections as counting;
use accesslog::connections::Rule;
use accesslog::{ClientDefinition, HeaderBytes, MissingSize, Prefix, Record, Request, Sizing, Tally};
use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use arrow_schema::Schema;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quantity::names::{Quoted, UnknownName};
use wire::{Bytes, Duration};

use crate::requests::{self, Read};

/// Validated query, and the interpretation of rows.
#[pyclass(frozen, module = "roundtrip._kernel")]
pub struct KernelQuery {
    pub query: counting::Query,
    pub who: ClientDefinition,
    named: ColumnNames,
    sizing: Sizing,
}

/// Timeout of the curve: the nearest one to Apache's, as in the program.
const CURVE: Duration = Duration::from_secs(15);

#[pymethods]
impl KernelQuery {
    #[new]
    #[pyo3(signature = (*, timeouts_ms, per_client, thresholds, rule, durations, header_bytes, missing_size, client_prefix, client_field, columns))]
    #[expect(clippy::too_many_arguments, reason = "one for each flag of the program, all by keyword")]
    fn new(
        timeouts_ms: Vec<u64>,
        per_client: Vec<usize>,
        thresholds: Vec<u64>,
        rule: &str,
        durations: bool,
        header_bytes: Option<u64>,
        missing_size: &str,
        client_prefix: Option<(u8, u8)>,
        client_field: Option<String>,
        columns: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let timeouts: Vec<Duration> = timeouts_ms.into_iter().map(millis).collect();
        let thresholds: Vec<Bytes> = thresholds.into_iter().map(Bytes::new).collect();
        let query = counting::Query::new(&timeouts, &per_client, &thresholds, CURVE).map_err(refused)?;
        let mut named = ColumnNames { client: client_field.clone(), ..ColumnNames::default() };
        for (role, column) in &columns {
            named.name(role, column).map_err(|unknown| refused(format!("columns: {unknown}")))?;
        }
        Ok(Self {
            query: query.under(named_rule(rule)?, durations),
            who: ClientDefinition { prefix: client_prefix.map(prefix).transpose()?, field: client_field },
            named,
            sizing: Sizing {
                missing: named_policy(missing_size)?,
                headers: header_bytes
                    .map_or(HeaderBytes::ByStatus, |bytes| HeaderBytes::Fixed(Bytes::new(bytes))),
            },
        })
    }

    /// Returns the longest timeout, in milliseconds: earlier requests have no effect.
    #[getter]
    fn longest_ms(&self) -> u64 {
        self.query.longest().as_nanos() / requests::MILLI
    }

    /// Whether slices of time can be counted separately.
    #[getter]
    fn one_pass(&self) -> bool {
        self.query.one_pass()
    }

    /// Returns the names of a table's columns that are read.
    fn columns(&self, schema: PyArrowType<Schema>) -> PyResult<Vec<String>> {
        let indices = self.find(&schema.0)?.indices();
        Ok(indices.into_iter().map(|index| schema.0.field(index).name().clone()).collect())
    }

    /// Converts a table's rows to requests.
    fn rows(&self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<Read> {
        py.detach(|| {
            let columns = self.find(&batch.0.schema())?;
            self.requests(batch.0.num_rows(), |sink| columns.read(&batch.0, &self.who, sink).map_err(refused))
        })
    }
}

impl KernelQuery {
    /// Collects requests from a reader of about `about` records.
    pub fn requests(
        &self,
        about: usize,
        read: impl FnOnce(&mut dyn FnMut(Record)) -> PyResult<Tally>,
    ) -> PyResult<Read> {
        let mut requests: Vec<Request> = Vec::with_capacity(about);
        let mut without_size = 0;
        let tally = read(&mut |record| match self.sizing.request(&record) {
            Some(request) => requests.push(request),
            None => without_size += 1,
        })?;
        requests::read(&requests, self.query.durations(), &tally, without_size)
    }

    fn find(&self, schema: &Schema) -> PyResult<Columns> {
        Columns::find(schema, &self.named).map_err(|missing| refused(format!("columns: {missing}")))
    }
}

/// Makes a Python `ValueError` of a message.
pub fn refused(sentence: impl ToString) -> PyErr {
    PyValueError::new_err(sentence.to_string())
}

/// Converts milliseconds, saturating; the query then rejects the timeout.
fn millis(number: u64) -> Duration {
    Duration::from_nanos(number.saturating_mul(requests::MILLI))
}

fn named_rule(text: &str) -> PyResult<Rule> {
    let named = Rule::ALL.into_iter().find(|rule| rule.name() == text);
    named.ok_or_else(|| refused(UnknownName::new("rule", text, Rule::ALL.map(Rule::name))))
}

fn named_policy(text: &str) -> PyResult<MissingSize> {
    match text {
        "leave-out" => Ok(MissingSize::LeaveOut),
        "zero" => Ok(MissingSize::Zero),
        "large" => Ok(MissingSize::Large),
        _ => Err(refused(UnknownName::new("missing_size", text, ["leave-out", "zero", "large"]))),
    }
}

fn prefix((v4, v6): (u8, u8)) -> PyResult<Prefix> {
    if v4 > 32 || v6 > 128 {
        let given = format!("{v4}, {v6}");
        return Err(refused(format!(
            "{} is not a prefix; give bits such as 24, or (24, 64)",
            Quoted(&given)
        )));
    }
    Ok(Prefix { v4, v6 })
}
