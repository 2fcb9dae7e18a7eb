//! Dates for people, from what has passed since 1970, in UTC: when something was measured, or a line was logged.
//!
//! Not a clock, and not a parser: whoever knows the time tells it.

use wire::Duration;

const DAY: u64 = 86_400;

/// As ISO 8601 writes it, to the second: `1997-06-24T00:00:00Z`.
pub fn iso_8601(since_1970: Duration) -> String {
    let (date, time) = written(since_1970);
    format!("{date}T{time}Z")
}

/// As people write it, to the second: `1997-06-24 00:00:00`.
pub fn to_the_second(since_1970: Duration) -> String {
    let (date, time) = written(since_1970);
    format!("{date} {time}")
}

/// Year, month and day of a day since 1970.
pub const fn date(day: u64) -> (u64, u64, u64) {
    // The Gregorian calendar repeats every 400 years (146,097 days); years begin in March, so that a leap day is
    // the last of its year.
    let since_march_of_year_0 = day + 719_468;
    let (era, day) = (since_march_of_year_0 / 146_097, since_march_of_year_0 % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year + (month <= 2) as u64, month, day_of_month)
}

fn written(since_1970: Duration) -> (String, String) {
    let seconds = since_1970.as_nanos() / 1_000_000_000;
    let (year, month, day) = date(seconds / DAY);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    (format!("{year:04}-{month:02}-{day:02}"), format!("{hour:02}:{minute:02}:{second:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days_have_their_dates() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (867_110_400, "1997-06-24T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso_8601(Duration::from_secs(seconds)), date);
        }
        assert_eq!(to_the_second(Duration::from_secs(867_110_401)), "1997-06-24 00:00:01");
    }
}
