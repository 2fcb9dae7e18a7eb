//! Framing: the end of a body, and whether the connection persists, by a message's own header section.
//!
//! Rules of RFC 9112, sections 6.3 and 9.3, with every ambiguity rejected rather than resolved. Not the bytes of the body: the
//! module `body` takes those.

use super::field::{Fields, list};
use super::{Limits, Method, PeerFault, RequestHead, ResponseHead, Version};

/// Framing of a body: how its end is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// This many bytes; 0 when there is no body.
    Length(u64),
    /// By chunks, up to an empty one.
    Chunked,
    /// By the end of the stream.
    UntilClose,
}

/// Returns the framing of a request's body, after checking its `Host`.
pub(crate) fn of_request(head: &RequestHead, limits: &Limits) -> Result<Framing, PeerFault> {
    let mut hosts = head.fields.all("Host");
    match (hosts.next(), hosts.next(), head.version) {
        (Some(host), None, Version::Http10 | Version::Http11) if is_host(host) => {}
        (None, _, Version::Http10) => {}
        (Some(_), _, Version::Http10 | Version::Http11) | (None, _, Version::Http11) => {
            return Err(PeerFault::Host);
        }
    }
    if !is_target(head.method.name(), &head.target) {
        return Err(PeerFault::RequestLine);
    }
    Ok(match declared(&head.fields, head.version, limits)? {
        DeclaredFraming::Nothing => Framing::Length(0),
        DeclaredFraming::Length(length) => Framing::Length(length),
        DeclaredFraming::Chunked => Framing::Chunked,
    })
}

/// Whether a value is valid in `Host`: empty, or a host with an optional port (RFC 9112, section 3.2; RFC 9110, section 7.2).
/// Of the characters that RFC 3986 permits, only those of Internet names and addresses are accepted.
pub fn is_host(value: &[u8]) -> bool {
    let (host, rest) = match value.strip_prefix(b"[") {
        Some(inside) => {
            let Some(end) = inside.iter().position(|byte| *byte == b']') else { return false };
            let (address, rest) = inside.split_at(end);
            let is_address = std::str::from_utf8(address)
                .is_ok_and(|address| address.parse::<core::net::Ipv6Addr>().is_ok());
            if !is_address {
                return false;
            }
            (address, &rest[1..])
        }
        None => value.split_at(value.iter().position(|byte| *byte == b':').unwrap_or(value.len())),
    };
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~_:".contains(byte);
    match rest.strip_prefix(b":") {
        None => rest.is_empty() && host.iter().all(is_of_name),
        Some(port) => {
            let is_port = port.is_empty() || decimal(port).is_some_and(|port| port <= u64::from(u16::MAX));
            is_port && !host.is_empty() && host.iter().all(is_of_name)
        }
    }
}

/// Whether a target has a form that its method permits (RFC 9112, section 3.2). Permitted are a path, `*` for OPTIONS, and
/// an absolute URL of HTTP with a host and without user information. A fragment is never part of a target (RFC 9112, section
/// 3.2): one server would cut it off, another take it for the path. For CONNECT any other target is accepted here.
pub fn is_target(method: &str, target: &str) -> bool {
    if target.contains('#') {
        return false;
    }
    match (method, target.as_bytes().first()) {
        ("CONNECT", _) | (_, Some(b'/')) => true,
        ("OPTIONS", Some(b'*')) => target == "*",
        _ => target.split_once("://").is_some_and(|(scheme, rest)| {
            let authority = rest.split(['/', '?']).next().unwrap_or_default();
            let is_http = ["http", "https"].into_iter().any(|known| scheme.eq_ignore_ascii_case(known));
            is_http && !authority.is_empty() && is_host(authority.as_bytes())
        }),
    }
}

/// Returns the framing of a response's body, given the method of its request.
pub(crate) fn of_response(
    head: &ResponseHead,
    responses: &Method,
    limits: &Limits,
) -> Result<Framing, PeerFault> {
    // Checked even where there is no body, so that a header section is rejected for its own contents alone.
    let declared = declared(&head.fields, head.version, limits)?;
    Ok(match (head.status, responses) {
        (101, _) => return Err(PeerFault::Switched),
        (100..200 | 204 | 304, _) | (_, Method::Head) => Framing::Length(0),
        (_, Method::Get | Method::Options | Method::Other(_)) => match declared {
            DeclaredFraming::Nothing => Framing::UntilClose,
            DeclaredFraming::Length(length) => Framing::Length(length),
            DeclaredFraming::Chunked => Framing::Chunked,
        },
    })
}

