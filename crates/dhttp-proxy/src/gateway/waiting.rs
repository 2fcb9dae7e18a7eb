//! A program's connection while it is watched and nobody asks for anything in its name: between two requests, in the
//! middle of a head, while it takes an answer that was kept, and at its end.
//!
//! Stored responses are served here, immediately; all else is for a thread (`browser`). Not the watching: that is `front`'s.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use http1::gateway::{self, Forward, Plan, Refusal};
use http1::message::{Event, Framing, Limits, PeerFault, RequestHead, RequestReader, Version};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use wire::{Duration, Time};

use super::Shared;
use super::asking::{Asking, Coming, Heard, Passed, Question};
use super::reply::{self, Asked};
use crate::cache::passing::{Passing, Quick};
use dhttp::handler::{Answer, Body};
use dhttp::log::Channel;
use dhttp::server::queue::Queue;

/// A program's connection, wherever it is.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    pub(super) stream: Arc<TcpStream>,
    pub(super) reader: RequestReader,
    /// Bytes received and not read yet: pipelined requests.
    pub(super) unread: Vec<u8>,
    /// Whether the kernel knows how long writing may take.
    pub(super) is_patient: bool,
}

impl Connection {
    pub(super) fn new(peer: SocketAddr, stream: TcpStream) -> Self {
        let (stream, reader) = (Arc::new(stream), RequestReader::new(Limits::default()));
        Self { peer, stream, reader, unread: Vec::new(), is_patient: false }
    }
}

/// Task for a thread that may block.
pub(super) enum Call {
    /// To answer a request that is to be dealt with so.
    Request(RequestHead, Framing, Result<Plan, Refusal>),
    /// To give this, of which a part lies in a file.
    Kept(RequestHead, Answer),
    /// To refuse what was no request.
    Fault(PeerFault),
    /// To pass on an answer as it comes.
    Coming(Coming),
    /// To ask again: what came was about something else.
    Again(RequestHead, Forward, Box<Passing>),
    /// To say why there is no answer, or give what stands in for it.
    Failed(RequestHead, Option<Box<Passing>>, String),
}

impl Call {
    /// Whether something begins with it.
    pub(super) const fn is_first(&self) -> bool {
        match self {
            Self::Request(..) | Self::Fault(_) => true,
            Self::Kept(..) | Self::Coming(_) | Self::Again(..) | Self::Failed(..) => false,
        }
    }
}

/// One that is watched.
pub(super) struct Waiting {
    pub(super) connection: Connection,
    /// Bytes that it has not accepted yet.
    queue: Queue,
    phase: Phase,
    /// Behind what it has not taken yet.
    then: Then,
    /// Pending request for it.
    asking: Option<Box<Asking>>,
    /// It has said something meanwhile, which is read when the answer is written.
    is_overheard: bool,
    /// As it is watched.
    pub(super) watched: Watched,
}

/// Events watched on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// That something comes.
    In,
    /// That there is room.
    Out,
    /// That it breaks.
    Breaking,
}

/// The awaited event, and since when it is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A request.
    Idle(Time),
    /// The rest of its head.
    Head(Time),
    /// An answer.
    Asking,
    /// That the program takes something.
    Room(Time),
    /// The program's end: ours is said. A reset would throw away what was said last (RFC 9112, section 9.6).
    Linger(Time),
}

enum Then {
    ReadOn,
    Wait,
    Call(Box<Call>),
    HangUp,
}

/// Next step of the connection.
pub(super) enum Step {
    /// It is to be watched on.
    Stays,
    /// It is over.
    Ends,
    /// A thread is to do this.
    Lends(Box<Call>),
}

/// Context that it needs of the watching thread.
pub(super) struct Around<'a> {
    pub(super) now: Time,
    pub(super) shared: &'a Arc<Shared>,
    /// The connection's.
    pub(super) number: u64,
    pub(super) quick: Option<&'a mut Quick>,
    /// For what goes out together; empty.
    pub(super) out: &'a mut Vec<u8>,
    /// Callback that counts and logs each response.
    pub(super) told: &'a mut dyn FnMut(SocketAddr, &RequestHead, u16, u64, Channel),
}

/// Timeouts of the phases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) idle: Duration,
    pub(super) silent: Duration,
}

/// Timeout for the client's close after ours.
const LINGER: Duration = Duration::from_secs(2);
/// Answers wait for one another up to so many bytes.
const TOGETHER: usize = 64 << 10;
/// A body up to this length is copied behind its head.
const COPIED: usize = 16 << 10;

impl Waiting {
    /// One that has just come, or come back.
    pub(super) fn new(now: Time, connection: Connection) -> Self {
        Self {
            connection,
            queue: Queue::default(),
            phase: Phase::Idle(now),
            then: Then::ReadOn,
            asking: None,
            is_overheard: false,
            watched: Watched::In,
        }
    }

    /// One on which all has been said.
    pub(super) fn ending(now: Time, connection: Connection) -> Self {
        let _ = connection.stream.shutdown(Shutdown::Write);
        Self { phase: Phase::Linger(now), ..Self::new(now, connection) }
    }

