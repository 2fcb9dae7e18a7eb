//! Plan of a page: what is to be fetched, by which connections; and the header section of every request.
//!
//! An engine derives a plan from a scenario.

use std::num::{NonZeroU8, NonZeroU16};
use std::sync::Arc;

use http3::Unavailable;
use page::{Dependency, Host, Priority};
use wire::{Bytes, Duration};

use crate::browser::Browser;
use crate::pipelining::Pipelining;
use crate::policy::parts::{FirstBytes, Portion, ReceivedParts};
use http1::content::Coding;
use http1::message::field::is_token;
use http1::message::{FieldError, Fields, Limits, Method, RequestHead, Validator, Version};

/// A page to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Names of the servers, for the `Host` field; at least one.
    pub origins: Vec<String>,
    /// Objects to fetch, in order; at least one.
    pub objects: Vec<PlannedObject>,
    /// Size to which every request is padded, with its headers; `None` for no padding. The papers use 256
    /// bytes (`papers/heidemann-model#workloads`).
    pub request_size: Option<Bytes>,
    /// Connection policy.
    pub shape: Shape,
    /// Condition under which a request may leave.
    pub release: Release,
    /// The browser whose limits hold for a graph ([`Release::Graph`]). Default Chromium.
    pub browser: Browser,
    /// Time in which the name of each origin is looked up, before the first request to it; those beyond the end take none. Default
    /// empty.
    pub lookups: Vec<Duration>,
    /// Time of the client's threads for each request that it sends and each response that it handles, one after another. Default
    /// 0.
    pub client_time: Duration,
    /// Hints for the origins of a graph ([`Release::Graph`]). Default none.
    pub hints: Vec<Hint>,
    /// Index of the page's first object: objects before it are preceding pages, and all of them arrive
    /// first. Default 0: no preceding page.
    pub begins_at: usize,
    /// Number of pages before `begins_at`, of equally many objects; 0 counts as 1. Default 1.
    pub pages_before: usize,
    /// Time between the end of a page and the first request of the next. Default 0.
    pub pause: Duration,
    /// Time without requests after which the client closes a connection; `None`, the default: it does not.
    pub idle: Option<Duration>,
    /// Whether body bytes that arrive together with the end of their headers are ignored: a defect of 1996
    /// (`papers/p-http#section-2-5`). Default false.
    pub ignores_body_with_headers: bool,
    /// Maximum number of tries of a safe request without any response. If a connection ends before several
    /// responses, only the first request counts as tried: the server never processed the others. Default 3.
    pub tries: NonZeroU8,
    /// Deadline of the whole page; objects that have not arrived then have failed. Default 10 minutes.
    pub deadline: Duration,
    /// Maximum time for a server to close a connection that it announced to close. Default 2 s.
    pub linger: Duration,
    /// Limits of responses.
    pub limits: Limits,
    /// Content codings in every request's `Accept-Encoding`, in this order; omitted if empty. Default none.
    /// The document is decoded, to discover its references; no other object is.
    pub accepted: Vec<Coding>,
    /// Treatment of objects that the page's first object references.
    pub embedded: EmbeddedObjects,
    /// First bytes of each object, if their arrival is to be reported, or they are to be requested before the
    /// rest.
    pub first_bytes: Option<FirstBytes>,
}

/// A hint for an origin, by which a client prepares for it before the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Index of the origin.
    pub origin: usize,
    /// The moment at which it is known.
    pub after: Dependency,
    /// Whether it opens a connection; otherwise the name is looked up.
    pub opens: bool,
}

impl Hint {
    /// Hints for these hosts, which are the plan's origins.
    pub fn of(hosts: &[Host]) -> Vec<Self> {
        let of_host = |(origin, host): (usize, &Host)| -> Vec<Self> {
            host.hints.all().map(|(after, opens)| Self { origin, after, opens }).collect()
        };
        hosts.iter().enumerate().flat_map(of_host).collect()
    }
}

/// Treatment of objects that the page's first object references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EmbeddedObjects {
    /// The plan is complete; the document is not parsed.
    #[default]
    Planned,
    /// The document is parsed while it arrives, and the objects that it embeds from the same host are
    /// fetched, each path once.
    Discovered {
        /// Maximum number of objects fetched, including the plan's own.
        max: usize,
    },
    /// The same with references known in advance: the document is not parsed once more in every run.
    Listed {
        /// References of the document's body as it is sent, in order.
        references: Arc<[Reference]>,
        /// Maximum number of objects fetched, including the plan's own.
        max: usize,
    },
}

