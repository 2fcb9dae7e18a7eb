//! A host: its connections, its ports, its one CPU, and its application.
//!
//! It knows neither time nor links: each step returns what to send and to schedule.

mod config;

use std::collections::{BTreeMap, VecDeque};

use tcp::segment::{self, Framing};
use tcp::{Connection, ConnectionStats, Event, HostCacheEntry, InitialState, Segment};
use wire::{Duration, Time};

use crate::world::schedule::Wake;
use crate::world::{Action, Application, Datagram, HostId, Input, Probe, SocketId};
pub use config::{Address, Counters, HostConfig};

/// Output of a host.
pub(super) enum HostOutput {
    Transmit { from: Address, to: Address, segment: Segment },
    Schedule(Time, Wake),
    Finished,
    Idle,
}

/// A host.
pub(super) struct Host<A> {
    id: HostId,
    pub(super) config: HostConfig,
    application: A,
    pub(super) sockets: Vec<Option<Box<Socket>>>,
    by_address: BTreeMap<(u16, Address), SocketId>,
    listening: Vec<u16>,
    /// Ports whose backlog is full.
    ports_with_full_backlog: Vec<u16>,
    /// Ports that take datagrams.
    bound: Vec<u16>,
    /// Datagrams to be sent.
    datagrams: VecDeque<(Address, Address, Segment)>,
    next_port: u16,
    /// State cached about other hosts.
    host_cache: BTreeMap<HostId, HostCacheEntry>,
    /// Connections so far: RFC 1644's generator of connection counts.
    count: u32,
    /// Sockets to be polled.
    sockets_to_poll: VecDeque<SocketId>,
    /// Segments for which there is no connection.
    unknown_segments: VecDeque<(Address, Address, Segment)>,
    /// Notifications that the application has not received yet.
    inbox: VecDeque<Notice>,
    is_turn: bool,
    is_finished: bool,
    busy_until: Time,
    application_wakes: Option<Time>,
    /// Whether the application waits for something to arrive.
    is_asleep: bool,
    /// Time at which the application runs, after something has arrived.
    woken_at: Option<Time>,
    counters: Counters,
    /// State of connections, if probed.
    probes: Option<Vec<Probe>>,
}

/// A connection and its peer.
pub(super) struct Socket {
    pub(super) connection: Connection,
    local: Address,
    pub(super) peer: Address,
    scheduled: Option<Time>,
    is_accepted: bool,
    /// Whether it may still have data to send, and so a share of a common window.
    pub(super) is_member: bool,
    highest_sent: u64,
    /// State at the last probe.
    seen: Option<ConnectionStats>,
}

/// Pending notification of the application; received data is read when it is delivered.
enum Notice {
    Readable(SocketId),
    Other(Input),
}

/// First ephemeral port (RFC 6335, section 6).
const FIRST_EPHEMERAL: u16 = 49_152;

impl<A: Application> Host<A> {
    pub(super) const fn new(id: HostId, config: HostConfig, application: A) -> Self {
        Self {
            id,
            config,
            application,
            sockets: Vec::new(),
            by_address: BTreeMap::new(),
            listening: Vec::new(),
            ports_with_full_backlog: Vec::new(),
            bound: Vec::new(),
            datagrams: VecDeque::new(),
            next_port: FIRST_EPHEMERAL,
            host_cache: BTreeMap::new(),
            count: 0,
            sockets_to_poll: VecDeque::new(),
            unknown_segments: VecDeque::new(),
            inbox: VecDeque::new(),
            is_turn: false,
            is_finished: false,
            busy_until: Time::ZERO,
            application_wakes: None,
            is_asleep: false,
            woken_at: None,
            counters: Counters { packets: 0, payload_bytes: 0, retransmissions: 0, connections: 0 },
            probes: None,
        }
    }

    pub(super) const fn application(&self) -> &A {
        &self.application
    }

    pub(super) const fn application_mut(&mut self) -> &mut A {
        &mut self.application
    }

    pub(super) fn probe(&mut self) {
        self.probes.get_or_insert_default();
    }

    pub(super) fn probes(&self) -> &[Probe] {
        self.probes.as_deref().unwrap_or_default()
    }

