//! The answer: for every threshold, limit and time-out, connections opened and the most at once.
//!
//! Whole numbers only; what is a mean or a share is divided when it is shown. The counts of two stretches of a log, the
//! second after a warm-up on the first, add up to those of both.

use wire::{Bytes, Duration, Time};

use super::question::Question;

/// All that was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Requests, whatever they went by.
    pub requests: u64,
    /// What was sent for them.
    pub bytes: Bytes,
    /// When the first and the last of them was.
    pub span: Option<(Time, Time)>,
    /// One for each threshold.
    pub streams: Vec<Stream>,
}

/// What goes by TCP under one threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Answers of at least this size go by TCP.
    pub threshold: Bytes,
    /// How many.
    pub requests: u64,
    /// What was sent for them.
    pub bytes: Bytes,
    /// One for each limit.
    pub lines: Vec<Line>,
}

/// One limit of connections per client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The limit.
    pub limit: usize,
    /// One for each time-out.
    pub opened: Vec<Opened>,
    /// Connections over time, for one of the time-outs.
    pub curve: Curve,
}

/// One time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The time-out.
    pub timeout: Duration,
    /// How many connections were opened.
    pub total: u64,
    /// The most that were open at once.
    pub peak: Peak,
}

/// The most at once, and when that was first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// How many.
    pub connections: u64,
    /// When.
    pub at: Time,
}

/// Connections over time: the most that were open at a request in each minute that has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// For which time-out.
    pub timeout: Duration,
    /// Minutes since 1970, ascending, and the most connections in each.
    pub minutes: Vec<(u64, u64)>,
}

/// What is known of other stretches of the same log: peaks, as what is lower need not be looked for, and how many clients
/// there are about.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// By threshold, limit and time-out.
    peaks: Vec<u64>,
    /// Those of the stretch that was counted last.
    clients: usize,
}

impl Known {
    /// Takes in what was counted of a stretch, whichever it is.
    pub fn learn(&mut self, counts: &Counts) {
        let lines = counts.streams.iter().flat_map(|stream| &stream.lines);
        let peaks: Vec<u64> =
            lines.flat_map(|line| &line.opened).map(|opened| opened.peak.connections).collect();
        self.peaks.resize(peaks.len(), 0);
        for (known, peak) in self.peaks.iter_mut().zip(peaks) {
            *known = peak.max(*known);
        }
    }

    /// About so many clients are to be remembered for the next stretch.
    pub fn expect_clients(&mut self, clients: usize) {
        self.clients = clients;
    }

    pub(super) fn clients(&self) -> usize {
        self.clients
    }

    /// The peaks, in order; as high again is still looked for, because it may be earlier.
    pub(super) fn below(&self) -> impl Iterator<Item = u32> {
        self.peaks.iter().map(|peak| u32::try_from(peak.saturating_sub(1)).unwrap_or(u32::MAX))
    }
}

impl Counts {
    /// Nothing counted yet.
    pub fn new(question: &Question) -> Self {
        let opened = |timeout: &Duration| Opened { timeout: *timeout, total: 0, peak: Peak::default() };
        let curve = Curve { timeout: question.timeouts()[question.curve()], minutes: Vec::new() };
        let line = |limit: &usize| Line {
            limit: *limit,
            opened: question.timeouts().iter().map(opened).collect(),
            curve: curve.clone(),
        };
        let stream = |threshold: &Bytes| Stream {
            threshold: *threshold,
            requests: 0,
            bytes: Bytes::ZERO,
            lines: question.limits().iter().map(line).collect(),
        };
        let streams = question.thresholds().iter().map(stream).collect();
        Self { requests: 0, bytes: Bytes::ZERO, span: None, streams }
    }

    /// Adds what was counted of the stretch that follows, which answers the same question.
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
    /// The higher of both, the earlier of equals.
    pub(super) fn raise(&mut self, other: Self) {
        if other.connections > self.connections {
            *self = other;
        }
    }
}

impl Curve {
    /// So many connections were open in this minute, which is the last one or a later one.
    pub(super) fn raise(&mut self, minute: u64, connections: u64) {
        match self.minutes.last_mut() {
            Some((last, most)) if *last == minute => *most = (*most).max(connections),
            Some(_) | None => self.minutes.push((minute, connections)),
        }
    }

    fn append(&mut self, next: &Self) {
        for (minute, connections) in &next.minutes {
            self.raise(*minute, *connections);
        }
    }
}