    /// Something came, or there is room to write.
    pub(super) fn ready(&mut self, around: &mut Around<'_>, room: &mut [u8]) -> Step {
        if !self.queue.is_empty() {
            return self.write_on(around);
        }
        if self.is_asking() {
            // Watched no more for what comes, it can only have broken.
            return if std::mem::replace(&mut self.is_overheard, true) { Step::Ends } else { Step::Stays };
        }
        match recv(&*self.connection.stream, &mut *room, RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.ended(),
            Ok(_) if matches!(self.phase, Phase::Linger(_)) => Step::Stays,
            Ok((length, _)) => self.read_on(around, room.get(..length).unwrap_or_default()),
            Err(error) if is_temporary(error.kind()) => Step::Stays,
            Err(_) => Step::Ends,
        }
    }

    /// It has come back, perhaps with requests that were sent ahead.
    pub(super) fn resume(&mut self, around: &mut Around<'_>) -> Step {
        if self.connection.unread.is_empty() {
            return Step::Stays;
        }
        let unread = std::mem::take(&mut self.connection.unread);
        self.read_on(around, &unread)
    }

    /// Something has come of what was asked in its name.
    pub(super) fn hear(&mut self, around: &mut Around<'_>) -> Step {
        // Without, it was the bell of a request before.
        let Some(asking) = self.asking.take() else { return Step::Stays };
        match asking.hear(around.shared, around.out) {
            Heard::Nothing(asking) => {
                self.asking = Some(asking);
                Step::Stays
            }
            Heard::Answer(Passed { head, status, bytes, stays }) => {
                (around.told)(self.connection.peer, &head, status, bytes, Channel::Udp);
                self.is_overheard = false;
                self.then = if stays { Then::ReadOn } else { Then::HangUp };
                let unread = std::mem::take(&mut self.connection.unread);
                self.write_and_read_on(around, &unread)
            }
            Heard::Otherwise(call) => Step::Lends(call),
        }
    }

    /// A moment has come.
    pub(super) fn expire(&mut self, now: Time, patience: Patience) -> Step {
        if now < self.deadline(patience) {
            return Step::Stays;
        }
        match self.phase {
            Phase::Head(_) => Step::Lends(Box::new(Call::Fault(PeerFault::TooSlow))),
            Phase::Room(_) => {
                reply::break_off(&self.connection.stream);
                Step::Ends
            }
            Phase::Idle(_) | Phase::Linger(_) => Step::Ends,
            Phase::Asking => Step::Stays,
        }
    }

    /// When that is.
    pub(super) fn deadline(&self, patience: Patience) -> Time {
        match self.phase {
            Phase::Idle(since) => since + patience.idle,
            Phase::Head(since) | Phase::Room(since) => since + patience.silent,
            Phase::Linger(since) => since + LINGER,
            // Who asks knows when to give up.
            Phase::Asking => Time::MAX,
        }
    }

    /// Since when it has waited for a request or the rest of its head, if that is all that it waits for.
    pub(super) fn idle_since(&self) -> Option<Time> {
        match self.phase {
            Phase::Idle(since) | Phase::Head(since) if !self.is_busy() => Some(since),
            Phase::Idle(_) | Phase::Head(_) | Phase::Asking | Phase::Room(_) | Phase::Linger(_) => None,
        }
    }

    /// Whether something was begun.
    pub(super) fn is_busy(&self) -> bool {
        !self.queue.is_empty() || self.asking.is_some()
    }

    pub(super) const fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Returns the events to watch.
    pub(super) fn wants(&self) -> Watched {
        if !self.queue.is_empty() {
            Watched::Out
        } else if self.is_asking() && self.is_overheard {
            Watched::Breaking
        } else {
            Watched::In
        }
    }

    /// The program says no more.
    fn ended(&self) -> Step {
        match self.phase {
            Phase::Head(_) => Step::Lends(Box::new(Call::Fault(PeerFault::Truncated))),
            Phase::Idle(_) | Phase::Asking | Phase::Room(_) | Phase::Linger(_) => Step::Ends,
        }
    }

    fn write_on(&mut self, around: &mut Around<'_>) -> Step {
        match self.queue.write(&self.connection.stream) {
            Ok(written) if written.bytes > 0 => self.phase = Phase::Room(around.now),
            Ok(_) => {}
            Err(_) => return Step::Ends,
        }
        if !self.queue.is_empty() {
            return Step::Stays;
        }
        let unread = std::mem::take(&mut self.connection.unread);
        self.read_on(around, &unread)
    }

    /// Answers what can be answered at once, writes the answers together, and says what comes then.
    fn read_on(&mut self, around: &mut Around<'_>, mut input: &[u8]) -> Step {
        if matches!(self.then, Then::ReadOn) {
            self.then = self.answer(around, &mut input);
        }
        self.write_and_read_on(around, input)
    }

