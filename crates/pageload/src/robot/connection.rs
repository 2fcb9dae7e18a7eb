//! One of a robot's connections: requests out, their responses in, in order.
//!
//! [`super::Robot`] decides about an object whose connection failed.

use std::collections::VecDeque;

use wire::{Bytes, Duration, Time};

use http1::message::write::WriteBuffer;
use http1::message::{Event, Method, PeerFault, ResponseHead, ResponseReader, WritePolicy, persists};

use super::pipelining::Pipelining;
use super::plan::Plan;

/// A connection and the requests it carries.
#[derive(Debug)]
pub(super) struct Connection {
    phase: Phase,
    reader: ResponseReader,
    writes: WriteBuffer,
    /// Requests sent, or to be sent once the connection is open; responses come in this order.
    outstanding: VecDeque<Exchange>,
    /// Requests that have not left, or not completely: the object, and the number of its bytes in the buffer.
    unsent: VecDeque<(usize, usize)>,
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
    /// Maximum number of interim responses before a final one.
    interim_allowed: usize,
    /// [`Plan::ignores_body_with_headers`].
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
    object: usize,
    method: Method,
    /// Status of the final response.
    status: Option<u16>,
    body: Bytes,
    /// Whether any part of a response has arrived, including interim ones.
    has_response: bool,
    /// Number of interim responses.
    interims: usize,
    /// Whether the current message is an interim response.
    interim: bool,
    /// Whether the connection persists after the response.
    persists: bool,
}

/// An event in the received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrival<'a> {
    Head { object: usize, head: ResponseHead },
    Body { object: usize, part: &'a [u8] },
    Complete { object: usize, status: u16, body: Bytes },
}

/// A request whose connection ended before its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Orphan {
    pub(super) object: usize,
    /// Whether any part of a response arrived.
    pub(super) has_response: bool,
}

impl Connection {
    /// A cautious connection sends nothing after its first request before the response. If the previous
    /// connection broke, that request may be the cause, and a reset would destroy the response (RFC 9112,
    /// section 9.3.2).
    pub(super) fn new(plan: &Plan, is_cautious: bool) -> Self {
        let pipelining = plan.shape.pipelining();
        let buffer = pipelining.map(|pipelining| pipelining.buffer);
        Self {
            phase: Phase::Opening,
            reader: ResponseReader::new(plan.limits),
            writes: WriteBuffer::new(WritePolicy { buffer, ..WritePolicy::default() }),
            outstanding: VecDeque::new(),
            unsent: VecDeque::new(),
            pipelining,
            buffered_since: None,
            capacity: plan.shape.requests(),
            depth: plan.shape.outstanding(),
            is_cautious,
            interim_allowed: plan.limits.interim_responses,
            ignores_body_with_headers: plan.ignores_body_with_headers,
        }
    }

    /// Number of requests that wait for their responses.
    pub(super) fn outstanding(&self) -> usize {
        self.outstanding.len()
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

    /// Whether it waits for the server to close.
    pub(super) const fn is_lingering(&self) -> bool {
        match self.phase {
            Phase::Lingering(_) => true,
            Phase::Opening | Phase::Open => false,
        }
    }

    /// Takes a request, which waits in the buffer until a flush, and at least until the connection is open.
    pub(super) fn request(&mut self, now: Time, object: usize, method: &Method, request: &[u8]) {
        self.capacity -= 1;
        self.outstanding.push_back(Exchange {
            object,
            method: method.clone(),
            status: None,
            body: Bytes::ZERO,
            has_response: false,
            interims: 0,
            interim: false,
            persists: false,
        });
        self.unsent.push_back((object, request.len()));
        let total = self.writes.waiting() + request.len();
        self.writes.head(|out| out.extend_from_slice(request));
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

    /// The next write, once the connection is open, and the objects whose requests end in it.
    pub(super) fn take_write(&mut self) -> Option<(Vec<u8>, Vec<usize>)> {
        match self.phase {
            Phase::Opening => None,
            Phase::Open | Phase::Lingering(_) => {
                let write = self.writes.take()?;
                let objects = self.note_sent(write.len());
                Some((write, objects))
            }
        }
    }

    /// Notes that this number of bytes leaves; returns the objects whose requests end in them.
    fn note_sent(&mut self, mut bytes: usize) -> Vec<usize> {
        let mut objects = Vec::new();
        while let Some((object, remaining)) = self.unsent.front_mut() {
            if *remaining > bytes {
                *remaining -= bytes;
                break;
            }
            bytes -= *remaining;
            objects.push(*object);
            self.unsent.pop_front();
        }
        objects
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
                Some(Event::Head(head, _)) => {
                    exchange.interim = head.is_interim();
                    if !exchange.interim {
                        arrivals.push(exchange.begin_response(head));
                        if self.ignores_body_with_headers {
                            input = &[];
                        }
                    } else if exchange.interims == self.interim_allowed {
                        return Err(PeerFault::TooManyInterim);
                    } else {
                        exchange.interims += 1;
                    }
                }
                Some(Event::Body(part)) => {
                    exchange.body += Bytes::new(part.len() as u64);
                    if !exchange.interim {
                        arrivals.push(Arrival::Body { object: exchange.object, part });
                    }
                }
                Some(Event::End) if exchange.interim => {}
                Some(Event::End) => self.complete(now, arrivals),
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
            self.complete(now, arrivals);
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
            |exchange: Exchange| Orphan { object: exchange.object, has_response: exchange.has_response };
        self.outstanding.drain(..).map(orphan).collect()
    }

    fn complete(&mut self, now: Time, arrivals: &mut Vec<Arrival<'_>>) {
        let Some(exchange) = self.outstanding.pop_front() else { return };
        // A body follows its header section, which has a status.
        let Some(status) = exchange.status else { return };
        self.is_cautious = false;
        if !exchange.persists || self.capacity == 0 && self.outstanding.is_empty() {
            self.phase = Phase::Lingering(now);
        }
        arrivals.push(Arrival::Complete { object: exchange.object, status, body: exchange.body });
    }
}

impl Exchange {
    fn begin_response(&mut self, head: ResponseHead) -> Arrival<'static> {
        self.status = Some(head.status);
        self.persists = persists(head.version, &head.fields);
        Arrival::Head { object: self.object, head }
    }
}
