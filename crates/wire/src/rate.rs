//! Transmission rate of a link.
//!
//! Stored in thousandths of a bit per second, because one of the papers' networks sends 29,491.2 bits per second
//! (`papers/heidemann-model#table-2`, N-Modem).

use std::fmt;

use crate::{Bytes, Duration};

/// A sending rate, above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// Creates a rate in bit/s; `None` for zero, and above 18.4 Pbit/s.
    pub const fn from_bits_per_second(bits: u64) -> Option<Self> {
        match bits.checked_mul(1_000) {
            Some(millibits) => Self::from_millibits_per_second(millibits),
            None => None,
        }
    }

    /// Creates a rate in thousandths of a bit per second; `None` for zero.
    pub const fn from_millibits_per_second(millibits: u64) -> Option<Self> {
        if millibits == 0 { None } else { Some(Self(millibits)) }
    }

    /// Returns thousandths of a bit per second.
    pub const fn millibits_per_second(self) -> u64 {
        self.0
    }

    /// Returns bits per second, for formulas.
    pub fn bits_per_second_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Returns the transmission time of `size`, rounded up to the nanosecond; saturates.
    ///
    /// A link that sends continuously must not sum these (the rounding would slow it down): it carries the remainder,
    /// like the emulated link.
    pub fn time_for(self, size: Bytes) -> Duration {
        let nanos = (u128::from(size.get()) * NANOSECONDS_AT_ONE_MILLIBIT).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Transmission takes `bytes * 8 * 1000 / (millibits/s)` seconds; this is the constant part, in nanoseconds.
const NANOSECONDS_AT_ONE_MILLIBIT: u128 = 8 * 1_000 * 1_000_000_000;

impl fmt::Display for Rate {
    /// Formats in the notation of tc(8), in the largest decimal or binary unit that divides it: `100mibit`, `28800bit`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 6] = [
            (1_000 << 30, "gibit"),
            (1_000_000_000_000, "gbit"),
            (1_000 << 20, "mibit"),
            (1_000_000_000, "mbit"),
            (1_000_000, "kbit"),
            (1_000, "bit"),
        ];
        match UNITS.iter().find(|(unit, _)| self.0.is_multiple_of(*unit)) {
            Some((unit, name)) => write!(f, "{}{name}", self.0 / unit),
            None => {
                let fraction = format!("{:03}", self.0 % 1_000);
                write!(f, "{}.{}bit", self.0 / 1_000, fraction.trim_end_matches('0'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_a_rate_of_zero() {
        assert_eq!(Rate::from_bits_per_second(0), None);
        assert_eq!(Rate::from_bits_per_second(u64::MAX), None);
    }

    #[test]
    fn sending_takes_size_over_rate_rounded_up() {
        let isdn = Rate::from_bits_per_second(128_000).unwrap();
        assert_eq!(isdn.time_for(Bytes::new(512)), Duration::from_millis(32));
        let three = Rate::from_bits_per_second(3_000_000_000).unwrap();
        assert_eq!(three.time_for(Bytes::new(1)), Duration::from_nanos(3));
        let slow = Rate::from_millibits_per_second(1).unwrap();
        assert_eq!(slow.time_for(Bytes::new(u64::MAX)), Duration::MAX);
    }

    #[test]
    fn prints_in_the_notation_of_tc() {
        let printed = [104_857_600_000, 28_800_000, 29_491_200, 10_000_000_000]
            .map(|millibits| Rate::from_millibits_per_second(millibits).unwrap().to_string());
        assert_eq!(printed, ["100mibit", "28800bit", "29491.2bit", "10mbit"]);
    }
}
