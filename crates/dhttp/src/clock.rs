//! The one place that reads the clock, here and for whoever asks this crate's servers for something.
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
    /// One that begins to count now.
    #[expect(clippy::disallowed_methods, reason = "the driver's one place that reads the clock")]
    pub fn start() -> Self {
        Self { zero: Instant::now() }
    }

    /// Since it began to count.
    pub fn now(self) -> Time {
        Time::from_nanos(u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A span as the kernel takes it.
pub fn timespec(span: Duration) -> Timespec {
    let nanos = span.as_nanos();
    Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
    }
}

/// Since 1970 by the calendar as it was at the first call, and by a clock that nobody sets since: spans of it are real
/// ones, suspended time included, also where the calendar is set back or forward meanwhile.
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

/// Since 1970.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the calendar")]
pub fn calendar() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(0))
}
