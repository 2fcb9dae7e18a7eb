//! Requests of several logs, each sorted by time, merged into one stream: servers that share a load log simultaneously.
//!
//! Bounded: a log is read only as far as the others need, and [`Merge::behind`] names the one they wait for. Requests
//! of equal times retain the order of the logs, so that the result equals a stable sort of all lines.

use std::collections::VecDeque;

use accesslog::Request;
use wire::Time;

/// Logs being merged.
#[derive(Debug)]
pub struct Merge {
    queues: Vec<LogQueue>,
    /// Time of the last request that was returned.
    returned: Time,
    /// Number of requests that came too late.
    late: u64,
}

/// State of one log.
#[derive(Debug, Default)]
struct LogQueue {
    /// Batches that were received, sorted.
    waiting: VecDeque<Vec<Request>>,
    /// Number of requests of the first batch that were returned.
    returned_of_first: usize,
    /// Earliest possible time of the next request.
    from: Time,
    ended: bool,
}

impl Merge {
    /// State for logs that begin at these times; a request before its log's beginning is too late.
    pub fn new(begin: impl IntoIterator<Item = Time>) -> Self {
        let queue = |from| LogQueue { from, ..LogQueue::default() };
        Self { queues: begin.into_iter().map(queue).collect(), returned: Time::ZERO, late: 0 }
    }

    /// Adds requests of a log, sorted and not before those it had already.
    pub fn put(&mut self, log: usize, mut requests: Vec<Request>) {
        let queue = &mut self.queues[log];
        let late = requests.partition_point(|request| request.time < queue.from);
        self.late += late as u64;
        requests.drain(..late);
        if let Some(last) = requests.last() {
            queue.from = last.time;
            queue.waiting.push_back(requests);
        }
    }

    /// Ends a log.
    pub fn end(&mut self, log: usize) {
        self.queues[log].ended = true;
    }

    /// The next requests, as many as are known; `None` while the next one is not.
    pub fn next_requests(&mut self) -> Option<Vec<Request>> {
        let mut next: Option<Vec<Request>> = None;
        while next.as_ref().is_none_or(|next| next.len() < MIN_BATCH)
            && let Some((log, until)) = self.first()
        {
            let queue = &mut self.queues[log];
            let remaining = queue.remaining();
            let due = until.map_or(remaining.len(), |until| {
                remaining.partition_point(|request| (request.time, log) < until)
            });
            let ends = due == remaining.len();
            match &mut next {
                // Usually logs follow one another, and nothing is copied.
                None if ends && queue.returned_of_first == 0 => next = queue.waiting.pop_front(),
                _ => {
                    next.get_or_insert_default().extend_from_slice(&remaining[..due]);
                    queue.take(due);
                }
            }
        }
        self.returned = next.as_ref().and_then(|next| next.last()).map_or(self.returned, |last| last.time);
        next
    }

    /// The log with the next request, and the bound up to which it may be returned: the earliest that may come from
    /// another log. `None` if another log may still precede it.
    fn first(&self) -> Option<(usize, Option<(Time, usize)>)> {
        let mut bounds: [Option<(Time, usize)>; 2] = [None; 2];
        for (log, queue) in self.queues.iter().enumerate() {
            let bound = match queue.remaining().first() {
                Some(first) => (first.time, log),
                None if queue.ended => continue,
                None => (queue.from, log),
            };
            if bounds[0].is_none_or(|min| bound < min) {
                bounds = [Some(bound), bounds[0]];
            } else if bounds[1].is_none_or(|second| bound < second) {
                bounds[1] = Some(bound);
            }
        }
        let [first, until] = bounds;
        first.filter(|(_, log)| !self.queues[*log].waiting.is_empty()).map(|(_, log)| (log, until))
    }

    /// The log that the others wait for; `None` if no log can deliver more.
    pub fn behind(&self) -> Option<usize> {
        let silent =
            self.queues.iter().enumerate().filter(|(_, queue)| queue.waiting.is_empty() && !queue.ended);
        silent.min_by_key(|(_, queue)| queue.from).map(|(log, _)| log)
    }

    /// Whether requests of the log were returned already: it overlaps with the others.
    pub fn has_begun(&self, log: usize) -> bool {
        self.queues[log].from <= self.returned
    }

    /// Number of buffered batches.
    pub fn waiting(&self) -> usize {
        self.queues.iter().map(|queue| queue.waiting.len()).sum()
    }

    /// Number of requests that came too late.
    pub fn late(&self) -> u64 {
        self.late
    }
}

impl LogQueue {
    /// The remaining requests of the first batch.
    fn remaining(&self) -> &[Request] {
        self.waiting.front().map_or(&[], |requests| &requests[self.returned_of_first..])
    }

    /// Removes `count` requests from the front.
    fn take(&mut self, count: usize) {
        self.returned_of_first += count;
        if self.remaining().is_empty() {
            self.waiting.pop_front();
            self.returned_of_first = 0;
        }
    }
}

/// Minimum number of requests to return together: runs of one log may be short.
const MIN_BATCH: usize = 1 << 12;

#[cfg(test)]
mod tests {
    use accesslog::Client;
    use proptest::prelude::*;
    use wire::{Bytes, Duration};

    use super::*;

    fn request(time: u64, log: usize) -> Request {
        Request {
            time: Time::from_nanos(time),
            client: Client::from_bits(log as u64),
            bytes: Bytes::ZERO,
            taken: Duration::ZERO,
        }
    }

    proptest! {
        #[test]
        fn logs_are_merged_as_all_lines_sorted_would_be(
            logs in prop::collection::vec(prop::collection::vec(0..40_u64, 0..60), 1..5),
            size in 1..9_usize,
        ) {
            let logs: Vec<Vec<Request>> = logs.into_iter().enumerate().map(|(log, mut times)| {
                times.sort_unstable();
                times.into_iter().map(|time| request(time, log)).collect()
            }).collect();
            let begin = logs.iter().map(|log| log.first().map_or(Time::ZERO, |first| first.time));
            let mut merge = Merge::new(begin);
            let mut blocks: Vec<_> = logs.iter().map(|log| log.chunks(size)).collect();
            let mut merged = Vec::new();
            // Only the log that is waited for is read.
            while let Some(log) = merge.behind() {
                match blocks[log].next() {
                    Some(block) => merge.put(log, block.to_vec()),
                    None => merge.end(log),
                }
                merged.extend(std::iter::from_fn(|| merge.next_requests()).flatten());
            }
            let mut sorted = logs.concat();
            sorted.sort_by_key(|request| request.time);
            prop_assert_eq!(merged, sorted);
            prop_assert_eq!(merge.late(), 0);
        }
    }

    #[test]
    fn requests_before_their_log_s_beginning_are_counted_as_late() {
        let mut merge = Merge::new([Time::ZERO, Time::from_nanos(10)]);
        merge.put(1, vec![request(9, 1), request(11, 1)]);
        assert_eq!((merge.next_requests(), merge.behind(), merge.late()), (None, Some(0), 1));
        merge.end(0);
        assert_eq!(merge.next_requests(), Some(vec![request(11, 1)]));
    }
}
