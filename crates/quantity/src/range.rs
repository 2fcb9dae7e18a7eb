//! Ranges of values: `10ms..200ms*8` (geometric), `10ms..200ms+8` (linear), `1..10` (every whole number).

use crate::{ValueError, duration, object_size, rate};

/// Maximum number of values of a range with steps.
const MAX_STEPS: u64 = 10_000;
/// Maximum number of whole numbers.
const MAX_WHOLE_NUMBERS: u64 = 1_000_000;
/// Significant digits of the values between the ends of a geometric range.
const GEOMETRIC_DIGITS: i32 = 3;
/// The same of a linear range.
const LINEAR_DIGITS: i32 = 6;

/// Steps between the ends of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steps {
    /// Each value is a constant factor above the one before.
    Geometric(u64),
    /// Each value is a constant amount above the one before.
    Linear(u64),
    /// Every whole number.
    Whole,
}

/// Expands a range into the texts of its values, the ends included and unchanged; `None` for a text that is not a range.
///
/// Values between the ends are rounded to three significant digits in a geometric range, to six in a linear one. Whole
/// numbers without a fraction at both ends stay whole where their unit does not divide (packets, bytes, counts).
///
/// # Errors
/// Ends that are not numbers of one kind, a geometric range from zero, fewer than two values, more than
/// 10,000 values with steps or a million whole numbers.
pub fn expand(text: &str) -> Option<Result<Vec<String>, ValueError>> {
    let (first, rest) = text.split_once("..").filter(|(first, _)| begins_with_digit(first))?;
    let expanded = steps(rest).and_then(|(last, steps)| values(first.trim(), last.trim(), steps));
    Some(expanded.ok_or_else(|| ValueError::NotA {
        what: "a range",
        given: text.to_owned(),
        example: "both ends and the number of values, such as 10ms..200ms*8 (geometric) or 10ms..200ms+8 (linear), \
                  or whole numbers such as 1..10",
    }))
}

fn begins_with_digit(text: &str) -> bool {
    text.trim_start().starts_with(|letter: char| letter.is_ascii_digit())
}

/// Splits `200ms*8` into the end and the steps.
fn steps(rest: &str) -> Option<(&str, Steps)> {
    let Some(at) = rest.rfind(['*', '+']) else { return Some((rest, Steps::Whole)) };
    let count = rest.get(at + 1..)?.trim();
    let count: u64 = count.bytes().all(|byte| byte.is_ascii_digit()).then(|| count.parse().ok())??;
    let last = rest.get(..at)?;
    if !(2..=MAX_STEPS).contains(&count) {
        return None;
    }
    Some((last, if rest[at..].starts_with('*') { Steps::Geometric(count) } else { Steps::Linear(count) }))
}

fn values(first: &str, last: &str, steps: Steps) -> Option<Vec<String>> {
    if let Steps::Whole = steps {
        let whole = |text: &str| -> Option<u64> {
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
        };
        let (first, last) = (whole(first)?, whole(last)?);
        let count = last.checked_sub(first)?;
        return (count < MAX_WHOLE_NUMBERS).then(|| (first..=last).map(|value| value.to_string()).collect());
    }
    let ((from, from_unit), (to, to_unit)) = (split(first)?, split(last)?);
    // Zero needs no unit.
    let from_unit = if from_unit.is_empty() && from == 0.0 { to_unit } else { from_unit };
    let to = to * factor(to_unit, from_unit)?;
    let is_whole = IN_WHOLE_NUMBERS.contains(&from_unit.to_ascii_lowercase().as_str())
        && [from, to].iter().all(|end| end.fract() == 0.0);
    let (count, value): (u64, Box<dyn Fn(f64) -> f64>) = match steps {
        Steps::Geometric(count) if from > 0.0 && to > 0.0 => {
            (count, Box::new(move |share| rounded(from * (to / from).powf(share), GEOMETRIC_DIGITS)))
        }
        Steps::Linear(count) => {
            (count, Box::new(move |share| rounded(from + (to - from) * share, LINEAR_DIGITS)))
        }
        Steps::Geometric(_) | Steps::Whole => return None,
    };
    let between = (1..count - 1).map(|index| {
        let value = value(index as f64 / (count - 1) as f64);
        let value = if is_whole { value.round() } else { value };
        format!("{value}{from_unit}")
    });
    Some([first.to_owned()].into_iter().chain(between).chain([last.to_owned()]).collect())
}

/// Units of values that are whole numbers: counts, packets, bytes.
const IN_WHOLE_NUMBERS: [&str; 3] = ["", "p", "b"];

/// Splits a number and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

/// Number of units `of` in one `unit` of the same kind.
fn factor(unit: &str, of: &str) -> Option<f64> {
    if unit == of {
        return Some(1.0);
    }
    let one = |unit: &str| format!("1{unit}");
    let times = || Some(duration(&one(unit)).ok()?.as_secs_f64() / duration(&one(of)).ok()?.as_secs_f64());
    let rates = || {
        let bits = |unit: &str| Some(rate(&one(unit)).ok()?.bits_per_second_f64());
        Some(bits(unit)? / bits(of)?)
    };
    let sizes = || Some(object_size(&one(unit)).ok()?.as_f64() / object_size(&one(of)).ok()?.as_f64());
    times().or_else(rates).or_else(sizes)
}

/// Rounds a positive number to this number of significant digits.
fn rounded(value: f64, digits: i32) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    // Through decimal text, so that the result is the nearest number to its digits.
    let decimals = usize::try_from(digits - 1).unwrap_or_default();
    format!("{value:.decimals$e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        expand(text).unwrap().unwrap().join(" ")
    }

    #[test]
    fn geometric_and_linear_ranges_have_exact_ends() {
        assert_eq!(expanded("10ms..200ms*4"), "10ms 27.1ms 73.7ms 200ms");
        assert_eq!(expanded("10ms..200ms+20").split(' ').nth(1), Some("20ms"));
        assert_eq!(expanded("100us..10ms*3"), "100us 1000us 10ms");
        assert_eq!(expanded("0..5%+6"), "0 1% 2% 3% 4% 5%");
        assert_eq!(expanded("0%..1%+3"), "0% 0.5% 1%");
        assert_eq!(expanded("1Mbit..1Gbit*4"), "1Mbit 10Mbit 100Mbit 1Gbit");
        assert_eq!(expanded("5p..100p*3"), "5p 22p 100p");
        assert_eq!(expanded("200ms..10ms*2"), "200ms 10ms");
    }

    #[test]
    fn whole_numbers_need_no_count() {
        assert_eq!(expanded("1..10"), "1 2 3 4 5 6 7 8 9 10");
        assert_eq!(expanded("7..7"), "7");
        assert_eq!(expanded("1..12+3"), "1 7 12");
    }

    #[test]
    fn rejects_invalid_ranges_and_leaves_other_texts() {
        for text in [
            "10ms..200ms",
            "10ms..200ms*1",
            "10ms..200ms*x",
            "0ms..1s*3",
            "10ms..5Mbit*3",
            "5..1",
            "1..9999999",
            "1..",
            "1ms..*3",
            "10ms..200ms*99999999999999999999",
            "1...3",
            "1..2..3",
        ] {
            assert!(expand(text).is_some_and(|result| result.is_err()), "{text}");
        }
        assert!(["10ms", "packets:3+17", "../site", "", "all"].iter().all(|text| expand(text).is_none()));
    }
}
