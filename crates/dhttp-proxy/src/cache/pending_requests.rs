//! Collapsed requests (RFC 9111, section 4). Of several requests for the same object, one is sent to the upstream. The others
//! wait for its response if it may be shared.
//!
//! The request itself is sent by `exchange`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http1::cache::Verdict;

use super::exchange::{OwnedRequest, exchange};
use super::memory::CacheEntry;
use super::{Shared, Upstream, serve_from, since_1970};
use crate::fetches::Fetch;
use crate::service_handler::busy;
use dhttp::counters::count_shared;
use dhttp::deferred::ResponseSender;

/// Waiting requests, by key.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    keys: Mutex<BTreeMap<Vec<u8>, Queue>>,
}

/// Requests that came later.
type Queue = Vec<(OwnedRequest, ResponseSender)>;

/// Position of a request among those for the same key.
enum QueuePosition {
    /// The first: it is sent to the upstream.
    First(Box<OwnedRequest>, Option<ResponseSender>),
    /// It waits behind the first, or no client wants the response.
    Behind,
}

impl PendingRequests {
    fn enter(&self, owned: OwnedRequest, promise: Option<ResponseSender>) -> QueuePosition {
        let Ok(mut keys) = self.keys.lock() else { return QueuePosition::First(Box::new(owned), promise) };
        match (keys.get_mut(&owned.keyed_request.key), promise) {
            (Some(queue), Some(promise)) => {
                if queue.len() == queue.capacity() {
                    // Those whose connections were closed for newcomers would accumulate behind a slow response.
                    queue.retain(|(_, promise)| !promise.is_abandoned());
                    queue.reserve(queue.len().max(1));
                }
                queue.push((owned, promise));
            }
            (Some(_), None) => {}
            (None, promise) => {
                keys.insert(owned.keyed_request.key.clone(), Queue::new());
                return QueuePosition::First(Box::new(owned), promise);
            }
        }
        QueuePosition::Behind
    }

    fn leave(&self, key: &[u8]) -> Queue {
        self.keys.lock().ok().and_then(|mut keys| keys.remove(key)).unwrap_or_default()
    }
}

/// Sends it to the upstream, and responds to the client.
pub(super) fn begin<U: Upstream>(
    shared: &Arc<Shared<U>>,
    owned: OwnedRequest,
    entry: Option<CacheEntry>,
    promise: Option<ResponseSender>,
) {
    if shared.store.is_sparing || !owned.keyed_request.is_shareable() {
        return run(shared, owned, entry, promise);
    }
    match shared.waiting.enter(owned, promise) {
        QueuePosition::Behind => count_shared(&shared.store.counters.collapsed),
        QueuePosition::First(owned, promise) => {
            let shared = Arc::clone(shared);
            let runtime = shared.runtime.clone();
            let Some(fetch) = begun(&owned, promise.is_some()) else {
                // Each request that waits behind is looked up again.
                drop(PendingGuard { shared: &shared, key: &owned.keyed_request.key });
                return refuse(&owned, promise);
            };
            // If the runtime is gone, dropping the sender notifies the client.
            drop(runtime.spawn(async move {
                let key = owned.keyed_request.key.clone();
                let guard = PendingGuard { shared: &shared, key: &key };
                fetch.run(exchange(&shared, &owned, entry, promise)).await;
                drop(guard);
            }));
        }
    }
}

/// Lets waiting requests continue, however the first one ends.
struct PendingGuard<'a, U: Upstream> {
    shared: &'a Arc<Shared<U>>,
    key: &'a [u8],
}

impl<U: Upstream> Drop for PendingGuard<'_, U> {
    fn drop(&mut self) {
        let waiting = self.shared.waiting.leave(self.key).into_iter();
        for (owned, promise) in waiting.filter(|(_, promise)| !promise.is_abandoned()) {
            retry_after_wait(self.shared, owned, promise);
        }
    }
}

/// Looks up a request that waited, and sends it separately if the response may not be shared.
fn retry_after_wait<U: Upstream>(shared: &Arc<Shared<U>>, owned: OwnedRequest, promise: ResponseSender) {
    let requested = owned.keyed_request.requested();
    let entry = shared.store.memory.find(&owned.keyed_request.key, &requested);
    let now = since_1970();
    match entry {
        Some(entry) if entry.record.policy().verdict(now, &requested) == Verdict::Fresh => {
            promise.give(serve_from(&entry, &requested, now, "fwd=miss; collapsed"));
        }
        entry => {
            drop(requested);
            run(shared, owned, entry, Some(promise));
        }
    }
}

/// Sends a single request to the upstream.
fn run<U: Upstream>(
    shared: &Arc<Shared<U>>,
    owned: OwnedRequest,
    entry: Option<CacheEntry>,
    promise: Option<ResponseSender>,
) {
    let (shared, runtime) = (Arc::clone(shared), shared.runtime.clone());
    let Some(fetch) = begun(&owned, promise.is_some()) else { return refuse(&owned, promise) };
    drop(runtime.spawn(async move {
        fetch.run(exchange(&shared, &owned, entry, promise)).await;
    }));
}

/// Counts a fetch, if the limits allow another. A fetch without a waiting client counts as the cache's own.
fn begun(owned: &OwnedRequest, is_awaited: bool) -> Option<Fetch> {
    Fetch::begin(owned.client.filter(|_| is_awaited), owned.to)
}

/// Refuses a request because of the limits on fetches. An intercepted one is the server's: its client gets the response from
/// there, by plain HTTP.
fn refuse(owned: &OwnedRequest, promise: Option<ResponseSender>) {
    match promise {
        Some(promise) if owned.to.is_some() => promise.refer(),
        Some(promise) => promise.give(busy()),
        None => {}
    }
}
