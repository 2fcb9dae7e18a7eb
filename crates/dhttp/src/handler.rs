//! Requests and responses, whatever the channel.
//!
//! A handler never learns which channel its answer takes, and need not. Not the head as it is sent: what belongs to a
//! connection (`Connection`, `Content-Length`, `Date`, tokens) is added behind it.

use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http1::message::{FieldLines, Fields, RequestHead, RequestView};
use wire::Time;

use crate::deferred::Reply;

/// Handler of requests. Each thread of a server has a clone of its own, so that it may store what it likes without
/// a lock. It is called in the thread that serves: what takes long holds up others, and is promised for later.
pub trait Handler: Clone + Send + 'static {
    /// The answer to a request. `now` counts from when the server was started.
    fn respond(&mut self, now: Time, request: &Request<'_>) -> Reply;

    /// Whether it looks at bodies of requests; those of others are read and dropped.
    fn takes_bodies(&self) -> bool {
        true
    }

    /// The same, shown to whoever sends it. A handler that keeps its answers need not even count that one is in use.
    fn show<T>(&mut self, now: Time, request: &Request<'_>, to: impl FnOnce(Outcome<'_>) -> T) -> T {
        to(Outcome::Given(self.respond(now, request)))
    }
}

/// A handler's reply, borrowed if possible.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// One that the handler keeps.
    Kept(&'a Response),
    /// One that it has made.
    Given(Reply),
}

impl<F, R> Handler for F
where
    F: FnMut(&Request<'_>) -> R + Clone + Send + 'static,
    R: Into<Reply>,
{
    fn respond(&mut self, _now: Time, request: &Request<'_>) -> Reply {
        self(request).into()
    }
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// As it was written: a token.
    pub method: &'a str,
    /// Visible ASCII, as it was written.
    pub target: &'a str,
    /// Its body; nothing if it came in a datagram.
    pub body: &'a [u8],
    /// Destination of the packet, if it is another host: the request was intercepted.
    pub meant_for: Option<SocketAddr>,
    /// Where the client is, if that is known: by its connection, or by a token. A datagram alone may be from anybody.
    pub client: Option<IpAddr>,
    /// The longest response that the client can get by UDP, in bytes, if it is not known where it is.
    pub budget: Option<u64>,
    fields: Source<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Lines(FieldLines<'a>),
    Kept(&'a Fields),
}

impl<'a> Request<'a> {
    /// One that came in a datagram.
    pub const fn of_datagram(head: &RequestView<'a>) -> Self {
        Self {
            method: head.method,
            target: head.target,
            body: &[],
            meant_for: None,
            client: None,
            budget: None,
            fields: Source::Lines(head.fields),
        }
    }

    /// One that came on a connection.
    pub fn of_connection(head: &'a RequestHead, body: &'a [u8]) -> Self {
        let (method, target) = (head.method.name(), head.target.as_str());
        let fields = Source::Kept(&head.fields);
        Self { method, target, body, meant_for: None, client: None, budget: None, fields }
    }

    /// The same, taken on its way to somebody else.
    pub(crate) const fn on_its_way_to(self, meant_for: Option<SocketAddr>) -> Self {
        Self { meant_for, ..self }
    }

    /// The same with a longest response.
    pub(crate) const fn within(self, budget: Option<u64>) -> Self {
        Self { budget, ..self }
    }

    /// The same from a client that is there.
    #[must_use]
    pub const fn from_client(self, client: Option<IpAddr>) -> Self {
        Self { client, ..self }
    }

    /// The value of the first field of this name, whatever its case.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        match self.fields {
            Source::Lines(lines) => lines.get(name),
            Source::Kept(fields) => fields.get(name),
        }
    }

    /// Every field, name and value.
    pub fn each_field(&self, mut each: impl FnMut(&'a [u8], &'a [u8])) {
        match self.fields {
            Source::Lines(lines) => lines.iter().for_each(|(name, value)| each(name, value)),
            Source::Kept(fields) => fields.iter().for_each(|(name, value)| each(name, value)),
        }
    }

    /// Whether the answer has no body, whatever it says.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// An answer. Cheap to clone: a handler may keep those it gives again.
#[derive(Clone, Debug)]
pub struct Response {
    /// 200 to 999.
    pub status: u16,
    /// Without `Connection`, `Content-Length`, `Transfer-Encoding` and `Date`.
    pub fields: Arc<Fields>,
    /// For an answer to HEAD as for one to GET: it is then described but not sent.
    pub body: Body,
}

impl Response {
    /// These bytes, of this type. A type that cannot stand in a field is left out.
    pub fn whole(status: u16, content_type: &str, body: impl Into<Arc<[u8]>>) -> Self {
        let mut fields = Fields::new();
        // A handler that writes a line end into the type gets an answer without it, not a split one.
        let _ = fields.push("Content-Type", content_type);
        Self { status, fields: Arc::new(fields), body: Body::Whole(body.into()) }
    }

    /// A status with a line of text.
    pub fn text(status: u16, text: &str) -> Self {
        Self::whole(status, "text/plain; charset=utf-8", format!("{text}\n").into_bytes())
    }

    /// Whether the status alone says that there is no body.
    pub const fn is_bodiless(&self) -> bool {
        matches!(self.status, 204 | 304)
    }
}

/// Where a body comes from.
#[derive(Clone, Debug)]
pub enum Body {
    /// It is all here.
    Whole(Arc<[u8]>),
    /// A part of a file, which is read, or handed to the kernel to send, when there is room for it.
    File {
        /// The file.
        file: Arc<File>,
        /// Where it begins, in bytes.
        offset: u64,
        /// Length in bytes.
        length: u64,
    },
    /// Only for HEAD: somebody else's, of so many bytes if that is known.
    Described(Option<u64>),
}

impl Body {
    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::File { file: _, offset: _, length } => *length,
            Self::Described(length) => length.unwrap_or(0),
        }
    }

    /// Returns the length to announce, in bytes, if it is known.
    pub fn told_length(&self) -> Option<u64> {
        match self {
            Self::Whole(_) | Self::File { file: _, offset: _, length: _ } => Some(self.len()),
            Self::Described(length) => *length,
        }
    }

    /// So many bytes of it, from the one with this number.
    pub fn part(&self, first: u64, length: u64) -> Self {
        match self {
            Self::Whole(bytes) if first == 0 && length == bytes.len() as u64 => self.clone(),
            Self::Whole(bytes) => Self::of_slice(bytes, first, length),
            Self::File { file, offset, length: _ } => {
                Self::File { file: Arc::clone(file), offset: offset + first, length }
            }
            Self::Described(_) => Self::Described(Some(length)),
        }
    }

    /// So many of these bytes, from the one with this number.
    pub fn of_slice(bytes: &[u8], first: u64, length: u64) -> Self {
        let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).min(bytes.len());
        Self::Whole(bytes.get(place(first)..place(first.saturating_add(length))).unwrap_or_default().into())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
