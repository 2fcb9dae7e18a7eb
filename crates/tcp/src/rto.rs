//! The retransmission timer, computed from round trips (RFC 6298; Stevens vol. 2, chapter 25).
//!
//! The sender decides which round trips may be measured (Karn's rule).

use wire::{Duration, Time};

use crate::config::{Estimator, Rto};

/// The timer, and its estimates.
#[derive(Clone, Debug)]
pub(super) struct RetransmissionTimer {
    config: Rto,
    estimate: Option<RttEstimate>,
    /// Number of expiries since the last new acknowledgement.
    backoff: u8,
    /// Number of expiries since a round trip was last measured: the timeout remains doubled until then, because the
    /// acknowledgement of a retransmitted segment gives no sample (Karn; RFC 6298, section 5).
    doublings: u8,
    deadline: Option<Time>,
}

/// Smoothed round trip and its variation, each in the estimator's own unit: nanoseconds; or ticks, times
/// eight and times four, as BSD stores them.
#[derive(Clone, Copy, Debug)]
struct RttEstimate {
    smoothed: u64,
    variation: u64,
}

impl RetransmissionTimer {
    pub(super) const fn new(config: Rto) -> Self {
        Self { config, estimate: None, backoff: 0, doublings: 0, deadline: None }
    }

    /// Returns its deadline, if it runs.
    pub(super) const fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Returns the number of expiries since the last new acknowledgement.
    pub(super) const fn backoff(&self) -> u8 {
        self.backoff
    }

    /// Returns the smoothed round trip, if one was measured.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        let estimate = self.estimate?;
        Some(match self.config.estimator {
            Estimator::Coarse(ticks) => ticks.period * estimate.smoothed / 8,
            Estimator::Fine | Estimator::FineVariation => Duration::from_nanos(estimate.smoothed),
        })
    }

    /// Returns the timeout before any backoff.
    pub(super) fn timeout(&self) -> Duration {
        let Some(RttEstimate { smoothed, variation }) = self.estimate else { return self.config.initial };
        let minimum = self.config.min;
        let timeout = match self.config.estimator {
            Estimator::Coarse(ticks) => (ticks.period * (smoothed / 8 + variation)).max(minimum),
            Estimator::Fine => Duration::from_nanos(smoothed + 4 * variation).max(minimum),
            Estimator::FineVariation => {
                Duration::from_nanos(smoothed) + Duration::from_nanos(4 * variation).max(minimum)
            }
        };
        timeout.min(self.config.max)
    }

    /// Starts or restarts it.
    pub(super) fn start(&mut self, now: Time) {
        let backed_off = self.timeout() * (1 << self.doublings.min(20));
        let wait = backed_off.min(self.config.max);
        self.deadline = Some(match self.config.estimator {
            Estimator::Coarse(ticks) => {
                // The first tick counts, wherever in its period the segment was sent.
                let count = (wait.as_nanos() / ticks.period.as_nanos()).max(1);
                ticks.after(now) + ticks.period * (count - 1)
            }
            Estimator::Fine | Estimator::FineVariation => now + wait,
        });
    }

    /// Stops it: nothing is outstanding.
    pub(super) const fn stop(&mut self) {
        self.deadline = None;
    }

    /// Doubles the timeout after an expiry.
    pub(super) const fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
        self.doublings = self.doublings.saturating_add(1);
    }

    /// Resets the backoff at a new acknowledgement: the peer is reachable. The round trip may still be unknown.
    pub(super) const fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Updates the estimate with a round trip from `sent` to `now`.
    pub(super) fn record_round_trip(&mut self, sent: Time, now: Time) {
        self.doublings = 0;
        self.estimate = Some(match self.config.estimator {
            Estimator::Coarse(ticks) => {
                estimate_in_ticks(self.estimate, ticks.count(now) - ticks.count(sent))
            }
            Estimator::Fine | Estimator::FineVariation => {
                estimate_in_nanos(self.estimate, now.since(sent).as_nanos())
            }
        });
    }
}

/// Updates the estimate as in RFC 6298, section 2, in nanoseconds: with weights of an eighth and a quarter.
fn estimate_in_nanos(before: Option<RttEstimate>, round_trip: u64) -> RttEstimate {
    match before {
        None => RttEstimate { smoothed: round_trip, variation: round_trip / 2 },
        Some(RttEstimate { smoothed, variation }) => RttEstimate {
            smoothed: smoothed - smoothed / 8 + round_trip / 8,
            variation: variation - variation / 4 + smoothed.abs_diff(round_trip) / 4,
        },
    }
}

