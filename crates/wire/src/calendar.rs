//! Dates in UTC for users, access logs and HTTP, formatted from the time since 1970.

use crate::Duration;

/// Formats ISO 8601, to the second: `1997-06-24T00:00:00Z`.
pub fn iso_8601(since_1970: Duration) -> String {
    let (date, time) = date_and_time(since_1970);
    format!("{date}T{time}Z")
}

/// Formats date and time for users, to the second: `1997-06-24 00:00:00`.
pub fn date_time(since_1970: Duration) -> String {
    let (date, time) = date_and_time(since_1970);
    format!("{date} {time}")
}

/// Formats HTTP's date (RFC 9110, section 5.6.7), to the second: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn http(since_1970: Duration) -> String {
    let (day_since_1970, time) = split(since_1970);
    let (year, month, day) = date(day_since_1970);
    format!(
        "{}, {day:02} {} {year:04} {time} GMT",
        name_at(&WEEKDAYS, day_since_1970 % 7),
        name_at(&MONTHS, month - 1)
    )
}

/// Formats the date of access logs, to the second: `06/Nov/1994:08:49:37 +0000`.
pub fn common_log(since_1970: Duration) -> String {
    let (day_since_1970, time) = split(since_1970);
    let (year, month, day) = date(day_since_1970);
    format!("{day:02}/{}/{year:04}:{time} +0000", name_at(&MONTHS, month - 1))
}

/// Returns year, month and day of a day since 1970.
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

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// 1 January 1970 was a Thursday.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

fn name_at(names: &[&'static str], index: u64) -> &'static str {
    usize::try_from(index)
        .ok()
        .and_then(|index| names.get(index))
        .expect("an index within the calendar's own names")
}

fn date_and_time(since_1970: Duration) -> (String, String) {
    let (day_since_1970, time) = split(since_1970);
    let (year, month, day) = date(day_since_1970);
    (format!("{year:04}-{month:02}-{day:02}"), time)
}

/// Returns the day since 1970, and the time of day.
fn split(since_1970: Duration) -> (u64, String) {
    let seconds = since_1970.as_nanos() / 1_000_000_000;
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    (seconds / 86_400, format!("{hour:02}:{minute:02}:{second:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_known_days() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (867_110_400, "1997-06-24T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso_8601(Duration::from_secs(seconds)), date);
        }
        assert_eq!(date_time(Duration::from_secs(867_110_401)), "1997-06-24 00:00:01");
    }

    #[test]
    fn http_date_of_the_standard_s_example() {
        let example = Duration::from_secs(784_111_777);
        assert_eq!(http(example), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(common_log(example), "06/Nov/1994:08:49:37 +0000");
    }

    #[test]
    fn weekdays_continue_across_leap_days() {
        for (seconds, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (1_709_251_200, "Fri, 01 Mar 2024 00:00:00 GMT"),
        ] {
            assert_eq!(http(Duration::from_secs(seconds)), date);
        }
    }
}
