//! Queue of the transmitter, and its limit: tail drop.
//!
//! It stores only the sizes of packets, and the times at which their transmission begins, which are known on arrival. A
//! packet in transmission has left the queue.

use std::collections::VecDeque;

use crate::link::{QueueLimit, Tally};
use crate::{Bytes, Time};

/// The queued packets, in order.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    limit: QueueLimit,
    queued: VecDeque<QueuedPacket>,
    bytes: Bytes,
    peak: Tally,
}

#[derive(Clone, Copy, Debug)]
struct QueuedPacket {
    start: Time,
    size: Bytes,
}

impl Queue {
    pub(super) const fn new(limit: QueueLimit) -> Self {
        let peak = Tally { packets: 0, bytes: Bytes::ZERO };
        Self { limit, queued: VecDeque::new(), bytes: Bytes::ZERO, peak }
    }

    /// Returns whether a packet that arrives at `now`, and whose transmission would begin at `start`, is accepted.
    pub(super) fn admit(&mut self, now: Time, start: Time, size: Bytes) -> bool {
        self.remove_started(now);
        if start <= now {
            return true;
        }
        let QueueLimit { bytes, packets } = self.limit;
        let total = Tally { packets: self.queued.len() as u64 + 1, bytes: self.bytes + size };
        if bytes.is_some_and(|max| total.bytes > max) || packets.is_some_and(|max| total.packets > max) {
            return false;
        }
        self.queued.push_back(QueuedPacket { start, size });
        self.bytes = total.bytes;
        self.peak.packets = self.peak.packets.max(total.packets);
        self.peak.bytes = self.peak.bytes.max(total.bytes);
        true
    }

    /// Returns the maximum queue length so far.
    pub(super) const fn peak(&self) -> Tally {
        self.peak
    }

    /// Removes packets whose transmission has begun.
    fn remove_started(&mut self, now: Time) {
        while let Some(first) = self.queued.front()
            && first.start <= now
        {
            self.bytes = self.bytes - first.size;
            self.queued.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers packets of these sizes at time 0 to a link that is busy until 1, 2, 3 ...
    fn admitted(limit: QueueLimit, sizes: &[u64]) -> Vec<bool> {
        let mut queue = Queue::new(limit);
        let start = (1..).map(Time::from_nanos);
        start.zip(sizes).map(|(start, size)| queue.admit(Time::ZERO, start, Bytes::new(*size))).collect()
    }

    #[test]
    fn limits_count_packets_and_bytes() {
        let packets = QueueLimit { bytes: None, packets: Some(2) };
        assert_eq!(admitted(packets, &[1500, 1500, 40]), [true, true, false]);
        let bytes = QueueLimit { bytes: Some(Bytes::new(1540)), packets: None };
        assert_eq!(admitted(bytes, &[1500, 1500, 40, 1]), [true, false, true, false]);
        assert_eq!(admitted(QueueLimit::default(), &[u64::MAX, u64::MAX]), [true, true]);
    }

    #[test]
    fn idle_link_accepts_any_packet_without_a_buffer() {
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
