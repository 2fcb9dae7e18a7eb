//! How many connections are open at each second, for every time-out: where a log's clock ticks once a second, as most do.
//!
//! Everything of a second is counted together, so that a time-out costs nothing for a request. A request puts the place
//! of its gap into two tables: of the second it came in, where it opens a connection under every shorter time-out, and
//! of the second the gap began in, where nothing is left to close under every longer one: T after a second, those of
//! its uses close that were not followed within T. A stretch of seconds is looked at when it is over, one time-out after
//! the other, and walked through second by second only if there may be a new peak.
//!
//! Not for times between seconds, nor for logs with hardly a request in a second: those have [`Uses`](super::uses).

use wire::Time;

use super::counts::{Curve, Line, Peak};
use super::gap::Gaps;

/// All thresholds and limits.
#[derive(Clone, Debug)]
pub struct Seconds {
    /// For each gap in seconds its place among the time-outs; the last is for all that are longer than the longest.
    places: Vec<u8>,
    /// In whole seconds: a connection that is closed after 1.5 s is found closed after 2.
    timeouts: Vec<usize>,
    curve: usize,
    /// The number of the stretch's first second, and its place in [`Open::after`].
    begin: u32,
    at: usize,
    counts: bool,
    /// One threshold's after the other.
    lines: Vec<Open>,
}

/// One limit of connections per client, under one threshold.
#[derive(Clone, Debug)]
pub struct Open {
    /// For each place of a gap, and each second of the stretch, the requests that came after such a gap.
    opened: Vec<u32>,
    /// For each place, and each second of the longest time-out before the stretch and in it, the uses that were followed
    /// after such a gap.
    after: Vec<u32>,
    /// For each of these seconds the uses that were not followed under the time-outs that have passed since.
    left: Vec<u32>,
    /// For each time-out the connections that are open before the stretch.
    open: Vec<u32>,
    /// For each time-out the most that were open at the end of a second, or what is known of before.
    most: Vec<u32>,
    /// The number of that second; `None` while it is only known of before.
    most_at: Vec<Option<u32>>,
    /// For each place the requests that came after such a gap, and those in the first second that do not count.
    total: Vec<u64>,
    warm: Vec<u32>,
    minutes: Curve,
}

/// Seconds in a stretch.
const STRETCH: usize = 32;
/// For so many stretches there is room before memory is put right.
const STRETCHES: usize = 8;
/// The longest time-out that is counted so, in milliseconds: tables have a row for each of its seconds.
pub const LONGEST_MS: u64 = 7_200_000;

/// A number that stands for no second: longer ago than every time-out.
pub const NONE: u32 = 0;

impl Seconds {
    /// Nothing open, for so many lines.
    pub fn new(lines: usize, gaps: &Gaps, curve: usize) -> Self {
        let seconds = |timeout_ms: &u64| usize::try_from(timeout_ms / 1_000).unwrap_or(usize::MAX);
        let timeouts: Vec<usize> = gaps.timeouts_ms().iter().map(seconds).collect();
        let longest = timeouts.last().copied().unwrap_or(0);
        let places = (0..longest as u64 + 2).map(|gap| gaps.place(gap * 1_000)).collect();
        let width = (longest + 1) * 2 + STRETCHES * STRETCH;
        let open = Open {
            opened: vec![0; (timeouts.len() + 1) * STRETCH],
            after: vec![0; (timeouts.len() + 1) * width],
            left: vec![0; width],
            open: vec![0; timeouts.len()],
            most: vec![0; timeouts.len()],
            most_at: vec![None; timeouts.len()],
            total: vec![0; timeouts.len() + 1],
            warm: vec![0; timeouts.len() + 1],
            minutes: Curve::default(),
        };
        Self { places, timeouts, curve, begin: 0, at: longest + 1, counts: false, lines: vec![open; lines] }
    }

