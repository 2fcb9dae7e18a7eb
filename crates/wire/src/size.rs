//! Amounts of data in bytes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);

    /// Creates an amount of `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Returns the number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the number of bytes, for formulas.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Returns the number of pieces of at most `piece` bytes that carry these bytes: 0 for none, and `u64::MAX` if
    /// `piece` is zero (no number of empty pieces is enough).
    pub const fn pieces_of(self, piece: Self) -> u64 {
        match (self.0, piece.0) {
            (0, _) => 0,
            (_, 0) => u64::MAX,
            (whole, piece) => whole.div_ceil(piece),
        }
    }
}

impl Add for Bytes {
    type Output = Self;
    /// Saturates at 16 EiB.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    /// Zero if `other` is more.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::ZERO, |total, size| total + size)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_last_piece_counts_as_a_piece() {
        let mss = Bytes::new(512);
        assert_eq!([0, 1, 512, 513].map(|size| Bytes::new(size).pieces_of(mss)), [0, 1, 1, 2]);
        assert_eq!(Bytes::new(1).pieces_of(Bytes::ZERO), u64::MAX);
    }
}