    pub(super) const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Handles a segment that has arrived for this host.
    pub(super) fn receive(&mut self, now: Time, from: Address, to: Address, segment: Segment) {
        match segment.framing {
            Framing::Tcp | Framing::Ardp => {}
            Framing::Datagram => return self.take_datagram(from, to, segment),
        }
        let known = self.by_address.get(&(to.port, from)).copied();
        let Some(id) = known.or_else(|| self.accept(from, to, &segment)) else {
            if segment.flags.syn && self.ports_with_full_backlog.contains(&to.port) {
                return;
            }
            self.unknown_segments.push_back((from, to, segment));
            return;
        };
        if let Some(socket) = self.socket(id) {
            socket.connection.handle(now, tcp::Input::Segment(&segment));
            self.sockets_to_poll.push_back(id);
        }
    }

    /// Delivers a datagram. One for an unbound port is dropped; ICMP's port unreachable is not simulated.
    fn take_datagram(&mut self, peer: Address, to: Address, segment: Segment) {
        if self.bound.contains(&to.port) {
            let datagram = Datagram { peer, port: to.port, payload: segment.payload };
            self.inbox.push_back(Notice::Other(Input::Datagram(datagram)));
        }
    }

    /// Handles a timer of a connection, which may have been replaced by a later one.
    pub(super) fn timeout(&mut self, now: Time, id: SocketId) {
        if let Some(socket) = self.socket(id)
            && socket.scheduled == Some(now)
        {
            socket.scheduled = None;
            self.sockets_to_poll.push_back(id);
        }
    }

    /// Gives the application its turn.
    pub(super) fn take_turn(&mut self, now: Time) {
        if self.woken_at == Some(now) {
            self.is_turn = true;
        } else if self.application_wakes.is_none_or(|wakes| wakes <= now) {
            self.application_wakes = None;
            self.is_turn = true;
        }
    }

    /// Next output of the host. Connections come before the application.
    pub(super) fn step(&mut self, now: Time) -> HostOutput {
        loop {
            if let Some((from, to, segment)) = self.unknown_segments.pop_front() {
                if let Some(segment) = segment::reset_for(&segment) {
                    return self.transmit(to, from, segment);
                }
                continue;
            }
            if let Some((from, to, segment)) = self.datagrams.pop_front() {
                return self.transmit(from, to, segment);
            }
            if let Some(id) = self.sockets_to_poll.front().copied() {
                match self.poll_socket(now, id) {
                    Some(step) => return step,
                    None => continue,
                }
            }
            if std::mem::take(&mut self.is_finished) {
                return HostOutput::Finished;
            }
            let has_nothing = !self.is_turn && self.inbox.is_empty();
            if self.busy_until > now || has_nothing {
                return self.idle(now);
            }
            if self.is_asleep && !self.is_turn && self.config.wake_up > Duration::ZERO {
                return self.wake_up(now);
            }
            if let Some(step) = self.poll_application(now) {
                return step;
            }
        }
    }

    /// Polls a connection once. Returns `None` if there was no output, or it needs no step.
    fn poll_socket(&mut self, now: Time, id: SocketId) -> Option<HostOutput> {
        let Some(socket) = self.socket(id) else {
            self.sockets_to_poll.pop_front();
            return None;
        };
        match socket.connection.poll(now) {
            tcp::Output::Transmit(segment) => {
                let (local, peer) = (socket.local, socket.peer);
                let is_again = segment.length() > 0 && segment.end() <= socket.highest_sent;
                socket.highest_sent = socket.highest_sent.max(segment.end());
                self.counters.retransmissions += u64::from(is_again);
                Some(self.transmit(local, peer, segment))
            }
            tcp::Output::Event(event) => {
                self.note(id, event);
                None
            }
            tcp::Output::Timeout(next) => {
                self.sockets_to_poll.pop_front();
                self.remove_when_done(id);
                if self.probes.is_some() {
                    self.probe_socket(now, id);
                }
                let next = next?;
                let socket = self.socket(id)?;
                if socket.scheduled.is_some_and(|scheduled| scheduled <= next) {
                    // It is polled at the earlier time, and scheduled again then.
                    return None;
                }
                socket.scheduled = Some(next);
                Some(HostOutput::Schedule(next, Wake::Socket(self.id, id)))
            }
        }
    }

    /// Records a probe of a connection, if its state has changed.
    fn probe_socket(&mut self, at: Time, id: SocketId) {
        let Some(socket) = self.socket(id) else { return };
        let (local, peer, stats) = (socket.local, socket.peer, socket.connection.stats());
        if socket.seen.replace(stats) != Some(stats) {
            self.probes.get_or_insert_default().push(Probe { at, local, peer, stats });
        }
    }