/// Whether the connection may carry another message after this one (RFC 9112, section 9.3).
pub fn persists(version: Version, fields: &Fields) -> bool {
    if fields.has_token("Connection", "close") {
        return false;
    }
    match version {
        Version::Http10 => fields.has_token("Connection", "keep-alive"),
        Version::Http11 => true,
    }
}

/// Framing declared by the fields of a header section.
enum DeclaredFraming {
    Nothing,
    Length(u64),
    Chunked,
}

fn declared(fields: &Fields, version: Version, limits: &Limits) -> Result<DeclaredFraming, PeerFault> {
    let length = content_length(fields.all("Content-Length"))?;
    let mut codings = fields.all("Transfer-Encoding");
    match (codings.next(), length) {
        (None, None) => Ok(DeclaredFraming::Nothing),
        (None, Some(length)) if length > limits.body_bytes => Err(PeerFault::BodyTooLarge),
        (None, Some(length)) => Ok(DeclaredFraming::Length(length)),
        (Some(_), Some(_)) => Err(PeerFault::TwoLengths),
        (Some(coding), None) => {
            let alone = codings.next().is_none();
            if version == Version::Http11 && alone && coding.eq_ignore_ascii_case(b"chunked") {
                Ok(DeclaredFraming::Chunked)
            } else {
                Err(PeerFault::TransferEncoding)
            }
        }
    }
}

/// Returns the length that all values of `Content-Length` agree on. Repetition is allowed; contradiction and another spelling
/// are not, because a parser might read `010` as eight.
///
/// # Errors
/// Lengths that differ, or are not numbers.
pub fn content_length<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<Option<u64>, PeerFault> {
    let mut agreed: Option<&[u8]> = None;
    for element in values.flat_map(list) {
        if agreed.replace(element).is_some_and(|previous| previous != element) {
            return Err(PeerFault::ContentLength);
        }
    }
    agreed.map(|element| decimal(element).ok_or(PeerFault::ContentLength)).transpose()
}

