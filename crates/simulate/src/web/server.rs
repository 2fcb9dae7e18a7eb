//! A server on a simulated host: `http1`'s server and site, and the CPU time of their work.
//!
//! One CPU does everything sequentially, in order of arrival.

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use fetch::Recovery;
use fetch::serving::{
    HeadSizes, Http3Request, Http3Server, HttpConnection, ResponseTraits, ServerProtocols, Wish,
};
use http1::message::RequestHead;
use http1::server::{self, RequestId, Response, ServerConfig, ServerConnection};
use http1::site::Site;
use tcp::Payload;
use wire::{Duration, Time};

use super::accept_queue::{AcceptQueue, Waiting};
use super::dhttp_service::{self, DhttpCounts, DhttpServer, DhttpService};
use crate::world::encoding::socket;
use crate::world::{Action, Address, Datagram, Input, SocketId};

/// CPU time of a server's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerTimes {
    /// Per connection, before its first request is read: accepting, starting a process.
    pub connection: Duration,
    /// Per connection that the server opens (DHTTP).
    pub opening: Duration,
    /// Per request, before the first byte of its response is written.
    pub request: Duration,
    /// Per write, except a header section that leaves separately: reading the file, copying.
    pub write: Duration,
}

/// A server with a site.
pub struct WebServer {
    site: Site,
    config: ServerConfig,
    times: ServerTimes,
    heads: HeadSizes,
    /// The last write of a response shuts its connection down (T/TCP's `MSG_EOF`).
    fin_with_data: bool,
    dhttp: Option<DhttpService>,
    http3: Option<Http3Server>,
    /// Clients' addresses of HTTP/3, as the simulation knows them.
    peers: BTreeMap<SocketAddr, Address>,
    steps: VecDeque<ServerStep>,
    connections: BTreeMap<SocketId, ServedConnection>,
    queue: AcceptQueue,
    /// Timeouts of the connections.
    deadlines: BTreeSet<(Time, SocketId)>,
    faults: u64,
    port: u16,
    protocols: ServerProtocols,
    /// Traits of responses, by the request's target.
    traits: Arc<BTreeMap<String, ResponseTraits>>,
    /// Requests by the time of their response, in order.
    delayed: BTreeMap<(Time, u64), DelayedRequest>,
    /// Number of delayed requests so far.
    delays: u64,
}

/// A connection, and what it waits for.
struct ServedConnection {
    http: HttpConnection,
    is_writing: bool,
    /// Whether the server's next step on it is pending.
    is_scheduled: bool,
    deadline: Option<Time>,
}

/// Where a response goes.
#[derive(Clone, Copy, Debug)]
enum ResponseChannel {
    /// To a request on a TCP connection.
    Socket(SocketId, RequestId),
    Http3(Http3Request),
}

/// A request whose response is delayed.
struct DelayedRequest {
    channel: ResponseChannel,
    head: Box<RequestHead>,
}

/// Pending steps, in order.
enum ServerStep {
    Listen,
    DropSyns,
    Bind,
    Dhttp(dhttp_service::DhttpStep),
    Work(Duration),
    Respond(ResponseChannel, Box<RequestHead>),
    Proceed(SocketId),
}

/// Port of the web.
pub const PORT: u16 = 80;
/// Port of the web over TLS.
pub const SECURE_PORT: u16 = 443;

impl WebServer {
    /// A server of this site, with these minimum header sizes; if `fin_with_data`, the last write of a
    /// response shuts down its connection.
    pub fn new(
        site: Site,
        config: ServerConfig,
        times: ServerTimes,
        heads: HeadSizes,
        fin_with_data: bool,
    ) -> Self {
        let (steps, connections, deadlines) = ([ServerStep::Listen].into(), BTreeMap::new(), BTreeSet::new());
        let queue = AcceptQueue::new(None, usize::MAX);
        Self {
            site,
            config,
            times,
            heads,
            fin_with_data,
            dhttp: None,
            http3: None,
            peers: BTreeMap::new(),
            steps,
            connections,
            queue,
            deadlines,
            faults: 0,
            port: PORT,
            protocols: ServerProtocols::default(),
            traits: Arc::default(),
            delayed: BTreeMap::new(),
            delays: 0,
        }
    }

