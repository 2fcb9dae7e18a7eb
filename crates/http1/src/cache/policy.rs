//! Policy of a shared cache for a response: storage, freshness lifetime, and reuse when stale (RFC 9111, sections 3,
//! 4.2 and 5.2; RFC 5861).
//!
//! Times count from 1970. [`super::vary`] decides for which requests a response may be reused.

use wire::{Duration, Time};

use super::control::{MAX_LIFETIME, ResponseControl, Seconds, seconds};
use super::parsed_request::ParsedRequest;
use super::{date, targeted};
use crate::message::field::list;
use crate::message::{Fields, ResponseHead};

/// Caching policy of a response when it was received: the data to decide about its reuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Estimated time of its generation.
    generated_at: Time,
    /// Freshness lifetime from then on.
    lifetime: Seconds,
    /// Additional time in which it may be served stale while it is revalidated.
    while_revalidate: Seconds,
    /// Additional time in which it may be served stale if the server fails; [`ABSENT`] if it does not state one.
    if_error: Seconds,
    /// Never reuse without validation.
    no_cache: bool,
    /// Never serve stale, whatever a request allows.
    must_revalidate: bool,
}

/// Above every possible value.
const ABSENT: Seconds = MAX_LIFETIME + 1;

/// Times of a request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Time at which the request was sent.
    pub requested: Time,
    /// Time at which the header section of the response was received.
    pub received_at: Time,
    /// `received_at` by the calendar, for comparison with the server's `Date`. The other times are of a clock that is never set.
    pub calendar: Time,
}

/// Permitted use of a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Serve it.
    Fresh,
    /// Serve it stale, and revalidate it meanwhile.
    StaleWhileRevalidate,
    /// Revalidate it first.
    Validate,
}

/// Failure of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFailure {
    /// No response.
    Unreachable,
    /// A response with this status.
    Status(u16),
}

/// Maximum heuristic lifetime.
const MAX_HEURISTIC_SECONDS: u64 = 86_400;
/// Default time in which a stale response may be served if the server is unreachable.
const MAX_OFFLINE_SECONDS: Seconds = 86_400;

impl Policy {
    /// Returns the policy of the response to this request; `None`: it must not be stored. A valid field of `targets`
    /// takes the place of `Cache-Control` and `Expires` (RFC 9213); otherwise `CDN-Cache-Control` may only restrict them.
    pub fn of(
        request: &ParsedRequest<'_>,
        response: &ResponseHead,
        times: Times,
        targets: &[String],
    ) -> Option<Self> {
        let ResponseHead { version: _, status, fields } = response;
        let (mut control, is_targeted) = control_of(fields, targets);
        let restricted = if is_targeted { None } else { targeted::restrict(&mut control, fields) };
        if !may_be_stored(request, *status, &control) {
            return None;
        }
        let expires = || lifetime_by_expires(fields, times).filter(|_| !is_targeted);
        let explicit = control.s_maxage.or(control.max_age).or_else(expires);
        // Without explicit freshness only responses with a heuristic lifetime are stored at all, not even for
        // validation (section 3).
        if explicit.is_none() && !may_be_guessed(*status, &control) {
            return None;
        }
        let lifetime = explicit.unwrap_or_else(|| heuristic_lifetime(fields, times));
        let lifetime = lifetime.min(restricted.unwrap_or(MAX_LIFETIME));
        let has_validator = fields.get("ETag").is_some() || fields.get("Last-Modified").is_some();
        // A `Set-Cookie` is for one client, unless the response is `public` (section 7.3 leaves that to caches).
        let has_own_cookie = fields.get("Set-Cookie").is_some() && !control.public;
        if has_own_cookie || (lifetime == 0 && !has_validator) {
            return None;
        }
        Some(Self {
            generated_at: generation_time(fields, times),
            lifetime,
            while_revalidate: control.while_revalidate.unwrap_or(0),
            if_error: control.if_error.unwrap_or(ABSENT),
            no_cache: control.no_cache,
            must_revalidate: control.must_revalidate
                || control.proxy_revalidate
                || control.s_maxage.is_some(),
        })
    }

