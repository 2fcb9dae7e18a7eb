//! Rendered responses to frequent requests, valid for the current second.
//!
//! Each thread has its own. The store is still looked up every time: a dropped response is never served.

use http1::cache::ParsedRequest;
use wire::Time;

use super::memory::CacheEntry;
use super::record::Record;
use super::store::Store;
use super::{seconds, serve_from, since_1970};
use dhttp::counters::count_shared;
use dhttp::handler::Response;

/// A table with one response in each slot.
#[derive(Debug)]
pub(super) struct HotResponses {
    slots: Vec<Option<HotSlot>>,
}

#[derive(Debug)]
struct HotSlot {
    record: Record,
    second: u64,
    response: Response,
}

/// Number of slots; a power of two.
const SLOTS: usize = 512;

impl Default for HotResponses {
    fn default() -> Self {
        Self { slots: (0..SLOTS).map(|_| None).collect() }
    }
}

impl HotResponses {
    /// Returns the fresh response in memory under this key, for a GET without cache directives; counted as a hit.
    pub(super) fn fresh_in_memory(&mut self, store: &Store, key: &[u8]) -> Option<&Response> {
        let (hash, entry) = store.memory.find_plain(key)?;
        let now = since_1970();
        if !entry.record.policy().is_fresh(now) {
            return None;
        }
        count_shared(&store.counters.hits);
        self.respond(hash, &entry, now)
    }

    /// Returns the response made from a stored one, for a GET without cache directives.
    fn respond(&mut self, hash: u64, entry: &CacheEntry, now: Time) -> Option<&Response> {
        let slot = self.slots.get_mut(usize::try_from(hash).unwrap_or(0) % SLOTS)?;
        let second = seconds(now);
        let is_current =
            slot.as_ref().is_some_and(|slot| slot.second == second && slot.record.is(&entry.record));
        if !is_current {
            let response = serve_from(entry, &ParsedRequest::new("GET", []), now, "hit");
            *slot = Some(HotSlot { record: entry.record.clone(), second, response });
        }
        slot.as_ref().map(|slot| &slot.response)
    }
}
