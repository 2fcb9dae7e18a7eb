//! Cache of a gateway: stores responses while they pass, and serves stored ones.
//!
//! Only requests for the same short response wait for the end of a body. Sending requests, and framing, are the gateway's.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use http1::cache::update::{for_server, has_validator, is_about, is_unsolicited};
use http1::cache::{ParsedRequest, ServerFailure, Times, Verdict};
use http1::gateway::Forward;
use http1::message::{Fields, Framing, Method, RequestHead, ResponseHead};
use wire::{Time, calendar};

use super::cached_response::{
    KeyedRequest, PendingStore, UNSOLICITED_304, forward_reason, reported, stale_replacement, update_store,
    validated,
};
use super::hot_responses::HotResponses;
use super::memory::CacheEntry;
use super::store::Store;
use super::{CacheConfig, on_calendar, serve_from, since_1970};
use crate::service_handler::CollectedBody;
use dhttp::counters::count_shared;
use dhttp::fields::copy;
use dhttp::handler::Response;

/// Cache of a gateway.
#[derive(Debug)]
pub(crate) struct SharedCache {
    store: Store,
    /// Keys with a pending request.
    pending_keys: Mutex<BTreeSet<Vec<u8>>>,
    response_arrived: Condvar,
}

/// Result of a look-up.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// A fresh response, to be sent immediately.
    Hit(Response),
    /// A stale response, to be sent immediately while it is revalidated.
    Stale(Response, Box<StreamingFill>),
    /// No usable response is stored: to be requested.
    Miss(Box<StreamingFill>),
}

/// Maximum length of a response for which collapsed requests wait, in bytes. For a longer one they are sent separately, so
/// that its first bytes arrive immediately.
const MAX_SHARED_BYTES: u64 = 256 << 10;

impl SharedCache {
    /// Creates a cache with an empty memory, and the responses on disk.
    ///
    /// # Errors
    /// If the kernel gives no random bytes, or the file cannot be used.
    pub(crate) fn new(config: &CacheConfig) -> io::Result<Self> {
        Ok(Self {
            store: Store::new(config)?,
            pending_keys: Mutex::default(),
            response_arrived: Condvar::new(),
        })
    }

    /// Renders the counters in Prometheus' text format.
    pub(crate) fn metrics(&self) -> String {
        self.store.metrics()
    }

    /// Returns the fresh response in memory, for callers that cannot wait, not even for the disk.
    pub(crate) fn fresh_in_memory(&self, forward: &Forward) -> Option<Response> {
        let keyed_request = keyed_request(forward);
        let requested = keyed_request.requested();
        let entry =
            keyed_request.is_for_cache.then(|| self.store.memory.find(&keyed_request.key, &requested))??;
        let is_fresh = entry.record.policy().verdict(since_1970(), &requested) == Verdict::Fresh;
        is_fresh.then(|| self.hit(&keyed_request, &entry, "hit"))
    }

    /// Looks up this request. Waits up to `timeout` for a pending request for the same.
    pub(crate) fn look(self: &Arc<Self>, forward: &Forward, timeout: Duration) -> Lookup {
        let keyed_request = keyed_request(forward);
        let entry = match self.find(&keyed_request) {
            Some((entry, Verdict::Fresh)) => return Lookup::Hit(self.hit(&keyed_request, &entry, "hit")),
            Some((entry, Verdict::StaleWhileRevalidate)) => {
                let response = self.hit(&keyed_request, &entry, "hit");
                return match self.enter(&keyed_request) {
                    None => Lookup::Hit(response),
                    ticket => {
                        Lookup::Stale(response, StreamingFill::new(self, keyed_request, Some(entry), ticket))
                    }
                };
            }
            Some((entry, Verdict::Validate)) => Some(entry),
            None => None,
        };
        if keyed_request.is_for_cache && keyed_request.requested().is_only_for_cache() {
            let sentence = "504 Gateway Timeout: not cached, and the request was only-if-cached";
            return Lookup::Hit(Response::text(504, sentence));
        }
        if !keyed_request.is_shareable() {
            return Lookup::Miss(StreamingFill::new(self, keyed_request, entry, None));
        }
        if let Some(ticket) = self.enter(&keyed_request) {
            return Lookup::Miss(StreamingFill::new(self, keyed_request, entry, Some(ticket)));
        }
        count_shared(&self.store.counters.collapsed);
        self.wait(&keyed_request.key, timeout);
        match self.find(&keyed_request) {
            Some((entry, Verdict::Fresh)) => {
                Lookup::Hit(self.hit(&keyed_request, &entry, "fwd=miss; collapsed"))
            }
            entry => {
                let entry = entry.map(|(entry, _)| entry);
                Lookup::Miss(StreamingFill::new(self, keyed_request, entry, None))
            }
        }
    }

