//! A client on a simulated host: a fetcher, and the CPU time of its work.
//!
//! HTTP, DHTTP and the page are `fetch`'s.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dhttp_proto::ClientConfig;
use fetch::{
    Break, ConnectionId, DhttpConfig, Ending, Endpoint, Fetcher, FromWire, Output, PageEvent, Plan,
    PlanError, Recovery, Report, TransportCounts, WebConfig, Wire,
};
use tcp::{Failure, Payload};
use wire::{Duration, Seed, Time};

use crate::world::encoding::socket;
use crate::world::{Action, Address, Datagram, Input, SocketId};

/// The client's port under DHTTP, UDP and TCP; below the ports of its own connections.
pub const CLIENT_PORT: u16 = 40_000;

/// A DHTTP client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhttpClient {
    /// Settings of the state machine.
    pub config: ClientConfig,
    /// Seed of its ids: no one guesses them here, and the same seed gives the same bytes.
    pub seed: Seed,
}

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrowserConfig {
    /// CPU time of its work.
    pub times: BrowserTimes,
    /// Whether it ends its half of each connection with the request (T/TCP's `MSG_EOF`).
    pub is_transaction: bool,
    /// The preceding page.
    pub warm_up: WarmUp,
    /// DHTTP settings, if it speaks DHTTP.
    pub dhttp: Option<DhttpClient>,
    /// TLS and HTTP/2 of its origins, if any has them.
    pub web: Option<WebConfig>,
}

/// A client that fetches a page.
pub struct Browser {
    fetcher: Fetcher,
    /// Addresses of the plan's origins, in order.
    servers: Vec<Address>,
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
    /// Servers to which datagrams of HTTP/3 have been sent.
    quic_servers: BTreeSet<Endpoint>,
    /// Requests whose datagrams have not been sent.
    unwritten: u64,
    /// The connection that is being opened.
    opening: Option<(ConnectionId, Endpoint)>,
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
    Open(ConnectionId, Endpoint),
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
    /// A client that begins at `start` to fetch the objects of this plan from its origins at these addresses.
    ///
    /// # Errors
    /// The fault of the plan.
    pub fn new(
        start: Time,
        plan: Plan,
        servers: Vec<Address>,
        config: BrowserConfig,
    ) -> Result<Self, PlanError> {
        let has_http3 = config.web.as_ref().is_some_and(|web| web.http3.is_some());
        let steps = match config.dhttp {
            Some(_) => vec![BrowserStep::Bind, BrowserStep::Listen],
            None if has_http3 => vec![BrowserStep::Bind],
            None => Vec::new(),
        };
        let fetcher = match (config.dhttp, &config.web) {
            (None, None) => Fetcher::http1(start, plan)?,
            (None, Some(web)) => Fetcher::web(start, plan, web.clone())?,
            (Some(DhttpClient { config: client, seed }), _) => {
                let (port, ids) = (CLIENT_PORT, seed.stream("dhttp-client", 0));
                let servers = servers.iter().copied().map(socket).collect();
                Fetcher::dhttp(start, plan, DhttpConfig { client, servers, port, ids })?
            }
        };
        Ok(Self {
            fetcher,
            servers,
            config,
            completed: 0,
            began: start,
            begins: None,
            steps: steps.into(),
            sockets: BTreeMap::new(),
            connections: BTreeMap::new(),
            accepted: BTreeSet::new(),
            reports: Vec::new(),
            quic_servers: BTreeSet::new(),
            unwritten: 0,
            opening: None,
        })
    }

    /// The fetcher's reports so far.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// Transport of requests and responses, if by DHTTP.
    pub fn counts(&self) -> Option<TransportCounts> {
        self.fetcher.counts()
    }

    /// Connections of QUIC so far: one for each server.
    pub fn quic_connections(&self) -> u64 {
        self.quic_servers.len() as u64
    }

    /// Records the state of QUIC's recovery from now on.
    pub fn record(&mut self) {
        self.fetcher.record();
    }

