//! Ours for the DHTTP paper. Claims of `papers/dhttp#section-vi-a` about its log are counted from other logs, which
//! therefore are not the paper's; claims about packets are simulated.
//!
//! The paper's log, three months of AT&T's EasyWWW, is not available, and its figures have no numbers in print: the
//! data has the claims of the text. The environment variable `ROUNDTRIP_LOGS` names the directory of logs; without it
//! no log is testable. "Oldest" is read both ways: the connection used least recently, and the one created first. Read
//! in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`logs`] | the logs, and their counts |
//! | [`drawn`] | Figures 6 to 9 for them |
//! | [`round_trips`] | Figure 1 in packets, and T/TCP alongside |
//! | [`congestion`] | users behind a saturated bottleneck: Table I in packets and measured, and Figure 13 |
//! | [`servers`] | Figures 10 to 12: today's servers under SURGE's users, on this machine |
//! | [`early`] | Figure 14: requests in a connection's first packet, by TCP Fast Open and HTTP/3 |

pub mod congestion;
pub mod drawn;
pub mod early;
pub mod logs;
pub mod round_trips;
pub mod servers;

use accesslog::connections::{Counts, Opened, Stream};
use wire::{Bytes, Duration};

use super::measured::Measured;
use super::published::Cell;

use logs::Log;

/// Our value, or why the log could not be counted.
type Ours = Result<Option<f64>, String>;

const HTTP: Bytes = Bytes::ZERO;

/// Share of responses that go by UDP.
pub fn shares(cell: &Cell, measured: &mut Measured<'_>) -> Ours {
    ours(cell, measured, |counts, threshold| {
        Some(1.0 - stream(counts, threshold)?.requests as f64 / counts.requests as f64)
    })
}

/// Relative reduction of the maximum of simultaneous connections, at 15 s with three connections per client.
pub fn figure_6(cell: &Cell, measured: &mut Measured<'_>) -> Ours {
    ours(cell, measured, |counts, threshold| {
        Some(1.0 - peak(counts, threshold, 3, 15)? / peak(counts, HTTP, 3, 15)?)
    })
}

/// Ratio of bytes per connection, at the shortest time-out with three connections per client.
pub fn figure_7(cell: &Cell, measured: &mut Measured<'_>) -> Ours {
    ours(cell, measured, |counts, threshold| gain(counts, threshold, 3, 1))
}

/// Ratio of HTTP's connections to DHTTP's, at 5 s with one connection per client.
pub fn figure_8(cell: &Cell, measured: &mut Measured<'_>) -> Ours {
    ours(cell, measured, |counts, threshold| Some(peak(counts, HTTP, 1, 5)? / peak(counts, threshold, 1, 5)?))
}

/// Gain in bytes with one connection per client as a share of that with three, at 1 s; or the ratio of the added gains,
/// three to one, at 60 s.
pub fn figure_9(cell: &Cell, measured: &mut Measured<'_>) -> Ours {
    let is_long = cell.column.name == "long";
    ours(cell, measured, |counts, threshold| {
        let gain = |limit, timeout_s| gain(counts, threshold, limit, timeout_s);
        match is_long {
            true => Some((gain(3, 60)? - 1.0) / (gain(1, 60)? - 1.0)),
            false => Some(gain(1, 1)? / gain(3, 1)?),
        }
    })
}

/// Our value. The first label is a log, the second a threshold; the column states how "oldest" is read.
fn ours(cell: &Cell, measured: &mut Measured<'_>, value: impl Fn(&Counts, Bytes) -> Option<f64>) -> Ours {
    let log = Log::ALL.into_iter().find(|log| log.name() == cell.label(0));
    let Some(counted) = log.map(|log| measured.counts(log)).transpose()?.flatten() else { return Ok(None) };
    let counts = match cell.column.name.as_str() {
        "first-created" => &counted.first_created,
        _ => &counted.least_recently_used,
    };
    Ok(value(counts, Bytes::new(cell.label(1).parse().unwrap_or(0))))
}

fn peak(counts: &Counts, threshold: Bytes, limit: usize, timeout_s: u64) -> Option<f64> {
    Some(opened(stream(counts, threshold)?, limit, timeout_s)?.peak.connections as f64)
}

/// Ratio of bytes per connection, DHTTP to HTTP.
fn gain(counts: &Counts, threshold: Bytes, limit: usize, timeout_s: u64) -> Option<f64> {
    let carried = |threshold| {
        let stream = stream(counts, threshold)?;
        Some(stream.bytes.as_f64() / opened(stream, limit, timeout_s)?.total as f64)
    };
    Some(carried(threshold)? / carried(HTTP)?)
}

fn stream(counts: &Counts, threshold: Bytes) -> Option<&Stream> {
    counts.streams.iter().find(|stream| stream.threshold == threshold)
}

fn opened(stream: &Stream, limit: usize, timeout_s: u64) -> Option<&Opened> {
    let line = stream.lines.iter().find(|line| line.limit == limit)?;
    line.opened.iter().find(|opened| opened.timeout == Duration::from_secs(timeout_s))
}
