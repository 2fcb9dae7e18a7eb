//! Event loop: a thread that watches connections of clients, and does what never blocks (`pipeline`). Threads of the
//! pool do the rest; a connection is leased to one meanwhile.
//!
//! An idle connection costs its state in memory, and no thread. The loop polls as a server's threads do
//! ([`dhttp::readiness`]), with the same queues. The state machine differs: a gateway forwards bodies before they are
//! complete.

use std::io;
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::abort::Abort;
use super::completions::{Completion, Completions};
use super::connection::{Connection, ConnectionContext};
use super::pipeline;
use super::read_request::{PhaseTimeouts, WatchedConnection};
use super::slots::{ConnectionSlot, Slots};
use super::stage::{ExchangeEnd, Next, Stage};
use super::tunnel::{self, RelayLimit, Side, Tunnel};
use super::write_response::{break_off, refuse_overload};
use super::{GatewayConfig, Shared, log_response};
use crate::cache::streaming_fill::ThreadCache;
use dhttp::log::{Channel, Log};
use dhttp::readiness::{Events, Interest, Poller, SpareDescriptor};
use wire::Time;

/// The loop, and all its state.
pub(super) struct EventLoop {
    pub(super) shared: Arc<Shared>,
    completions: Arc<Completions>,
    pub(super) listener: TcpListener,
    poller: Poller,
    pub(super) slots: Slots,
    /// Number of connections whose request waits for a server.
    busy: usize,
    tunnels: usize,
    /// Share of this loop in the gauges: open connections, busy ones, tunnels.
    counted: [u64; 3],
    pub(super) next: u64,
    cache: Option<ThreadCache>,
    /// Receive buffer.
    buffer: Box<[u8]>,
    /// Send buffer.
    out: Vec<u8>,
    pub(super) spare: SpareDescriptor,
    /// Time of the next search for an idle connection, after one that found none.
    pub(super) next_search: Time,
    pub(super) config: Arc<GatewayConfig>,
    log: Option<Arc<Log>>,
    is_stopping: bool,
}

/// Lease of a connection to a thread. Dropping it frees its slot.
struct Lease {
    completions: Arc<Completions>,
    number: u64,
    is_over: bool,
}

const LISTENER: u64 = 0;
const WAKER: u64 = 1;
/// First number of a program's connection; these are even, and the next odd number is the other end of its tunnel.
const FIRST: u64 = 4;

/// Maximum bytes of one read.
const READ_BUFFER_BYTES: usize = 16 << 10;

