//! Response made from a stored one: all of it, a part, or 304. See RFC 9111, sections 4 and 4.3.2; RFC 9110, sections
//! 13 and 14.
//!
//! Not whether it may be reused at all: that is [`super::policy`].

use wire::Time;

use super::date;
use super::parsed_request::ParsedRequest;
use super::policy::Policy;
use crate::message::range::{self, RequestedRange};
use crate::message::validator;
use crate::message::{FieldLines, Fields};

/// A response to send, without the fields of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedResponse {
    /// Status of the stored response, or 206, 304 or 416.
    pub status: u16,
    /// Fields, with `Age` and `Cache-Status`.
    pub fields: Fields,
    /// Range of the body: offset of the first byte, and length.
    pub part: (u64, u64),
}

/// A stored response.
#[derive(Clone, Copy, Debug)]
pub struct StoredResponse<'a> {
    /// Its status.
    pub status: u16,
    /// Fields as received, without those of one connection.
    pub fields: FieldLines<'a>,
    /// The length of its body.
    pub length: u64,
    /// Its caching policy.
    pub policy: Policy,
}

/// Returns the response to the request. `by` is this cache's name, and `how` an RFC 9211 parameter on the look-up:
/// `hit`, or `fwd=stale`.
pub fn reuse(
    stored: StoredResponse<'_>,
    request: &ParsedRequest<'_>,
    now: Time,
    by: &str,
    how: &str,
) -> ServedResponse {
    let StoredResponse { status, fields, length, policy } = stored;
    let (status, part) = if request.is_conditional && status == 200 {
        chosen(fields, length, request)
    } else {
        (status, (0, length))
    };
    let mut fields_to_send =
        Fields::with_capacity_for(fields.iter().count() + 3, fields.as_bytes().len() + 96);
    for (name, value) in fields.iter().filter(|(name, _)| is_given(status, name)) {
        fields_to_send.push_checked(name, value);
    }
    match status {
        206 => {
            let range = format!("bytes {}-{}/{length}", part.0, part.0 + part.1 - 1);
            fields_to_send.push_checked(b"Content-Range", range.as_bytes());
        }
        416 => fields_to_send.push_checked(b"Content-Range", format!("bytes */{length}").as_bytes()),
        _ => {}
    }
    let age = policy.age(now).as_nanos() / 1_000_000_000;
    fields_to_send.push_checked(b"Age", age.to_string().as_bytes());
    status_field(&mut fields_to_send, fields, by, how, Some(policy.seconds_left(now)));
    ServedResponse { status, fields: fields_to_send, part }
}

/// Adds a `Cache-Status` line about this cache to those of others (RFC 9211).
pub fn status_field(
    fields: &mut Fields,
    received: FieldLines<'_>,
    by: &str,
    how: &str,
    fresh_for: Option<i64>,
) {
    let mut value: Vec<u8> = received.all("Cache-Status").collect::<Vec<_>>().join(&b", "[..]);
    if !value.is_empty() {
        value.extend_from_slice(b", ");
    }
    value.extend_from_slice(by.as_bytes());
    value.extend_from_slice(b"; ");
    value.extend_from_slice(how.as_bytes());
    if let Some(fresh_for) = fresh_for {
        value.extend_from_slice(format!("; ttl={fresh_for}").as_bytes());
    }
    fields.push_checked(b"Cache-Status", &value);
}

fn is_given(status: u16, name: &[u8]) -> bool {
    const OWN: [&str; 2] = ["Age", "Cache-Status"];
    // Fields that a client needs with a 304 (RFC 9110, section 15.4.5).
    const UNCHANGED: [&str; 9] = [
        "Cache-Control",
        "Content-Location",
        "Date",
        "ETag",
        "Expires",
        "Last-Modified",
        "Set-Cookie",
        "Vary",
        "Via",
    ];
    let is_one_of = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    match status {
        304 => is_one_of(&UNCHANGED),
        206 | 416 => !is_one_of(&OWN) && !name.eq_ignore_ascii_case(b"Content-Range"),
        _ => !is_one_of(&OWN),
    }
}

/// Selects a range of a 200, and the status.
fn chosen(fields: FieldLines<'_>, length: u64, request: &ParsedRequest<'_>) -> (u16, (u64, u64)) {
    if is_unchanged(fields, request) {
        return (304, (0, 0));
    }
    let mut ranges = request.all(b"Range");
    let (true, Some(range), None) = (request.is_get(), ranges.next(), ranges.next()) else {
        return (200, (0, length));
    };
    let is_same = |condition: &[u8]| {
        let strong = fields.get("ETag").filter(|tag| !tag.starts_with(b"W/"));
        strong == Some(condition) || strong_date(fields) == Some(condition)
    };
    if !request.all(b"If-Range").all(is_same) {
        return (200, (0, length));
    }
    match range::parse(range, length) {
        Some(RequestedRange::Part { first, last }) => (206, (first, last - first + 1)),
        Some(RequestedRange::Nowhere) => (416, (0, 0)),
        Some(RequestedRange::Whole) | None => (200, (0, length)),
    }
}

/// Returns `Last-Modified` if it is a strong validator: a second change within the second that it names is impossible
/// (RFC 9110, section 8.8.2.2).
fn strong_date(fields: FieldLines<'_>) -> Option<&[u8]> {
    let changed = fields.get("Last-Modified")?;
    let is_over = date::parse(changed)? < fields.get("Date").and_then(date::parse)?;
    is_over.then_some(changed)
}

/// Whether the client's stored response is unchanged (RFC 9111, section 4.3.2).
fn is_unchanged(fields: FieldLines<'_>, request: &ParsedRequest<'_>) -> bool {
    if request.all(b"If-None-Match").next().is_some() {
        let tag = fields.get("ETag").and_then(|tag| std::str::from_utf8(tag).ok());
        // An empty tag matches no other.
        return validator::is_unchanged(&request.to_fields(), tag.unwrap_or_default(), "");
    }
    let since = request.all(b"If-Modified-Since").next().and_then(date::parse);
    let changed = fields.get("Last-Modified").or_else(|| fields.get("Date")).and_then(date::parse);
    matches!((changed, since), (Some(changed), Some(since)) if changed <= since)
}
