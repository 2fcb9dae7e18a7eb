//! A client's connection while the event loop watches it. That is between requests, during a header section, while a
//! cached or pending response is awaited or written, and while it closes.
//!
//! Requests are read here, and begun in `pipeline`. Polling is done by `event_loop`.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use http1::message::{Event, Limits, PeerFault, RequestHead, RequestReader};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use wire::{Duration, Time};

use super::pipeline::{PipelineState, Stage, begin};
use super::receive_datagram::{PendingRequest, PollOutcome};
use super::{Shared, log_response, write_response};
use crate::cache::streaming_fill::ThreadCache;
use dhttp::counters::count_shared;
use dhttp::log::{Channel, Log};
use dhttp::readiness::Interest;
use dhttp::server::queue::Queue;

/// A program's connection, in any state.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    pub(super) stream: Arc<TcpStream>,
    pub(super) reader: RequestReader,
    /// Bytes received and not read yet: pipelined requests.
    pub(super) unread: Vec<u8>,
    /// Whether the kernel's send timeout is set.
    pub(super) has_send_timeout: bool,
}

impl Connection {
    pub(super) fn new(peer: SocketAddr, stream: TcpStream) -> Self {
        let (stream, reader) = (Arc::new(stream), RequestReader::new(Limits::default()));
        Self { peer, stream, reader, unread: Vec::new(), has_send_timeout: false }
    }
}

/// A connection that is watched.
pub(super) struct WatchedConnection {
    pub(super) connection: Connection,
    /// Bytes that the socket has not accepted yet.
    queue: Queue,
    phase: Phase,
    /// Next step after the unwritten bytes.
    next_action: NextAction,
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

enum NextAction {
    ReadOn,
    Wait,
    Lease(Box<Stage>),
    HangUp,
}

/// Next step of the connection.
pub(super) enum ConnectionStep {
    /// It stays watched.
    Stays,
    /// It is closed.
    Ends,
    /// A thread is to continue with this stage.
    Leases(Box<Stage>),
}

/// Context of the watching thread.
pub(super) struct ConnectionContext<'a> {
    pub(super) now: Time,
    pub(super) shared: &'a Arc<Shared>,
    /// Number of the connection.
    pub(super) number: u64,
    pub(super) cache: Option<&'a mut ThreadCache>,
    /// Buffer for bytes that are sent together; empty.
    pub(super) out: &'a mut Vec<u8>,
    pub(super) log: Option<&'a Log>,
    pub(super) peer: SocketAddr,
}

