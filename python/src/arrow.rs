//! Arrow tables of rows and stalls, passed without copies by the Arrow PyCapsule interface.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use lab::setting::{Kind, Setting, Value};
use lab::{Metric, Outcome, Unit, row};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Batches of one schema.
#[pyclass(frozen, module = "roundtrip._kernel")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    /// The stream of the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore the request.
        let _ = requested_schema;
        let batches: Vec<Result<RecordBatch, ArrowError>> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }
}

/// Rows and stalls while they are computed.
pub struct Rows {
    settings: Vec<Setting>,
    rows: (SchemaRef, Vec<RecordBatch>),
    stalls: (SchemaRef, Vec<RecordBatch>),
}

impl Rows {
    /// No rows, with these settings as columns.
    pub fn new(settings: &[Setting]) -> Self {
        let identity = || {
            let labels = row::LABELS.into_iter().map(|name| Field::new(name, DataType::Utf8, false));
            let settings = settings.iter().map(|setting| Field::new(&setting.name, data_type(setting.kind()), true));
            labels.chain(settings).collect::<Vec<Field>>()
        };
        let metrics = Metric::of_rows(settings).map(|metric| match metric.unit() {
            Unit::Whole => Field::new(metric.name(), DataType::UInt32, false),
            _ => Field::new(metric.name(), DataType::Float64, true),
        });
        let notes = Field::new("notes", DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))), false);
        let rows = identity().into_iter().chain(metrics).chain([notes]).collect::<Vec<_>>();
        let stall = [
            Field::new(row::STALL[0], DataType::Utf8, false),
            Field::new(row::STALL[1], DataType::Float64, false),
            Field::new(row::STALL[2], DataType::Float64, false),
        ];
        let number = [Field::new("row", DataType::UInt64, false)];
        let stalls = number.into_iter().chain(identity()).chain(stall).collect::<Vec<_>>();
        Self {
            settings: settings.to_vec(),
            rows: (Arc::new(Schema::new(rows)), Vec::new()),
            stalls: (Arc::new(Schema::new(stalls)), Vec::new()),
        }
    }

    /// Adds outcomes; the first has this number, from 0.
    pub fn add(&mut self, first: usize, outcomes: &[Outcome]) -> Result<(), ArrowError> {
        let each: Vec<&Outcome> = outcomes.iter().collect();
        let mut columns = self.identity(&each);
        for metric in Metric::of_rows(&self.settings) {
            columns.push(match metric.unit() {
                Unit::Whole => {
                    let mut runs = UInt32Builder::new();
                    each.iter().for_each(|outcome| runs.append_value(outcome.metrics.runs));
                    Arc::new(runs.finish())
                }
                _ => numbers(each.iter().map(|outcome| metric.value(outcome))),
            });
        }
        let mut notes = ListBuilder::new(StringBuilder::new());
        for outcome in &each {
            outcome.notes().iter().for_each(|note| notes.values().append_value(note));
            notes.append(true);
        }
        columns.push(Arc::new(notes.finish()));
        self.rows.1.push(RecordBatch::try_new(Arc::clone(&self.rows.0), columns)?);

        let stalls = || each.iter().enumerate().flat_map(|(index, outcome)| {
            outcome.stalls.iter().map(move |stall| (first + index + 1, *outcome, stall))
        });
        let mut row_numbers = UInt64Builder::new();
        stalls().for_each(|(number, _, _)| row_numbers.append_value(number as u64));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(row_numbers.finish())];
        columns.extend(self.identity(&stalls().map(|(_, outcome, _)| outcome).collect::<Vec<_>>()));
        columns.push(texts(stalls().map(|(_, _, stall)| Some(stall.cause.name().to_owned()))));
        columns.push(numbers(stalls().map(|(_, _, stall)| Some(stall.at_ms))));
        columns.push(numbers(stalls().map(|(_, _, stall)| Some(stall.lost_ms))));
        self.stalls.1.push(RecordBatch::try_new(Arc::clone(&self.stalls.0), columns)?);
        Ok(())
    }

    /// The table of rows.
    pub fn rows(&self) -> Table {
        Table { schema: Arc::clone(&self.rows.0), batches: self.rows.1.clone() }
    }

    /// The table of stalls.
    pub fn stalls(&self) -> Table {
        Table { schema: Arc::clone(&self.stalls.0), batches: self.stalls.1.clone() }
    }

    /// Columns of what was run.
    fn identity(&self, outcomes: &[&Outcome]) -> Vec<ArrayRef> {
        let labels = (0..row::LABELS.len()).map(|label| {
            texts(outcomes.iter().map(|outcome| Some(row::labels(&outcome.scenario, outcome.engine)[label].to_owned())))
        });
        let settings = self.settings.iter().map(|setting| {
            let values = outcomes.iter().map(|outcome| setting.value(&outcome.scenario));
            match setting.kind() {
                Kind::Number => numbers(values.map(|value| match value {
                    Value::Number(number) => Some(number),
                    _ => None,
                })),
                Kind::Whole => {
                    let mut column = UInt64Builder::new();
                    values.for_each(|value| {
                        column.append_option(match value {
                            Value::Whole(number) => Some(number),
                            _ => None,
                        });
                    });
                    Arc::new(column.finish())
                }
                Kind::Text => texts(values.map(|value| match value {
                    Value::Text(text) => Some(text),
                    _ => None,
                })),
            }
        });
        labels.chain(settings).collect()
    }
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Number => DataType::Float64,
        Kind::Whole => DataType::UInt64,
        Kind::Text => DataType::Utf8,
    }
}

fn numbers(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    let mut column = Float64Builder::new();
    values.for_each(|value| column.append_option(value));
    let column: Arc<dyn Array> = Arc::new(column.finish());
    column
}

fn texts(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    let mut column = StringBuilder::new();
    values.for_each(|value| column.append_option(value));
    let column: Arc<dyn Array> = Arc::new(column.finish());
    column
}
