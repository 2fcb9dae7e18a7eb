//! Times since 1970 as people write them, in UTC. The way back is `scenario::access_log::clock`'s.

use wire::Time;

/// `1995-08-01 06:00:00`.
pub fn to_the_second(time: Time) -> String {
    let seconds = time.since(Time::ZERO).as_nanos() / 1_000_000_000;
    let (year, month, day) = date(seconds / 86_400);
    let (hours, minutes, seconds) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}")
}

/// Year, month and day of a day since 1970.
pub fn date(day: u64) -> (u64, u64, u64) {
    // Years that begin in March, in stretches of 400 years from the first of March of the year 0.
    let day = day + 719_468;
    let (stretch, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + stretch * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use scenario::access_log::clock;

    use super::*;

    #[test]
    fn a_time_is_written_as_it_would_be_read() {
        let mut day = 0;
        while day < 180_000 {
            let time = Time::from_nanos((day * 86_400 + day % 86_400) * 1_000_000_000);
            assert_eq!(clock::iso_8601(to_the_second(time).as_bytes()), Some(time), "day {day}");
            day += 97;
        }
        let leap = clock::iso_8601(b"2000-02-29 23:59:59").unwrap();
        assert_eq!(to_the_second(leap), "2000-02-29 23:59:59");
    }
}
