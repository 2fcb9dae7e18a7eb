//! A program's connection while the event loop watches it: between two requests, during a header section, while a cached or
//! pending response is awaited or written, and at its end.
//!
//! Cached responses are served here, immediately; other requests go to a thread (`blocking_exchange`). Polling is done by
//! `event_loop`.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use http1::gateway::{self, Forward, Plan, Refusal};
use http1::message::{Event, Framing, Limits, PeerFault, RequestHead, RequestReader, Version};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use wire::{Duration, Time};

use super::Shared;
use super::pending_request::{
    IncomingResponse, PendingExchange, PendingRequest, PollOutcome, WrittenResponse,
};
use super::reply::{self, ReplyContext};
use crate::cache::streaming_fill::{StreamingFill, ThreadCache};
use dhttp::handler::{Body, Response};
use dhttp::log::Channel;
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
    pub(super) is_patient: bool,
}

impl Connection {
    pub(super) fn new(peer: SocketAddr, stream: TcpStream) -> Self {
        let (stream, reader) = (Arc::new(stream), RequestReader::new(Limits::default()));
        Self { peer, stream, reader, unread: Vec::new(), is_patient: false }
    }
}

/// Task for a thread that may block.
pub(super) enum BlockingTask {
    /// Respond to a request by this plan.
    Request(RequestHead, Framing, Result<Plan, Refusal>),
    /// Send this response, a part of which is in a file.
    Kept(RequestHead, Response),
    /// Refuse an invalid request.
    Fault(PeerFault),
    /// Forward a response as it arrives.
    Coming(IncomingResponse),
    /// Retry: the response was about another representation.
    Again(RequestHead, Forward, Box<StreamingFill>),
    /// Respond to a failed request, with an error or a stored response.
    Failed(RequestHead, Option<Box<StreamingFill>>, String),
}

impl BlockingTask {
    /// Whether the task starts a new exchange.
    pub(super) const fn is_first(&self) -> bool {
        match self {
            Self::Request(..) | Self::Fault(_) => true,
            Self::Kept(..) | Self::Coming(_) | Self::Again(..) | Self::Failed(..) => false,
        }
    }
}

/// A connection that is watched.
pub(super) struct WatchedConnection {
    pub(super) connection: Connection,
    /// Bytes that the socket has not accepted yet.
    queue: Queue,
    phase: Phase,
    /// Next step after the unwritten bytes.
    then: NextAction,
    /// Pending request for it.
    asking: Option<Box<PendingRequest>>,
    /// Whether bytes arrived meanwhile, which are read once the response is written.
    is_overheard: bool,
    /// Events registered with epoll.
    pub(super) watched: Interest,
}

/// Events watched on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    /// Readable.
    In,
    /// Writable.
    Out,
    /// Broken only.
    Breaking,
}

/// The awaited event, and since when it is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A request.
    Idle(Time),
    /// The rest of its header section.
    Head(Time),
    /// A response.
    Asking,
    /// Writability: the program is to read.
    Room(Time),
    /// The program's close, after ours. A reset would discard the last bytes sent (RFC 9112, section 9.6).
    Linger(Time),
}

enum NextAction {
    ReadOn,
    Wait,
    Call(Box<BlockingTask>),
    HangUp,
}

/// Next step of the connection.
pub(super) enum ConnectionStep {
    /// It stays watched.
    Stays,
    /// It is closed.
    Ends,
    /// A thread is to do this task.
    Lends(Box<BlockingTask>),
}

/// Context that it needs of the watching thread.
pub(super) struct ConnectionContext<'a> {
    pub(super) now: Time,
    pub(super) shared: &'a Arc<Shared>,
    /// Number of the connection.
    pub(super) number: u64,
    pub(super) quick: Option<&'a mut ThreadCache>,
    /// Buffer for bytes that are sent together; empty.
    pub(super) out: &'a mut Vec<u8>,
    /// Callback that counts and logs each response.
    pub(super) reported: &'a mut dyn FnMut(SocketAddr, &RequestHead, u16, u64, Channel),
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
const TOGETHER: usize = 64 << 10;
/// A body up to this length is copied behind its header section.
const COPIED: usize = 16 << 10;

