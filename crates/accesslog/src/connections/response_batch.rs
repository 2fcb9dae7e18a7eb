//! Uses of connections that still matter, in order of time, and for every timeout the number of open
//! connections.
//!
//! A connection used at `t` is open until it is reused, or until T has passed. Both follow from the index
//! of the gap after the use. To make a timeout cheap while it decides nothing, closings are counted only when
//! they could decide whether there is a new peak. Until then `open` is too high, never too low. Peaks are
//! compared only at the end of an instant (a second, in most logs): within it connections are opened, and
//! none is closed.

use wire::Time;

use super::counts::{Curve, LimitCounts, Peak};
use super::gap::Gaps;

/// Responses under one threshold: their times, and the state of the connections they used.
#[derive(Clone, Debug)]
pub struct ResponseBatch {
    /// Times in milliseconds, from the oldest that matters.
    times: Vec<u64>,
    /// Number of the oldest; the others follow.
    base: u32,
    /// Length above which uses that no longer matter are dropped.
    capacity: usize,
    limits: Vec<LimitState>,
}

/// One limit of connections per client.
#[derive(Clone, Debug)]
struct LimitState {
    /// For each use the index of the gap after it; [`OPEN`] until its connection is reused. One entry more
    /// than there are uses.
    gaps: Vec<u8>,
    /// First use whose closing is not counted yet, by timeout.
    next: Vec<usize>,
    /// Connections open before this instant, and those whose closing is not counted yet, by timeout.
    open: Vec<u32>,
    /// Maximum open at the end of an instant, by timeout, or the maximum known from earlier stretches.
    max: Vec<u32>,
    /// Time of that maximum, in milliseconds since 1970; `None` if it is known from earlier stretches only.
    max_at: Vec<Option<u64>>,
    /// Requests after a gap, by the gap's index, up to the instant before this one.
    after: Vec<u64>,
    /// The same at this instant. Requests use the tables in turn, so that none waits until the previous one
    /// is counted.
    now: Vec<[u32; TURNS]>,
    /// Instant of the last request, in milliseconds since 1970.
    instant: u64,
    /// Number of timeouts, from the shortest, under which a connection was opened at this instant.
    affected: usize,
    /// Requests at this instant.
    requests: u32,
    /// Whether requests of this instant count.
    counted: bool,
    curve: Curve,
}

const OPEN: u8 = u8::MAX;
const TURNS: usize = 4;
/// Maximum number of requests in a batch.
pub const BATCH: usize = 32;
/// Minimum number of uses that are dropped in bulk.
const MIN_DROPPED: usize = 4_096;

/// Context that stays the same between requests.
#[derive(Clone, Copy, Debug)]
pub struct CountContext<'a> {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// The timeouts.
    pub gaps: &'a Gaps,
    /// Index of the timeout whose connections are followed over time.
    pub curve: usize,
    /// Whether requests count, or only warm up.
    pub counts: bool,
}

impl ResponseBatch {
    /// No use yet, for this number of limits.
    pub fn new(limits: usize, gaps: &Gaps) -> Self {
        let timeouts = gaps.timeouts_ms().len();
        let open = LimitState {
            gaps: Vec::new(),
            next: vec![0; timeouts],
            open: vec![0; timeouts],
            max: vec![0; timeouts],
            max_at: vec![None; timeouts],
            after: vec![0; timeouts + 1],
            now: vec![[0; TURNS]; timeouts + 1],
            instant: 0,
            affected: 0,
            requests: 0,
            counted: false,
            curve: Curve::default(),
        };
        Self { times: Vec::new(), base: 0, capacity: MIN_DROPPED, limits: vec![open; limits] }
    }

