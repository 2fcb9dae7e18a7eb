//! DHTTP's messages: eight bytes of identity before an HTTP/1.1 message (`papers/dhttp#figure-2`).
//!
//! Strict: input that two parsers could interpret differently is rejected, not repaired. Nothing is copied and nothing
//! allocated. Not a channel: [`super::client`] and [`super::server`] choose the channel of a message.

use std::fmt;

use super::parts::{self, PARTS_FIELD};
use super::token::{TOKEN_FIELD, TOKEN_REQUEST, Token, is_token};
use http1::message::framing::content_length;
use http1::message::{
    Limits, Method, PeerFault, RequestHead, RequestView, ResponseView, Version, is_host, is_target,
};

/// Request id: 64 bits, generated for each request by a CSPRNG. It alone distinguishes a response from a forgery.
/// Servers of the internet profile open connections only for marked ones ([`Self::marked`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(pub u64);

impl Id {
    /// Bytes on the wire.
    pub const BYTES: usize = 8;

    /// First byte of ids that may begin a response on a connection. No line protocol accepts it: it occurs neither in
    /// ASCII nor in UTF-8 (RFC 3629, section 3), and MessagePack never uses it.
    pub const MARK: u8 = 0xc1;

    /// Bits of the number of a marked id.
    pub const NUMBER_BITS: u32 = 54;

    /// The marked id of a number, of which the last [`Self::NUMBER_BITS`] count. The seven bytes after the mark are its
    /// digits, none a control character. The number comes from a CSPRNG.
    pub const fn marked(number: u64) -> Self {
        let (mut rest, mut id, mut place) = (number & ((1 << Self::NUMBER_BITS) - 1), 0, 0);
        while place < 7 {
            let digit = rest % DIGITS;
            let byte =
                if digit < PRINTABLE { FIRST_PRINTABLE + digit } else { FIRST_HIGH - PRINTABLE + digit };
            id |= byte << (8 * place);
            (rest, place) = (rest / DIGITS, place + 1);
        }
        Self((Self::MARK as u64) << 56 | id)
    }

    /// The number of a marked id; `None` for other ids.
    pub fn number(self) -> Option<u64> {
        let [Self::MARK, digits @ ..] = self.to_bytes() else { return None };
        digits.into_iter().try_fold(0, |number: u64, byte| {
            let digit = match u64::from(byte) {
                byte @ FIRST_PRINTABLE..=0x7e => byte - FIRST_PRINTABLE,
                byte @ FIRST_HIGH.. => byte - FIRST_HIGH + PRINTABLE,
                _ => return None,
            };
            Some(number * DIGITS + digit)
        })
    }

    /// Bytes of the id on the wire.
    pub const fn to_bytes(self) -> [u8; Self::BYTES] {
        self.0.to_be_bytes()
    }

    /// Splits the id off the front of a response.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn split(response: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (id, rest) = response.split_first_chunk().ok_or(Malformed::Short)?;
        Ok((Self(u64::from_be_bytes(*id)), rest))
    }
}

/// Bytes that are not control characters, and those of them in ASCII: the digits of a marked id.
const DIGITS: u64 = PRINTABLE + 128;
const PRINTABLE: u64 = 0x7f - FIRST_PRINTABLE;
const FIRST_PRINTABLE: u64 = b' ' as u64;
const FIRST_HIGH: u64 = 0x80;

/// Fallback message: the id of a request, alone or before a token. The client retries over plain HTTP.
///
/// With a token it is shorter than every request that may get one: 34 bytes for at least 51.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FallbackMessage {
    bytes: [u8; Self::MAX_BYTES],
    length: usize,
}

impl FallbackMessage {
    /// Maximum bytes on the wire.
    pub const MAX_BYTES: usize = Id::BYTES + Token::DIGITS;

    /// The message for a request, with a token for its client.
    pub fn new(id: Id, token: Option<&Token>) -> Self {
        let token = token.map_or("", Token::as_str).as_bytes();
        let (mut bytes, length) = ([0; Self::MAX_BYTES], Id::BYTES + token.len());
        for (to, from) in bytes.iter_mut().zip(id.to_bytes().iter().chain(token)) {
            *to = *from;
        }
        Self { bytes, length }
    }

    /// Bytes on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }

    /// Whether a datagram is a fallback message.
    pub fn is_one(datagram: &[u8]) -> bool {
        Id::split(datagram).is_ok_and(|(_, message)| message.is_empty() || Self::has_token(message))
    }

    /// Whether what follows the id in a datagram is the token of a fallback message. A response is never taken for
    /// one, because it contains spaces and line ends.
    pub fn has_token(message: &[u8]) -> bool {
        is_token(message)
    }
}

