//! Dates in fields, in their three formats (RFC 9110, section 5.6.7).
//!
//! Not a calendar: it only parses, and accepts no zone but GMT.

use wire::Time;

/// Parses an `HTTP-date` into the time since 1970; `None` if it is invalid.
///
/// Letters match in any case, and `GMT` is the only zone, as RFC 9111, section 4.2, requires of caches.
pub(super) fn parse(value: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    let words: Vec<&str> = text.split(' ').collect();
    let civil = match *words.as_slice() {
        // IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT
        [weekday, day, month, year, time, zone] if is_weekday(weekday, 3, ",") && is_gmt(zone) => {
            Civil::of(two_digits(day)?, month, four_digits(year)?, time)?
        }
        // rfc850-date: Sunday, 06-Nov-94 08:49:37 GMT
        [weekday, date, time, zone] if is_weekday(weekday, usize::MAX, ",") && is_gmt(zone) => {
            let mut parts = date.split('-');
            let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
            parts.next().is_none().then_some(())?;
            Civil::of(two_digits(day)?, month, full_year(two_digits(year)?), time)?
        }
        // asctime-date, where a day of one digit has a second space before it: Sun Nov  6 08:49:37 1994
        [weekday, month, "", day, time, year] if is_weekday(weekday, 3, "") => {
            Civil::of(digits(day, 1)?, month, four_digits(year)?, time)?
        }
        [weekday, month, day, time, year] if is_weekday(weekday, 3, "") => {
            Civil::of(two_digits(day)?, month, four_digits(year)?, time)?
        }
        _ => return None,
    };
    civil.since_1970()
}

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Whether `word` is a weekday, cut to `letters` letters, followed by `end`.
fn is_weekday(word: &str, letters: usize, end: &str) -> bool {
    let name = word.strip_suffix(end).unwrap_or_default();
    WEEKDAYS.iter().any(|day| day.get(..letters).unwrap_or(day).eq_ignore_ascii_case(name))
}

const fn is_gmt(zone: &str) -> bool {
    zone.eq_ignore_ascii_case("GMT")
}

struct Civil {
    year: u64,
    /// Month, from 1.
    month: u64,
    day: u64,
    second_of_day: u64,
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Civil {
    fn of(day: u64, month: &str, year: u64, time: &str) -> Option<Self> {
        let month = 1 + MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? as u64;
        let mut parts = time.splitn(3, ':').map(two_digits);
        let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
        // A leap second may be inserted at the end of a day.
        let is_possible = hour < 24 && minute < 60 && second <= 60;
        (is_possible && (1..=31).contains(&day)).then_some(Self {
            year,
            month,
            day,
            second_of_day: hour * 3_600 + minute * 60 + second,
        })
    }

    fn since_1970(&self) -> Option<Time> {
        let Self { year, month, day, second_of_day } = *self;
        // Years that begin in March: a leap day is then the last of its year.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
        let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
        let seconds = days.checked_sub(719_468)?.checked_mul(86_400)?.checked_add(second_of_day)?;
        // Nanoseconds in 64 bits last until 2554; later times are clamped (RFC 9111, section 4.2).
        Some(Time::from_nanos(seconds.saturating_mul(1_000_000_000)))
    }
}

/// Parses a number of exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<u64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn four_digits(text: &str) -> Option<u64> {
    digits(text, 4)
}

fn two_digits(text: &str) -> Option<u64> {
    digits(text, 2)
}

/// Year of 1970 to 2069 with these last two digits.
const fn full_year(last_two: u64) -> u64 {
    if last_two < 70 { 2_000 + last_two } else { 1_900 + last_two }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + wire::Duration::from_secs(seconds)
    }

    #[test]
    fn reads_all_three_date_formats() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse(text.as_bytes()), Some(at(784_111_777)), "{text}");
        }
        assert_eq!(parse(b"SUN, 06 nov 1994 08:49:37 gMT"), Some(at(784_111_777)));
        assert_eq!(parse(b"Sun Nov 16 08:49:37 1994"), Some(at(784_975_777)));
        assert!(parse(b"Fri, 31 Dec 9999 23:59:59 GMT") > parse(b"Mon, 01 Jan 2550 00:00:00 GMT"));
        assert_eq!(parse(b"Thu, 01 Jan 1970 00:00:00 GMT"), Some(at(0)));
        assert_eq!(parse(b"Thu, 29 Feb 2024 23:59:59 GMT"), Some(at(1_709_251_199)));
        assert_eq!(parse(b"Wednesday, 18-Aug-50 02:01:18 GMT"), Some(at(2_544_400_878)));
    }

    #[test]
    fn rejects_invalid_dates() {
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
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun, 06  Nov 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06 Nov 1994 08:49:37:00 GMT",
            "Son, 06 Nov 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun Nov 6 08:49:37 1994",
            "Sun Nov  16 08:49:37 1994",
            "Sun, 06 Nov 1994 08:49 GMT",
            "\u{ff}",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
