//! The thread that watches all connections of programs, and serves cached responses; blocking exchanges are done by others
//! (`thread_pool`), to which the connection is leased meanwhile.
//!
//! An idle connection costs its state in memory, and no thread. The loop polls as a server's threads do ([`dhttp::server`]),
//! with the same timer and the same queues, but not the same state machine: a gateway forwards bodies before they are complete.
//! Requests are handled by `watched_connection` and `blocking_exchange`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};

use super::tunnel::{self, RelayLimit, Side, Tunnel};
use super::watched_connection::{
    BlockingTask, Connection, ConnectionContext, ConnectionStep, Interest, PhaseTimeouts, WatchedConnection,
};
use super::{GatewayConfig, Shared, blocking_exchange, reply};
use crate::cache::streaming_fill::ThreadCache;
use crate::fetches::site;
use dhttp::clock;
use dhttp::counters::{count_shared, set};
use dhttp::handler::Request;
use dhttp::log::{Channel, Log};
use dhttp::server::alarm::Alarm;

/// The loop, and all its state.
pub(super) struct EventLoop {
    shared: Arc<Shared>,
    listener: TcpListener,
    epoll: OwnedFd,
    alarm: Alarm,
    places: BTreeMap<u64, ConnectionSlot>,
    /// Number of connections whose request waits for a server.
    busy: usize,
    tunnels: usize,
    next: u64,
    quick: Option<ThreadCache>,
    /// Receive buffer.
    buffer: Box<[u8]>,
    /// Send buffer.
    out: Vec<u8>,
    /// Spare descriptor, closed to accept and refuse a connection when none is left.
    spare: Option<File>,
    config: Arc<GatewayConfig>,
    log: Option<Arc<Log>>,
    is_stopping: bool,
}

/// State of a connection.
enum ConnectionSlot {
    Here(Box<WatchedConnection>),
    /// Leased to a thread.
    Lent(Arc<TcpStream>),
    Tunnel(Box<Tunnel>),
}

impl ConnectionSlot {
    /// The client: the peer's address, or its /64.
    fn client(&self) -> Option<IpAddr> {
        let peer = match self {
            Self::Here(waiting) => waiting.connection.peer,
            Self::Tunnel(tunnel) => tunnel.peer,
            Self::Lent(stream) => stream.peer_addr().ok()?,
        };
        Some(site(peer.ip()))
    }
}

/// Connections that return to the loop, and its waker.
#[derive(Debug)]
pub(super) struct Completions {
    returned: Mutex<Vec<(u64, Completion)>>,
    waker: OwnedFd,
}

/// State in which a connection comes back.
#[derive(Debug)]
pub(super) enum Completion {
    /// It can carry another request.
    Open(Connection),
    /// Its last response has been sent.
    Ending(Connection),
    /// It is one end of a tunnel.
    Tunnel(Box<Tunnel>),
    /// It is closed.
    Gone,
    /// It was not leased: its pending request has progressed.
    Bell,
}

/// Lease of a connection to a thread. Dropping it frees its slot.
struct Lease {
    shared: Arc<Shared>,
    number: u64,
    is_over: bool,
}

const LISTENER: u64 = 0;
const WAKER: u64 = 1;
const ALARM: u64 = 2;
/// First number of a program's connection; these are even, and the next odd number is the other end of its tunnel.
const FIRST: u64 = 4;

/// Maximum bytes of one read.
const READ_BUFFER_BYTES: usize = 16 << 10;

