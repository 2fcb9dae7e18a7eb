//! Keeping what a gateway passes on, while it passes, and giving what is kept.
//!
//! Nothing waits for the end of a body but those who want the same short answer. Not the asking, and not the framing:
//! these are the gateway's.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use http1::cache::update::{for_server, has_validator, is_about, is_unasked};
use http1::cache::{ParsedRequest, ServerFailure, Times, Verdict};
use http1::gateway::Forward;
use http1::message::{Fields, Framing, Method, RequestHead, ResponseHead};
use wire::{Time, calendar};

use super::cached_response::{
    KeyedRequest, PendingStore, UNASKED, learn, reported, stood_in, validated, why,
};
use super::hot_responses::HotResponses;
use super::memory::CacheEntry;
use super::store::Store;
use super::{CacheConfig, given, on_calendar, since_1970};
use crate::service_handler::CollectedBody;
use dhttp::counters::count_shared;
use dhttp::fields::copy;
use dhttp::handler::Response;

/// Cache of a gateway.
#[derive(Debug)]
pub(crate) struct SharedCache {
    store: Store,
    /// Keys that are being asked for.
    asked_for: Mutex<BTreeSet<Vec<u8>>>,
    has_come: Condvar,
}

/// Result of a look-up.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// This, at once.
    Kept(Response),
    /// This, at once; and it is to be asked for again meanwhile.
    Stale(Response, Box<StreamingFill>),
    /// It is to be asked for.
    Nothing(Box<StreamingFill>),
}

/// Maximum length of a response for which requests for the same wait, in bytes; for a longer one they send their own,
/// and see it begin immediately.
const MAX_SHARED_BYTES: u64 = 256 << 10;

impl SharedCache {
    /// One that keeps nothing yet, but for what is on disk.
    ///
    /// # Errors
    /// If the kernel gives no random bytes, or the file cannot be used.
    pub(crate) fn new(config: &CacheConfig) -> io::Result<Self> {
        Ok(Self { store: Store::new(config)?, asked_for: Mutex::default(), has_come: Condvar::new() })
    }

    /// In Prometheus' text format.
    pub(crate) fn metrics(&self) -> String {
        self.store.metrics()
    }

    /// Returns the fresh response in memory, for callers that cannot wait, not even for the disk.
    pub(crate) fn at_once(&self, forward: &Forward) -> Option<Response> {
        let wanted = wanted(forward);
        let requested = wanted.requested();
        let found = wanted.is_for_cache.then(|| self.store.memory.find(&wanted.key, &requested))??;
        let is_fresh = found.record.policy().verdict(since_1970(), &requested) == Verdict::Fresh;
        is_fresh.then(|| self.hit(&wanted, &found, "hit"))
    }

    /// Looks up this request. Waits up to `patience` for a pending request for the same.
    pub(crate) fn look(self: &Arc<Self>, forward: &Forward, timeout: Duration) -> Lookup {
        let wanted = wanted(forward);
        let found = match self.find(&wanted) {
            Some((found, Verdict::Fresh)) => return Lookup::Kept(self.hit(&wanted, &found, "hit")),
            Some((found, Verdict::Meanwhile)) => {
                let response = self.hit(&wanted, &found, "hit");
                return match self.enter(&wanted) {
                    None => Lookup::Kept(response),
                    ticket => Lookup::Stale(response, StreamingFill::new(self, wanted, Some(found), ticket)),
                };
            }
            Some((found, Verdict::Validate)) => Some(found),
            None => None,
        };
        if wanted.is_for_cache && wanted.requested().is_only_for_cache() {
            let why = "504 Gateway Timeout: not cached, and the request was only-if-cached";
            return Lookup::Kept(Response::text(504, why));
        }
        if !wanted.is_shareable() {
            return Lookup::Nothing(StreamingFill::new(self, wanted, found, None));
        }
        if let Some(ticket) = self.enter(&wanted) {
            return Lookup::Nothing(StreamingFill::new(self, wanted, found, Some(ticket)));
        }
        count_shared(&self.store.counters.collapsed);
        self.wait(&wanted.key, timeout);
        match self.find(&wanted) {
            Some((found, Verdict::Fresh)) => Lookup::Kept(self.hit(&wanted, &found, "fwd=miss; collapsed")),
            found => {
                let found = found.map(|(found, _)| found);
                Lookup::Nothing(StreamingFill::new(self, wanted, found, None))
            }
        }
    }