impl From<Id> for FallbackMessage {
    fn from(id: Id) -> Self {
        Self::new(id, None)
    }
}

impl fmt::Debug for FallbackMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FallbackMessage({})", self.as_bytes().escape_ascii())
    }
}

/// Header before the HTTP request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Id of the request.
    pub id: Id,
    /// The client's port on the other channel: over UDP, the TCP port on which it accepts connections; 0 if none.
    pub port: u16,
    /// Whether the same request was sent before.
    pub is_resend: bool,
}

impl RequestHeader {
    /// Bytes on the wire: id, port, flags.
    pub const BYTES: usize = Id::BYTES + 2 + 1;

    const RESEND: u8 = 1;

    /// Bytes of the header on the wire.
    pub const fn to_bytes(self) -> [u8; Self::BYTES] {
        let Self { id, port, is_resend } = self;
        let ([a, b, c, d, e, f, g, h], [high, low]) = (id.to_bytes(), port.to_be_bytes());
        [a, b, c, d, e, f, g, h, high, low, if is_resend { Self::RESEND } else { 0 }]
    }

    fn split(datagram: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (id, rest) = Id::split(datagram)?;
        let ([high, low, flags], rest) = rest.split_first_chunk().ok_or(Malformed::Short)?;
        if flags & !Self::RESEND != 0 {
            return Err(Malformed::Flags);
        }
        let (port, is_resend) = (u16::from_be_bytes([*high, *low]), *flags == Self::RESEND);
        Ok((Self { id, port, is_resend }, rest))
    }
}

/// A request in one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The header before the HTTP request.
    pub header: RequestHeader,
    /// The HTTP request. It has no body.
    pub head: RequestView<'a>,
    /// Values of its fields that decide its handling.
    pub marks: Marks<'a>,
}

/// Request field that marks a resend without loss, made so that caches on the path forward the request. A server that
/// knows the field treats the request as fresh. Its value has no meaning.
pub const PAST_FIELD: &str = "DHTTP-Past";

/// Whether a datagram is a request that was resent because of loss.
pub fn is_resend(datagram: &[u8]) -> bool {
    let read = || Request::read(datagram, &Limits::default());
    datagram.get(RequestHeader::BYTES - 1) == Some(&RequestHeader::RESEND)
        && !read().is_ok_and(|request| request.marks.is_past_caches)
}

/// Values of a request's fields that decide its handling, found in one pass through them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks<'a> {
    /// The client's token; the last, if there are several.
    pub token: Option<&'a [u8]>,
    /// The token before the last. Behind a cache on the path, a client sends the server's token and the cache's,
    /// because either may respond.
    pub other_token: Option<&'a [u8]>,
    /// Whether a [`TOKEN_FIELD`] is a [`TOKEN_REQUEST`]: the client accepts a token in the fallback message.
    pub requests_token: bool,
    /// `Expect` or `Upgrade`: the client expects more than one response.
    pub wants_more: bool,
    /// `Authorization` or `Cookie`: the request identifies the user.
    pub has_credentials: bool,
    /// Number of parts of a response that the client accepts; 0 if none.
    pub parts: u8,
    /// `Range`: the request is for a part of an object.
    pub has_range: bool,
    /// Whether it has a [`PAST_FIELD`]: it was resent to pass a cache, and nothing was lost.
    pub is_past_caches: bool,
    hosts: usize,
    has_invalid_host: bool,
    has_coding: bool,
    has_length: bool,
}

impl<'a> Marks<'a> {
    fn note(&mut self, name: &[u8], value: &'a [u8]) {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        // By length first: most fields match none of these names.
        match name.len() {
            4 if is("Host") => {
                self.hosts += 1;
                self.has_invalid_host |= !is_host(value);
            }
            5 if is("Range") => self.has_range = true,
            6 if is("Cookie") => self.has_credentials = true,
            13 if is("Authorization") => self.has_credentials = true,
            6 if is("Expect") => self.wants_more = true,
            7 if is("Upgrade") => self.wants_more = true,
            10 if is(PAST_FIELD) => self.is_past_caches = true,
            11 if is(TOKEN_FIELD) && value == TOKEN_REQUEST.as_bytes() => self.requests_token = true,
            11 if is(TOKEN_FIELD) => self.other_token = self.token.replace(value),
            11 if is(PARTS_FIELD) => self.parts = parts::read(value),
            14 if is("Content-Length") => self.has_length = true,
            17 if is("Transfer-Encoding") => self.has_coding = true,
            _ => {}
        }
    }
}

