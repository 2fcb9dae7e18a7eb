//! The only place of this crate that reads a clock: CLOCK_MONOTONIC, as [`Time`] since an arbitrary zero.
//!
//! It has no timers: each thread waits in its own poll, where the deadline is known. Threads that need a common
//! time share one `Clock` (it is `Copy`).

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use wire::{Duration, Time};

/// A clock that was zero when it was started, and never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: Instant,
    zero_since_1970: Duration,
}

impl Clock {
    /// Starts the clock. The wall clock is read once, to date captures.
    #[expect(
        clippy::disallowed_methods,
        reason = "the driver's one place that reads the clock and the calendar"
    )]
    pub fn start() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { zero: Instant::now(), zero_since_1970: nanoseconds(since_1970) }
    }

    /// The time since the start, in nanoseconds. One reading costs about 25 ns.
    #[expect(
        clippy::disallowed_methods,
        reason = "the driver's one place that reads the clock and the calendar"
    )]
    pub fn now(&self) -> Time {
        Time::ZERO + nanoseconds(Instant::now().saturating_duration_since(self.zero))
    }

    /// Time at which this clock was started, since 1 January 1970, UTC: a capture file adds it to its times.
    pub const fn zero_since_1970(&self) -> Duration {
        self.zero_since_1970
    }
}

fn nanoseconds(span: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_counts_from_its_start_and_never_goes_back() {
        let clock = Clock::start();
        let (earlier, later) = (clock.now(), clock.now());
        assert!(earlier <= later);
        let in_2020 = Duration::from_secs(1_577_836_800);
        assert!(clock.zero_since_1970() > in_2020);
    }
}
