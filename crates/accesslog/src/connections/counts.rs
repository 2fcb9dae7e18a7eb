//! Results: for every threshold, limit and timeout, connections opened and the maximum open simultaneously.
//!
//! Whole numbers only; means and shares are computed when they are shown. The counts of two stretches of a
//! log, the second after a warm-up on the first, add up to those of both.

use wire::{Bytes, Duration, Time};

use super::query::Query;

/// Counts of a log or a stretch of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Requests by either transport.
    pub requests: u64,
    /// Bytes sent for them.
    pub bytes: Bytes,
    /// Times of the first and the last request.
    pub span: Option<(Time, Time)>,
    /// One per threshold.
    pub streams: Vec<Stream>,
}

/// Requests that go by TCP under one threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Responses of at least this size go by TCP.
    pub threshold: Bytes,
    /// Number of requests.
    pub requests: u64,
    /// Bytes sent for them.
    pub bytes: Bytes,
    /// One per limit.
    pub lines: Vec<LimitCounts>,
}

/// One limit of connections per client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitCounts {
    /// The limit.
    pub limit: usize,
    /// One per timeout.
    pub opened: Vec<TimeoutCounts>,
    /// Connections over time, for one of the timeouts.
    pub curve: Curve,
}

/// Connections under one timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutCounts {
    /// The timeout.
    pub timeout: Duration,
    /// Connections opened.
    pub total: u64,
    /// Maximum open simultaneously.
    pub peak: Peak,
}

/// Maximum number of open connections, and when it was first reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Number of connections.
    pub connections: u64,
    /// Time at which it was first reached.
    pub at: Time,
}

/// Connections over time: the maximum open at a request in each minute that has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// Timeout of the connections.
    pub timeout: Duration,
    /// Minutes since 1970, ascending, and the maximum number of connections in each.
    pub minutes: Vec<(u64, u64)>,
}

/// Facts from other stretches of the same log: peaks, since lower ones need not be searched for, and the
/// approximate number of clients.
#[derive(Clone, Debug, Default)]
pub struct PriorFacts {
    /// By threshold, limit and timeout.
    peaks: Vec<u64>,
    /// Clients of the stretch that was counted last.
    clients: usize,
}

impl PriorFacts {
    /// Adds the counts of any stretch.
    pub fn record(&mut self, counts: &Counts) {
        let lines = counts.streams.iter().flat_map(|stream| &stream.lines);
        let peaks: Vec<u64> =
            lines.flat_map(|line| &line.opened).map(|opened| opened.peak.connections).collect();
        self.peaks.resize(peaks.len(), 0);
        for (known, peak) in self.peaks.iter_mut().zip(peaks) {
            *known = peak.max(*known);
        }
    }

    /// Sets the expected number of clients of the next stretch.
    pub fn expect_clients(&mut self, clients: usize) {
        self.clients = clients;
    }

    pub(super) fn clients(&self) -> usize {
        self.clients
    }

    /// The peaks, in order. An equal peak is still searched for, because it may be earlier.
    pub(super) fn below(&self) -> impl Iterator<Item = u32> {
        self.peaks.iter().map(|peak| u32::try_from(peak.saturating_sub(1)).unwrap_or(u32::MAX))
    }
}

impl Counts {
    /// Counts of no requests.
    pub fn new(query: &Query) -> Self {
        let opened =
            |timeout: &Duration| TimeoutCounts { timeout: *timeout, total: 0, peak: Peak::default() };
        let curve = Curve { timeout: query.timeouts()[query.curve()], minutes: Vec::new() };
        let line = |limit: &usize| LimitCounts {
            limit: *limit,
            opened: query.timeouts().iter().map(opened).collect(),
            curve: curve.clone(),
        };
        let stream = |threshold: &Bytes| Stream {
            threshold: *threshold,
            requests: 0,
            bytes: Bytes::ZERO,
            lines: query.limits().iter().map(line).collect(),
        };
        let streams = query.thresholds().iter().map(stream).collect();
        Self { requests: 0, bytes: Bytes::ZERO, span: None, streams }
    }

    /// Adds the counts of the following stretch, for the same query.
    pub fn append(&mut self, next: &Self) {
        let Self { requests, bytes, span, streams } = next;
        self.requests += requests;
        self.bytes += *bytes;
        self.span = match (self.span, *span) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (one, other) => one.or(other),
        };
        for (stream, next) in self.streams.iter_mut().zip(streams) {
            stream.append(next);
        }
    }
}

impl Stream {
    fn append(&mut self, next: &Self) {
        let Self { threshold: _, requests, bytes, lines } = next;
        self.requests += requests;
        self.bytes += *bytes;
        for (line, next) in self.lines.iter_mut().zip(lines) {
            for (opened, next) in line.opened.iter_mut().zip(&next.opened) {
                opened.total += next.total;
                opened.peak.raise(next.peak);
            }
            line.curve.append(&next.curve);
        }
    }
}

impl Peak {
    /// Retains the higher of both, the earlier of equals.
    pub(super) fn raise(&mut self, other: Self) {
        if other.connections > self.connections {
            *self = other;
        }
    }
}

impl Curve {
    /// Records the connections open in this minute, which is the last one or a later one.
    pub(super) fn raise(&mut self, minute: u64, connections: u64) {
        match self.minutes.last_mut() {
            Some((last, max)) if *last == minute => *max = (*max).max(connections),
            Some(_) | None => self.minutes.push((minute, connections)),
        }
    }

    fn append(&mut self, next: &Self) {
        for (minute, connections) in &next.minutes {
            self.raise(*minute, *connections);
        }
    }
}
