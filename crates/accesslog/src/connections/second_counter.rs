//! Connections open at each second, for every timeout, for logs whose clock ticks once a second, as most do.
//!
//! All requests of a second are counted together, so that a timeout adds no cost per request. A request
//! enters the index of its gap into two tables. The first belongs to the request's second, in which it opens
//! a connection under every shorter timeout. The second table belongs to the second in which the gap began:
//! under every longer timeout, that connection does not close. T after a second, those of its uses close that
//! were not followed within T. A stretch of seconds is evaluated when it is over, one timeout after another.
//! It is walked through second by second only if there may be a new peak.
//!
//! Not for times between seconds, nor for logs with few requests per second: those use
//! [`response_batch`](super::response_batch).

use wire::Time;

use super::counts::{Curve, LimitCounts, Peak};
use super::gap::Gaps;

/// Connections by the second, for all thresholds and limits.
#[derive(Clone, Debug)]
pub struct SecondCounts {
    /// Index among the timeouts for each gap in seconds; the last entry is for all gaps longer than the
    /// longest timeout.
    gap_indices: Vec<u8>,
    /// In whole seconds: a connection that closes after 1.5 s is counted as closed after 2.
    timeouts: Vec<usize>,
    curve: usize,
    /// Number of the stretch's first second, and its index in [`LimitState::after`].
    begin: u32,
    at: usize,
    /// Number of the first second that counts; earlier ones are warm-up.
    from: Option<u32>,
    /// All limits of the first threshold, then of the next.
    lines: Vec<LimitState>,
}

/// One limit of connections per client, under one threshold.
#[derive(Clone, Debug)]
pub struct LimitState {
    /// Requests after a gap, by the gap's index and the second of the stretch.
    opened: Vec<u32>,
    /// Uses that were followed after a gap, by the gap's index and the second, of the longest timeout before
    /// the stretch and of the stretch.
    after: Vec<u32>,
    /// Uses of each of these seconds that were not followed within the timeouts that have passed since.
    not_followed: Vec<u32>,
    /// Connections open before the stretch, by timeout.
    open: Vec<u32>,
    /// Maximum open at the end of a second, by timeout, or the maximum known from earlier stretches.
    max: Vec<u32>,
    /// Number of that second; `None` if the maximum is known from earlier stretches only.
    max_at: Vec<Option<u32>>,
    /// Requests after a gap in stretches that count, by the gap's index, and the number of those that do not
    /// count.
    total: Vec<u64>,
    warm: Vec<u32>,
    minutes: Curve,
}

/// Seconds in a stretch.
const STRETCH: usize = SECONDS as usize;
const SECONDS: u32 = 32;
/// Stretches for which there is capacity before the tables are moved.
const STRETCHES: usize = 2;
/// Longest timeout that is counted by the second, in milliseconds: tables have a row for each of its seconds.
pub const MAX_TIMEOUT_MS: u64 = 7_200_000;

/// Number that refers to no second: longer ago than every timeout.
pub const NONE: u32 = 0;

impl SecondCounts {
    /// No connections open, for this number of lines.
    pub fn new(lines: usize, gaps: &Gaps, curve: usize) -> Self {
        let seconds = |timeout_ms: &u64| usize::try_from(timeout_ms / 1_000).unwrap_or(usize::MAX);
        let timeouts: Vec<usize> = gaps.timeouts_ms().iter().map(seconds).collect();
        let longest = timeouts.last().copied().unwrap_or(0);
        let gap_indices = (0..longest as u64 + 2).map(|gap| gaps.shorter_timeouts(gap * 1_000)).collect();
        let width = (longest + 1) * 2 + STRETCHES * STRETCH;
        let open = LimitState {
            opened: vec![0; (timeouts.len() + 1) * STRETCH],
            after: vec![0; (timeouts.len() + 1) * width],
            not_followed: vec![0; width],
            open: vec![0; timeouts.len()],
            max: vec![0; timeouts.len()],
            max_at: vec![None; timeouts.len()],
            total: vec![0; timeouts.len() + 1],
            warm: vec![0; timeouts.len() + 1],
            minutes: Curve::default(),
        };
        Self { gap_indices, timeouts, curve, begin: 0, at: longest + 1, from: None, lines: vec![open; lines] }
    }

