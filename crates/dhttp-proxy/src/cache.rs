//! A shared cache as a handler: stored responses are served immediately, in the server's thread; all others are fetched
//! (`papers/dhttp#section-iv-a`, RFC 9111).
//!
//! Requests flow in as to any handler, and out to an [`Upstream`]; its responses are stored as they allow. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`upstream`] | the source of missing responses |
//! | [`forward_upstream`] | an upstream: the servers to which intercepted requests were addressed |
//! | [`rules`] | kernel rules that intercept requests |
//! | `exchange` | requests to the upstream, storing, and the response when they fail |
//! | `pending_requests` | collapsed requests |
//! | `streaming_fill` | the cache of a gateway, filled while responses pass |
//! | `cached_response` | changes to stored responses by a new response |
//! | `record` | a stored response |
//! | `store` | the store, in memory and on disk |
//! | `memory` | the store in memory, and eviction |
//! | `hot_responses` | rendered responses, valid for the current second |
//! | `disk` | the store on disk, which survives a restart |
//! | `counters` | counters for Prometheus |
//!
//! [`http1::cache`] decides what may be stored and reused. The cache knows no transport; that is the server's.

mod cached_response;
pub mod counters;
mod disk;
mod exchange;
pub mod forward_upstream;
mod hot_responses;
mod memory;
mod pending_requests;
mod record;
pub mod rules;
mod store;
pub(crate) mod streaming_fill;
pub mod upstream;

use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use http1::cache::{ParsedRequest, StoredResponse, Verdict, reuse};
use http1::gateway::{HopByHop, is_dhttp_field, is_rewriting_field};
use http1::message::{Method, RequestHead, Version};
use tokio::runtime::Handle;
use wire::Time;

use cached_response::KeyedRequest;
use dhttp::counters::count_shared;
use dhttp::deferred::{Reply, promise};
use dhttp::fields::copy;
use dhttp::handler::{Body, Handler, Outcome, Request, Response};
use dhttp::own_address::is_own;
use exchange::{MAX_BODY_BYTES, OwnedRequest};
use hot_responses::HotResponses;
use linux::clock::{calendar, steady_calendar};
use memory::CacheEntry;
use pending_requests::PendingRequests;
use store::Store;
pub use upstream::Upstream;

/// Configuration of a cache.
#[derive(Clone, Debug)]
pub struct CacheConfig {
    /// Maximum number of bytes stored in memory.
    pub memory: u64,
    /// Maximum length of a stored body, in bytes.
    pub largest: u64,
    /// Stores only responses with explicit freshness, and collapses no requests. Meant for a reverse proxy whose
    /// origin mostly sends responses for a single client.
    pub is_sparing: bool,
    /// Fields that are obeyed instead of `Cache-Control`, in this order (RFC 9213, section 2.2).
    pub targets: Vec<String>,
    /// File in which responses are stored in addition to memory, and its capacity in bytes of responses; `None`: memory alone.
    pub disk: Option<(PathBuf, u64)>,
    /// Callback that receives a sentence when the disk fails.
    pub report: fn(&str),
}

impl Default for CacheConfig {
    fn default() -> Self {
        let (memory, largest, targets) = (256 << 20, 32 << 20, Vec::new());
        Self { memory, largest, is_sparing: false, targets, disk: None, report: |_| {} }
    }
}

/// A cache before an upstream. Its clones share the store.
#[derive(Debug)]
pub struct Cache<U> {
    shared: Arc<Shared<U>>,
    /// Buffer for keys, reused.
    key: Vec<u8>,
    hot_responses: HotResponses,
}

/// State shared by the threads.
#[derive(Debug)]
struct Shared<U> {
    upstream: U,
    runtime: Handle,
    store: Arc<Store>,
    waiting: PendingRequests,
}

/// Name in `Cache-Status` and `Via`.
const NAME: &str = "roundtrip";

impl<U: Upstream> Cache<U> {
    /// Creates an empty cache, which fetches missing responses in that runtime.
    ///
    /// # Errors
    /// If the kernel gives no random bytes, or the file cannot be used.
    pub fn new(upstream: U, config: CacheConfig, runtime: Handle) -> std::io::Result<Self> {
        let (store, waiting) = (Arc::new(Store::new(&config)?), PendingRequests::default());
        Ok(Self {
            shared: Arc::new(Shared { upstream, runtime, store, waiting }),
            key: Vec::new(),
            hot_responses: HotResponses::default(),
        })
    }

