//! Heads of requests and responses: their contents, encoding and parsing.
//!
//! Not the end of a head in a stream (the module `scan`) nor that of its body ([`super::framing`]). The httparse crate parses
//! lines; what it accepts against RFC 9112 is rejected here or in the scan.

use std::mem::MaybeUninit;

use super::field::{Fields, is_token};
use super::{Limits, PeerFault};

/// The version of a message (RFC 9112, section 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0: a connection closes after its response unless both sides send `keep-alive`.
    Http10,
    /// HTTP/1.1: a connection persists unless one side sends `close`.
    Http11,
}

impl Version {
    /// Returns its name in a start line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        }
    }

    fn from_minor(minor: Option<u8>) -> Result<Self, PeerFault> {
        match minor {
            Some(0) => Ok(Self::Http10),
            Some(1) => Ok(Self::Http11),
            None | Some(2..) => Err(PeerFault::Version),
        }
    }
}

/// Method of a request (RFC 9110, section 9).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Requests the representation.
    Get,
    /// Requests its header section alone.
    Head,
    /// Requests the allowed methods.
    Options,
    /// Any other method, as written; it may change something.
    Other(String),
}

impl Method {
    /// Returns its name in a request line.
    pub fn name(&self) -> &str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Other(name) => name,
        }
    }

    /// Returns whether it changes nothing at the server, so that it may be retried (RFC 9110, section 9.2.1).
    pub const fn is_safe(&self) -> bool {
        match self {
            Self::Get | Self::Head | Self::Options => true,
            Self::Other(_) => false,
        }
    }

    /// Returns the method of this name, which is case-sensitive.
    pub fn from_name(name: &str) -> Self {
        match name {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "OPTIONS" => Self::Options,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The target: visible ASCII, at least one character.
    pub target: String,
    /// The highest version the client speaks.
    pub version: Version,
    /// Header fields.
    pub fields: Fields,
}

impl RequestHead {
    /// Writes the head, including the final empty line.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Self { method, target, version, fields } = self;
        for part in [method.name(), " ", target, " ", version.name(), "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(fields.lines());
        out.extend_from_slice(b"\r\n");
    }

    /// Parses a whole head, including the final empty line, that the scan has accepted.
    pub(crate) fn parse(head: &[u8], limits: &Limits) -> Result<Self, PeerFault> {
        let mut buffer = field_room();
        let (line, headers) = request_parts(head, &mut buffer, limits)?;
        let RequestLine { method, target, version } = line;
        let method = Method::from_name(method);
        Ok(Self { method, target: target.to_owned(), version, fields: fields_from(headers, head.len()) })
    }
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The version of the server's response.
    pub version: Version,
    /// 100 to 999; those below 200 announce a further response.
    pub status: u16,
    /// Header fields.
    pub fields: Fields,
}

impl ResponseHead {
    /// Writes the head, including the final empty line.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Self { version, status, fields } = self;
        write_status_line(*version, *status, out);
        out.extend_from_slice(fields.lines());
        out.extend_from_slice(b"\r\n");
    }

    /// Whether a further response to the same request follows.
    pub const fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// Parses a whole head, including the final empty line, that the scan has accepted.
    pub(crate) fn parse(head: &[u8], limits: &Limits) -> Result<Self, PeerFault> {
        let mut buffer = field_room();
        let (StatusLine { version, status }, headers) = response_parts(head, &mut buffer, limits)?;
        Ok(Self { version, status, fields: fields_from(headers, head.len()) })
    }
}

/// The first line of a request, borrowed.
pub(crate) struct RequestLine<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) version: Version,
}

/// The first line of a response.
pub(crate) struct StatusLine {
    pub(crate) version: Version,
    pub(crate) status: u16,
}

/// Buffer for the fields of one head, which httparse fills.
pub(crate) type FieldBuffer<'a> = [MaybeUninit<httparse::Header<'a>>; Limits::MAX_FIELDS];

