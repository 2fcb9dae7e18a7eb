//! The thread of a client: its datagrams, the connections that servers open to it, its timers.
//!
//! Not the outcome of requests: the state machine decides that ([`dhttp_proto::client`]).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use dhttp_proto::client::{ConnectionId, Failure, Input, Output, Reason, Source};
use dhttp_proto::message::{FallbackMessage, is_resend};
use dhttp_proto::{Client as Machine, ClientConfig, Id, message, parts};
use rustix::event::epoll::{self, CreateFlags, Event as Ready, EventData, EventFlags};
use wire::Time;

use super::exchange::{Event, Via};
use super::known_servers::{StoredToken, TOKEN_LIFETIME_SECONDS};
use super::race::Race;
use super::{Command, Note, PendingRequest, STOPPED, Shared, StoredTokens, plain};
use crate::batch::{self, Endpoints, Inbox, Outbox};
use crate::readiness::timespec;
use crate::{random, socket};
use linux::clock::{Clock, calendar};

/// The thread.
pub(super) struct Driver {
    clock: Clock,
    epoll: OwnedFd,
    /// One socket for each available address family, and its outgoing datagrams.
    udp: Vec<(UdpSocket, Outbox)>,
    listener: TcpListener,
    machine: Machine,
    inbox: Inbox,
    connections: BTreeMap<ConnectionId, (TcpStream, SocketAddr)>,
    next: u64,
    pending: BTreeMap<Id, PendingRequest>,
    /// The TCP port of the listener.
    port: u16,
    /// Tokens of an earlier client, which keep their expiry.
    restored: BTreeMap<SocketAddr, StoredToken>,
    shared: Arc<Shared>,
    buffer: Vec<u8>,
    /// The kernel's Fast Open setting, until it has been reported.
    fast_open: Option<(u32, bool)>,
    /// Descriptor in reserve: closed to accept and close a connection when there is no other descriptor.
    spare: Option<File>,
}

const WAKER: u64 = 0;
const LISTENER: u64 = 1;
/// And the next for the other family.
const UDP: u64 = 2;
/// First number of a connection.
const FIRST: u64 = 4;