impl EventLoop {
    /// # Errors
    /// If the system has no descriptor left.
    pub(super) fn new(
        shared: &Arc<Shared>,
        completions: &Arc<Completions>,
        listener: TcpListener,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&listener, LISTENER, Interest::IN)?;
        poller.add(&completions.waker, WAKER, Interest::IN)?;
        Ok(Self {
            completions: Arc::clone(completions),
            listener,
            poller,
            slots: Slots::new(Arc::clone(&shared.clients)),
            busy: 0,
            tunnels: 0,
            counted: [0; 3],
            next: FIRST,
            cache: shared.cache.clone().map(ThreadCache::new),
            buffer: vec![0; READ_BUFFER_BYTES].into(),
            out: Vec::new(),
            spare: SpareDescriptor::default(),
            next_search: Time::ZERO,
            config: shared.config(),
            log: shared.log(),
            shared: Arc::clone(shared),
            is_stopping: false,
        })
    }

    /// Polls until the gateway is stopped, and pending work is finished.
    pub(super) fn run(mut self) {
        let mut events = Events::default();
        while !self.shared.stop.load(Ordering::Acquire) {
            self.turn(&mut events);
        }
        self.is_stopping = true;
        self.poller.remove(&self.listener);
        let now = self.shared.clock.now();
        let end = now + self.shared.grace();
        self.slots.retain(|slot| match slot {
            ConnectionSlot::Watched(waiting) => waiting.is_busy(),
            ConnectionSlot::Leased(..) | ConnectionSlot::Tunnel(_) => true,
        });
        while !self.slots.is_empty() && self.shared.clock.now() < end {
            self.poller.wake_by(self.shared.clock.now(), end);
            self.turn(&mut events);
        }
        for (_, slot) in self.slots.iter() {
            match slot {
                ConnectionSlot::Leased(_, stream, _) => drop(stream.shutdown(Shutdown::Both)),
                ConnectionSlot::Tunnel(tunnel) => self.log_tunnel(tunnel),
                ConnectionSlot::Watched(_) => {}
            }
        }
        self.flush();
        self.shared.threads.end();
    }

    fn turn(&mut self, events: &mut Events) {
        let has_expired = self.poller.wait(events);
        (self.config, self.log) = (self.shared.config(), self.shared.log());
        if has_expired {
            self.expire();
        }
        for (token, _) in events.drain() {
            match token {
                LISTENER => self.accept(),
                WAKER => self.process_completions(),
                number if number & 1 == 1 => self.carry(number - 1, Side::Server),
                number => match self.slots.get(number) {
                    Some(ConnectionSlot::Tunnel(_)) => self.carry(number, Side::Program),
                    Some(ConnectionSlot::Watched(_) | ConnectionSlot::Leased(..)) | None => {
                        self.step(number, WatchedConnection::ready)
                    }
                },
            }
        }
        self.count();
        self.flush();
    }

    /// Adds the changes of this loop's connections to the gauges, which all loops share.
    fn count(&mut self) {
        let counters = &self.shared.counters;
        let gauges = [&counters.open_now, &counters.busy_now, &counters.tunnels_now];
        let now = [self.slots.len(), self.busy, self.tunnels].map(|count| count as u64);
        for ((gauge, before), now) in gauges.into_iter().zip(&mut self.counted).zip(now) {
            // Wraps around, as the counter does: the sum of all changes is right.
            gauge.fetch_add(now.wrapping_sub(*before), Ordering::Relaxed);
            *before = now;
        }
    }

    pub(super) fn process_completions(&mut self) {
        for (number, completion) in self.completions.take() {
            let Completion::Returned(returned) = completion else {
                self.step(number, |waiting, context, _| waiting.poll(context));
                continue;
            };
            self.busy -= 1;
            if self.slots.remove(number).is_none() {
                // Its place was given to a newcomer.
                continue;
            }
            match returned.map(|returned| *returned) {
                Some((connection, ExchangeEnd::Whole)) if !self.is_stopping => self.watch(number, connection),
                Some((connection, ExchangeEnd::Last)) if !self.is_stopping => {
                    let waiting = WatchedConnection::ending(self.shared.clock.now(), connection);
                    self.register(number, waiting);
                }
                Some((Connection { peer, stream, .. }, ExchangeEnd::Tunnel(to))) => {
                    let (server, requested) = *to;
                    self.watch_tunnel(number, Box::new(Tunnel::new(peer, requested, stream, server)));
                }
                Some((_, ExchangeEnd::Whole | ExchangeEnd::Last | ExchangeEnd::Broken)) | None => {}
            }
        }
    }

    /// Watches a connection that was accepted, and counted; usually its request has arrived, too.
    pub(super) fn watch_new(&mut self, number: u64, connection: Connection) {
        let waiting = WatchedConnection::new(self.shared.clock.now(), connection);
        let peer = waiting.connection.peer.ip();
        if self.poller.add(&waiting.connection.stream, number, Interest::IN).is_ok() {
            self.slots.insert_counted(number, ConnectionSlot::Watched(Box::new(waiting)));
            self.step(number, WatchedConnection::ready);
        } else {
            self.slots.shares().give_back(peer);
        }
    }

    /// Watches a connection that has returned, and reads pipelined requests.
    fn watch(&mut self, number: u64, connection: Connection) {
        if self.register(number, WatchedConnection::new(self.shared.clock.now(), connection)) {
            self.step(number, |waiting, context, _| waiting.resume(context));
        }
    }

    fn register(&mut self, number: u64, waiting: WatchedConnection) -> bool {
        let stream = &waiting.connection.stream;
        let is_watched = self.poller.add(stream, number, Interest::IN).is_ok();
        if is_watched {
            self.slots.insert(number, ConnectionSlot::Watched(Box::new(waiting)));
        }
        is_watched
    }

    fn watch_tunnel(&mut self, number: u64, tunnel: Box<Tunnel>) {
        let watch = |side, number| self.poller.add(tunnel.stream(side), number, tunnel::WATCHED);
        // If registering fails, both ends are closed.
        if watch(Side::Program, number).and_then(|()| watch(Side::Server, number | 1)).is_ok() {
            self.slots.insert(number, ConnectionSlot::Tunnel(tunnel));
            self.tunnels += 1;
        }
    }

    /// Handles an event at one end of a tunnel.
    fn carry(&mut self, number: u64, side: Side) {
        let Some(ConnectionSlot::Tunnel(tunnel)) = self.slots.get_mut(number) else { return };
        match tunnel.ready(side, &mut self.buffer) {
            RelayLimit::All => {}
            RelayLimit::Turn => {
                for (side, number) in [(Side::Program, number), (Side::Server, number | 1)] {
                    self.poller.modify(tunnel.stream(side), number, tunnel::WATCHED);
                }
            }
            RelayLimit::ToTheEnd => {
                if let Some(ConnectionSlot::Tunnel(tunnel)) = self.slots.remove(number) {
                    self.tunnels -= 1;
                    self.log_tunnel(&tunnel);
                }
            }
        }
    }

    fn log_tunnel(&self, tunnel: &Tunnel) {
        if let Some(log) = &self.log {
            log_response(log, tunnel.peer, &tunnel.requested, 200, 0, Channel::TcpClient);
        }
    }

    /// Ends what a connection does, for a newcomer: an exchange, a tunnel, a response that is not read.
    pub(super) fn abort(&mut self, number: u64) {
        match self.slots.get(number) {
            Some(ConnectionSlot::Leased(.., abort)) => abort.abort(),
            Some(ConnectionSlot::Watched(waiting)) if waiting.is_pending() => {
                self.busy -= 1;
                refuse_overload(&waiting.connection.stream);
            }
            Some(ConnectionSlot::Watched(waiting)) if waiting.is_busy() => {
                break_off(&waiting.connection.stream);
            }
            Some(ConnectionSlot::Watched(_)) => {}
            Some(ConnectionSlot::Tunnel(tunnel)) => {
                self.log_tunnel(tunnel);
                self.tunnels -= 1;
            }
            None => {}
        }
        self.slots.remove(number);
    }

    /// Whether more threads are busy than there are connections: those of aborted exchanges that resolve a name.
    pub(super) fn has_lasting_threads(&self) -> bool {
        self.busy > 2 * self.config.connections
    }

    /// Flushes the log: one computer's programs are little load, and the log always shows the last request.
    fn flush(&self) {
        if let Some(log) = &self.log {
            log.flush();
        }
    }

    /// Handles expired timeouts.
    fn expire(&mut self) {
        let timeout = timeout(&self.config);
        let is_watched = |slot: &ConnectionSlot| matches!(slot, ConnectionSlot::Watched(_));
        let watched = self.slots.iter().filter(|(_, slot)| is_watched(slot)).map(|(number, _)| number);
        for number in watched.collect::<Vec<_>>() {
            self.step(number, |waiting, context, _| waiting.expire(context, timeout));
        }
    }

    /// Runs a step of a connection, and registers its events of interest.
    pub(super) fn step(
        &mut self,
        number: u64,
        step: impl FnOnce(&mut WatchedConnection, &mut ConnectionContext<'_>, &mut [u8]) -> Next,
    ) {
        let Some(ConnectionSlot::Watched(waiting)) = self.slots.get_mut(number) else { return };
        let (now, timeout) = (self.shared.clock.now(), timeout(&self.config));
        let was_pending = waiting.is_pending();
        let mut context = ConnectionContext {
            now,
            shared: &self.shared,
            completions: &self.completions,
            number,
            cache: self.cache.as_mut(),
            out: &mut self.out,
            log: self.log.as_deref(),
            peer: waiting.connection.peer,
        };
        let step = step(waiting, &mut context, &mut self.buffer);
        self.out.clear();
        self.busy = self.busy + usize::from(waiting.is_pending()) - usize::from(was_pending);
        let is_last = self.is_stopping && !waiting.is_busy();
        match step {
            Next::Wait | Next::ReadOn | Next::HangUp if is_last => drop(self.slots.remove(number)),
            // During the shutdown no new exchange begins.
            Next::Lease(stage) if is_last && stage.is_first() => drop(self.slots.remove(number)),
            Next::Wait | Next::ReadOn | Next::HangUp => {
                let interest = waiting.interest();
                if interest != waiting.watched {
                    self.poller.modify(&waiting.connection.stream, number, interest);
                    waiting.watched = interest;
                }
                let deadline = waiting.deadline(timeout);
                self.poller.wake_by(now, deadline);
            }
            // Closing it ends its registration.
            Next::Close => {
                self.busy -= usize::from(waiting.is_pending());
                drop(self.slots.remove(number));
            }
            Next::Lease(stage) => self.lease(number, stage),
        }
    }

    /// Leases a connection to a thread.
    fn lease(&mut self, number: u64, stage: Box<Stage>) {
        let Some(ConnectionSlot::Watched(waiting)) = self.slots.remove(number) else { return };
        let connection = waiting.connection;
        self.poller.remove(&connection.stream);
        let abort = Arc::<Abort>::default();
        let slot =
            ConnectionSlot::Leased(connection.peer, Arc::clone(&connection.stream), Arc::clone(&abort));
        self.slots.insert(number, slot);
        self.busy += 1;
        let (shared, completions) = (Arc::clone(&self.shared), Arc::clone(&self.completions));
        let mut lease = Lease { completions, number, is_over: false };
        // If no thread can be started, the connection is closed.
        let _ = self.shared.threads.run(Box::new(move |buffer| {
            lease.end(pipeline::serve(&shared, connection, *stage, &abort, buffer));
        }));
    }
}

fn timeout(config: &GatewayConfig) -> PhaseTimeouts {
    let span = |span: std::time::Duration| {
        wire::Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    };
    PhaseTimeouts { idle: span(config.idle), silent: span(config.timeout) }
}

impl Lease {
    fn end(&mut self, returned: Option<(Connection, ExchangeEnd)>) {
        self.is_over = true;
        self.completions.put(self.number, Completion::Returned(returned.map(Box::new)));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.is_over {
            self.completions.put(self.number, Completion::Returned(None));
        }
    }
}
