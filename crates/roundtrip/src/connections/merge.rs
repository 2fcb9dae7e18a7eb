//! Requests of several logs, each in order of time, made into one: servers that share the load write at the same time.
//!
//! Bounded: a log is read as far as the others need, and [`Merge::behind`] says which one they wait for. At the same time,
//! the first log's requests are first, so that the outcome is that of all lines sorted.

use std::collections::VecDeque;

use accesslog::Request;
use wire::Time;

/// Logs on their way into one.
#[derive(Debug)]
pub struct Merge {
    lanes: Vec<Lane>,
    /// The last request that was given away.
    given: Time,
    /// Requests that came too late.
    late: u64,
}

/// One log.
#[derive(Debug, Default)]
struct Lane {
    /// What came, in order.
    waiting: VecDeque<Vec<Request>>,
    /// How many of the first of them were given away.
    taken: usize,
    /// Nothing earlier comes any more.
    from: Time,
    ended: bool,
}

impl Merge {
    /// For logs that begin at these times: what is earlier than its log's beginning comes too late.
    pub fn new(begin: impl IntoIterator<Item = Time>) -> Self {
        let lane = |from| Lane { from, ..Lane::default() };
        Self { lanes: begin.into_iter().map(lane).collect(), given: Time::ZERO, late: 0 }
    }

    /// Takes requests of a log, which are in order and not before those it gave already.
    pub fn put(&mut self, log: usize, mut requests: Vec<Request>) {
        let lane = &mut self.lanes[log];
        let late = requests.partition_point(|request| request.time < lane.from);
        self.late += late as u64;
        requests.drain(..late);
        if let Some(last) = requests.last() {
            lane.from = last.time;
            lane.waiting.push_back(requests);
        }
    }

    /// Nothing more comes of a log.
    pub fn end(&mut self, log: usize) {
        self.lanes[log].ended = true;
    }

    /// The requests that follow, as many as may be; `None` while it is not known which do.
    pub fn next(&mut self) -> Option<Vec<Request>> {
        let mut next: Option<Vec<Request>> = None;
        while next.as_ref().is_none_or(|next| next.len() < ENOUGH)
            && let Some((log, until)) = self.first()
        {
            let lane = &mut self.lanes[log];
            let rest = lane.rest();
            let due =
                until.map_or(rest.len(), |until| rest.partition_point(|request| (request.time, log) < until));
            let ends = due == rest.len();
            match &mut next {
                // Most often logs follow one another, and nothing is copied.
                None if ends && lane.taken == 0 => next = lane.waiting.pop_front(),
                _ => {
                    next.get_or_insert_default().extend_from_slice(&rest[..due]);
                    lane.take(due);
                }
            }
        }
        self.given = next.as_ref().and_then(|next| next.last()).map_or(self.given, |last| last.time);
        next
    }

    /// The log whose request is next, and how far it may go: to what may come of another. `None` if that may be before it.
    fn first(&self) -> Option<(usize, Option<(Time, usize)>)> {
        let mut bounds: [Option<(Time, usize)>; 2] = [None; 2];
        for (log, lane) in self.lanes.iter().enumerate() {
            let bound = match lane.rest().first() {
                Some(first) => (first.time, log),
                None if lane.ended => continue,
                None => (lane.from, log),
            };
            if bounds[0].is_none_or(|least| bound < least) {
                bounds = [Some(bound), bounds[0]];
            } else if bounds[1].is_none_or(|second| bound < second) {
                bounds[1] = Some(bound);
            }
        }
        let [first, until] = bounds;
        first.filter(|(_, log)| !self.lanes[*log].waiting.is_empty()).map(|(_, log)| (log, until))
    }

    /// The log that the others wait for; `None` when there is none that could give more.
    pub fn behind(&self) -> Option<usize> {
        let silent = self.lanes.iter().enumerate().filter(|(_, lane)| lane.waiting.is_empty() && !lane.ended);
        silent.min_by_key(|(_, lane)| lane.from).map(|(log, _)| log)
    }

    /// Whether the log's requests have begun to be given away: it overlaps with the others.
    pub fn has_begun(&self, log: usize) -> bool {
        self.lanes[log].from <= self.given
    }

    /// How many times it was given requests that still wait.
    pub fn waiting(&self) -> usize {
        self.lanes.iter().map(|lane| lane.waiting.len()).sum()
    }

    /// How many came too late.
    pub fn late(&self) -> u64 {
        self.late
    }
}

impl Lane {
    /// What waits, from the first that was not given away, without a gap.
    fn rest(&self) -> &[Request] {
        self.waiting.front().map_or(&[], |requests| &requests[self.taken..])
    }

    /// So many of the rest were given away.
    fn take(&mut self, count: usize) {
        self.taken += count;
        if self.rest().is_empty() {
            self.waiting.pop_front();
            self.taken = 0;
        }
    }
}

/// Runs of one log may be short; so many requests are given away together.
const ENOUGH: usize = 1 << 12;

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
            // Only what is waited for is read.
            while let Some(log) = merge.behind() {
                match blocks[log].next() {
                    Some(block) => merge.put(log, block.to_vec()),
                    None => merge.end(log),
                }
                merged.extend(std::iter::from_fn(|| merge.next()).flatten());
            }
            let mut sorted = logs.concat();
            sorted.sort_by_key(|request| request.time);
            prop_assert_eq!(merged, sorted);
            prop_assert_eq!(merge.late(), 0);
        }
    }

    #[test]
    fn what_is_before_its_log_s_beginning_is_late_and_counted() {
        let mut merge = Merge::new([Time::ZERO, Time::from_nanos(10)]);
        merge.put(1, vec![request(9, 1), request(11, 1)]);
        assert_eq!((merge.next(), merge.behind(), merge.late()), (None, Some(0), 1));
        merge.end(0);
        assert_eq!(merge.next(), Some(vec![request(11, 1)]));
    }
}
