//! The servers' end: connections over HTTP/1 or HTTP/2, with TLS or in the clear, and responses of given sizes.
//!
//! Bytes of the client and responses flow in; complete requests and writes flow out. A driver decides when.

mod http3_server;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use http1::message::{Fields, Method, PeerFault, RequestHead, Version};
use http1::server::{self, RequestId, Response, ResponseBody, ServerConfig, ServerConnection};
use http2::hpack::FieldList;
use http2::{Endpoint, Event, Priority, Profile};
use tls::session::{Session, SessionConfig};
use wire::{Duration, Time};

pub use http3_server::{Http3Request, Http3Server};

/// Protocols of a server's connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerProtocols {
    /// TLS; `None`: in the clear.
    pub tls: Option<SessionConfig>,
    /// HTTP/2 with this behaviour; `None`: HTTP/1.
    pub http2: Option<Profile>,
    /// HTTP/3 beside them.
    pub http3: Option<http3::ServerConfig>,
}

impl ServerProtocols {
    /// Whether it speaks HTTP/1 in the clear.
    pub const fn is_plain(&self) -> bool {
        self.tls.is_none() && self.http2.is_none()
    }
}

/// A server's connection.
#[derive(Debug)]
pub struct HttpConnection {
    protocol: HttpProtocol,
    tls: Option<Session>,
    /// Outputs not executed yet, because a write waits for the send buffer.
    outputs: VecDeque<server::Output>,
}

#[derive(Debug)]
enum HttpProtocol {
    Http1 {
        connection: Box<ServerConnection>,
        /// The request in progress.
        request: Option<RequestHead>,
    },
    Http2(Box<Http2Connection>),
}

/// State of HTTP/2.
#[derive(Debug)]
struct Http2Connection {
    endpoint: Endpoint,
    /// Requests without a response.
    requests: BTreeMap<u32, Request>,
    /// Requests that are complete.
    complete: VecDeque<(RequestId, RequestHead)>,
}

/// A request without a response.
#[derive(Debug)]
struct Request {
    /// Until the request is complete.
    head: Option<RequestHead>,
    priority: Priority,
}

/// A connection's wish after an input.
#[derive(Debug)]
pub enum Wish {
    /// A response to this request.
    Response(RequestId, RequestHead),
    /// No response to this request any more, if it has not begun.
    Aborted(RequestId),
    /// Nothing but to be counted: the client made a protocol error.
    Fault(PeerFault),
    /// Its next timeout.
    Timeout(Option<Time>),
}

impl HttpConnection {
    /// A connection that has just been accepted; `http1` speaks HTTP/1 on it, if these protocols do.
    pub fn new(protocols: &ServerProtocols, http1: ServerConnection) -> Self {
        let protocol = match protocols.http2 {
            None => HttpProtocol::Http1 { connection: Box::new(http1), request: None },
            Some(profile) => HttpProtocol::Http2(Box::new(Http2Connection {
                endpoint: Endpoint::server(profile),
                requests: BTreeMap::new(),
                complete: VecDeque::new(),
            })),
        };
        let tls = protocols.tls.clone().map(Session::server);
        Self { protocol, tls, outputs: VecDeque::new() }
    }

    /// Handles an event of the connection.
    pub fn handle(&mut self, now: Time, input: server::Input<'_>) {
        match (&mut self.tls, input) {
            (Some(session), server::Input::Received(bytes)) => {
                let mut plaintext = Vec::new();
                let result = session.receive_into(bytes, &mut plaintext);
                self.outputs.extend(std::iter::from_fn(|| session.next_write()).map(server::Output::Send));
                if !plaintext.is_empty() {
                    self.protocol.handle(now, server::Input::Received(&plaintext), &mut self.outputs);
                }
                if result.is_err() {
                    self.outputs.push_back(server::Output::Abort);
                }
            }
            (_, input) => self.protocol.handle(now, input, &mut self.outputs),
        }
    }

