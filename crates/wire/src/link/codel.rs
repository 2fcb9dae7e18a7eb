//! CoDel (RFC 8289): drops from the head of a queue whose delay stays above a target for an interval.
//!
//! It follows the pseudo code of RFC 8289, section 5, with names of its own. The control law is computed in integers: the same
//! drops on every host.

use std::collections::VecDeque;

use crate::link::config::CoDel;
use crate::{Bytes, Duration, Time};

/// A packet in a queue.
#[derive(Clone, Debug)]
pub(super) struct QueuedPacket<P> {
    pub(super) packet: P,
    pub(super) size: Bytes,
    pub(super) arrival: Time,
    /// Whether it will be lost on the link, after its transmission.
    pub(super) is_lost: bool,
}

/// A first-in-first-out queue that knows its size in bytes.
#[derive(Clone, Debug)]
pub(super) struct Fifo<P> {
    packets: VecDeque<QueuedPacket<P>>,
    bytes: Bytes,
}

impl<P> Default for Fifo<P> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), bytes: Bytes::ZERO }
    }
}

impl<P> Fifo<P> {
    pub(super) fn push(&mut self, queued: QueuedPacket<P>) {
        self.bytes += queued.size;
        self.packets.push_back(queued);
    }

    pub(super) fn pop(&mut self) -> Option<QueuedPacket<P>> {
        let first = self.packets.pop_front()?;
        self.bytes = self.bytes - first.size;
        Some(first)
    }

    pub(super) const fn bytes(&self) -> Bytes {
        self.bytes
    }
}

/// State of CoDel for one queue.
#[derive(Clone, Debug)]
pub(super) struct CoDelState {
    config: CoDel,
    /// Time at which the delay will have been above the target for an interval (`first_above_time_`).
    first_above: Option<Time>,
    /// Whether packets are being dropped (`dropping_`).
    is_dropping: bool,
    /// Time of the next drop (`drop_next_`).
    next_drop: Time,
    /// Drops since dropping began (`count_`).
    count: u64,
    /// `count` when dropping last began (`lastcount_`).
    last_count: u64,
    /// The largest packet so far, a stand-in for the link's MTU (`maxpacket_`, as Linux measures it).
    max_packet: Bytes,
}

impl CoDelState {
    pub(super) const fn new(config: CoDel) -> Self {
        Self {
            config,
            first_above: None,
            is_dropping: false,
            next_drop: Time::ZERO,
            count: 0,
            last_count: 0,
            max_packet: Bytes::ZERO,
        }
    }

    /// Takes the next packet to send from `queue`; those to drop go to `dropped` (`codel_queue_t::dequeue`).
    pub(super) fn dequeue<P>(
        &mut self,
        now: Time,
        queue: &mut Fifo<P>,
        dropped: &mut impl FnMut(QueuedPacket<P>),
    ) -> Option<QueuedPacket<P>> {
        let (mut next, mut may_drop) = self.pop(now, queue);
        if self.is_dropping {
            self.is_dropping = may_drop;
            while self.is_dropping && now >= self.next_drop {
                next.take().into_iter().for_each(&mut *dropped);
                self.count += 1;
                (next, may_drop) = self.pop(now, queue);
                match may_drop {
                    false => self.is_dropping = false,
                    true => self.next_drop = self.control_law(self.next_drop),
                }
            }
        } else if may_drop {
            next.take().into_iter().for_each(&mut *dropped);
            (next, _) = self.pop(now, queue);
            self.is_dropping = true;
            // A queue that grows again soon after the last dropping period resumes near its drop rate.
            let delta = self.count.saturating_sub(self.last_count);
            let is_recent = now.since(self.next_drop) < self.config.interval * RECENT_INTERVALS;
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.next_drop = self.control_law(now);
            self.last_count = self.count;
        }
        next
    }