    /// Peaks up to these, line by line, are not looked for.
    pub fn look_above(&mut self, peaks: &mut impl Iterator<Item = u32>) {
        let most = self.lines.iter_mut().flat_map(|open| &mut open.most);
        most.zip(peaks).for_each(|(most, peak)| *most = peak);
    }

    /// The number that stands for a time: no gap reaches from it to [`NONE`].
    #[inline]
    pub fn number(&self, time: Time) -> u32 {
        let seconds = time.since(Time::ZERO).as_nanos() / 1_000_000_000;
        u32::try_from(seconds).map_or(u32::MAX, |second| second.saturating_add(self.first()))
    }

    /// The number of the first second of 1970.
    #[inline]
    fn first(&self) -> u32 {
        u32::try_from(self.places.len()).expect("two hours")
    }

    /// Whether a use still matters to a time-out.
    #[inline]
    pub fn matters(&self, number: u32, now: u32) -> bool {
        (now.saturating_sub(number) as usize) + 1 < self.places.len()
    }

    /// Makes ready for requests from this second on; gives the first second that must wait until these are counted.
    #[inline]
    pub fn begin(&mut self, now: u32, counts: bool) -> u32 {
        if counts && !self.counts {
            self.reach(now);
            self.begin_counting(now);
        } else if now.saturating_sub(self.begin) as usize >= STRETCH {
            self.reach(now);
        }
        self.begin.saturating_add(STRETCH as u32)
    }

    /// The lines of a threshold, and where and after which gaps their requests are counted.
    #[inline]
    pub fn lines(&mut self, threshold: usize, limits: usize) -> (&mut [Open], Now<'_>) {
        let now = Now { places: &self.places, begin: self.begin, at: self.at };
        (&mut self.lines[threshold * limits..][..limits], now)
    }

    /// Puts what was counted into a stream's lines, one stream after the other.
    pub fn finish<'a>(mut self, lines: impl Iterator<Item = &'a mut Line>) {
        self.end(STRETCH);
        let first = self.first();
        for (open, line) in self.lines.into_iter().zip(lines) {
            let counted: Vec<u64> =
                open.total.iter().zip(&open.warm).map(|(total, warm)| total - u64::from(*warm)).collect();
            let mut total = counted.iter().sum::<u64>();
            for (place, opened) in line.opened.iter_mut().enumerate() {
                // Opened under a time-out: after every gap that is longer.
                total -= counted[place];
                opened.total = total;
                opened.peak = open.most_at[place].map_or_else(Peak::default, |at| Peak {
                    connections: u64::from(open.most[place]),
                    at: Time::from_nanos(u64::from(at - first) * 1_000_000_000),
                });
            }
            line.curve.minutes = open.minutes.minutes;
        }
    }

    /// Looks at stretches until one has this second.
    #[cold]
    fn reach(&mut self, now: u32) {
        while now.saturating_sub(self.begin) as usize >= STRETCH {
            self.end(STRETCH);
            if now.saturating_sub(self.begin) as usize > self.places.len() + STRETCH {
                // Everything has closed since.
                self.at = self.places.len() - 1;
                self.begin = now;
                for open in &mut self.lines {
                    open.after.fill(0);
                    open.left.fill(0);
                    open.open.fill(0);
                }
            }
        }
    }

    /// What came before this second does not count, nor what came in it so far.
    fn begin_counting(&mut self, now: u32) {
        self.end(now.saturating_sub(self.begin) as usize);
        self.counts = true;
        for open in &mut self.lines {
            let first = open.opened.iter().step_by(STRETCH);
            open.warm.iter_mut().zip(first).for_each(|(warm, opened)| *warm = *opened);
        }
    }

    /// The first seconds of the stretch are over, and the next stretch begins.
    fn end(&mut self, seconds: usize) {
        let first = self.first();
        for open in &mut self.lines {
            let over = Over { begin: self.begin, first, at: self.at, seconds };
            open.end(over, &self.timeouts, self.curve, self.counts);
        }
        self.at += seconds;
        self.begin = self.begin.saturating_add(u32::try_from(seconds).expect("few"));
        let before = self.places.len() - 1;
        if self.lines.first().is_some_and(|open| self.at + STRETCH > open.left.len()) {
            let from = self.at - before;
            for open in &mut self.lines {
                let width = open.left.len();
                for row in open.after.chunks_exact_mut(width).chain([&mut open.left[..]]) {
                    row.copy_within(from.., 0);
                    row[width - from..].fill(0);
                }
            }
            self.at = before;
        }
    }
}

