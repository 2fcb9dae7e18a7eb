//! Tick of a coarse capture clock: no wait can be measured more precisely.
//!
//! All steps of such a clock are multiples of one tick, and most packets share the time of the one before. A fine clock
//! shows no common divisor after a few packets.

use wire::{Duration, Time};

/// Maximum tick of a clock that is precise enough.
const COARSE: Duration = Duration::from_millis(5);

/// Steps of the clock so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tick {
    last: Option<Time>,
    /// Greatest common divisor of all steps, in nanoseconds.
    step: u64,
    steps: u32,
    /// Packets with the same time as the one before.
    together: u32,
}

impl Tick {
    /// Records the time of a packet.
    pub fn passed(&mut self, now: Time) {
        // Once the clock is known to be fine, nothing more is computed.
        if self.steps > 0 && Duration::from_nanos(self.step) < COARSE {
            return;
        }
        let step = now.since(self.last.replace(now).unwrap_or(now)).as_nanos();
        if step == 0 {
            self.together = self.together.saturating_add(1);
            return;
        }
        self.steps = self.steps.saturating_add(1);
        let (mut one, mut other) = (self.step, step);
        while other != 0 {
            (one, other) = (other, one % other);
        }
        self.step = one;
    }

    /// Returns the tick, if waits of connections are only a few ticks long.
    pub fn coarse(&self) -> Option<Duration> {
        const ENOUGH: u32 = 4;
        let step = Duration::from_nanos(self.step);
        (step >= COARSE && self.steps >= ENOUGH && self.together > 2 * self.steps).then_some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(millis: &[u64]) -> Option<Duration> {
        let mut tick = Tick::default();
        millis.iter().for_each(|at| tick.passed(Time::ZERO + Duration::from_millis(*at)));
        tick.coarse()
    }

    #[test]
    fn clock_with_half_second_ticks_is_coarse() {
        let at = [
            0, 0, 0, 0, 500, 500, 500, 500, 1_500, 1_500, 1_500, 2_000, 2_000, 2_000, 2_000, 2_500, 2_500,
            2_500,
        ];
        assert_eq!(ticks(&at), Some(Duration::from_millis(500)));
    }

    #[test]
    fn fine_clock_or_few_packets_are_not_coarse() {
        assert_eq!(ticks(&[0, 0, 0, 0, 501, 501, 501, 501, 1_500, 1_500, 1_500, 2_000, 2_000, 2_500]), None);
        assert_eq!(ticks(&[0, 0, 0, 0, 500, 500, 500, 500]), None);
    }
}
