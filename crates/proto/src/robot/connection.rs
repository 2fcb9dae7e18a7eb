//! One of a robot's connections: requests out, their answers in, in order.
//!
//! Not the page: what becomes of an object whose connection failed is decided in [`super::Robot`].

use std::collections::VecDeque;

use wire::{Bytes, Duration, Time};

use crate::http::write::WriteBuffer;
use crate::http::{Event, Method, PeerFault, ResponseHead, ResponseReader, persists};

use super::plan::Plan;

/// A connection and the requests it carries.
#[derive(Debug)]
pub(super) struct Connection {
    phase: Phase,
    reader: ResponseReader,
    writes: WriteBuffer,
    /// Sent, or to be sent once the connection is open; answered in this order.
    outstanding: VecDeque<Exchange>,
    /// Objects whose requests wait in the buffer.
    unsent: Vec<usize>,
    /// Requests it may still take.
    room: usize,
    /// Requests it may have outstanding.
    depth: usize,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Head { object: usize, status: u16 },
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
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            phase: Phase::Opening,
            reader: ResponseReader::new(plan.limits),
            writes: WriteBuffer::default(),
            outstanding: VecDeque::new(),
            unsent: Vec::new(),
            room: plan.shape.requests(),
            depth: plan.shape.outstanding(),
            interim_allowed: plan.limits.interim_responses,
        }
    }

    /// Requests that wait for their answers.
    pub(super) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Whether it can take another request.
    pub(super) fn has_room(&self) -> bool {
        match self.phase {
            Phase::Opening | Phase::Open => self.room > 0 && self.outstanding.len() < self.depth,
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
    pub(super) fn request(&mut self, object: usize, method: &Method, request: &[u8]) {
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
        self.unsent.push(object);
        self.writes.head(|out| out.extend_from_slice(request));
        self.writes.flush();
    }

    /// The connection is there.
    pub(super) fn open(&mut self) {
        if self.phase == Phase::Opening {
            self.phase = Phase::Open;
        }
    }

    /// The next write, once the connection is open, and the objects whose requests leave with it.
    pub(super) fn take_write(&mut self) -> Option<(Vec<u8>, Vec<usize>)> {
        match self.phase {
            Phase::Opening => None,
            Phase::Open | Phase::Lingering(_) => {
                Some((self.writes.take()?, std::mem::take(&mut self.unsent)))
            }
        }
    }

    /// When it is to be closed whether the server has or not.
    pub(super) fn deadline(&self, linger: Duration) -> Option<Time> {
        match self.phase {
            Phase::Lingering(since) => Some(since + linger),
            Phase::Opening | Phase::Open => None,
        }
    }

    /// Takes what the server sent; what arrived before a fault is told all the same.
    pub(super) fn receive(
        &mut self,
        now: Time,
        mut input: &[u8],
        arrivals: &mut Vec<Arrival>,
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
                        arrivals.push(exchange.answered_by(&head));
                    } else if exchange.interims == self.interim_allowed {
                        return Err(PeerFault::TooManyInterim);
                    } else {
                        exchange.interims += 1;
                    }
                }
                Some(Event::Body(part)) => exchange.body += Bytes::new(part.len() as u64),
                Some(Event::End) if exchange.interim => {}
                Some(Event::End) => self.complete(now, arrivals),
            }
        }
    }

    /// The stream ended: a body without a length is complete with it.
    pub(super) fn end_of_stream(&mut self, now: Time, arrivals: &mut Vec<Arrival>) -> Result<(), PeerFault> {
        if self.reader.end_of_stream()? {
            self.complete(now, arrivals);
        }
        Ok(())
    }

    /// The requests it leaves behind, in the order they were made.
    pub(super) fn into_orphans(self) -> Vec<Orphan> {
        let orphan = |exchange: Exchange| Orphan { object: exchange.object, answered: exchange.answered };
        self.outstanding.into_iter().map(orphan).collect()
    }

    fn complete(&mut self, now: Time, arrivals: &mut Vec<Arrival>) {
        let Some(exchange) = self.outstanding.pop_front() else { return };
        // A body comes behind its head, and the head has a status.
        let Some(status) = exchange.status else { return };
        if !exchange.persists || self.room == 0 && self.outstanding.is_empty() {
            self.phase = Phase::Lingering(now);
        }
        arrivals.push(Arrival::Complete { object: exchange.object, status, body: exchange.body });
    }
}

impl Exchange {
    fn answered_by(&mut self, head: &ResponseHead) -> Arrival {
        self.status = Some(head.status);
        self.persists = persists(head.version, &head.fields);
        Arrival::Head { object: self.object, status: head.status }
    }
}
