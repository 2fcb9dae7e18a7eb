//! An HTTP/1 connection that a user opened: requests written, responses read, in their order.
//!
//! Bodies are counted and discarded.

pub(crate) mod transport;

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

use http1::client::{Event, Responses};
use http1::message::{Limits, Method};
use rustix::event::epoll::EventFlags;
use wire::{Duration, Time};

use self::transport::{Connector, Transport};
use crate::evidence::{Evidence, Total};
use crate::gauge::{Gauge, GaugeGuard};
use crate::record::FailureReason;

/// Linux's timeout of a SYN, a second (TCP_TIMEOUT_INIT in include/net/tcp.h), less the clock's tick.
const SYN_TIMEOUT: Duration = Duration::from_millis(980);

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// Its index in the job.
    pub(crate) number: u32,
    pub(crate) is_conditional: bool,
    /// Whether its response has no body, whatever its fields say (HEAD).
    pub(crate) is_head: bool,
    /// Whether it may be retried on another connection.
    pub(crate) may_repeat: bool,
    /// Scheduled time.
    pub(crate) intended: Time,
    /// Time at which it was sent, or its connection was opened.
    pub(crate) sent: Time,
    /// Whether it is a retry, after a connection that turned out to be closed.
    pub(crate) is_retry: bool,
}

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The bytes of its body.
    pub(crate) bytes: u64,
}

/// Outcome of a request on a connection.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The response is complete, or the request failed.
    Done(Pending, Result<Response, FailureReason>),
    /// The connection was closed before the request could be read: to be retried on another.
    Retry(Pending),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Http1Connection {
    transport: Transport,
    is_open: bool,
    out: Vec<u8>,
    sent: usize,
    reader: Responses,
    requested: VecDeque<Pending>,
    /// The response being received.
    incoming: IncomingResponse,
    /// Number of complete responses.
    responses: u64,
    /// Time of the SYN.
    opened: Time,
    /// Times that are not in the evidence yet: until it was open, and until header sections of responses came.
    connected_after: Option<Duration>,
    first_bytes: Total,
    /// Time since which it is idle.
    idle: Option<Time>,
    /// Events registered with epoll.
    listened: EventFlags,
    /// Counts the connection as open.
    _open: GaugeGuard,
}

#[derive(Clone, Copy, Debug, Default)]
struct IncomingResponse {
    status: u16,
    received: u64,
}

impl Http1Connection {
    /// Opens a connection; with Fast Open, and where the kernel has the server's cookie, its first bytes leave with the SYN.
    pub(crate) fn open(now: Time, connector: &Connector, open: &Gauge) -> io::Result<Self> {
        Ok(Self {
            transport: connector.open()?,
            is_open: false,
            out: Vec::new(),
            sent: 0,
            reader: Responses::new(Limits::default()),
            requested: VecDeque::new(),
            incoming: IncomingResponse::default(),
            responses: 0,
            opened: now,
            connected_after: None,
            first_bytes: Total::default(),
            idle: None,
            listened: EventFlags::IN | EventFlags::OUT,
            _open: open.open(),
        })
    }

    /// Number of requests without a response.
    pub(crate) fn requested(&self) -> usize {
        self.requested.len()
    }

    /// Time at which the oldest of them was sent.
    pub(crate) fn oldest(&self) -> Option<Time> {
        self.requested.front().map(|pending| pending.sent)
    }

    /// Time since which it is idle.
    pub(crate) fn idle(&self) -> Option<Time> {
        self.idle
    }

    /// Sends a request; bytes that the kernel does not accept now wait. Returns `false` if the connection is broken.
    pub(crate) fn send_request(&mut self, pending: Pending, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.requested.push_back(pending);
        self.idle = None;
        write(&mut self.out);
        !self.is_open || self.flush().is_ok()
    }

    /// Whether its first request has no response yet.
    pub(crate) fn is_unserved(&self) -> bool {
        self.responses == 0 && !self.requested.is_empty()
    }

    /// Moves its times into the evidence.
    pub(crate) fn report(&mut self, evidence: &mut Evidence) {
        if let Some(after) = self.connected_after.take() {
            evidence.connect.add(after);
            evidence.slow_connects += u64::from(after >= SYN_TIMEOUT);
        }
        evidence.first_byte.merge(std::mem::take(&mut self.first_bytes));
    }

    /// Events to wait for.
    pub(crate) fn interest(&self) -> EventFlags {
        if self.is_open && !self.transport.wants_writable(self.out.len() - self.sent) {
            EventFlags::IN
        } else {
            EventFlags::IN | EventFlags::OUT
        }
    }

