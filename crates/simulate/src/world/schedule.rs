//! Event queue, ordered by time; simultaneous events keep the order in which they were scheduled.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use wire::Time;

use crate::world::{HostId, LinkId, SocketId};

/// Event target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// A packet arrives at the end of a link.
    Link(LinkId),
    /// A timer of a connection has expired.
    Socket(HostId, SocketId),
    /// An application has its turn.
    Application(HostId),
}

/// The event queue.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    heap: BinaryHeap<Reverse<Entry>>,
    pushed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Time,
    order: u64,
    wake: Wake,
}

impl Schedule {
    pub(super) fn push(&mut self, at: Time, wake: Wake) {
        self.heap.push(Reverse(Entry { at, order: self.pushed, wake }));
        self.pushed += 1;
    }

    pub(super) fn pop(&mut self) -> Option<(Time, Wake)> {
        self.heap.pop().map(|Reverse(Entry { at, order: _, wake })| (at, wake))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_events_keep_their_order() {
        let mut schedule = Schedule::default();
        for (at, host) in [(5, 0), (3, 1), (5, 2), (3, 3)] {
            schedule.push(Time::from_nanos(at), Wake::Application(HostId(host)));
        }
        let order: Vec<Wake> = std::iter::from_fn(|| schedule.pop()).map(|(_, wake)| wake).collect();
        assert_eq!(order, [1, 3, 0, 2].map(|host| Wake::Application(HostId(host))));
    }
}