    /// Limits the connections that are served simultaneously, whichever end opened them. Up to `backlog` others wait;
    /// beyond them SYNs are dropped.
    #[must_use]
    pub(crate) fn with_processes(mut self, processes: Option<usize>, backlog: usize) -> Self {
        self.queue = AcceptQueue::new(processes, backlog);
        self
    }

    /// Makes it speak these protocols, and its responses have these traits, by the request's target. With TLS it listens on
    /// [`SECURE_PORT`].
    #[must_use]
    pub fn with_protocols(
        mut self,
        protocols: ServerProtocols,
        traits: Arc<BTreeMap<String, ResponseTraits>>,
    ) -> Self {
        self.port = if protocols.tls.is_some() { SECURE_PORT } else { PORT };
        (self.protocols, self.traits) = (protocols, traits);
        self
    }

    /// Adds DHTTP to the server.
    #[must_use]
    pub fn with_dhttp(mut self, dhttp: DhttpServer) -> Self {
        self.dhttp = Some(DhttpService::new(dhttp));
        self.steps.push_back(ServerStep::Bind);
        self
    }

    /// Adds HTTP/3 to the server.
    #[must_use]
    pub fn with_http3(mut self, http3: Http3Server) -> Self {
        self.http3 = Some(http3);
        self.steps.push_back(ServerStep::Bind);
        self
    }

    /// Counters of DHTTP, if it speaks DHTTP.
    pub fn dhttp_counts(&self) -> Option<DhttpCounts> {
        self.dhttp.as_ref().map(DhttpService::counts)
    }

    /// Number of clients' protocol errors.
    pub const fn faults(&self) -> u64 {
        self.faults
    }

