//! Rows of results: those of `roundtrip connections --format json`, and connections over time.
//!
//! Means and shares are computed here, in full precision.

use std::sync::Arc;

use accesslog::connections::{Counts, LimitCounts, Stream, TimeoutCounts};
use arrow_array::{Array, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wire::Bytes;

use crate::partial;
use crate::query::KernelQuery;

/// Returns a row for each limit, timeout and threshold.
#[pyfunction]
pub fn rows(query: &KernelQuery, partial: Vec<u8>) -> PyResult<PyArrowType<RecordBatch>> {
    let counts = partial::from_bytes(query, &partial)?;
    let all = cells(&counts);
    let whole = |value: &dyn Fn(&Cell<'_>) -> u64| -> Arc<dyn Array> {
        Arc::new(all.iter().map(|cell| Some(value(cell))).collect::<UInt64Array>())
    };
    let real = |value: &dyn Fn(&Cell<'_>) -> Option<f64>| -> Arc<dyn Array> {
        Arc::new(all.iter().map(value).collect::<Float64Array>())
    };
    let protocol = |(stream, _, _): &Cell<'_>| if stream.threshold == Bytes::ZERO { "http" } else { "dhttp" };
    let each =
        |sum: u64, opened: &TimeoutCounts| (opened.total > 0).then(|| sum as f64 / opened.total as f64);
    let by_udp =
        |all: u64, by_tcp: u64| Some(if all == 0 { 0.0 } else { (all - by_tcp) as f64 / all as f64 });
    let columns: [(&str, Arc<dyn Array>); 12] = [
        ("protocol", Arc::new(all.iter().map(|cell| Some(protocol(cell))).collect::<StringArray>())),
        ("timeout_s", real(&|(_, _, opened)| Some(opened.timeout.as_secs_f64()))),
        ("connections_per_client", whole(&|(_, line, _)| line.limit as u64)),
        ("threshold_bytes", whole(&|(stream, _, _)| stream.threshold.get())),
        ("max_simultaneous", whole(&|(_, _, opened)| opened.peak.connections)),
        (
            "max_simultaneous_at_s",
            real(&|(_, _, opened)| {
                (opened.peak.connections > 0).then(|| opened.peak.at.as_millis_f64() / 1e3)
            }),
        ),
        ("total_connections", whole(&|(_, _, opened)| opened.total)),
        ("mean_bytes_per_connection", real(&|(stream, _, opened)| each(stream.bytes.get(), opened))),
        ("mean_requests_per_connection", real(&|(stream, _, opened)| each(stream.requests, opened))),
        ("udp_share", real(&|(stream, _, _)| by_udp(counts.requests, stream.requests))),
        ("udp_bytes_share", real(&|(stream, _, _)| by_udp(counts.bytes.get(), stream.bytes.get()))),
        ("requests", whole(&|_| counts.requests)),
    ];
    batch(columns)
}

/// Returns the maximum number of connections in each minute with a request, with the timeout nearest to 15 s.
#[pyfunction]
pub fn curve(query: &KernelQuery, partial: Vec<u8>) -> PyResult<PyArrowType<RecordBatch>> {
    let counts = partial::from_bytes(query, &partial)?;
    let lines = counts.streams.iter().flat_map(|stream| stream.lines.iter().map(move |line| (stream, line)));
    let all: Vec<[u64; 4]> = lines
        .flat_map(|(stream, line)| {
            let minutes = line.curve.minutes.iter();
            minutes.map(|(minute, max)| [stream.threshold.get(), line.limit as u64, minute * 60, *max])
        })
        .collect();
    let names = ["threshold_bytes", "connections_per_client", "minute_s", "max_simultaneous"];
    batch([0, 1, 2, 3].map(|column| {
        let values: UInt64Array = all.iter().map(|row| Some(row[column])).collect();
        (names[column], Arc::new(values) as Arc<dyn Array>)
    }))
}

type Cell<'a> = (&'a Stream, &'a LimitCounts, &'a TimeoutCounts);

/// Returns all counts by limit, then by timeout, then by threshold.
fn cells(counts: &Counts) -> Vec<Cell<'_>> {
    let Some(first) = counts.streams.first() else { return Vec::new() };
    let indices = (0..first.lines.len())
        .flat_map(|line| (0..first.lines[line].opened.len()).map(move |timeout| (line, timeout)));
    let cell = |(line, timeout): (usize, usize)| {
        counts.streams.iter().map(move |stream| {
            let line = &stream.lines[line];
            (stream, line, &line.opened[timeout])
        })
    };
    indices.flat_map(cell).collect()
}

fn batch<const N: usize>(columns: [(&str, Arc<dyn Array>); N]) -> PyResult<PyArrowType<RecordBatch>> {
    let columns = columns.map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns);
    batch.map(PyArrowType).map_err(|error| PyValueError::new_err(error.to_string()))
}
