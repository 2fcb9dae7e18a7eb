//! Asking the upstream for what is not kept or no longer good, keeping what comes, and what is given when nothing does.
//!
//! Not whether to ask: that was decided before. What an answer changes is in `answered`.

use std::net::{IpAddr, SocketAddr};

use http1::cache::update::{for_server, has_validator, is_about, is_unasked};
use http1::cache::{Asked, Times, Trouble, Verdict, says_how_long};
use http1::message::{Fields, Method, RequestHead};

use super::answered::{Keeping, UNASKED, Wanted, learn, passed, stood_in, validated, why};
use super::memory::Found;
use super::upstream::{Fetched, Unanswered};
use super::{Shared, Upstream, given, on_calendar, since_1970};
use dhttp::counters::count_shared;
use dhttp::handler::{Answer, Body};
use dhttp::later::{Interims, Promise};

/// A request, to be asked for others' sake perhaps.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) wanted: Wanted,
    /// Where the client is, if that is known.
    pub(super) client: Option<IpAddr>,
    /// The longest body that is fetched for it, in bytes.
    pub(super) most: u64,
    /// The server that it was on its way to.
    pub(super) to: Option<SocketAddr>,
    pub(super) body: Vec<u8>,
}

/// A longer body is not even fetched.
pub(super) const LONGEST: u64 = 1 << 30;

/// Gives the answer to a request, from the upstream if it has one, to whoever it was promised to.
pub(super) async fn exchange<U: Upstream>(
    shared: &Shared<U>,
    owned: &Owned,
    found: Option<Found>,
    promise: Option<Promise>,
) {
    let interims = promise.as_ref().map(Promise::interims);
    let (answer, trailers) = answer(shared, owned, found, interims).await;
    if let Some(promise) = promise {
        // What is longer than a budget, and what fails, a client finds out over plain HTTP.
        let is_within = owned.most == LONGEST || answer.status < 500;
        if is_within { promise.give_with(answer, trailers) } else { promise.refer() }
    }
}

/// The answer, and what comes behind it.
async fn answer<U: Upstream>(
    shared: &Shared<U>,
    owned: &Owned,
    found: Option<Found>,
    interims: Option<Interims>,
) -> (Answer, Fields) {
    let (store, wanted) = (&shared.store, &owned.wanted);
    let asked = wanted.asked();
    let found = match found {
        None if wanted.is_for_cache => {
            let (found, now) = (store.find_on_disk(&wanted.key, &asked), since_1970());
            if let Some(found) = &found
                && found.record.policy().verdict(now, &asked) == Verdict::Fresh
            {
                count_shared(&store.counters.hits);
                return alone(given(found, &asked, now, "hit"));
            }
            found
        }
        found => found,
    };
    if !wanted.is_for_cache {
        count_shared(&store.counters.passed);
    } else if found.is_none() {
        count_shared(&store.counters.misses);
    }
    // The answer to HEAD describes; it is asked for as it was.
    let ours = found
        .as_ref()
        .filter(|found| wanted.head.method == Method::Get && has_validator(found.record.fields()));
    let (head, body) =
        (for_server(&wanted.head, ours.map(|found| found.record.fields())), owned.body.clone());
    let asked_at = since_1970();
    let fetched = ask(shared, owned, head, body, interims.clone()).await;
    let times = Times { asked: asked_at, came: since_1970(), calendar: on_calendar() };
    let fetched = match (fetched, ours) {
        (Ok(Fetched { head, body: _, trailers: _ }), Some(found)) if head.status == 304 => {
            if is_about(found.record.fields(), &head.fields) {
                return alone(validated(store, wanted, found, &head, times));
            }
            // It is about another answer, which we do not have: now without our conditions.
            let head = for_server(&wanted.head, Some(Fields::new().as_lines()));
            ask(shared, owned, head, owned.body.clone(), interims).await
        }
        (fetched, _) => fetched,
    };
    match fetched {
        Ok(fetched) => {
            let trouble = Trouble::Says(fetched.head.status);
            if let Some(answer) = stood_in(store, found.as_ref(), &asked, times.came, trouble) {
                return alone(answer);
            }
            came(shared, owned, &asked, found, fetched, times)
        }
        Err(Unanswered(answer)) => {
            let kept = stood_in(store, found.as_ref(), &asked, times.came, Trouble::Unreachable);
            alone(kept.unwrap_or_else(|| {
                count_shared(&store.counters.failed);
                answer
            }))
        }
    }
}

/// Asks; that nothing has changed is an answer only where that was the question.
async fn ask<U: Upstream>(
    shared: &Shared<U>,
    owned: &Owned,
    head: RequestHead,
    body: Vec<u8>,
    interims: Option<Interims>,
) -> Result<Fetched, Unanswered> {
    let fetched = shared.upstream.ask(owned.to, head.clone(), body, owned.most, interims).await?;
    if is_unasked(&head, fetched.head.status) {
        return Err(UNASKED.to_owned().into());
    }
    Ok(fetched)
}

/// Adds empty trailers to a stored response.
const fn alone(answer: Answer) -> (Answer, Fields) {
    (answer, Fields::new())
}

/// The upstream has answered.
fn came<U: Upstream>(
    shared: &Shared<U>,
    owned: &Owned,
    asked: &Asked<'_>,
    found: Option<Found>,
    fetched: Fetched,
    times: Times,
) -> (Answer, Fields) {
    let (store, wanted) = (&shared.store, &owned.wanted);
    let Fetched { head, body, trailers } = fetched;
    let described = match body {
        Body::Described(length) => length,
        Body::Whole(_) | Body::File { file: _, offset: _, length: _ } => None,
    };
    learn(store, wanted, found.as_ref(), &head, described, times);
    let forwarded = why(wanted, found.as_ref(), times.came);
    let says_how_long = || says_how_long(&head.fields, &store.targets);
    let is_wanted = body.len() <= store.largest && (!store.is_sparing || says_how_long());
    let keeping = is_wanted.then(|| Keeping::of(store, wanted, &head, times)).flatten();
    if let Some(stored) = keeping.and_then(|keeping| keeping.whole(&wanted.key, &body)) {
        store.keep(&stored);
        let answer = given(&stored, asked, times.came, &format!("{forwarded}; stored"));
        // They are about the whole of it: not about a part, nor about what the client has.
        let is_all = answer.status == head.status;
        return (answer, if is_all { trailers } else { Fields::new() });
    }
    (passed(&head, body, forwarded, times.calendar), trailers)
}