    /// Changes of QUIC's recovery, by servers and times.
    pub fn recoveries(&self) -> impl Iterator<Item = (Address, Recovery)> {
        let all = self.fetcher.recoveries().into_iter();
        all.filter_map(|(server, recovery)| Some((*self.servers.get(server)?, recovery)))
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
            Input::Accepted(socket, _, peer) => {
                self.accepted.insert(socket);
                if let Some(server) = self.endpoint(peer) {
                    self.fetcher.handle(now, FromWire::Accepted(accepted(socket), server));
                }
            }
            Input::Datagram(Datagram { peer, port: _, payload }) => {
                if let Some(server) = self.endpoint(peer) {
                    self.fetcher.handle(now, FromWire::Datagram(server, &payload));
                }
                self.steps.push_front(BrowserStep::Work(self.config.times.reading(payload.len())));
            }
            Input::Data(socket, bytes) => {
                self.deliver(now, socket, |id| FromWire::Received(id, &bytes));
                self.steps.push_front(BrowserStep::Work(self.config.times.reading(bytes.len())));
            }
            Input::Connected(socket) => self.deliver(now, socket, FromWire::Connected),
            Input::Finished(socket) | Input::Closed(socket) if self.accepted.contains(&socket) => {
                self.deliver(now, socket, FromWire::EndOfStream);
                self.accepted.remove(&socket);
                self.steps.push_back(BrowserStep::Close(socket));
            }
            Input::Finished(socket) => self.deliver(now, socket, FromWire::EndOfStream),
            Input::Written(socket) => {
                if let Some(connection) = self.connections.get_mut(&socket) {
                    connection.is_writing = false;
                    self.write_next(socket);
                }
            }
            Input::Failed(socket, failure) => {
                let why = match failure {
                    Failure::Refused => Break::Refused,
                    Failure::Reset => Break::Reset,
                    Failure::TimedOut => Break::Unreachable,
                };
                self.deliver(now, socket, |id| FromWire::Broken(id, why));
                self.accepted.remove(&socket);
            }
            Input::Closed(_) => {}
        }
    }

    /// The plan's origin on this host.
    fn endpoint(&self, peer: Address) -> Option<Endpoint> {
        self.servers.iter().position(|server| server.host == peer.host)
    }

    /// Passes on an event of a connection.
    fn deliver<'a>(&mut self, now: Time, socket: SocketId, input: impl FnOnce(ConnectionId) -> FromWire<'a>) {
        let own = self.connections.get(&socket).map(|connection| connection.id);
        let id = if self.accepted.contains(&socket) { Some(accepted(socket)) } else { own };
        if let Some(id) = id {
            self.fetcher.handle(now, input(id));
        }
    }

    pub(super) fn poll(&mut self, now: Time, fresh: SocketId) -> Action {
        loop {
            if let Some((id, server)) = self.opening.take()
                && let Some(server) = self.servers.get(server).copied()
            {
                self.sockets.insert(id, fresh);
                self.connections
                    .insert(fresh, BrowserConnection { id, writes: VecDeque::new(), is_writing: false });
                return Action::Connect(server);
            }
            match self.steps.pop_front() {
                Some(BrowserStep::Work(Duration::ZERO)) => {}
                Some(BrowserStep::Work(time)) => return Action::Work(time),
                Some(BrowserStep::Open(id, server)) => self.opening = Some((id, server)),
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

    /// Adds the steps that the fetcher wants next; or returns its timeout, if it wants none.
    fn poll_fetcher(&mut self, now: Time) -> Option<Option<Time>> {
        match self.fetcher.poll(now) {
            Output::Wire(wire) => self.transmit(wire),
            Output::Report(report) => self.note(report),
            Output::Timeout(until) => return Some(until),
        }
        None
    }

    fn transmit(&mut self, wire: Wire) {
        let BrowserTimes { connection, request, .. } = self.config.times;
        match wire {
            Wire::Open(id, server) => {
                self.steps.extend([BrowserStep::Work(connection), BrowserStep::Open(id, server)]);
            }
            Wire::Send(id, bytes) => {
                self.unwritten = 0;
                if let Some(socket) = self.sockets.get(&id).copied()
                    && let Some(connection) = self.connections.get_mut(&socket)
                {
                    connection.writes.push_back(bytes);
                    self.write_next(socket);
                }
            }
            Wire::Datagram(server, bytes) => {
                if let Some(peer) = self.servers.get(server).copied() {
                    let datagram = Datagram { peer, port: CLIENT_PORT, payload: Payload::from(bytes) };
                    let work = if self.has_http3() { self.quic_work(server) } else { request };
                    self.steps.extend([BrowserStep::Work(work), BrowserStep::Send(datagram)]);
                }
            }
            Wire::Close(id, ending) => {
                let socket = match id.accepted_number() {
                    Some(number) => Some(SocketId(number)),
                    None => self.sockets.get(&id).copied(),
                };
                if let Some(socket) = socket {
                    self.accepted.remove(&socket);
                    self.steps.push_back(match ending {
                        Ending::Fin => BrowserStep::Close(socket),
                        Ending::Reset => BrowserStep::Abort(socket),
                    });
                }
            }
        }
    }

    fn has_http3(&self) -> bool {
        self.config.web.as_ref().is_some_and(|web| web.http3.is_some())
    }

    /// CPU time before a datagram of HTTP/3: that of its requests, and of its connection if it is the first.
    fn quic_work(&mut self, server: Endpoint) -> Duration {
        let BrowserTimes { connection, request, .. } = self.config.times;
        let is_first = self.quic_servers.insert(server);
        let requests = request * std::mem::take(&mut self.unwritten);
        if is_first { requests + connection } else { requests }
    }

    fn note(&mut self, report: Report) {
        if let PageEvent::RequestSent { .. } = report.event {
            self.unwritten += 1;
        }
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

/// The fetcher's identifier of a connection that a server opened: the host's own.
fn accepted(socket: SocketId) -> ConnectionId {
    ConnectionId::accepted(socket.0)
}
