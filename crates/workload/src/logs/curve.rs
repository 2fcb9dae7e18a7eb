//! Request rate of a server: the number of requests in each minute, from a file or a synthetic day.
//!
//! A file has lines of a time (`1998-04-30 21:30`) and the requests of the minute that begins then, and anything after
//! a second comma, as in the summaries of the WorldCup98 logs.

use std::io::{self, BufRead, BufReader, Read};

use accesslog::clock;
use wire::Time;

/// Minutes since 1970, ascending, with the relative request rate of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    minutes: Vec<(u64, u64)>,
}

/// The date of the synthetic day: 1998-07-01, in minutes since 1970.
const SYNTHETIC_DAY: u64 = 10_408 * 1_440;

impl Curve {
    /// Returns a synthetic day, with four times the rate in its middle as at its ends.
    pub fn day() -> Self {
        let rate = |minute: u64| 1_000 + 3_000 * minute.min(1_439 - minute) / 720;
        Self { minutes: (0..1_440).map(|minute| (SYNTHETIC_DAY + minute, rate(minute))).collect() }
    }

    /// Parses the curve in a file's text.
    ///
    /// # Errors
    /// [`CurveError`] if reading fails, or a line (except a heading) is not a time and a number.
    pub fn read(bytes: impl Read) -> Result<Self, CurveError> {
        let mut minutes = Vec::new();
        for (number, line) in (1..).zip(BufReader::new(bytes.take(MAX_CURVE_BYTES)).lines()) {
            match minute(&line.map_err(CurveError::Io)?) {
                Some(minute) => minutes.push(minute),
                None if number == 1 => {}
                None => return Err(CurveError::Line(number)),
            }
        }
        minutes.sort_unstable();
        if minutes.iter().all(|(_, requests)| *requests == 0) {
            return Err(CurveError::Empty);
        }
        Ok(Self { minutes })
    }

    /// Distributes `requests` over the minutes: each minute's beginning, in seconds since 1970, with its number of requests.
    pub fn distribute(&self, requests: u64) -> impl Iterator<Item = (u64, u64)> {
        let total: u128 = self.minutes.iter().map(|(_, rate)| u128::from(*rate)).sum();
        // The remainder of one minute is carried to the next.
        let mut sum = 0_u128;
        let share = move |rate: u128| u64::try_from(rate * u128::from(requests) / total).unwrap_or(u64::MAX);
        self.minutes.iter().map(move |(minute, rate)| {
            let first = share(sum);
            sum += u128::from(*rate);
            (minute * 60, share(sum) - first)
        })
    }
}

/// Reason why a text is not a [`Curve`].
#[derive(Debug, thiserror::Error)]
pub enum CurveError {
    /// The reader failed.
    #[error("{0}")]
    Io(io::Error),
    /// The line of this number, from 1, is not a time and a number.
    #[error("line {0}: not a time and a number; give lines such as 1998-04-30 21:30,2")]
    Line(usize),
    /// No minute has a request.
    #[error("no requests in it; give another curve")]
    Empty,
}

/// Maximum size of a file in bytes, in case it is endless.
const MAX_CURVE_BYTES: u64 = 1 << 28;

fn minute(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split(',');
    let (time, requests) = (fields.next()?.trim(), fields.next()?.trim());
    let with_seconds = if time.len() == 16 { format!("{time}:00") } else { time.to_owned() };
    let time = clock::iso_8601(with_seconds.as_bytes())?;
    Some((time.since(Time::ZERO).as_nanos() / 60_000_000_000, requests.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_assigned_to_a_minute() {
        for requests in [0, 1, 7, 1_000_003] {
            assert_eq!(Curve::day().distribute(requests).map(|(_, count)| count).sum::<u64>(), requests);
        }
        let busiest = Curve::day().distribute(1_000_000).max_by_key(|(_, count)| *count).unwrap();
        assert!((busiest.0 / 60 - SYNTHETIC_DAY).abs_diff(720) < 3, "{busiest:?}");
    }

    #[test]
    fn a_curve_that_cannot_be_read_names_the_line() {
        let read = |text: &'static str| Curve::read(text.as_bytes()).map_err(|error| error.to_string());
        assert!(read("time,requests\n1998-04-30 21:30,2\n").is_ok());
        let line = read("time,requests\n1998-04-30 21:30,2\nzebra\n").unwrap_err();
        assert_eq!(line, "line 3: not a time and a number; give lines such as 1998-04-30 21:30,2");
        assert_eq!(read("").unwrap_err(), "no requests in it; give another curve");
    }

    #[test]
    fn a_line_is_a_time_and_a_number() {
        assert_eq!(minute("1998-04-30 21:31,11,83090"), Some((14899531, 11)));
        assert_eq!(minute("1998-04-30T21:31:59Z,11"), Some((14899531, 11)));
        assert_eq!([minute("timestamp,num_request"), minute("1998-04-30 21:31"), minute("")], [None; 3]);
    }
}
