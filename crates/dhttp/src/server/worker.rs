//! One thread of a server: waits for its sockets and its timers, and dispatches the events.
//!
//! Datagrams are handled in `datagrams`, connections in `opened_connections` and `plain`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dhttp_proto::Server as Machine;
use dhttp_proto::server::{ConnectionId, Output};
use http1::message::Fields;
use http1::server::ServerConnection;
use wire::{Duration, Time};

use super::clients::Clients;
use super::datagrams::DatagramContext;
use super::date_header::DateHeader;
use super::deferred_requests::{DeferredRequests, RequestChannel};
use super::keys::Keys;
use super::opened_connections::OpenedConnections;
use super::plain::{ConnectionContext, PlainConnection};
use super::{LiveConfig, ServerConfig, Shared};
use crate::batch::{Inbox, Outbox};
use crate::counters::{Counters, count, set};
use crate::deferred::{NO_RESPONSE, ResponseEvent};
use crate::handler::{Handler, Response};
use crate::log::{self, Log};
use crate::readiness::{Events, Interest, Poller, SpareDescriptor};
use crate::socket;
use linux::clock::Clock;

/// A thread's sockets, all on the server's port.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) udp: UdpSocket,
    pub(super) listener: TcpListener,
    pub(super) fast_open: bool,
}

/// Parts of a worker that are borrowed together.
pub(super) struct WorkerParts<'a, H> {
    pub(super) inbox: &'a mut Inbox,
    pub(super) handler: &'a mut H,
    pub(super) deferred_requests: &'a mut DeferredRequests,
    pub(super) context: DatagramContext<'a>,
}

/// One thread of a server.
pub(super) struct Worker<H> {
    pub(super) clock: Clock,
    pub(super) poller: Poller,
    pub(super) sockets: Sockets,
    pub(super) local: SocketAddr,
    pub(super) handler: H,
    pub(super) machine: Machine,
    pub(super) opened: OpenedConnections,
    pub(super) inbox: Inbox,
    pub(super) outbox: Outbox,
    /// Buffer for data received on connections of clients.
    buffer: Box<[u8]>,
    pub(super) today: DateHeader,
    pub(super) counters: Arc<Counters>,
    pub(super) log: Option<Arc<Log>>,
    pub(super) deferred_requests: DeferredRequests,
    index: usize,
    pub(super) config: ServerConfig,
    keys: Keys,
    epoch: u64,
    pub(super) plain: BTreeMap<u64, PlainConnection>,
    /// The numbers of each client's connections.
    pub(super) of_client: BTreeMap<IpAddr, BTreeSet<u64>>,
    pub(super) clients: Arc<Clients>,
    /// Position from which the search for a connection to evict continues, and the time of the next search: after one that
    /// found only waiting requests.
    pub(super) eviction_cursor: u64,
    pub(super) next_search: Time,
    next_plain: u64,
    shared: Arc<Shared<H>>,
    version: u64,
    spare: SpareDescriptor,
    last_sweep: Time,
    /// Number from which the next connections are checked.
    sweep_cursor: u64,
}

const UDP: u64 = 0;
const LISTENER: u64 = 2;
const WAKER: u64 = 4;
const MAILBOX: u64 = 6;
/// Even numbers from here on are connections of clients; odd ones are connections to clients.
const PLAIN: u64 = 8;

/// Maximum bytes of one read from a client's connection.
const READ_BUFFER_BYTES: usize = 16_384;

/// Interval of the checks of client connections, whose timers are all in seconds.
const SWEEP: Duration = Duration::from_millis(500);

/// Connections that are checked before others have their turn: thousands, with a system call each, take tens of milliseconds.
const MAX_SWEPT: usize = 256;

