//! The result as rows, for programs: one for each threshold, limit and time-out, as JSON or CSV.
//!
//! Not rounded: means and shares are divided here, once, in full precision.

use accesslog::connections::{ConnectionLoads, Counts, LimitCounts, Stream, TimeoutCounts};
use serde::Serialize;
use wire::Bytes;

use render::output::csv;

use super::distribution::{self, Distribution};
use super::labels::udp_share;

/// Counts for one threshold, limit and time-out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// `http` where every response goes by TCP, else `dhttp`.
    pub protocol: &'static str,
    /// The timeout, in seconds.
    pub timeout_s: f64,
    /// Maximum number of connections that a client opens.
    pub connections_per_client: usize,
    /// Responses of at least this size go by TCP; 0 for HTTP.
    pub threshold_bytes: u64,
    /// Maximum number of simultaneous connections.
    pub max_simultaneous: u64,
    /// Time of its first occurrence, in seconds since 1970; null if nothing went by TCP.
    pub max_simultaneous_at_s: Option<f64>,
    /// Number of connections opened.
    pub total_connections: u64,
    /// Mean bytes of a connection, header sections included; null if none was opened.
    pub mean_bytes_per_connection: Option<f64>,
    /// Mean requests of a connection.
    pub mean_requests_per_connection: Option<f64>,
    /// Share of responses that went by UDP.
    pub udp_share: f64,
    /// Share of bytes that went by UDP.
    pub udp_bytes_share: f64,
    /// Number of responses, by TCP and by UDP.
    pub requests: u64,
    /// Distribution over connections, if requested.
    #[serde(flatten)]
    pub distribution: Option<Distribution>,
}

/// Every row: by limit, then by time-out, then by threshold.
pub fn rows(counts: &Counts, loads: Option<&ConnectionLoads>) -> Vec<Row> {
    let Some(first) = counts.streams.first() else { return Vec::new() };
    let mut rows = Vec::new();
    for (index, line) in first.lines.iter().enumerate() {
        for timeout in 0..line.opened.len() {
            rows.extend(counts.streams.iter().enumerate().map(|(threshold, stream)| {
                let line = &stream.lines[index];
                let load = loads.and_then(|loads| loads.of(threshold, index, timeout));
                Row {
                    distribution: load.map(Distribution::of),
                    ..row(counts, stream, line, &line.opened[timeout])
                }
            }));
        }
    }
    rows
}

fn row(counts: &Counts, stream: &Stream, line: &LimitCounts, opened: &TimeoutCounts) -> Row {
    let TimeoutCounts { timeout, total, peak } = *opened;
    let per_connection = |sum: u64| (total > 0).then(|| sum as f64 / total as f64);
    Row {
        protocol: if stream.threshold == Bytes::ZERO { "http" } else { "dhttp" },
        timeout_s: timeout.as_secs_f64(),
        connections_per_client: line.limit,
        threshold_bytes: stream.threshold.get(),
        max_simultaneous: peak.connections,
        max_simultaneous_at_s: (peak.connections > 0).then(|| peak.at.since(wire::Time::ZERO).as_secs_f64()),
        total_connections: total,
        mean_bytes_per_connection: per_connection(stream.bytes.get()),
        mean_requests_per_connection: per_connection(stream.requests),
        udp_share: udp_share(counts.requests, stream.requests),
        udp_bytes_share: udp_share(counts.bytes.get(), stream.bytes.get()),
        requests: counts.requests,
        distribution: None,
    }
}

/// The same columns as comma-separated values.
pub fn lines(rows: &[Row]) -> String {
    let more = rows.first().and_then(|row| row.distribution.as_ref()).map(|_| distribution::COLUMNS);
    let heading = COLUMNS.into_iter().chain(more.into_iter().flatten()).map(str::to_owned).collect();
    std::iter::once(heading).chain(rows.iter().map(cells)).map(csv::line).collect()
}

/// Names of the columns.
pub const COLUMNS: [&str; 12] = [
    "protocol",
    "timeout_s",
    "connections_per_client",
    "threshold_bytes",
    "max_simultaneous",
    "max_simultaneous_at_s",
    "total_connections",
    "mean_bytes_per_connection",
    "mean_requests_per_connection",
    "udp_share",
    "udp_bytes_share",
    "requests",
];

fn cells(row: &Row) -> Vec<String> {
    let Row {
        protocol,
        timeout_s,
        connections_per_client,
        threshold_bytes,
        max_simultaneous,
        max_simultaneous_at_s,
        total_connections,
        mean_bytes_per_connection,
        mean_requests_per_connection,
        udp_share,
        udp_bytes_share,
        requests,
        distribution,
    } = row;
    let optional = |value: &Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let cells = [
        (*protocol).to_owned(),
        timeout_s.to_string(),
        connections_per_client.to_string(),
        threshold_bytes.to_string(),
        max_simultaneous.to_string(),
        optional(max_simultaneous_at_s),
        total_connections.to_string(),
        optional(mean_bytes_per_connection),
        optional(mean_requests_per_connection),
        udp_share.to_string(),
        udp_bytes_share.to_string(),
        requests.to_string(),
    ];
    let more = distribution.as_ref().map(Distribution::values).into_iter().flatten();
    let more = more.map(|value| value.map(|value| value.to_string()).unwrap_or_default());
    cells.into_iter().chain(more).collect()
}
