//! How many connections a thread's users have open, and the most they had.
//!
//! Not how many were opened: a connection is counted for as long as its [`Open`] is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count; copies of it agree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauge(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    now: AtomicU64,
    most: AtomicU64,
}

/// One of those that are counted.
#[derive(Debug)]
pub(crate) struct Open(Gauge);

impl Gauge {
    /// One more.
    pub(crate) fn open(&self) -> Open {
        let now = self.0.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.most.fetch_max(now, Ordering::Relaxed);
        Open(self.clone())
    }

    /// How many are there.
    pub(crate) fn now(&self) -> u64 {
        self.0.now.load(Ordering::Relaxed)
    }

    /// The most that were there at once since this was asked last.
    pub(crate) fn most(&self) -> u64 {
        let now = self.now();
        self.0.most.swap(now, Ordering::Relaxed).max(now)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let Self(Gauge(counts)) = self;
        counts.now.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_told_once_and_what_is_still_there_again() {
        let gauge = Gauge::default();
        let (first, second) = (gauge.open(), gauge.open());
        drop(first);
        assert_eq!((gauge.most(), gauge.most()), (2, 1));
        drop(second);
        assert_eq!((gauge.most(), gauge.most()), (1, 0));
    }
}
