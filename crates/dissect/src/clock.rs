//! Clock behind a sender's TCP timestamps (RFC 7323): when a segment was generated, and when it passed the capture.
//!
//! The unit is estimated from the timestamps themselves and snapped to those that stacks use. The minimum difference
//! between passing and generation is the path's. Any additional delay of a segment was spent in a queue or a reordering
//! buffer, not in a program. A retransmission carries a timestamp of its own. Unknown until the clock has been observed
//! for a while.

use wire::{Duration, Time};

/// A segment's timestamps option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The sender's clock value (TSval).
    pub value: u32,
    /// The latest timestamp of the peer that the sender had received (TSecr).
    pub echo: u32,
}

/// Returns whether timestamp `one` is later than `other`, modulo 2^32.
pub const fn is_later(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

/// A sender's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    first: Option<(Time, u32)>,
    /// Nanoseconds per tick; zero while unknown.
    unit: u32,
    /// Whether the timestamps do not come from a single clock.
    is_odd: bool,
    /// Whether they advance as no known clock does: capture and sender disagree about the time.
    pub is_unlike: bool,
    /// Minimum of passing time minus generation time, relative to the first segment, and when that was last updated.
    least: i64,
    looked_at: Time,
}

/// Tick lengths of known stacks, in nanoseconds: BSD, old Windows, 100, 250 and 300 Hz, most current stacks, Linux's
/// microseconds.
const UNITS: [u32; 7] = [500_000_000, 100_000_000, 10_000_000, 4_000_000, 3_333_333, 1_000_000, 1_000];
/// A unit is known only after this duration and this many ticks.
const LONG_ENOUGH: Duration = Duration::from_millis(200);
const ENOUGH: i64 = 4;
/// Maximum tick of a clock that separates events, in nanoseconds.
const FAST: u64 = 10_000_000;
/// Maximum clock drift: one part in this many.
const DRIFT_PARTS: i64 = 10_000;

impl Clock {
    /// Returns the transit time of a segment with stamp `value` beyond the minimum; `None` if unknown.
    pub fn passed(&mut self, at: Time, value: u32) -> Option<Duration> {
        let Some((first_at, first)) = self.first else {
            (self.first, self.looked_at) = (Some((at, value)), at);
            return None;
        };
        let (since, ticks) = (at.since(first_at), i64::from(value.wrapping_sub(first).cast_signed()));
        if self.is_odd || ticks < 0 {
            return None;
        }
        let known = self.unit;
        if since >= LONG_ENOUGH && ticks >= ENOUGH {
            self.measure(since, ticks);
        }
        // The segment from which a unit was derived cannot be measured with it.
        if known == 0 || self.unit != known {
            return None;
        }
        let passing = i64::try_from(since.as_nanos()).ok()?;
        let away = passing.checked_sub(ticks.checked_mul(i64::from(known))?)?;
        let creep = i64::try_from(at.since(self.looked_at).as_nanos()).ok()? / DRIFT_PARTS;
        (self.least, self.looked_at) = ((self.least + creep).min(away), at);
        let late = Duration::from_nanos(u64::try_from(away - self.least).ok()?);
        // Timestamps are truncated to whole ticks.
        Some(late.saturating_sub(Duration::from_nanos(u64::from(known))))
    }

    /// Returns whether segments that passed `apart` and carry the same timestamp, `value`, were generated together:
    /// within less than half of that.
    pub fn is_one_tick(&self, at: Time, value: u32, apart: Duration) -> bool {
        self.first.is_some_and(|(first_at, first)| {
            let ticks = u64::from(value.wrapping_sub(first)).min(u64::from(u32::MAX / 2));
            !self.is_odd && ticks >= 4 && at.since(first_at) / ticks * 4 <= apart
        })
    }

    /// Returns whether it has ticked at least every 10 ms on average by the time of the segment with stamp `value`. Late
    /// segments make it look slow, never fast: this is known before its unit.
    pub fn has_ticked_fast(&self, at: Time, value: u32) -> bool {
        self.is_fast()
            || self.first.is_some_and(|(first_at, first)| {
                let ticks = i64::from(value.wrapping_sub(first).cast_signed());
                !self.is_odd
                    && ticks >= ENOUGH
                    && at.since(first_at).as_nanos() <= FAST * u64::try_from(ticks).unwrap_or_default()
            })
    }

