//! Probabilities, validated on construction.

use std::fmt;

/// A number from 0 (never) to 1 (always).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const NEVER: Self = Self(0.0);
    /// Always.
    pub const ALWAYS: Self = Self(1.0);

    /// Creates a probability; `None` below 0, above 1, and for NaN.
    pub const fn new(probability: f64) -> Option<Self> {
        if probability >= 0.0 && probability <= 1.0 { Some(Self(probability)) } else { None }
    }

    /// Returns the value, for formulas.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Probability {
    /// Formats in the notation of tc(8): `0.1%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded to a millionth of a percent, so that 0.07 is not printed as 7.000000000000001%.
        let percent = (self.0 * 1e8).round() / 1e6;
        write!(f, "{percent}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_values_outside_zero_to_one() {
        assert_eq!([0.0, 1.0].map(Probability::new), [Some(Probability::NEVER), Some(Probability::ALWAYS)]);
        assert!([-0.1, 1.000_001, f64::NAN, f64::INFINITY].iter().all(|p| Probability::new(*p).is_none()));
    }

    #[test]
    fn prints_in_the_notation_of_tc() {
        let printed = [0.0, 0.001, 0.07, 1.0].map(|p| Probability::new(p).unwrap().to_string());
        assert_eq!(printed, ["0%", "0.1%", "7%", "100%"]);
    }
}
