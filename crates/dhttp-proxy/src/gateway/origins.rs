//! Exchanges in progress with each server, so that one slow server does not hold all connections of the gateway.
//!
//! Servers are counted by the name and port in the request: many names cost a client its own share of connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers of exchanges, by server.
#[derive(Debug, Default)]
pub(super) struct Origins {
    of: Mutex<BTreeMap<String, usize>>,
}

/// An exchange in progress with a server; counted until it is dropped.
#[derive(Debug)]
pub(super) struct OriginLease {
    origins: Arc<Origins>,
    authority: String,
}

impl Origins {
    /// Counts another exchange with this server; `None` if it has `max`.
    pub(super) fn lease(self: &Arc<Self>, authority: &str, max: usize) -> Option<OriginLease> {
        let authority = authority.to_ascii_lowercase();
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let count = of.get(&authority).copied().unwrap_or(0);
        if count >= max {
            return None;
        }
        of.insert(authority.clone(), count + 1);
        drop(of);
        Some(OriginLease { origins: Arc::clone(self), authority })
    }
}

impl Drop for OriginLease {
    fn drop(&mut self) {
        let mut of = self.origins.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = of.get_mut(&self.authority) {
            *count -= 1;
            if *count == 0 {
                of.remove(&self.authority);
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
        let leases: Vec<_> = (0..3).filter_map(|_| origins.lease("slow.example", 2)).collect();
        assert_eq!(leases.len(), 2);
        assert!(origins.lease("SLOW.example", 2).is_none() && origins.lease("slow.example:81", 2).is_some());
        drop(leases);
        assert!(origins.of.lock().unwrap().is_empty(), "no entry is left");
    }
}