    /// Returns its age (RFC 9111, section 4.2.3).
    pub const fn age(&self, now: Time) -> Duration {
        now.since(self.generated_at)
    }

    /// Returns the seconds for which it stays fresh; negative if it is stale.
    pub fn seconds_left(&self, now: Time) -> i64 {
        i64::from(self.lifetime) - i64::try_from(whole_seconds(self.age(now))).unwrap_or(i64::MAX)
    }

    /// Returns whether it may be served to a request without cache directives.
    pub fn is_fresh(&self, now: Time) -> bool {
        !self.no_cache && now >= self.generated_at && self.age(now) < span(self.lifetime)
    }

    /// Returns the permitted use for this request.
    pub fn verdict(&self, now: Time, request: &ParsedRequest<'_>) -> Verdict {
        let control = &request.control;
        let age = self.age(now);
        let is_old_enough = control.max_age.is_some_and(|max| age > span(max));
        // The age of a response from the future is unknown: the clock has been set back since it was stored.
        if self.no_cache || control.no_cache || is_old_enough || now < self.generated_at {
            return Verdict::Validate;
        }
        let needed = span(control.min_fresh.unwrap_or(0));
        if age + needed < span(self.lifetime) {
            return Verdict::Fresh;
        }
        let stale = age.saturating_sub(span(self.lifetime));
        let is_allowed = |max: Seconds| max > 0 && !self.must_revalidate && stale <= span(max);
        // A request for a minimum freshness gets nothing stale.
        match control.min_fresh {
            None if control.max_stale.is_some_and(is_allowed) => Verdict::Fresh,
            None if is_allowed(self.while_revalidate) => Verdict::StaleWhileRevalidate,
            None | Some(_) => Verdict::Validate,
        }
    }

    /// Returns whether it may replace a response that failed in this way (RFC 5861, section 4; RFC 9111, section 4.2.4).
    pub fn may_replace_failure(
        &self,
        now: Time,
        request: &ParsedRequest<'_>,
        failure: ServerFailure,
    ) -> bool {
        let reported = request.control.if_error.or((self.if_error != ABSENT).then_some(self.if_error));
        let max = match failure {
            ServerFailure::Unreachable => reported.unwrap_or(MAX_OFFLINE_SECONDS),
            ServerFailure::Status(500 | 502 | 503 | 504) => reported.unwrap_or(0),
            ServerFailure::Status(_) => return false,
        };
        let stale = self.age(now).saturating_sub(span(self.lifetime));
        !self.no_cache && !self.must_revalidate && !request.control.no_cache && stale <= span(max) && max > 0
    }

    /// Length of the encoding, in bytes.
    pub const BYTES: usize = 21;

    /// Encodes it for the store.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let Self { generated_at, lifetime, while_revalidate, if_error, no_cache, must_revalidate } = *self;
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&generated_at.as_nanos().to_be_bytes());
        for (buffer, seconds) in bytes[8..20].chunks_exact_mut(4).zip([lifetime, while_revalidate, if_error])
        {
            buffer.copy_from_slice(&seconds.to_be_bytes());
        }
        bytes[20] = u8::from(no_cache) | u8::from(must_revalidate) << 1;
        bytes
    }

    /// Decodes a stored policy.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let (generated_at, rest) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let seconds = |index: usize| {
            let four = rest.get(4 * index..).and_then(<[u8]>::first_chunk);
            four.map_or(0, |four| Seconds::from_be_bytes(*four))
        };
        Self {
            generated_at: Time::from_nanos(u64::from_be_bytes(*generated_at)),
            lifetime: seconds(0),
            while_revalidate: seconds(1),
            if_error: seconds(2),
            no_cache: bytes[20] & 1 != 0,
            must_revalidate: bytes[20] & 2 != 0,
        }
    }

    /// Returns the policy of a response that is known to be out of date: never fresh, never served stale.
    #[must_use]
    pub const fn spoilt(self) -> Self {
        Self { lifetime: 0, while_revalidate: 0, if_error: 0, ..self }
    }
}

