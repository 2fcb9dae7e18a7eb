//! Requests of one log sorted by time, within bounds: each block is merged with as many of its predecessors as fit the
//! window.
//!
//! A request earlier than one already returned is too late; it is left out and counted. Where blocks are in order, as
//! most are, nothing is copied. Blocks have a fixed size, so that the result does not depend on the number of threads
//! that read them.

use std::collections::VecDeque;

use accesslog::Request;
use wire::Time;

/// Sorter of one log's requests.
#[derive(Debug)]
pub struct Reorderer {
    /// Maximum number of buffered blocks.
    window: usize,
    /// The last blocks, or as many requests, sorted: still to be merged with the next.
    buffered: VecDeque<Vec<Request>>,
    /// Time of the last request that was returned.
    returned: Time,
    /// Number of requests that came too late.
    late: u64,
}

impl Reorderer {
    /// A sorter that buffers up to `window` blocks.
    pub fn new(window: usize) -> Self {
        Self { window, buffered: VecDeque::new(), returned: Time::ZERO, late: 0 }
    }

    /// Takes the requests of the next block, sorted among themselves, and returns those that leave the window.
    pub fn next(&mut self, mut block: Vec<Request>) -> Vec<Request> {
        let late = block.partition_point(|request| request.time < self.returned);
        self.late += late as u64;
        block.drain(..late);
        let Some(first) = block.first().map(|first| first.time) else { return Vec::new() };
        let overlaps = |buffered: &Vec<Request>| buffered.last().is_some_and(|last| last.time > first);
        let overlapping = self.buffered.iter().rev().take_while(|buffered| overlaps(buffered)).count();
        if overlapping == 0 {
            self.buffered.push_back(block);
        } else {
            let mut merged =
                self.buffered.split_off(self.buffered.len() - overlapping).into_iter().flatten().collect();
            merged = self::merged(merged, &block);
            let size = merged.len().div_ceil(overlapping + 1);
            self.buffered.extend(merged.chunks(size).map(<[Request]>::to_vec));
        }
        if self.buffered.len() <= self.window {
            return Vec::new();
        }
        let due = self.buffered.pop_front().unwrap_or_default();
        self.returned = due.last().map_or(self.returned, |last| last.time);
        due
    }

    /// The remaining requests, and the number of those that came too late.
    pub fn finish(&mut self) -> (Vec<Request>, u64) {
        (std::mem::take(&mut self.buffered).into_iter().flatten().collect(), std::mem::take(&mut self.late))
    }
}

/// Both sorted by time; at equal times, those of `first` come first.
fn merged(mut first: Vec<Request>, second: &[Request]) -> Vec<Request> {
    first.extend_from_slice(second);
    // Two sorted runs: a stable sort merges them.
    first.sort_by_key(|request| request.time);
    first
}

#[cfg(test)]
mod tests {
    use accesslog::Client;
    use wire::{Bytes, Duration};

    use super::*;

    fn at(times: &[u64]) -> Vec<Request> {
        let request = |time: &u64| Request {
            time: Time::from_nanos(*time),
            client: Client::of(b"c"),
            bytes: Bytes::ZERO,
            taken: Duration::ZERO,
        };
        times.iter().map(request).collect()
    }

    fn ordered(blocks: &[&[u64]]) -> (Vec<u64>, u64) {
        let mut order = Reorderer::new(1);
        let mut times = Vec::new();
        for block in blocks {
            times.extend(order.next(at(block)));
        }
        let (rest, late) = order.finish();
        times.extend(rest);
        (times.into_iter().map(|request| request.time.as_nanos()).collect(), late)
    }

    #[test]
    fn neighbouring_blocks_are_merged() {
        assert_eq!(ordered(&[&[1, 4, 9], &[2, 8], &[9, 12]]), (vec![1, 2, 4, 8, 9, 9, 12], 0));
        assert_eq!(ordered(&[&[], &[5], &[], &[3], &[]]), (vec![3, 5], 0));
    }

    #[test]
    fn a_window_of_several_blocks_sorts_requests_that_far_apart() {
        let mut order = Reorderer::new(3);
        let blocks: [&[u64]; 6] = [&[10, 11], &[12, 13], &[14, 15], &[3, 9], &[16, 17], &[1, 18]];
        let mut returned: Vec<Request> = blocks.iter().flat_map(|block| order.next(at(block))).collect();
        let (rest, late) = order.finish();
        returned.extend(rest);
        let times: Vec<u64> = returned.iter().map(|request| request.time.as_nanos()).collect();
        assert_eq!((times, late), (vec![3, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18], 1));
    }

    #[test]
    fn late_requests_are_left_out_and_counted() {
        assert_eq!(ordered(&[&[1, 2], &[3, 4], &[5, 6], &[1, 7]]), (vec![1, 2, 3, 4, 5, 6, 7], 1));
    }
}