/// A reference in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Path with query.
    pub path: String,
    /// Bytes of the body after which a client discovers it.
    pub named_at: Bytes,
}

impl EmbeddedObjects {
    /// [`EmbeddedObjects::Discovered`] with at most 10,000 objects, above any real page.
    pub const DISCOVERED: Self = Self::Discovered { max: 10_000 };
}

/// One object of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedObject {
    /// Method. An unsafe request ([`Method::is_safe`]) is sent once, and never retried.
    pub method: Method,
    /// Index of its server in the plan's origins.
    pub origin: usize,
    /// Priority among the page's requests; the page's first object comes before all others.
    pub priority: Priority,
    /// Whether it is useful in parts, so that it may share a connection (RFC 9218, section 4.2). Default true.
    pub is_incremental: bool,
    /// Whether the parser reaches the document's body only after it ([`page::Page::before_body`]). Browsers hold back delayable
    /// objects until then. Default false.
    pub is_before_body: bool,
    /// Whether it may be held back: images, and whatever has a low priority. Default false.
    pub is_delayable: bool,
    /// Whether it leaves before them, while no more than one such request is in flight
    /// ([`page::Page::of_medium_priority`]). Default false.
    pub is_boosted: bool,
    /// Size of its request with headers, where known; the plan's holds for others.
    pub request_size: Option<Bytes>,
    /// Size of its request's body. Default 0.
    pub request_body: Bytes,
    /// Path with query: visible ASCII that begins with `/`.
    pub path: String,
    /// Required size of its body, where known; another size is a failure.
    pub expected: Option<Bytes>,
    /// Validator of the client's cached copy, for a conditional request; a 304 response then counts as the
    /// object.
    pub validator: Option<Validator>,
    /// Bytes of the body of the page's first object after which this object is known; `None`: all of it. With
    /// [`Release::AsNamed`] it is requested as soon as they have arrived.
    pub named_at: Option<Bytes>,
    /// Dependencies on objects of the same page, numbered from its first; they count with [`Release::Graph`].
    pub after: Vec<Dependency>,
    /// Its request, if [`Plan::prepare`] has made it.
    pub head: Option<RequestHead>,
}

/// Connection policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// HTTP/1.0: a connection for every request, with a maximum number open concurrently.
    Http10 {
        /// Maximum number, at least 1; the W3C's robot had 4 (`papers/w3c`).
        parallel: NonZeroU16,
    },
    /// HTTP/1.0 with `Connection: Keep-Alive`: one connection, one request at a time.
    Http10KeepAlive,
    /// HTTP/1.1: one connection, persistent, one request at a time.
    Http11,
    /// HTTP/1.1: several connections, each persistent, one request at a time on each, as browsers do.
    Http11Parallel {
        /// Number of connections, at least 1.
        parallel: NonZeroU16,
    },
    /// HTTP/1.1: one connection, and requests that do not wait for responses (RFC 9112, section 9.3.2).
    Http11Pipelined(Pipelining),
    /// HTTP/2: one connection for each group of origins, with HTTP/1.1 over six for those without an offer.
    Http2,
    /// HTTP/3: the same over QUIC, with HTTP/2 for origins without an offer.
    Http3(Discovery),
    /// HTTP/1.1, carried by DHTTP ([`crate::transport::dhttp`]): no exchange waits for another.
    Dhttp,
}

/// Source of a client's knowledge that an origin speaks HTTP/3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovery {
    /// It knows beforehand: from an earlier visit, or from an HTTPS record (RFC 9460).
    Known,
    /// From the field `Alt-Svc` of its first response over HTTP/2 (RFC 7838). A QUIC connection then opens beside the first,
    /// which serves requests until it is ready: Chromium, net/http/http_stream_factory_job_controller.cc.
    AltSvc,
}

