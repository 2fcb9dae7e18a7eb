//! Long polls (RFC 6202, section 2): requests that a server holds until an event, and their responses when none came.

use wire::Duration;

use crate::message_facts::PollEnd;

/// Bodies of responses without an event.
const EMPTY: [&[u8]; 4] = [b"[]", b"{}", b"null", b"\"\""];
/// Maximum bytes of such a body with its framing.
const MAX_EMPTY_BYTES: usize = 32;

/// Returns the wait that a request permits the server: `Prefer: wait` (RFC 7240, section 4.3), or a parameter of its target.
pub(super) fn named_wait(target: &str, fields: &[httparse::Header<'_>]) -> Option<Duration> {
    let preferred = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("Prefer"));
    let preferred = preferred.filter_map(|field| std::str::from_utf8(field.value).ok());
    let mut preferred = preferred.flat_map(|value| value.split([',', ';']));
    let parameters = || target.split_once('?').map_or("", |(_, query)| query).split('&');
    preferred.find_map(parameter).or_else(|| parameters().find_map(parameter))
}

fn parameter(text: &str) -> Option<Duration> {
    /// A number below is seconds, from there on milliseconds.
    const MILLIS: u64 = 500;
    let (name, value) = text.split_once('=')?;
    let name = name.trim().to_ascii_lowercase();
    if !(name.contains("timeout") || name.contains("wait") || name.contains("poll")) {
        return None;
    }
    let digits = value.trim().bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.trim().split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "" if number >= MILLIS || name.ends_with("ms") => Some(Duration::from_millis(number)),
        "" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

/// Returns the evidence that a response ends a poll.
pub(super) fn end(method: &str, named: Option<Duration>, response: &[u8]) -> Option<PollEnd> {
    let status = response.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    match (status, named) {
        (b"204", _) if method == "GET" => Some(PollEnd::NoContent),
        ([b'2', ..] | b"304", Some(wait)) => Some(PollEnd::Named(wait)),
        (b"200", _) if method == "GET" && is_empty(response) => Some(PollEnd::Empty),
        _ => None,
    }
}

fn is_empty(response: &[u8]) -> bool {
    const END: &[u8] = b"\r\n\r\n";
    let Some(head) = response.windows(END.len()).position(|bytes| bytes == END) else { return false };
    let (head, body) = response.split_at(head + END.len());
    if body.is_empty() {
        return head.to_ascii_lowercase().windows(19).any(|bytes| bytes == b"content-length: 0\r\n");
    }
    body.len() <= MAX_EMPTY_BYTES
        && body.split(|byte| *byte == b'\n').any(|line| EMPTY.contains(&line.trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(target: &str) -> Option<u64> {
        named_wait(target, &[]).map(|wait| wait.as_nanos() / 1_000_000)
    }

    #[test]
    fn requests_name_their_wait_in_seconds_or_milliseconds() {
        assert_eq!(named("/v1/kv/x?index=7&wait=5s"), Some(5_000));
        assert_eq!(named("/sync?since=a&timeout=1500"), Some(1_500));
        assert_eq!(named("/getUpdates?timeout=30"), Some(30_000));
        assert_eq!(named("/poll?timeout_ms=400"), Some(400));
        assert_eq!(named("/delay/2?sleep=2&timeout=soon"), None);
        let prefer = [httparse::Header { name: "Prefer", value: b"respond-async, wait=2" }];
        assert_eq!(named_wait("/", &prefer), Some(Duration::from_secs(2)));
    }

    #[test]
    fn responses_without_an_event_are_empty() {
        let of = |rest: &str| end("GET", None, format!("HTTP/1.1 {rest}").as_bytes());
        assert_eq!(of("204 No Content\r\n\r\n"), Some(PollEnd::NoContent));
        assert_eq!(of("200 OK\r\nContent-Length: 0\r\n\r\n"), Some(PollEnd::Empty));
        assert_eq!(
            of("200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[]\n\r\n0\r\n\r\n"),
            Some(PollEnd::Empty)
        );
        assert_eq!(of("200 OK\r\nContent-Length: 2\r\n\r\nok"), None);
        assert_eq!(of("503 Busy\r\nContent-Length: 0\r\n\r\n"), None);
        let wait = Duration::from_secs(2);
        assert_eq!(end("POST", Some(wait), b"HTTP/1.1 200 OK\r\n\r\n"), Some(PollEnd::Named(wait)));
        assert_eq!(end("GET", Some(wait), b"HTTP/1.1 504 Gateway Timeout\r\n\r\n"), None);
    }
}
