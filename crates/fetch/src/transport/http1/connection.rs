//! One connection: requests out, their responses in, in order.
//!
//! [`super::Http1`] decides about a request whose connection failed.

use std::collections::VecDeque;

use wire::{Duration, Time};

use http1::client::{Event, Responses};
use http1::message::write::WriteBuffer;
use http1::message::{Method, PeerFault, ResponseHead, WritePolicy};

use crate::pipelining::Pipelining;
use crate::plan::Http1Config;
use crate::transport::connections::ToOrigin;
use crate::transport::{Endpoint, Request, RequestId};

/// A connection and the requests it carries.
#[derive(Debug)]
pub(super) struct Connection {
    /// Its server.
    pub(super) origin: Endpoint,
    phase: Phase,
    reader: Responses,
    writes: WriteBuffer,
    /// Requests sent, or to be sent once the connection is open; responses come in this order.
    outstanding: VecDeque<Exchange>,
    /// Requests that have not left, or not completely: the request, and the number of its bytes in the buffer.
    unsent: VecDeque<(RequestId, usize)>,
    /// Policy by which requests wait for one another; `None`: each is a write of its own.
    pipelining: Option<Pipelining>,
    /// Time since which the oldest request waits in the buffer.
    buffered_since: Option<Time>,
    /// Number of requests that it may still take.
    capacity: usize,
    /// Maximum number of outstanding requests.
    depth: usize,
    /// Whether no request may follow the first before its response.
    is_cautious: bool,
    /// [`Http1Config::ignores_body_with_headers`].
    ignores_body_with_headers: bool,
}

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Being opened.
    Opening,
    Open,
    /// Waiting since this time, after the last response, for the server's end of the stream.
    Lingering(Time),
}

/// A request and the part of its response received so far.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Exchange {
    request: RequestId,
    wants_content: bool,
    method: Method,
    /// Whether the header section of the final response has arrived.
    has_head: bool,
    /// Whether any part of a response has arrived, including interim ones.
    has_response: bool,
}

/// An event in the received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrival<'a> {
    Head(RequestId, ResponseHead),
    /// Part of a body, and whether its contents are wanted.
    Body(RequestId, &'a [u8], bool),
    Complete(RequestId),
}

/// A request whose connection ended before its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Orphan {
    pub(super) request: RequestId,
    /// Whether any part of a response arrived.
    pub(super) has_response: bool,
}

impl ToOrigin for Connection {
    fn origin(&self) -> Endpoint {
        self.origin
    }
}

impl Connection {
    /// A cautious connection sends nothing after its first request before the response. If the previous
    /// connection broke, that request may be the cause, and a reset would destroy the response (RFC 9112,
    /// section 9.3.2).
    pub(super) fn new(config: &Http1Config, origin: Endpoint, is_cautious: bool) -> Self {
        let Http1Config {
            shape,
            connections: _,
            browser: _,
            limits,
            tries: _,
            linger: _,
            ignores_body_with_headers,
        } = *config;
        let pipelining = shape.pipelining();
        let buffer = pipelining.map(|pipelining| pipelining.buffer);
        Self {
            origin,
            phase: Phase::Opening,
            reader: Responses::new(limits),
            writes: WriteBuffer::new(WritePolicy { buffer, ..WritePolicy::default() }),
            outstanding: VecDeque::new(),
            unsent: VecDeque::new(),
            pipelining,
            buffered_since: None,
            capacity: shape.requests(),
            depth: shape.outstanding(),
            is_cautious,
            ignores_body_with_headers,
        }
    }

