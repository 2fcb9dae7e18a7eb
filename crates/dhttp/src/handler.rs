//! Requests and responses, whatever the channel.
//!
//! A handler neither learns nor needs the channel of its response. Not the header section as sent: the server adds the fields
//! of a connection (`Connection`, `Content-Length`, `Date`, tokens).

use std::net::{IpAddr, SocketAddr};

use http1::message::{FieldLines, Fields, RequestHead, RequestView};
use wire::Time;

use crate::deferred::Reply;
pub use crate::response::{Body, Response};

/// Handler of requests. Each thread of a server has a clone of its own, which may store state without a lock. It runs in the
/// serving thread: slow work blocks other requests and must be deferred.
pub trait Handler: Clone + Send + 'static {
    /// Responds to a request. `now` counts from the start of the server.
    fn respond(&mut self, now: Time, request: &Request<'_>) -> Reply;

    /// Whether it reads request bodies; other bodies are read and dropped.
    fn takes_bodies(&self) -> bool {
        true
    }

    /// Responds by a callback. A handler with cached responses then need not even change a reference count.
    fn respond_with<T>(&mut self, now: Time, request: &Request<'_>, to: impl FnOnce(Outcome<'_>) -> T) -> T {
        to(Outcome::Owned(self.respond(now, request)))
    }
}

/// A handler's reply, borrowed if possible.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// Response cached by the handler.
    Borrowed(&'a Response),
    /// New reply.
    Owned(Reply),
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
    /// Method as received: a token.
    pub method: &'a str,
    /// Request target as received: visible ASCII.
    pub target: &'a str,
    /// Body; empty if the request came in a datagram.
    pub body: &'a [u8],
    /// Destination of the packet, if it is another host: the request was intercepted.
    pub meant_for: Option<SocketAddr>,
    /// Address of the client, if it is proved by a connection or a token. The source of a datagram alone may be spoofed.
    pub client: Option<IpAddr>,
    /// Maximum response by UDP in bytes, for a client whose address is not proved.
    pub budget: Option<u64>,
    fields: Source<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Lines(FieldLines<'a>),
    Borrowed(&'a Fields),
}

impl<'a> Request<'a> {
    /// Creates a request that came in a datagram.
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

    /// Creates a request that came on a connection.
    pub fn of_connection(head: &'a RequestHead, body: &'a [u8]) -> Self {
        let (method, target) = (head.method.name(), head.target.as_str());
        let fields = Source::Borrowed(&head.fields);
        Self { method, target, body, meant_for: None, client: None, budget: None, fields }
    }

    /// Sets the original destination of an intercepted request.
    pub(crate) const fn on_its_way_to(self, meant_for: Option<SocketAddr>) -> Self {
        Self { meant_for, ..self }
    }

    /// Sets the maximum response.
    pub(crate) const fn within(self, budget: Option<u64>) -> Self {
        Self { budget, ..self }
    }

    /// Sets the client's proved address.
    #[must_use]
    pub const fn from_client(self, client: Option<IpAddr>) -> Self {
        Self { client, ..self }
    }

    /// Returns the value of the first field of this name, in any case.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        match self.fields {
            Source::Lines(lines) => lines.get(name),
            Source::Borrowed(fields) => fields.get(name),
        }
    }

    /// Calls `each` with the name and value of every field.
    pub fn each_field(&self, mut each: impl FnMut(&'a [u8], &'a [u8])) {
        match self.fields {
            Source::Lines(lines) => lines.iter().for_each(|(name, value)| each(name, value)),
            Source::Borrowed(fields) => fields.iter().for_each(|(name, value)| each(name, value)),
        }
    }

    /// Whether the response has no body, whatever its fields state.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}