    /// Takes the first packet of the queue; returns also whether it may be dropped (`codel_queue_t::dodequeue`).
    fn pop<P>(&mut self, now: Time, queue: &mut Fifo<P>) -> (Option<QueuedPacket<P>>, bool) {
        let Some(first) = queue.pop() else {
            self.first_above = None;
            return (None, false);
        };
        self.max_packet = self.max_packet.max(first.size);
        let sojourn = now.since(first.arrival);
        if sojourn < self.config.target || queue.bytes() <= self.max_packet {
            self.first_above = None;
            return (Some(first), false);
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.config.interval);
                (Some(first), false)
            }
            Some(since) => (Some(first), now >= since),
        }
    }

    /// Returns the time of the drop after one at `at`: an interval over the root of the number of drops.
    fn control_law(&self, at: Time) -> Time {
        let interval = u128::from(self.config.interval.as_nanos());
        let spacing = (interval * interval / u128::from(self.count.max(1))).isqrt();
        at + Duration::from_nanos(
            u64::try_from(spacing).expect("the root of a square of 64 bits over a count"),
        )
    }
}

/// Intervals after the last drop in which a new dropping period resumes its rate (RFC 8289, section 5.6).
const RECENT_INTERVALS: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A queue that is never empty, one packet of 1,500 bytes dequeued every millisecond, each after `delay` ms in the queue.
    /// Returns the milliseconds at which packets were dropped.
    fn drops(delays: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
        let (mut state, mut queue, mut drops) =
            (CoDelState::new(CoDel::default()), Fifo::default(), Vec::new());
        for (now, delay) in delays {
            // Four packets of this age, so that drops at one dequeue find more.
            while queue.bytes() < Bytes::new(6_000) {
                let arrival = Time::from_nanos(now.saturating_sub(delay) * MS);
                queue.push(QueuedPacket { packet: (), size: Bytes::new(1_500), arrival, is_lost: false });
            }
            let at = Time::from_nanos(now * MS);
            assert!(state.dequeue(at, &mut queue, &mut |_| drops.push(now)).is_some());
            while queue.pop().is_some() {}
        }
        drops
    }

    #[test]
    fn paper_drops_follow_the_control_law() {
        // RFC 8289, sections 3.3 and 5.5: the first drop an interval (100 ms) after the delay exceeds the target (5 ms);
        // drop n + 1 follows after 100 ms / sqrt(n). Dequeues happen at whole milliseconds.
        let actual = drops((100..800).map(|now| (now, 20)));
        let mut expected = 200.0_f64;
        assert!(actual.len() >= 9);
        for (count, drop) in (1_u32..10).zip(actual) {
            let late = f64::from(u32::try_from(drop).unwrap()) - expected;
            assert!((0.0..1.0).contains(&late), "drop {count} at {drop}, not {expected}");
            expected += 100.0 / f64::from(count).sqrt();
        }
    }

    #[test]
    fn paper_a_delay_below_the_target_ends_dropping_and_a_short_pause_resumes_the_rate() {
        // One second above the target, 50 ms below, then above again.
        let delay = |now| if (1_100..1_150).contains(&now) { 4 } else { 20 };
        let actual = drops((100..1_500).map(|now| (now, delay(now))));
        assert!(actual.iter().all(|at| !(1_100..1_250).contains(at)), "{actual:?}");
        let (first, second): (Vec<u64>, Vec<u64>) = actual.iter().partition(|at| **at < 1_100);
        assert_eq!((first[0], second[0]), (200, 1_250));
        // The second drop would follow after 100 ms if the rate had been forgotten.
        assert!(second[1] - second[0] < 40, "{second:?}");
        // RFC 8289, section 5.6: after 16 intervals without drops it is forgotten.
        let long = drops((100..4_500).map(|now| (now, if (1_100..3_000).contains(&now) { 4 } else { 20 })));
        let second: Vec<u64> = long.into_iter().filter(|at| *at > 2_000).collect();
        assert_eq!(second[..3], [3_100, 3_200, 3_271]);
    }

    #[test]
    fn paper_last_packet_of_a_queue_is_never_dropped() {
        // RFC 8289, section 5.2: not while a packet or less remains, however long it waited.
        let (mut state, mut queue, mut dropped) = (CoDelState::new(CoDel::default()), Fifo::default(), 0);
        for now in 0..1_000 {
            let arrival = Time::ZERO;
            queue.push(QueuedPacket { packet: (), size: Bytes::new(1_500), arrival, is_lost: false });
            let at = Time::from_nanos((1_000 + now) * MS);
            assert!(state.dequeue(at, &mut queue, &mut |_| dropped += 1).is_some());
        }
        assert_eq!(dropped, 0);
    }
}
