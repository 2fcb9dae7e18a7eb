//! Users of one client host: each fetches a page, looks at it, and fetches the next.
//!
//! After SURGE (Barford and Crovella 1998), which the paper used. A page has one object and a Pareto-distributed number
//! of embedded ones; think time is Pareto, too. As in `papers/dhttp#section-vi-b`, a user of DHTTP requests a page and
//! all its embedded objects simultaneously. A user of HTTP/1.1 pipelines the embedded ones over up to three
//! connections, after the page has arrived. Popularity and locality are left out: there is no cache here.

mod connections;

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dhttp_proto::client::{ConnectionId, Input as ClientInput, Output};
use dhttp_proto::{Client, ClientConfig, Id};
use http1::message::{Fields, Method, RequestHead, Version};
use http1::site::Site;
use tcp::Payload;
use wire::seed::Random;
use wire::{Duration, Time};

use super::{DumbbellConfig, Transactions, UserProtocol};
use crate::world::{Action, Address, Datagram, Input, SocketId};
use connections::{ConnectionChoice, UserConnections};

/// First user's port, UDP and TCP; the other users have the following ports.
const PORT: u16 = 20_000;
/// SURGE's distribution of objects per page, and of think time in seconds.
const OBJECTS: Pareto = Pareto { minimum: 1.0, shape: 2.43 };
const THINKING: Pareto = Pareto { minimum: 1.0, shape: 1.5 };
/// Maximum think time in seconds, and maximum number of objects per page.
const MAX_SAMPLE: f64 = 60.0;

/// Users of one client host.
pub struct Population {
    server: Address,
    /// Number of objects on the server.
    objects: u64,
    random: Random,
    users: Vec<User>,
    /// Users with something due: the next page, or a timer of the state machine.
    agenda: BTreeSet<(Time, usize)>,
    /// User of each connection.
    sockets: BTreeMap<SocketId, usize>,
    steps: VecDeque<PendingStep>,
    counts: UserCounts,
    closes_early: bool,
    transactions: Option<Transactions>,
}

/// Counters of a host's users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserCounts {
    /// Complete responses.
    pub responses: u64,
    /// Responses that broke off.
    pub failures: u64,
    /// Sum of the times from a request to its complete response.
    pub waited: Duration,
    /// Bytes received, of responses with their headers.
    pub bytes: u64,
    /// Sum of the times from a page's first request to its last response.
    pub pages: Duration,
}

impl UserCounts {
    /// The counts since an earlier time.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        let Self { responses, failures, waited, bytes, pages } = before;
        Self {
            responses: self.responses - responses,
            failures: self.failures - failures,
            waited: self.waited.saturating_sub(waited),
            bytes: self.bytes - bytes,
            pages: self.pages.saturating_sub(pages),
        }
    }
}

struct User {
    /// DHTTP's client, if the user speaks DHTTP.
    client: Option<Box<Client>>,
    /// Connections that the user opened.
    connections: UserConnections,
    /// Requests over DHTTP without a complete response.
    requests: BTreeMap<u64, Request>,
    /// Objects of the page that are still to be requested.
    remaining: u64,
    /// Objects of the page that were requested and have not come.
    outstanding: u64,
    /// Start of the page in progress, or of the last one.
    page_began: Time,
    /// Start of the next page; `None` while a page is in progress.
    begins: Option<Time>,
}

/// A requested object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    object: usize,
    began: Time,
}

enum PendingStep {
    Do(Action),
    Open(usize),
}

struct Pareto {
    minimum: f64,
    shape: f64,
}

impl Pareto {
    fn draw(&self, random: &mut Random) -> f64 {
        (self.minimum / (1.0 - random.unit()).powf(1.0 / self.shape)).min(MAX_SAMPLE)
    }
}