impl Driver {
    pub(super) fn new(
        config: ClientConfig,
        ports: Option<RangeInclusive<u16>>,
        tokens: StoredTokens,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        let (listener, udp) = bind(ports, tokens.first().map(|(_, stored)| stored.port))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &shared.waker, EventData::new_u64(WAKER), EventFlags::IN)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        for ((socket, _), number) in udp.iter().zip(UDP..) {
            epoll::add(&epoll, socket, EventData::new_u64(number), EventFlags::IN)?;
        }
        let port = listener.local_addr()?.port();
        let mut machine = Machine::new(config, port, random::bytes()?);
        let restored: BTreeMap<_, _> =
            tokens.into_iter().filter(|(_, stored)| stored.port == port && config.takes_tokens).collect();
        for (server, stored) in &restored {
            machine.restore_token(Time::ZERO, *server, stored.token.as_bytes());
        }
        Ok(Self {
            clock: Clock::start(),
            epoll,
            udp,
            listener,
            machine,
            inbox: Inbox::default(),
            connections: BTreeMap::new(),
            next: FIRST,
            pending: BTreeMap::new(),
            port,
            restored,
            shared,
            buffer: vec![0; 256 << 10],
            fast_open: socket::fast_open_setting(),
            spare: Some(File::open("/dev/null")?),
        })
    }

    pub(super) fn run(&mut self) {
        let mut events: Vec<Ready> = Vec::with_capacity(64);
        loop {
            let next = self.poll();
            self.send();
            let wait = next.map(|next| timespec(next.since(self.clock.now())));
            events.clear();
            // An interrupted wait has no events; any other failure would be a bug in this file.
            let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), wait.as_ref());
            self.count_plain_bytes();
            for event in events.drain(..) {
                match event.data.u64() {
                    WAKER => {
                        if !self.commands() {
                            return;
                        }
                    }
                    LISTENER => self.accept(),
                    number @ UDP..FIRST => self.datagrams(number),
                    number => self.read(ConnectionId(number)),
                }
                self.poll();
            }
        }
    }

    /// Executes the state machine's outputs until it waits.
    fn poll(&mut self) -> Option<Time> {
        loop {
            match self.machine.poll(self.clock.now()) {
                Output::Send(to, bytes) => {
                    let is_resend = is_resend(&bytes);
                    self.shared.note(&if is_resend && message::is_for_missing(&bytes) {
                        Note::RequestedMissing(to, bytes.len())
                    } else {
                        Note::Sent(to, bytes.len(), is_resend)
                    });
                    // The IPv4 socket always exists, and is the first.
                    if let Some((_, outbox)) = self.udp.get_mut(usize::from(!to.is_ipv4())) {
                        outbox.slot(Endpoints { peer: to, local: None }).extend_from_slice(&bytes);
                    }
                }
                Output::Head(id, source, head) => {
                    let via = match source {
                        Source::Datagram(_) => Via::Udp,
                        Source::Connection(_) => Via::TcpOpened,
                    };
                    self.give(id, Event::Head(via, head));
                }
                Output::Body(id, bytes) => self.give(id, Event::Body(bytes)),
                Output::End(id) => {
                    self.give(id, Event::End);
                    self.pending.remove(&id);
                }
                Output::Fallback(id, reason) => self.fall_back(id, reason),
                Output::Failed(id, failure) => {
                    if let Some(request) = self.pending.remove(&id) {
                        request.sink.fail(failed(request.server, failure));
                    }
                }
                Output::Close(id) => {
                    if let Some((_, from)) = self.connections.remove(&id) {
                        self.shared.note(&Note::Ended(from));
                    }
                }
                Output::Discarded(from, reason) => self.shared.note(&Note::Discarded(from, reason)),
                Output::Timeout(next) => return next,
            }
        }
    }

    /// Reports bytes received by plain HTTP meanwhile, before the state machine considers a server silent.
    fn count_plain_bytes(&mut self) {
        let received_bytes =
            self.shared.received_bytes.lock().map(|mut received_bytes| std::mem::take(&mut *received_bytes));
        for (server, bytes) in received_bytes.unwrap_or_default() {
            self.machine.handle(self.clock.now(), Input::Heard(server, bytes));
        }
    }

    /// Sends the queued datagrams: many requests to one server leave as one piece.
    fn send(&mut self) {
        for (socket, outbox) in self.udp.iter_mut().filter(|(_, outbox)| !outbox.is_empty()) {
            // Datagrams that the socket does not accept are lost, as on the path; the state machine resends.
            outbox.send(socket);
            outbox.too_large();
        }
    }

    fn give(&mut self, id: Id, event: Event) {
        let Some(request) = self.pending.get(&id) else { return };
        let is_first = request.race.as_ref().is_none_or(|race| race.claim_for_dhttp());
        if !is_first || !request.sink.give(event) {
            self.machine.cancel(id);
            self.pending.remove(&id);
        }
    }

    fn fall_back(&mut self, id: Id, reason: Reason) {
        let Some(request) = self.pending.remove(&id) else { return };
        self.shared.note(&Note::Fallback(reason));
        match reason {
            Reason::Referred | Reason::Paused => {}
            // The server was known, but the entry is out of date.
            Reason::Unreachable | Reason::Silence => {
                if let Ok(mut known) = self.shared.known.lock() {
                    known.forget(&request.url.authority());
                }
            }
        }
        if !request.race.as_ref().is_some_and(|race| race.yield_to_plain()) {
            plain::send_request(&self.shared, PendingRequest { race: None, ..request });
        }
    }

    /// Runs the pending commands; `false` if the thread must stop.
    fn commands(&mut self) -> bool {
        // The value read only signals that there are commands.
        let _ = rustix::io::read(&self.shared.waker, &mut [0_u8; 8]);
        let commands = self.shared.commands.lock().map(|mut all| all.as_mut().map(std::mem::take));
        for command in commands.ok().flatten().unwrap_or_default() {
            match command {
                Command::Request(request) => self.send_request(*request),
                // The caller may have stopped waiting.
                Command::Export(to) => {
                    let _ = to.try_send(self.tokens());
                }
                Command::Cancel(id) => {
                    self.machine.cancel(id);
                    if let Some(race) = self.pending.remove(&id).and_then(|request| request.race) {
                        race.claim_for_dhttp();
                    }
                }
                Command::Resume(id) => self.resume(id),
                Command::Stop => return false,
            }
        }
        true
    }

    /// Returns the servers' tokens, with their expiry.
    fn tokens(&self) -> StoredTokens {
        let (now, calendar) = (self.clock.now(), calendar().as_nanos() / 1_000_000_000);
        let stored = self.machine.tokens().filter_map(|(server, token, learned)| {
            let token = std::str::from_utf8(token).ok()?.to_owned();
            if let Some(restored) = self.restored.get(&server).filter(|restored| restored.token == token) {
                return Some((server, restored.clone()));
            }
            let left = TOKEN_LIFETIME_SECONDS.checked_sub(now.since(learned).as_nanos() / 1_000_000_000)?;
            Some((server, StoredToken { token, port: self.port, expires: calendar + left }))
        });
        stored.collect()
    }

    fn send_request(&mut self, mut request: PendingRequest) {
        let now = self.clock.now();
        let is_raced = self.is_raced(&request);
        match self.machine.request(now, request.id, request.dhttp, &request.head) {
            Ok(()) => {
                if is_raced {
                    Race::begin(&self.shared, &mut request);
                }
                self.pending.insert(request.id, request);
            }
            // Every refusal except a full table means plain HTTP, and then plain HTTP serves as well.
            Err(_) => plain::send_request(&self.shared, request),
        }
    }

    /// Whether plain HTTP is raced against this request: the client lacks the server's token, and no other race with that
    /// server is in progress. On this host datagrams are not lost on a path, and a race brings nothing.
    fn is_raced(&self, request: &PendingRequest) -> bool {
        let is_of_server = |other: &PendingRequest| other.dhttp == request.dhttp && other.race.is_some();
        self.shared.config.races
            && !request.server.ip().to_canonical().is_loopback()
            && !self.machine.has_token(request.dhttp)
            && !self.pending.values().any(is_of_server)
    }

    fn accept(&mut self) {
        loop {
            let (stream, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    // The server sees the connection closed. Left in the backlog, it would wake this thread repeatedly.
                    self.spare = None;
                    drop(self.listener.accept());
                    self.spare = File::open("/dev/null").ok();
                    return;
                }
                Err(_) => return,
            };
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            let id = ConnectionId(self.next);
            self.next += 1;
            let is_ready = stream.set_nonblocking(true).is_ok();
            let data = EventData::new_u64(id.0);
            if is_ready && epoll::add(&self.epoll, &stream, data, EventFlags::IN).is_ok() {
                self.shared.note(&Note::Connected(from, socket::has_data_in_syn(&stream)));
                if let Some((value, false)) = self.fast_open.take() {
                    self.shared.note(&Note::NoFastOpen(value));
                }
                self.connections.insert(id, (stream, from));
                self.machine.handle(self.clock.now(), Input::Accepted(id, from));
                self.poll();
            }
        }
    }

    fn read(&mut self, id: ConnectionId) {
        let Some((stream, from)) = self.connections.get_mut(&id) else { return };
        let now = self.clock.now();
        match stream.read(&mut self.buffer) {
            Ok(0) => {
                self.shared.note(&Note::Ended(*from));
                self.connections.remove(&id);
                self.machine.handle(now, Input::Ended(id));
            }
            Ok(length) => {
                let bytes = self.buffer.get(..length).unwrap_or_default();
                self.machine.handle(now, Input::Received(id, bytes));
                self.poll();
                self.pause_if_full(id);
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => {
                self.connections.remove(&id);
                self.machine.handle(now, Input::Ended(id));
            }
        }
    }

    /// Stops reading a connection if the caller holds too much of the response that arrives on it.
    fn pause_if_full(&mut self, id: ConnectionId) {
        let request = self.machine.arriving_on(id).and_then(|response| self.pending.get(&response));
        if let Some(request) = request
            && let Some((stream, from)) = self.connections.get(&id)
            && request.sink.pause_if_full(id)
        {
            // It is registered, so that this cannot fail.
            let _ = epoll::delete(&self.epoll, stream);
            self.shared.note(&Note::Paused(*from));
            self.machine.handle(self.clock.now(), Input::Paused(id));
        }
    }

    fn resume(&mut self, id: ConnectionId) {
        let Some((stream, _)) = self.connections.get(&id) else { return };
        let now = self.clock.now();
        match epoll::add(&self.epoll, stream, EventData::new_u64(id.0), EventFlags::IN) {
            Ok(()) => self.machine.handle(now, Input::Resumed(id)),
            Err(_) => {
                self.connections.remove(&id);
                self.machine.handle(now, Input::Ended(id));
            }
        }
        self.poll();
    }

    fn datagrams(&mut self, number: u64) {
        let socket = usize::try_from(number - UDP).ok().and_then(|index| self.udp.get(index));
        let Some((socket, _)) = socket else { return };
        let mut unreachable = Vec::new();
        while let Some(server) = batch::refused(socket) {
            unreachable.push(server);
        }
        // Whatever is wrong with the socket now, the state machine resends.
        let _ = self.inbox.receive(socket);
        for server in unreachable {
            self.machine.handle(self.clock.now(), Input::Unreachable(server));
            self.poll();
        }
        for index in 0..self.inbox.len() {
            if let Some((Endpoints { peer: from, local: _ }, bytes)) = self.inbox.datagram(index) {
                self.shared.note(&if parts::is_part(bytes) {
                    Note::Part(from, bytes.len())
                } else if FallbackMessage::is_one(bytes) {
                    Note::FallbackMessage(from, bytes.len())
                } else {
                    Note::Received(from, bytes.len())
                });
                self.machine.handle(self.clock.now(), Input::Datagram(from, bytes));
                self.poll();
            }
        }
    }
}

