//! Packets in flight: those that preserve their order in a ring buffer, the others (free jitter, reordering) in a heap.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use crate::{Bytes, Time};

/// A packet in flight.
#[derive(Clone, Debug)]
pub(super) struct PacketInFlight<P> {
    pub(super) due: Time,
    /// Breaks ties: simultaneous arrivals are delivered in the order of sending.
    pub(super) sequence: u64,
    pub(super) size: Bytes,
    pub(super) packet: P,
}

/// All packets in flight.
#[derive(Clone, Debug)]
pub(super) struct Flight<P> {
    in_order: VecDeque<PacketInFlight<P>>,
    out_of_order: BinaryHeap<OutOfOrderPacket<P>>,
    next_sequence: u64,
}

impl<P> Flight<P> {
    pub(super) const fn new() -> Self {
        Self { in_order: VecDeque::new(), out_of_order: BinaryHeap::new(), next_sequence: 0 }
    }

    /// Adds a packet. One that preserves its order arrives no earlier than the previous ones that do.
    pub(super) fn push(&mut self, due: Time, preserves_order: bool, size: Bytes, packet: P) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        if preserves_order {
            let due = self.in_order.back().map_or(due, |last| due.max(last.due));
            self.in_order.push_back(PacketInFlight { due, sequence, size, packet });
        } else {
            self.out_of_order.push(OutOfOrderPacket(PacketInFlight { due, sequence, size, packet }));
        }
    }

    /// Returns the next packet, if it is due by `now`; otherwise the time of the next arrival.
    pub(super) fn pop_due(&mut self, now: Time) -> Result<PacketInFlight<P>, Option<Time>> {
        if self.out_of_order.is_empty() {
            let due = self.in_order.front().map(|first| first.due);
            return self.in_order.pop_front_if(|first| first.due <= now).ok_or(due);
        }
        self.pop_earliest_due(now)
    }

    /// Returns the time of the next arrival.
    pub(super) fn next_due(&self) -> Option<Time> {
        let ordered = self.in_order.front().map(|first| first.due);
        let out_of_order = self.out_of_order.peek().map(|OutOfOrderPacket(first)| first.due);
        [ordered, out_of_order].into_iter().flatten().min()
    }

    /// Returns the number of packets in flight.
    pub(super) fn len(&self) -> usize {
        self.in_order.len() + self.out_of_order.len()
    }

    fn pop_earliest_due(&mut self, now: Time) -> Result<PacketInFlight<P>, Option<Time>> {
        let ordered = self.in_order.front().map(|first| (first.due, first.sequence));
        let out_of_order =
            self.out_of_order.peek().map(|OutOfOrderPacket(first)| (first.due, first.sequence));
        let takes_out_of_order =
            out_of_order.is_some_and(|out_of_order| ordered.is_none_or(|ordered| out_of_order < ordered));
        let next = if takes_out_of_order { out_of_order } else { ordered }.map(|(due, _)| due);
        if next.is_none_or(|due| due > now) {
            return Err(next);
        }
        let first = if takes_out_of_order {
            self.out_of_order.pop().map(|OutOfOrderPacket(first)| first)
        } else {
            self.in_order.pop_front()
        };
        first.ok_or(next)
    }
}

/// A packet that may arrive out of order; the next arrival compares as the greatest, as a binary heap requires.
#[derive(Clone, Debug)]
struct OutOfOrderPacket<P>(PacketInFlight<P>);

impl<P> Ord for OutOfOrderPacket<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.0.due, other.0.sequence).cmp(&(self.0.due, self.0.sequence))
    }
}

impl<P> PartialOrd for OutOfOrderPacket<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for OutOfOrderPacket<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for OutOfOrderPacket<P> {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds packets named by their index in the list, each with its due time; returns the order of arrival.
    fn arrival_order(packets: &[(u64, bool)]) -> Vec<(usize, u64)> {
        let mut flight = Flight::new();
        for (name, (due, preserves_order)) in packets.iter().enumerate() {
            flight.push(Time::from_nanos(*due), *preserves_order, Bytes::ZERO, name);
        }
        std::iter::from_fn(|| flight.pop_due(Time::MAX).ok())
            .map(|first| (first.packet, first.due.as_nanos()))
            .collect()
    }

    #[test]
    fn ordered_packets_wait_for_those_before_them() {
        assert_eq!(arrival_order(&[(5, true), (3, true), (7, true)]), [(0, 5), (1, 5), (2, 7)]);
    }

    #[test]
    fn unordered_packets_arrive_when_due() {
        assert_eq!(
            arrival_order(&[(9, false), (3, true), (7, true), (1, false)]),
            [(3, 1), (1, 3), (2, 7), (0, 9)]
        );
    }

    #[test]
    fn simultaneous_packets_arrive_in_order_of_sending() {
        let all = [(4, false), (4, true), (4, false), (4, true)];
        assert_eq!(arrival_order(&all), [(0, 4), (1, 4), (2, 4), (3, 4)]);
    }

    #[test]
    fn no_packet_arrives_early() {
        let mut flight = Flight::new();
        assert_eq!(flight.pop_due(Time::MAX).map(|first| first.packet), Err(None));
        flight.push(Time::from_nanos(8), false, Bytes::ZERO, 'b');
        flight.push(Time::from_nanos(5), true, Bytes::ZERO, 'a');
        assert_eq!(flight.next_due(), Some(Time::from_nanos(5)));
        assert_eq!(
            flight.pop_due(Time::from_nanos(4)).map(|first| first.packet),
            Err(Some(Time::from_nanos(5)))
        );
        assert_eq!(flight.pop_due(Time::from_nanos(5)).map(|first| first.packet), Ok('a'));
        assert_eq!(
            flight.pop_due(Time::from_nanos(7)).map(|first| first.packet),
            Err(Some(Time::from_nanos(8)))
        );
        assert_eq!(flight.len(), 1);
    }
}