    /// The request on its way, for whoever cannot wait: `None` if something must be waited for, be it the disk, or somebody
    /// who asks for the same.
    pub(crate) fn pass_at_once(self: &Arc<Self>, forward: &Forward) -> Option<Box<StreamingFill>> {
        let wanted = wanted(forward);
        let is_only_here = wanted.is_for_cache && wanted.requested().is_only_for_cache();
        if is_only_here || self.store.has_disk() {
            return None;
        }
        let found = match self.find(&wanted) {
            Some((_, Verdict::Fresh | Verdict::Meanwhile)) => return None,
            Some((found, Verdict::Validate)) => Some(found),
            None => None,
        };
        let ticket = if wanted.is_shareable() { Some(self.enter(&wanted)?) } else { None };
        Some(StreamingFill::new(self, wanted, found, ticket))
    }

    fn find(&self, wanted: &KeyedRequest) -> Option<(CacheEntry, Verdict)> {
        let requested = wanted.requested();
        let in_memory = wanted.is_for_cache.then(|| self.store.memory.find(&wanted.key, &requested))?;
        let found = in_memory.or_else(|| self.store.find_on_disk(&wanted.key, &requested))?;
        let verdict = found.record.policy().verdict(since_1970(), &requested);
        Some((found, verdict))
    }

    fn hit(&self, wanted: &KeyedRequest, found: &CacheEntry, how: &str) -> Response {
        count_shared(&self.store.counters.hits);
        given(found, &wanted.requested(), since_1970(), how)
    }

    /// `None`: somebody asks for it already.
    fn enter(self: &Arc<Self>, wanted: &KeyedRequest) -> Option<FillTicket> {
        let is_first = self.asked_for.lock().ok()?.insert(wanted.key.clone());
        is_first.then(|| FillTicket { keeper: Arc::clone(self), key: wanted.key.clone() })
    }

    fn wait(&self, key: &[u8], timeout: Duration) {
        if let Ok(keys) = self.asked_for.lock() {
            let _ = self.has_come.wait_timeout_while(keys, timeout, |keys| keys.contains(key));
        }
    }
}

/// Returns the request with its cache key.
fn wanted(forward: &Forward) -> KeyedRequest {
    let key = format!("{} {}", forward.authority.to_ascii_lowercase(), forward.head.target);
    let mut wanted = KeyedRequest { key: key.into_bytes(), head: forward.head.clone(), is_for_cache: false };
    wanted.is_for_cache = forward.framing == Framing::Length(0) && wanted.requested().is_for_cache();
    wanted
}

/// Fast look-up of responses that one thread serves repeatedly.
#[derive(Debug)]
pub(crate) struct ThreadCache {
    keeper: Arc<SharedCache>,
    ready: HotResponses,
    /// Used again.
    key: Vec<u8>,
}

impl ThreadCache {
    pub(crate) fn new(keeper: Arc<SharedCache>) -> Self {
        Self { keeper, ready: HotResponses::default(), key: Vec::new() }
    }

    /// Returns the fresh response in memory for a proxy's GET without a body, and without fields for caches or other
    /// proxies. An
    /// address that is not written as keys are finds nothing here, whatever it means: that is for [`SharedCache::at_once`].
    pub(crate) fn at_once(&mut self, head: &RequestHead) -> Option<&Response> {
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
        self.ready.at_once(&self.keeper.store, &self.key)
    }

    /// The same for any request.
    pub(crate) fn at_once_with_care(&self, forward: &Forward) -> Option<Response> {
        self.keeper.at_once(forward)
    }
}

/// Pending request for which others wait. However it ends, they go on.
#[derive(Debug)]
struct FillTicket {
    keeper: Arc<SharedCache>,
    key: Vec<u8>,
}

impl Drop for FillTicket {
    fn drop(&mut self) {
        if let Ok(mut keys) = self.keeper.asked_for.lock() {
            keys.remove(&self.key);
        }
        self.keeper.has_come.notify_all();
    }
}

/// A request on its way to a server, and the answer on its way back.
#[derive(Debug)]
pub(crate) struct StreamingFill {
    keeper: Arc<SharedCache>,
    wanted: KeyedRequest,
    found: Option<CacheEntry>,
    request: RequestHead,
    /// Whether the conditions in it are ours.
    is_validation: bool,
    asked_at: Time,
    ticket: Option<FillTicket>,
    /// The answer, if it is to be kept, and what has come of its body.
    keeping: Option<(PendingStore, CollectedBody)>,
}

/// Decision after the header section of a response.
#[derive(Debug)]
pub(crate) enum Disposition {
    /// This in its place, whole.
    Given(Response),
    /// The answer as it comes, with these fields.
    Passed(Fields),
    /// Nothing yet: the server is to be asked again, with what is [`StreamingFill::request`] now.
    Again,
}

