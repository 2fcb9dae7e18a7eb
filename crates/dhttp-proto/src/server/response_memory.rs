//! Requests with a response by TCP, and those in progress: a resend of one gets no second response.
//!
//! A ring, as in the paper (`papers/dhttp#section-iii-c`, 10,000 "global request IDs": address and id). Beyond the
//! paper, responses that were not delivered are removed, or resends would never get one. Not a cache of responses.

use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};

use crate::Id;

/// Address and id of a request, unique among all clients.
pub(super) type GlobalId = (IpAddr, Id);

/// Memory of recent responses by TCP.
#[derive(Debug)]
pub(super) struct ResponseMemory {
    capacity: usize,
    ring: VecDeque<(GlobalId, u64)>,
    /// Serial number of each id's latest entry in the ring; earlier entries of the same id are stale.
    latest: BTreeMap<GlobalId, u64>,
    serial: u64,
    /// Requests in progress, and whether each was resent meanwhile.
    in_progress: BTreeMap<GlobalId, bool>,
}

impl ResponseMemory {
    pub(super) const fn new(capacity: usize) -> Self {
        Self {
            capacity,
            ring: VecDeque::new(),
            latest: BTreeMap::new(),
            serial: 0,
            in_progress: BTreeMap::new(),
        }
    }

    /// Records that the response to a request goes by TCP.
    pub(super) fn remember(&mut self, id: GlobalId) {
        if self.ring.len() >= self.capacity
            && let Some((oldest, serial)) = self.ring.pop_front()
            && self.latest.get(&oldest) == Some(&serial)
        {
            self.latest.remove(&oldest);
        }
        if self.capacity > 0 {
            self.serial += 1;
            self.ring.push_back((id, self.serial));
            self.latest.insert(id, self.serial);
        }
    }

    /// Removes a request whose response did not arrive.
    pub(super) fn forget(&mut self, id: GlobalId) {
        self.latest.remove(&id);
    }

    pub(super) fn contains(&self, id: GlobalId) -> bool {
        self.latest.contains_key(&id)
    }

    /// Marks a request as in progress.
    pub(super) fn begin(&mut self, id: GlobalId) {
        self.in_progress.insert(id, false);
    }

    /// Notes a resend; returns whether its request is in progress.
    pub(super) fn is_in_progress(&mut self, id: GlobalId) -> bool {
        self.in_progress.get_mut(&id).map(|again| *again = true).is_some()
    }

    /// Marks a request as no longer in progress; returns whether it was resent meanwhile.
    pub(super) fn end(&mut self, id: GlobalId) -> bool {
        // Usually no request is in progress, and there is nothing to look up.
        !self.in_progress.is_empty() && self.in_progress.remove(&id).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    fn id(number: u64) -> GlobalId {
        (IpAddr::V4(Ipv4Addr::LOCALHOST), Id(number))
    }

    #[test]
    fn paper_the_last_n_are_remembered() {
        let mut response_memory = ResponseMemory::new(10_000);
        (0..10_001).for_each(|number| response_memory.remember(id(number)));
        assert_eq!([0, 1, 10_000].map(|number| response_memory.contains(id(number))), [false, true, true]);
        assert_eq!((response_memory.ring.len(), response_memory.latest.len()), (10_000, 10_000));
        assert!(!response_memory.contains((IpAddr::V4(Ipv4Addr::BROADCAST), Id(1))), "another client's");
    }

    #[test]
    fn reinserted_entry_outlives_its_first_slot_in_the_ring() {
        let mut response_memory = ResponseMemory::new(2);
        response_memory.remember(id(1));
        response_memory.forget(id(1));
        assert!(!response_memory.contains(id(1)));
        response_memory.remember(id(1));
        response_memory.remember(id(2));
        assert!(response_memory.contains(id(1)) && response_memory.contains(id(2)));
        response_memory.remember(id(3));
        assert_eq!([1, 2, 3].map(|number| response_memory.contains(id(number))), [false, true, true]);
    }

    #[test]
    fn resend_of_a_pending_request_is_detected() {
        let mut response_memory = ResponseMemory::new(2);
        assert!(!response_memory.is_in_progress(id(1)));
        response_memory.begin(id(1));
        assert!(response_memory.is_in_progress(id(1)));
        assert!(response_memory.end(id(1)));
        assert!(!response_memory.end(id(1)));
    }
}
