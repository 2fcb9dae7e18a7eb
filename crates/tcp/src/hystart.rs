//! HyStart: the end of slow start before a loss (Ha and Rhee 2008, as in Linux's CUBIC).
//!
//! Two tests: acknowledgements that arrive close together for half a round trip, and increasing round trips.

use wire::{Duration, Time};

use crate::ack_info::AckInfo;

/// Minimum window in segments for the tests (`hystart_low_window`).
const MIN_WINDOW: u64 = 16;
/// Maximum interval between acknowledgements of one train (`hystart_ack_delta_us`).
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Minimum round trip samples (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u8 = 8;

/// State of HyStart.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    /// Minimum round trip so far.
    min_round_trip: Option<Duration>,
    round: Option<Round>,
    has_ended: bool,
}

/// Round: the acknowledgements of one window.
#[derive(Clone, Copy, Debug)]
struct Round {
    start: Time,
    last: Time,
    /// The round ends when this number is acknowledged.
    end: u64,
    min_round_trip: Duration,
    samples: u8,
}

impl HyStart {
    /// Observes the round trip of an acknowledgement.
    pub(super) fn observe(&mut self, round_trip: Duration) {
        self.min_round_trip = Some(self.min_round_trip.map_or(round_trip, |minimum| minimum.min(round_trip)));
    }

    /// Returns whether slow start should end with this acknowledgement, whose round trip was observed. `window` is in segments.
    pub(super) fn ends_slow_start(
        &mut self,
        now: Time,
        ack: &AckInfo,
        round_trip: Duration,
        window: u64,
    ) -> bool {
        if self.has_ended {
            return false;
        }
        let min_round_trip = self.min_round_trip.unwrap_or(round_trip);
        let new_round =
            Round { start: now, last: now, end: ack.next, min_round_trip: Duration::MAX, samples: 0 };
        let round = match &mut self.round {
            Some(round) if ack.number <= round.end => round,
            Some(_) | None => self.round.insert(new_round),
        };
        if window < MIN_WINDOW {
            return false;
        }
        self.has_ended =
            round.is_long_train(now, min_round_trip) | round.is_slower(round_trip, min_round_trip);
        self.has_ended
    }
}

impl Round {
    fn is_long_train(&mut self, now: Time, min_round_trip: Duration) -> bool {
        let is_train = now.since(self.last) <= TRAIN_GAP;
        if is_train {
            self.last = now;
        }
        is_train && now.since(self.start) > min_round_trip / 2
    }

    fn is_slower(&mut self, round_trip: Duration, min_round_trip: Duration) -> bool {
        self.min_round_trip = self.min_round_trip.min(round_trip);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        // HYSTART_DELAY_THRESH
        let margin = (min_round_trip / 8).clamp(Duration::from_millis(4), Duration::from_millis(16));
        self.min_round_trip > min_round_trip + margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acknowledges one window of 20 segments with the given interval and round trip; returns the segment that ends slow
    /// start.
    fn exit_segment(gap: Duration, round_trip: Duration) -> Option<u64> {
        let mut hystart = HyStart { min_round_trip: Some(Duration::from_millis(40)), ..HyStart::default() };
        (1..=20).find(|n| {
            let ack = AckInfo { bytes: 1, segments: 1, number: *n, next: 20, round_trip: None };
            hystart.observe(round_trip);
            hystart.ends_slow_start(Time::ZERO + gap * *n, &ack, round_trip, 20)
        })
    }

    #[test]
    fn ack_train_of_half_a_round_trip_ends_slow_start() {
        assert_eq!(exit_segment(Duration::from_micros(1_500), Duration::from_millis(40)), Some(15));
        assert_eq!(exit_segment(Duration::from_micros(500), Duration::from_millis(40)), None);
        assert_eq!(exit_segment(Duration::from_millis(3), Duration::from_millis(40)), None);
    }

    #[test]
    fn round_trips_an_eighth_longer_end_slow_start() {
        assert_eq!(exit_segment(Duration::from_micros(10), Duration::from_millis(46)), Some(9));
        assert_eq!(exit_segment(Duration::from_micros(10), Duration::from_millis(44)), None);
    }
}
