//! Queue of the transmitter, and its limit: tail drop.
//!
//! It holds no packets, only their sizes and the times at which their transmission begins, which are known on
//! arrival. A packet in transmission has left the queue.

use std::collections::VecDeque;

use crate::link::{QueueLimit, Tally};
use crate::{Bytes, Time};

/// The queued packets, in order.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    limit: QueueLimit,
    waiting: VecDeque<QueuedPacket>,
    bytes: Bytes,
    peak: Tally,
}

#[derive(Clone, Copy, Debug)]
struct QueuedPacket {
    starts: Time,
    size: Bytes,
}

impl Queue {
    pub(super) const fn new(limit: QueueLimit) -> Self {
        let peak = Tally { packets: 0, bytes: Bytes::ZERO };
        Self { limit, waiting: VecDeque::new(), bytes: Bytes::ZERO, peak }
    }

    /// Returns whether a packet that arrives at `now`, and whose transmission would begin at `starts`, is accepted.
    pub(super) fn admit(&mut self, now: Time, starts: Time, size: Bytes) -> bool {
        self.release(now);
        if starts <= now {
            return true;
        }
        let QueueLimit { bytes, packets } = self.limit;
        let held = Tally { packets: self.waiting.len() as u64 + 1, bytes: self.bytes + size };
        if bytes.is_some_and(|most| held.bytes > most) || packets.is_some_and(|most| held.packets > most) {
            return false;
        }
        self.waiting.push_back(QueuedPacket { starts, size });
        self.bytes = held.bytes;
        self.peak.packets = self.peak.packets.max(held.packets);
        self.peak.bytes = self.peak.bytes.max(held.bytes);
        true
    }

    /// Returns the maximum queue length so far.
    pub(super) const fn peak(&self) -> Tally {
        self.peak
    }

    /// Removes packets whose transmission has begun.
    fn release(&mut self, now: Time) {
        while let Some(first) = self.waiting.front()
            && first.starts <= now
        {
            self.bytes = self.bytes - first.size;
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers packets of these sizes at time 0 to a link that is busy until 1, 2, 3 ...
    fn admitted(limit: QueueLimit, sizes: &[u64]) -> Vec<bool> {
        let mut queue = Queue::new(limit);
        let starts = (1..).map(Time::from_nanos);
        starts.zip(sizes).map(|(starts, size)| queue.admit(Time::ZERO, starts, Bytes::new(*size))).collect()
    }

    #[test]
    fn a_limit_in_packets_counts_packets_and_one_in_bytes_counts_bytes() {
        let packets = QueueLimit { bytes: None, packets: Some(2) };
        assert_eq!(admitted(packets, &[1500, 1500, 40]), [true, true, false]);
        let bytes = QueueLimit { bytes: Some(Bytes::new(1540)), packets: None };
        assert_eq!(admitted(bytes, &[1500, 1500, 40, 1]), [true, false, true, false]);
        assert_eq!(admitted(QueueLimit::default(), &[u64::MAX, u64::MAX]), [true, true]);
    }

    #[test]
    fn an_idle_link_takes_any_packet_even_without_a_buffer() {
        let none = QueueLimit { bytes: Some(Bytes::ZERO), packets: Some(0) };
        let mut queue = Queue::new(none);
        assert!(queue.admit(Time::ZERO, Time::ZERO, Bytes::new(1500)));
        assert!(!queue.admit(Time::ZERO, Time::from_nanos(1), Bytes::new(1)));
        assert_eq!(queue.peak(), Tally::default());
    }

    #[test]
    fn packet_in_transmission_is_not_in_the_queue() {
        let mut queue = Queue::new(QueueLimit { bytes: None, packets: Some(1) });
        assert!(queue.admit(Time::ZERO, Time::from_nanos(10), Bytes::new(1)));
        assert!(!queue.admit(Time::from_nanos(9), Time::from_nanos(20), Bytes::new(1)));
        assert!(queue.admit(Time::from_nanos(10), Time::from_nanos(20), Bytes::new(2)));
        assert_eq!(queue.peak(), Tally { packets: 1, bytes: Bytes::new(2) });
    }
}