    /// Returns a cache with the same store and another upstream, for a server that has moved.
    pub fn before<V: Upstream>(&self, upstream: V) -> Cache<V> {
        let Shared { upstream: _, runtime, store, waiting: _ } = &*self.shared;
        let (runtime, store, waiting) = (runtime.clone(), Arc::clone(store), PendingRequests::default());
        Cache {
            shared: Arc::new(Shared { upstream, runtime, store, waiting }),
            key: Vec::new(),
            hot_responses: HotResponses::default(),
        }
    }

    /// Applies this configuration's capacities in memory and on the existing disk; stored responses stay as far as they fit.
    pub fn resize(&self, config: &CacheConfig) {
        self.shared.store.resize(config);
    }

    /// Returns a function that renders its counters in Prometheus' text format.
    pub fn metrics(&self) -> impl Fn() -> String + Send + 'static + use<U> {
        let shared = Arc::clone(&self.shared);
        move || shared.store.metrics()
    }
}

impl<U> Clone for Cache<U> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), key: Vec::new(), hot_responses: HotResponses::default() }
    }
}

impl<U: Upstream> Handler for Cache<U> {
    fn respond_with<T>(&mut self, _now: Time, request: &Request<'_>, to: impl FnOnce(Outcome<'_>) -> T) -> T {
        if let Some(reuse) = self.fresh_in_memory(request) {
            return to(Outcome::Borrowed(reuse));
        }
        to(Outcome::Owned(self.respond_with_directives(request)))
    }

    fn respond(&mut self, _now: Time, request: &Request<'_>) -> Reply {
        match self.fresh_in_memory(request) {
            Some(reuse) => reuse.clone().into(),
            None => self.respond_with_directives(request),
        }
    }
}

impl<U: Upstream> Cache<U> {
    /// Returns a fresh stored response to a GET without cache directives: most requests.
    fn fresh_in_memory(&mut self, request: &Request<'_>) -> Option<&Response> {
        let mut is_plain = request.method == "GET" && request.body.is_empty();
        request.each_field(|name, _| is_plain &= !ParsedRequest::is_about_caches(name));
        if !is_plain {
            return None;
        }
        write_key(&mut self.key, request);
        self.hot_responses.fresh_in_memory(&self.shared.store, &self.key)
    }

    fn respond_with_directives(&mut self, request: &Request<'_>) -> Reply {
        if is_purge(request.method) && !request.client.is_some_and(may_purge) {
            return Response::text(403, "403 Forbidden: responses are purged from the cache's own host only")
                .into();
        }
        let requested = ParsedRequest::new(request.method, forwarded_lines(request));
        write_key(&mut self.key, request);
        let is_for_cache = requested.is_for_cache() && request.body.is_empty();
        let store = &self.shared.store;
        let entry = is_for_cache.then(|| store.memory.find(&self.key, &requested)).flatten();
        // Disk look-ups run in another thread, unless this request allows nothing else. Without a token there are no disk
        // look-ups and no fetches, unless the request was intercepted: then they stay within its budget.
        let is_immediate = request.client.is_none() && request.meant_for.is_none();
        let may_wait_for_disk =
            is_for_cache && entry.is_none() && requested.is_only_for_cache() && !is_immediate;
        let entry = if may_wait_for_disk { store.find_on_disk(&self.key, &requested) } else { entry };
        let now = since_1970();
        let verdict = entry.as_ref().map(|entry| entry.record.policy().verdict(now, &requested));
        match (entry, verdict) {
            (Some(entry), Some(Verdict::Fresh)) => {
                count_shared(&self.shared.store.counters.hits);
                serve_from(&entry, &requested, now, "hit").into()
            }
            (Some(entry), Some(Verdict::StaleWhileRevalidate)) => {
                count_shared(&self.shared.store.counters.hits);
                let response = serve_from(&entry, &requested, now, "hit");
                if request.client.is_some() {
                    self.begin(request, is_for_cache, Some(entry), None);
                }
                response.into()
            }
            (_, _) if is_immediate => Reply::PlainHttp,
            (_, _) if is_for_cache && requested.is_only_for_cache() => {
                Response::text(504, "504 Gateway Timeout: not cached, and the request was only-if-cached")
                    .into()
            }
            (entry, _) => {
                let (promise, later) = promise();
                self.begin(request, is_for_cache, entry, Some(promise));
                Reply::Later(later)
            }
        }
    }

