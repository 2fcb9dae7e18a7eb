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
    /// The number of the first second that counts; what comes before warms up.
    from: Option<u32>,
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
    /// For each place the requests that came after such a gap, in stretches that count, and how many of them do not.
    total: Vec<u64>,
    warm: Vec<u32>,
    minutes: Curve,
}

/// Seconds in a stretch.
const STRETCH: usize = SECONDS as usize;
const SECONDS: u32 = 32;
/// For so many stretches there is room before memory is put right.
const STRETCHES: usize = 2;
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
        Self { places, timeouts, curve, begin: 0, at: longest + 1, from: None, lines: vec![open; lines] }
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
        if counts && self.from.is_none() {
            self.reach(now);
            self.begin_counting(now);
        } else if now.saturating_sub(self.begin) as usize >= STRETCH {
            self.reach(now);
        }
        self.begin.saturating_add(SECONDS)
    }

    /// The lines of a threshold, and where and after which gaps their requests are counted.
    #[inline]
    pub fn lines(&mut self, threshold: usize, limits: usize) -> (&mut [Open], Now<'_>) {
        let now = Now { places: &self.places, begin: self.begin, at: self.at };
        (&mut self.lines[threshold * limits..][..limits], now)
    }

    /// Puts what was counted into a stream's lines, one stream after the other.
    pub fn finish<'a>(mut self, lines: impl Iterator<Item = &'a mut Line>) {
        self.end();
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
            self.end();
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
        self.from = Some(now);
        for open in &mut self.lines {
            let rows = open.opened.as_chunks::<STRETCH>().0;
            open.warm.iter_mut().zip(rows).for_each(|(warm, row)| *warm = sum(row));
        }
    }

    /// The stretch is over, and the next begins.
    fn end(&mut self) {
        let over = Over { begin: self.begin, first: self.first(), at: self.at, from: self.from };
        for open in &mut self.lines {
            open.end(over, &self.timeouts, self.curve);
        }
        self.at += STRETCH;
        self.begin = self.begin.saturating_add(SECONDS);
        let before = self.places.len() - 1;
        if self.lines.first().is_some_and(|open| self.at + STRETCH > open.left.len()) {
            for open in &mut self.lines {
                let width = open.left.len();
                for row in open.after.chunks_exact_mut(width).chain([&mut open.left[..]]) {
                    row.copy_within(self.at - before..self.at, 0);
                    row[before..].fill(0);
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

/// A stretch that is over: the number of its first second, that of 1970's first, its place, and from where on it counts.
#[derive(Clone, Copy, Debug)]
struct Over {
    begin: u32,
    first: u32,
    at: usize,
    from: Option<u32>,
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

    /// What happened in the stretch, under one time-out after the other.
    fn end(&mut self, over: Over, timeouts: &[usize], curve: usize) {
        let (rows, _) = self.opened.as_chunks_mut::<STRETCH>();
        let mut opening = [0; STRETCH];
        rows.iter().for_each(|row| add(&mut opening, row));
        let requests = opening;
        self.left[over.at..][..STRETCH].copy_from_slice(&requests);
        let mut opened = sum(&opening);
        let counts = u64::from(over.from.is_some());
        for (place, timeout) in timeouts.iter().enumerate() {
            let row = std::mem::replace(&mut self.opened.as_chunks_mut().0[place], [0; STRETCH]);
            let shorter = sum(&row);
            opened -= shorter;
            self.total[place] += u64::from(shorter) * counts;
            subtract(&mut opening, &row);
            // T and a second before each of these.
            let from = over.at - timeout - 1;
            let after = place * self.left.len() + from;
            let left = self.left[from..].first_chunk_mut().expect("what is before the stretch has room");
            let mut closing = *left;
            subtract(&mut closing, self.after[after..].first_chunk().expect("as much as is left"));
            *left = closing;
            let open = self.open[place];
            self.open[place] = open + opened - sum(&closing);
            let Some(from) = over.from else { continue };
            let may_be_higher = open + opened > self.most[place];
            if place == curve || may_be_higher && highest(open, &opening, &closing) > self.most[place] {
                let seconds = opening.iter().zip(&closing).zip(&requests);
                let mut open = open;
                for (number, ((opening, closing), requests)) in (over.begin..).zip(seconds) {
                    open = open + opening - closing;
                    if *requests > 0 && number >= from {
                        self.reached(place, open, number);
                        if place == curve {
                            self.minutes.raise(u64::from(number - over.first) / 60, u64::from(open));
                        }
                    }
                }
            }
        }
        self.total[timeouts.len()] += u64::from(opened) * counts;
        self.opened[timeouts.len() * STRETCH..].fill(0);
    }

    /// So many are open in a second that has a request.
    #[inline]
    fn reached(&mut self, place: usize, open: u32, number: u32) {
        if open > self.most[place] {
            (self.most[place], self.most_at[place]) = (open, Some(number));
        }
    }
}

/// The most that are open in a stretch.
#[inline]
fn highest(mut open: u32, opening: &[u32; STRETCH], closing: &[u32; STRETCH]) -> u32 {
    let mut most = 0;
    for (opening, closing) in opening.iter().zip(closing) {
        open = open + opening - closing;
        most = open.max(most);
    }
    most
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
