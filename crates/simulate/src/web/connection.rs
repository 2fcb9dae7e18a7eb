//! A server's connection: HTTP/1 or HTTP/2, over TLS or in the clear.
//!
//! Bytes of the client and responses flow in; complete requests and writes flow out. The server decides when.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use http1::message::{Fields, Method, RequestHead, Version};
use http1::server::{self, RequestId, Response, ResponseBody, ServerConnection};
use http2::hpack::Field;
use http2::{Endpoint, Event, Priority, Profile};
use tls::session::{Session, SessionConfig};
use wire::Time;

/// Protocols of a server's connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerProtocols {
    /// TLS; `None`: in the clear.
    pub tls: Option<SessionConfig>,
    /// HTTP/2 with this behaviour; `None`: HTTP/1.
    pub http2: Option<Profile>,
}

/// One connection.
pub(super) struct HttpConnection {
    protocol: HttpProtocol,
    tls: Option<Session>,
    /// Outputs not executed yet, because a write waits for the send buffer.
    outputs: VecDeque<server::Output>,
    pub(super) is_writing: bool,
    /// Whether the server's next step on it is pending.
    pub(super) is_scheduled: bool,
    pub(super) deadline: Option<Time>,
}

enum HttpProtocol {
    Http1 {
        connection: Box<ServerConnection>,
        /// The request in progress.
        request: Option<RequestHead>,
    },
    Http2(Box<Http2Connection>),
}

/// State of HTTP/2.
struct Http2Connection {
    endpoint: Endpoint,
    /// Requests without a response.
    requests: BTreeMap<u32, Request>,
    /// Requests that are complete.
    complete: VecDeque<(RequestId, RequestHead)>,
}

struct Request {
    /// Until the request is complete.
    head: Option<RequestHead>,
    priority: Priority,
}

/// A connection's wish after an input.
pub(super) enum Wish {
    /// A response to this request.
    Response(RequestId, RequestHead),
    /// Nothing but to be counted: the client made a protocol error.
    Fault,
    /// Its next timeout.
    Timeout(Option<Time>),
}

impl HttpConnection {
    pub(super) fn new(protocols: &ServerProtocols, http1: ServerConnection) -> Self {
        let protocol = match protocols.http2 {
            None => HttpProtocol::Http1 { connection: Box::new(http1), request: None },
            Some(profile) => HttpProtocol::Http2(Box::new(Http2Connection {
                endpoint: Endpoint::server(profile),
                requests: BTreeMap::new(),
                complete: VecDeque::new(),
            })),
        };
        let tls = protocols.tls.clone().map(Session::server);
        Self {
            protocol,
            tls,
            outputs: VecDeque::new(),
            is_writing: false,
            is_scheduled: false,
            deadline: None,
        }
    }

    /// Handles an event of the connection.
    pub(super) fn handle(&mut self, now: Time, input: server::Input<'_>) {
        match (&mut self.tls, input) {
            (Some(session), server::Input::Received(bytes)) => {
                let mut plaintext = Vec::new();
                let result = session.receive(bytes, &mut |part| plaintext.extend_from_slice(part));
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
    pub(super) fn next(&mut self, now: Time) -> Wish {
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
                    server::Output::RequestAborted(_) => *request = None,
                    server::Output::Fault(_) => return Wish::Fault,
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
    pub(super) fn respond(&mut self, now: Time, id: RequestId, response: Response) {
        match &mut self.protocol {
            HttpProtocol::Http1 { connection, request: _ } => {
                let _ = connection.respond(now, id, response);
            }
            HttpProtocol::Http2(http2) => http2.respond(id, &response),
        }
    }

    /// Whether it speaks HTTP/2.
    pub(super) const fn is_http2(&self) -> bool {
        match self.protocol {
            HttpProtocol::Http1 { .. } => false,
            HttpProtocol::Http2(_) => true,
        }
    }

    /// Whether [`HttpConnection::next_output`] has something.
    pub(super) fn has_output(&self) -> bool {
        !self.outputs.is_empty() || self.is_http2()
    }

    /// The output after the next one, if it is known: DATA of HTTP/2 is chosen when it is written.
    pub(super) fn second_output(&self) -> Option<&server::Output> {
        self.outputs.front()
    }

    /// Takes the next output.
    pub(super) fn next_output(&mut self) -> Option<server::Output> {
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
    pub(super) fn skip_output(&mut self) {
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
                let priority = fields.iter().find(|field| field.name == b"priority");
                let priority = priority.map(|field| Priority::read(&field.value)).unwrap_or_default();
                let head = Some(request_head(&fields));
                requests.entry(stream).or_insert(Request { head, priority });
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
        let body = match &response.body {
            ResponseBody::Whole(body) => Arc::clone(body),
            ResponseBody::Length(_) | ResponseBody::Unknown => Arc::from([]),
        };
        let (status, length) = (response.status.to_string(), body.len().to_string());
        let names: Vec<(Vec<u8>, &[u8])> =
            response.fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let first = [(&b":status"[..], status.as_bytes()), (b"content-length", length.as_bytes())];
        let fields = names.iter().map(|(name, value)| (&name[..], *value));
        self.endpoint.respond(stream, first.into_iter().chain(fields), priority, body);
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
fn request_head(fields: &[Field]) -> RequestHead {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut head = RequestHead {
        method: Method::Get,
        target: String::new(),
        version: Version::Http11,
        fields: Fields::new(),
    };
    for Field { name, value } in fields {
        match &name[..] {
            b":method" => head.method = Method::from_name(&text(value)),
            b":path" => head.target = text(value),
            b":scheme" | b":authority" => {}
            // A field that HTTP/1 would not allow says nothing to the site.
            name => drop(head.fields.push(&text(name), &text(value))),
        }
    }
    head
}