impl ConnectionContext<'_> {
    /// Counts and logs a response.
    pub(super) fn report(&self, head: &RequestHead, status: u16, bytes: u64, channel: Channel) {
        count_shared(self.shared.counters.responses(channel));
        if let Some(log) = self.log {
            log_response(log, self.peer, head, status, bytes, channel);
        }
    }
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
            next_action: NextAction::ReadOn,
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
    pub(super) fn ready(&mut self, context: &mut ConnectionContext<'_>, buffer: &mut [u8]) -> ConnectionStep {
        if !self.queue.is_empty() {
            return self.write_on(context);
        }
        if self.is_pending() {
            // Without read interest, this event means that the connection broke.
            return if std::mem::replace(&mut self.has_unread, true) {
                ConnectionStep::Ends
            } else {
                ConnectionStep::Stays
            };
        }
        match recv(&*self.connection.stream, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.ended(),
            Ok(_) if matches!(self.phase, Phase::Linger(_)) => ConnectionStep::Stays,
            Ok((length, _)) => self.read_on(context, buffer.get(..length).unwrap_or_default()),
            Err(error) if is_temporary(error.kind()) => ConnectionStep::Stays,
            Err(_) => ConnectionStep::Ends,
        }
    }

    /// Resumes a connection that has returned, perhaps with pipelined requests.
    pub(super) fn resume(&mut self, context: &mut ConnectionContext<'_>) -> ConnectionStep {
        if self.connection.unread.is_empty() {
            return ConnectionStep::Stays;
        }
        let unread = std::mem::take(&mut self.connection.unread);
        self.read_on(context, &unread)
    }

    /// Handles progress of its pending request.
    pub(super) fn poll(&mut self, context: &mut ConnectionContext<'_>) -> ConnectionStep {
        // Without one, the wake-up belonged to an earlier request.
        let Some(pending) = self.pending.take() else { return ConnectionStep::Stays };
        match pending.poll(context) {
            PollOutcome::Pending(pending) => {
                self.pending = Some(pending);
                ConnectionStep::Stays
            }
            PollOutcome::Written(keep_alive) => {
                self.has_unread = false;
                self.next_action = if keep_alive { NextAction::ReadOn } else { NextAction::HangUp };
                let unread = std::mem::take(&mut self.connection.unread);
                self.write_and_read_on(context, &unread)
            }
            PollOutcome::Blocks(stage) => ConnectionStep::Leases(stage),
        }
    }

    /// Handles a timeout, if it has expired.
    pub(super) fn expire(
        &mut self,
        context: &ConnectionContext<'_>,
        timeout: PhaseTimeouts,
    ) -> ConnectionStep {
        if context.now < self.deadline(timeout) {
            return ConnectionStep::Stays;
        }
        match self.phase {
            Phase::Header(_) => ConnectionStep::Leases(refusal(PeerFault::TooSlow)),
            Phase::Writable(_) => {
                count_shared(&context.shared.counters.slow);
                write_response::break_off(&self.connection.stream);
                ConnectionStep::Ends
            }
            Phase::Idle(_) | Phase::Linger(_) => ConnectionStep::Ends,
            Phase::Response => ConnectionStep::Stays,
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

    /// Returns the time since which it only waits for a request or the rest of its header section.
    pub(super) fn idle_since(&self) -> Option<Time> {
        match self.phase {
            Phase::Idle(since) | Phase::Header(since) if !self.is_busy() => Some(since),
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
    fn ended(&self) -> ConnectionStep {
        match self.phase {
            Phase::Header(_) => ConnectionStep::Leases(refusal(PeerFault::Truncated)),
            Phase::Idle(_) | Phase::Response | Phase::Writable(_) | Phase::Linger(_) => ConnectionStep::Ends,
        }
    }

    fn write_on(&mut self, context: &mut ConnectionContext<'_>) -> ConnectionStep {
        match self.queue.write(&self.connection.stream) {
            Ok(written) if written.bytes > 0 => self.phase = Phase::Writable(context.now),
            Ok(_) => {}
            Err(_) => return ConnectionStep::Ends,
        }
        if !self.queue.is_empty() {
            return ConnectionStep::Stays;
        }
        let unread = std::mem::take(&mut self.connection.unread);
        self.read_on(context, &unread)
    }

    /// Serves requests that need no waiting, writes the responses together, and returns the next step.
    fn read_on(&mut self, context: &mut ConnectionContext<'_>, mut input: &[u8]) -> ConnectionStep {
        if matches!(self.next_action, NextAction::ReadOn) {
            self.next_action = self.respond(context, &mut input);
        }
        self.write_and_read_on(context, input)
    }

    fn write_and_read_on(&mut self, context: &mut ConnectionContext<'_>, mut input: &[u8]) -> ConnectionStep {
        loop {
            if self.write(context.out).is_err() {
                return ConnectionStep::Ends;
            }
            if !self.queue.is_empty() {
                self.phase = Phase::Writable(context.now);
                self.connection.unread = input.to_vec();
                return ConnectionStep::Stays;
            }
            match std::mem::replace(&mut self.next_action, NextAction::ReadOn) {
                NextAction::Lease(stage) => {
                    self.connection.unread = input.to_vec();
                    return ConnectionStep::Leases(stage);
                }
                NextAction::HangUp => {
                    let _ = self.connection.stream.shutdown(Shutdown::Write);
                    self.phase = Phase::Linger(context.now);
                    return ConnectionStep::Stays;
                }
                NextAction::Wait => {
                    self.phase = Phase::Response;
                    self.connection.unread = input.to_vec();
                    return self.poll(context);
                }
                NextAction::ReadOn if input.is_empty() => break,
                NextAction::ReadOn => self.next_action = self.respond(context, &mut input),
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
        ConnectionStep::Stays
    }

    /// Reads and serves requests until all input is read, enough is to be written, or a task or pending request takes over.
    fn respond(&mut self, context: &mut ConnectionContext<'_>, input: &mut &[u8]) -> NextAction {
        while self.queue.is_empty() && context.out.len() < MAX_GATHERED_BYTES {
            match self.connection.reader.read(input) {
                Ok(Some(Event::Head(head, framing))) => {
                    match begin(context, &mut self.queue, head, framing) {
                        PipelineState::Written(keep_alive) => {
                            self.connection.skip_end();
                            if !keep_alive {
                                return NextAction::HangUp;
                            }
                        }
                        PipelineState::Pending(pending) => {
                            self.connection.skip_end();
                            self.pending = Some(pending);
                            return NextAction::Wait;
                        }
                        PipelineState::Blocks(stage) => return NextAction::Lease(stage),
                    }
                }
                // Only requests without a body are begun here: this is their end.
                Ok(Some(Event::Body(_) | Event::End)) => {}
                Ok(None) => break,
                Err(fault) => return NextAction::Lease(refusal(fault)),
            }
        }
        NextAction::ReadOn
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

impl Connection {
    /// Reads the end of a request without a body, which needs no more bytes.
    pub(super) fn skip_end(&mut self) {
        let mut no_input: &[u8] = &[];
        // Without input the reader can only report the end of the message.
        let _ = self.reader.read(&mut no_input);
    }
}

/// Returns the stage that refuses an invalid request.
fn refusal(fault: PeerFault) -> Box<Stage> {
    Box::new(Stage::Refuse(None, fault.status(), fault.to_string()))
}

fn is_temporary(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
