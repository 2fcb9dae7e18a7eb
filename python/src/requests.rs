//! Requests as record batches of integers between parsing and counting, which any engine can sort and pass.

use std::sync::Arc;

use accesslog::{Client, Reason, Request, Tally};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array, PrimitiveArray, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use wire::{Bytes, Duration, Time};

use crate::query::refused;

/// Requests; the number of rows or lines without a request, by reason, in the order of [`reasons`]; the number of
/// responses left out because they have no size.
pub type Read = (PyArrowType<RecordBatch>, Vec<u64>, u64);

/// A millisecond, in nanoseconds.
pub const MILLI: u64 = Duration::from_millis(1).as_nanos();

/// Returns the reasons why a row or a line has no request.
#[pyfunction]
pub fn reasons() -> Vec<String> {
    Reason::ALL.iter().map(ToString::to_string).collect()
}

/// Converts requests for Python. `taken_ms` is present only if `durations` is set.
pub fn read(requests: &[Request], durations: bool, tally: &Tally, without_size: u64) -> PyResult<Read> {
    let bad = |reason: &Reason| {
        tally.reasons().find_map(|(found, count, _)| (found == *reason).then_some(count)).unwrap_or(0)
    };
    let batch = batch(requests, durations)?;
    Ok((PyArrowType(batch), Reason::ALL.iter().map(bad).collect(), without_size))
}

fn batch(requests: &[Request], durations: bool) -> PyResult<RecordBatch> {
    let column = |value: fn(&Request) -> u64| -> Arc<dyn Array> {
        Arc::new(Int64Array::from_iter_values(requests.iter().map(|request| value(request).cast_signed())))
    };
    let mut columns = vec![
        ("time_ms", column(|request| request.time.since(Time::ZERO).as_nanos() / MILLI)),
        ("client", column(|request| request.client.bits())),
        ("bytes", column(|request| request.bytes.get())),
    ];
    if durations {
        columns.push(("taken_ms", column(|request| request.taken.as_nanos() / MILLI)));
    }
    let columns = columns.into_iter().map(|(name, column)| (name, column, false));
    RecordBatch::try_from_iter_with_nullable(columns).map_err(refused)
}

/// Converts a batch from [`read`] to requests.
///
/// # Errors
/// A missing column, or one of another type.
pub fn of_batch(batch: &RecordBatch, durations: bool) -> PyResult<Vec<Request>> {
    let (times, clients, sizes) =
        (column(batch, "time_ms")?, column(batch, "client")?, column(batch, "bytes")?);
    let taken = durations.then(|| column(batch, "taken_ms")).transpose()?;
    let millis = |values: &PrimitiveArray<Int64Type>, row: usize| {
        values.value(row).cast_unsigned().saturating_mul(MILLI)
    };
    let request = |row: usize| Request {
        time: Time::from_nanos(millis(times, row)),
        client: Client::from_bits(clients.value(row).cast_unsigned()),
        bytes: Bytes::new(sizes.value(row).cast_unsigned()),
        taken: taken.map_or(Duration::ZERO, |taken| Duration::from_nanos(millis(taken, row))),
    };
    Ok((0..batch.num_rows()).map(request).collect())
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> PyResult<&'a PrimitiveArray<Int64Type>> {
    let column = batch.column_by_name(name).and_then(|column| column.as_primitive_opt::<Int64Type>());
    column
        .filter(|column| column.null_count() == 0)
        .ok_or_else(|| refused(format!("there is no column `{name}` of whole numbers without nulls")))
}
