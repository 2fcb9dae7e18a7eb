//! Dates as HTTP and access logs write them (RFC 9110, section 5.6.7), in Greenwich time.
//!
//! Not a calendar: it only writes.

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn http(seconds: u64) -> String {
    let Civil { year, month, day, hour, minute, second, weekday } = Civil::of(seconds);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// `06/Nov/1994:08:49:37 +0000`.
pub(crate) fn log(seconds: u64) -> String {
    let Civil { year, month, day, hour, minute, second, weekday: _ } = Civil::of(seconds);
    format!("{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000")
}

struct Civil {
    year: u64,
    month: &'static str,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    weekday: &'static str,
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// 1 January 1970 was a Thursday.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

impl Civil {
    fn of(seconds: u64) -> Self {
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        // Years that begin in March, in eras of 400 of them: a leap day is then the last of its year.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let march_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * march_month + 2) / 5 + 1;
        let month = (march_month + 2) % 12;
        let pick = |names: &[&'static str], index| {
            usize::try_from(index).ok().and_then(|index| names.get(index).copied()).unwrap_or_default()
        };
        Self {
            year: era * 400 + year + u64::from(month < 2),
            month: pick(&MONTHS, month),
            day,
            hour: rest / 3_600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: pick(&WEEKDAYS, days % 7),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_the_standard_is_written_as_there() {
        assert_eq!(http(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(log(784_111_777), "06/Nov/1994:08:49:37 +0000");
    }

    #[test]
    fn the_first_day_and_leap_days_are_right() {
        assert_eq!(http(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http(1_709_251_199), "Thu, 29 Feb 2024 23:59:59 GMT");
        assert_eq!(http(1_709_251_200), "Fri, 01 Mar 2024 00:00:00 GMT");
    }
}
