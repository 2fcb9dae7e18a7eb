//! A list of requests: method, target, header fields and body of each, checked so that every protocol can send it.
//!
//! Input is a URL with flags, a file of requests ([`mod@file`]) or the lines of an access log ([`logged`]). Output is the
//! list whose indices [`crate::job::Job`] has. Not the schedule, and not the server: a run loads one.

pub mod file;
pub mod logged;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderName, HeaderValue};
use http1::message::{Fields, Method};
use quantity::names::Quoted;

/// Maximum number of requests of a list.
pub const MAX_REQUESTS: usize = 100_000;
/// Maximum number of header fields of a request.
pub const MAX_FIELDS: usize = 100;
/// Maximum length of a body.
pub const MAX_BODY_BYTES: u64 = 16 << 20;
/// Maximum length of all bodies together.
pub const MAX_BODIES_BYTES: u64 = 256 << 20;
/// Maximum length of a target or a field: most servers refuse more.
pub const MAX_LINE_BYTES: usize = 8 << 10;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) host: Option<String>,
    pub(crate) fields: Fields,
    count: usize,
    pub(crate) body: Bytes,
    /// The error status in the access log, if any: then the same status is a success.
    pub logged_error: Option<u16>,
}

/// Reason why a request cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The method is invalid.
    #[error("{} is not a method; give one such as GET, HEAD, POST, PUT or DELETE", Quoted(.0))]
    Method(String),
    /// The path is invalid.
    #[error(
        "{} is not a path of visible ASCII that begins with a slash; percent-encode other characters",
        Quoted(.0)
    )]
    Target(String),
    /// The field is not `Name: value`, or has invalid characters.
    #[error("{} is not a header field; write `Name: value`", Quoted(.0))]
    Field(String),
    /// The field is set by the generator itself.
    #[error("the field {0} is set by the load itself; remove it")]
    Reserved(String),
    /// More fields than the maximum.
    #[error("a request has no more than {MAX_FIELDS} header fields; remove some")]
    TooManyFields,
    /// The value of `Host` is not a host.
    #[error("Host: {} is not a host; give a name, with a port if need be", Quoted(.0))]
    Host(String),
    /// A body of this many bytes is too long.
    #[error("a body of {0} bytes is too long; the maximum is {MAX_BODY_BYTES}")]
    Body(u64),
}

/// Fields that frame a message or belong to a connection: protocols set them, or forbid them (RFC 9113, section 8.2.2).
const RESERVED: [&str; 9] = [
    "Connection",
    "Content-Length",
    "Expect",
    "Keep-Alive",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
];

impl Request {
    /// A request without header fields and body; `target` is a path with its query.
    ///
    /// # Errors
    /// [`RequestError`] if the method or the path is invalid.
    pub fn new(method: &str, target: &str) -> Result<Self, RequestError> {
        let is_method = !method.is_empty()
            && method.len() <= 32
            && method.bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_'))
            && method != "CONNECT"
            && method != "TRACE";
        if !is_method {
            return Err(RequestError::Method(method.to_owned()));
        }
        let is_target = target.starts_with('/')
            && target.len() <= MAX_LINE_BYTES
            && target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
            // Every protocol must send the same path.
            && target.parse::<PathAndQuery>().is_ok_and(|parsed| parsed.as_str() == target);
        if !is_target {
            return Err(RequestError::Target(target.to_owned()));
        }
        let method = Method::from_name(method);
        let (fields, body) = (Fields::new(), Bytes::new());
        Ok(Self { method, target: target.to_owned(), host: None, fields, count: 0, body, logged_error: None })
    }

