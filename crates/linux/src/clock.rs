//! The only place that reads a clock or the calendar, for measurements, captures and services.
//!
//! Time inside is [`Time`] since an arbitrary zero; the calendar dates captures, fields and logs. It has no timers: each
//! thread waits in its own poll, where the deadline is known.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use wire::{Duration, Time};

/// A clock that was zero when it was started, and never goes back; copies of it agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: Instant,
    zero_since_1970: Duration,
}

impl Clock {
    /// Starts the clock at zero. The calendar is read once, to date captures.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub fn start() -> Self {
        Self { zero: Instant::now(), zero_since_1970: calendar() }
    }

    /// Returns the time since the start, in nanoseconds. One reading costs about 25 ns.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub fn now(&self) -> Time {
        Time::ZERO + nanoseconds(Instant::now().saturating_duration_since(self.zero))
    }

    /// Time at which this clock was started, since 1 January 1970, UTC: a capture file adds it to its times.
    pub const fn zero_since_1970(&self) -> Duration {
        self.zero_since_1970
    }
}

/// Returns the time since 1970.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the calendar")]
pub fn calendar() -> Duration {
    nanoseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Returns the time since 1970. The calendar is read at the first call; after that a clock counts that cannot be set.
/// Differences are real durations that include suspended time, even if the calendar is changed meanwhile.
pub fn steady_calendar() -> Duration {
    static BEGUN: OnceLock<(Duration, Duration)> = OnceLock::new();
    let (since_1970, at) = *BEGUN.get_or_init(|| (calendar(), since_boot()));
    since_1970 + since_boot().saturating_sub(at)
}

/// Returns the time since the system started, suspended time included.
fn since_boot() -> Duration {
    // Linux has this clock since 2.6.39.
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map(std::time::Duration::from);
    nanoseconds(now.unwrap_or_default())
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

    #[test]
    fn the_steady_calendar_is_the_calendar_until_it_is_set() {
        let (steady, calendar) = (steady_calendar(), calendar());
        assert!(
            steady.saturating_sub(calendar).max(calendar.saturating_sub(steady)) < Duration::from_secs(1)
        );
    }
}
