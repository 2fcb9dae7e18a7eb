//! RFC 9111, section by section: the responses a shared cache stores, for how long, and how it reuses them.
//!
//! An external oracle: each test names the section that it checks.
//!
//! | section | file |
//! | --- | --- |
//! | 3 | `storing` |
//! | 4.1 | `choosing` |
//! | 4.2 | `freshness` |
//! | 4.2.4, RFC 5861 | `stale` |
//! | 4.3, ranges | `validation` |
//! | 4.4 | `invalidation` |
//! | 5.1, 5.3 to 5.5, RFC 9211 | `fields` |
//! | 5.2, RFC 8246 | `directives` |
//!
//! Tests of more than a decision, such as when the server is contacted, are in the crate `dhttp-proxy`, in
//! `tests/it/rfc9111.rs`.

mod choosing;
mod directives;
mod fields;
mod freshness;
mod invalidation;
mod stale;
mod storing;
mod validation;

use roundtrip_http1::cache::{ParsedRequest, Policy, ServedResponse, StoredResponse, Times, Verdict, reuse};
use roundtrip_http1::message::{Fields, ResponseHead, Version};
use wire::{Duration, Time};

/// `Sun, 06 Nov 1994 08:49:37 GMT`, when every response in these tests is received.
const RECEIVED: u64 = 784_111_777;
const DATE: (&str, &str) = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");

type Lines<'a> = &'a [(&'a str, &'a str)];

fn at(second: u64) -> Time {
    Time::ZERO + Duration::from_secs(RECEIVED + second)
}

fn fields(lines: Lines<'_>) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in lines {
        fields.push(name, value).unwrap();
    }
    fields
}

fn requested<'a>(method: &'a str, lines: Lines<'a>) -> ParsedRequest<'a> {
    ParsedRequest::new(method, lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
}

fn response(status: u16, lines: Lines<'_>) -> ResponseHead {
    ResponseHead { version: Version::Http11, status, fields: fields(lines) }
}

fn retained(request: &ParsedRequest<'_>, status: u16, lines: Lines<'_>) -> Option<Policy> {
    Policy::of(
        request,
        &response(status, lines),
        Times { requested: at(0), received_at: at(0), calendar: at(0) },
        &[],
    )
}

/// Permitted use, after `second` seconds, of a response with these fields, for a request without cache directives.
fn after(second: u64, lines: Lines<'_>) -> Option<Verdict> {
    Some(retained(&requested("GET", &[]), 200, lines)?.verdict(at(second), &requested("GET", &[])))
}

const FRESH: (&str, &str) = ("Cache-Control", "max-age=60");
const TAG: (&str, &str) = ("ETag", "\"t\"");
/// Three quarters of an hour before [`DATE`].
const CHANGED: (&str, &str) = ("Last-Modified", "Sun, 06 Nov 1994 08:00:00 GMT");

/// Response to a request, made from ten stored bytes with this status and these fields, five seconds old.
fn serve_stored(status: u16, stored: Lines<'_>, method: &str, lines: Lines<'_>) -> ServedResponse {
    let head = response(status, stored);
    let policy = Policy::of(
        &requested("GET", &[]),
        &head,
        Times { requested: at(0), received_at: at(0), calendar: at(0) },
        &[],
    )
    .unwrap();
    let retained = StoredResponse { status, fields: head.fields.as_lines(), length: 10, policy };
    reuse(retained, &requested(method, lines), at(5), "cache", "hit")
}

/// Does the same for a 200 with a tag and a date.
fn serve_stored_ok(method: &str, lines: Lines<'_>) -> ServedResponse {
    let stored = [DATE, TAG, CHANGED, ("Content-Type", "text/plain"), FRESH, ("Age", "0")];
    serve_stored(200, &stored, method, lines)
}
