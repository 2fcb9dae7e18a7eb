//! A client's connection while the event loop watches it. That is between requests, during a header section, while a
//! cached or pending response is awaited or written, and while it closes.
//!
//! Requests are read here, and begun in `pipeline`. Polling is done by `event_loop`.

use std::io;
use std::net::Shutdown;

use http1::message::{Event, PeerFault};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use wire::{Duration, Time};

use super::connection::{Connection, ConnectionContext};
use super::pipeline::begin;
use super::receive_datagram::PendingRequest;
use super::stage::{Next, Stage};
use super::write_response;
use dhttp::counters::count_shared;
use dhttp::readiness::Interest;
use dhttp::server::queue::Queue;

/// A connection that is watched.
pub(super) struct WatchedConnection {
    pub(super) connection: Connection,
    /// Bytes that the socket has not accepted yet.
    queue: Queue,
    phase: Phase,
    /// Next step after the unwritten bytes.
    next: Next,
    /// Pending request for it.
    pending: Option<Box<PendingRequest>>,
    /// Whether bytes arrived meanwhile, which are read once the response is written.
    has_unread: bool,
    /// Events registered with the poller.
    pub(super) watched: Interest,
}

/// The awaited event, and the start of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A request.
    Idle(Time),
    /// The rest of its header section.
    Header(Time),
    /// A response.
    Response,
    /// Buffer space of the socket: the client is to read.
    Writable(Time),
    /// The program's close, after ours. A reset would discard the last bytes sent (RFC 9112, section 9.6).
    Linger(Time),
}

/// Timeouts of the phases.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseTimeouts {
    pub(super) idle: Duration,
    pub(super) silent: Duration,
}

/// Timeout for the client's close after ours.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum bytes of responses that are gathered for one write.
const MAX_GATHERED_BYTES: usize = 64 << 10;

impl WatchedConnection {
    /// Creates one for a connection that was accepted, or returned by a thread.
    pub(super) fn new(now: Time, connection: Connection) -> Self {
        Self {
            connection,
            queue: Queue::default(),
            phase: Phase::Idle(now),
            next: Next::ReadOn,
            pending: None,
            has_unread: false,
            watched: Interest::IN,
        }
    }

    /// Creates one whose last bytes have been sent.
    pub(super) fn ending(now: Time, connection: Connection) -> Self {
        let _ = connection.stream.shutdown(Shutdown::Write);
        Self { phase: Phase::Linger(now), ..Self::new(now, connection) }
    }

    /// Handles a readable or writable socket.
    pub(super) fn ready(&mut self, context: &mut ConnectionContext<'_>, buffer: &mut [u8]) -> Next {
        if !self.queue.is_empty() {
            return self.write_on(context);
        }
        if self.is_pending() {
            // Without read interest, this event means that the connection broke.
            return if std::mem::replace(&mut self.has_unread, true) { Next::Close } else { Next::Wait };
        }
        match recv(&*self.connection.stream, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.ended(),
            Ok(_) if matches!(self.phase, Phase::Linger(_)) => Next::Wait,
            Ok((length, _)) => self.read_on(context, buffer.get(..length).unwrap_or_default()),
            Err(error) if is_temporary(error.kind()) => Next::Wait,
            Err(_) => Next::Close,
        }
    }

    /// Resumes a connection that has returned, perhaps with pipelined requests.
    pub(super) fn resume(&mut self, context: &mut ConnectionContext<'_>) -> Next {
        if self.connection.unread.is_empty() {
            return Next::Wait;
        }
        let unread = std::mem::take(&mut self.connection.unread);
        self.read_on(context, &unread)
    }

    /// Handles progress of its pending request.
    pub(super) fn poll(&mut self, context: &mut ConnectionContext<'_>) -> Next {
        // Without one, the wake-up belonged to an earlier request.
        let next = PendingRequest::poll(&mut self.pending, context);
        if self.pending.is_some() || !matches!(next, Next::ReadOn | Next::HangUp) {
            return next;
        }
        self.has_unread = false;
        self.next = next;
        let unread = std::mem::take(&mut self.connection.unread);
        self.write_and_read_on(context, &unread)
    }

    /// Handles a timeout, if it has expired.
    pub(super) fn expire(&mut self, context: &ConnectionContext<'_>, timeout: PhaseTimeouts) -> Next {
        if context.now < self.deadline(timeout) {
            return Next::Wait;
        }
        match self.phase {
            Phase::Header(_) => Next::Lease(refusal(PeerFault::TooSlow)),
            Phase::Writable(_) => {
                count_shared(&context.shared.counters.slow);
                write_response::break_off(&self.connection.stream);
                Next::Close
            }
            Phase::Idle(_) | Phase::Linger(_) => Next::Close,
            Phase::Response => Next::Wait,
        }
    }

    /// Returns the time of the timeout.
    pub(super) fn deadline(&self, timeout: PhaseTimeouts) -> Time {
        match self.phase {
            Phase::Idle(since) => since + timeout.idle,
            Phase::Header(since) | Phase::Writable(since) => since + timeout.silent,
            Phase::Linger(since) => since + LINGER_TIMEOUT,
            // The pending request has its own timeouts.
            Phase::Response => Time::MAX,
        }
    }