/// Returns whether a response states its own lifetime; for others a cache may only use a heuristic (section 4.2).
pub fn states_lifetime(fields: &Fields, targets: &[String]) -> bool {
    let (control, is_targeted) = control_of(fields, targets);
    control.s_maxage.or(control.max_age).is_some() || (!is_targeted && fields.get("Expires").is_some())
}

/// Returns the directives for this cache, and whether they come from a field of the target list.
fn control_of(fields: &Fields, targets: &[String]) -> (ResponseControl, bool) {
    if let Some(control) = targeted::control(fields, targets) {
        return (control, true);
    }
    let mut control = ResponseControl::default();
    fields.all("Cache-Control").for_each(|value| control.read(value));
    (control, false)
}

/// Whether a response may be stored (section 3), apart from its lifetime.
fn may_be_stored(request: &ParsedRequest<'_>, status: u16, control: &ResponseControl) -> bool {
    // Parts are not stored (section 3.3 leaves that to caches). A 304 is about another stored response, a 416 for one range
    // alone.
    let is_whole = status >= 200 && !matches!(status, 206 | 304 | 416);
    // `must-understand` comes with a `no-store` for caches that do not know it (section 5.2.2.3).
    let is_withheld = if control.must_understand { !is_understood(status) } else { control.no_store };
    // The response to an authenticated request is for one client, unless it is declared public (section 3.5).
    let is_for_all = request.all(b"Authorization").next().is_none()
        || control.public
        || control.must_revalidate
        || control.s_maxage.is_some();
    request.is_get()
        && !request.control.no_store
        && is_whole
        && !is_withheld
        && !control.private
        && is_for_all
}

/// Whether the cache understands this status.
const fn is_understood(status: u16) -> bool {
    is_guessable(status) || matches!(status, 302 | 303 | 307 | 400 | 403 | 500 | 502 | 503 | 504)
}

/// Returns whether a response with this status may be stored without a stated lifetime (RFC 9110, section 15.1).
const fn is_guessable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

const fn may_be_guessed(status: u16, control: &ResponseControl) -> bool {
    is_guessable(status) || control.public
}

/// Returns the lifetime by `Expires` (section 5.3).
fn lifetime_by_expires(fields: &Fields, times: Times) -> Option<Seconds> {
    let mut expires = fields.all("Expires").map(date::parse);
    let first = expires.next()?;
    // An invalid date has passed.
    let until = first.filter(|_| expires.next().is_none()).unwrap_or(Time::ZERO);
    let seconds = whole_seconds(until.since(date_or_receipt(fields, times)));
    Some(Seconds::try_from(seconds).unwrap_or(MAX_LIFETIME).min(MAX_LIFETIME))
}

/// Returns the heuristic lifetime: a tenth of the time since the last change (section 4.2.2).
fn heuristic_lifetime(fields: &Fields, times: Times) -> Seconds {
    let Some(changed) = fields.get("Last-Modified").and_then(date::parse) else { return 0 };
    let heuristic = whole_seconds(date_or_receipt(fields, times).since(changed)) / 10;
    Seconds::try_from(heuristic.min(MAX_HEURISTIC_SECONDS)).unwrap_or(0)
}

/// Returns the time of generation by its `Date`, or the time of receipt without one.
fn date_or_receipt(fields: &Fields, times: Times) -> Time {
    fields.get("Date").and_then(date::parse).unwrap_or(times.calendar)
}

/// Returns the estimated time of its generation (section 4.2.3).
fn generation_time(fields: &Fields, times: Times) -> Time {
    let Times { requested, received_at, calendar } = times;
    let apparent = calendar.since(date_or_receipt(fields, times));
    let corrected = span(received_age(fields).unwrap_or(0)) + received_at.since(requested);
    let age = apparent.max(corrected);
    Time::ZERO + received_at.since(Time::ZERO).saturating_sub(age)
}

/// Returns the received `Age`: the first of several members; `None` if it is not a number (section 5.1).
fn received_age(fields: &Fields) -> Option<Seconds> {
    seconds(fields.all("Age").flat_map(list).next())
}

fn span(seconds: Seconds) -> Duration {
    Duration::from_secs(seconds.into())
}

fn whole_seconds(span: Duration) -> u64 {
    span.as_nanos() / 1_000_000_000
}
