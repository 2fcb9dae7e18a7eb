//! Asking the upstream for what is not kept or no longer good, keeping what comes, and what is given when nothing does.
//!
//! Not whether to ask: that was decided before.

use std::net::SocketAddr;
use std::sync::Arc;

use proto::cache::update::{describes, for_server, freshened, has_validator, is_about, obsolete};
use proto::cache::{Asked, Choice, Policy, Times, Trouble, Verdict};
use proto::dhttp::token::TOKEN_FIELD;
use proto::http::{Fields, Method, RequestHead, ResponseHead, Version};
use wire::{Time, calendar};

use super::memory::Found;
use super::record::{Parts, Record};
use super::upstream::Fetched;
use super::{NAME, Shared, Upstream, given, since_1970};
use crate::counters::count;

use crate::fields::copy;
use crate::handler::{Answer, Body};

/// A request, to be asked for others' sake perhaps.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) key: Vec<u8>,
    /// The server that it was on its way to.
    pub(super) to: Option<SocketAddr>,
    pub(super) head: RequestHead,
    pub(super) body: Vec<u8>,
    /// Whether an answer that is kept could be what it wants.
    pub(super) is_for_cache: bool,
}

impl Owned {
    pub(super) fn asked(&self) -> Asked<'_> {
        Asked::new(self.head.method.name(), self.head.fields.iter())
    }

    /// Whether others may want the same answer: the whole of it, to be kept.
    pub(super) fn is_shareable(&self) -> bool {
        let alone = ["Range", "Authorization", "If-None-Match", "If-Modified-Since"];
        let is_plain = alone.iter().all(|name| self.head.fields.get(name).is_none());
        self.is_for_cache && self.head.method == Method::Get && is_plain
    }
}

/// A longer body is not even fetched.
const LONGEST: u64 = 1 << 30;
/// A body up to this length lies in its record.
const SHORT: u64 = 8 << 10;

/// The answer to a request, from the upstream if it gives one.
pub(super) async fn exchange<U: Upstream>(shared: &Shared<U>, owned: &Owned, found: Option<Found>) -> Answer {
    let asked = owned.asked();
    let found = match (found, &shared.disk) {
        (None, Some(disk)) if owned.is_for_cache => {
            let (found, now) = (disk.find(&owned.key, &asked), since_1970());
            if let Some(found) = &found {
                shared.memory.keep(found.clone());
                if found.record.policy().verdict(now, &asked) == Verdict::Fresh {
                    count(&shared.counters.hits);
                    return given(found, &asked, now, "hit");
                }
            }
            found
        }
        (found, _) => found,
    };
    if !owned.is_for_cache {
        count(&shared.counters.passed);
    } else if found.is_none() {
        count(&shared.counters.misses);
    }
    // The answer to HEAD describes; it is asked for as it was.
    let ours = found
        .as_ref()
        .filter(|found| owned.head.method == Method::Get && has_validator(found.record.fields()));
    let (head, body) = (for_server(&owned.head, ours.map(|found| found.record.fields())), owned.body.clone());
    let asked_at = since_1970();
    let fetched = shared.upstream.ask(owned.to, head, body, LONGEST).await;
    let times = Times { asked: asked_at, came: since_1970() };
    let fetched = match (fetched, ours) {
        (Ok(Fetched { head, body: _ }), Some(found)) if head.status == 304 => {
            if is_about(found.record.fields(), &head.fields) {
                return validated(shared, owned, found, &head, times);
            }
            // It is about another answer, which we do not have: now without our conditions.
            let head = for_server(&owned.head, Some(Fields::new().as_lines()));
            shared.upstream.ask(owned.to, head, owned.body.clone(), LONGEST).await
        }
        (fetched, _) => fetched,
    };
    match fetched {
        Ok(fetched) => {
            let trouble = Trouble::Says(fetched.head.status);
            if let Some(answer) = stood_in(shared, found.as_ref(), &asked, times.came, trouble) {
                return answer;
            }
            came(shared, owned, &asked, found, fetched, times)
        }
        Err(why) => stood_in(shared, found.as_ref(), &asked, times.came, Trouble::Unreachable)
            .unwrap_or_else(|| {
                count(&shared.counters.failed);
                Answer::text(502, &format!("502 Bad Gateway: {why}"))
            }),
    }
}

/// What is stale, in the place of what failed.
fn stood_in<U>(
    shared: &Shared<U>,
    found: Option<&Found>,
    asked: &Asked<'_>,
    now: Time,
    trouble: Trouble,
) -> Option<Answer> {
    let found = found.filter(|found| found.record.policy().stands_in(now, asked, trouble))?;
    count(&shared.counters.stood_in);
    Some(match trouble {
        Trouble::Unreachable => given(found, asked, now, "fwd=stale; detail=unreachable"),
        Trouble::Says(status) => given(found, asked, now, &format!("fwd=stale; fwd-status={status}")),
    })
}