    /// Events to wait for, if they changed.
    pub(crate) fn new_interest(&mut self) -> Option<EventFlags> {
        let wanted = self.interest();
        (std::mem::replace(&mut self.listened, wanted) != wanted).then_some(wanted)
    }

    /// Reads and writes what it can. Returns `false` if the connection is closed; the outcomes of its requests are in
    /// `outcomes`.
    pub(crate) fn ready(&mut self, now: Time, buffer: &mut [u8], outcomes: &mut Vec<Outcome>) -> bool {
        if !self.is_open {
            match self.transport.take_error() {
                Ok(None) => {
                    self.is_open = true;
                    self.connected_after = Some(now.since(self.opened));
                }
                Ok(Some(_)) | Err(_) => {
                    self.fail(FailureReason::Refused, outcomes);
                    return false;
                }
            }
        }
        let is_written = self.flush().is_ok();
        // Data received before the connection broke counts.
        let is_open = self.read(now, buffer, outcomes) && (is_written || self.broken(outcomes));
        if self.requested.is_empty() {
            self.idle.get_or_insert(now);
        }
        is_open
    }

    /// Fails all requests in flight for this reason.
    pub(crate) fn fail(&mut self, reason: FailureReason, outcomes: &mut Vec<Outcome>) {
        outcomes.extend(self.requested.drain(..).map(|pending| Outcome::Done(pending, Err(reason))));
    }

    /// Handles a close by the server: requests that it may not have read are retried once. Always returns `false`.
    pub(crate) fn broken(&mut self, outcomes: &mut Vec<Outcome>) -> bool {
        let has_begun = !self.reader.is_between_responses();
        for (index, pending) in self.requested.drain(..).enumerate() {
            // On a connection without any response the close is the outcome; the same within a response.
            let is_lost =
                (index == 0 && has_begun) || self.responses == 0 || pending.is_retry || !pending.may_repeat;
            outcomes.push(match is_lost {
                true => Outcome::Done(pending, Err(FailureReason::Closed)),
                false => Outcome::Retry(Pending { is_retry: true, ..pending }),
            });
        }
        false
    }

    fn flush(&mut self) -> io::Result<()> {
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.transport.send(rest) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        match self.transport.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Reads once, with TLS a record: epoll reports the rest. Otherwise a fast server would occupy this thread.
    fn read(&mut self, now: Time, buffer: &mut [u8], outcomes: &mut Vec<Outcome>) -> bool {
        loop {
            let is_open = match self.transport.receive(buffer) {
                Ok(0) => self.ended(outcomes),
                Ok(length) => self.take(now, buffer.get(..length).unwrap_or_default(), outcomes),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => true,
                Err(_) => self.broken(outcomes),
            };
            if !is_open || !self.transport.has_received() {
                return is_open;
            }
        }
    }

    fn take(&mut self, now: Time, mut bytes: &[u8], outcomes: &mut Vec<Outcome>) -> bool {
        loop {
            let method = match self.requested.front() {
                Some(pending) if pending.is_head => &Method::Head,
                Some(_) | None => &Method::Get,
            };
            match self.reader.read(&mut bytes, method) {
                Ok(None) => return true,
                // An unsolicited response is an error.
                Ok(Some(_)) if self.requested.is_empty() => return false,
                Ok(Some(Event::Interim(_))) => {}
                Ok(Some(Event::Head(head, _))) => {
                    self.incoming = IncomingResponse { status: head.status, received: 0 };
                    if let Some(pending) = self.requested.front() {
                        self.first_bytes.add(now.since(pending.sent));
                    }
                }
                Ok(Some(Event::Body(body))) => self.incoming.received += body.len() as u64,
                Ok(Some(Event::End { persists })) => {
                    self.done(outcomes);
                    if !persists {
                        return self.broken(outcomes);
                    }
                }
                Err(_) => {
                    self.fail(FailureReason::Garbage, outcomes);
                    return false;
                }
            }
        }
    }

    fn done(&mut self, outcomes: &mut Vec<Outcome>) {
        self.responses += 1;
        let IncomingResponse { status, received: bytes } = self.incoming;
        let done = |pending: Pending| Outcome::Done(pending, Ok(Response { status, bytes }));
        outcomes.extend(self.requested.pop_front().map(done));
    }

    /// Handles the end of the stream.
    fn ended(&mut self, outcomes: &mut Vec<Outcome>) -> bool {
        if self.reader.end_of_stream() == Ok(true) {
            self.done(outcomes);
        }
        self.broken(outcomes)
    }
}

impl AsFd for Http1Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport.as_fd()
    }
}
