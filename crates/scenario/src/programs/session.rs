//! Parsers of a session's settings, with their ranges.

use std::num::NonZeroU32;

use quantity::ValueError;
use wire::Duration;

/// Parses a number of pages, 1 to 100.
pub(super) fn pages(text: &str) -> Result<NonZeroU32, ValueError> {
    parse_count(text, 100, "a number of pages", "100")
}

/// Parses an initial window, 1 to 65,535 segments.
pub(super) fn initial_window(text: &str) -> Result<NonZeroU32, ValueError> {
    parse_count(text, u32::from(u16::MAX), "a window in segments", "65535")
}

/// Parses a retransmission timeout, 1 ms to 10 min.
pub(super) fn rto(text: &str) -> Result<Duration, ValueError> {
    let (min, max) = (Duration::from_millis(1), Duration::from_secs(600));
    let timeout = quantity::duration(text)?;
    let out_of_range = || ValueError::OutOfRange {
        what: "a retransmission timeout",
        given: text.to_owned(),
        min: "1ms",
        max: "10min",
    };
    (min..=max).contains(&timeout).then_some(timeout).ok_or_else(out_of_range)
}

/// Parses an idle time above zero.
pub(super) fn idle_after(text: &str) -> Result<Duration, ValueError> {
    let time = quantity::duration(text)?;
    let out_of_range =
        || ValueError::OutOfRange { what: "an idle time", given: text.to_owned(), min: "1ns", max: "1h" };
    (time > Duration::ZERO).then_some(time).ok_or_else(out_of_range)
}

fn parse_count(
    text: &str,
    max: u32,
    what: &'static str,
    max_text: &'static str,
) -> Result<NonZeroU32, ValueError> {
    let invalid = || ValueError::NotA { what, given: text.to_owned(), example: "a whole number such as 3" };
    let number: NonZeroU32 = text.parse().map_err(|_| invalid())?;
    let out_of_range = || ValueError::OutOfRange { what, given: text.to_owned(), min: "1", max: max_text };
    (number.get() <= max).then_some(number).ok_or_else(out_of_range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_their_range_are_rejected() {
        assert_eq!(pages("100").map(NonZeroU32::get), Ok(100));
        assert!(["0", "101", "-1", "2.5", ""].into_iter().all(|text| pages(text).is_err()));
        assert_eq!(initial_window("65535").map(NonZeroU32::get), Ok(65_535));
        assert!(initial_window("65536").is_err());
        assert_eq!(rto("1ms"), Ok(Duration::from_millis(1)));
        assert!(rto("0s").is_err() && rto("1h").is_err() && rto("5").is_err());
        assert!(idle_after("0s").is_err() && idle_after("1h").is_ok());
    }
}