/// The upstream has said that what is kept is still good.
fn validated<U: Upstream>(
    shared: &Shared<U>,
    owned: &Owned,
    found: &Found,
    said: &ResponseHead,
    times: Times,
) -> Answer {
    count(&shared.counters.validated);
    let fields = freshened(found.record.fields(), &kept_fields(&said.fields, times.came));
    let renewed = renewed(owned, found, fields, times);
    match &renewed {
        Some(fresh) => shared.keep(fresh),
        // It was good for this once, and may be kept no longer.
        None => shared.drop_all(&owned.key),
    }
    given(renewed.as_ref().unwrap_or(found), &owned.asked(), times.came, "fwd=stale; fwd-status=304")
}

/// What is kept, with other fields; `None` if these forbid it.
fn renewed(owned: &Owned, found: &Found, fields: Fields, times: Times) -> Option<Found> {
    let status = found.record.status();
    let head = ResponseHead { version: Version::Http11, status, fields };
    // It was an answer to GET, whatever is asked now.
    let get = Asked::new("GET", owned.head.fields.iter());
    let policy = Policy::of(&get, &head, times)?;
    let choice = Choice::of(&get, &head.fields)?;
    let (key, fields) = (&*owned.key, head.fields.as_lines());
    let record =
        Record::new(Parts { key, choice: &choice, policy, status, fields, body: found.record.body() });
    Some(Found { record, large: found.large.clone() })
}

/// The upstream has answered.
fn came<U: Upstream>(
    shared: &Shared<U>,
    owned: &Owned,
    asked: &Asked<'_>,
    found: Option<Found>,
    fetched: Fetched,
    times: Times,
) -> Answer {
    let Fetched { head, body } = fetched;
    for path in obsolete(&owned.head, &host(owned), &head) {
        shared.drop_all(&key_beside(owned, &path));
    }
    let head = ResponseHead { fields: kept_fields(&head.fields, times.came), ..head };
    let forwarded = if !owned.is_for_cache {
        "fwd=bypass"
    } else if found.is_some() {
        "fwd=stale"
    } else {
        "fwd=miss"
    };
    if let Some(found) = found.as_ref().filter(|_| asked.is_head() && head.status == 200) {
        // What it describes is what we have, or what we have is old (section 4.3.5).
        let length = found.large.as_ref().map_or(found.record.body().len() as u64, Body::len);
        let length_said = matches!(body, Body::Described(Some(said)) if said != length);
        if !length_said && describes(found.record.fields(), length, &head.fields) {
            let fields = freshened(found.record.fields(), &head.fields);
            if let Some(fresh) = renewed(owned, found, fields, times) {
                shared.keep(&fresh);
            }
        } else {
            shared.drop_all(&owned.key);
        }
    }
    if let Some(stored) = stored(shared, owned, asked, &head, &body, times) {
        shared.keep(&stored);
        return given(&stored, asked, times.came, &format!("{forwarded}; stored"));
    }
    passed(&head, body, forwarded)
}

/// The answer as it is kept, if it is.
fn stored<U>(
    shared: &Shared<U>,
    owned: &Owned,
    asked: &Asked<'_>,
    head: &ResponseHead,
    body: &Body,
    times: Times,
) -> Option<Found> {
    if !owned.is_for_cache || body.len() > shared.config.largest {
        return None;
    }
    let policy = Policy::of(asked, head, times)?;
    let choice = Choice::of(asked, &head.fields)?;
    let (short, large) = match body {
        Body::Whole(bytes) if bytes.len() as u64 <= SHORT => (&**bytes, None),
        Body::Whole(_) | Body::File { file: _, offset: _, length: _ } => (&[][..], Some(body.clone())),
        Body::Described(_) => return None,
    };
    let (key, fields) = (&*owned.key, head.fields.as_lines());
    let record =
        Record::new(Parts { key, choice: &choice, policy, status: head.status, fields, body: short });
    Some(Found { record, large })
}

/// An answer that is not kept, on its way.
fn passed(head: &ResponseHead, body: Body, how: &str) -> Answer {
    let mut fields = Fields::new();
    for (name, value) in head.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(b"Cache-Status")) {
        copy(&mut fields, name, value);
    }
    proto::cache::answer::status_field(&mut fields, head.fields.as_lines(), NAME, how, None);
    Answer { status: head.status, fields: Arc::new(fields), body }
}

/// Fields as they are kept: without those that a server adds by itself, but with the date, and without those that are
/// between a client and a proxy (RFC 9111, section 3.1).
fn kept_fields(came: &Fields, now: Time) -> Fields {
    const NOT_KEPT: [&str; 7] = [
        // It was given to us, for our address.
        TOKEN_FIELD,
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
        if !NOT_KEPT.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())) {
            copy(&mut fields, name, value);
        }
    }
    fields
}

fn host(owned: &Owned) -> String {
    let host = owned.head.fields.get("Host").unwrap_or_default();
    String::from_utf8_lossy(host).trim_end_matches(":80").to_owned()
}

/// The key of another path of the same host.
fn key_beside(owned: &Owned, path: &str) -> Vec<u8> {
    let end = owned.key.len() - owned.head.target.len().min(owned.key.len());
    let mut key = owned.key.get(..end).unwrap_or_default().to_vec();
    key.extend_from_slice(path.as_bytes());
    key
}
