//! A client on a simulated host: `pageload`'s robot, and the CPU time of its work.
//!
//! HTTP and the page are the robot's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dhttp_proto::client as dhttp;
use pageload::page_loader::{self, Output, TransportCounts};
use pageload::robot::{self, Break, ConnectionId, PageEvent, Plan, PlanError, Report};
use tcp::{Failure, Payload};
use wire::{Duration, Time};

use super::fetcher::{CLIENT_PORT, DhttpClient, Fetcher};
use crate::capture;
use crate::world::{Action, Address, Datagram, Input, SocketId};

/// CPU time of a client's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrowserTimes {
    /// Per connection, before it is opened: making a socket.
    pub connection: Duration,
    /// Per request, before it is written: processing what came before, deciding what to request.
    pub request: Duration,
    /// Per 1024 bytes read, before anything else is done: processing and storing them.
    pub kilobyte: Duration,
    /// Per file of the disk cache, which has two for each object: when an object or its 304 has arrived.
    pub file: Duration,
}

impl BrowserTimes {
    /// CPU time of reading `bytes`.
    fn reading(&self, bytes: usize) -> Duration {
        Duration::from_nanos(self.kilobyte.as_nanos().saturating_mul(bytes as u64) / 1024)
    }
}

/// A preceding page: state learnt and cached from it is available to the page itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmUp {
    /// Number of the plan's objects that belong to it; 0 without a preceding page.
    pub objects: usize,
    /// Time after it in which the client is busy.
    pub think: Duration,
    /// Time after it in which the client only waits: the plan's pause.
    pub pause: Duration,
}

/// Settings of a client, apart from its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrowserConfig {
    /// CPU time of its work.
    pub times: BrowserTimes,
    /// Whether it ends its half of each connection with the request (T/TCP's `MSG_EOF`).
    pub is_transaction: bool,
    /// The preceding page.
    pub warm_up: WarmUp,
    /// DHTTP settings, if it speaks DHTTP.
    pub dhttp: Option<DhttpClient>,
}

/// A client that fetches a page.
pub struct Browser {
    fetcher: Fetcher,
    server: Address,
    config: BrowserConfig,
    completed: usize,
    /// Start of the page itself.
    began: Time,
    /// The same while it is due.
    begins: Option<Time>,
    steps: VecDeque<BrowserStep>,
    sockets: BTreeMap<ConnectionId, SocketId>,
    connections: BTreeMap<SocketId, BrowserConnection>,
    /// Connections that the server opened.
    accepted: BTreeSet<SocketId>,
    reports: Vec<Report>,
    /// The connection that is being opened.
    opening: Option<ConnectionId>,
}

/// One connection.
#[derive(Debug)]
struct BrowserConnection {
    id: ConnectionId,
    /// Requests that wait until the one before is in the send buffer.
    writes: VecDeque<Vec<u8>>,
    is_writing: bool,
}

/// Pending steps, in order.
#[derive(Debug)]
enum BrowserStep {
    Work(Duration),
    Open(ConnectionId),
    Write(SocketId),
    Close(SocketId),
    Abort(SocketId),
    Bind,
    Listen,
    Send(Datagram),
    /// The preceding page is over.
    Begin,
}

impl Browser {
    /// A client that begins at `start` to fetch the objects of this plan.
    ///
    /// # Errors
    /// The fault of the plan.
    pub fn new(start: Time, plan: Plan, server: Address, config: BrowserConfig) -> Result<Self, PlanError> {
        let steps =
            if config.dhttp.is_some() { vec![BrowserStep::Bind, BrowserStep::Listen] } else { Vec::new() };
        Ok(Self {
            fetcher: Fetcher::new(start, plan, server, config.dhttp)?,
            server,
            config,
            completed: 0,
            began: start,
            begins: None,
            steps: steps.into(),
            sockets: BTreeMap::new(),
            connections: BTreeMap::new(),
            accepted: BTreeSet::new(),
            reports: Vec::new(),
            opening: None,
        })
    }

    /// The robot's reports so far.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// Transport of requests and responses, if by DHTTP.
    pub fn counts(&self) -> Option<TransportCounts> {
        self.fetcher.counts()
    }