    /// Whether no request waits for its response on it.
    pub(super) fn is_unused(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// Whether this request waits for its response on it.
    pub(super) fn carries(&self, request: RequestId) -> bool {
        self.outstanding.iter().any(|exchange| exchange.request == request)
    }

    /// Whether it can take this request. An unsafe request is sent alone: otherwise the outcome of it, and of
    /// the requests after it, would be unknown (RFC 9112, section 9.3.2).
    pub(super) fn can_take(&self, method: &Method) -> bool {
        let depth = if self.is_cautious || !method.is_safe() { 1 } else { self.depth };
        let is_free = self.outstanding.back().is_none_or(|before| before.method.is_safe());
        match self.phase {
            Phase::Opening | Phase::Open => self.capacity > 0 && self.outstanding.len() < depth && is_free,
            Phase::Lingering(_) => false,
        }
    }

    /// Whether it is being opened.
    pub(super) fn is_opening(&self) -> bool {
        self.phase == Phase::Opening
    }

    /// Whether it waits for the server to close.
    pub(super) const fn is_lingering(&self) -> bool {
        match self.phase {
            Phase::Lingering(_) => true,
            Phase::Opening | Phase::Open => false,
        }
    }

    /// Takes a request, which waits in the buffer until a flush, and at least until the connection is open.
    pub(super) fn request(&mut self, now: Time, request: &Request) {
        self.capacity -= 1;
        self.outstanding.push_back(Exchange {
            request: request.id,
            wants_content: request.wants_content,
            method: request.head.method.clone(),
            has_head: false,
            has_response: false,
        });
        let before = self.writes.waiting();
        let mut length = 0;
        self.writes.head(|out| {
            let start = out.len();
            request.head.encode(out);
            out.resize(out.len() + usize::try_from(request.body).unwrap_or_default(), 0);
            length = out.len() - start;
        });
        self.unsent.push_back((request.id, length));
        let total = before + length;
        match self.writes.waiting() {
            _ if self.pipelining.is_none() => self.flush(),
            0 => self.buffered_since = None,
            remaining if remaining < total => self.buffered_since = Some(now),
            _ => self.buffered_since = self.buffered_since.or(Some(now)),
        }
    }

    /// Flushes the requests in the buffer.
    pub(super) fn flush(&mut self) {
        self.writes.flush();
        self.buffered_since = None;
    }

    /// Time at which the buffer is to be flushed, full or not.
    pub(super) fn flush_time(&self) -> Option<Time> {
        Some(self.buffered_since? + self.pipelining?.flush_after)
    }

    /// Notes that the connection is open.
    pub(super) fn open(&mut self) {
        if self.phase == Phase::Opening {
            self.phase = Phase::Open;
        }
    }

    /// The next write, once the connection is open, and the requests that end in it.
    pub(super) fn take_write(&mut self) -> Option<(Vec<u8>, Vec<RequestId>)> {
        match self.phase {
            Phase::Opening => None,
            Phase::Open | Phase::Lingering(_) => {
                let write = self.writes.take()?;
                let requests = self.note_sent(write.len());
                Some((write, requests))
            }
        }
    }

    /// Notes that this number of bytes leaves; returns the requests that end in them.
    fn note_sent(&mut self, mut bytes: usize) -> Vec<RequestId> {
        let mut requests = Vec::new();
        while let Some((request, remaining)) = self.unsent.front_mut() {
            if *remaining > bytes {
                *remaining -= bytes;
                break;
            }
            bytes -= *remaining;
            requests.push(*request);
            self.unsent.pop_front();
        }
        requests
    }

    /// Time at which it is to be closed even if the server has not closed it.
    pub(super) fn deadline(&self, linger: Duration) -> Option<Time> {
        match self.phase {
            Phase::Lingering(since) => Some(since + linger),
            Phase::Opening | Phase::Open => None,
        }
    }

    /// Handles received bytes; arrivals before a protocol error are reported all the same.
    pub(super) fn receive<'a>(
        &mut self,
        now: Time,
        mut input: &'a [u8],
        arrivals: &mut Vec<Arrival<'a>>,
    ) -> Result<(), PeerFault> {
        loop {
            let Some(exchange) = self.outstanding.front_mut().filter(|_| self.phase == Phase::Open) else {
                return if input.is_empty() { Ok(()) } else { Err(PeerFault::Unsolicited) };
            };
            exchange.has_response |= !input.is_empty();
            match self.reader.read(&mut input, &exchange.method)? {
                None => return Ok(()),
                Some(Event::Interim(_)) => {}
                Some(Event::Head(head, _)) => {
                    exchange.has_head = true;
                    arrivals.push(Arrival::Head(exchange.request, head));
                    if self.ignores_body_with_headers {
                        input = &[];
                    }
                }
                Some(Event::Body(part)) => {
                    arrivals.push(Arrival::Body(exchange.request, part, exchange.wants_content));
                }
                Some(Event::End { persists }) => self.complete(now, persists, arrivals),
            }
        }
    }

    /// Handles the end of the stream: a body without a length is complete with it.
    pub(super) fn end_of_stream(
        &mut self,
        now: Time,
        arrivals: &mut Vec<Arrival<'_>>,
    ) -> Result<(), PeerFault> {
        if self.reader.end_of_stream()? {
            self.complete(now, false, arrivals);
        }
        Ok(())
    }

    /// The requests without a complete response, in order.
    pub(super) fn into_orphans(mut self) -> Vec<Orphan> {
        self.take_outstanding()
    }

    /// The requests after a response that announces the close: the server has not processed them, and will
    /// not (RFC 9112, section 9.6).
    pub(super) fn take_abandoned(&mut self) -> Vec<Orphan> {
        match self.phase {
            Phase::Opening | Phase::Open => Vec::new(),
            Phase::Lingering(_) => {
                let buffer = self.pipelining.map(|pipelining| pipelining.buffer);
                self.writes = WriteBuffer::new(WritePolicy { buffer, ..WritePolicy::default() });
                (self.buffered_since, self.unsent) = (None, VecDeque::new());
                self.take_outstanding()
            }
        }
    }

    fn take_outstanding(&mut self) -> Vec<Orphan> {
        let orphan =
            |exchange: Exchange| Orphan { request: exchange.request, has_response: exchange.has_response };
        self.outstanding.drain(..).map(orphan).collect()
    }

    fn complete(&mut self, now: Time, persists: bool, arrivals: &mut Vec<Arrival<'_>>) {
        let Some(exchange) = self.outstanding.pop_front() else { return };
        // A body follows its header section.
        if !exchange.has_head {
            return;
        }
        self.is_cautious = false;
        if !persists || self.capacity == 0 && self.outstanding.is_empty() {
            self.phase = Phase::Lingering(now);
        }
        arrivals.push(Arrival::Complete(exchange.request));
    }
}
