//! Sorted requests cut into slices that can be counted independently: each with the requests before it, back to the
//! longest time-out. If these exceed the limit, the next slice has no warm-up, and continues the count of the last.
//!
//! Not the counting. A slice is long enough that its warm-up is a small share of the work.

use std::sync::Arc;

use accesslog::Request;
use wire::Duration;

/// Sorted requests; shared by the slice that counts them and the next, which warms up on them.
pub type Batch = Arc<Vec<Request>>;

/// A slice of requests to count.
#[derive(Debug, Default)]
pub struct Slice {
    /// Earlier requests, covering at least the longest time-out.
    warm_up: Vec<Batch>,
    /// Number of requests at the front that are older than the longest time-out.
    too_old: usize,
    /// The requests to count.
    pub requests: Vec<Batch>,
    /// Whether it has no warm-up, and the counter of the slice before it counts it.
    pub continues: bool,
    /// Whether the next slice continues this one.
    pub is_continued: bool,
}

impl Slice {
    /// Earlier requests, covering the longest time-out.
    pub fn before(&self) -> impl Iterator<Item = &[Request]> {
        let too_old = std::iter::once(self.too_old).chain(std::iter::repeat(0));
        self.warm_up.iter().zip(too_old).map(|(batch, too_old)| &batch[too_old..])
    }
}

/// Requests that are buffered until there are enough for a slice.
#[derive(Debug)]
pub struct Slices {
    longest: Duration,
    /// Maximum number of requests in a warm-up.
    max_warm_up: usize,
    next: Slice,
    /// Number of requests in the warm-up; `count` is that of the requests after it.
    warm_up: usize,
    count: usize,
}

/// Minimum number of requests of a slice.
const MIN_SLICE_REQUESTS: usize = 1 << 17;
/// Minimum ratio of a slice's requests to those of its warm-up.
const TIMES_WARM_UP: usize = 4;
/// Maximum number of requests in a warm-up: 16 MiB. A slice is at most [`TIMES_WARM_UP`] times as long, so that requests of
/// one second take as much memory as requests of a day.
const MAX_WARM_UP: usize = 1 << 19;

impl Slices {
    /// A cutter for time-outs up to the longest.
    pub fn new(longest: Duration) -> Self {
        Self { longest, max_warm_up: MAX_WARM_UP, next: Slice::default(), warm_up: 0, count: 0 }
    }

    /// A cutter for a counter that counts all slices in order, and needs no warm-up.
    pub fn sequential() -> Self {
        Self { max_warm_up: 0, ..Self::new(Duration::ZERO) }
    }

    /// Takes the requests that follow; returns a slice when there are enough.
    pub fn next(&mut self, requests: Vec<Request>) -> Option<Slice> {
        if requests.is_empty() {
            return None;
        }
        self.count += requests.len();
        self.next.requests.push(Arc::new(requests));
        (self.count >= MIN_SLICE_REQUESTS.max(self.warm_up * TIMES_WARM_UP)).then(|| self.cut())
    }

    /// The remaining requests.
    pub fn finish(mut self) -> Option<Slice> {
        (self.count > 0).then(|| self.cut())
    }

    fn cut(&mut self) -> Slice {
        let mut slice = std::mem::take(&mut self.next);
        (self.warm_up, self.count) = (0, 0);
        let batches = || slice.warm_up.iter().chain(&slice.requests);
        let end = batches().filter_map(|batch| batch.last()).map(|last| last.time).max().unwrap_or_default();
        let matters = |request: &Request| request.time + self.longest >= end;
        // The requests before a slice that continues are gone: they may matter, unless the slice's own first request does not.
        let first = slice.requests.first().and_then(|batch| batch.first());
        let is_known = !slice.continues || first.is_some_and(|first| !matters(first));
        let warm_up = batches().filter(|batch| batch.last().is_some_and(matters)).cloned().collect();
        let mut next = Slice { warm_up, ..Slice::default() };
        let first = next.warm_up.first();
        next.too_old = first.map_or(0, |batch| batch.partition_point(|request| !matters(request)));
        self.warm_up = next.before().map(<[Request]>::len).sum();
        if !is_known || self.warm_up > self.max_warm_up {
            self.warm_up = 0;
            slice.is_continued = true;
            next = Slice { continues: true, ..Slice::default() };
        }
        self.next = next;
        slice
    }
}

#[cfg(test)]
mod tests {
    use accesslog::Client;
    use wire::{Bytes, Time};

    use super::*;

    fn requests(second: u64, count: usize) -> Vec<Request> {
        let time = Time::from_nanos(second * 1_000_000_000);
        vec![Request { time, client: Client::of(b"c"), bytes: Bytes::ZERO, taken: Duration::ZERO }; count]
    }

    /// Maximum number of buffered requests, and number of slices that continue another.
    fn buffered_and_continued(
        slices: &mut Slices,
        batches: impl Iterator<Item = Vec<Request>>,
    ) -> (usize, usize) {
        let (mut max, mut continued, mut is_continued) = (0, 0, slices.next.continues);
        for batch in batches {
            if let Some(slice) = slices.next(batch) {
                assert_eq!(slice.continues, is_continued);
                is_continued = slice.is_continued;
                continued += usize::from(slice.continues);
            }
            max = max.max(slices.warm_up + slices.count);
        }
        (max, continued)
    }

    #[test]
    fn ten_million_requests_of_one_second_are_not_buffered() {
        let mut slices = Slices::new(Duration::from_secs(3_600));
        let flood = (0..10_000).map(|_| requests(1_000_000_000, 1_000));
        let (max, continued) = buffered_and_continued(&mut slices, flood);
        assert!(max <= MAX_WARM_UP * (1 + TIMES_WARM_UP) && continued > 60, "{max} held, {continued}");
        // An hour later slices are independent again.
        let later = (0..7_200).map(|second| requests(1_000_010_000 + second, 100));
        let (max, continued) = buffered_and_continued(&mut slices, later);
        assert!(max <= MAX_WARM_UP * (1 + TIMES_WARM_UP) && continued <= 3, "{max} held, {continued}");
    }

    #[test]
    fn a_counter_in_turn_needs_no_warm_up() {
        let mut slices = Slices::sequential();
        let (max, _) = buffered_and_continued(&mut slices, (0..5_000).map(|_| requests(1_000_000_000, 100)));
        assert!(max <= MIN_SLICE_REQUESTS, "{max}");
    }
}
