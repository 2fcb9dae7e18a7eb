//! Users of one client host: each fetches a page, looks at it, and fetches the next.
//!
//! After SURGE (Barford and Crovella 1998), which the paper used. Simulated are the aspects that matter
//! here: a page has one object and, by a Pareto distribution, some more, fetched sequentially; think time is
//! Pareto, too. Popularity and locality are left out: there is no cache here.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dhttp_proto::client::{ConnectionId, Input as Told, Output};
use dhttp_proto::{Client, ClientConfig, Id};
use http1::message::{Event, Fields, Limits, Method, RequestHead, ResponseReader, Version};
use http1::site::Site;
use tcp::Payload;
use wire::seed::Random;
use wire::{Duration, Time};

use super::UserProtocol;
use crate::world::{Action, Address, Datagram, Input, SocketId};

/// First user's port, UDP and TCP; the other users have the following ports.
const PORT: u16 = 20_000;
/// SURGE's distribution of objects per page, and of think time in seconds.
const OBJECTS: Pareto = Pareto { least: 1.0, shape: 2.43 };
const THINKING: Pareto = Pareto { least: 1.0, shape: 1.5 };
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
}

struct User {
    way: UserTransport,
    /// Objects of the page that are still to be requested.
    left: u64,
    /// Start of the next page; `None` while a page is in progress.
    begins: Option<Time>,
}

/// Transport of a user's requests.
enum UserTransport {
    /// HTTP/1.1: over a connection that is kept alive, once it is open.
    Http(Option<Box<Http1Connection>>),
    /// DHTTP, each user with a state machine of its own.
    Dhttp(Box<Client>),
}

/// An HTTP/1.1 connection.
struct Http1Connection {
    socket: SocketId,
    reader: ResponseReader,
    is_waiting: bool,
}

enum PendingStep {
    Do(Action),
    Open(usize),
}

struct Pareto {
    least: f64,
    shape: f64,
}

impl Pareto {
    fn draw(&self, random: &mut Random) -> f64 {
        (self.least / (1.0 - random.unit()).powf(1.0 / self.shape)).min(MAX_SAMPLE)
    }
}

