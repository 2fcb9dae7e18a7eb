//! Implausible times: a packet whose timestamp is a day or more away from those around it.
//!
//! A damaged timestamp affects one packet, which gets the time of the previous packet. If the clock was set, or a
//! second capture was appended, all later packets are affected, and their times are left unchanged. The next packet
//! shows which case applies, so the packet in doubt is held until then.

use wire::{Duration, Time};

/// Minimum difference of an implausible time: no program and no network delays a packet for this long.
pub const LEAP: Duration = Duration::from_secs(86_400);

/// Times of a capture, packet by packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    last: Option<Time>,
    doubtful: Option<Time>,
    implausible: u64,
    steps: u64,
}

/// Treatment of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its time is valid. The packet held before it, if there is one, gets the time `doubtful`.
    Good {
        /// Time of the packet held before.
        doubtful: Option<Time>,
    },
    /// A time that is held until the next packet. The packet held before it, if there is one, gets the time `before`.
    Doubtful {
        /// Time of the packet held before it.
        before: Option<Time>,
    },
}

impl Clock {
    /// Handles the next packet's time.
    pub fn read(&mut self, at: Time) -> Verdict {
        let last = *self.last.get_or_insert(at);
        let doubtful = self.doubtful.take();
        if distance(at, last) < LEAP {
            self.implausible += u64::from(doubtful.is_some());
            self.last = Some(at);
            return Verdict::Good { doubtful: doubtful.map(|_| last) };
        }
        match doubtful {
            // The clock continued from there.
            Some(held) if at >= held || distance(at, held) < LEAP => {
                self.steps += 1;
                let is_near = distance(at, held) < LEAP;
                (self.last, self.doubtful) = if is_near { (Some(at), None) } else { (Some(held), Some(at)) };
                match is_near {
                    true => Verdict::Good { doubtful: Some(held) },
                    false => Verdict::Doubtful { before: Some(held) },
                }
            }
            unconfirmed => {
                self.implausible += u64::from(unconfirmed.is_some());
                self.doubtful = Some(at);
                Verdict::Doubtful { before: unconfirmed.map(|_| last) }
            }
        }
    }

    /// Ends the capture; returns the time of the held packet, if there is one.
    pub fn end(&mut self) -> Option<Time> {
        self.doubtful.take()?;
        self.implausible += 1;
        self.last
    }

    /// Number of packets with an implausible time.
    pub const fn implausible(&self) -> u64 {
        self.implausible
    }

    /// Number of steps of the clock by a day or more.
    pub const fn steps(&self) -> u64 {
        self.steps
    }
}

fn distance(first: Time, second: Time) -> Duration {
    first.since(second).max(second.since(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the resulting times in seconds.
    fn resulting_times(times: &[u64]) -> (Vec<u64>, u64, u64) {
        let mut clock = Clock::default();
        let mut resulting_times = Vec::new();
        let mut record = |time: Time| resulting_times.push(time.as_nanos() / 1_000_000_000);
        for seconds in times {
            let at = Time::ZERO + Duration::from_secs(*seconds);
            match clock.read(at) {
                Verdict::Good { doubtful } => {
                    doubtful.into_iter().for_each(&mut record);
                    record(at);
                }
                Verdict::Doubtful { before } => before.into_iter().for_each(&mut record),
            }
        }
        clock.end().into_iter().for_each(&mut record);
        (resulting_times, clock.implausible(), clock.steps())
    }

    const DAY: u64 = 86_400;

    #[test]
    fn implausible_time_is_replaced_by_that_of_the_packet_before() {
        assert_eq!(resulting_times(&[5, 6, 900 * DAY, 7, 8]), (vec![5, 6, 6, 7, 8], 1, 0));
        assert_eq!(resulting_times(&[9 * DAY, 0, 9 * DAY + 1]), (vec![9 * DAY, 9 * DAY, 9 * DAY + 1], 1, 0));
        assert_eq!(resulting_times(&[5, 900 * DAY]), (vec![5, 5], 1, 0));
    }

    #[test]
    fn a_clock_that_was_set_stays_set() {
        assert_eq!(resulting_times(&[5, 9 * DAY, 9 * DAY + 1]), (vec![5, 9 * DAY, 9 * DAY + 1], 0, 1));
        assert_eq!(resulting_times(&[9 * DAY, 5, 6, 7]), (vec![9 * DAY, 5, 6, 7], 0, 1));
    }

    #[test]
    fn packets_of_many_months_keep_their_times() {
        let months = [0, 30 * DAY, 60 * DAY, 90 * DAY, 90 * DAY + 1];
        assert_eq!(resulting_times(&months), (months.to_vec(), 0, 3));
    }

    #[test]
    fn two_successive_implausible_times_are_both_replaced() {
        assert_eq!(resulting_times(&[5, 900 * DAY, 400 * DAY, 6]), (vec![5, 5, 5, 6], 2, 0));
    }
}
