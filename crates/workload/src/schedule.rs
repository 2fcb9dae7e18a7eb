//! Start times of requests that are independent of the server (open schedules).
//!
//! The pauses of users who wait for responses (closed schedules) are in the plan.

use wire::seed::Random;
use wire::{Duration, Time};

use quantity::ValueError;

/// Schedule of a plan's requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// Closed: this number of users, each of whom fetches a page, pauses, and fetches the next.
    Users(u32),
    /// Open: single objects at these rates, at regular or random intervals.
    Rates(Vec<Leg>, Arrivals),
    /// Open: the times of an access log, at this multiple of its speed.
    Replay(f64),
}

/// Distribution of the intervals between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At regular intervals.
    Constant,
    /// At exponentially distributed intervals.
    Poisson,
}

/// Leg of a schedule: linear from one rate to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leg {
    /// Duration.
    pub duration: Duration,
    /// Requests per second at its beginning.
    pub from: f64,
    /// Requests per second at its end.
    pub to: f64,
}

impl Leg {
    /// Returns the number of requests due in it.
    pub fn due(&self) -> f64 {
        f64::midpoint(self.from, self.to) * self.duration.as_secs_f64()
    }

    /// Returns the time from its beginning at which `due` requests are due, in seconds.
    fn at(&self, due: f64) -> f64 {
        let slope = (self.to - self.from) / self.duration.as_secs_f64();
        // The smaller root of from * t + slope * t^2 / 2 = due, in the form that is stable where the slope is
        // zero.
        2.0 * due / (self.from + libm::sqrt((self.from * self.from + 2.0 * slope * due).max(0.0)))
    }
}

/// Parses rates: `100` a second for the given duration, `100:30s,200:30s` in steps, `0..1000:60s` in a
/// ramp.
///
/// # Errors
/// An invalid list, a rate above ten million a second, an invalid duration, or a schedule without requests.
pub fn legs(text: &str, duration: Duration) -> Result<Vec<Leg>, ValueError> {
    let legs = text.split(',').map(|part| leg(part, duration)).collect::<Result<Vec<_>, _>>()?;
    let has_requests = |leg: &Leg| leg.duration > Duration::ZERO && leg.from + leg.to > 0.0;
    match legs.iter().any(has_requests) {
        true => Ok(legs),
        false => Err(no_rate(text)),
    }
}

fn no_rate(given: &str) -> ValueError {
    let example = "requests a second, such as 100, 100:30s or 0..100:60s";
    ValueError::NotA { what: "a rate above zero for a time above zero", given: given.to_owned(), example }
}

fn leg(part: &str, duration: Duration) -> Result<Leg, ValueError> {
    let invalid = || no_rate(part);
    let (rates, duration) = match part.split_once(':') {
        Some((rates, duration)) => (rates, quantity::duration(duration)?),
        None => (part, duration),
    };
    let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
    let rate = |text: &str| {
        let rate: f64 =
            text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0).ok_or_else(invalid)?;
        let (min, max) = ("0", "10000000");
        let out_of_range = || ValueError::OutOfRange { what: "a rate", given: part.to_owned(), min, max };
        Some(rate).filter(|rate| *rate <= 1e7).ok_or_else(out_of_range)
    };
    Ok(Leg { duration, from: rate(from)?, to: rate(to)? })
}

/// Start times of requests, in order.
#[derive(Clone, Debug)]
pub struct Times<'a> {
    legs: &'a [Leg],
    arrivals: Arrivals,
    /// Requests due so far in this leg.
    due: f64,
    leg_start: Time,
    random: Random,
}

impl<'a> Times<'a> {
    /// Creates the start times, from zero on.
    pub fn new(legs: &'a [Leg], arrivals: Arrivals, random: Random) -> Self {
        Self { legs, arrivals, due: 0.0, leg_start: Time::ZERO, random }
    }
}

impl Iterator for Times<'_> {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        self.due += match self.arrivals {
            Arrivals::Constant => 1.0,
            Arrivals::Poisson => -libm::log1p(-self.random.unit()),
        };
        while let [leg, remaining @ ..] = self.legs {
            if self.due <= leg.due() {
                let since = Duration::from_secs_f64(leg.at(self.due)).unwrap_or_default();
                return Some(self.leg_start + since.min(leg.duration));
            }
            self.due -= leg.due();
            self.leg_start += leg.duration;
            self.legs = remaining;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use wire::Seed;

    use super::*;

    fn times(legs: &[Leg], arrivals: Arrivals) -> Vec<f64> {
        let random = Seed::default().stream("times", 0);
        Times::new(legs, arrivals, random).map(|time| time.since(Time::ZERO).as_secs_f64()).collect()
    }

    const fn leg(seconds: u64, from: f64, to: f64) -> Leg {
        Leg { duration: Duration::from_secs(seconds), from, to }
    }

    #[test]
    fn constant_rate_has_equal_intervals() {
        assert_eq!(times(&[leg(2, 2.0, 2.0)], Arrivals::Constant), [0.5, 1.0, 1.5, 2.0]);
    }

    #[test]
    fn fractions_of_requests_carry_over_between_steps() {
        // Two and a half in the first leg, a half carried into the second.
        let times = times(&[leg(1, 2.5, 2.5), leg(1, 2.0, 2.0)], Arrivals::Constant);
        assert_eq!(times, [0.4, 0.8, 1.25, 1.75]);
    }

    #[test]
    fn ramp_gets_denser() {
        let times = times(&[leg(10, 0.0, 10.0)], Arrivals::Constant);
        assert_eq!(times.len(), 50);
        // Due after t seconds: t^2 / 2.
        assert!((times[7] - 4.0).abs() < 1e-9, "{times:?}");
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_exponential_gaps() {
        let times = times(&[leg(100, 100.0, 100.0)], Arrivals::Poisson);
        assert!((9_700..10_300).contains(&times.len()), "{}", times.len());
        assert!(times.is_sorted());
        let long = times.windows(2).filter(|pair| pair[1] - pair[0] > 0.03).count();
        // exp(-3) of them.
        assert!((400..600).contains(&long), "{long}");
    }

    #[test]
    fn parses_rates_of_flags() {
        let minute = Duration::from_secs(60);
        let read = |text| legs(text, minute);
        assert_eq!(read("100"), Ok(vec![leg(60, 100.0, 100.0)]));
        assert_eq!(read("0..2.5:10s,7:1s"), Ok(vec![leg(10, 0.0, 2.5), leg(1, 7.0, 7.0)]));
        for bad in ["", "-1", "inf", "1..", "1:", "1,,2", "1e9", "NaN", "1:2"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_request_is_due_at_rate_zero() {
        assert!(times(&[leg(10, 0.0, 0.0)], Arrivals::Constant).is_empty());
        assert!(times(&[], Arrivals::Poisson).is_empty());
    }
}