/// Updates the estimate in BSD's integers (Stevens vol. 2, figure 25.23): a round trip within one tick counts as one at
/// first, as zero later.
fn estimate_in_ticks(before: Option<RttEstimate>, ticks: u64) -> RttEstimate {
    match before {
        None => RttEstimate { smoothed: (ticks + 1) * 8, variation: (ticks + 1) * 2 },
        Some(RttEstimate { smoothed, variation }) => {
            let before = smoothed / 8;
            let error = ticks.abs_diff(before);
            RttEstimate {
                smoothed: (smoothed + ticks).saturating_sub(before).max(1),
                variation: (variation + error).saturating_sub(variation / 4).max(1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Ticks;

    fn rto(estimator: Estimator) -> Rto {
        Rto {
            estimator,
            initial: Duration::from_secs(6),
            min: Duration::from_secs(1),
            max: Duration::from_secs(64),
            syn_retries: 3,
            data_retries: 12,
        }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn first_round_trip_sets_a_timeout_of_three_times_its_duration() {
        let mut timer = RetransmissionTimer::new(rto(Estimator::Fine));
        timer.record_round_trip(at(0), at(800));
        assert_eq!(timer.timeout(), Duration::from_millis(2_400));
        let mut linux = RetransmissionTimer::new(Rto {
            min: Duration::from_millis(200),
            ..rto(Estimator::FineVariation)
        });
        (0..100).for_each(|n| linux.record_round_trip(at(n * 100), at(n * 100 + 30)));
        assert_eq!(linux.timeout().as_millis_f64().round(), 230.0);
    }

    #[test]
    fn coarse_timer_expires_on_a_tick_up_to_one_early() {
        let ticks = Ticks { period: Duration::from_millis(500), phase: Duration::ZERO };
        let mut timer = RetransmissionTimer::new(rto(Estimator::Coarse(ticks)));
        timer.start(at(499));
        assert_eq!(timer.deadline(), Some(at(6_000)));
        timer.stop();
        assert_eq!(timer.deadline(), None);
    }

    /// "1.5, 3, 6, 12, 24, 48, 64": BSD's timeouts on a local network (Stevens vol. 1, section 21.2).
    #[test]
    fn on_a_local_network_a_coarse_timer_settles_at_a_second_and_a_half() {
        let ticks = Ticks { period: Duration::from_millis(500), phase: Duration::ZERO };
        let mut timer = RetransmissionTimer::new(rto(Estimator::Coarse(ticks)));
        (0..20).for_each(|n| timer.record_round_trip(at(n * 1000 + 1), at(n * 1000 + 2)));
        let waits = [1_500, 3_000, 6_000, 12_000, 24_000, 48_000, 64_000, 64_000].map(|expected| {
            timer.start(at(0));
            timer.back_off();
            (timer.deadline(), Some(at(expected)))
        });
        assert!(waits.iter().all(|(computed, published)| computed == published), "{waits:?}");
    }

    #[test]
    fn timeout_doubles_at_each_expiry_up_to_the_maximum() {
        let mut timer = RetransmissionTimer::new(rto(Estimator::Fine));
        for expected in [6, 12, 24, 48, 64, 64] {
            timer.start(at(0));
            assert_eq!(timer.deadline(), Some(at(expected * 1000)));
            timer.back_off();
        }
        assert_eq!(timer.backoff(), 6);
    }

    /// Second half of Karn's algorithm: without it a path slower than the minimum timeout loses its window at every
    /// segment.
    #[test]
    fn timeout_stays_doubled_until_a_round_trip_is_measured() {
        let mut timer = RetransmissionTimer::new(rto(Estimator::Fine));
        timer.back_off();
        timer.reset_backoff();
        assert_eq!(timer.backoff(), 0);
        timer.start(at(0));
        assert_eq!(timer.deadline(), Some(at(12_000)));
        timer.record_round_trip(at(0), at(800));
        timer.start(at(0));
        assert_eq!(timer.deadline(), Some(at(2_400)));
    }
}