/// Condition under which a request may leave (`papers/heidemann-model#section-iii-b`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// As soon as a connection has capacity for it.
    #[default]
    Independent,
    /// When the first object of the page has arrived: it references the others.
    AfterFirst,
    /// As soon as the part of the page's first object has arrived that references this one
    /// ([`PlannedObject::named_at`]).
    AsNamed,
    /// When the previous object has arrived.
    Dependent,
    /// When its dependencies are met ([`PlannedObject::after`]).
    Graph,
}

impl PlannedObject {
    /// An object requested with GET.
    pub fn get(path: &str, expected: Option<Bytes>) -> Self {
        let (method, path) = (Method::Get, path.to_owned());
        let priority = Priority::Medium;
        Self {
            method,
            origin: 0,
            priority,
            is_incremental: true,
            is_before_body: false,
            is_delayable: false,
            is_boosted: false,
            request_size: None,
            request_body: Bytes::ZERO,
            path,
            expected,
            validator: None,
            named_at: None,
            after: Vec::new(),
            head: None,
        }
    }
}

impl Plan {
    /// A plan with all other values at their defaults.
    pub fn new(host: &str, objects: Vec<PlannedObject>, shape: Shape) -> Self {
        Self {
            origins: vec![host.to_owned()],
            objects,
            request_size: None,
            shape,
            release: Release::default(),
            browser: Browser::CHROMIUM,
            lookups: Vec::new(),
            client_time: Duration::ZERO,
            hints: Vec::new(),
            begins_at: 0,
            pages_before: 1,
            pause: Duration::ZERO,
            idle: None,
            ignores_body_with_headers: false,
            tries: const { NonZeroU8::new(3).unwrap() },
            deadline: Duration::from_secs(600),
            linger: Duration::from_secs(2),
            limits: Limits::default(),
            accepted: Vec::new(),
            embedded: EmbeddedObjects::default(),
            first_bytes: None,
        }
    }

    /// The first object of the page that this one belongs to.
    pub(crate) fn first_object_of_page(&self, object: usize) -> usize {
        if object >= self.begins_at {
            return self.begins_at;
        }
        let length = (self.begins_at / self.pages_before.max(1)).max(1);
        object - object % length
    }

    /// Settings of a transport over HTTP/1.
    pub(crate) fn http1(&self) -> Http1Config {
        Http1Config {
            shape: self.shape,
            connections: self.shape.connections(&self.browser),
            browser: match self.release {
                Release::Graph => Some(self.browser),
                Release::Independent | Release::AfterFirst | Release::AsNamed | Release::Dependent => None,
            },
            limits: self.limits,
            tries: self.tries,
            linger: self.linger,
            ignores_body_with_headers: self.ignores_body_with_headers,
        }
    }

    /// The request for a part of an object, after the page has begun: as long as the others, or longer if
    /// necessary.
    pub(crate) fn later_request(&self, object: &PlannedObject, portion: &Portion) -> RequestHead {
        let request = self.request(object, portion).or_else(|_| self.head(object, portion, 0));
        request
            .expect("the host and a planned validator are in other requests, and a discovered path is valid")
    }

    /// Makes the requests, once for all runs of this plan, which does not change any more.
    ///
    /// # Errors
    /// An invalid plan.
    pub fn prepare(&mut self) -> Result<(), PlanError> {
        for index in 0..self.objects.len() {
            self.objects[index].head = Some(self.request(&self.objects[index], &Portion::Whole)?);
        }
        Ok(())
    }

    /// Request of each object, in order.
    pub(crate) fn requests(&self, parts: &ReceivedParts) -> Result<Vec<RequestHead>, PlanError> {
        if self.objects.is_empty() {
            return Err(PlanError::NoObjects);
        }
        let request = |(index, object)| self.request(object, &parts.portion(index));
        self.objects.iter().enumerate().map(request).collect()
    }