impl WatchedConnection {
    /// Creates one for a connection that was accepted or has returned.
    pub(super) fn new(now: Time, connection: Connection) -> Self {
        Self {
            connection,
            queue: Queue::default(),
            phase: Phase::Idle(now),
            then: NextAction::ReadOn,
            asking: None,
            is_overheard: false,
            watched: Interest::In,
        }
    }

    /// Creates one whose last bytes have been sent.
    pub(super) fn ending(now: Time, connection: Connection) -> Self {
        let _ = connection.stream.shutdown(Shutdown::Write);
        Self { phase: Phase::Linger(now), ..Self::new(now, connection) }
    }

    /// Handles a readable or writable socket.
    pub(super) fn ready(&mut self, around: &mut ConnectionContext<'_>, buffer: &mut [u8]) -> ConnectionStep {
        if !self.queue.is_empty() {
            return self.write_on(around);
        }
        if self.is_asking() {
            // While reading is not watched, this event means that it broke.
            return if std::mem::replace(&mut self.is_overheard, true) {
                ConnectionStep::Ends
            } else {
                ConnectionStep::Stays
            };
        }
        match recv(&*self.connection.stream, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.ended(),
            Ok(_) if matches!(self.phase, Phase::Linger(_)) => ConnectionStep::Stays,
            Ok((length, _)) => self.read_on(around, buffer.get(..length).unwrap_or_default()),
            Err(error) if is_temporary(error.kind()) => ConnectionStep::Stays,
            Err(_) => ConnectionStep::Ends,
        }
    }

    /// Resumes a connection that has returned, perhaps with pipelined requests.
    pub(super) fn resume(&mut self, around: &mut ConnectionContext<'_>) -> ConnectionStep {
        if self.connection.unread.is_empty() {
            return ConnectionStep::Stays;
        }
        let unread = std::mem::take(&mut self.connection.unread);
        self.read_on(around, &unread)
    }

    /// Handles progress of its pending request.
    pub(super) fn hear(&mut self, around: &mut ConnectionContext<'_>) -> ConnectionStep {
        // Without one, the wake-up belonged to an earlier request.
        let Some(asking) = self.asking.take() else { return ConnectionStep::Stays };
        match asking.hear(around.shared, around.out) {
            PollOutcome::Nothing(asking) => {
                self.asking = Some(asking);
                ConnectionStep::Stays
            }
            PollOutcome::Answer(WrittenResponse { head, status, bytes, stays }) => {
                (around.reported)(self.connection.peer, &head, status, bytes, Channel::Udp);
                self.is_overheard = false;
                self.then = if stays { NextAction::ReadOn } else { NextAction::HangUp };
                let unread = std::mem::take(&mut self.connection.unread);
                self.write_and_read_on(around, &unread)
            }
            PollOutcome::Otherwise(call) => ConnectionStep::Lends(call),
        }
    }

    /// Handles a timeout, if it has expired.
    pub(super) fn expire(&mut self, now: Time, timeout: PhaseTimeouts) -> ConnectionStep {
        if now < self.deadline(timeout) {
            return ConnectionStep::Stays;
        }
        match self.phase {
            Phase::Head(_) => ConnectionStep::Lends(Box::new(BlockingTask::Fault(PeerFault::TooSlow))),
            Phase::Room(_) => {
                reply::break_off(&self.connection.stream);
                ConnectionStep::Ends
            }
            Phase::Idle(_) | Phase::Linger(_) => ConnectionStep::Ends,
            Phase::Asking => ConnectionStep::Stays,
        }
    }

