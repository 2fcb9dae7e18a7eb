//! Ordered requests cut into slices that can be counted apart: each with what came before it, back to the longest
//! time-out.
//!
//! Not the counting. A slice is so long that its warm-up is little of the work.

use std::sync::Arc;

use scenario::access_log::Request;
use wire::Duration;

/// Some requests, in order; shared by the slice that counts them and the next, which warms up on them.
pub type Batch = Arc<Vec<Request>>;

/// A stretch of requests to count.
#[derive(Debug, Default)]
pub struct Slice {
    /// What came before: as long as the longest time-out, or longer.
    pub warm_up: Vec<Batch>,
    /// What counts.
    pub requests: Vec<Batch>,
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
        let matters = |batch: &&Batch| batch.last().is_some_and(|last| last.time + self.longest >= end);
        self.next.warm_up = batches().filter(matters).cloned().collect();
        self.warm_up = self.next.warm_up.iter().map(|batch| batch.len()).sum();
        self.count = 0;
        slice
    }
}