/// Creates an empty buffer.
pub(crate) const fn field_room<'a>() -> FieldBuffer<'a> {
    [const { MaybeUninit::uninit() }; Limits::MAX_FIELDS]
}

/// Splits a request's head that the scan has accepted, including the final empty line; nothing is copied.
pub(crate) fn request_parts<'a, 'r>(
    head: &'a [u8],
    buffer: &'r mut FieldBuffer<'a>,
    limits: &Limits,
) -> Result<(RequestLine<'a>, &'r [httparse::Header<'a>]), PeerFault> {
    let mut request = httparse::Request::new(&mut []);
    let buffer = &mut buffer[..limits.fields.min(Limits::MAX_FIELDS)];
    if head_is_unlike(head, request.parse_with_uninit_headers(head, buffer), PeerFault::RequestLine)? {
        return Err(PeerFault::RequestLine);
    }
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return Err(PeerFault::RequestLine);
    };
    if !is_token(method.as_bytes()) || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(PeerFault::RequestLine);
    }
    if target.len() > limits.target_bytes {
        return Err(PeerFault::TargetTooLong);
    }
    let version = Version::from_minor(request.version)?;
    Ok((RequestLine { method, target, version }, request.headers))
}

/// Splits a response's head that the scan has accepted, including the final empty line; nothing is copied.
pub(crate) fn response_parts<'a, 'r>(
    head: &'a [u8],
    buffer: &'r mut FieldBuffer<'a>,
    limits: &Limits,
) -> Result<(StatusLine, &'r [httparse::Header<'a>]), PeerFault> {
    let mut response = httparse::Response::new(&mut []);
    let buffer = &mut buffer[..limits.fields.min(Limits::MAX_FIELDS)];
    let config = httparse::ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut response, head, buffer);
    if head_is_unlike(head, parsed, PeerFault::StatusLine)? {
        return Err(PeerFault::StatusLine);
    }
    let status = response.code.filter(|code| *code >= 100).ok_or(PeerFault::StatusLine)?;
    Ok((StatusLine { version: Version::from_minor(response.version)?, status }, response.headers))
}

/// Whether httparse found another end of the head than the scan (it must not), or the fault that it found.
fn head_is_unlike(
    head: &[u8],
    parsed: httparse::Result<usize>,
    start_line: PeerFault,
) -> Result<bool, PeerFault> {
    match parsed {
        Ok(httparse::Status::Complete(length)) => Ok(length != head.len()),
        Ok(httparse::Status::Partial) => Ok(true),
        Err(httparse::Error::HeaderName | httparse::Error::HeaderValue) => Err(PeerFault::FieldLine),
        Err(httparse::Error::TooManyHeaders) => Err(PeerFault::TooManyFields),
        Err(httparse::Error::Version) => Err(PeerFault::Version),
        Err(httparse::Error::NewLine | httparse::Error::Status | httparse::Error::Token) => Err(start_line),
    }
}

/// Parses a trailer section, including the final empty line, that the scan has accepted.
pub(crate) fn trailers_from(section: &[u8], limits: &Limits) -> Result<Fields, PeerFault> {
    let mut buffer = [httparse::EMPTY_HEADER; Limits::MAX_FIELDS];
    let buffer = &mut buffer[..limits.fields.min(Limits::MAX_FIELDS)];
    let mut fields = Fields::new();
    let parsed = httparse::parse_headers(section, buffer).map(|status| match status {
        httparse::Status::Complete((length, headers)) => {
            fields = fields_from(headers, section.len());
            httparse::Status::Complete(length)
        }
        httparse::Status::Partial => httparse::Status::Partial,
    });
    if head_is_unlike(section, parsed, PeerFault::FieldLine)? {
        Err(PeerFault::FieldLine)
    } else {
        Ok(fields)
    }
}

