//! A file as a response: its fields, conditional requests and ranges (RFC 9110, sections 13 and 14).
//!
//! Not where the file is: that is [`super::Files`].

use std::borrow::Cow;
use std::sync::Arc;

use http1::content::{Coding, media_type};
use http1::message::Fields;
use http1::message::validator::is_unchanged;
use wire::{Duration, calendar};

use crate::handler::{Body, Request, Response};

/// Response for a file, ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct FileResponse {
    pub(super) response: Response,
    tag: Arc<str>,
    modified: Arc<str>,
}

impl FileResponse {
    /// Creates the response for a file of this name and coding; `changed` is its modification time in seconds and nanoseconds.
    pub(super) fn file(
        path: &str,
        coding: Option<Coding>,
        varies: bool,
        changed: (i64, i64),
        body: Body,
    ) -> Self {
        let (seconds, nanos) = changed;
        let suffix = coding.map_or(String::new(), |coding| format!("-{}", coding.name()));
        let tag = format!("\"{seconds:x}.{nanos:x}-{:x}{suffix}\"", body.len());
        let modified = calendar::http(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
        let mut list = vec![
            ("Content-Type", media_type(path)),
            ("ETag", &*tag),
            ("Last-Modified", &*modified),
            ("Accept-Ranges", "bytes"),
        ];
        list.extend(coding.map(|coding| ("Content-Encoding", coding.name())));
        list.extend(varies.then_some(("Vary", "Accept-Encoding")));
        let mut fields = Fields::new();
        for (name, value) in list {
            // Generated here, of letters and digits.
            let _ = fields.push(name, value);
        }
        let response = Response { status: 200, fields: Arc::new(fields), body };
        Self { response, tag: tag.into(), modified: modified.into() }
    }

    /// Creates the redirect for a directory that was requested without its final slash.
    pub(super) fn moved(path: &str) -> Self {
        let mut location = String::from("/");
        for byte in path.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                    location.push(char::from(byte));
                }
                _ => location += &format!("%{byte:02X}"),
            }
        }
        location.push('/');
        let mut response = Response::text(301, "301 Moved Permanently");
        // Percent-encoded above: every character is valid in a field.
        let _ = Arc::make_mut(&mut response.fields).push("Location", &location);
        Self { response, tag: "".into(), modified: "".into() }
    }
}

/// Fields of a request for a file, found in one pass. Of several with one name, the first counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileRequest<'a> {
    /// `Accept-Encoding`.
    pub(super) codings: Option<&'a [u8]>,
    is_conditional: bool,
    range: Option<&'a [u8]>,
    if_range: Option<&'a [u8]>,
}

impl<'a> FileRequest<'a> {
    pub(super) fn of(request: &Request<'a>) -> Self {
        let mut requested = Self::default();
        request.each_field(|name, value| {
            let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            // By length first: most fields are not one of these.
            match name.len() {
                5 if is("Range") => drop(requested.range.get_or_insert(value)),
                8 if is("If-Range") => drop(requested.if_range.get_or_insert(value)),
                13 if is("If-None-Match") => requested.is_conditional = true,
                15 if is("Accept-Encoding") => drop(requested.codings.get_or_insert(value)),
                17 if is("If-Modified-Since") => requested.is_conditional = true,
                _ => {}
            }
        });
        requested
    }
}

/// Returns the part of a file that a request's conditions and range select.
pub(super) fn conditioned<'a>(
    found: &'a FileResponse,
    request: &Request<'_>,
    requested: &FileRequest<'_>,
) -> Cow<'a, Response> {
    let FileResponse { response, tag, modified } = found;
    if response.status != 200 {
        return Cow::Borrowed(response);
    }
    let FileRequest { codings: _, is_conditional, range, if_range } = *requested;
    if is_conditional && is_unchanged(&conditions(request), tag, modified) {
        let fields = Arc::clone(&response.fields);
        return Cow::Owned(Response { status: 304, fields, body: Body::Whole(Arc::from([])) });
    }
    let is_same = if_range.is_none_or(|known| known == tag.as_bytes() || known == modified.as_bytes());
    match range.filter(|_| is_same && request.method == "GET") {
        Some(range) => Cow::Owned(part(response, range)),
        None => Cow::Borrowed(response),
    }
}