impl<'a> Request<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// The reason why the datagram is not a valid request. It gets no response.
    pub fn read(datagram: &'a [u8], limits: &Limits) -> Result<Self, Malformed> {
        let (header, mut rest) = RequestHeader::split(datagram)?;
        let mut marks = Marks::default();
        let head = RequestView::read_each(&mut rest, limits, |name, value| marks.note(name, value))?;
        check_version(head.version)?;
        if marks.hosts != 1 || marks.has_invalid_host {
            return Err(Malformed::Http(PeerFault::Host));
        }
        if !is_target(head.method, head.target) {
            return Err(Malformed::Http(PeerFault::RequestLine));
        }
        if marks.has_coding {
            return Err(Malformed::TransferEncoding);
        }
        let length = if marks.has_length { content_length(head.fields.all("Content-Length"))? } else { None };
        match length {
            None | Some(0) if rest.is_empty() => Ok(Self { header, head, marks }),
            None | Some(_) => Err(Malformed::Body),
        }
    }
}

/// Whether a datagram is a request for the missing parts of a response.
pub fn is_for_missing(datagram: &[u8]) -> bool {
    Request::read(datagram, &Limits::default()).is_ok_and(|Request { header, head: _, marks }| {
        header.is_resend && marks.parts > 0 && marks.has_range
    })
}

/// Writes a request as one datagram.
pub fn write_request(header: RequestHeader, head: &RequestHead, out: &mut Vec<u8>) {
    out.extend_from_slice(&header.to_bytes());
    head.encode(out);
}

/// Parses what follows the id in a response datagram to a request with the method `method`: the header section, and
/// the body, which is all the rest.
///
/// # Errors
/// The reason why it is not a valid response to that request.
pub fn read_response<'a>(
    mut message: &'a [u8],
    method: &Method,
    limits: &Limits,
) -> Result<(ResponseView<'a>, &'a [u8]), Malformed> {
    let head = ResponseView::read(&mut message, limits)?;
    check_version(head.version)?;
    if head.fields.get("Transfer-Encoding").is_some() {
        return Err(Malformed::TransferEncoding);
    }
    let declared = content_length(head.fields.all("Content-Length"))?;
    let length = message.len() as u64;
    let is_right = match (head.status, method) {
        (..200, _) => return Err(Malformed::Interim),
        // Their Content-Length is that of a response with a body (RFC 9110, section 8.6).
        (204 | 304, _) | (_, Method::Head) => length == 0,
        (_, Method::Get | Method::Options | Method::Other(_)) => {
            declared.is_none_or(|declared| declared == length)
        }
    };
    if is_right { Ok((head, message)) } else { Err(Malformed::Body) }
}

fn check_version(version: Version) -> Result<(), Malformed> {
    match version {
        Version::Http11 => Ok(()),
        Version::Http10 => Err(Malformed::Http(PeerFault::Version)),
    }
}