impl<H: Handler> Worker<H> {
    pub(super) fn new(
        index: usize,
        clock: Clock,
        sockets: Sockets,
        config: ServerConfig,
        keys: Keys,
        shared: Arc<Shared<H>>,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&sockets.udp, UDP, Interest::IN)?;
        poller.add(&sockets.listener, LISTENER, Interest::IN)?;
        if let Some(waker) = shared.wakers.get(index) {
            poller.add(waker, WAKER, Interest::IN)?;
        }
        let deferred_requests = DeferredRequests::new(config.pending, config.clients.pending)?;
        poller.add(deferred_requests.waker(), MAILBOX, Interest::IN)?;
        let LiveConfig { handler, log } = shared.live.lock().map_err(|_| io::ErrorKind::Other)?.clone();
        let local = sockets.udp.local_addr()?;
        let mut dhttp = config.dhttp;
        dhttp.connections = (dhttp.connections / config.threads.max(1)).max(1);
        dhttp.per_client.few_below /= config.threads.max(1);
        Ok(Self {
            clock,
            poller,
            local,
            sockets,
            handler,
            machine: Machine::sharing(dhttp, keys.secrets()?, shared.limits.clone()),
            opened: OpenedConnections::default(),
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            buffer: vec![0; READ_BUFFER_BYTES].into(),
            today: DateHeader::at_port(local.port()),
            counters,
            log,
            deferred_requests,
            index,
            config,
            keys,
            epoch: 0,
            plain: BTreeMap::new(),
            of_client: BTreeMap::new(),
            clients: Arc::clone(&shared.clients),
            eviction_cursor: 0,
            next_search: Time::ZERO,
            next_plain: PLAIN,
            shared,
            version: 0,
            spare: SpareDescriptor::default(),
            last_sweep: Time::ZERO,
            sweep_cursor: 0,
        })
    }

    /// Serves until it is stopped, and finishes pending work.
    pub(super) fn run(&mut self) {
        let mut events = Events::default();
        while !self.shared.stop.load(Ordering::Acquire) {
            self.turn(&mut events);
        }
        // No new datagrams or connections are accepted from here on.
        self.poller.remove(&self.sockets.udp);
        self.poller.remove(&self.sockets.listener);
        let end = self.clock.now() + self.config.grace;
        while self.clock.now() < end && !self.is_done() {
            self.turn(&mut events);
        }
        if let Some(log) = &self.log {
            log.flush();
        }
    }

    /// Whether no work is pending.
    fn is_done(&self) -> bool {
        self.opened.are_done()
            && self.deferred_requests.is_empty()
            && self.plain.values().all(PlainConnection::is_idle)
    }

    /// Borrows the parts that handle datagrams, disjointly.
    pub(super) fn parts(&mut self) -> WorkerParts<'_, H> {
        let context = DatagramContext {
            machine: &mut self.machine,
            opened: &mut self.opened,
            outbox: &mut self.outbox,
            poller: &self.poller,
            today: &self.today,
            counters: &self.counters,
            log: self.log.as_deref(),
            local: self.local,
            fast_open: self.sockets.fast_open,
        };
        WorkerParts {
            inbox: &mut self.inbox,
            handler: &mut self.handler,
            deferred_requests: &mut self.deferred_requests,
            context,
        }
    }

    fn turn(&mut self, events: &mut Events) {
        let now = self.clock.now();
        let next = self.timers(now);
        self.poller.wake_by(now, next);
        // Each turn begins with the expired timers.
        self.poller.wait(events);
        for (token, ready) in events.drain() {
            match token {
                UDP => self.datagrams(),
                LISTENER => self.accept(),
                WAKER => self.woken(),
                MAILBOX => {
                    let responses = self.deferred_requests.take();
                    self.responses(responses);
                }
                id if id & 1 == 1 => {
                    let (now, id) = (self.clock.now(), ConnectionId(id >> 1));
                    self.opened.ready(&self.poller, now, &mut self.machine, id, ready);
                }
                id => self.plain(id, PlainConnection::ready),
            }
        }
        self.refer_unreached();
        set(&self.counters.open_now, self.opened.len());
        set(&self.counters.accepted_now, self.plain.len());
        self.counters.rate_limited.store(self.machine.rate_limited(), Ordering::Relaxed);
    }

    /// Handles expired timers, and returns the next deadline.
    fn timers(&mut self, now: Time) -> Time {
        let epoch = Keys::epoch(&self.config.dhttp, now);
        if epoch != self.epoch {
            self.machine.rotate(self.keys.of_epoch(epoch));
            self.epoch = epoch;
        }
        let next = loop {
            match self.machine.poll(now) {
                Output::Close(id) => self.opened.end(id, false),
                Output::Abort(id) => self.opened.end(id, true),
                Output::Timeout(next) => break next.unwrap_or(Time::MAX),
            }
        };
        if now.since(self.last_sweep) >= self.sweep_interval() {
            self.last_sweep = now;
            self.sweep(now);
        }
        next.min(self.last_sweep + self.sweep_interval())
    }

    /// Returns the interval of the checks of [`MAX_SWEPT`] connections, in which all have their turn in [`SWEEP`].
    fn sweep_interval(&self) -> Duration {
        let slices = (self.plain.len() / MAX_SWEPT) as u64 + 1;
        Duration::from_nanos(SWEEP.as_nanos() / slices)
    }

    /// Delivers the events of deferred responses.
    fn responses(&mut self, events: Vec<(RequestChannel, ResponseEvent)>) {
        for (requested, event) in events {
            match (requested, event) {
                (RequestChannel::Datagram(requested), ResponseEvent::Answer(response, _)) => {
                    let (ends, ticket, head) = *requested;
                    self.respond_datagram(self.clock.now(), ends, ticket, &head, &response);
                }
                (RequestChannel::Datagram(requested), ResponseEvent::PlainHttp) => {
                    let (ends, ticket, _) = *requested;
                    self.refer_datagram(ends, ticket);
                }
                (RequestChannel::Connection(id), ResponseEvent::PlainHttp) => {
                    let response = Response::text(500, NO_RESPONSE);
                    self.plain(id, |plain, context| plain.respond_now(context, response, Fields::new()));
                }
                (RequestChannel::Datagram(_), ResponseEvent::Interim(..)) => {}
                (RequestChannel::Connection(id), ResponseEvent::Answer(response, trailers)) => {
                    self.plain(id, |plain, context| plain.respond_now(context, response, trailers));
                }
                (RequestChannel::Connection(id), ResponseEvent::Interim(status, fields)) => {
                    self.plain(id, |plain, context| plain.send_interim(context, status, &fields));
                }
            }
        }
    }

    fn sweep(&mut self, now: Time) {
        let expired = self.deferred_requests.expired(now);
        self.responses(expired);
        if self.index == 0 {
            self.counters.body_bytes_now.store(self.clients.body_bytes(), Ordering::Relaxed);
        }
        let (stall, min_rate) = (self.config.stall, self.min_rate());
        let is_raised = min_rate > self.config.clients.min_read_rate;
        let swept: Vec<u64> =
            self.plain.range(self.sweep_cursor..).map(|(id, _)| *id).take(MAX_SWEPT).collect();
        self.sweep_cursor = swept.last().filter(|_| swept.len() == MAX_SWEPT).map_or(0, |last| last + 1);
        for id in swept {
            let Some(plain) = self.plain.get_mut(&id) else { continue };
            if plain.is_stalled(now, stall) || plain.is_too_slow(now, stall, (min_rate, is_raised)) {
                plain.reset();
                count(&self.counters.too_slow);
                self.drop_plain(id);
            } else if !plain.is_writing() {
                // One that is writing waits for its socket.
                self.plain(id, PlainConnection::advance_without_reading);
            }
        }
        if let Some(log) = self.log.as_ref().filter(|_| self.index == 0) {
            log.flush();
        }
    }

    /// Minimum rate of a client within a request or response, raised when many connections are in use.
    pub(super) fn min_rate(&self) -> u64 {
        self.config.clients.min_read_rate.saturating_mul(self.clients.pressure())
    }

    fn woken(&mut self) {
        if let Some(waker) = self.shared.wakers.get(self.index) {
            waker.clear();
        }
        let version = self.shared.version.load(Ordering::Acquire);
        if version != self.version
            && let Ok(live) = self.shared.live.lock()
        {
            LiveConfig { handler: self.handler, log: self.log } = live.clone();
            self.version = version;
        }
    }

    fn accept(&mut self) {
        for _ in 0..64 {
            match socket::accept(&self.sockets.listener) {
                Ok((stream, peer)) => {
                    count(&self.counters.accepted);
                    let Some(slot) = self.slot_for(peer.ip()) else { continue };
                    let now = self.clock.now();
                    let id = self.next_plain;
                    self.next_plain += 2;
                    if self.poller.add(&stream, id, Interest::IN).is_ok() {
                        let machine = ServerConnection::new(now, self.config.http);
                        self.of_client.entry(slot.client()).or_default().insert(id);
                        self.plain.insert(id, PlainConnection::new(stream, peer.ip(), slot, machine, now));
                        self.plain(id, PlainConnection::ready);
                    }
                }
                Err(error) => {
                    if !self.spare.refuse_next(&error, &self.sockets.listener, |_| {}) {
                        return;
                    }
                    count(&self.counters.refused_descriptors);
                }
            }
        }
    }

    pub(super) fn drop_plain(&mut self, id: u64) {
        let Some(plain) = self.plain.remove(&id) else { return };
        let client = plain.slot.client();
        if let Some(ids) = self.of_client.get_mut(&client) {
            ids.remove(&id);
            if ids.is_empty() {
                self.of_client.remove(&client);
            }
        }
    }

    /// Runs one step of a client's connection, and updates the events that it is watched for.
    pub(super) fn plain(
        &mut self,
        id: u64,
        step: impl FnOnce(&mut PlainConnection, &mut ConnectionContext<'_, H>) -> bool,
    ) {
        let Some(plain) = self.plain.get_mut(&id) else { return };
        let now = self.clock.now();
        self.today.look(now);
        let (client, second) = (plain.client, self.today.second());
        let (counters, log) = (&self.counters, &self.log);
        let mut context = ConnectionContext {
            now,
            handler: &mut self.handler,
            today: &self.today,
            buffer: &mut self.buffer,
            body_bytes: self.config.body_bytes,
            counters,
            deferred_requests: &mut self.deferred_requests,
            number: id,
            on_response: &mut |request, status, bytes| {
                count(&counters.tcp_client);
                if let Some(log) = log {
                    log.line(second, client, request, status, bytes, log::Channel::TcpClient);
                }
            },
        };
        if !step(plain, &mut context) {
            return self.drop_plain(id);
        }
        let wanted = (plain.is_reading(), plain.is_writing());
        if wanted != plain.is_watched_for {
            let flag = |wanted, flag| if wanted { flag } else { Interest::empty() };
            let interest = flag(wanted.0, Interest::IN) | flag(wanted.1, Interest::OUT);
            self.poller.modify(&plain.stream, id, interest);
            plain.is_watched_for = wanted;
        }
    }
}