    /// Takes the next wish; the last is the timeout.
    pub fn next(&mut self, now: Time) -> Wish {
        match &mut self.protocol {
            HttpProtocol::Http2(http2) => match http2.complete.pop_front() {
                Some((id, head)) => Wish::Response(id, head),
                None => Wish::Timeout(None),
            },
            HttpProtocol::Http1 { connection, request } => loop {
                match connection.poll(now) {
                    server::Output::Request(_, head) => *request = Some(head),
                    server::Output::RequestBody(..) => {}
                    server::Output::RequestEnd(id) => {
                        if let Some(head) = request.take() {
                            return Wish::Response(id, head);
                        }
                    }
                    server::Output::RequestAborted(id) => {
                        *request = None;
                        return Wish::Aborted(id);
                    }
                    server::Output::Fault(fault) => return Wish::Fault(fault),
                    server::Output::Timeout(until) => return Wish::Timeout(until),
                    server::Output::Send(bytes) => match &mut self.tls {
                        Some(session) => {
                            session.send(&bytes);
                            let writes = std::iter::from_fn(|| session.next_write());
                            self.outputs.extend(writes.map(server::Output::Send));
                        }
                        None => self.outputs.push_back(server::Output::Send(bytes)),
                    },
                    output @ (server::Output::HalfClose | server::Output::Close | server::Output::Abort) => {
                        self.outputs.push_back(output);
                    }
                }
            },
        }
    }

    /// Sends a response. A request that was aborted in the meantime needs none.
    pub fn respond(&mut self, now: Time, id: RequestId, response: Response) {
        match &mut self.protocol {
            HttpProtocol::Http1 { connection, request: _ } => {
                let _ = connection.respond(now, id, response);
            }
            HttpProtocol::Http2(http2) => http2.respond(id, &response),
        }
    }

    /// Whether it speaks HTTP/2.
    pub const fn is_http2(&self) -> bool {
        match self.protocol {
            HttpProtocol::Http1 { .. } => false,
            HttpProtocol::Http2(_) => true,
        }
    }

    /// Whether [`HttpConnection::next_output`] has something.
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty() || self.is_http2()
    }

    /// The output after the next one, if it is known: DATA of HTTP/2 is chosen when it is written.
    pub fn second_output(&self) -> Option<&server::Output> {
        self.outputs.front()
    }

    /// Takes the next output.
    pub fn next_output(&mut self) -> Option<server::Output> {
        if self.outputs.is_empty()
            && let HttpProtocol::Http2(http2) = &mut self.protocol
        {
            match &mut self.tls {
                None => return http2.endpoint.next_write().map(server::Output::Send),
                Some(session) if session.can_send() => {
                    if let Some(bytes) = http2.endpoint.next_write() {
                        session.send(&bytes);
                    }
                    self.outputs
                        .extend(std::iter::from_fn(|| session.next_write()).map(server::Output::Send));
                }
                Some(_) => {}
            }
        }
        self.outputs.pop_front()
    }

    /// Forgets the output after the one that was taken.
    pub fn skip_output(&mut self) {
        self.outputs.pop_front();
    }
}

impl HttpProtocol {
    fn handle(&mut self, now: Time, input: server::Input<'_>, outputs: &mut VecDeque<server::Output>) {
        match (self, input) {
            (Self::Http1 { connection, request: _ }, input) => connection.handle(now, input),
            (Self::Http2(http2), server::Input::Received(bytes)) => {
                if !http2.receive(bytes) {
                    outputs.push_back(server::Output::Abort);
                }
            }
            (Self::Http2(_), server::Input::EndOfStream) => outputs.push_back(server::Output::Close),
            (Self::Http2(_), server::Input::Reset) => {}
        }
    }
}

impl Http2Connection {
    /// Handles bytes; returns whether the client obeys the protocol.
    fn receive(&mut self, bytes: &[u8]) -> bool {
        let Self { endpoint, requests, complete } = self;
        let result = endpoint.receive(bytes, &mut |event| match event {
            Event::Fields { stream, fields, ends } => {
                requests.entry(stream).or_insert_with(|| Request::new(&fields));
                end(requests, complete, stream, ends);
            }
            Event::Data { stream, bytes: _, ends } => end(requests, complete, stream, ends),
            Event::Reset { stream, code: _ } => drop(requests.remove(&stream)),
            Event::GoAway { last: _ } => {}
        });
        result.is_ok()
    }

    fn respond(&mut self, id: RequestId, response: &Response) {
        let Some((stream, Request { head: _, priority })) =
            u32::try_from(id.0).ok().and_then(|stream| Some((stream, self.requests.remove(&stream)?)))
        else {
            return;
        };
        with_fields(response, |fields, body| self.endpoint.respond(stream, fields, priority, body));
    }
}