/// Reason why a message is not valid DHTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Too short for the header before an HTTP message.
    #[error("the datagram is too short to be DHTTP")]
    Short,
    /// An undefined flag is set.
    #[error("the datagram has flags that this version of DHTTP does not know")]
    Flags,
    /// The rest is not HTTP/1.1.
    #[error(transparent)]
    Http(#[from] PeerFault),
    /// A Transfer-Encoding: a datagram is the whole message.
    #[error("the peer used a Transfer-Encoding in a datagram, which is a whole message")]
    TransferEncoding,
    /// The bytes after the header section do not match its length, or a request has any.
    #[error("the length of the body differs from its Content-Length")]
    Body,
    /// An interim response: the datagram could not hold the final one as well.
    #[error("the peer sent an interim response in a datagram")]
    Interim,
    /// On a connection: a response delimited by the end of the stream, which no other response could follow.
    #[error("the peer sent a response without a length on a connection for several")]
    Unbounded,
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: RequestHeader =
        RequestHeader { id: Id(0x0102_0304_0506_0708), port: 0x1f90, is_resend: true };

    fn request(http: &str) -> Result<RequestHead, Malformed> {
        let datagram = [&HEADER.to_bytes(), http.as_bytes()].concat();
        Request::read(&datagram, &Limits::default()).map(|request| {
            assert_eq!(request.header, HEADER);
            request.head.to_head()
        })
    }

    fn response(http: &str, responses: Method) -> Result<&str, Malformed> {
        let (_, body) = read_response(http.as_bytes(), &responses, &Limits::default())?;
        Ok(std::str::from_utf8(body).unwrap())
    }

    #[test]
    fn marked_ids_have_a_byte_of_no_text_and_no_control_character_and_give_their_number_back() {
        for number in [0, 1, 94, 95, 222, 223, 0x1234_5678_9abc, (1 << Id::NUMBER_BITS) - 1] {
            let id = Id::marked(number | 1 << 63);
            let [mark, rest @ ..] = id.to_bytes();
            assert_eq!((mark, id.number()), (0xc1, Some(number)), "{id:?}");
            assert!(rest.iter().all(|byte| !byte.is_ascii_control()), "{id:?}");
        }
        let others = [0, 7, u64::MAX, 0xc120_2020_2020_200a, 0xc17f_2020_2020_2020];
        assert_eq!(others.map(|id| Id(id).number()), [None; 5]);
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let head = request("GET /_dhttp_/a HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n").unwrap();
        let mut datagram = Vec::new();
        write_request(HEADER, &head, &mut datagram);
        assert_eq!(datagram[..11], [1, 2, 3, 4, 5, 6, 7, 8, 0x1f, 0x90, 1]);
        assert_eq!(Request::read(&datagram, &Limits::default()).unwrap().head.to_head(), head);
    }

    #[test]
    fn a_datagram_is_one_whole_request_without_a_body() {
        let with = |fields: &str| request(&format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}"));
        assert!(with("Content-Length: 0\r\n\r\n").is_ok());
        for (fields, why) in [
            ("\r\nGET", Malformed::Body),
            ("Content-Length: 3\r\n\r\nabc", Malformed::Body),
            ("Content-Length: 3\r\n\r\n", Malformed::Body),
            ("Content-Length: 0\r\n\r\nabc", Malformed::Body),
            ("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Malformed::TransferEncoding),
            ("Transfer-Encoding: identity\r\n\r\n", Malformed::TransferEncoding),
            ("Content-Length: 0\r\nContent-Length: 3\r\n\r\n", Malformed::Http(PeerFault::ContentLength)),
            ("Host: i\r\n\r\n", Malformed::Http(PeerFault::Host)),
            ("X : y\r\n\r\n", Malformed::Http(PeerFault::FieldLine)),
            ("X: y\n\r\n", Malformed::Http(PeerFault::BareLineFeed)),
            (" X: y\r\n\r\n", Malformed::Http(PeerFault::FoldedLine)),
            ("X: y\r\n", Malformed::Http(PeerFault::Truncated)),
        ] {
            assert_eq!(with(fields), Err(why), "{fields:?}");
        }
        assert_eq!(
            request("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"),
            Err(Malformed::Http(PeerFault::BlankLines))
        );
        assert_eq!(request("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"), Err(Malformed::Http(PeerFault::Host)));
        assert_eq!(
            request("GET x HTTP/1.1\r\nHost: h\r\n\r\n"),
            Err(Malformed::Http(PeerFault::RequestLine))
        );
        assert_eq!(request("GET / HTTP/1.0\r\nHost: h\r\n\r\n"), Err(Malformed::Http(PeerFault::Version)));
    }

    #[test]
    fn request_header_is_complete_and_has_no_unknown_flags() {
        let mut datagram = [&HEADER.to_bytes()[..], b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
        for length in 0..RequestHeader::BYTES {
            assert_eq!(Request::read(&datagram[..length], &Limits::default()), Err(Malformed::Short));
        }
        datagram[10] = 2;
        assert_eq!(Request::read(&datagram, &Limits::default()), Err(Malformed::Flags));
    }

    #[test]
    fn the_length_of_a_response_is_that_of_its_datagram() {
        assert_eq!(response("HTTP/1.1 200 OK\r\n\r\nbody", Method::Get), Ok("body"));
        assert_eq!(response("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", Method::Get), Ok("body"));
        assert_eq!(response("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", Method::Head), Ok(""));
        assert_eq!(response("HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n", Method::Get), Ok(""));
        for (text, responses, why) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbody", Method::Get, Malformed::Body),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody", Method::Get, Malformed::Body),
            ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", Method::Head, Malformed::Body),
            ("HTTP/1.1 204 No Content\r\n\r\nbody", Method::Get, Malformed::Body),
            ("HTTP/1.1 103 Early Hints\r\n\r\n", Method::Get, Malformed::Interim),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                Method::Get,
                Malformed::TransferEncoding,
            ),
            ("HTTP/1.0 200 OK\r\n\r\n", Method::Get, Malformed::Http(PeerFault::Version)),
            ("SSH-2.0", Method::Get, Malformed::Http(PeerFault::StatusLine)),
        ] {
            assert_eq!(response(text, responses), Err(why), "{text:?}");
        }
    }
}
