//! Delivery opportunities at given times: a link whose capacity was recorded, such as a cellular one.
//!
//! The semantics are those of mahimahi's traces: each opportunity carries up to 1,500 bytes at one millisecond, small packets
//! share one, large packets take several, and what finds no packet waiting is lost. The list repeats with its last time.
//! From mahimahi's `link_queue.cc` and mm-link(1).

use std::fmt;

use crate::{Duration, Rate, Time};

/// Bytes that one delivery opportunity carries.
pub const OPPORTUNITY_BYTES: u64 = 1_500;

/// Times of delivery opportunities, in milliseconds from the start of a period; ascending, the last is the period.
#[derive(Clone, PartialEq, Eq)]
pub struct DeliverySchedule {
    milliseconds: Box<[u32]>,
}

impl DeliverySchedule {
    /// Maximum number of opportunities: an hour at 30 Mbit/s has 9 million.
    pub const MAX_OPPORTUNITIES: usize = 10_000_000;
    /// Maximum period: a day, in milliseconds.
    pub const MAX_PERIOD_MS: u32 = 86_400_000;

    /// A schedule of these times.
    ///
    /// # Errors
    /// No opportunity, too many, times that are not ascending, or a period of zero or above a day.
    pub fn new(milliseconds: Vec<u32>) -> Result<Self, ScheduleError> {
        let last = *milliseconds.last().ok_or(ScheduleError::Empty)?;
        if milliseconds.len() > Self::MAX_OPPORTUNITIES {
            return Err(ScheduleError::TooMany);
        }
        if let Some(index) = milliseconds.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(ScheduleError::NotAscending { number: index + 2 });
        }
        match last {
            0 => Err(ScheduleError::NoTime),
            last if last > Self::MAX_PERIOD_MS => Err(ScheduleError::TooLong),
            _ => Ok(Self { milliseconds: milliseconds.into_boxed_slice() }),
        }
    }

    /// Returns the number of opportunities in a period.
    pub fn opportunities(&self) -> usize {
        self.milliseconds.len()
    }

    /// Returns the time after which the schedule repeats.
    pub fn period(&self) -> Duration {
        Duration::from_millis(u64::from(self.period_ms()))
    }

    /// Returns the mean rate of a link that is never idle, with packets' headers; rounded down to thousandths of a bit per
    /// second.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.milliseconds.len() as u64 * OPPORTUNITY_BYTES * 8;
        let millibits_per_second = bits * 1_000_000 / u64::from(self.period_ms());
        Rate::from_millibits_per_second(millibits_per_second).expect("one opportunity a day is above zero")
    }

    fn period_ms(&self) -> u32 {
        self.milliseconds[self.milliseconds.len() - 1]
    }

    /// Returns the first opportunity after `now`.
    pub(super) fn first_after(&self, now: Time) -> Opportunity {
        let period = self.period().as_nanos();
        let (cycle, within) = (now.as_nanos() / period, now.as_nanos() % period);
        // The last time of a cycle is its end, which is after `now`.
        let index = self.milliseconds.partition_point(|at| u64::from(*at) * NANOS_PER_MILLI <= within);
        Opportunity { cycle, index }
    }

    /// Returns the opportunity that follows.
    pub(super) const fn next(&self, Opportunity { cycle, index }: Opportunity) -> Opportunity {
        match index + 1 < self.milliseconds.len() {
            true => Opportunity { cycle, index: index + 1 },
            false => Opportunity { cycle: cycle + 1, index: 0 },
        }
    }

    /// Returns the time of an opportunity.
    pub(super) fn time(&self, Opportunity { cycle, index }: Opportunity) -> Time {
        Time::ZERO + self.period() * cycle + Duration::from_millis(u64::from(self.milliseconds[index]))
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;

impl fmt::Debug for DeliverySchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeliverySchedule({} opportunities in {})", self.milliseconds.len(), self.period())
    }
}

/// One opportunity: the repetition of the schedule, and the position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opportunity {
    cycle: u64,
    index: usize,
}

impl Opportunity {
    pub(super) const FIRST: Self = Self { cycle: 0, index: 0 };
}

/// Reason why a list of times is not a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No opportunity: a rate of zero.
    #[error("no delivery opportunity, a rate of zero; give one time in milliseconds per line")]
    Empty,
    /// More than [`DeliverySchedule::MAX_OPPORTUNITIES`].
    #[error("more than {} delivery opportunities; cut the recording", DeliverySchedule::MAX_OPPORTUNITIES)]
    TooMany,
    /// A time before the previous one.
    #[error("opportunity {number} is before the previous one; sort the times")]
    NotAscending {
        /// Its number, from 1.
        number: usize,
    },
    /// Every time is 0.
    #[error("all opportunities are at 0 ms, so it lasts no time; end with a later time")]
    NoTime,
    /// A period above [`DeliverySchedule::MAX_PERIOD_MS`].
    #[error("it lasts more than a day (86400000 ms); cut the recording")]
    TooLong,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(times: &[u32]) -> DeliverySchedule {
        DeliverySchedule::new(times.to_vec()).unwrap()
    }

    #[test]
    fn repeats_with_its_last_time() {
        let schedule = schedule(&[0, 5, 5, 10]);
        let mut next = Opportunity::FIRST;
        let mut times = Vec::new();
        for _ in 0..9 {
            times.push(schedule.time(next).as_nanos() / NANOS_PER_MILLI);
            next = schedule.next(next);
        }
        assert_eq!(times, [0, 5, 5, 10, 10, 15, 15, 20, 20]);
    }

    #[test]
    fn first_opportunity_is_strictly_after_a_time() {
        let schedule = schedule(&[0, 5, 5, 10]);
        let first = |nanos| {
            let first = schedule.first_after(Time::from_nanos(nanos));
            (schedule.time(first).as_nanos(), first.index)
        };
        assert_eq!(first(0), (5_000_000, 1));
        assert_eq!(first(4_999_999), (5_000_000, 1));
        assert_eq!(first(5_000_000), (10_000_000, 3));
        // The last of a period and the first of the next are at the same time, which is over.
        assert_eq!(first(10_000_000), (15_000_000, 1));
        assert_eq!(first(1_000_000_000_000_001), (1_000_000_005_000_000, 1));
    }

    #[test]
    fn mean_rate_is_the_bytes_over_the_period() {
        assert_eq!(schedule(&[1]).mean_rate(), Rate::from_bits_per_second(12_000_000).unwrap());
        assert_eq!(schedule(&[0, 5, 10]).mean_rate(), Rate::from_bits_per_second(3_600_000).unwrap());
    }

    #[test]
    fn rejects_lists_that_are_no_schedule_with_a_remedy() {
        for (times, remedy) in [
            (vec![], "give one time"),
            (vec![0, 0], "end with a later time"),
            (vec![1, 5, 4, 9], "opportunity 3"),
            (vec![1, DeliverySchedule::MAX_PERIOD_MS + 1], "cut the recording"),
            (vec![1; DeliverySchedule::MAX_OPPORTUNITIES + 1], "more than 10000000"),
        ] {
            let sentence = DeliverySchedule::new(times).unwrap_err().to_string();
            assert!(sentence.contains(remedy), "{sentence}");
        }
    }
}