    /// Passes a connection's event to the application.
    fn note(&mut self, id: SocketId, event: Event) {
        match event {
            Event::Connected | Event::PeerFinished | Event::Failed(_) => self.remember(id),
            // The next connection needs the state at the time when everything was sent: `remove_when_done`.
            Event::Closed | Event::Readable | Event::Written => {}
        }
        let Some(socket) = self.socket(id) else { return };
        let notice = match event {
            Event::Connected if socket.is_accepted => {
                Notice::Other(Input::Accepted(id, socket.local.port, socket.peer))
            }
            Event::Connected => Notice::Other(Input::Connected(id)),
            Event::Readable => Notice::Readable(id),
            Event::Written => Notice::Other(Input::Written(id)),
            Event::PeerFinished => Notice::Other(Input::Finished(id)),
            Event::Closed => Notice::Other(Input::Closed(id)),
            Event::Failed(failure) => Notice::Other(Input::Failed(id, failure)),
        };
        self.inbox.push_back(notice);
    }

    /// Caches the connection's state about its peer for the next connection.
    pub(super) fn remember(&mut self, id: SocketId) {
        if let Some(socket) = self.socket(id) {
            let (peer, entry) = (socket.peer.host, socket.connection.host_cache_entry());
            self.host_cache.insert(peer, entry);
        }
    }

    /// Polls the application once, or delivers the next notification. `None`: continue.
    fn poll_application(&mut self, now: Time) -> Option<HostOutput> {
        (self.is_turn, self.is_asleep, self.woken_at) = (true, false, None);
        let fresh = SocketId(u32::try_from(self.sockets.len()).unwrap_or(u32::MAX));
        match self.application.poll(now, fresh) {
            Action::Wait(until) => {
                self.is_turn = false;
                match self.take_notice() {
                    Some(input) => {
                        self.application.handle(now, input);
                        self.is_turn = true;
                    }
                    None => {
                        self.is_asleep = true;
                        return self.wake_application_at(until);
                    }
                }
            }
            Action::Work(time) => self.busy_until = now + time,
            Action::Finish => self.is_finished = true,
            Action::Listen(port) => {
                self.ports_with_full_backlog.retain(|full| *full != port);
                self.listening.push(port);
            }
            Action::DropSyns(port) => {
                self.listening.retain(|listening| *listening != port);
                self.ports_with_full_backlog.push(port);
            }
            Action::Bind(port) => self.bound.push(port),
            Action::Send(Datagram { peer, port, payload }) => {
                let local = Address { host: self.id, port };
                self.datagrams.push_back((local, peer, Segment::datagram(payload)));
            }
            Action::Connect(peer) => self.connect(now, peer),
            Action::Write(id, payload) => self.deliver(now, id, tcp::Input::Write(payload)),
            Action::WriteLast(id, payload) => self.deliver(now, id, tcp::Input::WriteLast(payload)),
            Action::Shutdown(id) => self.deliver(now, id, tcp::Input::Shutdown),
            Action::Close(id) => self.deliver(now, id, tcp::Input::Close),
            Action::Abort(id) => self.deliver(now, id, tcp::Input::Abort),
        }
        None
    }

    /// Next input of the application. A connection with nothing more to read is dropped after its end.
    fn take_notice(&mut self) -> Option<Input> {
        while let Some(notice) = self.inbox.pop_front() {
            match notice {
                Notice::Readable(id) => {
                    let Some(socket) = self.socket(id) else { continue };
                    let Some(payload) = socket.connection.read() else { continue };
                    // One read of the application takes everything: data that arrived while it was busy is
                    // acknowledged together, before the application processes it.
                    let later: Vec<_> = if socket.connection.has_unread() {
                        std::iter::from_fn(|| socket.connection.read()).collect()
                    } else {
                        Vec::new()
                    };
                    if socket.connection.must_acknowledge() {
                        self.sockets_to_poll.push_back(id);
                    }
                    // Programs with a wake-up time of zero are the papers', which read each piece separately.
                    if self.config.wake_up > Duration::ZERO {
                        return Some(Input::Data(id, payload.join(&later)));
                    }
                    let later =
                        later.into_iter().rev().map(|payload| Notice::Other(Input::Data(id, payload)));
                    later.for_each(|notice| self.inbox.push_front(notice));
                    return Some(Input::Data(id, payload));
                }
                Notice::Other(input) => {
                    match &input {
                        Input::Closed(id) | Input::Failed(id, _) => self.forget(*id),
                        Input::Accepted(..)
                        | Input::Connected(_)
                        | Input::Data(..)
                        | Input::Finished(_)
                        | Input::Written(_)
                        | Input::Datagram(_) => {}
                    }
                    return Some(input);
                }
            }
        }
        None
    }