    /// Returns the time since which it only waits for a request, the rest of its header section, or the client's close.
    pub(super) fn idle_since(&self) -> Option<Time> {
        match self.phase {
            Phase::Idle(since) | Phase::Header(since) | Phase::Linger(since) if !self.is_busy() => {
                Some(since)
            }
            Phase::Idle(_) | Phase::Header(_) | Phase::Response | Phase::Writable(_) | Phase::Linger(_) => {
                None
            }
        }
    }

    /// Whether an exchange is in progress.
    pub(super) fn is_busy(&self) -> bool {
        !self.queue.is_empty() || self.pending.is_some()
    }

    pub(super) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns the events to watch.
    pub(super) fn interest(&self) -> Interest {
        if !self.queue.is_empty() {
            Interest::OUT
        } else if self.is_pending() && self.has_unread {
            // Only a break.
            Interest::empty()
        } else {
            Interest::IN
        }
    }

    /// Handles the end of the program's stream.
    fn ended(&self) -> Next {
        match self.phase {
            Phase::Header(_) => Next::Lease(refusal(PeerFault::Truncated)),
            Phase::Idle(_) | Phase::Response | Phase::Writable(_) | Phase::Linger(_) => Next::Close,
        }
    }

    fn write_on(&mut self, context: &mut ConnectionContext<'_>) -> Next {
        match self.queue.write(&self.connection.stream) {
            Ok(written) if written.bytes > 0 => self.phase = Phase::Writable(context.now),
            Ok(_) => {}
            Err(_) => return Next::Close,
        }
        if !self.queue.is_empty() {
            return Next::Wait;
        }
        let unread = std::mem::take(&mut self.connection.unread);
        self.read_on(context, &unread)
    }

    /// Serves requests that need no waiting, writes the responses together, and returns the next step.
    fn read_on(&mut self, context: &mut ConnectionContext<'_>, mut input: &[u8]) -> Next {
        if matches!(self.next, Next::ReadOn) {
            self.next = self.respond(context, &mut input);
        }
        self.write_and_read_on(context, input)
    }

    fn write_and_read_on(&mut self, context: &mut ConnectionContext<'_>, mut input: &[u8]) -> Next {
        loop {
            if self.write(context.out).is_err() {
                return Next::Close;
            }
            if !self.queue.is_empty() {
                self.phase = Phase::Writable(context.now);
                self.connection.unread = input.to_vec();
                return Next::Wait;
            }
            match std::mem::replace(&mut self.next, Next::ReadOn) {
                next @ (Next::Lease(_) | Next::Close) => {
                    self.connection.unread = input.to_vec();
                    return next;
                }
                Next::HangUp => {
                    let _ = self.connection.stream.shutdown(Shutdown::Write);
                    self.phase = Phase::Linger(context.now);
                    return Next::Wait;
                }
                Next::Wait => {
                    self.phase = Phase::Response;
                    self.connection.unread = input.to_vec();
                    return self.poll(context);
                }
                Next::ReadOn if input.is_empty() => break,
                Next::ReadOn => self.next = self.respond(context, &mut input),
            }
        }
        let is_between = self.connection.reader.is_between_messages();
        self.phase = match self.phase {
            Phase::Idle(_) | Phase::Header(_) | Phase::Response | Phase::Writable(_) | Phase::Linger(_)
                if is_between =>
            {
                Phase::Idle(context.now)
            }
            // A header section that comes byte by byte has the same timeout as one that comes whole.
            Phase::Header(since) => Phase::Header(since),
            Phase::Idle(_) | Phase::Response | Phase::Writable(_) | Phase::Linger(_) => {
                Phase::Header(context.now)
            }
        };
        Next::Wait
    }

    /// Reads and serves requests until all input is read, enough is to be written, or a task or pending request takes over.
    fn respond(&mut self, context: &mut ConnectionContext<'_>, input: &mut &[u8]) -> Next {
        while self.queue.is_empty() && context.out.len() < MAX_GATHERED_BYTES {
            match self.connection.reader.read(input) {
                Ok(Some(Event::Head(head, framing))) => {
                    self.connection.has_requested = true;
                    let next = begin(context, &mut self.queue, head, framing, &mut self.pending);
                    if !matches!(next, Next::Lease(_)) {
                        self.connection.skip_end();
                    }
                    if !matches!(next, Next::ReadOn) {
                        return next;
                    }
                }
                // Only requests without a body are begun here: this is their end.
                Ok(Some(Event::Body(_) | Event::End)) => {}
                Ok(None) => break,
                Err(fault) => return Next::Lease(refusal(fault)),
            }
        }
        Next::ReadOn
    }

    /// Writes the gathered bytes, and queues those that the socket does not accept.
    fn write(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let stream = &*self.connection.stream;
        if self.queue.is_empty() && !out.is_empty() {
            let sent = match send(stream, out, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => sent,
                Err(error) if is_temporary(error.kind()) => 0,
                Err(error) => return Err(error.into()),
            };
            if let Some(rest) = out.get(sent..).filter(|rest| !rest.is_empty()) {
                self.queue.push_bytes(rest.to_vec());
            }
            out.clear();
            return Ok(());
        }
        if !out.is_empty() {
            self.queue.push_bytes(std::mem::take(out));
        }
        self.queue.write(stream).map(drop)
    }
}

/// Returns the stage that refuses an invalid request.
fn refusal(fault: PeerFault) -> Box<Stage> {
    Box::new(Stage::Refuse(None, fault.status(), fault.to_string()))
}

fn is_temporary(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
