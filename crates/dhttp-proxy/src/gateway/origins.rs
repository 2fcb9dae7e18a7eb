//! Exchanges in progress with each server, so that one slow server does not hold all connections of the gateway.
//!
//! Servers are counted by the name and port in the request: many names cost a client its own share of connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers of exchanges, by server.
#[derive(Debug, Default)]
pub(super) struct Origins {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    of: BTreeMap<String, usize>,
    total: usize,
}

/// An exchange in progress with a server; counted until it is dropped.
#[derive(Debug)]
pub(super) struct OriginLease {
    origins: Arc<Origins>,
    authority: String,
}

impl Origins {
    /// Counts another exchange with this server; `None` if it has `max`, or less when more than half of `all` are in progress:
    /// then each server's share shrinks in proportion to what is free.
    pub(super) fn lease(self: &Arc<Self>, authority: &str, max: usize, all: usize) -> Option<OriginLease> {
        let authority = authority.to_ascii_lowercase();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let free = all.saturating_sub(counts.total);
        let share = if free >= all / 2 { max } else { max.saturating_mul(2 * free) / all };
        let count = counts.of.get(&authority).copied().unwrap_or(0);
        if count >= share.max(1) {
            return None;
        }
        counts.of.insert(authority.clone(), count + 1);
        counts.total += 1;
        drop(counts);
        Some(OriginLease { origins: Arc::clone(self), authority })
    }
}

impl Drop for OriginLease {
    fn drop(&mut self) {
        let mut counts = self.origins.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.total -= 1;
        if let Some(count) = counts.of.get_mut(&self.authority) {
            *count -= 1;
            if *count == 0 {
                counts.of.remove(&self.authority);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_are_counted_by_server_until_they_end() {
        let origins = Arc::new(Origins::default());
        let leases: Vec<_> = (0..3).filter_map(|_| origins.lease("slow.example", 2, 100)).collect();
        assert_eq!(leases.len(), 2);
        assert!(origins.lease("SLOW.example", 2, 100).is_none());
        assert!(origins.lease("slow.example:81", 2, 100).is_some());
        drop(leases);
        let counts = origins.counts.lock().unwrap();
        assert!(counts.of.is_empty() && counts.total == 0, "no entry is left");
    }

    #[test]
    fn several_slow_servers_leave_some_exchanges_to_others() {
        let origins = Arc::new(Origins::default());
        let requests = (0..10_000).map(|number| format!("slow{}.example", number % 4));
        let leases: Vec<_> = requests.filter_map(|name| origins.lease(&name, 512, 1_024)).collect();
        assert!((768..=896).contains(&leases.len()), "four fifths of 1,024: {}", leases.len());
        assert!((0..60).all(|number| origins.lease(&format!("{number}.example"), 512, 1_024).is_some()));
    }
}
