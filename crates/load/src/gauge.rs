//! Number of open connections of a thread's users, with its maximum.
//!
//! It does not count all connections ever opened: a connection is counted for as long as its [`GaugeGuard`] exists.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter, shared by its copies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauge(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    now: AtomicU64,
    max: AtomicU64,
}

/// Guard of one counted connection.
#[derive(Debug)]
pub(crate) struct GaugeGuard(Gauge);

impl Gauge {
    /// Counts one more connection.
    pub(crate) fn open(&self) -> GaugeGuard {
        let now = self.0.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.max.fetch_max(now, Ordering::Relaxed);
        GaugeGuard(self.clone())
    }

    /// Current number.
    pub(crate) fn now(&self) -> u64 {
        self.0.now.load(Ordering::Relaxed)
    }

    /// Maximum number since the last call.
    pub(crate) fn max(&self) -> u64 {
        let now = self.now();
        self.0.max.swap(now, Ordering::Relaxed).max(now)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        let Self(Gauge(counts)) = self;
        counts.now.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_is_reported_once_and_restarts_at_the_current_number() {
        let gauge = Gauge::default();
        let (first, second) = (gauge.open(), gauge.open());
        drop(first);
        assert_eq!((gauge.max(), gauge.max()), (2, 1));
        drop(second);
        assert_eq!((gauge.max(), gauge.max()), (1, 0));
    }
}