/// Passes a response on as fields and a body.
fn with_fields(
    response: &Response,
    respond: impl for<'a> FnOnce(&mut dyn Iterator<Item = (&'a [u8], &'a [u8])>, Arc<[u8]>),
) {
    let body = match &response.body {
        ResponseBody::Whole(body) => Arc::clone(body),
        ResponseBody::Length(_) | ResponseBody::Unknown => Arc::from([]),
    };
    let (status, length) = (response.status.to_string(), body.len().to_string());
    let first = [(&b":status"[..], status.as_bytes()), (b"content-length", length.as_bytes())];
    respond(&mut first.into_iter().chain(response.fields.in_lower_case().iter()), body);
}

impl Request {
    /// A request whose fields have arrived.
    fn new(fields: &FieldList) -> Self {
        let priority = fields.get(b"priority").map(Priority::read).unwrap_or_default();
        Self { head: Some(request_head(fields)), priority }
    }
}

/// Notes the end of a request.
fn end(
    requests: &mut BTreeMap<u32, Request>,
    complete: &mut VecDeque<(RequestId, RequestHead)>,
    stream: u32,
    ends: bool,
) {
    if ends && let Some(head) = requests.get_mut(&stream).and_then(|request| request.head.take()) {
        complete.push_back((RequestId(u64::from(stream)), head));
    }
}

/// A request in HTTP/1.1's form, for the site.
fn request_head(fields: &FieldList) -> RequestHead {
    let text = |bytes| String::from_utf8_lossy(bytes);
    let mut head = RequestHead {
        method: Method::Get,
        target: String::new(),
        version: Version::Http11,
        fields: Fields::new(),
    };
    for (name, value) in fields.iter() {
        match name {
            b":method" => head.method = Method::from_name(&text(value)),
            b":path" => head.target = text(value).into_owned(),
            b":scheme" | b":authority" => {}
            // A field that HTTP/1 would not allow says nothing to the site.
            name => drop(head.fields.push(&text(name), &text(value))),
        }
    }
    head
}

/// Minimum sizes to which response headers are padded, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadSizes {
    /// Minimum for responses with an object, or to HEAD.
    pub object: Option<usize>,
    /// Minimum for 304 Not Modified.
    pub unchanged: Option<usize>,
}

/// A response, where it differs from others of its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseTraits {
    /// Time from the request to the response, in which the server does other work.
    pub delay: Duration,
    /// Minimum size of its header section in HTTP/1's form.
    pub head: Option<usize>,
}

impl HeadSizes {
    /// Pads the header section of the response to `request` to its minimum size, by a field without meaning. `own` is the
    /// minimum of this response, if it has one.
    pub fn pad(self, own: Option<usize>, is_http2: bool, request: &RequestHead, response: &mut Response) {
        let Self { object, unchanged } = self;
        let min_bytes = if response.status == 304 { unchanged } else { own.or(object) };
        let Some(min_bytes) = min_bytes else { return };
        let missing = min_bytes.saturating_sub(head_bytes(request, response.clone()) + PADDING.len() + 4);
        if is_http2 {
            // Fields of a length that is common; equal ones take a byte each in later responses.
            for _ in 0..missing / PADDING_LINE {
                let _ = response.fields.push(PADDING, &"x".repeat(PADDING_LINE - PADDING.len() - 4));
            }
        } else if missing > 0 {
            // Letters are always valid in a field's value.
            let _ = response.fields.push(PADDING, &"x".repeat(missing));
        }
    }
}

/// Field that pads the header section.
const PADDING: &str = "X-Padding";
/// Bytes of a line of padding in HTTP/2.
const PADDING_LINE: usize = 40;

/// Length in bytes of the header section of the response to this request, from an otherwise idle connection.
fn head_bytes(request: &RequestHead, response: Response) -> usize {
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    let writes = http1::message::WritePolicy { head_apart: true, ..Default::default() };
    let mut connection =
        ServerConnection::new(Time::ZERO, ServerConfig { writes, ..ServerConfig::default() });
    connection.handle(Time::ZERO, server::Input::Received(&bytes));
    let _ = connection.respond(Time::ZERO, RequestId(0), response);
    loop {
        match connection.poll(Time::ZERO) {
            server::Output::Send(head) => return head.len(),
            server::Output::Timeout(_) => return 0,
            server::Output::Request(..)
            | server::Output::RequestBody(..)
            | server::Output::RequestEnd(_)
            | server::Output::RequestAborted(_)
            | server::Output::HalfClose
            | server::Output::Close
            | server::Output::Abort
            | server::Output::Fault(_) => {}
        }
    }
}
