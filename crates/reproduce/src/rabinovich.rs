//! Ours for the DHTTP paper. Claims of `papers/dhttp#section-vi-a` about its log are counted from other logs, which
//! therefore are not the paper's; claims about packets are simulated. The paper's log, three months of AT&T's EasyWWW, is
//! not available. Its figures have no printed numbers: the data has the claims of the text. A synthetic day needs no file.
//! The environment variable `ROUNDTRIP_LOGS` names the directory of the other logs, without which these are not testable.
//! "Oldest" is read in two ways: the least recently used connection, and the first created one. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`logs`] | the logs, and their counts |
//! | [`connection_figures`] | Figures 6 to 9 for them |
//! | [`drawings`] | Figures 3 to 5: interception, the induced attack, the server's rules |
//! | [`proposals`] | mechanisms that the text proposes: requests forced to TCP, connections opened early |
//! | [`round_trips`] | Figure 1 in packets, and T/TCP alongside |
//! | [`congestion`] | users behind a saturated bottleneck: Table I in packets and measured, and Figure 13 |
//! | [`servers`] | Figures 10 to 12: today's servers under SURGE's users, on this host |
//! | [`early`] | Figure 14: requests in a connection's first packet, by TCP Fast Open and HTTP/3 |

pub mod congestion;
pub mod connection_figures;
pub mod drawings;
pub mod early;
pub mod logs;
pub mod proposals;
pub mod round_trips;
pub mod servers;

use accesslog::connections::{Counts, Stream, TimeoutCounts};
use dhttp_proto::message::{Id, RequestHeader};
use wire::{Bytes, Duration};

use super::laboratory::Laboratory;
use super::published::Cell;

use logs::Log;

/// Our value, or the reason why the log could not be counted.
type ReproducedValue = Result<Option<f64>, String>;

const HTTP: Bytes = Bytes::ZERO;

/// Share of responses that go by UDP.
pub fn shares(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    our_value(cell, measured, |counts, threshold| {
        Some(1.0 - stream(counts, threshold)?.requests as f64 / counts.requests as f64)
    })
}

/// Relative reduction of the maximum of simultaneous connections, at 15 s with three connections per client. Over all
/// time-outs: the minimum ratio of HTTP's maximum and total to DHTTP's. Of the totals' ratio: its value at the
/// shortest time-out over that at the longest.
pub fn figure_6(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    our_value(cell, measured, |counts, threshold| match cell.column.name.as_str() {
        "reduction" | "first-created" => {
            Some(1.0 - peak(counts, threshold, 3, 15)? / peak(counts, HTTP, 3, 15)?)
        }
        column => whole_range(counts, threshold, 3, column),
    })
}

/// Ratio of bytes per connection, at the shortest time-out with three connections per client.
pub fn figure_7(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    our_value(cell, measured, |counts, threshold| gain(counts, threshold, 3, 1))
}

/// Ratio of HTTP's connections to DHTTP's, at 5 s with one connection per client; and over the whole range as for
/// [`figure_6`].
pub fn figure_8(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    our_value(cell, measured, |counts, threshold| match cell.column.name.as_str() {
        "gain" => Some(peak(counts, HTTP, 1, 5)? / peak(counts, threshold, 1, 5)?),
        "total-drop-short" => total_drop(counts, 1),
        "total-drop-long" => total_drop(counts, 60),
        column => whole_range(counts, threshold, 1, column),
    })
}

/// Minimum ratio of HTTP's connections to DHTTP's over every time-out, of the maximum of simultaneous ones or of the total.
/// `low-end` is the ratio of totals at the shortest time-out over that at the longest. `high-end` is the difference of maxima
/// at the longest over that at the shortest.
fn whole_range(counts: &Counts, threshold: Bytes, limit: usize, column: &str) -> Option<f64> {
    let [http, dhttp] = [HTTP, threshold].map(|threshold| {
        let line = stream(counts, threshold)?.lines.iter().find(|line| line.limit == limit)?;
        Some(&line.opened)
    });
    let (http, dhttp) = (http?, dhttp?);
    let totals: fn(&TimeoutCounts) -> f64 = |opened| opened.total as f64;
    let peaks: fn(&TimeoutCounts) -> f64 = |opened| opened.peak.connections as f64;
    let ratios = |of: fn(&TimeoutCounts) -> f64| {
        let ratios = http.iter().zip(dhttp).map(|(http, dhttp)| of(http) / of(dhttp));
        ratios.collect::<Vec<_>>()
    };
    let minimum = |ratios: Vec<f64>| ratios.into_iter().reduce(f64::min);
    let saved = |counts_pair: Option<(&TimeoutCounts, &TimeoutCounts)>| {
        counts_pair.map(|(http, dhttp)| peaks(http) - peaks(dhttp))
    };
    match column {
        "least-peak" => minimum(ratios(peaks)),
        "least-total" => minimum(ratios(totals)),
        "low-end" => {
            let ratios = ratios(totals);
            Some(ratios.first()? / ratios.last()?)
        }
        "high-end" => {
            let mut both = http.iter().zip(dhttp);
            let first = saved(both.next())?;
            Some(saved(both.next_back())? / first)
        }
        _ => None,
    }
}