    /// Returns when a segment with stamp `value` passes, if the path takes no longer than for the fastest one so far; `None` if
    /// unknown.
    pub fn due(&self, value: u32) -> Option<Time> {
        let (first_at, first) = self.first.filter(|_| self.unit > 0 && !self.is_odd)?;
        let ticks = i64::from(value.wrapping_sub(first).cast_signed());
        let since = ticks.checked_mul(i64::from(self.unit))?.checked_add(self.least)?;
        u64::try_from(since).ok().map(|since| first_at + Duration::from_nanos(since))
    }

    /// Returns the first timestamp.
    pub fn first_value(&self) -> Option<u32> {
        self.first.map(|(_, value)| value)
    }

    /// Returns whether it is known to tick every 10 ms or more often.
    pub const fn is_fast(&self) -> bool {
        0 < self.unit && self.unit as u64 <= FAST
    }

    /// Estimates the unit: at first to within a third, because late segments make the clock look slow, then ever more
    /// closely. Of two units that fit, the longer one makes no segment late.
    fn measure(&mut self, since: Duration, ticks: i64) {
        #[expect(clippy::cast_precision_loss)]
        let tick = since.as_nanos() as f64 / ticks as f64;
        let fits = |unit: u32, off: f64| ((1.0 - off)..(1.0 + off)).contains(&(tick / f64::from(unit)));
        let off = if since > LONG_ENOUGH * 50 { 0.05 } else { 0.3 };
        self.is_unlike = !UNITS.into_iter().any(|unit| fits(unit, 0.3));
        if self.unit == 0 || (since > LONG_ENOUGH * 10 && !fits(self.unit, off)) {
            self.unit = UNITS.into_iter().find(|unit| fits(*unit, off)).unwrap_or_default();
            // Several hosts behind one address have several clocks.
            self.is_odd = self.unit == 0 && since > LONG_ENOUGH * 10;
            self.least = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_segment_that_was_generated_long_before_it_passed_is_late() {
        let mut clock = Clock::default();
        assert_eq!(clock.passed(at(0), 5_000), None);
        assert_eq!(clock.passed(at(300), 5_300), None);
        assert_eq!(clock.passed(at(400), 5_400), Some(Duration::ZERO));
        // Generated at 500 ms, according to its timestamp.
        let late = clock.passed(at(700), 5_500).unwrap();
        assert!((late.as_millis_f64() - 199.0).abs() < 1.0, "{late}");
        assert_eq!(clock.passed(at(900), 5_900), Some(Duration::ZERO));
        assert_eq!((clock.due(6_100), clock.due(4_000)), (Some(at(1_100)), None));
    }

    #[test]
    fn stamps_wrap_around_and_may_tick_slowly() {
        let mut clock = Clock::default();
        let start = u32::MAX - 20;
        for n in 0..30_u32 {
            clock.passed(at(10 * u64::from(n)), start.wrapping_add(n));
        }
        assert_eq!(clock.passed(at(400), start.wrapping_add(40)), Some(Duration::ZERO));
        let late = clock.passed(at(600), start.wrapping_add(50)).unwrap();
        assert!((late.as_millis_f64() - 90.0).abs() < 1.0, "{late}");
    }

    #[test]
    fn regress_a_clock_of_300_hertz_makes_no_segment_late_once_it_is_told_from_250() {
        let mut clock = Clock::default();
        for tenths in [0, 1, 3, 4, 56, 87, 123, 205, 284, 345_u32] {
            let late = clock.passed(at(100 * u64::from(tenths)), 1_000 + 30 * tenths).unwrap_or_default();
            assert!(late < Duration::from_millis(10), "{tenths}: {late}");
        }
    }

    #[test]
    fn stamps_of_several_clocks_are_ignored() {
        let mut clock = Clock::default();
        for (millis, value) in [(0, 0), (300, 300), (3_000, 9_000_000), (3_100, 3_100)] {
            clock.passed(at(millis), value);
        }
        assert_eq!(clock.passed(at(3_200), 3_200), None);
    }
}