    pub(super) fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Datagram(datagram) if self.http3.is_some() => self.receive_quic(now, &datagram),
            Input::Datagram(datagram) => {
                let step = self.dhttp.as_mut().and_then(|dhttp| dhttp.receive(now, datagram));
                if let Some(step) = step {
                    self.steps.extend([ServerStep::Work(self.times.request), ServerStep::Dhttp(step)]);
                }
            }
            Input::Connected(socket)
            | Input::Data(socket, _)
            | Input::Finished(socket)
            | Input::Written(socket)
            | Input::Closed(socket)
            | Input::Failed(socket, _)
                if self.dhttp.as_ref().is_some_and(|dhttp| dhttp.owns(socket)) =>
            {
                let step = self.dhttp.as_mut().and_then(|dhttp| dhttp.handle(now, &input));
                self.steps.extend(step.map(ServerStep::Dhttp));
            }
            Input::Accepted(socket, ..) => {
                if self.queue.is_busy(self.served()) {
                    self.queue.push(socket);
                    if self.queue.is_full() {
                        self.steps.push_back(ServerStep::DropSyns);
                    }
                } else {
                    self.accept(now, socket);
                }
            }
            Input::Data(socket, bytes) => match self.queue.find(socket) {
                Some(waiting) => waiting.bytes.extend_from_slice(&bytes),
                None => self.deliver(now, socket, server::Input::Received(&bytes)),
            },
            Input::Finished(socket) => match self.queue.find(socket) {
                Some(waiting) => waiting.is_finished = true,
                None => self.deliver(now, socket, server::Input::EndOfStream),
            },
            Input::Failed(socket, _) | Input::Closed(socket) => {
                let was_full = self.queue.is_full();
                self.queue.forget(socket);
                self.listen_again(was_full);
                self.deliver(now, socket, server::Input::Reset);
                self.forget(socket);
            }
            Input::Written(socket) => {
                if let Some(served) = self.connections.get_mut(&socket) {
                    (served.is_writing, served.is_scheduled) = (false, true);
                    self.steps.push_back(ServerStep::Proceed(socket));
                }
            }
            Input::Connected(_) => {}
        }
    }

    pub(super) fn poll(&mut self, now: Time, fresh: SocketId) -> Action {
        loop {
            match self.steps.pop_front() {
                Some(ServerStep::Listen) => return Action::Listen(self.port),
                Some(ServerStep::DropSyns) => return Action::DropSyns(self.port),
                Some(ServerStep::Bind) => return Action::Bind(self.port),
                Some(ServerStep::Dhttp(step)) => {
                    if let Some(action) = self.serve(now, step, fresh) {
                        return action;
                    }
                }
                Some(ServerStep::Work(Duration::ZERO)) => {}
                Some(ServerStep::Work(time)) => {
                    // What is known already leaves before.
                    if let Some(action) = self.next_datagram(now) {
                        self.steps.push_front(ServerStep::Work(time));
                        return action;
                    }
                    return Action::Work(time);
                }
                Some(ServerStep::Respond(channel, head)) => self.respond(now, channel, &head),
                Some(ServerStep::Proceed(socket)) => {
                    if let Some(action) = self.proceed(socket) {
                        return action;
                    }
                }
                None => {
                    if self.serve_next(now) {
                        continue;
                    }
                    if let Some((deadline, socket)) = self.deadlines.first().copied()
                        && deadline <= now
                    {
                        self.drain(now, socket);
                        continue;
                    }
                    if self.respond_delayed(now) || self.expire_quic(now) {
                        continue;
                    }
                    if let Some(action) = self.next_datagram(now) {
                        return action;
                    }
                    match self.dhttp.as_mut().map_or(Err(None), |dhttp| dhttp.expire(now)) {
                        Ok(step) => self.steps.push_back(ServerStep::Dhttp(step)),
                        Err(until) => return Action::Wait(until.into_iter().chain(self.next_timer()).min()),
                    }
                }
            }
        }
    }

    /// Accepts SYNs again if the backlog was full and no longer is.
    fn listen_again(&mut self, was_full: bool) {
        if was_full && !self.queue.is_full() {
            self.steps.push_back(ServerStep::Listen);
        }
    }

    /// Number of connections that are served.
    fn served(&self) -> usize {
        self.connections.len() + self.dhttp.as_ref().map_or(0, DhttpService::open)
    }

    fn accept(&mut self, now: Time, socket: SocketId) {
        let http = HttpConnection::new(&self.protocols, ServerConnection::new(now, self.config));
        let served = ServedConnection { http, is_writing: false, is_scheduled: false, deadline: None };
        self.connections.insert(socket, served);
        self.steps.push_back(ServerStep::Work(self.times.connection));
        self.drain(now, socket);
    }

    /// Gives a waiting connection to a free process, with what has arrived on it meanwhile.
    fn serve_next(&mut self, now: Time) -> bool {
        let was_full = self.queue.is_full();
        let Some((socket, waiting)) = self.queue.next(self.served()) else { return false };
        self.listen_again(was_full);
        let Waiting { bytes, is_finished } = waiting;
        self.accept(now, socket);
        if !bytes.is_empty() {
            self.deliver(now, socket, server::Input::Received(&bytes));
        }
        if is_finished {
            self.deliver(now, socket, server::Input::EndOfStream);
        }
        true
    }

    /// Executes a step of the DHTTP part; steps that follow from a response come next.
    fn serve(&mut self, now: Time, step: dhttp_service::DhttpStep, fresh: SocketId) -> Option<Action> {
        match step {
            dhttp_service::DhttpStep::Respond(requested) => {
                let mut response = self.site.respond(&requested.head);
                self.pad(&requested.head, &mut response);
                let steps = self.dhttp.as_mut()?.respond(now, *requested, &response);
                for step in steps.into_iter().rev() {
                    let opens = matches!(step, dhttp_service::DhttpStep::Open(_));
                    self.steps.push_front(ServerStep::Dhttp(step));
                    if opens {
                        self.steps.push_front(ServerStep::Work(self.times.opening));
                    }
                }
                None
            }
            step @ (dhttp_service::DhttpStep::Send(_)
            | dhttp_service::DhttpStep::Open(_)
            | dhttp_service::DhttpStep::Proceed(_)
            | dhttp_service::DhttpStep::Close(_)
            | dhttp_service::DhttpStep::Abort(_)) => self.dhttp.as_mut()?.act(step, fresh),
        }
    }

    fn deliver(&mut self, now: Time, socket: SocketId, input: server::Input<'_>) {
        if let Some(served) = self.connections.get_mut(&socket) {
            served.http.handle(now, input);
            self.drain(now, socket);
        }
    }

    fn respond(&mut self, now: Time, channel: ResponseChannel, head: &RequestHead) {
        let mut response = self.site.respond(head);
        self.pad(head, &mut response);
        match channel {
            ResponseChannel::Socket(socket, id) => {
                if let Some(served) = self.connections.get_mut(&socket) {
                    served.http.respond(now, id, response);
                    self.drain(now, socket);
                }
            }
            ResponseChannel::Http3(request) => {
                if let Some(http3) = &mut self.http3 {
                    http3.respond(request, &response);
                }
            }
        }
    }

    /// Records the state of QUIC's recovery from now on.
    pub fn record(&mut self) {
        if let Some(http3) = &mut self.http3 {
            http3.record();
        }
    }

    /// Changes of QUIC's recovery and their clients, in order.
    pub fn recoveries(&self) -> impl Iterator<Item = (Address, Recovery)> {
        let all = self.http3.iter().flat_map(|http3| http3.recoveries());
        all.filter_map(|recovery| Some((*self.peers.get(&recovery.peer)?, *recovery)))
    }

    /// Port at which it listens.
    pub const fn port(&self) -> u16 {
        self.port
    }

    fn receive_quic(&mut self, now: Time, datagram: &Datagram) {
        let Some(http3) = &mut self.http3 else { return };
        let from = socket(datagram.peer);
        self.peers.insert(from, datagram.peer);
        http3.receive(now, from, &datagram.payload);
        self.drain_quic(now);
    }

    /// Handles what is due of HTTP/3; returns whether anything was.
    fn expire_quic(&mut self, now: Time) -> bool {
        let Some(http3) = self.http3.as_mut().filter(|http3| http3.timeout().is_some_and(|due| due <= now))
        else {
            return false;
        };
        http3.expire(now);
        self.drain_quic(now);
        true
    }

    /// Handles the requests that have arrived over HTTP/3.
    fn drain_quic(&mut self, now: Time) {
        let Some(http3) = &mut self.http3 else { return };
        let accepted = http3.take_accepted();
        let requests: Vec<_> = std::iter::from_fn(|| http3.next_request()).collect();
        self.steps.push_back(ServerStep::Work(self.times.connection * accepted));
        for (request, head) in requests {
            self.request(now, ResponseChannel::Http3(request), head);
        }
    }

    /// Sends the next datagram of HTTP/3.
    fn next_datagram(&mut self, now: Time) -> Option<Action> {
        let (to, bytes) = self.http3.as_mut()?.next_datagram(now)?;
        let peer = *self.peers.get(&to)?;
        Some(Action::Send(Datagram { peer, port: self.port, payload: Payload::from(bytes) }))
    }

    fn pad(&self, request: &RequestHead, response: &mut Response) {
        let own = self.traits.get(&request.target).and_then(|traits| traits.head);
        self.heads.pad(own, self.protocols.http2.is_some(), request, response);
    }

    fn forget(&mut self, socket: SocketId) {
        if let Some(ServedConnection { deadline: Some(deadline), .. }) = self.connections.remove(&socket) {
            self.deadlines.remove(&(deadline, socket));
        }
    }

    /// Handles all wishes of a connection.
    fn drain(&mut self, now: Time, socket: SocketId) {
        let Some(served) = self.connections.get_mut(&socket) else { return };
        let mut requests = Vec::new();
        let until = loop {
            match served.http.next(now) {
                Wish::Response(id, head) => requests.push((id, head)),
                Wish::Aborted(_) => {}
                Wish::Fault(_) => self.faults += 1,
                Wish::Timeout(until) => break until,
            }
        };
        if let Some(before) = served.deadline {
            self.deadlines.remove(&(before, socket));
        }
        served.deadline = until;
        self.deadlines.extend(until.map(|until| (until, socket)));
        if served.http.has_output() && !served.is_writing && !served.is_scheduled {
            served.is_scheduled = true;
            self.steps.push_back(ServerStep::Proceed(socket));
        }
        for (id, head) in requests {
            self.request(now, ResponseChannel::Socket(socket, id), head);
        }
    }

    /// Responds to a request when its turn comes, or after its delay.
    fn request(&mut self, now: Time, channel: ResponseChannel, head: RequestHead) {
        let delay = self.traits.get(&head.target).map_or(Duration::ZERO, |traits| traits.delay);
        let head = Box::new(head);
        if delay == Duration::ZERO {
            self.steps.extend([ServerStep::Work(self.times.request), ServerStep::Respond(channel, head)]);
        } else {
            self.delays += 1;
            self.delayed.insert((now + delay, self.delays), DelayedRequest { channel, head });
        }
    }

    /// Responds to the first delayed request, if it is due.
    fn respond_delayed(&mut self, now: Time) -> bool {
        let is_due = |(at, _): &(Time, u64)| *at <= now;
        let Some(DelayedRequest { channel, head }) =
            self.delayed.first_entry().filter(|entry| is_due(entry.key())).map(|entry| entry.remove())
        else {
            return false;
        };
        self.steps.extend([ServerStep::Work(self.times.request), ServerStep::Respond(channel, head)]);
        true
    }

    fn next_timer(&self) -> Option<Time> {
        let delayed = self.delayed.first_key_value().map(|((at, _), _)| *at);
        let quic = self.http3.as_ref().and_then(Http3Server::timeout);
        self.deadlines.first().map(|(at, _)| *at).into_iter().chain(delayed).chain(quic).min()
    }

    /// Next action of a connection, unless it waits for a write. Every write except the first of a response
    /// takes its time.
    fn proceed(&mut self, socket: SocketId) -> Option<Action> {
        let ServedConnection { http, is_writing, is_scheduled, deadline: _ } =
            self.connections.get_mut(&socket)?;
        *is_scheduled = false;
        if *is_writing {
            return None;
        }
        match http.next_output()? {
            server::Output::Send(bytes) => {
                *is_writing = true;
                if self.fin_with_data && matches!(http.second_output(), Some(server::Output::HalfClose)) {
                    http.skip_output();
                    return Some(Action::WriteLast(socket, Payload::from(bytes)));
                }
                if matches!(http.second_output(), Some(server::Output::Send(_))) {
                    self.steps.push_front(ServerStep::Work(self.times.write));
                }
                Some(Action::Write(socket, Payload::from(bytes)))
            }
            server::Output::HalfClose => {
                *is_scheduled = true;
                self.steps.push_back(ServerStep::Proceed(socket));
                Some(Action::Shutdown(socket))
            }
            // TCP completes the close without the server.
            server::Output::Close => {
                self.forget(socket);
                Some(Action::Close(socket))
            }
            server::Output::Abort => {
                self.forget(socket);
                Some(Action::Abort(socket))
            }
            server::Output::Request(..)
            | server::Output::RequestBody(..)
            | server::Output::RequestEnd(_)
            | server::Output::RequestAborted(_)
            | server::Output::Fault(_)
            | server::Output::Timeout(_) => None,
        }
    }
}