    /// Returns the fill for callers that cannot wait; `None` if it would wait for the disk, or for a pending request for the
    /// same object.
    pub(crate) fn fill_without_waiting(self: &Arc<Self>, forward: &Forward) -> Option<Box<StreamingFill>> {
        let keyed_request = keyed_request(forward);
        let is_only_here = keyed_request.is_for_cache && keyed_request.requested().is_only_for_cache();
        if is_only_here || self.store.has_disk() {
            return None;
        }
        let entry = match self.find(&keyed_request) {
            Some((_, Verdict::Fresh | Verdict::StaleWhileRevalidate)) => return None,
            Some((entry, Verdict::Validate)) => Some(entry),
            None => None,
        };
        let ticket = if keyed_request.is_shareable() { Some(self.enter(&keyed_request)?) } else { None };
        Some(StreamingFill::new(self, keyed_request, entry, ticket))
    }

    fn find(&self, keyed_request: &KeyedRequest) -> Option<(CacheEntry, Verdict)> {
        let requested = keyed_request.requested();
        let in_memory =
            keyed_request.is_for_cache.then(|| self.store.memory.find(&keyed_request.key, &requested))?;
        let entry = in_memory.or_else(|| self.store.find_on_disk(&keyed_request.key, &requested))?;
        let verdict = entry.record.policy().verdict(since_1970(), &requested);
        Some((entry, verdict))
    }

    fn hit(&self, keyed_request: &KeyedRequest, entry: &CacheEntry, cache_status: &str) -> Response {
        count_shared(&self.store.counters.hits);
        serve_from(entry, &keyed_request.requested(), since_1970(), cache_status)
    }

    /// Returns `None` if a request for it is already pending.
    fn enter(self: &Arc<Self>, keyed_request: &KeyedRequest) -> Option<FillTicket> {
        let is_first = self.pending_keys.lock().ok()?.insert(keyed_request.key.clone());
        is_first.then(|| FillTicket { shared_cache: Arc::clone(self), key: keyed_request.key.clone() })
    }

    fn wait(&self, key: &[u8], timeout: Duration) {
        if let Ok(keys) = self.pending_keys.lock() {
            let _ = self.response_arrived.wait_timeout_while(keys, timeout, |keys| keys.contains(key));
        }
    }
}

/// Returns the request with its cache key.
fn keyed_request(forward: &Forward) -> KeyedRequest {
    let key = format!("{} {}", forward.authority.to_ascii_lowercase(), forward.head.target);
    let mut keyed_request =
        KeyedRequest { key: key.into_bytes(), head: forward.head.clone(), is_for_cache: false };
    keyed_request.is_for_cache =
        forward.framing == Framing::Length(0) && keyed_request.requested().is_for_cache();
    keyed_request
}

/// Fast look-up of responses that one thread serves repeatedly.
#[derive(Debug)]
pub(crate) struct ThreadCache {
    shared_cache: Arc<SharedCache>,
    hot_responses: HotResponses,
    /// Buffer for keys, reused.
    key: Vec<u8>,
}

