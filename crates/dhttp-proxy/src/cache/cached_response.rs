//! Changes to stored responses by a response of the upstream, and the response to the client.
//!
//! The requests themselves are sent by `exchange`, and by gateways.

use std::sync::Arc;

use http1::cache::update::{describes, freshened, obsolete};
use http1::cache::{Choice, ParsedRequest, Policy, ServerFailure, Times};
use http1::gateway::is_dhttp_field;
use http1::message::{Fields, Method, RequestHead, ResponseHead, Version};
use wire::{Time, calendar};

use super::memory::CacheEntry;
use super::record::{Record, RecordParts};
use super::store::Store;
use super::{NAME, serve_from};
use dhttp::counters::count_shared;
use dhttp::fields::copy;
use dhttp::handler::{Body, Response};

/// A request with its cache key.
#[derive(Clone, Debug)]
pub(super) struct KeyedRequest {
    pub(super) key: Vec<u8>,
    pub(super) head: RequestHead,
    /// Whether a stored response could satisfy it.
    pub(super) is_for_cache: bool,
}

impl KeyedRequest {
    pub(super) fn requested(&self) -> ParsedRequest<'_> {
        ParsedRequest::new(self.head.method.name(), self.head.fields.iter())
    }

    /// Whether its response may be shared: a whole response, to be stored.
    pub(super) fn is_shareable(&self) -> bool {
        let excluding_fields = ["Range", "Authorization", "If-None-Match", "If-Modified-Since"];
        let is_plain = excluding_fields.iter().all(|name| self.head.fields.get(name).is_none());
        self.is_for_cache && self.head.method == Method::Get && is_plain
    }

    /// The host, as written in URLs.
    fn host(&self) -> String {
        let host = self.head.fields.get("Host").unwrap_or_default();
        String::from_utf8_lossy(host).trim_end_matches(":80").to_owned()
    }

    /// Returns the key of another path of the same host.
    fn sibling_key(&self, path: &str) -> Vec<u8> {
        let end = self.key.len() - self.head.target.len().min(self.key.len());
        let mut key = self.key.get(..end).unwrap_or_default().to_vec();
        key.extend_from_slice(path.as_bytes());
        key
    }
}

/// Error for an unsolicited 304.
pub(super) const UNSOLICITED_304: &str = "304 to an unconditional request";

/// A body up to this length is stored within its record.
const MAX_INLINE_BYTES: u64 = 8 << 10;

/// Returns the stale response that replaces a failed one, if allowed.
pub(super) fn stale_replacement(
    store: &Store,
    entry: Option<&CacheEntry>,
    requested: &ParsedRequest<'_>,
    now: Time,
    failure: ServerFailure,
) -> Option<Response> {
    let entry = entry.filter(|entry| entry.record.policy().may_replace_failure(now, requested, failure))?;
    count_shared(&store.counters.stale_replacement);
    Some(match failure {
        ServerFailure::Unreachable => serve_from(entry, requested, now, "fwd=stale; detail=unreachable"),
        ServerFailure::Status(status) => {
            serve_from(entry, requested, now, &format!("fwd=stale; fwd-status={status}"))
        }
    })
}

/// Handles a 304 from the upstream: the stored response is still valid.
pub(super) fn validated(
    store: &Store,
    keyed_request: &KeyedRequest,
    entry: &CacheEntry,
    update: &ResponseHead,
    times: Times,
) -> Response {
    count_shared(&store.counters.validated);
    let fields = freshened(entry.record.fields(), &stored_fields(&update.fields, times.calendar));
    let renewed = renewed(store, keyed_request, entry, fields, times);
    match &renewed {
        Some(fresh) => store.keep(fresh),
        // This client forbids storing: the new response is not stored, and the old one may stay.
        None if keyed_request.requested().is_not_to_be_kept() => {}
        // The response is valid for this request, but may no longer be stored.
        None => store.drop_all(&keyed_request.key),
    }
    let cache_status =
        format!("{}; fwd-status=304", forward_reason(keyed_request, Some(entry), times.received_at));
    serve_from(
        renewed.as_ref().unwrap_or(entry),
        &keyed_request.requested(),
        times.received_at,
        &cache_status,
    )
}

/// Returns the stored response with other fields; `None` if these forbid storing it.
fn renewed(
    store: &Store,
    keyed_request: &KeyedRequest,
    entry: &CacheEntry,
    fields: Fields,
    times: Times,
) -> Option<CacheEntry> {
    let status = entry.record.status();
    let head = ResponseHead { version: Version::Http11, status, fields };
    // The stored response was to GET, whatever this request's method is.
    let get = ParsedRequest::new("GET", keyed_request.head.fields.iter());
    let policy = Policy::of(&get, &head, times, &store.targets)?;
    let choice = Choice::of(&get, &head.fields)?;
    let (key, fields) = (&*keyed_request.key, head.fields.as_lines());
    let record =
        Record::new(RecordParts { key, choice: &choice, policy, status, fields, body: entry.record.body() });
    Some(CacheEntry { record, large: entry.large.clone() })
}