    /// Returns the time of the timeout.
    pub(super) fn deadline(&self, timeout: PhaseTimeouts) -> Time {
        match self.phase {
            Phase::Idle(since) => since + timeout.idle,
            Phase::Head(since) | Phase::Room(since) => since + timeout.silent,
            Phase::Linger(since) => since + LINGER_TIMEOUT,
            // The pending request has its own timeouts.
            Phase::Asking => Time::MAX,
        }
    }

    /// Returns the time since which it only waits for a request or the rest of its header section.
    pub(super) fn idle_since(&self) -> Option<Time> {
        match self.phase {
            Phase::Idle(since) | Phase::Head(since) if !self.is_busy() => Some(since),
            Phase::Idle(_) | Phase::Head(_) | Phase::Asking | Phase::Room(_) | Phase::Linger(_) => None,
        }
    }

    /// Whether an exchange is in progress.
    pub(super) fn is_busy(&self) -> bool {
        !self.queue.is_empty() || self.asking.is_some()
    }

    pub(super) const fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Returns the events to watch.
    pub(super) fn wants(&self) -> Interest {
        if !self.queue.is_empty() {
            Interest::Out
        } else if self.is_asking() && self.is_overheard {
            Interest::Breaking
        } else {
            Interest::In
        }
    }

    /// Handles the end of the program's stream.
    fn ended(&self) -> ConnectionStep {
        match self.phase {
            Phase::Head(_) => ConnectionStep::Lends(Box::new(BlockingTask::Fault(PeerFault::Truncated))),
            Phase::Idle(_) | Phase::Asking | Phase::Room(_) | Phase::Linger(_) => ConnectionStep::Ends,
        }
    }

    fn write_on(&mut self, around: &mut ConnectionContext<'_>) -> ConnectionStep {
        match self.queue.write(&self.connection.stream) {
            Ok(written) if written.bytes > 0 => self.phase = Phase::Room(around.now),
            Ok(_) => {}
            Err(_) => return ConnectionStep::Ends,
        }
        if !self.queue.is_empty() {
            return ConnectionStep::Stays;
        }
        let unread = std::mem::take(&mut self.connection.unread);
        self.read_on(around, &unread)
    }

    /// Serves requests that need no waiting, writes the responses together, and returns the next step.
    fn read_on(&mut self, around: &mut ConnectionContext<'_>, mut input: &[u8]) -> ConnectionStep {
        if matches!(self.then, NextAction::ReadOn) {
            self.then = self.respond(around, &mut input);
        }
        self.write_and_read_on(around, input)
    }

    fn write_and_read_on(&mut self, around: &mut ConnectionContext<'_>, mut input: &[u8]) -> ConnectionStep {
        loop {
            if self.write(around.out).is_err() {
                return ConnectionStep::Ends;
            }
            if !self.queue.is_empty() {
                self.phase = Phase::Room(around.now);
                self.connection.unread = input.to_vec();
                return ConnectionStep::Stays;
            }
            match std::mem::replace(&mut self.then, NextAction::ReadOn) {
                NextAction::Call(call) => {
                    self.connection.unread = input.to_vec();
                    return ConnectionStep::Lends(call);
                }
                NextAction::HangUp => {
                    let _ = self.connection.stream.shutdown(Shutdown::Write);
                    self.phase = Phase::Linger(around.now);
                    return ConnectionStep::Stays;
                }
                NextAction::Wait => {
                    self.phase = Phase::Asking;
                    self.connection.unread = input.to_vec();
                    return self.hear(around);
                }
                NextAction::ReadOn if input.is_empty() => break,
                NextAction::ReadOn => self.then = self.respond(around, &mut input),
            }
        }
        let is_between = self.connection.reader.is_between_messages();
        self.phase = match self.phase {
            Phase::Idle(_) | Phase::Head(_) | Phase::Asking | Phase::Room(_) | Phase::Linger(_)
                if is_between =>
            {
                Phase::Idle(around.now)
            }
            // A header section that comes byte by byte has the same timeout as one that comes whole.
            Phase::Head(since) => Phase::Head(since),
            Phase::Idle(_) | Phase::Asking | Phase::Room(_) | Phase::Linger(_) => Phase::Head(around.now),
        };
        ConnectionStep::Stays
    }