/// Parses a number that has only digits: no sign, no white space, no overflow.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let value = char::from(*digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(u64::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(text: &str, responses: &Method) -> Result<Framing, PeerFault> {
        let limits = Limits::default();
        of_response(&ResponseHead::parse(format!("{text}\r\n\r\n").as_bytes(), &limits)?, responses, &limits)
    }

    fn request(text: &str) -> Result<Framing, PeerFault> {
        let limits = Limits::default();
        of_request(&RequestHead::parse(format!("{text}\r\n\r\n").as_bytes(), &limits)?, &limits)
    }

    #[test]
    fn host_is_a_name_or_address_with_optional_port() {
        for host in ["", "h", "h.example:80", "h:", "127.0.0.1:65535", "[::1]", "[2001:db8::1]:8080", "a_b"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "a b", "a,b", "a@b", "a/b", "a?b", "a#b", "\"a\"", "a\\b", "h\u{e4}", "<a>", "{a}", "a|b",
            "a\tb", "[::1", "[::1]x", "[x]", ":80", "a:80:80", "::1", "a:x", "a:65536", "a:-1", "a%00",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
            assert_eq!(request(&format!("GET / HTTP/1.1\r\nHost: {host}")), Err(PeerFault::Host), "{host}");
        }
    }

    #[test]
    fn a_target_has_the_form_that_its_method_takes() {
        for line in [
            "GET /",
            "OPTIONS *",
            "GET http://h/",
            "GET http://[::1]:80?q",
            "CONNECT h:443",
            "GET HTTPS://h/",
        ] {
            assert!(request(&format!("{line} HTTP/1.1\r\nHost: h")).is_ok(), "{line}");
        }
        for line in [
            "GET x",
            "GET *",
            "OPTIONS *x",
            "GET http://u@h/",
            "GET http:///",
            "GET http://a b/",
            "GET ://h/",
        ] {
            assert!(request(&format!("{line} HTTP/1.1\r\nHost: h")).is_err(), "{line}");
        }
    }

    #[test]
    fn a_length_is_one_decimal_number() {
        let framing =
            |value: &str| response(&format!("HTTP/1.1 200 OK\r\nContent-Length: {value}"), &Method::Get);
        assert_eq!(framing("1866"), Ok(Framing::Length(1866)));
        assert_eq!(framing("7, 7"), Ok(Framing::Length(7)));
        assert_eq!(framing("0007"), Ok(Framing::Length(7)));
        for value in ["", "+7", "-7", "0x7", "7 7", "7,8", "7,", "7.0", "18446744073709551616", "\u{664}"] {
            assert_eq!(framing(value), Err(PeerFault::ContentLength), "{value}");
        }
        assert_eq!(framing("1099511627776"), Ok(Framing::Length(1 << 40)));
        assert_eq!(framing("1099511627777"), Err(PeerFault::BodyTooLarge));
        let twice = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 8";
        assert_eq!(response(twice, &Method::Get), Err(PeerFault::ContentLength));
    }

    #[test]
    fn rejects_contradictory_framing() {
        let both = "Content-Length: 7\r\nTransfer-Encoding: chunked";
        assert_eq!(response(&format!("HTTP/1.1 200 OK\r\n{both}"), &Method::Get), Err(PeerFault::TwoLengths));
        assert_eq!(request(&format!("POST / HTTP/1.1\r\nHost: h\r\n{both}")), Err(PeerFault::TwoLengths));
    }

    #[test]
    fn accepts_only_chunked_in_http_1_1() {
        let framing = |version: &str, fields: &str| {
            response(&format!("HTTP/{version} 200 OK\r\nTransfer-Encoding: {fields}"), &Method::Get)
        };
        assert_eq!(framing("1.1", "Chunked"), Ok(Framing::Chunked));
        let others = [
            "gzip",
            "gzip, chunked",
            "chunked, chunked",
            "chunked\r\nTransfer-Encoding: chunked",
            "xchunked",
            "",
        ];
        for coding in others {
            assert_eq!(framing("1.1", coding), Err(PeerFault::TransferEncoding), "{coding}");
        }
        assert_eq!(framing("1.0", "chunked"), Err(PeerFault::TransferEncoding));
    }

    #[test]
    fn some_responses_never_have_a_body() {
        let length = "Content-Length: 7";
        for (line, responses) in [
            ("HTTP/1.1 100 Continue", Method::Get),
            ("HTTP/1.1 204 No Content", Method::Get),
            ("HTTP/1.1 304 Not Modified", Method::Get),
            ("HTTP/1.1 200 OK", Method::Head),
        ] {
            assert_eq!(
                response(&format!("{line}\r\n{length}"), &responses),
                Ok(Framing::Length(0)),
                "{line}"
            );
        }
        assert_eq!(response("HTTP/1.1 101 Switching", &Method::Get), Err(PeerFault::Switched));
        assert_eq!(response("HTTP/1.1 200 OK", &Method::Get), Ok(Framing::UntilClose));
    }

    #[test]
    fn requires_one_host_in_http_1_1() {
        assert_eq!(request("GET / HTTP/1.0"), Ok(Framing::Length(0)));
        assert_eq!(request("GET / HTTP/1.1"), Err(PeerFault::Host));
        assert_eq!(request("GET / HTTP/1.1\r\nHost: a\r\nHost: a"), Err(PeerFault::Host));
    }

    #[test]
    fn persistence_follows_version_and_connection_options() {
        let head = |value: &str| {
            let mut fields = Fields::new();
            fields.push("Connection", value).unwrap();
            fields
        };
        assert!(!persists(Version::Http10, &Fields::new()));
        assert!(persists(Version::Http11, &Fields::new()));
        assert!(persists(Version::Http10, &head("Keep-Alive")));
        assert!(!persists(Version::Http11, &head("x, Close")));
        assert!(!persists(Version::Http10, &head("keep-alive, close")));
    }
}