impl StreamingFill {
    fn new(
        keeper: &Arc<SharedCache>,
        wanted: KeyedRequest,
        found: Option<CacheEntry>,
        ticket: Option<FillTicket>,
    ) -> Box<Self> {
        let counters = &keeper.store.counters;
        if !wanted.is_for_cache {
            count_shared(&counters.passed);
        } else if found.is_none() {
            count_shared(&counters.misses);
        }
        // The answer to HEAD describes; it is asked for as it was.
        let is_get = wanted.head.method == Method::Get;
        let ours = found
            .as_ref()
            .map(|found| found.record.fields())
            .filter(|stored| is_get && has_validator(*stored));
        let (request, is_validation) = (for_server(&wanted.head, ours), ours.is_some());
        let keeper = Arc::clone(keeper);
        let asked_at = since_1970();
        Box::new(Self { keeper, wanted, found, request, is_validation, asked_at, ticket, keeping: None })
    }

    /// The request as it goes on.
    pub(crate) const fn request(&self) -> &RequestHead {
        &self.request
    }

    /// The head of the answer has come, and how long its body will be, if that is known.
    pub(crate) fn head(&mut self, head: &ResponseHead, length: Option<u64>) -> Disposition {
        let Self { keeper, wanted, found, request, is_validation, asked_at, ticket, keeping } = self;
        let store = &keeper.store;
        let times = Times { requested: *asked_at, came: since_1970(), calendar: on_calendar() };
        if let Some(found) = found.as_ref().filter(|_| *is_validation && head.status == 304) {
            if is_about(found.record.fields(), &head.fields) {
                let response = validated(store, wanted, found, head, times);
                *ticket = None;
                return Disposition::Given(response);
            }
            // It is about another answer, which we do not have: now without our conditions.
            store.drop_all(&wanted.key);
            *request = for_server(&wanted.head, Some(Fields::new().as_lines()));
            *is_validation = false;
            return Disposition::Again;
        }
        if is_unasked(request, head.status) {
            let stored =
                stood_in(store, found.as_ref(), &wanted.requested(), times.came, ServerFailure::Unreachable);
            *ticket = None;
            return Disposition::Given(
                stored.unwrap_or_else(|| Response::text(502, &format!("502 Bad Gateway: {UNASKED}"))),
            );
        }
        let trouble = ServerFailure::Says(head.status);
        if let Some(response) = stood_in(store, found.as_ref(), &wanted.requested(), times.came, trouble) {
            *ticket = None;
            return Disposition::Given(response);
        }
        learn(store, wanted, found.as_ref(), head, length, times);
        let stored = PendingStore::of(store, wanted, head, times)
            .filter(|_| length.is_none_or(|length| length <= store.largest));
        if stored.is_none() || length.is_some_and(|length| length > MAX_SHARED_BYTES) {
            *ticket = None;
        }
        let forwarded = why(wanted, found.as_ref(), times.came);
        let how = if stored.is_some() { format!("{forwarded}; stored") } else { forwarded.to_owned() };
        *keeping = stored.map(|stored| (stored, CollectedBody::default()));
        let mut fields = reported(&head.fields, &how);
        if head.fields.get("Date").is_none() {
            // Whoever passes an answer on must say when it was made, if nobody has (RFC 9110, section 6.6.1).
            copy(&mut fields, b"Date", calendar::http(times.calendar.since(Time::ZERO)).as_bytes());
        }
        Disposition::Passed(fields)
    }

    /// A part of the body.
    pub(crate) fn part(&mut self, part: &[u8]) {
        let Some((_, collected)) = &mut self.keeping else { return };
        let is_there = collected.push(part).is_ok();
        let length = collected.length();
        if length > MAX_SHARED_BYTES {
            self.ticket = None;
        }
        if !is_there || length > self.keeper.store.largest {
            self.keeping = None;
        }
    }

    /// The answer is whole.
    pub(crate) fn end(self) {
        let Some((keeping, collected)) = self.keeping else { return };
        let found = collected.into_body().ok().and_then(|body| keeping.whole(&self.wanted.key, &body));
        if let Some(found) = found {
            self.keeper.store.keep(&found);
        }
    }

    /// No answer has come. What stands in for it, if anything may.
    pub(crate) fn failed(self) -> Option<Response> {
        let (store, requested) = (&self.keeper.store, self.wanted.requested());
        let response =
            stood_in(store, self.found.as_ref(), &requested, since_1970(), ServerFailure::Unreachable);
        if response.is_none() {
            count_shared(&store.counters.failed);
        }
        response
    }
}
