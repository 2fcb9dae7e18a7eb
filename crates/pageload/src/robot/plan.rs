//! What a robot is to fetch and how: a plan in, checked, and the bytes of every request out.
//!
//! Not a scenario: an engine makes a plan from one.

use std::error::Error;
use std::fmt;
use std::num::{NonZeroU8, NonZeroU16};

use wire::{Bytes, Duration};

use super::parts::{FirstBytes, Parts, Portion};
use super::pipelining::Pipelining;
use http1::content::Coding;
use http1::message::field::is_token;
use http1::message::{FieldError, Fields, Limits, Method, RequestHead, Validator, Version};

/// A page to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The name of the server, for the `Host` field.
    pub host: String,
    /// What to fetch, in order; at least one object.
    pub objects: Vec<PlannedObject>,
    /// The size that every request is padded to, head and all; `None` for as small as it comes. The papers use
    /// 256 bytes (`papers/heidemann-model#workloads`).
    pub request_size: Option<Bytes>,
    /// How connections are used.
    pub shape: Shape,
    /// When a request may leave.
    pub release: Release,
    /// Where the page begins: the objects before this one are a page before it, and all of them arrive first.
    /// Default 0: there is none.
    pub begins_at: usize,
    /// How often one object is asked for when nothing of an answer came, if that is safe. Of the requests that a
    /// connection leaves behind only the first counts as tried: the server never came to the others. Default 3.
    pub tries: NonZeroU8,
    /// For the whole page; what has not arrived then has failed. Default 10 minutes.
    pub deadline: Duration,
    /// How long a server may take to close a connection that it said it would close. Default 2 s.
    pub linger: Duration,
    /// How much a server may send.
    pub limits: Limits,
    /// The codings that every request says it takes, in this order; none is not said. Default none. The document is
    /// decoded, to see what it names; nothing else is looked into.
    pub accepted: Vec<Coding>,
    /// What becomes of objects that the page's first object names.
    pub embedded: Embedded,
    /// The first bytes of each object, if somebody wants to know when they come, or wants them before the rest.
    pub first_bytes: Option<FirstBytes>,
}

/// What becomes of objects that the page's first object names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Embedded {
    /// The plan has all there is to fetch; nobody looks at the document.
    #[default]
    Planned,
    /// The document is read while it arrives, and what it embeds from the same host is fetched, each path once.
    Discovered {
        /// How many objects are fetched at most, the plan's own included.
        most: usize,
    },
}

impl Embedded {
    /// [`Embedded::Discovered`] with 10,000 objects: more than any page has.
    pub const DISCOVERED: Self = Self::Discovered { most: 10_000 };
}

/// One object of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedObject {
    /// How it is asked for. What is not safe ([`Method::is_safe`]) is asked for once, whatever happens.
    pub method: Method,
    /// Its path, query included: visible ASCII that begins with `/`.
    pub path: String,
    /// The size its body must have, where that is known; another size is a failure.
    pub expected: Option<Bytes>,
    /// What the client kept of it, if it is to be sent only if it has changed; an answer that it has not (304) is
    /// then as good as the object.
    pub validator: Option<Validator>,
    /// How much of the body of the page's first object names this one; `None`: all of it. With
    /// [`Release::AsNamed`] it is asked for as soon as so much is there.
    pub named_at: Option<Bytes>,
}

/// How connections are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// HTTP/1.0: a connection for every request, and at most so many open at once.
    Http10 {
        /// At least 1; the W3C's robot had 4 (`papers/w3c`).
        parallel: NonZeroU16,
    },
    /// HTTP/1.0 with `Connection: Keep-Alive`: one connection, one request at a time.
    Http10KeepAlive,
    /// HTTP/1.1: one connection, persistent, one request at a time.
    Http11,
    /// HTTP/1.1: several connections, each persistent, one request at a time on each, as browsers do.
    Http11Parallel {
        /// At least 1.
        parallel: NonZeroU16,
    },
    /// HTTP/1.1: one connection, and requests that do not wait for answers (RFC 9112, section 9.3.2).
    Http11Pipelined(Pipelining),
    /// HTTP/1.1, carried by DHTTP: what this robot takes for a connection is one exchange
    /// ([`crate::visitor`]), and none waits for another.
    Dhttp,
}

/// When a request may leave (`papers/heidemann-model#section-iii-b`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// As soon as a connection has room for it.
    #[default]
    Independent,
    /// When the first object of the page has arrived: it names the others.
    AfterFirst,
    /// As soon as so much of the first object of the page has arrived that it names this one
    /// ([`PlannedObject::named_at`]).
    AsNamed,
    /// When the object before it has arrived.
    Dependent,
}

impl PlannedObject {
    /// An object to GET.
    pub fn get(path: &str, expected: Option<Bytes>) -> Self {
        Self { method: Method::Get, path: path.to_owned(), expected, validator: None, named_at: None }
    }
}