    pub(crate) fn request(
        &self,
        object: &PlannedObject,
        portion: &Portion,
    ) -> Result<RequestHead, PlanError> {
        if let (Some(head), Portion::Whole) = (&object.head, portion) {
            return Ok(head.clone());
        }
        let path = &object.path;
        if !is_token(object.method.name().as_bytes()) {
            return Err(PlanError::Method(object.method.name().to_owned()));
        }
        if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(PlanError::Path(path.clone()));
        }
        let head = self.head(object, portion, 0)?;
        let Some(requested) = object.request_size.or(self.request_size) else { return Ok(head) };
        let mut encoded = Vec::new();
        head.encode(&mut encoded);
        let min = encoded.len();
        // A recorded request may have been shorter than any of ours.
        let requested = match object.request_size {
            Some(size) => size.max(Bytes::new(min as u64)).min(Bytes::new(MAX_REQUEST_BYTES as u64)),
            None => requested,
        };
        match usize::try_from(requested.get()) {
            Ok(size) if size < min => Err(PlanError::RequestTooSmall { path: path.clone(), requested, min }),
            Ok(size) if size <= MAX_REQUEST_BYTES => self.head(object, portion, size - min),
            Ok(_) | Err(_) => Err(PlanError::RequestTooLarge { requested }),
        }
    }

    fn head(
        &self,
        object: &PlannedObject,
        portion: &Portion,
        padding: usize,
    ) -> Result<RequestHead, PlanError> {
        let host = self.origins.get(object.origin).ok_or(PlanError::Origin(object.origin))?;
        let mut fields = Fields::new();
        let field = fields.push("Host", host);
        field.map_err(|_: FieldError| PlanError::Host(host.clone()))?;
        let validator = object.validator.as_ref();
        // The request for a rest is not conditional on a change: the rest is sent if the object is unchanged.
        let is_rest = matches!(portion, Portion::Rest { from: _, condition: _ });
        if let Some(validator) = validator.filter(|_| !is_rest) {
            let condition = validator.condition(&mut fields);
            condition.map_err(|_: FieldError| PlanError::Validator(validator.clone()))?;
        }
        portion.add_range(&mut fields);
        if !self.accepted.is_empty() {
            let names: Vec<_> = self.accepted.iter().map(|coding| coding.name()).collect();
            fields.push_checked(b"Accept-Encoding", names.join(", ").as_bytes());
        }
        if object.request_body > Bytes::ZERO {
            fields.push_checked(b"Content-Length", object.request_body.get().to_string().as_bytes());
        }
        // Dots are valid in a product's name, so any number of them pads a request to its size.
        let dots = if self.shape.is_multiplexed() { 0 } else { padding };
        fields.push_checked(b"User-Agent", format!("roundtrip{}", ".".repeat(dots)).as_bytes());
        if self.shape.is_multiplexed() {
            pad_with_crumbs(&mut fields, padding);
        }
        match self.shape {
            Shape::Http10KeepAlive => fields.push_checked(b"Connection", b"Keep-Alive"),
            Shape::Http10 { parallel: _ }
            | Shape::Http11
            | Shape::Http11Parallel { parallel: _ }
            | Shape::Http11Pipelined(_)
            | Shape::Http2
            | Shape::Http3(_)
            | Shape::Dhttp => {}
        }
        let version = self.shape.version();
        let (method, target) = (object.method.clone(), object.path.clone());
        Ok(RequestHead { method, target, version, fields })
    }
}

/// Pads a request of HTTP/2 by the crumbs of a cookie (RFC 9113, section 8.2.3): equal ones take a byte each in later
/// requests, as most of a browser's fields do. Less than a crumb is left out.
fn pad_with_crumbs(fields: &mut Fields, padding: usize) {
    const NAME: &[u8] = b"Cookie";
    // Colon, space and the line's end.
    const LINE: usize = NAME.len() + 4;
    for crumb in 0..padding / CRUMB_BYTES {
        let name = format!("c{crumb}=");
        let value = format!("{name}{}", "x".repeat(CRUMB_BYTES - LINE - name.len()));
        fields.push_checked(NAME, value.as_bytes());
    }
    if let Some(rest) = (padding % CRUMB_BYTES).checked_sub(LINE).filter(|rest| *rest > 0) {
        fields.push_checked(NAME, "x".repeat(rest).as_bytes());
    }
}

/// Bytes of a crumb's line: a field of a browser's request has about as many.
const CRUMB_BYTES: usize = 64;

/// Maximum number of concurrent exchanges under DHTTP, as in [`dhttp_proto::ClientConfig`].
const EXCHANGES: usize = 1_024;

/// Maximum size of a request; nothing needs larger ones, and few servers would accept them.
const MAX_REQUEST_BYTES: usize = 65_536;