fn fields_from(headers: &[httparse::Header<'_>], bytes: usize) -> Fields {
    let mut fields = Fields::with_capacity_for(headers.len(), bytes);
    for httparse::Header { name, value } in headers {
        fields.push_checked(name.as_bytes(), value);
    }
    fields
}

/// Writes the first line of a response.
pub fn write_status_line(version: Version, status: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(version.name().as_bytes());
    out.push(b' ');
    write_decimal(u64::from(status), out);
    for part in [" ", reason(status), "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Writes a number without the overhead of `format!`: every response has one or two.
pub fn write_decimal(mut number: u64, out: &mut Vec<u8>) {
    // u64::MAX has 20 digits.
    let mut digits = [b'0'; 20];
    let mut used = 0;
    for digit in digits.iter_mut().rev() {
        // '0' plus a remainder of 10 fits.
        *digit += u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        used += 1;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len() - used..).unwrap_or_default());
}

/// Returns the reason phrase (RFC 9110, section 15); empty for a status that is never sent.
pub const fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        103 => "Early Hints",
        200 => "OK",
        206 => "Partial Content",
        301 => "Moved Permanently",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        416 => "Range Not Satisfiable",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Result<RequestHead, PeerFault> {
        RequestHead::parse(text.as_bytes(), &Limits::default())
    }

    fn response(text: &str) -> Result<ResponseHead, PeerFault> {
        ResponseHead::parse(text.as_bytes(), &Limits::default())
    }

    #[test]
    fn a_header_section_is_written_as_it_was_read() {
        let text = "GET /a?b HTTP/1.1\r\nHost: h\r\nX-Empty: \r\n\r\n";
        let mut out = Vec::new();
        request(text).unwrap().encode(&mut out);
        assert_eq!(out, text.as_bytes());
        let text = "HTTP/1.0 304 Not Modified\r\nETag: \"x\"\r\n\r\n";
        out.clear();
        response(text).unwrap().encode(&mut out);
        assert_eq!(out, text.as_bytes());
    }

    #[test]
    fn numbers_are_written_as_formats_write_them() {
        for number in [0, 7, 10, 404, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            write_decimal(number, &mut out);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }

    #[test]
    fn a_request_line_is_method_target_version() {
        for (line, fault) in [
            ("GET  / HTTP/1.1", PeerFault::RequestLine),
            ("GET / HTTP/1.1 ", PeerFault::RequestLine),
            ("G(T / HTTP/1.1", PeerFault::RequestLine),
            ("GET /\u{e9} HTTP/1.1", PeerFault::RequestLine),
            ("GET /", PeerFault::RequestLine),
            ("GET / HTTP/2.0", PeerFault::Version),
            ("GET / HTTP/1.10", PeerFault::RequestLine),
            ("GET / http/1.1", PeerFault::Version),
        ] {
            assert_eq!(request(&format!("{line}\r\n\r\n")), Err(fault), "{line}");
        }
        assert_eq!(
            request(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(8_000))),
            Err(PeerFault::TargetTooLong)
        );
    }

    #[test]
    fn a_field_is_a_name_a_colon_and_a_value() {
        for line in ["Host : h", "Host", ": h", "Ho st: h", "H\u{f6}st: h"] {
            assert_eq!(
                request(&format!("GET / HTTP/1.1\r\n{line}\r\n\r\n")),
                Err(PeerFault::FieldLine),
                "{line}"
            );
            assert_eq!(response(&format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n")), Err(PeerFault::FieldLine));
        }
        let many = "A: b\r\n".repeat(101);
        assert_eq!(request(&format!("GET / HTTP/1.1\r\n{many}\r\n")), Err(PeerFault::TooManyFields));
    }

    #[test]
    fn a_status_has_three_digits_and_is_at_least_100() {
        for line in ["HTTP/1.1 20 OK", "HTTP/1.1 099 x", "HTTP/1.1 2000 OK", "HTTP/1.1 OK", "SSH-2.0-x"] {
            assert!(response(&format!("{line}\r\n\r\n")).is_err(), "{line}");
        }
        assert_eq!(response("HTTP/1.1 200\r\n\r\n").unwrap().status, 200);
        assert_eq!(response("HTTP/1.1 999 \r\n\r\n").unwrap().status, 999);
    }
}