impl Plan {
    /// A plan with every other value at its default.
    pub fn new(host: &str, objects: Vec<PlannedObject>, shape: Shape) -> Self {
        Self {
            host: host.to_owned(),
            objects,
            request_size: None,
            shape,
            release: Release::default(),
            begins_at: 0,
            tries: const { NonZeroU8::new(3).unwrap() },
            deadline: Duration::from_secs(600),
            linger: Duration::from_secs(2),
            limits: Limits::default(),
            accepted: Vec::new(),
            embedded: Embedded::default(),
            first_bytes: None,
        }
    }

    /// The request for this much of an object, once the plan is being carried out: as long as the others, or longer
    /// if it must be.
    pub(super) fn later_request(&self, object: &PlannedObject, portion: &Portion) -> Vec<u8> {
        let request = self.request(object, portion).or_else(|_| self.encode(object, portion, 0));
        request.expect(
            "the host stands in other requests, and so do a planned validator and a path that was found",
        )
    }

    /// The bytes of each object's request, in order.
    pub(super) fn requests(&self, parts: &Parts) -> Result<Vec<Vec<u8>>, PlanError> {
        if self.objects.is_empty() {
            return Err(PlanError::NoObjects);
        }
        let request = |(index, object)| self.request(object, &parts.portion(index));
        self.objects.iter().enumerate().map(request).collect()
    }

    fn request(&self, object: &PlannedObject, portion: &Portion) -> Result<Vec<u8>, PlanError> {
        let path = &object.path;
        if !is_token(object.method.name().as_bytes()) {
            return Err(PlanError::Method(object.method.name().to_owned()));
        }
        if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(PlanError::Path(path.clone()));
        }
        let least = self.encode(object, portion, 0)?;
        let Some(asked) = self.request_size else { return Ok(least) };
        match usize::try_from(asked.get()) {
            Ok(size) if size < least.len() => {
                Err(PlanError::RequestTooSmall { path: path.clone(), asked, least: least.len() })
            }
            Ok(size) if size <= LARGEST_REQUEST => self.encode(object, portion, size - least.len()),
            Ok(_) | Err(_) => Err(PlanError::RequestTooLarge { asked }),
        }
    }

    fn encode(
        &self,
        object: &PlannedObject,
        portion: &Portion,
        padding: usize,
    ) -> Result<Vec<u8>, PlanError> {
        let mut fields = Fields::new();
        let host = fields.push("Host", &self.host);
        host.map_err(|_: FieldError| PlanError::Host(self.host.clone()))?;
        let validator = object.validator.as_ref();
        // Of the rest nobody asks whether it has changed: it is sent if it has not.
        let is_rest = matches!(portion, Portion::Rest { from: _, condition: _ });
        if let Some(validator) = validator.filter(|_| !is_rest) {
            let condition = validator.condition(&mut fields);
            condition.map_err(|_: FieldError| PlanError::Validator(validator.clone()))?;
        }
        portion.demand(&mut fields);
        if !self.accepted.is_empty() {
            let names: Vec<_> = self.accepted.iter().map(|coding| coding.name()).collect();
            fields.push_checked(b"Accept-Encoding", names.join(", ").as_bytes());
        }
        // Dots may stand in a product's name, and so any number of them makes a request as long as is wanted.
        fields.push_checked(b"User-Agent", format!("roundtrip{}", ".".repeat(padding)).as_bytes());
        match self.shape {
            Shape::Http10KeepAlive => fields.push_checked(b"Connection", b"Keep-Alive"),
            Shape::Http10 { parallel: _ }
            | Shape::Http11
            | Shape::Http11Parallel { parallel: _ }
            | Shape::Http11Pipelined(_)
            | Shape::Dhttp => {}
        }
        let version = self.shape.version();
        let (method, target) = (object.method.clone(), object.path.clone());
        let mut out = Vec::new();
        RequestHead { method, target, version, fields }.encode(&mut out);
        Ok(out)
    }
}

/// Exchanges that DHTTP may have under way at once: as many as [`dhttp_proto::ClientConfig`] allows.
const EXCHANGES: usize = 1_024;

/// Nothing needs larger ones, and few servers would take them.
const LARGEST_REQUEST: usize = 65_536;

impl Shape {
    /// What the requests say.
    pub const fn version(self) -> Version {
        match self {
            Self::Http10 { parallel: _ } | Self::Http10KeepAlive => Version::Http10,
            Self::Http11 | Self::Http11Parallel { parallel: _ } | Self::Http11Pipelined(_) | Self::Dhttp => {
                Version::Http11
            }
        }
    }

    /// Connections open at once.
    pub(super) fn connections(self) -> usize {
        match self {
            Self::Http10 { parallel } | Self::Http11Parallel { parallel } => usize::from(parallel.get()),
            Self::Http10KeepAlive | Self::Http11 | Self::Http11Pipelined(_) => 1,
            Self::Dhttp => EXCHANGES,
        }
    }

    /// Requests a connection may carry in its life.
    pub(super) const fn requests(self) -> usize {
        match self {
            Self::Http10 { parallel: _ } | Self::Dhttp => 1,
            Self::Http10KeepAlive
            | Self::Http11
            | Self::Http11Parallel { parallel: _ }
            | Self::Http11Pipelined(_) => usize::MAX,
        }
    }