    /// Adds a header field, `Name: value`; `Host` replaces the URL's.
    ///
    /// # Errors
    /// [`RequestError`] if it is invalid, or one that the generator sets.
    pub fn add_field(&mut self, line: &str) -> Result<(), RequestError> {
        let bad = || RequestError::Field(line.to_owned());
        let (name, value) = line.split_once(':').filter(|_| line.len() <= MAX_LINE_BYTES).ok_or_else(bad)?;
        let value = value.trim_matches([' ', '\t']);
        let is_valid = HeaderName::from_bytes(name.as_bytes()).is_ok()
            && HeaderValue::from_bytes(value.as_bytes()).is_ok();
        if !is_valid {
            return Err(bad());
        }
        if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
            return Err(RequestError::Reserved(name.to_owned()));
        }
        if name.eq_ignore_ascii_case("Host") {
            let is_host = value.parse::<Authority>().is_ok_and(|parsed| !parsed.as_str().contains('@'));
            if !is_host {
                return Err(RequestError::Host(value.to_owned()));
            }
            self.host = Some(value.to_owned());
            return Ok(());
        }
        self.count += 1;
        if self.count > MAX_FIELDS {
            return Err(RequestError::TooManyFields);
        }
        self.fields.push(name, value).map_err(|_| bad())
    }

    /// Gives it a body.
    ///
    /// # Errors
    /// [`RequestError::Body`] if it is too long.
    pub fn set_body(&mut self, body: Bytes) -> Result<(), RequestError> {
        let bytes = body.len() as u64;
        if bytes > MAX_BODY_BYTES {
            return Err(RequestError::Body(bytes));
        }
        self.body = body;
        Ok(())
    }

    /// The method and the path.
    pub fn name(&self) -> String {
        format!("{} {}", self.method.name(), self.target)
    }

    /// The path with its query.
    pub fn target(&self) -> String {
        self.target.clone()
    }

    /// The length of the body.
    pub fn body_bytes(&self) -> u64 {
        self.body.len() as u64
    }

    /// Whether it is safe (RFC 9110, section 9.2.1).
    pub const fn is_safe(&self) -> bool {
        self.method.is_safe()
    }

    /// Whether it may be retried when a kept-alive connection turns out to be closed (RFC 9110, section 9.2.2).
    pub(crate) fn is_idempotent(&self) -> bool {
        self.is_safe() || matches!(self.method.name(), "PUT" | "DELETE")
    }

    /// The value of `Content-Length`, if it has one: a body, or a method that announces one (RFC 9110, section 8.6).
    pub(crate) fn content_length(&self) -> Option<usize> {
        let announces = matches!(self.method.name(), "POST" | "PUT" | "PATCH");
        (!self.body.is_empty() || announces).then_some(self.body.len())
    }
}

/// Statuses that count as a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses(Vec<(u16, u16)>);

impl Default for Statuses {
    /// Every status below 400.
    fn default() -> Self {
        Self(vec![(100, 399)])
    }
}

impl Statuses {
    /// Parses a list such as `200,204,300-399`; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let status = |text: &str| text.trim().parse().ok().filter(|status| (100..=999).contains(status));
        let range = |part: &str| match part.split_once('-') {
            Some((first, last)) => status(first).zip(status(last)).filter(|(first, last)| first <= last),
            None => status(part).map(|status| (status, status)),
        };
        text.split(',').map(range).collect::<Option<Vec<_>>>().map(Self)
    }

    /// Whether this one is among them.
    pub fn has(&self, status: u16) -> bool {
        let Self(ranges) = self;
        ranges.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_some_protocol_could_not_send_is_refused() {
        for method in ["", "get", "GET ", "G\u{e9}T", "CONNECT"] {
            assert_eq!(Request::new(method, "/"), Err(RequestError::Method(method.to_owned())));
        }
        for target in ["", "a", "/a b", "/\u{e9}", "/a#b", "http://h/", "/a\r\nX: y"] {
            assert_eq!(Request::new("GET", target), Err(RequestError::Target(target.to_owned())));
        }
        let mut request = Request::new("POST", "/a?b=c&d=%20").unwrap();
        for field in ["a", ": b", "a b: c", "a: b\r\nc: d", "\u{e9}: a"] {
            assert_eq!(request.add_field(field), Err(RequestError::Field(field.to_owned())), "{field}");
        }
        assert_eq!(
            request.add_field("content-length: 3"),
            Err(RequestError::Reserved("content-length".to_owned()))
        );
        assert!(request.add_field("Host: a b").is_err() && request.add_field("Host: u@h").is_err());
        assert_eq!(request.add_field("Host: example.com:81"), Ok(()));
        assert_eq!(request.add_field("X-Empty:"), Ok(()));
        assert_eq!((request.content_length(), request.is_idempotent()), (Some(0), false));
    }

    #[test]
    fn statuses_are_single_ones_and_ranges() {
        let statuses = Statuses::parse("200, 204,300-399").unwrap();
        assert!([200, 204, 300, 399].into_iter().all(|status| statuses.has(status)));
        assert!(![201, 299, 400].into_iter().any(|status| statuses.has(status)));
        for bad in ["", "20", "200-", "404-400", "2xx", "1000"] {
            assert_eq!(Statuses::parse(bad), None, "{bad}");
        }
        assert!(Statuses::default().has(302) && !Statuses::default().has(400));
    }
}