impl EventLoop {
    /// # Errors
    /// If the system has no descriptor left.
    pub(super) fn new(shared: &Arc<Shared>, listener: TcpListener) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let alarm = Alarm::new()?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &shared.desk.waker, EventData::new_u64(WAKER), EventFlags::IN)?;
        epoll::add(&epoll, alarm.timer(), EventData::new_u64(ALARM), EventFlags::IN)?;
        Ok(Self {
            listener,
            epoll,
            alarm,
            places: BTreeMap::new(),
            busy: 0,
            tunnels: 0,
            next: FIRST,
            quick: shared.keeper.clone().map(ThreadCache::new),
            buffer: vec![0; READ_BUFFER_BYTES].into(),
            out: Vec::new(),
            spare: File::open("/dev/null").ok(),
            config: shared.config(),
            log: shared.log(),
            shared: Arc::clone(shared),
            is_stopping: false,
        })
    }

    /// Polls until the gateway is stopped, and pending work is finished.
    pub(super) fn run(mut self) {
        let mut events = Vec::with_capacity(256);
        while !self.shared.stop.load(Ordering::Acquire) {
            self.turn(&mut events);
        }
        self.is_stopping = true;
        let _ = epoll::delete(&self.epoll, &self.listener);
        let now = self.shared.clock.now();
        let end = now + self.shared.grace();
        self.places.retain(|_, place| match place {
            ConnectionSlot::Here(waiting) => waiting.is_busy(),
            ConnectionSlot::Lent(_) | ConnectionSlot::Tunnel(_) => true,
        });
        while !self.places.is_empty() && self.shared.clock.now() < end {
            self.alarm.ring_by(self.shared.clock.now(), end);
            self.turn(&mut events);
        }
        for place in self.places.values() {
            match place {
                ConnectionSlot::Lent(stream) => drop(stream.shutdown(Shutdown::Both)),
                ConnectionSlot::Tunnel(tunnel) => self.told_of(tunnel),
                ConnectionSlot::Here(_) => {}
            }
        }
        self.flush();
        self.shared.hands.end();
    }

    fn turn(&mut self, events: &mut Vec<Event>) {
        events.clear();
        // An interrupted wait has no events; any other failure would be a bug in this file.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), None);
        (self.config, self.log) = (self.shared.config(), self.shared.log());
        for event in events.drain(..) {
            match event.data.u64() {
                LISTENER => self.accept(),
                WAKER => self.take_back(),
                ALARM => self.expire(),
                number if number & 1 == 1 => self.carry(number - 1, Side::Server),
                number => match self.places.get(&number) {
                    Some(ConnectionSlot::Tunnel(_)) => self.carry(number, Side::Program),
                    Some(ConnectionSlot::Here(_) | ConnectionSlot::Lent(_)) | None => {
                        self.step(number, WatchedConnection::ready)
                    }
                },
            }
        }
        set(&self.shared.counters.open_now, self.places.len());
        set(&self.shared.counters.busy_now, self.busy);
        set(&self.shared.counters.tunnels_now, self.tunnels);
        self.flush();
    }

    fn accept(&mut self) {
        for _ in 0..64 {
            match self.listener.accept() {
                Ok((_, peer)) if !self.shared.allows(peer.ip()) => {}
                Ok((stream, peer)) if !self.has_room(peer.ip()) => {
                    count_shared(&self.shared.counters.turned_away);
                    reply::turn_away(&stream);
                }
                Ok((stream, peer)) => {
                    count_shared(&self.shared.counters.accepted);
                    let number = self.next;
                    self.next += 2;
                    self.watch(number, Connection::new(peer, stream));
                }
                Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    // The client is refused instead of waiting for ever.
                    self.spare = None;
                    if let Ok((stream, _)) = self.listener.accept() {
                        reply::turn_away(&stream);
                    }
                    self.spare = File::open("/dev/null").ok();
                }
                Err(_) => return,
            }
        }
    }

    /// Whether the limits allow a connection of that client; the longest idle one is closed for it. No client but this host may
    /// exceed its share.
    fn has_room(&mut self, peer: IpAddr) -> bool {
        let most = self.config.connections;
        let share = self.config.client_connections.unwrap_or((most / 2).max(1));
        if !peer.to_canonical().is_loopback() && self.places.len() >= share {
            let client = site(peer);
            let is_its = |place: &ConnectionSlot| place.client().is_some_and(|one| one == client);
            let count = self.places.values().filter(|place| is_its(place)).count();
            if count >= share && !self.make_way(is_its) {
                return false;
            }
        }
        self.places.len() < most || self.make_way(|_| true)
    }

    fn make_way(&mut self, may: impl Fn(&ConnectionSlot) -> bool) -> bool {
        let idle =
            self.places.iter().filter(|(_, place)| may(place)).filter_map(|(number, place)| match place {
                ConnectionSlot::Here(waiting) => Some((waiting.idle_since()?, *number)),
                ConnectionSlot::Lent(_) | ConnectionSlot::Tunnel(_) => None,
            });
        let Some((_, number)) = idle.min() else { return false };
        count_shared(&self.shared.counters.evicted);
        self.places.remove(&number).is_some()
    }

    fn take_back(&mut self) {
        for (number, back) in self.shared.desk.take() {
            if matches!(back, Completion::Bell) {
                self.step(number, |waiting, around, _| waiting.hear(around));
                continue;
            }
            self.places.remove(&number);
            self.busy -= 1;
            match back {
                Completion::Open(connection) if !self.is_stopping => self.watch(number, connection),
                Completion::Ending(connection) if !self.is_stopping => {
                    let waiting = WatchedConnection::ending(self.shared.clock.now(), connection);
                    self.place(number, waiting);
                }
                Completion::Tunnel(tunnel) => self.watch_tunnel(number, tunnel),
                Completion::Open(_) | Completion::Ending(_) | Completion::Gone | Completion::Bell => {}
            }
        }
    }

    /// Watches a connection that was accepted or has returned, and reads pipelined requests.
    fn watch(&mut self, number: u64, connection: Connection) {
        if self.place(number, WatchedConnection::new(self.shared.clock.now(), connection)) {
            self.step(number, |waiting, around, _| waiting.resume(around));
        }
    }

    fn place(&mut self, number: u64, waiting: WatchedConnection) -> bool {
        let stream = &waiting.connection.stream;
        let is_watched = epoll::add(&self.epoll, stream, EventData::new_u64(number), EventFlags::IN).is_ok();
        if is_watched {
            self.places.insert(number, ConnectionSlot::Here(Box::new(waiting)));
        }
        is_watched
    }

    fn watch_tunnel(&mut self, number: u64, tunnel: Box<Tunnel>) {
        let watch = |side, number| {
            epoll::add(&self.epoll, tunnel.stream(side), EventData::new_u64(number), tunnel::WATCHED)
        };
        // If registering fails, both ends are closed.
        if watch(Side::Program, number).and_then(|()| watch(Side::Server, number | 1)).is_ok() {
            self.places.insert(number, ConnectionSlot::Tunnel(tunnel));
            self.tunnels += 1;
        }
    }

    /// Handles an event at one end of a tunnel.
    fn carry(&mut self, number: u64, side: Side) {
        let Some(ConnectionSlot::Tunnel(tunnel)) = self.places.get_mut(&number) else { return };
        match tunnel.ready(side, &mut self.buffer) {
            RelayLimit::All => {}
            RelayLimit::MyShare => {
                for (side, number) in [(Side::Program, number), (Side::Server, number | 1)] {
                    let (stream, data) = (tunnel.stream(side), EventData::new_u64(number));
                    // It is registered already, so that this cannot fail for lack of resources.
                    let _ = epoll::modify(&self.epoll, stream, data, tunnel::WATCHED);
                }
            }
            RelayLimit::ToTheEnd => {
                if let Some(ConnectionSlot::Tunnel(tunnel)) = self.places.remove(&number) {
                    self.tunnels -= 1;
                    self.told_of(&tunnel);
                }
            }
        }
    }

    fn told_of(&self, tunnel: &Tunnel) {
        if let Some(log) = &self.log {
            let request = Request::of_connection(&tunnel.requested, &[]);
            log.line(second(), tunnel.peer.ip(), &request, 200, 0, Channel::TcpClient);
        }
    }

    /// Flushes the log: one computer's programs are little load, and the log always shows the last request.
    fn flush(&self) {
        if let Some(log) = &self.log {
            log.flush();
        }
    }

    /// Handles expired timeouts.
    fn expire(&mut self) {
        self.alarm.rung();
        let (now, timeout) = (self.shared.clock.now(), timeout(&self.config));
        let is_here = |place: &ConnectionSlot| matches!(place, ConnectionSlot::Here(_));
        let here = self.places.iter().filter(|(_, place)| is_here(place)).map(|(number, _)| *number);
        for number in here.collect::<Vec<_>>() {
            self.step(number, |waiting, _, _| waiting.expire(now, timeout));
        }
    }

    /// Runs a step of a connection, and registers the events that it wants then.
    fn step(
        &mut self,
        number: u64,
        step: impl FnOnce(&mut WatchedConnection, &mut ConnectionContext<'_>, &mut [u8]) -> ConnectionStep,
    ) {
        let Some(ConnectionSlot::Here(waiting)) = self.places.get_mut(&number) else { return };
        let (now, timeout) = (self.shared.clock.now(), timeout(&self.config));
        let (shared, log, was_asking) = (&self.shared, &self.log, waiting.is_asking());
        let mut around = ConnectionContext {
            now,
            shared,
            number,
            quick: self.quick.as_mut(),
            out: &mut self.out,
            reported: &mut |peer, head, status, bytes, channel| {
                count_shared(shared.counters.responses(channel));
                if let Some(log) = log {
                    let request = Request::of_connection(head, &[]);
                    log.line(second(), peer.ip(), &request, status, bytes, channel);
                }
            },
        };
        let step = step(waiting, &mut around, &mut self.buffer);
        self.out.clear();
        self.busy = self.busy + usize::from(waiting.is_asking()) - usize::from(was_asking);
        let is_last = self.is_stopping && !waiting.is_busy();
        match step {
            ConnectionStep::Stays if is_last => drop(self.places.remove(&number)),
            // During the shutdown no new exchange begins.
            ConnectionStep::Lends(call) if is_last && call.is_first() => drop(self.places.remove(&number)),
            ConnectionStep::Stays => {
                let wanted = waiting.wants();
                if wanted != waiting.watched {
                    let flags = match wanted {
                        Interest::In => EventFlags::IN,
                        Interest::Out => EventFlags::OUT,
                        Interest::Breaking => EventFlags::empty(),
                    };
                    let stream = &waiting.connection.stream;
                    // It is registered already, so that this cannot fail for lack of resources.
                    let _ = epoll::modify(&self.epoll, stream, EventData::new_u64(number), flags);
                    waiting.watched = wanted;
                }
                let deadline = waiting.deadline(timeout);
                self.alarm.ring_by(now, deadline);
            }
            // Closing it removes it from epoll.
            ConnectionStep::Ends => {
                self.busy -= usize::from(waiting.is_asking());
                drop(self.places.remove(&number));
            }
            ConnectionStep::Lends(call) => self.lend(number, call),
        }
    }

    /// Leases a connection to a thread.
    fn lend(&mut self, number: u64, call: Box<BlockingTask>) {
        let Some(ConnectionSlot::Here(waiting)) = self.places.remove(&number) else { return };
        let connection = waiting.connection;
        let _ = epoll::delete(&self.epoll, &connection.stream);
        self.places.insert(number, ConnectionSlot::Lent(Arc::clone(&connection.stream)));
        self.busy += 1;
        let mut loan = Lease { shared: Arc::clone(&self.shared), number, is_over: false };
        // If no thread can be started, the connection is closed.
        let _ = self.shared.hands.do_it(Box::new(move |buffer| {
            loan.give_back(blocking_exchange::serve(&loan.shared, connection, *call, buffer));
        }));
    }
}

