//! Exact decimal numbers followed by a unit.
//!
//! Exponents are rejected.

/// `digits / 10^scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u128,
    scale: u32,
}

/// Error of a text that does not begin with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecimalError {
    /// No digits, a sign, or two points.
    Malformed,
    /// More digits than any quantity has.
    Huge,
}

/// Maximum number of digits: no quantity reaches 10^19 in any unit.
const MAX_DIGITS: usize = 19;
/// Maximum number of decimals. With this bound, a value that overflows 128 bits exceeds 64 bits in its smallest unit,
/// too.
const MAX_DECIMALS: u32 = 18;

impl Decimal {
    /// Splits `text` into the number at its start and the unit, without the space between.
    pub(super) fn split(text: &str) -> Result<(Self, &str), DecimalError> {
        let text = text.trim();
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let (whole, fraction) = match number.split_once('.') {
            Some((_, fraction)) if fraction.is_empty() || fraction.contains('.') => {
                return Err(DecimalError::Malformed);
            }
            Some(parts) => parts,
            None => (number, ""),
        };
        if whole.is_empty() {
            return Err(DecimalError::Malformed);
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        if whole.len() > MAX_DIGITS {
            return Err(DecimalError::Huge);
        }
        let scale = match u32::try_from(fraction.len()) {
            Ok(scale @ 0..=MAX_DECIMALS) => scale,
            Ok(_) | Err(_) => return Err(DecimalError::Malformed),
        };
        let digits = whole
            .bytes()
            .chain(fraction.bytes())
            .fold(0_u128, |digits, byte| digits * 10 + u128::from(byte - b'0'));
        Ok((Self { digits, scale }, unit.trim_start()))
    }

    /// Returns the number times `factor`, rounded to the nearest whole number, halves up; `None` above 64 bits.
    pub(super) fn times(self, factor: u128) -> Option<u64> {
        let Self { digits, scale } = self;
        let scaled = digits.checked_mul(factor)?;
        let divisor = 10_u128.pow(scale);
        let (whole, remainder) = (scaled / divisor, scaled % divisor);
        u64::try_from(whole + u128::from(remainder >= divisor.div_ceil(2))).ok()
    }

    /// Returns whether the number has no decimals.
    pub(super) const fn is_whole(self) -> bool {
        self.scale == 0
    }

    /// Returns whether the number is zero.
    pub(super) const fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// Returns the number over 100, as the nearest floating-point number.
    pub(super) fn percent(self) -> f64 {
        let Self { digits, scale } = self;
        format!("{digits}e-{}", scale + 2).parse().expect("digits with an exponent are a number")
    }
}

/// Multiplies a decimal number in text by 100.
pub(super) fn times_hundred(number: &str) -> String {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let (shifted, remainder) = fraction.split_at(fraction.len().min(2));
    let digits = format!("{whole}{shifted:0<2}");
    let whole = match digits.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    if remainder.is_empty() { whole.to_owned() } else { format!("{whole}.{remainder}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(text: &str, factor: u128) -> Option<u64> {
        Decimal::split(text).unwrap().0.times(factor)
    }

    #[test]
    fn splits_numbers_and_units() {
        assert_eq!(Decimal::split(" 1.50 ms "), Ok((Decimal { digits: 15, scale: 1 }, "ms")));
        assert_eq!(Decimal::split("007"), Ok((Decimal { digits: 7, scale: 0 }, "")));
        for malformed in ["", "ms", ".5s", "5.s", "1.2.3s", "-1s", "+1s", "0.0000000000000000001s"] {
            assert_eq!(Decimal::split(malformed), Err(DecimalError::Malformed), "{malformed}");
        }
        assert_eq!(Decimal::split("10000000000000000000ms"), Err(DecimalError::Huge));
    }

    #[test]
    fn times_hundred_moves_the_point() {
        let shifted = ["0", "1", "0.001", "0.07", "0.5", "0.123456"].map(times_hundred);
        assert_eq!(shifted, ["0", "100", "0.1", "7", "50", "12.3456"]);
    }

    #[test]
    fn scaling_is_exact_and_rounds_halves_up() {
        assert_eq!(times("1.02", 1_000 << 20), Some(1_069_547_520));
        assert_eq!(times("2.5", 1), Some(3));
        assert_eq!(times("2.4999", 1), Some(2));
        assert_eq!(times("1844674407370955161.5", 10), Some(u64::MAX));
        assert_eq!(times("1844674407370955161.6", 10), None);
    }
}
