//! The only place that reads the clock, for this crate and for clients of its servers.
//!
//! Time inside is [`wire::Time`] since this program began to count; the calendar is only for fields and logs.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use std::sync::OnceLock;

use rustix::event::Timespec;
use rustix::time::{ClockId, clock_gettime};
use wire::{Duration, Time};

/// A clock; copies of it agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: Instant,
}

impl Clock {
    /// Starts a clock at zero.
    #[expect(clippy::disallowed_methods, reason = "the driver's one place that reads the clock")]
    pub fn start() -> Self {
        Self { zero: Instant::now() }
    }

    /// Returns the time since the clock started.
    pub fn now(self) -> Time {
        Time::from_nanos(u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Converts a duration for the kernel.
pub fn timespec(span: Duration) -> Timespec {
    let nanos = span.as_nanos();
    Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
    }
}

/// Returns the time since 1970. The calendar is read at the first call; after that a clock counts that cannot be set.
/// Differences are real durations that include suspended time, even if the calendar is changed meanwhile.
pub fn steady_calendar() -> Duration {
    static BEGUN: OnceLock<(Duration, u64)> = OnceLock::new();
    let boot = || {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
    };
    let (since_1970, at) = *BEGUN.get_or_init(|| (calendar(), boot()));
    since_1970 + Duration::from_nanos(boot().saturating_sub(at))
}

/// Returns the time since 1970.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the calendar")]
pub fn calendar() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(0))
}
