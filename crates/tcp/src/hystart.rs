//! HyStart: leaving slow start before a loss (Ha and Rhee 2008, as in Linux's CUBIC).
//!
//! Two tests: acknowledgements that arrive close together for half a round trip, and increasing round trips.

use wire::{Duration, Time};

use crate::congestion::AckFacts;

/// Minimum window in segments for the tests (`hystart_low_window`).
const MIN_WINDOW: u64 = 16;
/// Acknowledgements no further apart than this are one train (`hystart_ack_delta_us`).
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Minimum round trip samples (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u8 = 8;

/// State of HyStart.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    /// Minimum round trip so far.
    least: Option<Duration>,
    round: Option<Round>,
    is_over: bool,
}

/// One window's worth of acknowledgements.
#[derive(Clone, Copy, Debug)]
struct Round {
    start: Time,
    last: Time,
    /// The round ends when this number is acknowledged.
    end: u64,
    least: Duration,
    samples: u8,
}

impl HyStart {
    /// Returns whether slow start should end with this acknowledgement. `window` is in segments.
    pub(super) fn is_enough(&mut self, now: Time, ack: &AckFacts, round_trip: Duration, window: u64) -> bool {
        if self.is_over {
            return false;
        }
        let least = self.least.map_or(round_trip, |least| least.min(round_trip));
        self.least = Some(least);
        let fresh = Round { start: now, last: now, end: ack.next, least: Duration::MAX, samples: 0 };
        let round = match &mut self.round {
            Some(round) if ack.number <= round.end => round,
            Some(_) | None => self.round.insert(fresh),
        };
        if window < MIN_WINDOW {
            return false;
        }
        self.is_over = round.is_long_train(now, least) | round.is_slower(round_trip, least);
        self.is_over
    }
}

impl Round {
    fn is_long_train(&mut self, now: Time, least: Duration) -> bool {
        let is_train = now.since(self.last) <= TRAIN_GAP;
        if is_train {
            self.last = now;
        }
        is_train && now.since(self.start) > least / 2
    }

    fn is_slower(&mut self, round_trip: Duration, least: Duration) -> bool {
        self.least = self.least.min(round_trip);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        // HYSTART_DELAY_THRESH
        let margin = (least / 8).clamp(Duration::from_millis(4), Duration::from_millis(16));
        self.least > least + margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acknowledges one window of 20 segments at this distance and round trip; returns the segment that ends
    /// slow start.
    fn enough_at(gap: Duration, round_trip: Duration) -> Option<u64> {
        let mut hystart = HyStart { least: Some(Duration::from_millis(40)), ..HyStart::default() };
        (1..=20).find(|n| {
            let ack = AckFacts { bytes: 1, segments: 1, number: *n, next: 20, round_trip: None };
            hystart.is_enough(Time::ZERO + gap * *n, &ack, round_trip, 20)
        })
    }

    #[test]
    fn ack_train_of_half_a_round_trip_ends_slow_start() {
        assert_eq!(enough_at(Duration::from_micros(1_500), Duration::from_millis(40)), Some(15));
        assert_eq!(enough_at(Duration::from_micros(500), Duration::from_millis(40)), None);
        assert_eq!(enough_at(Duration::from_millis(3), Duration::from_millis(40)), None);
    }

    #[test]
    fn round_trips_an_eighth_longer_end_slow_start() {
        assert_eq!(enough_at(Duration::from_micros(10), Duration::from_millis(46)), Some(9));
        assert_eq!(enough_at(Duration::from_micros(10), Duration::from_millis(44)), None);
    }
}