    /// Memory of the uses that matter, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.times[..]) + self.limits.iter().map(|open| open.gaps.len()).sum::<usize>()
    }

    /// Sets the peaks to exceed, limit by limit: lower ones are not searched for.
    pub fn search_peaks_above(&mut self, peaks: &mut impl Iterator<Item = u32>) {
        let max = self.limits.iter_mut().flat_map(|open| &mut open.max);
        max.zip(peaks).for_each(|(max, peak)| *max = peak);
    }

    /// Prepares for a batch of requests, the first of which is at `now`.
    #[inline]
    pub fn begin(&mut self, now: CountContext<'_>) {
        if self.times.len() + BATCH > self.capacity {
            self.end_instant(now.gaps, now.curve);
            self.drop_old(now);
        }
    }

    /// Adds requests of the batch, at these times. Returns the number of the first one's use; the others
    /// follow.
    #[inline]
    pub fn extend(&mut self, times_ms: impl Iterator<Item = u64>) -> u32 {
        // Numbers wrap around; `forget` prevents old ones from being valid again.
        #[expect(clippy::cast_possible_truncation)]
        let number = self.base.wrapping_add(self.times.len() as u32);
        self.times.extend(times_ms);
        number
    }

    /// Updates connections by the batch's `count` requests: `before` has, for each limit K, the K-th last
    /// uses of their clients.
    #[inline]
    pub fn end(&mut self, count: usize, before: &[[u32; BATCH]], now: CountContext<'_>) {
        let from = self.times.len() - count;
        for (open, before) in self.limits.iter_mut().zip(before) {
            // The index beyond the last is for uses that were dropped.
            open.gaps.last_mut().into_iter().for_each(|beyond| *beyond = OPEN);
            open.gaps.resize(self.times.len() + 1, OPEN);
            let mut before = &before[..count];
            // Most often all of a batch is of one instant.
            for instant in self.times[from..].chunk_by(|one, other| one == other) {
                if open.instant != instant[0] {
                    open.end_instant(now.gaps, now.curve, &self.times);
                    open.instant = instant[0];
                }
                let (of_instant, rest) = before.split_at(instant.len());
                open.requests(of_instant, &self.times, self.base, now);
                before = rest;
            }
        }
    }

    /// The number, if its use still matters.
    #[inline]
    pub fn forget(&self, number: u32, now: CountContext<'_>) -> Option<u32> {
        let time = self.times.get(number.wrapping_sub(self.base) as usize)?;
        (now.time_ms - time <= now.gaps.longest_ms()).then_some(number)
    }

    /// A number that refers to no use, now and for the next 2^31 uses.
    #[inline]
    pub fn none(&self) -> u32 {
        self.base.wrapping_sub(1)
    }

    /// Ends an instant: compares its connections with the peaks.
    #[inline]
    pub fn end_instant(&mut self, gaps: &Gaps, curve: usize) {
        for open in &mut self.limits {
            open.end_instant(gaps, curve, &self.times);
        }
    }

    /// Drops uses older than every timeout, after counting their closings.
    #[cold]
    fn drop_old(&mut self, now: CountContext<'_>) {
        for open in &mut self.limits {
            for (timeout, timeout_ms) in now.gaps.timeouts_ms().iter().enumerate() {
                open.close(timeout, *timeout_ms, now.time_ms, &self.times);
            }
        }
        let old = self.times.partition_point(|time| time + now.gaps.longest_ms() < now.time_ms);
        self.times.drain(..old);
        for open in &mut self.limits {
            open.gaps.drain(..old);
            for next in &mut open.next {
                *next -= old;
            }
        }
        // Less than 2^32: memory would not hold more.
        #[expect(clippy::cast_possible_truncation)]
        let dropped = old as u32;
        self.base = self.base.wrapping_add(dropped);
        self.capacity = (self.times.len() * 2).max(MIN_DROPPED);
    }

    /// Writes the counts into a stream's lines.
    pub fn finish(mut self, lines: &mut [LimitCounts], gaps: &Gaps, curve: usize) {
        self.end_instant(gaps, curve);
        for (open, line) in self.limits.into_iter().zip(lines) {
            let mut total = open.after.iter().sum::<u64>();
            for (index, opened) in line.opened.iter_mut().enumerate() {
                // Opened under a timeout: after every gap that is longer.
                total -= open.after[index];
                opened.total = total;
                opened.peak = open.max_at[index].map_or_else(Peak::default, |at| Peak {
                    connections: u64::from(open.max[index]),
                    at: Time::from_nanos(at * 1_000_000),
                });
            }
            line.curve.minutes = open.curve.minutes;
        }
    }
}

impl LimitState {
    /// Counts requests of this instant, each after a gap since the use of that number: under every shorter
    /// timeout, it opens a connection.
    #[inline]
    fn requests(&mut self, before: &[u32], times: &[u64], base: u32, now: CountContext<'_>) {
        let mut affected = self.affected;
        let last = times.len().saturating_sub(1);
        for (turn, number) in before.iter().enumerate() {
            // Dropped uses are longer ago than every timeout. Whether a use was dropped is unpredictable: no
            // branch depends on it.
            let index = number.wrapping_sub(base) as usize;
            let is_there = index <= last;
            let since = self.instant.saturating_sub(times[index.min(last)]);
            let gap = now.gaps.shorter_timeouts(if is_there { since } else { u64::MAX });
            self.gaps[if is_there { index } else { last + 1 }] = gap;
            self.now[usize::from(gap)][turn % TURNS] += 1;
            affected = affected.max(usize::from(gap));
        }
        self.affected = affected;
        self.requests += u32::try_from(before.len()).expect("a batch is small");
        self.counted = now.counts;
    }

