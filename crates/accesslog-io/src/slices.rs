//! Sorted requests cut into slices that can be counted independently: each with the requests before it, back to the
//! longest time-out.
//!
//! Not the counting. A slice is so long that its warm-up is a small share of the work.

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
}

impl Slice {
    /// Earlier requests, covering the longest time-out.
    pub fn before(&self) -> impl Iterator<Item = &[Request]> {
        let too_old = std::iter::once(self.too_old).chain(std::iter::repeat(0));
        self.warm_up.iter().zip(too_old).map(|(batch, too_old)| &batch[too_old..])
    }
}

/// Requests that wait until there are enough for a slice.
#[derive(Debug)]
pub struct Slices {
    longest: Duration,
    next: Slice,
    /// Number of requests in the warm-up; `count` is that of the requests after it.
    warm_up: usize,
    count: usize,
}

/// Minimum number of requests of a slice.
const FEWEST: usize = 1 << 17;
/// Minimum ratio of a slice's requests to those of its warm-up.
const TIMES_WARM_UP: usize = 4;

impl Slices {
    /// A cutter for time-outs up to the longest.
    pub fn new(longest: Duration) -> Self {
        Self { longest, next: Slice::default(), warm_up: 0, count: 0 }
    }

    /// Takes the requests that follow; returns a slice when there are enough.
    pub fn next(&mut self, requests: Vec<Request>) -> Option<Slice> {
        if requests.is_empty() {
            return None;
        }
        self.count += requests.len();
        self.next.requests.push(Arc::new(requests));
        (self.count >= FEWEST.max(self.warm_up * TIMES_WARM_UP)).then(|| self.cut())
    }

    /// The remaining requests.
    pub fn finish(mut self) -> Option<Slice> {
        (self.count > 0).then(|| self.cut())
    }

    fn cut(&mut self) -> Slice {
        let slice = std::mem::take(&mut self.next);
        let batches = || slice.warm_up.iter().chain(&slice.requests);
        let end = batches().filter_map(|batch| batch.last()).map(|last| last.time).max().unwrap_or_default();
        let matters = |request: &Request| request.time + self.longest >= end;
        self.next.warm_up = batches().filter(|batch| batch.last().is_some_and(matters)).cloned().collect();
        let first = self.next.warm_up.first();
        self.next.too_old = first.map_or(0, |batch| batch.partition_point(|request| !matters(request)));
        self.warm_up = self.next.before().map(<[Request]>::len).sum();
        self.count = 0;
        slice
    }
}
