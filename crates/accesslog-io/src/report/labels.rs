//! Labels and shares that tables, distributions and sentences have in common.

use accesslog::connections::{Counts, Stream};
use wire::{Bytes, Duration};

/// The connections per client, in the order of the tables.
pub fn limits(counts: &Counts) -> Vec<usize> {
    counts
        .streams
        .first()
        .map_or_else(Vec::new, |stream| stream.lines.iter().map(|line| line.limit).collect())
}

/// Title of a table.
pub fn title(counts: &Counts, index: usize) -> String {
    match limits(counts).get(index) {
        Some(1) => "One connection per client".to_owned(),
        Some(limit) => format!("{limit} connections per client"),
        None => String::new(),
    }
}

/// Name of a threshold in tables.
pub fn protocol(stream: &Stream) -> String {
    match stream.threshold {
        Bytes::ZERO => "HTTP".to_owned(),
        threshold => format!("DHTTP {}", threshold.get()),
    }
}

/// Seconds, with as many decimals as needed.
pub fn seconds(span: Duration) -> String {
    span.as_secs_f64().to_string()
}

/// Share of `all` that did not go by TCP.
pub fn udp_share(all: u64, by_tcp: u64) -> f64 {
    if all == 0 { 0.0 } else { (all - by_tcp) as f64 / all as f64 }
}