impl Population {
    /// `count` users, who start one after another within the first three seconds.
    pub(super) fn new(
        config: &DumbbellConfig,
        server: Address,
        objects: u64,
        count: u16,
        mut random: Random,
    ) -> Self {
        let (mut users, mut agenda, mut steps) = (Vec::new(), BTreeSet::new(), VecDeque::new());
        for (number, port) in (0..usize::from(count)).zip(PORT..) {
            let mut client = |config: ClientConfig| {
                steps.extend([PendingStep::Do(Action::Bind(port)), PendingStep::Do(Action::Listen(port))]);
                let secret =
                    (u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())).to_be_bytes();
                Box::new(Client::new(config, port, secret))
            };
            let client = match config.users {
                UserProtocol::Http => None,
                UserProtocol::Dhttp | UserProtocol::DhttpOfToday => Some(client(config.client)),
            };
            let begins = Time::ZERO + Duration::from_millis(random.up_to(3_000));
            users.push(User {
                client,
                connections: UserConnections::new(config.connections),
                requests: BTreeMap::new(),
                remaining: 0,
                outstanding: 0,
                page_began: begins,
                begins: Some(begins),
            });
            agenda.insert((begins, number));
        }
        let (sockets, counts) = (BTreeMap::new(), UserCounts::default());
        let DumbbellConfig { closes_early, transactions, .. } = *config;
        Self { server, objects, random, users, agenda, sockets, steps, counts, closes_early, transactions }
    }

    /// Counters since the start.
    pub(super) const fn counts(&self) -> UserCounts {
        self.counts
    }

    /// Handles an event.
    pub(super) fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Datagram(Datagram { peer: _, port, payload }) => {
                self.counts.bytes += payload.len() as u64;
                self.deliver(now, usize::from(port - PORT), ClientInput::Datagram(SERVER, &payload));
            }
            Input::Accepted(socket, port, _) => {
                let user = usize::from(port - PORT);
                self.sockets.insert(socket, user);
                self.deliver(now, user, ClientInput::Accepted(name(socket), SERVER));
            }
            Input::Data(socket, bytes) => {
                let Some(user) = self.sockets.get(&socket).copied() else { return };
                self.counts.bytes += bytes.len() as u64;
                if self.users[user].connections.has(socket) {
                    self.read(now, user, socket, &bytes);
                } else {
                    self.deliver(now, user, ClientInput::Received(name(socket), &bytes));
                }
            }
            Input::Connected(socket) => {
                if self.transactions.is_none()
                    && let Some(user) = self.sockets.get(&socket)
                    && let Some(unsent) = self.users[*user].connections.open(socket)
                {
                    self.steps.push_back(PendingStep::Do(Action::Write(socket, Payload::from(unsent))));
                }
            }
            Input::Finished(socket) | Input::Closed(socket) | Input::Failed(socket, _) => {
                let Some(user) = self.sockets.remove(&socket) else { return };
                self.steps.push_back(PendingStep::Do(Action::Close(socket)));
                if self.users[user].connections.has(socket) {
                    // The server timed the connection out as requests left, or was unreachable.
                    for request in self.users[user].connections.remove(socket) {
                        self.request_over_tcp(user, request);
                    }
                } else {
                    self.deliver(now, user, ClientInput::Ended(name(socket)));
                }
            }
            Input::Written(_) => {}
        }
    }

    /// Reads responses over plain HTTP.
    fn read(&mut self, now: Time, number: usize, socket: SocketId, bytes: &[u8]) {
        let user = &mut self.users[number];
        let ended = user.connections.read(socket, bytes);
        if let Some(client) = &mut user.client {
            client.handle(now, ClientInput::Heard(SERVER.ip(), bytes.len()));
        }
        for request in ended {
            self.complete(now, number, request);
        }
        self.listen(now, number);
    }

    /// Next action.
    pub(super) fn poll(&mut self, now: Time, fresh: SocketId) -> Action {
        loop {
            match self.steps.pop_front() {
                Some(PendingStep::Do(action)) => return action,
                Some(PendingStep::Open(user)) => {
                    self.sockets.insert(fresh, user);
                    let connections = &mut self.users[user].connections;
                    connections.name(fresh);
                    if self.transactions.is_some() {
                        let requests = Payload::from(connections.spend(fresh));
                        self.steps.push_front(PendingStep::Do(Action::WriteLast(fresh, requests)));
                    }
                    return Action::Connect(self.server);
                }
                None => match self.agenda.first().copied() {
                    Some((at, user)) if at <= now => {
                        self.agenda.pop_first();
                        self.wake(now, user);
                    }
                    next => return Action::Wait(next.map(|(at, _)| at)),
                },
            }
        }
    }

    fn wake(&mut self, now: Time, number: usize) {
        let user = &mut self.users[number];
        if user.begins.is_some_and(|begins| begins <= now) {
            (user.begins, user.page_began) = (None, now);
            // From 1 to 60.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let objects = OBJECTS.draw(&mut self.random) as u64;
            // Users of HTTP do not know the embedded objects before the page has come, unless they are idealized.
            let is_whole = user.client.is_some() || self.transactions == Some(Transactions::WholePage);
            let first = if is_whole { objects } else { 1 };
            user.remaining = objects;
            self.request_next(now, number, first);
        }
        self.listen(now, number);
    }

    fn deliver(&mut self, now: Time, user: usize, reported: ClientInput<'_>) {
        if let Some(client) = &mut self.users[user].client {
            client.handle(now, reported);
        }
        self.listen(now, user);
    }

    /// Handles the outputs of a user's state machine, until it waits.
    fn listen(&mut self, now: Time, user: usize) {
        loop {
            let Some(client) = &mut self.users[user].client else { return };
            match client.poll(now) {
                Output::Send(_, datagram) => {
                    let (peer, port) = (self.server, (PORT..).nth(user).unwrap_or(PORT));
                    let datagram = Datagram { peer, port, payload: Payload::from(datagram) };
                    self.steps.push_back(PendingStep::Do(Action::Send(datagram)));
                }
                Output::Close(connection) => {
                    let socket = SocketId(u32::try_from(connection.0).unwrap_or(u32::MAX));
                    self.sockets.remove(&socket);
                    self.steps.push_back(PendingStep::Do(Action::Close(socket)));
                }
                Output::Head(..) | Output::Body(..) | Output::Discarded(..) => {}
                Output::End(Id(id)) => {
                    let request = self.users[user].requests.remove(&id);
                    request.into_iter().for_each(|request| self.complete(now, user, request));
                }
                Output::Fallback(Id(id), _) => {
                    let request = self.users[user].requests.remove(&id);
                    request.into_iter().for_each(|request| self.request_over_tcp(user, request));
                }
                Output::Failed(Id(id), _) => {
                    if self.users[user].requests.remove(&id).is_some() {
                        self.counts.failures += 1;
                        self.continue_page(now, user);
                    }
                }
                Output::Timeout(until) => {
                    self.agenda.extend(until.map(|until| (until, user)));
                    return;
                }
            }
        }
    }

    fn complete(&mut self, now: Time, user: usize, request: Request) {
        self.counts.responses += 1;
        self.counts.waited += now.since(request.began);
        self.continue_page(now, user);
    }

    /// Requests what is left of a user's page, or starts the think time when everything has come.
    fn continue_page(&mut self, now: Time, number: usize) {
        let user = &mut self.users[number];
        user.outstanding -= 1;
        if user.remaining > 0 {
            let remaining = user.remaining;
            self.request_next(now, number, remaining);
        } else if user.outstanding == 0 {
            let thinking = Duration::from_secs_f64(THINKING.draw(&mut self.random)).unwrap_or_default();
            user.begins = Some(now + thinking);
            self.counts.pages += now.since(user.page_began);
            if self.closes_early {
                for socket in user.connections.remove_all() {
                    self.sockets.remove(&socket);
                    self.steps.push_back(PendingStep::Do(Action::Close(socket)));
                }
            }
            self.agenda.insert((now + thinking, number));
        }
    }

    /// Requests the page's next objects, each a random one.
    fn request_next(&mut self, now: Time, number: usize, count: u64) {
        let user = &mut self.users[number];
        user.remaining -= count;
        user.outstanding += count;
        for _ in 0..count {
            let object = usize::try_from(self.random.up_to(self.objects - 1)).unwrap_or_default();
            let (request, id) = (Request { object, began: now }, Id::marked(self.random.next_u64()));
            let user = &mut self.users[number];
            let is_sent = user
                .client
                .as_mut()
                .is_some_and(|client| client.request(now, id, SERVER, &head(object)).is_ok());
            if is_sent {
                user.requests.insert(id.0, request);
            } else {
                self.request_over_tcp(number, request);
            }
        }
    }

    fn request_over_tcp(&mut self, number: usize, request: Request) {
        let user = &mut self.users[number];
        let mut bytes = Vec::new();
        head(request.object).encode(&mut bytes);
        self.steps.push_back(match user.connections.request(request, bytes) {
            ConnectionChoice::Open => PendingStep::Open(number),
            ConnectionChoice::Wait => return,
            ConnectionChoice::Write(socket, bytes) => {
                PendingStep::Do(Action::Write(socket, Payload::from(bytes)))
            }
        });
    }
}

/// A request for an object.
fn head(object: usize) -> RequestHead {
    let mut fields = Fields::new();
    fields.push("Host", "server").expect("a word can stand in a field");
    let (method, target, version) = (Method::Get, Site::path(object), Version::Http11);
    RequestHead { method, target, version, fields }
}

fn name(socket: SocketId) -> ConnectionId {
    ConnectionId(u64::from(socket.0))
}

/// The server's address in state machines: on simulated hosts the first host's.
const SERVER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 80));