/// Seconds since 1970.
fn second() -> u64 {
    clock::calendar().as_nanos() / 1_000_000_000
}

fn timeout(config: &GatewayConfig) -> PhaseTimeouts {
    let span = |span: std::time::Duration| {
        wire::Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    };
    PhaseTimeouts { idle: span(config.idle), silent: span(config.timeout) }
}

impl Lease {
    fn give_back(&mut self, back: Completion) {
        self.is_over = true;
        self.shared.desk.put(self.number, back);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.desk.put(self.number, Completion::Gone);
        }
    }
}

impl Completions {
    /// # Errors
    /// If the system has no descriptor left.
    pub(super) fn new() -> io::Result<Self> {
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { returned: Mutex::default(), waker })
    }

    /// Wakes the loop.
    pub(super) fn wake(&self) {
        // If the counter is full, the thread has been woken already.
        let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
    }

    /// Reports progress of this connection's pending request.
    pub(super) fn ring(&self, number: u64) {
        self.put(number, Completion::Bell);
    }

    fn put(&self, number: u64, back: Completion) {
        let mut returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = returned.is_empty();
        returned.push((number, back));
        drop(returned);
        if is_first {
            self.wake();
        }
    }

    fn take(&self) -> Vec<(u64, Completion)> {
        // The value has no meaning.
        let _ = rustix::io::read(&self.waker, &mut [0_u8; 8]);
        std::mem::take(&mut *self.returned.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