/// Updates stored responses by the header section of a response: invalidates them, or, after HEAD, checks whether they
/// are unchanged. `length` is the length of the body described to HEAD, in bytes.
pub(super) fn update_store(
    store: &Store,
    keyed_request: &KeyedRequest,
    entry: Option<&CacheEntry>,
    head: &ResponseHead,
    length: Option<u64>,
    times: Times,
) {
    for path in obsolete(&keyed_request.head, &keyed_request.host(), head) {
        store.drop_all(&keyed_request.sibling_key(&path));
    }
    if let Some(entry) = entry.filter(|_| keyed_request.head.method == Method::Head && head.status == 200) {
        // Either it describes the stored response, or the stored one is outdated (section 4.3.5).
        let fields = stored_fields(&head.fields, times.calendar);
        let stored = entry.large.as_ref().map_or(entry.record.body().len() as u64, Body::len);
        if length.is_none_or(|update| update == stored) && describes(entry.record.fields(), stored, &fields) {
            let fields = freshened(entry.record.fields(), &fields);
            if let Some(fresh) = renewed(store, keyed_request, entry, fields, times) {
                store.keep(&fresh);
            }
        } else {
            store.drop_all(&keyed_request.key);
        }
    }
}

/// A response that is stored once its body is complete.
#[derive(Debug)]
pub(super) struct PendingStore {
    policy: Policy,
    choice: Choice,
    status: u16,
    fields: Fields,
}

impl PendingStore {
    /// Returns `None` if it is not to be stored.
    pub(super) fn of(
        store: &Store,
        keyed_request: &KeyedRequest,
        head: &ResponseHead,
        times: Times,
    ) -> Option<Self> {
        if !keyed_request.is_for_cache {
            return None;
        }
        let fields = stored_fields(&head.fields, times.calendar);
        let head = ResponseHead { version: Version::Http11, status: head.status, fields };
        let requested = keyed_request.requested();
        let policy = Policy::of(&requested, &head, times, &store.targets)?;
        let choice = Choice::of(&requested, &head.fields)?;
        Some(Self { policy, choice, status: head.status, fields: head.fields })
    }

    /// Returns the complete entry; `None` if there is no body.
    pub(super) fn whole(self, key: &[u8], body: &Body) -> Option<CacheEntry> {
        let Self { policy, choice, status, fields } = self;
        let (short, large) = match body {
            Body::Whole(bytes) if bytes.len() as u64 <= MAX_INLINE_BYTES => (&**bytes, None),
            Body::Whole(_) | Body::File { file: _, offset: _, length: _ } => (&[][..], Some(body.clone())),
            Body::Described(_) => return None,
        };
        let fields = fields.as_lines();
        let record = Record::new(RecordParts { key, choice: &choice, policy, status, fields, body: short });
        Some(CacheEntry { record, large })
    }
}

/// Reason of the forward, for `Cache-Status` (RFC 9211, section 2.2).
pub(super) fn forward_reason(
    keyed_request: &KeyedRequest,
    entry: Option<&CacheEntry>,
    now: Time,
) -> &'static str {
    match (keyed_request.is_for_cache, &keyed_request.head.method, entry) {
        (false, Method::Get | Method::Head, _) => "fwd=bypass",
        (false, Method::Options | Method::Other(_), _) => "fwd=method",
        // A fresh one is stored, but the request did not accept it.
        (true, _, Some(entry)) if entry.record.policy().is_fresh(now) => "fwd=request",
        (true, _, Some(_)) => "fwd=stale",
        (true, _, None) => "fwd=miss",
    }
}

/// Returns the fields of a forwarded response, with a line about this cache.
pub(super) fn reported(fields: &Fields, cache_status: &str) -> Fields {
    let mut reported = Fields::new();
    for (name, value) in fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(b"Cache-Status")) {
        copy(&mut reported, name, value);
    }
    http1::cache::reuse::status_field(&mut reported, fields.as_lines(), NAME, cache_status, None);
    reported
}

/// Returns the response to the client for one that is not stored.
pub(super) fn passed_through(head: &ResponseHead, body: Body, cache_status: &str, now: Time) -> Response {
    let fields = reported(&stored_fields(&head.fields, now), cache_status);
    Response { status: head.status, fields: Arc::new(fields), body }
}

/// Returns the fields to store (RFC 9111, section 3.1). Omits those that a server adds itself, except the date, and those
/// between a client and a proxy.
fn stored_fields(received: &Fields, now: Time) -> Fields {
    const NOT_STORED: [&str; 7] = [
        // Trailers are not stored; where they are forwarded, this field is added again.
        "Trailer",
        "Content-Length",
        "Connection",
        "Transfer-Encoding",
        "Proxy-Authenticate",
        "Proxy-Authentication-Info",
        "Proxy-Authorization",
    ];
    let mut fields = Fields::new();
    if received.get("Date").is_none() {
        // Stored responses need their date (RFC 9110, section 6.6.1).
        copy(&mut fields, b"Date", calendar::http(now.since(Time::ZERO)).as_bytes());
    }
    for (name, value) in received.iter() {
        // DHTTP's token was issued to this cache, for its address.
        let is_stored = !NOT_STORED.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        if is_stored && !is_dhttp_field(name) {
            copy(&mut fields, name, value);
        }
    }
    fields
}
