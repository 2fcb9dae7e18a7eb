//! Parsers of times in logs, to [`Time`] since 1970 in UTC.
//!
//! Proleptic Gregorian calendar, no leap seconds (a 60th second is the next minute's first), no times
//! before 1970.

use wire::{Duration, Time};

use crate::number;

/// Parser of the time that CLF has between brackets, `01/Aug/1995:02:00:00 -0400`. It caches the minute,
/// which most lines of a busy log repeat.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Text of the cached minute, up to the colon before the seconds.
    minute: [u8; MINUTE],
    zone: [u8; ZONE],
    /// Start of that minute, in seconds since 1970.
    began: u64,
}

/// `01/Aug/1995:02:00:`
const MINUTE: usize = 18;
/// ` -0400`
const ZONE: usize = 6;
/// `01/Aug/1995:02:00:00 -0400`
pub const LENGTH: usize = MINUTE + 2 + ZONE;

impl Clock {
    /// Parses a CLF time; `None` if it is invalid.
    #[inline]
    pub fn read(&mut self, text: &[u8; LENGTH]) -> Option<Time> {
        let (minute, rest) = text.split_first_chunk::<MINUTE>()?;
        let (seconds, zone) = rest.split_first_chunk::<2>()?;
        let second = two_digits(*seconds)?;
        if *minute != self.minute || zone != self.zone {
            self.began = minute_of(minute, zone)?;
            self.minute = *minute;
            self.zone.copy_from_slice(zone);
        }
        (second <= 60).then(|| Time::from_nanos((self.began + second) * NANOS))
    }

    /// Parses a time in CLF, ISO 8601, or as a number since 1970. The number of digits decides between
    /// seconds, milliseconds, microseconds and nanoseconds.
    pub fn any(&mut self, text: &[u8]) -> Option<Time> {
        if let Ok(clf) = text.try_into() {
            return self.read(clf).or_else(|| iso_8601(text));
        }
        match number::digits(text) {
            Some((_, count)) if text.get(count) == Some(&b'-') => iso_8601(text),
            Some((whole, count @ 12..=19)) if count == text.len() => since_1970(whole),
            _ => epoch(text),
        }
    }
}

/// Converts a whole number since 1970: of seconds, or, with more digits, of milli-, micro- or nanoseconds.
pub fn since_1970(whole: u64) -> Option<Time> {
    let nanos = match whole {
        0..100_000_000_000 => NANOS,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        100_000_000_000_000_000.. => 1,
    };
    whole.checked_mul(nanos).map(Time::from_nanos)
}

const NANOS: u64 = 1_000_000_000;

fn minute_of(minute: &[u8; MINUTE], zone: &[u8]) -> Option<u64> {
    let [d1, d2, b'/', month @ .., b'/', y1, y2, y3, y4, b':', h1, h2, b':', m1, m2, b':'] = *minute else {
        return None;
    };
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(&month))? as u64 + 1;
    let year = two_digits([y1, y2])? * 100 + two_digits([y3, y4])?;
    let date = Date { year, month, day: two_digits([d1, d2])? };
    let hours = two_digits([h1, h2]).filter(|hours| *hours < 24)?;
    let minutes = two_digits([m1, m2]).filter(|minutes| *minutes < 60)?;
    let [b' ', zone @ ..] = zone else { return None };
    at_zone(date.seconds()? + hours * 3_600 + minutes * 60, zone)
}

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Converts local seconds to UTC by a zone: `+0200`, `-04:00`, `Z`.
fn at_zone(local: u64, zone: &[u8]) -> Option<u64> {
    let (sign, hours, minutes) = match *zone {
        [b'Z' | b'z'] => return Some(local),
        [sign, h1, h2, m1, m2] | [sign, h1, h2, b':', m1, m2] => {
            (sign, two_digits([h1, h2])?, two_digits([m1, m2])?)
        }
        _ => return None,
    };
    let offset = hours * 3_600 + minutes * 60;
    match sign {
        b'+' => local.checked_sub(offset),
        b'-' => Some(local + offset),
        _ => None,
    }
}

/// Parses `2018-07-02T22:23:00.186641Z`: also with a space for the `T`, a comma for the point, an offset, or
/// no zone (UTC).
pub fn iso_8601(text: &[u8]) -> Option<Time> {
    let (date, rest) = text.split_at_checked(10)?;
    let [b'T' | b't' | b' ', rest @ ..] = rest else { return None };
    let (time, rest) = rest.split_at_checked(8)?;
    let (fraction, zone) = match rest {
        [b'.' | b',', rest @ ..] => {
            rest.split_at(rest.iter().take_while(|byte| byte.is_ascii_digit()).count())
        }
        _ => (&[][..], rest),
    };
    let seconds = date_time(date, time)?;
    let seconds = if zone.is_empty() { seconds } else { at_zone(seconds, zone)? };
    nanoseconds(seconds, fraction)
}