    /// Start of the page itself, after a preceding page.
    pub const fn began(&self) -> Time {
        self.began
    }

    /// Time at which the last object had arrived, if all have, or the others were lost and `may_lose` is true.
    pub fn finished(&self, may_lose: bool) -> Option<Time> {
        self.reports.iter().find_map(|report| match report.event {
            PageEvent::Finished { failed } if failed == 0 || may_lose => Some(report.at),
            PageEvent::Finished { .. }
            | PageEvent::RequestSent { .. }
            | PageEvent::HeadReceived { .. }
            | PageEvent::ObjectFound { .. }
            | PageEvent::TooManyObjects { .. }
            | PageEvent::FirstBytesReceived { .. }
            | PageEvent::ObjectComplete { .. }
            | PageEvent::ObjectFailed { .. }
            | PageEvent::Fault { .. } => None,
        })
    }

    pub(super) fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Accepted(socket, ..) => {
                self.accepted.insert(socket);
                let server = capture::socket(self.server);
                self.handle_dhttp(now, dhttp::Input::Accepted(opened(socket), server));
            }
            Input::Datagram(Datagram { peer, port: _, payload }) => {
                self.handle_dhttp(now, dhttp::Input::Datagram(capture::socket(peer), &payload));
                self.steps.push_front(BrowserStep::Work(self.config.times.reading(payload.len())));
            }
            Input::Data(socket, bytes) => {
                if self.accepted.contains(&socket) {
                    self.handle_dhttp(now, dhttp::Input::Received(opened(socket), &bytes));
                } else {
                    self.deliver(now, socket, |id| robot::Input::Received(id, &bytes));
                }
                self.steps.push_front(BrowserStep::Work(self.config.times.reading(bytes.len())));
            }
            Input::Connected(socket) => self.deliver(now, socket, robot::Input::Connected),
            Input::Finished(socket) | Input::Closed(socket) if self.accepted.remove(&socket) => {
                self.handle_dhttp(now, dhttp::Input::Ended(opened(socket)));
                self.steps.push_back(BrowserStep::Close(socket));
            }
            Input::Finished(socket) => self.deliver(now, socket, robot::Input::EndOfStream),
            Input::Written(socket) => {
                if let Some(connection) = self.connections.get_mut(&socket) {
                    connection.is_writing = false;
                    self.write_next(socket);
                }
            }
            Input::Failed(socket, _) if self.accepted.remove(&socket) => {
                self.handle_dhttp(now, dhttp::Input::Ended(opened(socket)));
            }
            Input::Failed(socket, failure) => {
                let why = match failure {
                    Failure::Refused => Break::Refused,
                    Failure::Reset => Break::Reset,
                    Failure::TimedOut => Break::Unreachable,
                };
                self.deliver(now, socket, |id| robot::Input::Broken(id, why));
            }
            Input::Closed(_) => {}
        }
    }

    /// Handles an event of the client's own connections.
    fn deliver<'a>(
        &mut self,
        now: Time,
        socket: SocketId,
        input: impl FnOnce(ConnectionId) -> robot::Input<'a>,
    ) {
        if let Some(connection) = self.connections.get(&socket) {
            self.fetcher.handle(now, page_loader::Input::Plain(input(connection.id)));
        }
    }

    /// Handles an event of DHTTP's channels.
    fn handle_dhttp(&mut self, now: Time, input: dhttp::Input<'_>) {
        self.fetcher.handle(now, page_loader::Input::Dhttp(input));
    }

    pub(super) fn poll(&mut self, now: Time, fresh: SocketId) -> Action {
        loop {
            if let Some(id) = self.opening.take() {
                self.sockets.insert(id, fresh);
                self.connections
                    .insert(fresh, BrowserConnection { id, writes: VecDeque::new(), is_writing: false });
                return Action::Connect(self.server);
            }
            match self.steps.pop_front() {
                Some(BrowserStep::Work(Duration::ZERO)) => {}
                Some(BrowserStep::Work(time)) => return Action::Work(time),
                Some(BrowserStep::Open(id)) => self.opening = Some(id),
                Some(BrowserStep::Write(socket)) => {
                    if let Some(action) = self.write(socket) {
                        return action;
                    }
                }
                Some(BrowserStep::Close(socket)) => return Action::Close(socket),
                Some(BrowserStep::Abort(socket)) => return Action::Abort(socket),
                Some(BrowserStep::Bind) => return Action::Bind(CLIENT_PORT),
                Some(BrowserStep::Listen) => return Action::Listen(CLIENT_PORT),
                Some(BrowserStep::Send(datagram)) => return Action::Send(datagram),
                Some(BrowserStep::Begin) => {
                    self.began = now;
                    return Action::Finish;
                }
                None if self.begins.is_some_and(|begins| now >= begins) => {
                    self.begins = None;
                    self.steps.push_back(BrowserStep::Begin);
                }
                None => {
                    if let Some(until) = self.poll_fetcher(now) {
                        return Action::Wait(until.into_iter().chain(self.begins).min());
                    }
                }
            }
        }
    }

    /// Adds the steps that the state machine wants next; or returns its timeout, if it wants none.
    fn poll_fetcher(&mut self, now: Time) -> Option<Option<Time>> {
        let output = match self.fetcher.poll(now) {
            Output::Robot(output) => output,
            Output::Send(_, bytes) => {
                let (peer, payload) = (self.server, Payload::from(bytes));
                let datagram = Datagram { peer, port: CLIENT_PORT, payload };
                self.steps
                    .extend([BrowserStep::Work(self.config.times.request), BrowserStep::Send(datagram)]);
                return None;
            }
            Output::Dismiss(connection) => {
                let socket = SocketId(u32::try_from(connection.0).unwrap_or(u32::MAX));
                self.accepted.remove(&socket);
                self.steps.push_back(BrowserStep::Close(socket));
                return None;
            }
        };
        match output {
            robot::Output::Open(id) => {
                self.steps.extend([BrowserStep::Work(self.config.times.connection), BrowserStep::Open(id)]);
            }
            robot::Output::Send(id, bytes) => {
                if let Some(socket) = self.sockets.get(&id).copied()
                    && let Some(connection) = self.connections.get_mut(&socket)
                {
                    connection.writes.push_back(bytes);
                    self.write_next(socket);
                }
            }
            robot::Output::Close(id) => {
                self.steps.extend(self.sockets.get(&id).copied().map(BrowserStep::Close))
            }
            robot::Output::Abort(id) => {
                self.steps.extend(self.sockets.get(&id).copied().map(BrowserStep::Abort))
            }
            robot::Output::Report(report) => self.note(report),
            robot::Output::Timeout(until) => return Some(until),
        }
        None
    }

    fn note(&mut self, report: Report) {
        if let PageEvent::ObjectComplete { .. } = report.event {
            self.completed += 1;
            self.steps.push_back(BrowserStep::Work(self.config.times.file * FILES_PER_OBJECT));
            let WarmUp { objects, think, pause } = self.config.warm_up;
            if self.completed == objects && pause > Duration::ZERO {
                self.begins = Some(report.at + pause);
            } else if self.completed == objects {
                self.steps.extend([BrowserStep::Work(think), BrowserStep::Begin]);
            }
        }
        self.reports.push(report);
    }

    /// Starts the next request of a connection, unless one is being written.
    fn write_next(&mut self, socket: SocketId) {
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        if !connection.is_writing && !connection.writes.is_empty() {
            connection.is_writing = true;
            self.steps.extend([BrowserStep::Work(self.config.times.request), BrowserStep::Write(socket)]);
        }
    }

    fn write(&mut self, socket: SocketId) -> Option<Action> {
        let bytes = self.connections.get_mut(&socket)?.writes.pop_front()?;
        let payload = Payload::from(bytes);
        Some(if self.config.is_transaction {
            Action::WriteLast(socket, payload)
        } else {
            Action::Write(socket, payload)
        })
    }
}

/// "Each cached object contains two independent files" (`papers/w3c`, on its final client).
const FILES_PER_OBJECT: u64 = 2;

/// DHTTP's identifier of a connection that the server opened: the host's own.
fn opened(socket: SocketId) -> dhttp::ConnectionId {
    dhttp::ConnectionId(u64::from(socket.0))
}
