//! Changes to stored responses by a response of the upstream, and the response to the client.
//!
//! Not the asking: that is for `exchange`, and for gateways.

use std::sync::Arc;

use http1::cache::update::{describes, freshened, obsolete};
use http1::cache::{Choice, ParsedRequest, Policy, ServerFailure, Times};
use http1::gateway::is_dhttp_field;
use http1::message::{Fields, Method, RequestHead, ResponseHead, Version};
use wire::{Time, calendar};

use super::memory::CacheEntry;
use super::record::{Record, RecordParts};
use super::store::Store;
use super::{NAME, given};
use dhttp::counters::count_shared;
use dhttp::fields::copy;
use dhttp::handler::{Body, Response};

/// A request with its cache key.
#[derive(Clone, Debug)]
pub(super) struct KeyedRequest {
    pub(super) key: Vec<u8>,
    pub(super) head: RequestHead,
    /// Whether an answer that is kept could be what it wants.
    pub(super) is_for_cache: bool,
}

impl KeyedRequest {
    pub(super) fn requested(&self) -> ParsedRequest<'_> {
        ParsedRequest::new(self.head.method.name(), self.head.fields.iter())
    }

    /// Whether others may want the same answer: the whole of it, to be kept.
    pub(super) fn is_shareable(&self) -> bool {
        let alone = ["Range", "Authorization", "If-None-Match", "If-Modified-Since"];
        let is_plain = alone.iter().all(|name| self.head.fields.get(name).is_none());
        self.is_for_cache && self.head.method == Method::Get && is_plain
    }

    /// The host, as addresses name it.
    fn host(&self) -> String {
        let host = self.head.fields.get("Host").unwrap_or_default();
        String::from_utf8_lossy(host).trim_end_matches(":80").to_owned()
    }

    /// The key of another path of the same host.
    fn key_beside(&self, path: &str) -> Vec<u8> {
        let end = self.key.len() - self.head.target.len().min(self.key.len());
        let mut key = self.key.get(..end).unwrap_or_default().to_vec();
        key.extend_from_slice(path.as_bytes());
        key
    }
}

/// Why such an answer is none.
pub(super) const UNASKED: &str = "304 to an unconditional request";

/// A body up to this length lies in its record.
const SHORT: u64 = 8 << 10;

/// Returns the stale response that replaces a failed one, if allowed.
pub(super) fn stood_in(
    store: &Store,
    found: Option<&CacheEntry>,
    requested: &ParsedRequest<'_>,
    now: Time,
    trouble: ServerFailure,
) -> Option<Response> {
    let found = found.filter(|found| found.record.policy().stands_in(now, requested, trouble))?;
    count_shared(&store.counters.stood_in);
    Some(match trouble {
        ServerFailure::Unreachable => given(found, requested, now, "fwd=stale; detail=unreachable"),
        ServerFailure::Says(status) => {
            given(found, requested, now, &format!("fwd=stale; fwd-status={status}"))
        }
    })
}

/// The upstream has said that what is kept is still good.
pub(super) fn validated(
    store: &Store,
    wanted: &KeyedRequest,
    found: &CacheEntry,
    update: &ResponseHead,
    times: Times,
) -> Response {
    count_shared(&store.counters.validated);
    let fields = freshened(found.record.fields(), &kept_fields(&update.fields, times.calendar));
    let renewed = renewed(store, wanted, found, fields, times);
    match &renewed {
        Some(fresh) => store.keep(fresh),
        // Nothing of this is to be kept for its client's sake: not what is new, and what is old may stay.
        None if wanted.requested().is_not_to_be_kept() => {}
        // It was good for this once, and may be kept no longer.
        None => store.drop_all(&wanted.key),
    }
    let how = format!("{}; fwd-status=304", why(wanted, Some(found), times.came));
    given(renewed.as_ref().unwrap_or(found), &wanted.requested(), times.came, &how)
}

/// Returns the stored response with other fields; `None` if these forbid storing it.
fn renewed(
    store: &Store,
    wanted: &KeyedRequest,
    found: &CacheEntry,
    fields: Fields,
    times: Times,
) -> Option<CacheEntry> {
    let status = found.record.status();
    let head = ResponseHead { version: Version::Http11, status, fields };
    // It was an answer to GET, whatever is asked now.
    let get = ParsedRequest::new("GET", wanted.head.fields.iter());
    let policy = Policy::of(&get, &head, times, &store.targets)?;
    let choice = Choice::of(&get, &head.fields)?;
    let (key, fields) = (&*wanted.key, head.fields.as_lines());
    let record =
        Record::new(RecordParts { key, choice: &choice, policy, status, fields, body: found.record.body() });
    Some(CacheEntry { record, large: found.large.clone() })
}