    /// Sets the peaks to exceed, line by line: lower ones are not searched for.
    pub fn search_peaks_above(&mut self, peaks: &mut impl Iterator<Item = u32>) {
        let max = self.lines.iter_mut().flat_map(|open| &mut open.max);
        max.zip(peaks).for_each(|(max, peak)| *max = peak);
    }

    /// Number of a time's second: no gap reaches from it to [`NONE`].
    #[inline]
    pub fn number(&self, time: Time) -> u32 {
        let seconds = time.since(Time::ZERO).as_nanos() / 1_000_000_000;
        u32::try_from(seconds).map_or(u32::MAX, |second| second.saturating_add(self.first()))
    }

    /// Number of the first second of 1970.
    #[inline]
    fn first(&self) -> u32 {
        u32::try_from(self.gap_indices.len()).expect("at most two hours")
    }

    /// Whether a use still matters to a timeout.
    #[inline]
    pub fn is_recent(&self, number: u32, now: u32) -> bool {
        (now.saturating_sub(number) as usize) + 1 < self.gap_indices.len()
    }

    /// Prepares for requests from this second on. Returns the first second that must wait until these are
    /// counted.
    #[inline]
    pub fn begin(&mut self, now: u32, counts: bool) -> u32 {
        if counts && self.from.is_none() {
            self.reach(now);
            self.begin_counting(now);
        } else if now.saturating_sub(self.begin) as usize >= STRETCH {
            self.reach(now);
        }
        self.begin.saturating_add(SECONDS)
    }

    /// The lines of a threshold, and the context in which their requests are counted.
    #[inline]
    pub fn lines(&mut self, threshold: usize, limits: usize) -> (&mut [LimitState], CountContext<'_>) {
        let now = CountContext { gap_indices: &self.gap_indices, begin: self.begin, at: self.at };
        (&mut self.lines[threshold * limits..][..limits], now)
    }

    /// Writes the counts into the streams' lines, in order of streams.
    pub fn finish<'a>(mut self, lines: impl Iterator<Item = &'a mut LimitCounts>) {
        self.end();
        let first = self.first();
        for (open, line) in self.lines.into_iter().zip(lines) {
            let counted: Vec<u64> =
                open.total.iter().zip(&open.warm).map(|(total, warm)| total - u64::from(*warm)).collect();
            let mut total = counted.iter().sum::<u64>();
            for (index, opened) in line.opened.iter_mut().enumerate() {
                // Opened under a timeout: after every gap that is longer.
                total -= counted[index];
                opened.total = total;
                opened.peak = open.max_at[index].map_or_else(Peak::default, |at| Peak {
                    connections: u64::from(open.max[index]),
                    at: Time::from_nanos(u64::from(at - first) * 1_000_000_000),
                });
            }
            line.curve.minutes = open.minutes.minutes;
        }
    }

    /// Ends stretches until the current one holds this second.
    #[cold]
    fn reach(&mut self, now: u32) {
        while now.saturating_sub(self.begin) as usize >= STRETCH {
            self.end();
            if now.saturating_sub(self.begin) as usize > self.gap_indices.len() + STRETCH {
                // Everything has closed since.
                self.at = self.gap_indices.len() - 1;
                self.begin = now;
                for open in &mut self.lines {
                    open.after.fill(0);
                    open.not_followed.fill(0);
                    open.open.fill(0);
                }
            }
        }
    }

    /// Starts counting: requests before this second, and in it so far, do not count.
    fn begin_counting(&mut self, now: u32) {
        self.from = Some(now);
        for open in &mut self.lines {
            let rows = open.opened.as_chunks::<STRETCH>().0;
            open.warm.iter_mut().zip(rows).for_each(|(warm, row)| *warm = sum(row));
        }
    }

    /// Ends the stretch and begins the next.
    fn end(&mut self) {
        let over = FinishedStretch { begin: self.begin, first: self.first(), at: self.at, from: self.from };
        for open in &mut self.lines {
            open.end(over, &self.timeouts, self.curve);
        }
        self.at += STRETCH;
        self.begin = self.begin.saturating_add(SECONDS);
        let before = self.gap_indices.len() - 1;
        if self.lines.first().is_some_and(|open| self.at + STRETCH > open.not_followed.len()) {
            for open in &mut self.lines {
                let width = open.not_followed.len();
                for row in open.after.chunks_exact_mut(width).chain([&mut open.not_followed[..]]) {
                    row.copy_within(self.at - before..self.at, 0);
                    row[before..].fill(0);
                }
            }
            self.at = before;
        }
    }
}