    fn idle(&mut self, now: Time) -> HostOutput {
        if self.busy_until > now {
            let until = self.busy_until;
            if self.application_wakes != Some(until) {
                self.application_wakes = Some(until);
                self.is_turn = false;
                return HostOutput::Schedule(until, Wake::Application(self.id));
            }
        }
        HostOutput::Idle
    }

    /// Wakes a sleeping application after an arrival: segments that arrive before it runs are handled first.
    fn wake_up(&mut self, now: Time) -> HostOutput {
        if self.woken_at.is_some() {
            return HostOutput::Idle;
        }
        let at = now + self.config.wake_up;
        self.woken_at = Some(at);
        HostOutput::Schedule(at, Wake::Application(self.id))
    }

    fn wake_application_at(&mut self, until: Option<Time>) -> Option<HostOutput> {
        let until = until?;
        if self.application_wakes.is_some_and(|wakes| wakes == until) {
            return None;
        }
        self.application_wakes = Some(until);
        Some(HostOutput::Schedule(until, Wake::Application(self.id)))
    }

    fn connect(&mut self, now: Time, peer: Address) {
        let connection = Connection::client(self.config.tcp.clone());
        let connection = connection.expect("the configuration was checked when the host was added");
        let port = self.free_port(peer);
        let local = Address { host: self.id, port };
        let id = self.insert(connection, local, peer, false);
        self.deliver(now, id, tcp::Input::Open);
    }

    fn accept(&mut self, from: Address, to: Address, segment: &Segment) -> Option<SocketId> {
        let is_first = segment.flags.syn && !segment.flags.ack;
        if !is_first || !self.listening.contains(&to.port) {
            return None;
        }
        let connection = Connection::server(self.config.tcp.clone());
        let connection = connection.expect("the configuration was checked when the host was added");
        Some(self.insert(connection, to, from, true))
    }

    fn insert(
        &mut self,
        mut connection: Connection,
        local: Address,
        peer: Address,
        is_accepted: bool,
    ) -> SocketId {
        let id = SocketId(u32::try_from(self.sockets.len()).unwrap_or(u32::MAX));
        self.count = self.count.saturating_add(1);
        connection.set_initial_state(InitialState {
            cached: self.host_cache.get(&peer.host).copied().unwrap_or_default(),
            count: self.count,
            // A value that only this host issues, and only to that peer.
            cookie: u64::from(self.id.0) << 32 | u64::from(peer.host.0) << 16 | 1,
        });
        let socket = Socket {
            connection,
            local,
            peer,
            scheduled: None,
            is_accepted,
            is_member: true,
            highest_sent: 0,
            seen: None,
        };
        self.sockets.push(Some(Box::new(socket)));
        self.join(id);
        self.by_address.insert((local.port, peer), id);
        self.counters.connections += 1;
        id
    }

    fn forget(&mut self, id: SocketId) {
        if let Some(socket) = self.sockets.get_mut(id.0 as usize).and_then(Option::take) {
            self.by_address.remove(&(socket.local.port, socket.peer));
        }
    }

    fn deliver(&mut self, now: Time, id: SocketId, input: tcp::Input<'_>) {
        if let Some(socket) = self.socket(id) {
            socket.connection.handle(now, input);
            self.sockets_to_poll.push_back(id);
        }
    }

    fn transmit(&mut self, from: Address, to: Address, segment: Segment) -> HostOutput {
        self.counters.packets += 1;
        self.counters.payload_bytes += segment.payload.len() as u64;
        HostOutput::Transmit { from, to, segment }
    }

    fn socket(&mut self, id: SocketId) -> Option<&mut Socket> {
        self.sockets.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// Next port without a connection to this peer; if there is none, the oldest is reused.
    fn free_port(&mut self, peer: Address) -> u16 {
        let mut port = self.next_port;
        for _ in FIRST_EPHEMERAL..=u16::MAX {
            if !self.by_address.contains_key(&(port, peer)) {
                break;
            }
            port = port.checked_add(1).unwrap_or(FIRST_EPHEMERAL);
        }
        self.next_port = port.checked_add(1).unwrap_or(FIRST_EPHEMERAL);
        port
    }
}