/// Where requests are counted.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    places: &'a [u8],
    begin: u32,
    at: usize,
}

/// Seconds that are over: the number of the first, that of 1970's first, its place, and how many.
#[derive(Clone, Copy, Debug)]
struct Over {
    begin: u32,
    first: u32,
    at: usize,
    seconds: usize,
}

impl Open {
    /// A request in the second of a number, whose client's connection was used before in that of another.
    #[inline]
    pub fn request(&mut self, number: u32, before: u32, now: Now<'_>) {
        let gap = (number.saturating_sub(before) as usize).min(now.places.len() - 1);
        let place = usize::from(now.places[gap]);
        let second = (number.saturating_sub(now.begin) as usize).min(STRETCH - 1);
        self.opened[place * STRETCH + second] += 1;
        // What was longer ago than every time-out is put where nobody looks.
        self.after[place * self.left.len() + now.at + second - gap] += 1;
    }

    fn end(&mut self, over: Over, timeouts: &[usize], curve: usize, counts: bool) {
        let Over { begin: _, first: _, at, seconds } = over;
        let mut opening = [0_u32; STRETCH];
        for row in self.opened.chunks_exact(STRETCH) {
            add(&mut opening, row);
        }
        let requests = opening;
        self.left[at..at + seconds].copy_from_slice(&requests[..seconds]);
        let opening = &mut opening[..seconds];
        let mut opened = sum(opening);
        let width = self.left.len();
        for (place, timeout) in timeouts.iter().enumerate() {
            let row = &self.opened[place * STRETCH..][..seconds];
            let shorter = sum(row);
            opened -= shorter;
            self.total[place] += u64::from(shorter) * u64::from(counts);
            subtract(opening, row);
            // T and a second before each of these.
            let from = at - timeout - 1;
            let closing = &mut self.left[from..from + seconds];
            subtract(closing, &self.after[place * width + from..][..seconds]);
            let closed = sum(closing);
            if counts && (place == curve || self.open[place] + opened > self.most[place]) {
                self.walk(place, from, opening, &requests, over, place == curve);
            }
            self.open[place] = self.open[place] + opened - closed;
        }
        self.total[timeouts.len()] += u64::from(opened) * u64::from(counts);
        for row in self.opened.chunks_exact_mut(STRETCH) {
            row.copy_within(seconds.., 0);
            row[STRETCH - seconds..].fill(0);
        }
    }

    /// Looks for a new peak under one time-out.
    fn walk(
        &mut self,
        place: usize,
        from: usize,
        opening: &[u32],
        requests: &[u32],
        over: Over,
        follow: bool,
    ) {
        let mut open = self.open[place];
        let closing = &self.left[from..];
        for (((number, opening), closing), requests) in (over.begin..).zip(opening).zip(closing).zip(requests)
        {
            open = open + opening - closing;
            if *requests == 0 {
                continue;
            }
            if open > self.most[place] {
                (self.most[place], self.most_at[place]) = (open, Some(number));
            }
            if follow {
                self.minutes.raise(u64::from(number - over.first) / 60, u64::from(open));
            }
        }
    }
}

#[inline]
fn add(sums: &mut [u32], values: &[u32]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

#[inline]
fn subtract(sums: &mut [u32], values: &[u32]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum -= value);
}

#[inline]
fn sum(values: &[u32]) -> u32 {
    values.iter().sum()
}