/// Parses `2002-05-24` and `20:18:01`, with or without a fraction, the two fields of W3C extended logs; UTC.
pub fn date_and_time(date: &[u8], time: &[u8]) -> Option<Time> {
    let (time, fraction) = match time.split_at_checked(8)? {
        (time, []) => (time, &[][..]),
        (time, [b'.', fraction @ ..]) => (time, fraction),
        _ => return None,
    };
    nanoseconds(date_time(date, time)?, fraction)
}

/// Parses seconds since 1970 with decimals, `1646861401.524`.
pub fn epoch(text: &[u8]) -> Option<Time> {
    number::billionths(text).map(Time::from_nanos)
}

fn date_time(date: &[u8], time: &[u8]) -> Option<u64> {
    let [y1, y2, y3, y4, b'-', o1, o2, b'-', d1, d2] = *date else { return None };
    let [h1, h2, b':', m1, m2, b':', s1, s2] = *time else { return None };
    let year = two_digits([y1, y2])? * 100 + two_digits([y3, y4])?;
    let date = Date { year, month: two_digits([o1, o2])?, day: two_digits([d1, d2])? };
    let hours = two_digits([h1, h2]).filter(|hours| *hours < 24)?;
    let minutes = two_digits([m1, m2]).filter(|minutes| *minutes < 60)?;
    let seconds = two_digits([s1, s2]).filter(|seconds| *seconds <= 60)?;
    Some(date.seconds()? + hours * 3_600 + minutes * 60 + seconds)
}

fn nanoseconds(seconds: u64, fraction: &[u8]) -> Option<Time> {
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let padded = fraction.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    let nanos = padded.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some(Time::from_nanos(seconds.checked_mul(NANOS)?) + Duration::from_nanos(nanos))
}

/// A day.
struct Date {
    year: u64,
    month: u64,
    day: u64,
}

impl Date {
    /// Seconds from 1970 to its beginning; `None` for an invalid day, and outside 1970 to 2500.
    fn seconds(&self) -> Option<u64> {
        let Self { year, month, day } = *self;
        let is_leap_year = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        let length = match month {
            2 if is_leap_year => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            _ => return None,
        };
        if !(1_970..=2_500).contains(&year) || !(1..=length).contains(&day) {
            return None;
        }
        // Years begin in March, so that the leap day is the last: months before it are 31, 30, 31, 30, 31 days long.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
        // Days from the first of March of the year 0 to 1970.
        Some((days - 719_468) * 86_400)
    }
}

#[inline]
fn two_digits([tens, ones]: [u8; 2]) -> Option<u64> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| u64::from(tens) * 10 + u64::from(ones))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clf(text: &str) -> Option<u64> {
        Clock::default().read(text.as_bytes().try_into().unwrap()).map(|time| time.as_nanos() / NANOS)
    }

    #[test]
    fn paper_times_are_those_of_date_1() {
        // date -u -d '1995-08-01 02:00:00 -0400' +%s, and so on.
        let cases = [
            ("01/Aug/1995:02:00:00 -0400", 807_256_800),
            ("29/Feb/2000:23:59:59 +0000", 951_868_799),
            ("01/Jan/1970:00:00:00 +0000", 0),
            ("31/Dec/2099:23:59:59 +0100", 4_102_441_199),
        ];
        for (text, seconds) in cases {
            assert_eq!(clf(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn rejects_invalid_times() {
        for text in [
            "30/Feb/2000:00:00:00 +0000",
            "29/Feb/1900:00:00:00 +0000",
            "01/Foo/2000:00:00:00 +0000",
            "01/Jan/2000:24:00:00 +0000",
            "01/Jan/2000:00:60:00 +0000",
            "01/Jan/2000:00:00:61 +0000",
            "01/Jan/1969:23:59:59 +0000",
            "01/Jan/1970:00:00:00 +0100",
            "01/Jan/2000:00:00:00 ~0000",
            "01-Jan-2000:00:00:00 +0000",
        ] {
            assert_eq!(clf(text), None, "{text}");
        }
    }

    #[test]
    fn cached_minute_is_dropped_when_the_zone_changes() {
        let mut clock = Clock::default();
        let mut read = |text: &[u8; LENGTH]| clock.read(text).map(|time| time.as_nanos() / NANOS);
        let summer = read(b"25/Oct/2015:02:30:01 +0200").unwrap();
        assert_eq!(read(b"25/Oct/2015:02:30:02 +0200"), Some(summer + 1));
        assert_eq!(read(b"25/Oct/2015:02:30:01 +0100"), Some(summer + 3_600));
    }

    #[test]
    fn all_time_formats_agree() {
        let expected = Some(Time::from_nanos(1_530_570_180_186_641_000));
        assert_eq!(iso_8601(b"2018-07-02T22:23:00.186641Z"), expected);
        assert_eq!(iso_8601(b"2018-07-03 00:23:00,186641+02:00"), expected);
        assert_eq!(date_and_time(b"2018-07-02", b"22:23:00.186641"), expected);
        assert_eq!(epoch(b"1530570180.186641"), expected);
        for text in
            ["2018-07-02", "2018-07-02T22:23", "2018-07-02T22:23:00X", "2018-13-02T22:23:00Z", "", "é"]
        {
            assert_eq!(iso_8601(text.as_bytes()), None, "{text}");
        }
    }
}