    #[inline]
    fn end_instant(&mut self, gaps: &Gaps, curve: usize, times: &[u64]) {
        let affected = std::mem::take(&mut self.affected);
        let counts = std::mem::take(&mut self.counted);
        match std::mem::take(&mut self.requests) {
            0 => return,
            1 => {
                self.now[affected] = [0; TURNS];
                self.after[affected] += u64::from(counts);
                self.open[..affected].iter_mut().for_each(|open| *open += 1);
            }
            _ => self.open_all(affected, counts),
        }
        if !counts {
            return;
        }
        let higher = self.open[..affected].iter().zip(&self.max[..affected]).map(|(open, max)| open > max);
        if higher.fold(false, |any, higher| any | higher) {
            self.raise(affected, gaps, times);
        }
        self.follow(curve, gaps.timeouts_ms()[curve], times);
    }

    /// Opens connections for several requests: under a timeout, after every longer gap.
    fn open_all(&mut self, affected: usize, counts: bool) {
        let mut opened = 0;
        for index in (0..=affected).rev() {
            if index < affected {
                self.open[index] += opened;
            }
            let requests: u32 = std::mem::take(&mut self.now[index]).iter().sum();
            opened += requests;
            self.after[index] += u64::from(requests) * u64::from(counts);
        }
    }

    /// Searches for new peaks under the first `affected` timeouts.
    fn raise(&mut self, affected: usize, gaps: &Gaps, times: &[u64]) {
        let instant = self.instant;
        for (timeout, timeout_ms) in gaps.timeouts_ms()[..affected].iter().enumerate() {
            if self.open[timeout] > self.max[timeout] {
                self.close(timeout, *timeout_ms, instant, times);
                if self.open[timeout] > self.max[timeout] {
                    (self.max[timeout], self.max_at[timeout]) = (self.open[timeout], Some(instant));
                }
            }
        }
    }

    /// Records the maximum number of connections of each minute, under one timeout.
    #[inline]
    fn follow(&mut self, curve: usize, timeout_ms: u64, times: &[u64]) {
        let instant = self.instant;
        let minute = instant / MINUTE_MS;
        let max = self.curve.minutes.last().filter(|(last, _)| *last == minute).map(|(_, max)| *max);
        if max.is_none_or(|max| u64::from(self.open[curve]) > max) {
            self.close(curve, timeout_ms, instant, times);
            self.curve.raise(minute, u64::from(self.open[curve]));
        }
    }

    /// Counts the connections that closed under a timeout, without those reused within it.
    fn close(&mut self, timeout: usize, timeout_ms: u64, now_ms: u64, times: &[u64]) {
        let from = self.next[timeout];
        let until = from + closed_before(&times[from..], now_ms, timeout_ms);
        self.open[timeout] -= longer_than(&self.gaps[from..until], timeout);
        self.next[timeout] = until;
    }
}

/// Number of these gaps that are longer than the timeout of an index; counted in bytes, sixteen or more at a
/// time.
#[inline]
fn longer_than(gaps: &[u8], timeout: usize) -> u32 {
    let timeout = u8::try_from(timeout).expect("at most 200 timeouts");
    let in_bytes = |gaps: &[u8]| gaps.iter().fold(0_u8, |longer, gap| longer + u8::from(*gap > timeout));
    gaps.chunks(LANES).map(|gaps| u32::from(in_bytes(gaps))).sum()
}

/// The maximum that a byte can count, in whole groups of sixteen except the last.
const LANES: usize = 240;

/// Number of these ascending uses that are longer ago than a timeout; mostly few of many.
#[inline]
fn closed_before(times: &[u64], now_ms: u64, timeout_ms: u64) -> usize {
    let is_past = |time: &u64| time + timeout_ms < now_ms;
    let mut reach = 16;
    while times.get(reach).is_some_and(is_past) {
        reach *= 4;
    }
    times[..reach.min(times.len())].partition_point(is_past)
}

const MINUTE_MS: u64 = 60_000;
