//! The one place of this crate that reads the clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use wire::{Duration, Time};

/// A clock; copies of it agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    zero: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the driver's one place that reads the clock")]
    pub(crate) fn start() -> Self {
        Self { zero: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The calendar's time, for fields.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the calendar")]
pub(crate) fn since_1970() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(0))
}

/// What the calling thread has had of a processor.
pub(crate) fn processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}
