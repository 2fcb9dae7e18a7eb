//! Capture's clock, if it was set back while a connection was captured: its packets follow one another nevertheless.
//!
//! Packets of several interfaces or queues are out of order, too, but by less, and not all that follow.

use wire::{Duration, Time};

/// The capture's clock, for one connection.
#[derive(Clone, Debug, Default)]
pub struct CaptureClock {
    /// Hardly any clock is set.
    step: Option<Box<ClockStep>>,
}

#[derive(Clone, Copy, Debug)]
struct ClockStep {
    /// Time by which the clock has been behind since.
    behind: Duration,
    /// Its latest time before, and its last one.
    latest: Time,
    last: Time,
}

/// Minimum step; packets of other queues are sooner.
const MIN_STEP: Duration = Duration::from_millis(100);
/// Maximum time across a step: the clock of the sender is not trusted any further.
const MAX_PAUSE: Duration = Duration::from_secs(86_400);

impl CaptureClock {
    /// Returns the time of a packet that was captured at `read`, after one whose time was `last`, and whether the clock was set in
    /// between. Times continue at `due`, when its sender's own clock shows that it was to pass; where that is unknown,
    /// after a round trip.
    pub fn follow(
        &mut self,
        read: Time,
        last: Time,
        round_trip: Duration,
        due: impl FnOnce() -> Option<Time>,
    ) -> (Time, bool) {
        let (mut at, mut latest) = (read, last);
        if let Some(step) = self.step.as_deref_mut() {
            // A jump to where the clock had been: the packets between were out of order.
            if read >= step.latest && read.since(step.last) * 2 > step.behind {
                self.step = None;
            } else {
                (at, step.last, latest) = (read + step.behind, read, step.latest.max(read));
            }
        }
        if at + MIN_STEP.max(round_trip * 2) > last {
            return (at, false);
        }
        let due = due().filter(|due| due.since(last) < MAX_PAUSE);
        at = due.unwrap_or(last + round_trip).max(last);
        self.step = Some(Box::new(ClockStep { behind: at.since(read), latest, last: read }));
        (at, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The resulting times of packets captured at these times, in milliseconds, on a path of 10 ms, and the steps.
    fn followed(times: &[u64], due: Option<u64>) -> (Vec<u64>, usize) {
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let (mut clock, mut last, mut steps) = (CaptureClock::default(), Time::ZERO, 0);
        let mut follow = |read| {
            let (time, is_step) = clock.follow(at(read), last, Duration::from_millis(10), || due.map(at));
            (last, steps) = (last.max(time), steps + usize::from(is_step));
            last.since(Time::ZERO).as_nanos() / 1_000_000
        };
        (times.iter().map(|read| follow(*read)).collect(), steps)
    }

    #[test]
    fn times_continue_after_a_step_back() {
        let times = [1_000, 1_020, 120, 150, 550, 1_000, 1_100];
        assert_eq!(followed(&times, None), (vec![1_000, 1_020, 1_030, 1_060, 1_460, 1_910, 2_010], 1));
        assert_eq!(followed(&[1_000, 1_020, 120, 150], Some(1_070)), (vec![1_000, 1_020, 1_070, 1_100], 1));
        assert_eq!(followed(&[1_000, 1_020, 120, 20], None), (vec![1_000, 1_020, 1_030, 1_040], 2));
    }

    #[test]
    fn packets_out_of_order_are_no_step() {
        assert_eq!(followed(&[1_000, 950, 1_001], None), (vec![1_000, 1_000, 1_001], 0));
        // Two packets of another queue: the clock continues where it had been.
        assert_eq!(followed(&[1_000, 500, 501, 1_100], None).0, [1_000, 1_010, 1_011, 1_100]);
    }
}
