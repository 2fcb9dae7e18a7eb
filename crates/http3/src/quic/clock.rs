//! Virtual time as the platform's type of time, by one fixed base.

use std::sync::OnceLock;
pub(crate) use std::time::Instant;

use wire::Time;

/// Instant of [`Time::ZERO`], far enough from the platform's own zero for what comes before.
fn base() -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "an arbitrary zero: only differences to it are used")]
    *BASE.get_or_init(|| Instant::now() + core::time::Duration::from_secs(3_600))
}

pub(crate) fn to_instant(time: Time) -> Instant {
    base() + core::time::Duration::from_nanos(time.since(Time::ZERO).as_nanos())
}

/// The time of an instant; [`Time::ZERO`] if it is before that.
pub(crate) fn to_time(instant: Instant) -> Time {
    let since = instant.saturating_duration_since(base()).as_nanos();
    Time::ZERO + wire::Duration::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
}
