//! Rounding as a paper prints its numbers, so that "exact" means equal in print.
//!
//! Not for our own tables: those have `render::output::number`.

use serde::Deserialize;

/// Rounding of a column of a published table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Digits {
    /// `significant-3`: this number of significant figures, without trailing zeros: 5.4, 1740, 0.111.
    Significant(usize),
    /// `decimals-2`: this number of decimals.
    Decimals(usize),
    /// `whole`: no decimals.
    Whole,
    /// `at-least`: a lower bound; ours is shown with two decimals.
    AtLeast,
    /// `at-most`: an upper bound; ours is shown with two decimals.
    AtMost,
}

impl Digits {
    /// The number as the paper would print it.
    pub fn print(self, value: f64) -> String {
        match self {
            Self::Significant(figures) => {
                let rounded = format!("{value:.*e}", figures.saturating_sub(1));
                // A number that was just printed can be parsed.
                rounded.parse::<f64>().map_or(rounded, |rounded| rounded.to_string())
            }
            Self::Decimals(decimals) => format!("{value:.decimals$}"),
            Self::Whole => format!("{value:.0}"),
            // No negative zero.
            Self::AtLeast | Self::AtMost => format!("{:.2}", (value * 100.0).round() / 100.0 + 0.0),
        }
    }

    /// Whether the published number is a bound.
    pub const fn is_bound(self) -> bool {
        matches!(self, Self::AtLeast | Self::AtMost)
    }

    /// Whether ours equals the published number as printed, or meets the published bound.
    pub fn agree(self, published: f64, ours: f64) -> bool {
        match self {
            Self::Significant(_) | Self::Decimals(_) | Self::Whole => {
                self.print(published) == self.print(ours)
            }
            Self::AtLeast => ours >= published,
            Self::AtMost => ours <= published,
        }
    }
}

impl TryFrom<String> for Digits {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok().filter(|number| (1..=15).contains(number));
        let digits = match name.split_once('-') {
            Some(("significant", figures)) => number(figures).map(Self::Significant),
            Some(("decimals", decimals)) => number(decimals).map(Self::Decimals),
            Some(("at", "least")) => Some(Self::AtLeast),
            Some(("at", "most")) => Some(Self::AtMost),
            None if name == "whole" => Some(Self::Whole),
            Some(_) | None => None,
        };
        digits.ok_or_else(|| {
            format!("digits `{name}`: write `significant-3`, `decimals-2`, `whole`, `at-least` or `at-most`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_as_table_3_prints_them() {
        let printed =
            [5.402, 1_736.1, 100_951.0, 0.111_39, 1.7].map(|value| Digits::Significant(3).print(value));
        assert_eq!(printed, ["5.4", "1740", "101000", "0.111", "1.7"]);
    }

    #[test]
    fn agreement_compares_numbers_as_printed() {
        assert!(Digits::Decimals(2).agree(1.0, 1.004) && !Digits::Decimals(2).agree(1.0, 1.006));
        assert!(Digits::AtLeast.agree(1.8, 1.96) && !Digits::AtLeast.agree(1.8, 1.79));
        assert!(Digits::AtMost.agree(1.8, 1.79) && !Digits::AtMost.agree(1.8, 1.96));
        assert!(Digits::Whole.agree(9.0, 8.98));
    }

    #[test]
    fn invalid_digits_are_refused() {
        for name in ["", "three", "significant-0", "significant-99", "decimals-x", "at-best"] {
            assert!(Digits::try_from(name.to_owned()).is_err(), "{name}");
        }
    }
}