fn conditions(request: &Request<'_>) -> Fields {
    let mut fields = Fields::new();
    for name in ["If-None-Match", "If-Modified-Since"] {
        request.each_field(|found, value| {
            if found.eq_ignore_ascii_case(name.as_bytes())
                && let Ok(value) = std::str::from_utf8(value)
            {
                // A value that was parsed but cannot be pushed matches no tag generated here.
                let _ = fields.push(name, value);
            }
        });
    }
    fields
}

/// Returns one range. For several ranges, or an invalid one, it returns the whole response, as the standard allows.
fn part(response: &Response, range: &[u8]) -> Response {
    let total = response.body.len();
    let Some((first, last)) = range
        .strip_prefix(b"bytes=")
        .and_then(|range| std::str::from_utf8(range).ok())
        .and_then(|range| range.split_once('-'))
    else {
        return response.clone();
    };
    let number = |text: &str| -> Option<u64> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
    };
    let span = match (number(first), number(last)) {
        (Some(first), None) if last.is_empty() => (first < total).then_some((first, total)),
        (Some(first), Some(last)) if first <= last => {
            (first < total).then_some((first, total.min(last.saturating_add(1))))
        }
        (None, Some(count)) if first.is_empty() => {
            (count > 0 && total > 0).then_some((total.saturating_sub(count), total))
        }
        (Some(_) | None, Some(_) | None) => return response.clone(),
    };
    let Some((begin, end)) = span else {
        let mut unsatisfied = Response::text(416, "416 Range Not Satisfiable");
        // Digits only.
        let _ = Arc::make_mut(&mut unsatisfied.fields).push("Content-Range", &format!("bytes */{total}"));
        return unsatisfied;
    };
    let mut fields = Fields::clone(&response.fields);
    // Digits only.
    let _ = fields.push("Content-Range", &format!("bytes {begin}-{}/{total}", end - 1));
    let body = response.body.part(begin, end - begin);
    Response { status: 206, fields: Arc::new(fields), body }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranged(range: &str) -> (u16, Vec<u8>) {
        let ten =
            FileResponse::file("a.txt", None, false, (1, 2), Body::Whole((*b"0123456789").into())).response;
        let response = part(&ten, range.as_bytes());
        let Body::Whole(bytes) = response.body else { panic!("a small file is whole") };
        (response.status, bytes.to_vec())
    }

    #[test]
    fn ranges_are_cut_as_the_standard_says() {
        assert_eq!(ranged("bytes=2-4"), (206, b"234".to_vec()));
        assert_eq!(ranged("bytes=8-"), (206, b"89".to_vec()));
        assert_eq!(ranged("bytes=-3"), (206, b"789".to_vec()));
        assert_eq!(ranged("bytes=-30"), (206, b"0123456789".to_vec()));
        assert_eq!(ranged("bytes=5-99"), (206, b"56789".to_vec()));
        assert_eq!(ranged("bytes=10-").0, 416);
        assert_eq!(ranged("bytes=-0").0, 416);
        for ignored in ["bytes=4-2", "bytes=0-1,3-4", "lines=1-2", "bytes=a-b", "bytes=-", "bytes=+1-2"] {
            assert_eq!(ranged(ignored), (200, b"0123456789".to_vec()), "{ignored}");
        }
    }

    #[test]
    fn directory_redirects_to_its_own_path() {
        let moved = FileResponse::moved("a b\u{e9}").response;
        assert_eq!(moved.fields.get("Location"), Some(&b"/a%20b%C3%A9/"[..]));
        assert_eq!(moved.status, 301);
    }
}