    /// Reads and serves requests until all input is read, enough is to be written, or a task or pending request takes over.
    fn respond(&mut self, around: &mut ConnectionContext<'_>, input: &mut &[u8]) -> NextAction {
        while self.queue.is_empty() && around.out.len() < TOGETHER {
            match self.connection.reader.read(input) {
                Ok(Some(Event::Head(head, framing))) => match self.respond_one(around, head, framing) {
                    NextAction::ReadOn => {}
                    then @ (NextAction::Wait | NextAction::Call(_) | NextAction::HangUp) => return then,
                },
                // Only requests without a body are served here: this is their end.
                Ok(Some(Event::Body(_) | Event::End)) => {}
                Ok(None) => break,
                Err(fault) => return NextAction::Call(Box::new(BlockingTask::Fault(fault))),
            }
        }
        NextAction::ReadOn
    }

    fn respond_one(
        &mut self,
        around: &mut ConnectionContext<'_>,
        head: RequestHead,
        framing: Framing,
    ) -> NextAction {
        let requested = ReplyContext::of(&head);
        let is_bare = framing == Framing::Length(0);
        let plain = is_bare && head.version == Version::Http11 && requested.stays;
        if plain
            && let Some(quick) = &mut around.quick
            && let Some(response) = quick.at_once(&head)
            && let Body::Whole(bytes) = &response.body
        {
            let bytes = give(&mut self.queue, around.out, requested, response, bytes);
            (around.reported)(self.connection.peer, &head, response.status, bytes, Channel::Cache);
            self.connection.skip_end();
            return NextAction::ReadOn;
        }
        let plan = gateway::plan(&head, framing, &around.shared.name);
        if let (Ok(Plan::Forward(forward)), Some(quick)) = (&plan, &around.quick)
            && let Some(response) = quick.at_once_with_care(forward)
        {
            self.connection.skip_end();
            let Body::Whole(bytes) = &response.body else {
                return NextAction::Call(Box::new(BlockingTask::Kept(head, response)));
            };
            let bytes = give(&mut self.queue, around.out, requested, &response, bytes);
            (around.reported)(self.connection.peer, &head, response.status, bytes, Channel::Cache);
            return if requested.stays { NextAction::ReadOn } else { NextAction::HangUp };
        }
        match plan {
            Ok(Plan::Forward(forward)) => {
                let Some(question) = PendingExchange::ask(around.shared, around.number, &forward) else {
                    let plan = Ok(Plan::Forward(forward));
                    return NextAction::Call(Box::new(BlockingTask::Request(head, framing, plan)));
                };
                self.connection.skip_end();
                self.asking = Some(Box::new(PendingRequest::new(head, forward, question)));
                NextAction::Wait
            }
            plan @ (Ok(Plan::Tunnel(..) | Plan::Own(_)) | Err(_)) => {
                NextAction::Call(Box::new(BlockingTask::Request(head, framing, plan)))
            }
        }
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
        let mut nothing: &[u8] = &[];
        // Without input the reader can only report the end of the message.
        let _ = self.reader.read(&mut nothing);
    }
}

/// Writes a cached response; returns the length of its body.
fn give(
    queue: &mut Queue,
    out: &mut Vec<u8>,
    requested: ReplyContext<'_>,
    response: &Response,
    bytes: &Arc<[u8]>,
) -> u64 {
    if !reply::write_head(out, requested, response) {
        return 0;
    }
    if bytes.len() <= COPIED {
        out.extend_from_slice(bytes);
    } else {
        queue.push_bytes(std::mem::take(out));
        queue.push_body(&response.body);
    }
    bytes.len() as u64
}

fn is_temporary(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
