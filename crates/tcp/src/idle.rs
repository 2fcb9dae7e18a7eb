//! Behaviour after idle: whether the window was used, and the rate at which to restart (`papers/p-http`, section 2.4).
//!
//! Not the window itself (`congestion`).

use wire::{Duration, Time};

/// Usage of the window, which shows whether it limits sending (RFC 7661, like Linux's `tcp_cwnd_validate`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Maximum outstanding in this round ...
    most: u64,
    /// ... which ends when this number is acknowledged.
    until: u64,
    is_limited: bool,
}

impl Usage {
    /// Records the bytes in flight after a burst has been sent as far as possible.
    pub(super) fn note(&mut self, in_flight: u64, unacknowledged: u64, next: u64, is_limited: bool) {
        let is_new_round = unacknowledged >= self.until;
        if is_new_round || is_limited || (!self.is_limited && in_flight > self.most) {
            *self = Self { most: in_flight, until: next, is_limited };
        }
    }

    /// Returns whether the window may grow.
    pub(super) const fn allows_growth(&self, cwnd: u64, is_slow_start: bool) -> bool {
        self.is_limited || (is_slow_start && cwnd < 2 * self.most)
    }
}

/// Rate-based pacing after idle: the window's segments are sent at intervals until the first acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    /// Interval of segments at the rate last measured.
    measured: Option<Duration>,
    active: Option<Active>,
}

/// Pacing in progress.
#[derive(Clone, Copy, Debug)]
struct Active {
    interval: Duration,
    next: Time,
    /// Whether a segment waits for `next`.
    is_waiting: bool,
}

impl Pacer {
    /// Measures the rate from the segments that were sent during one round trip (like Vegas).
    pub(super) fn measure(&mut self, segments: u64, round_trip: Duration) {
        if self.active.is_none() {
            self.measured = Some(round_trip / segments.max(1));
        }
    }

    /// Starts pacing, if a rate is known.
    pub(super) fn start(&mut self, now: Time) {
        self.active = self.measured.map(|interval| Active { interval, next: now, is_waiting: false });
    }

    /// Stops pacing at an acknowledgement: ACK clocking takes over.
    pub(super) const fn stop(&mut self) {
        self.active = None;
    }

    /// Returns whether a segment may be sent now; if not, it is polled again at the deadline.
    pub(super) fn allows(&mut self, now: Time) -> bool {
        let Some(active) = &mut self.active else { return true };
        active.is_waiting = now < active.next;
        !active.is_waiting
    }

    /// Handles the deadline: pending data calls `allows` again.
    pub(super) fn expire(&mut self) {
        if let Some(active) = &mut self.active {
            active.is_waiting = false;
        }
    }

    /// Records that a segment was sent.
    pub(super) fn sent(&mut self, now: Time) {
        if let Some(active) = &mut self.active {
            active.next = now + active.interval;
        }
    }

    /// Returns the time at which the waiting segment may be sent.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.active.filter(|active| active.is_waiting).map(|active| active.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_leave_one_by_one_until_the_first_acknowledgement() {
        let mut pacer = Pacer::default();
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        pacer.start(at(0));
        assert!(pacer.allows(at(0)), "nothing was measured");
        pacer.measure(10, Duration::from_millis(100));
        pacer.start(at(0));
        assert!(pacer.allows(at(0)));
        pacer.sent(at(0));
        assert!(!pacer.allows(at(9)));
        assert_eq!(pacer.deadline(), Some(at(10)));
        assert!(pacer.allows(at(10)));
        pacer.stop();
        assert_eq!(pacer.deadline(), None);
    }

    #[test]
    fn a_window_that_was_not_filled_does_not_grow() {
        let mut usage = Usage::default();
        usage.note(3, 0, 10, false);
        assert!(!usage.allows_growth(10, true));
        usage.note(6, 5, 20, false);
        assert!(usage.allows_growth(10, true));
        assert!(!usage.allows_growth(10, false));
        usage.note(10, 6, 30, true);
        assert!(usage.allows_growth(10, false));
    }
}
