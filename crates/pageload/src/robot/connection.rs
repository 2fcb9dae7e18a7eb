//! One of a robot's connections: requests out, their answers in, in order.
//!
//! Not the page: what becomes of an object whose connection failed is decided in [`super::Robot`].

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
    /// Sent, or to be sent once the connection is open; answered in this order.
    outstanding: VecDeque<Exchange>,
    /// Requests that have not left, or not wholly: the object, and how many bytes of it are still here.
    unsent: VecDeque<(usize, usize)>,
    /// When requests wait for one another; `None`: each is a write of its own.
    pipelining: Option<Pipelining>,
    /// Since when the oldest of what waits in the buffer does.
    buffered_since: Option<Time>,
    /// Requests it may still take.
    room: usize,
    /// Requests it may have outstanding.
    depth: usize,
    /// Whether nothing may follow the first request before it is answered.
    is_cautious: bool,
    /// Interim responses that may come before a final one.
    interim_allowed: usize,
}

/// Where in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Asked for.
    Opening,
    Open,
    /// It has carried its last answer; the server's end of the stream is awaited since then.
    Lingering(Time),
}

/// A request and what of its answer has come.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Exchange {
    object: usize,
    method: Method,
    /// Of the final response.
    status: Option<u16>,
    body: Bytes,
    /// Whether anything of an answer came, an interim one included.
    answered: bool,
    /// Interim responses that came.
    interims: usize,
    /// Whether the message that is coming in is one of them.
    interim: bool,
    /// Whether the connection stays after the answer.
    persists: bool,
}

/// What came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrival<'a> {
    Head { object: usize, head: ResponseHead },
    Body { object: usize, part: &'a [u8] },
    Complete { object: usize, status: u16, body: Bytes },
}

/// A request that a connection leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Orphan {
    pub(super) object: usize,
    /// Whether anything of an answer came.
    pub(super) answered: bool,
}

impl Connection {
    /// A cautious one sends nothing behind its first request before that is answered: where the connection before
    /// broke, that request may be the cause, and a reset would destroy the answer (RFC 9112, section 9.3.2).
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
            room: plan.shape.requests(),
            depth: plan.shape.outstanding(),
            is_cautious,
            interim_allowed: plan.limits.interim_responses,
        }
    }

    /// Requests that wait for their answers.
    pub(super) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Whether it can take this request. What is not safe travels alone: nobody could say what became of it, or of
    /// what came behind it (RFC 9112, section 9.3.2).
    pub(super) fn has_room_for(&self, method: &Method) -> bool {
        let depth = if self.is_cautious || !method.is_safe() { 1 } else { self.depth };
        let is_free = self.outstanding.back().is_none_or(|before| before.method.is_safe());
        match self.phase {
            Phase::Opening | Phase::Open => self.room > 0 && self.outstanding.len() < depth && is_free,
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

    /// Takes a request; it waits in the buffer until a flush, and at least until the connection is open.
    pub(super) fn request(&mut self, now: Time, object: usize, method: &Method, request: &[u8]) {
        self.room -= 1;
        self.outstanding.push_back(Exchange {
            object,
            method: method.clone(),
            status: None,
            body: Bytes::ZERO,
            answered: false,
            interims: 0,
            interim: false,
            persists: false,
        });
        self.unsent.push_back((object, request.len()));
        let all = self.writes.waiting() + request.len();
        self.writes.head(|out| out.extend_from_slice(request));
        match self.writes.waiting() {
            _ if self.pipelining.is_none() => self.flush(),
            0 => self.buffered_since = None,
            left if left < all => self.buffered_since = Some(now),
            _ => self.buffered_since = self.buffered_since.or(Some(now)),
        }
    }

    /// Lets go of the requests that wait in the buffer.
    pub(super) fn flush(&mut self) {
        self.writes.flush();
        self.buffered_since = None;
    }

    /// When the buffer is to be flushed, full or not.
    pub(super) fn flush_time(&self) -> Option<Time> {
        Some(self.buffered_since? + self.pipelining?.flush_after)
    }

    /// The connection is there.
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
                let objects = self.sent(write.len());
                Some((write, objects))
            }
        }
    }

    /// So many bytes leave: the objects whose requests end in them.
    fn sent(&mut self, mut bytes: usize) -> Vec<usize> {
        let mut objects = Vec::new();
        while let Some((object, left)) = self.unsent.front_mut() {
            if *left > bytes {
                *left -= bytes;
                break;
            }
            bytes -= *left;
            objects.push(*object);
            self.unsent.pop_front();
        }
        objects
    }

    /// When it is to be closed whether the server has or not.
    pub(super) fn deadline(&self, linger: Duration) -> Option<Time> {
        match self.phase {
            Phase::Lingering(since) => Some(since + linger),
            Phase::Opening | Phase::Open => None,
        }
    }

    /// Takes what the server sent; what arrived before a fault is told all the same.
    pub(super) fn receive<'a>(
        &mut self,
        now: Time,
        mut input: &'a [u8],
        arrivals: &mut Vec<Arrival<'a>>,
    ) -> Result<(), PeerFault> {
        loop {
            let Some(exchange) = self.outstanding.front_mut().filter(|_| self.phase == Phase::Open) else {
                return if input.is_empty() { Ok(()) } else { Err(PeerFault::Unasked) };
            };
            exchange.answered |= !input.is_empty();
            match self.reader.read(&mut input, &exchange.method)? {
                None => return Ok(()),
                Some(Event::Head(head, _)) => {
                    exchange.interim = head.is_interim();
                    if !exchange.interim {
                        arrivals.push(exchange.answered_by(head));
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

    /// The stream ended: a body without a length is complete with it.
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

    /// The requests it leaves behind, in the order they were made.
    pub(super) fn into_orphans(mut self) -> Vec<Orphan> {
        self.take_outstanding()
    }

    /// The requests behind an answer that says it is the last: the server has not acted on them, and will not
    /// (RFC 9112, section 9.6).
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
        let orphan = |exchange: Exchange| Orphan { object: exchange.object, answered: exchange.answered };
        self.outstanding.drain(..).map(orphan).collect()
    }

    fn complete(&mut self, now: Time, arrivals: &mut Vec<Arrival<'_>>) {
        let Some(exchange) = self.outstanding.pop_front() else { return };
        // A body comes behind its head, and the head has a status.
        let Some(status) = exchange.status else { return };
        self.is_cautious = false;
        if !exchange.persists || self.room == 0 && self.outstanding.is_empty() {
            self.phase = Phase::Lingering(now);
        }
        arrivals.push(Arrival::Complete { object: exchange.object, status, body: exchange.body });
    }
}

impl Exchange {
    fn answered_by(&mut self, head: ResponseHead) -> Arrival<'static> {
        self.status = Some(head.status);
        self.persists = persists(head.version, &head.fields);
        Arrival::Head { object: self.object, head }
    }
}
