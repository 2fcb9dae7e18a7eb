//! Tick of a coarse capture clock: no wait can be measured more precisely.
//!
//! All steps of such a clock are multiples of one tick, and some packets share the time of the one before. A fine clock
//! shows no common divisor after a few packets: the longer the divisor, the fewer steps exclude chance.

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
        if self.is_fine() {
            return;
        }
        let step = now.since(self.last.replace(now).unwrap_or(now)).as_nanos();
        if step == 0 {
            self.together = self.together.saturating_add(1);
            return;
        }
        self.steps = self.steps.saturating_add(1);
        self.step = divisor(self.step, step);
    }

    /// Returns whether the clock is known to be fine: later packets change nothing.
    pub fn is_fine(&self) -> bool {
        self.steps > 0 && Duration::from_nanos(self.step) < COARSE
    }

    /// Returns the tick, if waits of connections are only a few ticks long.
    pub fn coarse(&self) -> Option<Duration> {
        /// Odds against a millisecond clock all of whose steps are multiples of the first by chance.
        const ENOUGH: u64 = 10_000;
        /// Odds against one all of whose steps are multiples of a divisor of a second.
        const ENOUGH_IF_ROUND: u64 = 400;
        const ENOUGH_TOGETHER: u32 = 8;
        const SECOND: u64 = 1_000_000_000;
        let odds = |tick: u64, steps: u32| (tick / 1_000_000).saturating_pow(steps);
        let any = self.step;
        let is_any = odds(any, self.steps.saturating_sub(1)) >= ENOUGH && self.together >= self.steps / 4;
        let round = divisor(self.step, SECOND);
        // Handshakes and exchanges within one tick.
        let is_round = odds(round, self.steps) >= ENOUGH_IF_ROUND
            && self.together >= ENOUGH_TOGETHER.max(2 * self.steps);
        let tick = if is_any { Some(any) } else { Some(round).filter(|_| is_round) };
        tick.map(Duration::from_nanos).filter(|tick| *tick >= COARSE)
    }
}

/// Returns the greatest common divisor.
fn divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
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

    #[test]
    fn long_ticks_are_recognized_after_three_steps_and_short_ones_after_more() {
        let three = |tick: u64| [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4].map(|at| at * tick);
        assert_eq!(ticks(&three(500)), Some(Duration::from_millis(500)));
        assert_eq!(ticks(&three(7)), None);
        let five = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 5, 5, 5, 5, 8, 8, 8, 8];
        assert_eq!(ticks(&five.map(|at| at * 14)), Some(Duration::from_millis(14)));
        // A handshake and an exchange within one tick, all others in the next: enough if the tick divides a second.
        let two = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1];
        assert_eq!(ticks(&two.map(|at| at * 500)), Some(Duration::from_millis(500)));
        assert_eq!(ticks(&two.map(|at| at * 501)), None);
    }
}
