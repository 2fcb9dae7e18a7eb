//! Ordered requests cut into slices that can be counted apart: each with what came before it, back to the longest
//! time-out.
//!
//! Not the counting. A slice is so long that its warm-up is little of the work.

use std::sync::Arc;

use accesslog::Request;
use wire::Duration;

/// Some requests, in order; shared by the slice that counts them and the next, which warms up on them.
pub type Batch = Arc<Vec<Request>>;

/// A stretch of requests to count.
#[derive(Debug, Default)]
pub struct Slice {
    /// What came before: as long as the longest time-out, or longer.
    warm_up: Vec<Batch>,
    /// So many of the first of these are longer ago.
    too_old: usize,
    /// What counts.
    pub requests: Vec<Batch>,
}

impl Slice {
    /// What came before: as long as the longest time-out.
    pub fn before(&self) -> impl Iterator<Item = &[Request]> {
        let too_old = std::iter::once(self.too_old).chain(std::iter::repeat(0));
        self.warm_up.iter().zip(too_old).map(|(batch, too_old)| &batch[too_old..])
    }
}

/// Requests that wait until there are enough of them.
#[derive(Debug)]
pub struct Slices {
    longest: Duration,
    next: Slice,
    /// How many requests there are in it, in the warm-up and after.
    warm_up: usize,
    count: usize,
}

/// A slice has at least so many requests.
const FEWEST: usize = 1 << 17;
/// And so many times as many as it warms up on.
const TIMES_WARM_UP: usize = 4;

impl Slices {
    /// For time-outs up to the longest.
    pub fn new(longest: Duration) -> Self {
        Self { longest, next: Slice::default(), warm_up: 0, count: 0 }
    }

    /// Takes the requests that follow; gives a slice when there are enough.
    pub fn next(&mut self, requests: Vec<Request>) -> Option<Slice> {
        if requests.is_empty() {
            return None;
        }
        self.count += requests.len();
        self.next.requests.push(Arc::new(requests));
        (self.count >= FEWEST.max(self.warm_up * TIMES_WARM_UP)).then(|| self.cut())
    }

    /// What is left.
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