impl Shape {
    /// HTTP version of the requests.
    pub const fn version(self) -> Version {
        match self {
            Self::Http10 { parallel: _ } | Self::Http10KeepAlive => Version::Http10,
            Self::Http11
            | Self::Http11Parallel { parallel: _ }
            | Self::Http11Pipelined(_)
            | Self::Http2
            | Self::Http3(_)
            | Self::Dhttp => Version::Http11,
        }
    }

    /// Whether requests and responses share connections: HTTP/2 and HTTP/3, whose fields are compressed.
    pub(crate) const fn is_multiplexed(self) -> bool {
        matches!(self, Self::Http2 | Self::Http3(_))
    }

    /// Maximum number of concurrent connections.
    pub(crate) fn connections(self, browser: &Browser) -> usize {
        match self {
            Self::Http10 { parallel } | Self::Http11Parallel { parallel } => usize::from(parallel.get()),
            Self::Http10KeepAlive | Self::Http11 | Self::Http11Pipelined(_) => 1,
            Self::Http2 | Self::Http3(_) => browser.connections_per_origin,
            Self::Dhttp => EXCHANGES,
        }
    }

    /// Maximum number of requests per connection.
    pub(crate) const fn requests(self) -> usize {
        match self {
            Self::Http10 { parallel: _ } | Self::Dhttp => 1,
            Self::Http10KeepAlive
            | Self::Http11
            | Self::Http11Parallel { parallel: _ }
            | Self::Http11Pipelined(_)
            | Self::Http2
            | Self::Http3(_) => usize::MAX,
        }
    }

    /// Maximum number of outstanding requests per connection.
    pub(crate) const fn outstanding(self) -> usize {
        match self {
            Self::Http10 { parallel: _ }
            | Self::Http10KeepAlive
            | Self::Http11
            | Self::Http11Parallel { parallel: _ }
            | Self::Http2
            | Self::Http3(_)
            | Self::Dhttp => 1,
            Self::Http11Pipelined(_) => usize::MAX,
        }
    }

    /// Policy by which requests share writes, if they do.
    pub(crate) const fn pipelining(self) -> Option<Pipelining> {
        match self {
            Self::Http10 { parallel: _ }
            | Self::Http10KeepAlive
            | Self::Http11
            | Self::Http11Parallel { parallel: _ }
            | Self::Http2
            | Self::Http3(_)
            | Self::Dhttp => None,
            Self::Http11Pipelined(pipelining) => Some(pipelining),
        }
    }
}

/// Reason why a plan is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No objects.
    #[error("the page has no objects; give at least one")]
    NoObjects,
    /// A method that is not a token.
    #[error("{0:?} is not a method; use a word such as GET")]
    Method(String),
    /// A path that is invalid in a request line.
    #[error("{0:?} is not a path; begin with / and encode all but visible ASCII")]
    Path(String),
    /// A host that is invalid in a field.
    #[error("{0:?} is not a host name; use visible ASCII")]
    Host(String),
    /// An object on an origin that the plan does not have.
    #[error("origin {0} is not in the plan; add it to the origins")]
    Origin(usize),
    /// A validator that is invalid in a field.
    #[error("{:?} is not a validator; use it as the server sent it", text(.0))]
    Validator(Validator),
    /// A request that exceeds its size even without padding.
    #[error("a request for {path} takes {min} B and does not fit in {requested}; allow {min} B")]
    RequestTooSmall {
        /// Path of the request.
        path: String,
        /// The requested size.
        requested: Bytes,
        /// Size without padding.
        min: usize,
    },
    /// A request larger than 65,536 bytes.
    #[error("a request of {requested} is too large; use at most {MAX_REQUEST_BYTES} B")]
    RequestTooLarge {
        /// The requested size.
        requested: Bytes,
    },
    /// HTTP/3 without a configuration of it, or where it cannot be.
    #[error("{}", no_http3(*.0))]
    Http3(Option<Unavailable>),
}

fn text(validator: &Validator) -> &str {
    let (Validator::EntityTag(text) | Validator::LastModified(text)) = validator;
    text
}

fn no_http3(reason: Option<Unavailable>) -> String {
    reason.map_or_else(
        || "HTTP/3 is not configured; give its settings".to_owned(),
        |reason| format!("{reason}; use HTTP/2"),
    )
}

