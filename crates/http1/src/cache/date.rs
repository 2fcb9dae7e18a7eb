//! Dates as they stand in fields, in the three forms that may be met (RFC 9110, section 5.6.7).
//!
//! Not a calendar: it only reads, and knows no zone but Greenwich.

use wire::Time;

/// The time, with 1970 as its zero, that a field says; `None` if it says none that can be.
pub(super) fn parse(value: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let civil = match *words.as_slice() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        [_, day, month, year, time, "GMT" | "UTC"] => Civil::of(day, month, four_digits(year)?, time)?,
        // Sunday, 06-Nov-94 08:49:37 GMT
        [_, date, time, "GMT" | "UTC"] => {
            let mut parts = date.splitn(3, '-');
            let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
            Civil::of(day, month, two_digits(year)?, time)?
        }
        // Sun Nov  6 08:49:37 1994
        [_, month, day, time, year] => Civil::of(day, month, four_digits(year)?, time)?,
        _ => return None,
    };
    civil.since_1970()
}

struct Civil {
    year: u64,
    /// From 1.
    month: u64,
    day: u64,
    second_of_day: u64,
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Civil {
    fn of(day: &str, month: &str, year: u64, time: &str) -> Option<Self> {
        let month = 1 + MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? as u64;
        let mut parts = time.splitn(3, ':').map(number);
        let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
        // The last second of a day may be one that was put in.
        let is_possible = hour < 24 && minute < 60 && second <= 60;
        let day = number(day).filter(|day| (1..=31).contains(day))?;
        is_possible.then_some(Self { year, month, day, second_of_day: hour * 3_600 + minute * 60 + second })
    }

    fn since_1970(&self) -> Option<Time> {
        let Self { year, month, day, second_of_day } = *self;
        // Years that begin in March: a leap day is then the last of its year.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
        let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
        let seconds = days.checked_sub(719_468)?.checked_mul(86_400)?.checked_add(second_of_day)?;
        // Nanoseconds in 64 bits last until 2554.
        seconds.checked_mul(1_000_000_000).map(Time::from_nanos)
    }
}

fn number(digits: &str) -> Option<u64> {
    let is_short = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_short.then(|| digits.parse().ok()).flatten()
}

fn four_digits(year: &str) -> Option<u64> {
    number(year).filter(|_| year.len() == 4)
}

/// Of 1970 to 2069: the form was out of use before anybody had to write another year in it.
fn two_digits(year: &str) -> Option<u64> {
    let year = number(year).filter(|_| year.len() == 2)?;
    Some(if year < 70 { 2_000 + year } else { 1_900 + year })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + wire::Duration::from_secs(seconds)
    }

    #[test]
    fn the_date_of_the_standard_is_read_in_all_three_forms() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse(text.as_bytes()), Some(at(784_111_777)), "{text}");
        }
        assert_eq!(parse(b"Thu, 01 Jan 1970 00:00:00 GMT"), Some(at(0)));
        assert_eq!(parse(b"Thu, 29 Feb 2024 23:59:59 GMT"), Some(at(1_709_251_199)));
        assert_eq!(parse(b"Wednesday, 18-Aug-50 02:01:18 GMT"), Some(at(2_544_400_878)));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "0",
            "-1",
            "tomorrow",
            "Sun, 06 Nov 1994",
            "Sun, 06 Nov 1994 25:00:00 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 PST",
            "Sun, 06 Now 1994 08:49:37 GMT",
            "Sun, 06 Nov 1969 08:49:37 GMT",
            "Sun, 06 Nov 9999 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "\u{ff}",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