    /// Requests a connection may have sent without an answer.
    pub(super) const fn outstanding(self) -> usize {
        match self {
            Self::Http10 { parallel: _ }
            | Self::Http10KeepAlive
            | Self::Http11
            | Self::Http11Parallel { parallel: _ }
            | Self::Dhttp => 1,
            Self::Http11Pipelined(_) => usize::MAX,
        }
    }

    /// How requests share writes, if they do.
    pub(super) const fn pipelining(self) -> Option<Pipelining> {
        match self {
            Self::Http10 { parallel: _ }
            | Self::Http10KeepAlive
            | Self::Http11
            | Self::Http11Parallel { parallel: _ }
            | Self::Dhttp => None,
            Self::Http11Pipelined(pipelining) => Some(pipelining),
        }
    }
}

/// A plan that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// Nothing to fetch.
    NoObjects,
    /// A method that is not a token.
    Method(String),
    /// A path that cannot stand in a request line.
    Path(String),
    /// A host that cannot stand in a field.
    Host(String),
    /// A validator that cannot stand in a field.
    Validator(Validator),
    /// A request that is longer than it should be, even without padding.
    RequestTooSmall {
        /// What it asks for.
        path: String,
        /// The size that was wanted.
        asked: Bytes,
        /// The size that it has without padding.
        least: usize,
    },
    /// A request larger than 65,536 bytes.
    RequestTooLarge {
        /// The size that was wanted.
        asked: Bytes,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoObjects => f.write_str("the page has no objects; give at least one"),
            Self::Method(method) => write!(f, "{method:?} is not a method; use a word such as GET"),
            Self::Path(path) => {
                write!(f, "{path:?} is not a path; begin with / and encode all but visible ASCII")
            }
            Self::Host(host) => write!(f, "{host:?} is not a host name; use visible ASCII"),
            Self::Validator(Validator::EntityTag(text) | Validator::LastModified(text)) => {
                write!(f, "{text:?} is not a validator; use it as the server sent it")
            }
            Self::RequestTooSmall { path, asked, least } => {
                write!(f, "a request for {path} takes {least} B and does not fit in {asked}; allow {least} B")
            }
            Self::RequestTooLarge { asked } => {
                write!(f, "a request of {asked} is too large; use at most {LARGEST_REQUEST} B")
            }
        }
    }
}

impl Error for PlanError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(path: &str, shape: Shape) -> Plan {
        Plan::new("h", vec![PlannedObject::get(path, None)], shape)
    }

    fn whole() -> Parts {
        Parts::new(None, 0, 1)
    }

    #[test]
    fn a_request_is_padded_to_the_byte() {
        for size in [60, 61, 62, 256, 65_536] {
            let plan = Plan { request_size: Some(Bytes::new(size)), ..plan("/0", Shape::Http11) };
            assert_eq!(plan.requests(&whole()).unwrap()[0].len() as u64, size);
        }
        let small = Plan { request_size: Some(Bytes::new(20)), ..plan("/0", Shape::Http11) };
        assert_eq!(
            small.requests(&whole()).unwrap_err().to_string(),
            "a request for /0 takes 51 B and does not fit in 20 B; allow 51 B"
        );
        let large = Plan { request_size: Some(Bytes::new(u64::MAX)), ..plan("/0", Shape::Http11) };
        assert!(matches!(large.requests(&whole()), Err(PlanError::RequestTooLarge { asked: _ })));
    }

    #[test]
    fn a_plan_that_would_split_a_request_is_refused() {
        for path in ["", "0", "/a b", "/\r\nX: y", "/\u{e9}"] {
            assert_eq!(plan(path, Shape::Http11).requests(&whole()), Err(PlanError::Path(path.to_owned())));
        }
        let mut method = plan("/", Shape::Http11);
        method.objects[0].method = Method::Other("GET /x".to_owned());
        assert!(matches!(method.requests(&whole()), Err(PlanError::Method(_))));
        let host = Plan { host: "h\r\nX: y".to_owned(), ..plan("/", Shape::Http11) };
        assert!(matches!(host.requests(&whole()), Err(PlanError::Host(_))));
        assert_eq!(Plan::new("h", Vec::new(), Shape::Http11).requests(&whole()), Err(PlanError::NoObjects));
    }

    #[test]
    fn a_shape_is_said_in_the_request() {
        let text =
            |shape| String::from_utf8(plan("/0", shape).requests(&whole()).unwrap().remove(0)).unwrap();
        let parallel = const { NonZeroU16::new(4).unwrap() };
        assert_eq!(
            text(Shape::Http10 { parallel }),
            "GET /0 HTTP/1.0\r\nHost: h\r\nUser-Agent: roundtrip\r\n\r\n"
        );
        assert!(text(Shape::Http10KeepAlive).contains("HTTP/1.0\r\n"));
        assert!(text(Shape::Http10KeepAlive).ends_with("Connection: Keep-Alive\r\n\r\n"));
        assert!(text(Shape::Http11).contains("HTTP/1.1\r\n"));
    }
}
