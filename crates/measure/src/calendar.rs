//! A date for people, from seconds since 1970. Not a clock: `clock` reads it.

use wire::Duration;

/// As ISO 8601 writes it, to the second, in UTC: `1997-06-24T00:00:00Z`.
pub(crate) fn iso_8601(since_1970: Duration) -> String {
    const DAY: u64 = 86_400;
    let seconds = since_1970.as_nanos() / 1_000_000_000;
    let (days, second) = (seconds / DAY, seconds % DAY);
    // The Gregorian calendar repeats every 400 years (146,097 days); years begin in March, so that a leap day is
    // the last of its year.
    let since_march_of_year_0 = days + 719_468;
    let (era, day) = (since_march_of_year_0 / 146_097, since_march_of_year_0 % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}Z")
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
    }
}