impl ThreadCache {
    pub(crate) fn new(shared_cache: Arc<SharedCache>) -> Self {
        Self { shared_cache, hot_responses: HotResponses::default(), key: Vec::new() }
    }

    /// Returns the fresh response in memory for a proxy's GET without a body, and without fields for caches or other proxies.
    /// Addresses that are not spelled as keys are never found here: [`SharedCache::fresh_in_memory`] handles them.
    pub(crate) fn fresh_in_memory(&mut self, head: &RequestHead) -> Option<&Response> {
        let is_for_proxies =
            |name: &[u8]| name.eq_ignore_ascii_case(b"Via") || name.eq_ignore_ascii_case(b"Expect");
        let is_plain =
            |(name, _): (&[u8], &[u8])| !ParsedRequest::is_about_caches(name) && !is_for_proxies(name);
        let address = head.target.strip_prefix("http://")?;
        let (authority, path) = address.split_at_checked(address.find('/')?)?;
        if head.method != Method::Get || !head.fields.iter().all(is_plain) {
            return None;
        }
        self.key.clear();
        for part in [authority, " ", path] {
            self.key.extend_from_slice(part.as_bytes());
        }
        self.hot_responses.fresh_in_memory(&self.shared_cache.store, &self.key)
    }

    /// Does the same for any request.
    pub(crate) fn respond_from_memory(&self, forward: &Forward) -> Option<Response> {
        self.shared_cache.fresh_in_memory(forward)
    }
}

/// Pending request for which others wait. When it is dropped, they continue.
#[derive(Debug)]
struct FillTicket {
    shared_cache: Arc<SharedCache>,
    key: Vec<u8>,
}

impl Drop for FillTicket {
    fn drop(&mut self) {
        if let Ok(mut keys) = self.shared_cache.pending_keys.lock() {
            keys.remove(&self.key);
        }
        self.shared_cache.response_arrived.notify_all();
    }
}

/// A request forwarded to a server, and its response being stored.
#[derive(Debug)]
pub(crate) struct StreamingFill {
    shared_cache: Arc<SharedCache>,
    keyed_request: KeyedRequest,
    entry: Option<CacheEntry>,
    request: RequestHead,
    /// Whether the conditions in it are this cache's own.
    is_validation: bool,
    requested_at: Time,
    ticket: Option<FillTicket>,
    /// The response, if it is to be stored, and the bytes of its body so far.
    pending_store: Option<(PendingStore, CollectedBody)>,
}

/// Decision after the header section of a response.
#[derive(Debug)]
pub(crate) enum Disposition {
    /// A stored response replaces it, whole.
    Complete(Response),
    /// The response is forwarded as it arrives, with these fields.
    Forward(Fields),
    /// No response yet: the server is to be sent [`StreamingFill::request`], which has changed.
    Retry,
}

impl StreamingFill {
    fn new(
        shared_cache: &Arc<SharedCache>,
        keyed_request: KeyedRequest,
        entry: Option<CacheEntry>,
        ticket: Option<FillTicket>,
    ) -> Box<Self> {
        let counters = &shared_cache.store.counters;
        if !keyed_request.is_for_cache {
            count_shared(&counters.passed);
        } else if entry.is_none() {
            count_shared(&counters.misses);
        }
        // HEAD is forwarded without the cache's conditions: its response only describes the stored one.
        let is_get = keyed_request.head.method == Method::Get;
        let stored_response = entry
            .as_ref()
            .map(|entry| entry.record.fields())
            .filter(|stored| is_get && has_validator(*stored));
        let (request, is_validation) =
            (for_server(&keyed_request.head, stored_response), stored_response.is_some());
        let shared_cache = Arc::clone(shared_cache);
        let requested_at = since_1970();
        Box::new(Self {
            shared_cache,
            keyed_request,
            entry,
            request,
            is_validation,
            requested_at,
            ticket,
            pending_store: None,
        })
    }

    /// Returns the request as it is forwarded.
    pub(crate) const fn request(&self) -> &RequestHead {
        &self.request
    }

