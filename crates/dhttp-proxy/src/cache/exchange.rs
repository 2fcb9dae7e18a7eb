//! Requests to the upstream for responses that are missing or stale, storing them, and the response when they fail.
//!
//! The caller decides whether to send one. Changes by a response are in `cached_response`.

use std::net::{IpAddr, SocketAddr};

use http1::cache::update::{for_server, has_validator, is_about, is_unsolicited};
use http1::cache::{ParsedRequest, ServerFailure, Times, Verdict, states_lifetime};
use http1::message::{Fields, Method, RequestHead};

use super::cached_response::{
    KeyedRequest, PendingStore, UNSOLICITED_304, forward_reason, passed_through, stale_replacement,
    update_store, validated,
};
use super::memory::CacheEntry;
use super::upstream::{UpstreamFailure, UpstreamResponse};
use super::{Shared, Upstream, on_calendar, serve_from, since_1970};
use crate::fetches::unless_evicted;
use crate::service_handler::busy;
use dhttp::counters::count_shared;
use dhttp::deferred::{Interims, ResponseSender};
use dhttp::handler::{Body, Response};

/// A request whose response may also serve others.
#[derive(Debug)]
pub(super) struct OwnedRequest {
    pub(super) keyed_request: KeyedRequest,
    /// The client's address, if known.
    pub(super) client: Option<IpAddr>,
    /// Maximum length of a body that is fetched for it, in bytes.
    pub(super) max: u64,
    /// The server to which it was addressed, if it was intercepted.
    pub(super) to: Option<SocketAddr>,
    pub(super) body: Vec<u8>,
}

/// Maximum length of a body that is fetched, in bytes.
pub(super) const MAX_BODY_BYTES: u64 = 1 << 30;

/// Responds to a request, from the upstream if it has a response.
pub(super) async fn exchange<U: Upstream>(
    shared: &Shared<U>,
    owned: &OwnedRequest,
    entry: Option<CacheEntry>,
    promise: Option<ResponseSender>,
) {
    let interims = promise.as_ref().map(ResponseSender::interims);
    let response = unless_evicted(respond(shared, owned, entry, interims)).await;
    let (response, trailers) = response.unwrap_or_else(|| without_trailers(busy()));
    if let Some(promise) = promise {
        // A client learns of failures, and fetches what exceeds a budget, over plain HTTP.
        let is_within_budget = owned.max == MAX_BODY_BYTES || response.status < 500;
        if is_within_budget { promise.send_with_trailers(response, trailers) } else { promise.refer() }
    }
}

/// Returns the response, and its trailers.
async fn respond<U: Upstream>(
    shared: &Shared<U>,
    owned: &OwnedRequest,
    entry: Option<CacheEntry>,
    interims: Option<Interims>,
) -> (Response, Fields) {
    let (store, keyed_request) = (&shared.store, &owned.keyed_request);
    let requested = keyed_request.requested();
    let entry = match entry {
        None if keyed_request.is_for_cache => {
            let (entry, now) = (store.find_on_disk(&keyed_request.key, &requested), since_1970());
            if let Some(entry) = &entry
                && entry.record.policy().verdict(now, &requested) == Verdict::Fresh
            {
                count_shared(&store.counters.hits);
                return without_trailers(serve_from(entry, &requested, now, "hit"));
            }
            entry
        }
        entry => entry,
    };
    if !keyed_request.is_for_cache {
        count_shared(&store.counters.passed);
    } else if entry.is_none() {
        count_shared(&store.counters.misses);
    }
    // HEAD is forwarded without the cache's conditions: its response only describes the stored one.
    let stored_response = entry
        .as_ref()
        .filter(|entry| keyed_request.head.method == Method::Get && has_validator(entry.record.fields()));
    let (head, body) = (
        for_server(&keyed_request.head, stored_response.map(|entry| entry.record.fields())),
        owned.body.clone(),
    );
    let requested_at = since_1970();
    let fetched = send_request(shared, owned, head, body, interims.clone()).await;
    let times = Times { requested: requested_at, received_at: since_1970(), calendar: on_calendar() };
    let fetched = match (fetched, stored_response) {
        (Ok(UpstreamResponse { head, body: _, trailers: _ }), Some(entry)) if head.status == 304 => {
            if is_about(entry.record.fields(), &head.fields) {
                return without_trailers(validated(store, keyed_request, entry, &head, times));
            }
            // It describes a response that is not stored: retry without the cache's conditions.
            let head = for_server(&keyed_request.head, Some(Fields::new().as_lines()));
            send_request(shared, owned, head, owned.body.clone(), interims).await
        }
        (fetched, _) => fetched,
    };
    match fetched {
        Ok(fetched) => {
            let failure = ServerFailure::Status(fetched.head.status);
            if let Some(response) =
                stale_replacement(store, entry.as_ref(), &requested, times.received_at, failure)
            {
                return without_trailers(response);
            }
            handle_response(shared, owned, &requested, entry, fetched, times)
        }
        Err(UpstreamFailure(response)) => {
            let stored = stale_replacement(
                store,
                entry.as_ref(),
                &requested,
                times.received_at,
                ServerFailure::Unreachable,
            );
            without_trailers(stored.unwrap_or_else(|| {
                count_shared(&store.counters.failed);
                response
            }))
        }
    }
}

/// Sends the request; a 304 is a valid response only to a conditional one.
async fn send_request<U: Upstream>(
    shared: &Shared<U>,
    owned: &OwnedRequest,
    head: RequestHead,
    body: Vec<u8>,
    interims: Option<Interims>,
) -> Result<UpstreamResponse, UpstreamFailure> {
    let fetched = shared.upstream.send_request(owned.to, head.clone(), body, owned.max, interims).await?;
    if is_unsolicited(&head, fetched.head.status) {
        return Err(UNSOLICITED_304.to_owned().into());
    }
    Ok(fetched)
}

/// Adds empty trailers to a stored response.
const fn without_trailers(response: Response) -> (Response, Fields) {
    (response, Fields::new())
}

/// Handles the upstream's response.
fn handle_response<U: Upstream>(
    shared: &Shared<U>,
    owned: &OwnedRequest,
    requested: &ParsedRequest<'_>,
    entry: Option<CacheEntry>,
    fetched: UpstreamResponse,
    times: Times,
) -> (Response, Fields) {
    let (store, keyed_request) = (&shared.store, &owned.keyed_request);
    let UpstreamResponse { head, body, trailers } = fetched;
    let described = match body {
        Body::Described(length) => length,
        Body::Whole(_) | Body::File { file: _, offset: _, length: _ } => None,
    };
    update_store(store, keyed_request, entry.as_ref(), &head, described, times);
    let forwarded = forward_reason(keyed_request, entry.as_ref(), times.received_at);
    let states_lifetime = || states_lifetime(&head.fields, &store.targets);
    let is_storable = body.len() <= store.largest && (!store.is_sparing || states_lifetime());
    let pending_store = is_storable.then(|| PendingStore::of(store, keyed_request, &head, times)).flatten();
    if let Some(stored) =
        pending_store.and_then(|pending_store| pending_store.whole(&keyed_request.key, &body))
    {
        store.keep(&stored);
        let response = serve_from(&stored, requested, times.received_at, &format!("{forwarded}; stored"));
        // Trailers describe the whole response: not a part, and not a 304.
        let is_whole = response.status == head.status;
        return (response, if is_whole { trailers } else { Fields::new() });
    }
    (passed_through(&head, body, forwarded, times.calendar), trailers)
}
