//! Those who want the same while it is being asked for: one asks, the others wait, and get what may be shared
//! (RFC 9111, section 4: collapsed requests).
//!
//! Not the asking: that is `exchange`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http1::cache::Verdict;

use super::exchange::{Owned, exchange};
use super::memory::Found;
use super::{Shared, Upstream, given, since_1970};
use crate::fetches::Fetch;
use crate::hosted::busy;
use dhttp::counters::count_shared;
use dhttp::later::Promise;

/// Waiting requests, by key.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    keys: Mutex<BTreeMap<Vec<u8>, Queue>>,
}

/// Those who came later.
type Queue = Vec<(Owned, Promise)>;

/// Place of a request among those for the same key.
enum Place {
    /// The first: it asks.
    First(Box<Owned>, Option<Promise>),
    /// It waits with others, or nobody wants the answer.
    Behind,
}

impl Waiting {
    fn enter(&self, owned: Owned, promise: Option<Promise>) -> Place {
        let Ok(mut keys) = self.keys.lock() else { return Place::First(Box::new(owned), promise) };
        match (keys.get_mut(&owned.wanted.key), promise) {
            (Some(queue), Some(promise)) => queue.push((owned, promise)),
            (Some(_), None) => {}
            (None, promise) => {
                keys.insert(owned.wanted.key.clone(), Queue::new());
                return Place::First(Box::new(owned), promise);
            }
        }
        Place::Behind
    }

    fn leave(&self, key: &[u8]) -> Queue {
        self.keys.lock().ok().and_then(|mut keys| keys.remove(key)).unwrap_or_default()
    }
}

/// Asks the upstream, and gives the answer to whoever it was promised to.
pub(super) fn begin<U: Upstream>(
    shared: &Arc<Shared<U>>,
    owned: Owned,
    found: Option<Found>,
    promise: Option<Promise>,
) {
    if shared.store.is_sparing || !owned.wanted.is_shareable() {
        return run(shared, owned, found, promise);
    }
    match shared.waiting.enter(owned, promise) {
        Place::Behind => count_shared(&shared.store.counters.collapsed),
        Place::First(owned, promise) => {
            let shared = Arc::clone(shared);
            let runtime = shared.runtime.clone();
            let Some(fetch) = begun(&owned, promise.is_some()) else {
                // Who waits behind looks again, each for itself.
                drop(Left { shared: &shared, key: &owned.wanted.key });
                return refuse(promise);
            };
            // If the runtime is gone, so are the promises, and clients are told.
            drop(runtime.spawn(async move {
                let key = owned.wanted.key.clone();
                let left = Left { shared: &shared, key: &key };
                fetch.run(exchange(&shared, &owned, found, promise)).await;
                drop(left);
            }));
        }
    }
}

/// However asking ends, those who wait go on.
struct Left<'a, U: Upstream> {
    shared: &'a Arc<Shared<U>>,
    key: &'a [u8],
}

impl<U: Upstream> Drop for Left<'_, U> {
    fn drop(&mut self) {
        for (owned, promise) in self.shared.waiting.leave(self.key) {
            again(self.shared, owned, promise);
        }
    }
}

/// One who waited looks again, and asks by himself if what came is not for him.
fn again<U: Upstream>(shared: &Arc<Shared<U>>, owned: Owned, promise: Promise) {
    let asked = owned.wanted.asked();
    let found = shared.store.memory.find(&owned.wanted.key, &asked);
    let now = since_1970();
    match found {
        Some(found) if found.record.policy().verdict(now, &asked) == Verdict::Fresh => {
            promise.give(given(&found, &asked, now, "fwd=miss; collapsed"));
        }
        found => {
            drop(asked);
            run(shared, owned, found, Some(promise));
        }
    }
}

/// Asks alone.
fn run<U: Upstream>(shared: &Arc<Shared<U>>, owned: Owned, found: Option<Found>, promise: Option<Promise>) {
    let (shared, runtime) = (Arc::clone(shared), shared.runtime.clone());
    let Some(fetch) = begun(&owned, promise.is_some()) else { return refuse(promise) };
    drop(runtime.spawn(async move {
        fetch.run(exchange(&shared, &owned, found, promise)).await;
    }));
}

/// Counts a fetch, if there may be another. What nobody waits for is the cache's own.
fn begun(owned: &Owned, is_awaited: bool) -> Option<Fetch> {
    Fetch::begin(owned.client.filter(|_| is_awaited))
}

/// There may be no more fetches.
fn refuse(promise: Option<Promise>) {
    if let Some(promise) = promise {
        promise.give(busy());
    }
}