/// Settings of the transport: those of the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Http1Config {
    /// Connection policy.
    pub(crate) shape: Shape,
    /// Maximum number of connections to an origin.
    pub(crate) connections: usize,
    /// The browser whose limits over all origins hold, if any.
    pub(crate) browser: Option<Browser>,
    /// Limits of responses.
    pub(crate) limits: Limits,
    /// Maximum number of tries of a safe request without any response.
    pub(crate) tries: NonZeroU8,
    /// Maximum time for a server to close a connection that it announced to close.
    pub(crate) linger: Duration,
    /// Whether body bytes that arrive together with the end of their headers are ignored.
    pub(crate) ignores_body_with_headers: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(path: &str, shape: Shape) -> Plan {
        Plan::new("h", vec![PlannedObject::get(path, None)], shape)
    }

    fn encoded(plan: &Plan) -> Vec<u8> {
        let mut request = Vec::new();
        plan.requests(&whole()).unwrap()[0].encode(&mut request);
        request
    }

    fn whole() -> ReceivedParts {
        ReceivedParts::new(None, 0, 1)
    }

    #[test]
    fn a_request_is_padded_to_the_byte() {
        for size in [60, 61, 62, 256, 65_536] {
            let plan = Plan { request_size: Some(Bytes::new(size)), ..plan("/0", Shape::Http11) };
            assert_eq!(encoded(&plan).len() as u64, size);
        }
        let small = Plan { request_size: Some(Bytes::new(20)), ..plan("/0", Shape::Http11) };
        assert_eq!(
            small.requests(&whole()).unwrap_err().to_string(),
            "a request for /0 takes 51 B and does not fit in 20 B; allow 51 B"
        );
        let large = Plan { request_size: Some(Bytes::new(u64::MAX)), ..plan("/0", Shape::Http11) };
        assert!(matches!(large.requests(&whole()), Err(PlanError::RequestTooLarge { requested: _ })));
    }

    #[test]
    fn a_plan_that_would_split_a_request_is_refused() {
        for path in ["", "0", "/a b", "/\r\nX: y", "/\u{e9}"] {
            assert_eq!(plan(path, Shape::Http11).requests(&whole()), Err(PlanError::Path(path.to_owned())));
        }
        let mut method = plan("/", Shape::Http11);
        method.objects[0].method = Method::Other("GET /x".to_owned());
        assert!(matches!(method.requests(&whole()), Err(PlanError::Method(_))));
        let host = Plan { origins: vec!["h\r\nX: y".to_owned()], ..plan("/", Shape::Http11) };
        assert!(matches!(host.requests(&whole()), Err(PlanError::Host(_))));
        assert_eq!(Plan::new("h", Vec::new(), Shape::Http11).requests(&whole()), Err(PlanError::NoObjects));
    }

    #[test]
    fn requests_match_the_connection_policy() {
        let text = |shape| String::from_utf8(encoded(&plan("/0", shape))).unwrap();
        let parallel = const { NonZeroU16::new(4).unwrap() };
        assert_eq!(
            text(Shape::Http10 { parallel }),
            "GET /0 HTTP/1.0\r\nHost: h\r\nUser-Agent: roundtrip\r\n\r\n"
        );
        assert!(text(Shape::Http10KeepAlive).contains("HTTP/1.0\r\n"));
        assert!(text(Shape::Http10KeepAlive).ends_with("Connection: Keep-Alive\r\n\r\n"));
        assert!(text(Shape::Http11).contains("HTTP/1.1\r\n"));
    }

    #[test]
    fn prepared_requests_are_those_that_each_run_would_make() {
        let mut plan = Plan { request_size: Some(Bytes::new(256)), ..plan("/0", Shape::Http2) };
        let requests = plan.requests(&whole()).unwrap();
        plan.prepare().unwrap();
        assert_eq!(plan.objects[0].head.as_ref(), requests.first());
        assert_eq!(plan.requests(&whole()).unwrap(), requests);
        plan.objects[0].head = None;
        plan.request_size = Some(Bytes::new(20));
        assert!(matches!(plan.prepare(), Err(PlanError::RequestTooSmall { .. })));
    }
}