/// Updates stored responses by the header section of a response: invalidates them, or, after HEAD, checks whether they
/// are unchanged; `length` is that of the body that was described to HEAD.
pub(super) fn learn(
    store: &Store,
    wanted: &KeyedRequest,
    found: Option<&CacheEntry>,
    head: &ResponseHead,
    length: Option<u64>,
    times: Times,
) {
    for path in obsolete(&wanted.head, &wanted.host(), head) {
        store.drop_all(&wanted.key_beside(&path));
    }
    if let Some(found) = found.filter(|_| wanted.head.method == Method::Head && head.status == 200) {
        // What it describes is what we have, or what we have is old (section 4.3.5).
        let fields = kept_fields(&head.fields, times.calendar);
        let stored = found.large.as_ref().map_or(found.record.body().len() as u64, Body::len);
        if length.is_none_or(|update| update == stored) && describes(found.record.fields(), stored, &fields) {
            let fields = freshened(found.record.fields(), &fields);
            if let Some(fresh) = renewed(store, wanted, found, fields, times) {
                store.keep(&fresh);
            }
        } else {
            store.drop_all(&wanted.key);
        }
    }
}

/// An answer that is kept once its body is there.
#[derive(Debug)]
pub(super) struct PendingStore {
    policy: Policy,
    choice: Choice,
    status: u16,
    fields: Fields,
}

impl PendingStore {
    /// `None` if it is not to be kept.
    pub(super) fn of(
        store: &Store,
        wanted: &KeyedRequest,
        head: &ResponseHead,
        times: Times,
    ) -> Option<Self> {
        if !wanted.is_for_cache {
            return None;
        }
        let fields = kept_fields(&head.fields, times.calendar);
        let head = ResponseHead { version: Version::Http11, status: head.status, fields };
        let requested = wanted.requested();
        let policy = Policy::of(&requested, &head, times, &store.targets)?;
        let choice = Choice::of(&requested, &head.fields)?;
        Some(Self { policy, choice, status: head.status, fields: head.fields })
    }

    /// The whole of it; `None` if there is no body.
    pub(super) fn whole(self, key: &[u8], body: &Body) -> Option<CacheEntry> {
        let Self { policy, choice, status, fields } = self;
        let (short, large) = match body {
            Body::Whole(bytes) if bytes.len() as u64 <= SHORT => (&**bytes, None),
            Body::Whole(_) | Body::File { file: _, offset: _, length: _ } => (&[][..], Some(body.clone())),
            Body::Described(_) => return None,
        };
        let fields = fields.as_lines();
        let record = Record::new(RecordParts { key, choice: &choice, policy, status, fields, body: short });
        Some(CacheEntry { record, large })
    }
}

/// In `Cache-Status`: why it was asked (RFC 9211, section 2.2).
pub(super) fn why(wanted: &KeyedRequest, found: Option<&CacheEntry>, now: Time) -> &'static str {
    match (wanted.is_for_cache, &wanted.head.method, found) {
        (false, Method::Get | Method::Head, _) => "fwd=bypass",
        (false, Method::Options | Method::Other(_), _) => "fwd=method",
        // There is a good one, but the request would not have it.
        (true, _, Some(found)) if found.record.policy().is_fresh(now) => "fwd=request",
        (true, _, Some(_)) => "fwd=stale",
        (true, _, None) => "fwd=miss",
    }
}

/// The fields of an answer on its way, with a line about this cache.
pub(super) fn reported(fields: &Fields, how: &str) -> Fields {
    let mut reported = Fields::new();
    for (name, value) in fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(b"Cache-Status")) {
        copy(&mut reported, name, value);
    }
    http1::cache::reuse::status_field(&mut reported, fields.as_lines(), NAME, how, None);
    reported
}

/// An answer that is not kept, on its way.
pub(super) fn passed(head: &ResponseHead, body: Body, how: &str, now: Time) -> Response {
    let fields = reported(&kept_fields(&head.fields, now), how);
    Response { status: head.status, fields: Arc::new(fields), body }
}

/// Fields as they are kept: without those that a server adds by itself, but with the date, and without those that are
/// between a client and a proxy (RFC 9111, section 3.1).
fn kept_fields(came: &Fields, now: Time) -> Fields {
    const NOT_KEPT: [&str; 7] = [
        // What it announces is not kept; where it is passed on, whoever does so says it.
        "Trailer",
        "Content-Length",
        "Connection",
        "Transfer-Encoding",
        "Proxy-Authenticate",
        "Proxy-Authentication-Info",
        "Proxy-Authorization",
    ];
    let mut fields = Fields::new();
    if came.get("Date").is_none() {
        // Whoever keeps an answer must know when it was made (RFC 9110, section 6.6.1).
        copy(&mut fields, b"Date", calendar::http(now.since(Time::ZERO)).as_bytes());
    }
    for (name, value) in came.iter() {
        // DHTTP's token was given to us, for our address.
        let is_kept = !NOT_KEPT.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        if is_kept && !is_dhttp_field(name) {
            copy(&mut fields, name, value);
        }
    }
    fields
}