    /// Handles the header section of a response; `length` is that of its body, if known.
    pub(crate) fn head(&mut self, head: &ResponseHead, length: Option<u64>) -> Disposition {
        let Self {
            shared_cache,
            keyed_request,
            entry,
            request,
            is_validation,
            requested_at,
            ticket,
            pending_store,
        } = self;
        let store = &shared_cache.store;
        let times = Times { requested: *requested_at, received_at: since_1970(), calendar: on_calendar() };
        if let Some(entry) = entry.as_ref().filter(|_| *is_validation && head.status == 304) {
            if is_about(entry.record.fields(), &head.fields) {
                let response = validated(store, keyed_request, entry, head, times);
                *ticket = None;
                return Disposition::Complete(response);
            }
            // It describes a response that is not stored: retry without the cache's conditions.
            store.drop_all(&keyed_request.key);
            *request = for_server(&keyed_request.head, Some(Fields::new().as_lines()));
            *is_validation = false;
            return Disposition::Retry;
        }
        if is_unsolicited(request, head.status) {
            let stored = stale_replacement(
                store,
                entry.as_ref(),
                &keyed_request.requested(),
                times.received_at,
                ServerFailure::Unreachable,
            );
            *ticket = None;
            return Disposition::Complete(
                stored.unwrap_or_else(|| Response::text(502, &format!("502 Bad Gateway: {UNSOLICITED_304}"))),
            );
        }
        let failure = ServerFailure::Status(head.status);
        if let Some(response) =
            stale_replacement(store, entry.as_ref(), &keyed_request.requested(), times.received_at, failure)
        {
            *ticket = None;
            return Disposition::Complete(response);
        }
        update_store(store, keyed_request, entry.as_ref(), head, length, times);
        let stored = PendingStore::of(store, keyed_request, head, times)
            .filter(|_| length.is_none_or(|length| length <= store.largest));
        if stored.is_none() || length.is_some_and(|length| length > MAX_SHARED_BYTES) {
            *ticket = None;
        }
        let forwarded = forward_reason(keyed_request, entry.as_ref(), times.received_at);
        let cache_status =
            if stored.is_some() { format!("{forwarded}; stored") } else { forwarded.to_owned() };
        *pending_store = stored.map(|stored| (stored, CollectedBody::default()));
        let mut fields = reported(&head.fields, &cache_status);
        if head.fields.get("Date").is_none() {
            // A forwarded response needs a date, if it has none (RFC 9110, section 6.6.1).
            copy(&mut fields, b"Date", calendar::http(times.calendar.since(Time::ZERO)).as_bytes());
        }
        Disposition::Forward(fields)
    }

    /// Handles a part of the body.
    pub(crate) fn part(&mut self, part: &[u8]) {
        let Some((_, collected)) = &mut self.pending_store else { return };
        let fits = collected.push(part).is_ok();
        let length = collected.length();
        if length > MAX_SHARED_BYTES {
            self.ticket = None;
        }
        if !fits || length > self.shared_cache.store.largest {
            self.pending_store = None;
        }
    }

    /// Handles the end of a complete response.
    pub(crate) fn end(self) {
        let Some((pending_store, collected)) = self.pending_store else { return };
        let entry =
            collected.into_body().ok().and_then(|body| pending_store.whole(&self.keyed_request.key, &body));
        if let Some(entry) = entry {
            self.shared_cache.store.keep(&entry);
        }
    }

    /// Handles a failed request. Returns the stored response that replaces it, if allowed.
    pub(crate) fn failed(self) -> Option<Response> {
        let (store, requested) = (&self.shared_cache.store, self.keyed_request.requested());
        let response = stale_replacement(
            store,
            self.entry.as_ref(),
            &requested,
            since_1970(),
            ServerFailure::Unreachable,
        );
        if response.is_none() {
            count_shared(&store.counters.failed);
        }
        response
    }
}
