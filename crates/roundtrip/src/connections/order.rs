//! Requests of one log put in order of time, within bounds: each block is merged with the one before it.
//!
//! What is earlier than all that was already given away comes too late, is left out and counted. Where blocks are in
//! order, as most are, nothing is copied. Blocks have a fixed size, so that the outcome does not depend on how many
//! threads read them.

use scenario::access_log::Request;
use wire::Time;

/// What was put in order.
#[derive(Debug, Default)]
pub struct Order {
    /// The last block, or as many requests: still to be merged with the next.
    held: Vec<Request>,
    /// The last request that was given away.
    given: Time,
    /// Requests that came too late.
    late: u64,
}

impl Order {
    /// Takes the requests of the next block, which are in order among themselves, and gives those that are due.
    pub fn next(&mut self, mut block: Vec<Request>) -> Vec<Request> {
        let late = block.partition_point(|request| request.time < self.given);
        self.late += late as u64;
        block.drain(..late);
        let Some(first) = block.first() else { return Vec::new() };
        let in_order = self.held.last().is_none_or(|last| last.time <= first.time);
        let due = if in_order {
            std::mem::replace(&mut self.held, block)
        } else {
            let size = self.held.len();
            let mut due = merged(&self.held, &block);
            self.held = due.split_off(size);
            due
        };
        self.given = due.last().map_or(self.given, |last| last.time);
        due
    }

    /// What is left, and how many came too late.
    pub fn finish(&mut self) -> (Vec<Request>, u64) {
        (std::mem::take(&mut self.held), std::mem::take(&mut self.late))
    }
}

/// Both in order of time; at the same time, the first's first.
fn merged(first: &[Request], second: &[Request]) -> Vec<Request> {
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.iter().peekable(), second.iter().peekable());
    while let (Some(one), Some(other)) = (first.peek(), second.peek()) {
        let next = if one.time <= other.time { first.next() } else { second.next() };
        merged.extend(next);
    }
    merged.extend(first);
    merged.extend(second);
    merged
}

#[cfg(test)]
mod tests {
    use scenario::access_log::Client;
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
        let mut order = Order::default();
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
    fn what_comes_too_late_is_left_out_and_counted() {
        assert_eq!(ordered(&[&[1, 2], &[3, 4], &[5, 6], &[1, 7]]), (vec![1, 2, 3, 4, 5, 6, 7], 1));
    }
}