/// Context in which requests are counted.
#[derive(Clone, Copy, Debug)]
pub struct CountContext<'a> {
    gap_indices: &'a [u8],
    begin: u32,
    at: usize,
}

/// A finished stretch: the number of its first second, that of 1970's first, its index, and the start of
/// counting.
#[derive(Clone, Copy, Debug)]
struct FinishedStretch {
    begin: u32,
    first: u32,
    at: usize,
    from: Option<u32>,
}

impl LimitState {
    /// Counts a request in the second `number`, whose client's connection was last used in the second
    /// `before`.
    #[inline]
    pub fn request(&mut self, number: u32, before: u32, now: CountContext<'_>) {
        let gap = (number.saturating_sub(before) as usize).min(now.gap_indices.len() - 1);
        let index = usize::from(now.gap_indices[gap]);
        let second = (number.saturating_sub(now.begin) as usize).min(STRETCH - 1);
        self.opened[index * STRETCH + second] += 1;
        // Uses longer ago than every timeout go to an entry that is never read.
        self.after[index * self.not_followed.len() + now.at + second - gap] += 1;
    }

    /// Ends a stretch: evaluates it for one timeout after another.
    fn end(&mut self, over: FinishedStretch, timeouts: &[usize], curve: usize) {
        let (rows, _) = self.opened.as_chunks_mut::<STRETCH>();
        let mut opening = [0; STRETCH];
        rows.iter().for_each(|row| add(&mut opening, row));
        let requests = opening;
        self.not_followed[over.at..][..STRETCH].copy_from_slice(&requests);
        let mut opened = sum(&opening);
        let counts = u64::from(over.from.is_some());
        for (index, timeout) in timeouts.iter().enumerate() {
            let row = std::mem::replace(&mut self.opened.as_chunks_mut().0[index], [0; STRETCH]);
            let shorter = sum(&row);
            opened -= shorter;
            self.total[index] += u64::from(shorter) * counts;
            subtract(&mut opening, &row);
            // T and a second before each of these.
            let from = over.at - timeout - 1;
            let after = index * self.not_followed.len() + from;
            let not_followed = self.not_followed[from..]
                .first_chunk_mut()
                .expect("the table includes the seconds before the stretch");
            let mut closing = *not_followed;
            subtract(
                &mut closing,
                self.after[after..].first_chunk().expect("the tables have the same width"),
            );
            *not_followed = closing;
            let open = self.open[index];
            self.open[index] = open + opened - sum(&closing);
            let Some(from) = over.from else { continue };
            let may_be_higher = open + opened > self.max[index];
            if index == curve || may_be_higher && highest(open, &opening, &closing) > self.max[index] {
                let seconds = opening.iter().zip(&closing).zip(&requests);
                let mut open = open;
                for (number, ((opening, closing), requests)) in (over.begin..).zip(seconds) {
                    open = open + opening - closing;
                    if *requests > 0 && number >= from {
                        self.reached(index, open, number);
                        if index == curve {
                            self.minutes.raise(u64::from(number - over.first) / 60, u64::from(open));
                        }
                    }
                }
            }
        }
        self.total[timeouts.len()] += u64::from(opened) * counts;
        self.opened[timeouts.len() * STRETCH..].fill(0);
    }

    /// Records the connections open in a second that has a request.
    #[inline]
    fn reached(&mut self, index: usize, open: u32, number: u32) {
        if open > self.max[index] {
            (self.max[index], self.max_at[index]) = (open, Some(number));
        }
    }
}

/// Maximum open in a stretch.
#[inline]
fn highest(mut open: u32, opening: &[u32; STRETCH], closing: &[u32; STRETCH]) -> u32 {
    let mut max = 0;
    for (opening, closing) in opening.iter().zip(closing) {
        open = open + opening - closing;
        max = open.max(max);
    }
    max
}

#[inline]
fn add(sums: &mut [u32; STRETCH], values: &[u32; STRETCH]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

#[inline]
fn subtract(sums: &mut [u32; STRETCH], values: &[u32; STRETCH]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum -= value);
}

#[inline]
fn sum(values: &[u32; STRETCH]) -> u32 {
    values.iter().sum()
}
