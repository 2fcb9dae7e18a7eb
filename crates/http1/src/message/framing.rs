//! Where a body ends, and whether the connection stays: what a head says about its own message.
//!
//! Rules of RFC 9112, sections 6.3 and 9.3, with every ambiguity refused rather than resolved. Not the bytes
//! of the body: those are taken by the module `body`.

use super::field::{Fields, list};
use super::{Limits, Method, PeerFault, RequestHead, ResponseHead, Version};

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After so many bytes; 0 when there is no body.
    Length(u64),
    /// By chunks, the last of them empty.
    Chunked,
    /// By the end of the stream.
    UntilClose,
}

/// How the body of a request ends, once its `Host` is in order, too.
pub(crate) fn of_request(head: &RequestHead, limits: &Limits) -> Result<Framing, PeerFault> {
    match (head.fields.all("Host").count(), head.version) {
        (1, Version::Http10 | Version::Http11) | (0, Version::Http10) => {}
        (0, Version::Http11) | (2.., Version::Http10 | Version::Http11) => return Err(PeerFault::Host),
    }
    Ok(match declared(&head.fields, head.version, limits)? {
        Declared::Nothing => Framing::Length(0),
        Declared::Length(length) => Framing::Length(length),
        Declared::Chunked => Framing::Chunked,
    })
}

/// How the body of a response ends, given the method it answers.
pub(crate) fn of_response(
    head: &ResponseHead,
    answers: &Method,
    limits: &Limits,
) -> Result<Framing, PeerFault> {
    // Read even where there is no body, so that a head is refused for what it says alone.
    let declared = declared(&head.fields, head.version, limits)?;
    Ok(match (head.status, answers) {
        (101, _) => return Err(PeerFault::Switched),
        (100..200 | 204 | 304, _) | (_, Method::Head) => Framing::Length(0),
        (_, Method::Get | Method::Options | Method::Other(_)) => match declared {
            Declared::Nothing => Framing::UntilClose,
            Declared::Length(length) => Framing::Length(length),
            Declared::Chunked => Framing::Chunked,
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

/// What the fields of a head say about its body.
enum Declared {
    Nothing,
    Length(u64),
    Chunked,
}

fn declared(fields: &Fields, version: Version, limits: &Limits) -> Result<Declared, PeerFault> {
    let length = content_length(fields.all("Content-Length"))?;
    let mut codings = fields.all("Transfer-Encoding");
    match (codings.next(), length) {
        (None, None) => Ok(Declared::Nothing),
        (None, Some(length)) if length > limits.body_bytes => Err(PeerFault::BodyTooLarge),
        (None, Some(length)) => Ok(Declared::Length(length)),
        (Some(_), Some(_)) => Err(PeerFault::TwoLengths),
        (Some(coding), None) => {
            let alone = codings.next().is_none();
            if version == Version::Http11 && alone && coding.eq_ignore_ascii_case(b"chunked") {
                Ok(Declared::Chunked)
            } else {
                Err(PeerFault::TransferEncoding)
            }
        }
    }
}

/// The one length that every value of `Content-Length` gives; repeated is allowed, different is not.
///
/// # Errors
/// Lengths that differ, or are not numbers.
pub fn content_length<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<Option<u64>, PeerFault> {
    let mut agreed = None;
    for element in values.flat_map(list) {
        let length = decimal(element).ok_or(PeerFault::ContentLength)?;
        if agreed.replace(length).is_some_and(|before| before != length) {
            return Err(PeerFault::ContentLength);
        }
    }
    Ok(agreed)
}

/// A number of digits alone: no sign, no white space, no overflow.
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

    fn response(text: &str, answers: &Method) -> Result<Framing, PeerFault> {
        let limits = Limits::default();
        of_response(&ResponseHead::parse(format!("{text}\r\n\r\n").as_bytes(), &limits)?, answers, &limits)
    }

    fn request(text: &str) -> Result<Framing, PeerFault> {
        let limits = Limits::default();
        of_request(&RequestHead::parse(format!("{text}\r\n\r\n").as_bytes(), &limits)?, &limits)
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
    fn two_answers_to_where_a_body_ends_are_refused() {
        let both = "Content-Length: 7\r\nTransfer-Encoding: chunked";
        assert_eq!(response(&format!("HTTP/1.1 200 OK\r\n{both}"), &Method::Get), Err(PeerFault::TwoLengths));
        assert_eq!(request(&format!("POST / HTTP/1.1\r\nHost: h\r\n{both}")), Err(PeerFault::TwoLengths));
    }

    #[test]
    fn only_chunked_alone_and_in_http_1_1_is_a_transfer_coding() {
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
    fn some_responses_have_no_body_whatever_they_say() {
        let length = "Content-Length: 7";
        for (line, answers) in [
            ("HTTP/1.1 100 Continue", Method::Get),
            ("HTTP/1.1 204 No Content", Method::Get),
            ("HTTP/1.1 304 Not Modified", Method::Get),
            ("HTTP/1.1 200 OK", Method::Head),
        ] {
            assert_eq!(response(&format!("{line}\r\n{length}"), &answers), Ok(Framing::Length(0)), "{line}");
        }
        assert_eq!(response("HTTP/1.1 101 Switching", &Method::Get), Err(PeerFault::Switched));
        assert_eq!(response("HTTP/1.1 200 OK", &Method::Get), Ok(Framing::UntilClose));
    }

    #[test]
    fn a_request_has_one_host_unless_it_is_old() {
        assert_eq!(request("GET / HTTP/1.0"), Ok(Framing::Length(0)));
        assert_eq!(request("GET / HTTP/1.1"), Err(PeerFault::Host));
        assert_eq!(request("GET / HTTP/1.1\r\nHost: a\r\nHost: a"), Err(PeerFault::Host));
    }

    #[test]
    fn a_connection_stays_by_version_and_by_word() {
        let says = |value: &str| {
            let mut fields = Fields::new();
            fields.push("Connection", value).unwrap();
            fields
        };
        assert!(!persists(Version::Http10, &Fields::new()));
        assert!(persists(Version::Http11, &Fields::new()));
        assert!(persists(Version::Http10, &says("Keep-Alive")));
        assert!(!persists(Version::Http11, &says("x, Close")));
        assert!(!persists(Version::Http10, &says("keep-alive, close")));
    }
}