    /// Requests it from the upstream, unless a request for the same is pending.
    fn begin(
        &self,
        request: &Request<'_>,
        is_for_cache: bool,
        entry: Option<CacheEntry>,
        promise: Option<dhttp::deferred::ResponseSender>,
    ) {
        let keyed_request = KeyedRequest { key: self.key.clone(), head: to_head(request), is_for_cache };
        let (client, max) = (request.client, request.budget.unwrap_or(MAX_BODY_BYTES));
        let owned =
            OwnedRequest { keyed_request, client, max, to: request.meant_for, body: request.body.to_vec() };
        pending_requests::begin(&self.shared, owned, entry, promise);
    }
}

/// Writes the cache key: host and target. Responses of different hosts are separate; those of intercepted requests are also
/// separate from those of another server that claims to be the same host.
fn write_key(key: &mut Vec<u8>, request: &Request<'_>) {
    key.clear();
    if let Some(server) = request.meant_for {
        // Writing to memory cannot fail.
        let _ = write!(key, "{server} ");
    }
    key.extend(request.field("Host").unwrap_or_default().iter().map(u8::to_ascii_lowercase));
    // A space, which occurs in no host and no target.
    key.push(b' ');
    key.extend_from_slice(request.target.as_bytes());
}

/// The request fields that go to the origin, and that alone may select among its responses (`Vary`).
fn forwarded_lines<'a>(request: &Request<'a>) -> Vec<(&'a [u8], &'a [u8])> {
    let mut lines = Vec::with_capacity(16);
    request.each_field(|name, value| lines.push((name, value)));
    let matches = |name: &[u8], expected: &str| name.eq_ignore_ascii_case(expected.as_bytes());
    let connection = lines.iter().filter(|(name, _)| matches(name, "Connection")).map(|(_, value)| *value);
    let hop = HopByHop::named_by(connection);
    let trailers = |(name, value): &(&[u8], &[u8])| {
        matches(name, "TE")
            && value.split(|byte| *byte == b',').any(|coding| matches(coding.trim_ascii(), "trailers"))
    };
    let accepts_trailers = lines.iter().any(trailers);
    lines.retain(|(name, _)| !hop.covers(name) && !is_dhttp_field(name) && !is_rewriting_field(name));
    if accepts_trailers {
        // This cache reads trailers and forwards them.
        lines.push((b"TE", b"trailers"));
    }
    lines
}

fn to_head(request: &Request<'_>) -> RequestHead {
    let mut fields = http1::message::Fields::new();
    for (name, value) in forwarded_lines(request) {
        copy(&mut fields, name, value);
    }
    let method = Method::from_name(request.method);
    RequestHead { method, target: request.target.to_owned(), version: Version::Http11, fields }
}

const fn seconds(now: Time) -> u64 {
    now.as_nanos() / 1_000_000_000
}

/// Current time for ages; calendar steps do not affect it.
fn since_1970() -> Time {
    Time::ZERO + steady_calendar()
}

/// Current time for dates.
fn on_calendar() -> Time {
    Time::ZERO + calendar()
}

/// Returns the response made from a stored one.
fn serve_from(entry: &CacheEntry, requested: &ParsedRequest<'_>, now: Time, cache_status: &str) -> Response {
    let CacheEntry { record, large } = entry;
    let length = large.as_ref().map_or(record.body().len() as u64, Body::len);
    let stored =
        StoredResponse { status: record.status(), fields: record.fields(), length, policy: record.policy() };
    let served = reuse(stored, requested, now, NAME, cache_status);
    let (first, length) = served.part;
    let body = match large {
        Some(large) => large.part(first, length),
        None => Body::of_slice(record.body(), first, length),
    };
    Response { status: served.status, fields: Arc::new(served.fields), body }
}

/// Whether a method, which no RFC defines, is known to remove stored responses and to do nothing else.
fn is_purge(method: &str) -> bool {
    matches!(method, "PURGE" | "BAN" | "REFRESH")
}

/// Whether a client at this address may remove stored responses: on this host.
fn may_purge(client: IpAddr) -> bool {
    client.to_canonical().is_loopback() || is_own(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_purged_from_this_host_only() {
        assert!(["PURGE", "BAN", "REFRESH"].into_iter().all(is_purge) && !is_purge("DELETE"));
        let may = |address: &str| may_purge(address.parse().unwrap());
        assert!(may("127.0.0.1") && may("::1") && may("::ffff:127.0.0.1"));
        assert!(!may("203.0.113.7") && !may("2600::7"));
    }
}
