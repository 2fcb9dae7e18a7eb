//! Distribution of bytes and requests over connections: a few quantiles, for programs and for readers.
//!
//! Not their means: those are exact, and in every result. Quantiles are off by at most 1.6%; the maximum is exact.

use accesslog::connections::{AmountHistogram, ConnectionLoads, Counts, Load};
use serde::Serialize;

use render::output::grid::{Column, Grid};
use render::output::number;

use super::labels;

/// Quantiles for one threshold, limit and time-out; null where no connection was opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Median of the bytes of a connection, header sections included.
    pub median_bytes_per_connection: Option<u64>,
    /// 90th percentile of the bytes.
    pub p90_bytes_per_connection: Option<u64>,
    /// 99th percentile of the bytes.
    pub p99_bytes_per_connection: Option<u64>,
    /// Maximum of the bytes.
    pub max_bytes_per_connection: Option<u64>,
    /// Median of the requests of a connection.
    pub median_requests_per_connection: Option<u64>,
    /// 90th percentile of the requests.
    pub p90_requests_per_connection: Option<u64>,
    /// 99th percentile of the requests.
    pub p99_requests_per_connection: Option<u64>,
    /// Maximum of the requests.
    pub max_requests_per_connection: Option<u64>,
}

/// Names of the columns.
pub const COLUMNS: [&str; 8] = [
    "median_bytes_per_connection",
    "p90_bytes_per_connection",
    "p99_bytes_per_connection",
    "max_bytes_per_connection",
    "median_requests_per_connection",
    "p90_requests_per_connection",
    "p99_requests_per_connection",
    "max_requests_per_connection",
];

impl Distribution {
    /// The quantiles of a load.
    pub fn of(load: &Load) -> Self {
        let Load { requests, bytes } = load;
        let [median_bytes, p90_bytes, p99_bytes, max_bytes] = four(bytes);
        let [median_requests, p90_requests, p99_requests, max_requests] = four(requests);
        Self {
            median_bytes_per_connection: median_bytes,
            p90_bytes_per_connection: p90_bytes,
            p99_bytes_per_connection: p99_bytes,
            max_bytes_per_connection: max_bytes,
            median_requests_per_connection: median_requests,
            p90_requests_per_connection: p90_requests,
            p99_requests_per_connection: p99_requests,
            max_requests_per_connection: max_requests,
        }
    }

    /// Values in the order of the columns.
    pub fn values(&self) -> [Option<u64>; COLUMNS.len()] {
        [
            self.median_bytes_per_connection,
            self.p90_bytes_per_connection,
            self.p99_bytes_per_connection,
            self.max_bytes_per_connection,
            self.median_requests_per_connection,
            self.p90_requests_per_connection,
            self.p99_requests_per_connection,
            self.max_requests_per_connection,
        ]
    }
}

/// Median, 90th and 99th percentile, and maximum.
fn four(spread: &AmountHistogram) -> [Option<u64>; 4] {
    let max = (spread.connections() > 0).then(|| spread.max());
    [spread.quantile(500), spread.quantile(900), spread.quantile(990), max]
}

/// A table for readers: one limit, a line for each timeout; kilobytes and requests, thresholds side by side.
pub fn grid(counts: &Counts, loads: &ConnectionLoads, limit: usize) -> Grid {
    let mut columns = vec![Column::number(["timeout", "s"], 0)];
    for (what, rank) in
        [("kB, half", 0), ("kB, 90%", 0), ("kB, 99%", 1), ("requests, half", 1), ("requests, 99%", 2)]
    {
        let of = |stream| Column::of([what.to_owned(), labels::protocol(stream)], rank);
        columns.extend(counts.streams.iter().map(of));
    }
    let timeouts = counts.streams.first().map_or(&[][..], |stream| stream.lines[limit].opened.as_slice());
    let row = |(timeout, opened): (usize, &accesslog::connections::TimeoutCounts)| {
        let of = |value: fn(&Load) -> Option<String>| {
            let load = move |threshold| loads.of(threshold, limit, timeout).and_then(value);
            (0..counts.streams.len()).map(move |threshold| load(threshold).unwrap_or_default())
        };
        let first = [labels::seconds(opened.timeout)].into_iter();
        first
            .chain(of(|load| load.bytes.quantile(500).map(kilobytes)))
            .chain(of(|load| load.bytes.quantile(900).map(kilobytes)))
            .chain(of(|load| load.bytes.quantile(990).map(kilobytes)))
            .chain(of(|load| load.requests.quantile(500).map(|requests| number::count(requests as f64))))
            .chain(of(|load| load.requests.quantile(990).map(|requests| number::count(requests as f64))))
            .collect()
    };
    Grid { columns, rows: timeouts.iter().enumerate().map(row).collect() }
}

fn kilobytes(bytes: u64) -> String {
    number::tenths(bytes as f64 / 1e3)
}