impl Drop for Driver {
    /// Fails all pending requests, whatever ended the thread (also a panic in the observer): no caller waits for ever.
    fn drop(&mut self) {
        for request in std::mem::take(&mut self.pending).into_values() {
            if let Some(race) = &request.race {
                race.claim_for_dhttp();
            }
            request.sink.fail(STOPPED.to_owned());
        }
        self.shared.refuse_commands();
    }
}

fn failed(server: SocketAddr, failure: Failure) -> String {
    match failure {
        Failure::Ended => {
            format!("{server}: the server's connection ended in the middle of the response; retry")
        }
        Failure::Stalled => format!("{server}: the server stalled in the middle of the response; retry"),
        Failure::Malformed(reason) => format!("{server}: {reason}"),
    }
}

/// Binds a listener, and a UDP socket of each address family of this host; all on one port if a range is given. The listener
/// gets the preferred port if the range contains it, and it is free.
fn bind(
    ports: Option<RangeInclusive<u16>>,
    preferred: Option<u16>,
) -> io::Result<(TcpListener, Vec<(UdpSocket, Outbox)>)> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    let first = preferred.filter(|port| ports.as_ref().is_none_or(|ports| ports.contains(port)));
    let is_range = ports.is_some();
    for port in first.into_iter().chain(ports.unwrap_or(0..=0)) {
        match bind_to(port, if is_range { port } else { 0 }) {
            Ok(bound) => return Ok(bound),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bind_to(tcp: u16, udp: u16) -> io::Result<(TcpListener, Vec<(UdpSocket, Outbox)>)> {
    let four = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let six = |port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let listener = socket::tcp(six(tcp), false, true).or_else(|_| socket::tcp(four(tcp), false, true))?;
    let mut sockets = vec![socket::udp_of_client(four(udp))?];
    sockets.extend(socket::udp_of_client(six(udp)));
    // One server's burst is received as one piece.
    sockets.iter().for_each(batch::prepare);
    Ok((listener, sockets.into_iter().map(|socket| (socket, Outbox::default())).collect()))
}