impl Population {
    /// `count` users, who start one after another within the first three seconds.
    pub fn new(asks: UserProtocol, server: Address, objects: u64, count: u16, mut random: Random) -> Self {
        let (mut users, mut agenda, mut steps) = (Vec::new(), BTreeSet::new(), VecDeque::new());
        for (number, port) in (0..usize::from(count)).zip(PORT..) {
            let way = match asks {
                UserProtocol::Http => UserTransport::Http(None),
                UserProtocol::Dhttp => {
                    steps
                        .extend([PendingStep::Do(Action::Bind(port)), PendingStep::Do(Action::Listen(port))]);
                    let secret =
                        (u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())).to_be_bytes();
                    UserTransport::Dhttp(Box::new(Client::new(ClientConfig::paper(), port, secret)))
                }
            };
            let begins = Time::ZERO + Duration::from_millis(random.up_to(3_000));
            users.push(User { way, left: 0, begins: Some(begins) });
            agenda.insert((begins, number));
        }
        let sockets = BTreeMap::new();
        Self { server, objects, random, users, agenda, sockets, steps }
    }

    /// Handles an event.
    pub fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Datagram(Datagram { peer: _, port, payload }) => {
                self.tell(now, usize::from(port - PORT), Told::Datagram(SERVER, &payload));
            }
            Input::Accepted(socket, port, _) => {
                let user = usize::from(port - PORT);
                self.sockets.insert(socket, user);
                self.tell(now, user, Told::Accepted(name(socket), SERVER));
            }
            Input::Data(socket, bytes) => {
                let Some(user) = self.sockets.get(&socket).copied() else { return };
                self.tell(now, user, Told::Received(name(socket), &bytes));
                self.read(now, user, &bytes);
            }
            Input::Connected(socket) => {
                if let Some(user) = self.sockets.get(&socket).copied() {
                    let reader = ResponseReader::new(Limits::default());
                    let line = Box::new(Http1Connection { socket, reader, is_waiting: false });
                    self.users[user].way = UserTransport::Http(Some(line));
                    self.ask(now, user);
                }
            }
            Input::Finished(socket) | Input::Closed(socket) | Input::Failed(socket, _) => {
                let Some(user) = self.sockets.remove(&socket) else { return };
                self.steps.push_back(PendingStep::Do(Action::Close(socket)));
                self.tell(now, user, Told::Ended(name(socket)));
                if let UserTransport::Http(line) = &mut self.users[user].way
                    && line.take().is_none_or(|line| line.is_waiting)
                {
                    // The server timed the connection out as the request left, or was unreachable.
                    self.ask(now, user);
                }
            }
            Input::Written(_) => {}
        }
    }

    /// Reads an HTTP/1.1 response; when it is complete, starts the user's next step.
    fn read(&mut self, now: Time, user: usize, mut bytes: &[u8]) {
        let UserTransport::Http(Some(line)) = &mut self.users[user].way else { return };
        while let Ok(Some(event)) = line.reader.read(&mut bytes, &Method::Get) {
            if event == Event::End {
                line.is_waiting = false;
                return self.go_on(now, user);
            }
        }
    }

    /// Next action.
    pub fn poll(&mut self, now: Time, fresh: SocketId) -> Action {
        loop {
            match self.steps.pop_front() {
                Some(PendingStep::Do(action)) => return action,
                Some(PendingStep::Open(user)) => {
                    self.sockets.insert(fresh, user);
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
            user.begins = None;
            // From 1 to 60.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let objects = OBJECTS.draw(&mut self.random) as u64;
            user.left = objects;
            self.go_on(now, number);
        }
        self.listen(now, number);
    }

    fn tell(&mut self, now: Time, user: usize, reported: Told<'_>) {
        if let UserTransport::Dhttp(client) = &mut self.users[user].way {
            client.handle(now, reported);
        }
        self.listen(now, user);
    }

    /// Handles the outputs of a user's state machine, until it waits.
    fn listen(&mut self, now: Time, user: usize) {
        loop {
            let UserTransport::Dhttp(client) = &mut self.users[user].way else { return };
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
                // A failed request is not retried by other means: the user goes on with the next.
                Output::End(_) | Output::Fallback(..) | Output::Failed(..) => self.go_on(now, user),
                Output::Timeout(until) => {
                    self.agenda.extend(until.map(|until| (until, user)));
                    return;
                }
            }
        }
    }

    /// Requests the next object of a user's page, or starts the think time.
    fn go_on(&mut self, now: Time, number: usize) {
        let user = &mut self.users[number];
        if user.left == 0 {
            let thinking = Duration::from_secs_f64(THINKING.draw(&mut self.random)).unwrap_or_default();
            user.begins = Some(now + thinking);
            self.agenda.insert((now + thinking, number));
            return;
        }
        user.left -= 1;
        self.ask(now, number);
    }

    /// Requests a random object.
    fn ask(&mut self, now: Time, number: usize) {
        let object = usize::try_from(self.random.up_to(self.objects - 1)).unwrap_or_default();
        let mut fields = Fields::new();
        fields.push("Host", "server").expect("a word can stand in a field");
        let (method, target, version) = (Method::Get, Site::path(object), Version::Http11);
        let head = RequestHead { method, target, version, fields };
        match &mut self.users[number].way {
            UserTransport::Http(None) => self.steps.push_back(PendingStep::Open(number)),
            UserTransport::Http(Some(line)) => {
                line.is_waiting = true;
                let mut request = Vec::new();
                head.encode(&mut request);
                let write = Action::Write(line.socket, Payload::from(request));
                self.steps.push_back(PendingStep::Do(write));
            }
            UserTransport::Dhttp(client) => {
                let requested = client.request(now, Id(self.random.next_u64()), SERVER, &head);
                requested.expect("a short request of one who has nothing else on its way goes over UDP");
            }
        }
    }
}

fn name(socket: SocketId) -> ConnectionId {
    ConnectionId(u64::from(socket.0))
}

/// The server's address in state machines: on simulated hosts the first host's.
const SERVER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 80));