    fn write_and_read_on(&mut self, around: &mut Around<'_>, mut input: &[u8]) -> Step {
        loop {
            if self.write(around.out).is_err() {
                return Step::Ends;
            }
            if !self.queue.is_empty() {
                self.phase = Phase::Room(around.now);
                self.connection.unread = input.to_vec();
                return Step::Stays;
            }
            match std::mem::replace(&mut self.then, Then::ReadOn) {
                Then::Call(call) => {
                    self.connection.unread = input.to_vec();
                    return Step::Lends(call);
                }
                Then::HangUp => {
                    let _ = self.connection.stream.shutdown(Shutdown::Write);
                    self.phase = Phase::Linger(around.now);
                    return Step::Stays;
                }
                Then::Wait => {
                    self.phase = Phase::Asking;
                    self.connection.unread = input.to_vec();
                    return self.hear(around);
                }
                Then::ReadOn if input.is_empty() => break,
                Then::ReadOn => self.then = self.answer(around, &mut input),
            }
        }
        let is_between = self.connection.reader.is_between_messages();
        self.phase = match self.phase {
            Phase::Idle(_) | Phase::Head(_) | Phase::Asking | Phase::Room(_) | Phase::Linger(_)
                if is_between =>
            {
                Phase::Idle(around.now)
            }
            // A head that comes byte by byte has as long as one that comes at once.
            Phase::Head(since) => Phase::Head(since),
            Phase::Idle(_) | Phase::Asking | Phase::Room(_) | Phase::Linger(_) => Phase::Head(around.now),
        };
        Step::Stays
    }

    /// Reads and answers until all is read, enough is to be written, or somebody else must go on.
    fn answer(&mut self, around: &mut Around<'_>, input: &mut &[u8]) -> Then {
        while self.queue.is_empty() && around.out.len() < TOGETHER {
            match self.connection.reader.read(input) {
                Ok(Some(Event::Head(head, framing))) => match self.answer_one(around, head, framing) {
                    Then::ReadOn => {}
                    then @ (Then::Wait | Then::Call(_) | Then::HangUp) => return then,
                },
                // Those without a body are answered here: this is their end.
                Ok(Some(Event::Body(_) | Event::End)) => {}
                Ok(None) => break,
                Err(fault) => return Then::Call(Box::new(Call::Fault(fault))),
            }
        }
        Then::ReadOn
    }

    fn answer_one(&mut self, around: &mut Around<'_>, head: RequestHead, framing: Framing) -> Then {
        let asked = Asked::of(&head);
        let is_bare = framing == Framing::Length(0);
        let plain = is_bare && head.version == Version::Http11 && asked.stays;
        if plain
            && let Some(quick) = &mut around.quick
            && let Some(answer) = quick.at_once(&head)
            && let Body::Whole(bytes) = &answer.body
        {
            let bytes = give(&mut self.queue, around.out, asked, answer, bytes);
            (around.told)(self.connection.peer, &head, answer.status, bytes, Channel::Cache);
            self.connection.skip_end();
            return Then::ReadOn;
        }
        let plan = gateway::plan(&head, framing, &around.shared.name);
        if let (Ok(Plan::Forward(forward)), Some(quick)) = (&plan, &around.quick)
            && let Some(answer) = quick.at_once_with_care(forward)
        {
            self.connection.skip_end();
            let Body::Whole(bytes) = &answer.body else {
                return Then::Call(Box::new(Call::Kept(head, answer)));
            };
            let bytes = give(&mut self.queue, around.out, asked, &answer, bytes);
            (around.told)(self.connection.peer, &head, answer.status, bytes, Channel::Cache);
            return if asked.stays { Then::ReadOn } else { Then::HangUp };
        }
        match plan {
            Ok(Plan::Forward(forward)) => {
                let Some(question) = Question::ask(around.shared, around.number, &forward) else {
                    let plan = Ok(Plan::Forward(forward));
                    return Then::Call(Box::new(Call::Request(head, framing, plan)));
                };
                self.connection.skip_end();
                self.asking = Some(Box::new(Asking::new(head, forward, question)));
                Then::Wait
            }
            plan @ (Ok(Plan::Tunnel(..) | Plan::Own(_)) | Err(_)) => {
                Then::Call(Box::new(Call::Request(head, framing, plan)))
            }
        }
    }

    /// Writes what has gathered, and keeps what the program does not take now.
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
    /// Takes the end of a request without a body, which needs no more bytes.
    pub(super) fn skip_end(&mut self) {
        let mut nothing: &[u8] = &[];
        // Without input it can only say that the message has ended.
        let _ = self.reader.read(&mut nothing);
    }
}

/// An answer of what is kept; how long its body is.
fn give(queue: &mut Queue, out: &mut Vec<u8>, asked: Asked<'_>, answer: &Answer, bytes: &Arc<[u8]>) -> u64 {
    if !reply::write_head(out, asked, answer) {
        return 0;
    }
    if bytes.len() <= COPIED {
        out.extend_from_slice(bytes);
    } else {
        queue.push_bytes(std::mem::take(out));
        queue.push_body(&answer.body);
    }
    bytes.len() as u64
}

fn is_temporary(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
