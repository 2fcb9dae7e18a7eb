//! Behaviour after idle: whether the window was used, and the rate at which to restart (`papers/p-http`, section 2.4).

use wire::{Duration, Time};

/// Usage of the window, which shows whether it limits sending (RFC 7661, like Linux's `tcp_cwnd_validate`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Maximum outstanding in this round.
    max_in_flight: u64,
    /// Number whose acknowledgement ends the round.
    round_end: u64,
    is_limited: bool,
}

impl Usage {
    /// Records the bytes in flight after a burst has been sent as far as possible.
    pub(super) fn record(&mut self, in_flight: u64, unacknowledged: u64, next: u64, is_limited: bool) {
        let is_new_round = unacknowledged >= self.round_end;
        if is_new_round || is_limited || (!self.is_limited && in_flight > self.max_in_flight) {
            *self = Self { max_in_flight: in_flight, round_end: next, is_limited };
        }
    }

    /// Returns whether the window may grow.
    pub(super) const fn allows_growth(&self, cwnd: u64, is_slow_start: bool) -> bool {
        self.is_limited || (is_slow_start && cwnd < 2 * self.max_in_flight)
    }
}

/// Rate-based pacing after idle (`papers/p-http`, section 2.4): "if n packets were sent in time t", then n segments are
/// sent at intervals of t/n, until the first acknowledgement.
///
/// The congestion window is first reduced to these n segments, and at the first acknowledgement to the segments that
/// were sent. Otherwise that acknowledgement releases the rest of the window as one burst (Visweswaraiah and Heidemann,
/// "Improving Restart of Idle TCP Connections", 1997; their ns-2 module `tcp-rbp.cc` states this reason).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    rate: Option<MeasuredRate>,
    active: Option<ActivePacing>,
}

/// Number of segments sent during a round trip.
#[derive(Clone, Copy, Debug)]
struct MeasuredRate {
    segments: u64,
    round_trip: Duration,
}

/// Pacing in progress.
#[derive(Clone, Copy, Debug)]
struct ActivePacing {
    interval: Duration,
    next: Time,
    /// Whether a segment waits for `next`.
    is_waiting: bool,
}

/// Minimum number of segments of a paced window: a single one may wait for a delayed ACK (`tcp-rbp.cc`).
pub(super) const MIN_SEGMENTS: u64 = 2;

impl Pacer {
    /// Measures the rate from the segments that were sent during one round trip (like Vegas). Where the application had
    /// nothing more to send, the path's rate is at least that: the sample counts only if it is higher.
    pub(super) fn measure(&mut self, segments: u64, round_trip: Duration, is_application_limited: bool) {
        let is_lower = self.rate.is_some_and(|rate| segments <= rate.segments);
        if self.active.is_none() && !(is_application_limited && is_lower) {
            self.rate = Some(MeasuredRate { segments, round_trip });
        }
    }

    /// Starts pacing, if a rate is known. Returns the number of segments for which the window must be open, at most
    /// `window`.
    pub(super) fn start(&mut self, now: Time, window: u64) -> Option<u64> {
        let MeasuredRate { segments, round_trip } = self.rate?;
        let segments = segments.min(window).max(MIN_SEGMENTS);
        self.active = Some(ActivePacing { interval: round_trip / segments, next: now, is_waiting: false });
        Some(segments)
    }

    /// Stops pacing at an acknowledgement: ACK clocking takes over. Returns whether segments were being paced.
    pub(super) const fn stop(&mut self) -> bool {
        self.active.take().is_some()
    }

    /// Returns whether a segment may be sent now; if not, it is polled again at the deadline.
    pub(super) fn allows(&mut self, now: Time) -> bool {
        let Some(active) = &mut self.active else { return true };
        active.is_waiting = now < active.next;
        !active.is_waiting
    }

    /// Handles the deadline: the waiting segment may be sent.
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
    fn segments_are_paced_until_the_first_acknowledgement() {
        let mut pacer = Pacer::default();
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        assert_eq!(pacer.start(at(0), 20), None);
        assert!(pacer.allows(at(0)), "nothing was measured");
        pacer.measure(10, Duration::from_millis(100), false);
        assert_eq!(pacer.start(at(0), 20), Some(10));
        assert!(pacer.allows(at(0)));
        pacer.sent(at(0));
        assert!(!pacer.allows(at(9)));
        assert_eq!(pacer.deadline(), Some(at(10)));
        assert!(pacer.allows(at(10)));
        assert!(pacer.stop());
        assert_eq!(pacer.deadline(), None);
        assert!(!pacer.stop());
    }

    #[test]
    fn a_paced_window_is_spread_over_the_whole_round_trip() {
        let mut pacer = Pacer::default();
        pacer.measure(10, Duration::from_millis(100), false);
        assert_eq!(pacer.start(Time::ZERO, 5), Some(5), "the window is smaller than the rate");
        pacer.sent(Time::ZERO);
        assert!(!pacer.allows(Time::ZERO));
        assert_eq!(pacer.deadline(), Some(Time::ZERO + Duration::from_millis(20)));
    }

    #[test]
    fn an_application_without_data_does_not_lower_the_rate() {
        let mut pacer = Pacer::default();
        for (segments, is_application_limited, paced) in
            [(1, true, 2), (8, false, 8), (3, true, 8), (4, false, 4)]
        {
            pacer.measure(segments, Duration::from_millis(100), is_application_limited);
            assert_eq!(pacer.start(Time::ZERO, 20), Some(paced));
            pacer.stop();
        }
    }

    #[test]
    fn a_window_that_was_not_filled_does_not_grow() {
        let mut usage = Usage::default();
        usage.record(3, 0, 10, false);
        assert!(!usage.allows_growth(10, true));
        usage.record(6, 5, 20, false);
        assert!(usage.allows_growth(10, true));
        assert!(!usage.allows_growth(10, false));
        usage.record(10, 6, 30, true);
        assert!(usage.allows_growth(10, false));
    }
}