/// Ratio of HTTP's total with three connections per client to that with one.
fn total_drop(counts: &Counts, timeout_s: u64) -> Option<f64> {
    let total = |limit| Some(opened(stream(counts, HTTP)?, limit, timeout_s)?.total as f64);
    Some(total(3)? / total(1)?)
}

/// Gain in bytes with one connection per client as a share of that with three, at 1 s. Or the ratio of the added gains,
/// three to one, at 60 s.
pub fn figure_9(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    let is_long = cell.column.name == "long";
    our_value(cell, measured, |counts, threshold| {
        let gain = |limit, timeout_s| gain(counts, threshold, limit, timeout_s);
        match is_long {
            true => Some((gain(3, 60)? - 1.0) / (gain(1, 60)? - 1.0)),
            false => Some(gain(1, 1)? / gain(3, 1)?),
        }
    })
}

/// Our value. The first label is a log, the second a threshold; the column states how "oldest" is read.
fn our_value(
    cell: &Cell,
    measured: &mut Laboratory<'_>,
    value: impl Fn(&Counts, Bytes) -> Option<f64>,
) -> ReproducedValue {
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

fn opened(stream: &Stream, limit: usize, timeout_s: u64) -> Option<&TimeoutCounts> {
    let line = stream.lines.iter().find(|line| line.limit == limit)?;
    line.opened.iter().find(|opened| opened.timeout == Duration::from_secs(timeout_s))
}

/// A quantity that no figure prints. `peak/http/3/15`, `total/http/3/15`: of the synthetic day, with three connections per
/// client and 15 s. `request-overhead`, `response-overhead`: of a message, in bytes. `download/dhttp/3`: bits per second of
/// a download beside the users of three hosts; for users alone, `latency` and `throughput`. `lan/throughput/prefork/15`: of
/// a thousand users in a LAN whose idle connections are closed after 15 s.
///
/// # Errors
/// The name, if it is unknown, and the reason why the log could not be counted.
pub fn quantity(name: &str, measured: &mut Laboratory<'_>) -> ReproducedValue {
    let unknown = || format!("no quantity {name}");
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [quantity_name @ ("download" | "latency" | "throughput"), users, hosts] => {
            let hosts = hosts.parse().map_err(|_| unknown())?;
            congestion::simulated(quantity_name, users, hosts, measured)?.ok_or_else(unknown).map(Some)
        }
        ["lan", quantity_name @ ("latency" | "throughput"), users, idle] => {
            let idle_s = idle.parse().map_err(|_| unknown())?;
            congestion::in_a_lan(quantity_name, users, idle_s, measured)?.ok_or_else(unknown).map(Some)
        }
        ["request-overhead"] => Ok(Some(RequestHeader::BYTES as f64)),
        ["response-overhead"] => Ok(Some(Id::BYTES as f64)),
        ["by-tcp", scheme] => proposals::requests_by_tcp(scheme).map(Some),
        ["generation", "early"] => Ok(proposals::round_trips(true)),
        ["generation", "late"] => Ok(proposals::round_trips(false)),
        [quantity_name @ ("peak" | "total"), "http", limit, timeout] => {
            let limit = limit.parse().map_err(|_| unknown())?;
            let timeout = timeout.parse().map_err(|_| unknown())?;
            let counted = measured.counts(Log::BuiltIn)?;
            let opened = counted
                .and_then(|counted| opened(stream(&counted.least_recently_used, HTTP)?, limit, timeout));
            Ok(opened.map(|opened| match *quantity_name {
                "peak" => opened.peak.connections as f64,
                _ => opened.total as f64,
            }))
        }
        _ => Err(unknown()),
    }
}
