//! Time as an argument: integer nanoseconds since an arbitrary zero, and durations.
//!
//! State machines read no clock: they receive a [`Time`] from their driver. Virtual time counts from 0, a real driver's
//! from its start. 64 bits of nanoseconds last 584 years.

use std::fmt;
use std::iter::Sum;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// An instant: nanoseconds since an arbitrary zero.
///
/// Stored as that number plus one, so that an `Option<Time>` takes no more memory than a `Time`: state machines hold
/// many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(NonZeroU64);

impl Time {
    /// The arbitrary zero.
    pub const ZERO: Self = Self(NonZeroU64::MIN);
    /// Latest time: 584 years after zero.
    pub const MAX: Self = Self(NonZeroU64::MAX);

    /// Creates the time `nanos` nanoseconds after zero; [`Time::MAX`] for `u64::MAX`, too, which is a nanosecond later.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// Returns the nanoseconds since zero.
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Returns the milliseconds since zero, for users and for JSON.
    pub fn as_millis_f64(self) -> f64 {
        self.since(Self::ZERO).as_millis_f64()
    }

    /// Returns the span from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Time").field(&self.as_nanos()).finish()
    }
}

impl Default for Time {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    /// Saturates at [`Time::MAX`].
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

/// A span of time in whole nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// 584 years.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates a span of `micros` microseconds; saturates.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Creates a span of `millis` milliseconds; saturates.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Creates a span of `secs` seconds; saturates.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Creates a span, rounded to the nearest nanosecond; `None` if `secs` is negative, not a number, or over 584 years.
    pub fn from_secs_f64(secs: f64) -> Option<Self> {
        let nanos = (secs * 1e9).round();
        // The range check makes the cast exact.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        (0.0..18_446_744_073_709_551_616.0).contains(&nanos).then_some(Self(nanos as u64))
    }

    /// Returns the whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds, for formulas.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the milliseconds, for users and for JSON.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns `self - other`, or zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Duration {
    type Output = Self;
    /// Saturates at [`Duration::MAX`].
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    /// Zero if `other` is longer.
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    /// Saturates at [`Duration::MAX`].
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    /// Rounds down. Panics if `parts` is 0, as integer division does.
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

impl Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, |total, span| total + span)
    }
}

impl fmt::Display for Duration {
    /// Formats in the largest unit with a whole part above zero: `133ms`, `1.5s`, `20us`, `7ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0 => return f.write_str("0ms"),
            1..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            1_000_000_000.. => (1_000_000_000, "s"),
        };
        let (whole, part) = (self.0 / unit, self.0 % unit);
        if part == 0 {
            return write!(f, "{whole}{name}");
        }
        let digits = unit.ilog10() as usize;
        let fraction = format!("{part:0digits$}");
        write!(f, "{whole}.{}{name}", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_time_takes_no_more_memory() {
        assert_eq!(size_of::<Option<Time>>(), size_of::<Time>());
        assert_eq!((Time::ZERO.as_nanos(), Time::from_nanos(7).as_nanos()), (0, 7));
        assert_eq!(Time::from_nanos(u64::MAX), Time::MAX);
        assert_eq!(Time::from_nanos(u64::MAX - 9) + Duration::from_nanos(20), Time::MAX);
    }

    #[test]
    fn a_span_never_goes_below_zero() {
        let (early, late) = (Time::from_nanos(5), Time::from_nanos(9));
        assert_eq!(late.since(early), Duration::from_nanos(4));
        assert_eq!(early.since(late), Duration::ZERO);
    }

    #[test]
    fn seconds_round_to_the_nearest_nanosecond_or_are_rejected() {
        assert_eq!(Duration::from_secs_f64(0.089), Some(Duration::from_millis(89)));
        for impossible in [-1.0, f64::NAN, f64::INFINITY, 2e10] {
            assert_eq!(Duration::from_secs_f64(impossible), None, "{impossible}");
        }
    }

    #[test]
    fn prints_in_the_largest_unit() {
        let printed = [0, 7, 20_000, 3_700_000, 1_500_000_000].map(|n| Duration::from_nanos(n).to_string());
        assert_eq!(printed, ["0ms", "7ns", "20us", "3.7ms", "1.5s"]);
    }
}
