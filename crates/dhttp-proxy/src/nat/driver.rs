//! The thread of a helper: diverted datagrams, responses, and the pinholes between.
//!
//! All decisions are those of the state machine ([`dhttp_proto::translator`]).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dhttp_proto::Translator;
use dhttp_proto::client::Responders;
use dhttp_proto::translator::{Input, Mapping, Output, Refusal, Translation};
use socket2::Socket;
use wire::{Duration, Time};

use super::rules::Holes;
use super::{NatConfig, NatError, Shared, sockets};
use crate::nft::{InstalledRules, RulesError};
use dhttp::batch::{Endpoints, Inbox, Outbox};
use dhttp::random;
use dhttp::readiness::{Events, Interest, Poller};
use linux::clock::Clock;

/// The thread's state.
pub(super) struct Driver {
    config: NatConfig,
    clock: Clock,
    poller: Poller,
    machine: Translator,
    holes: Holes,
    port: u16,
    diverted: UdpSocket,
    icmp: Socket,
    /// By external address, and by number in the poller.
    outsides: BTreeMap<SocketAddr, OutsidePort>,
    numbers: BTreeMap<u64, SocketAddr>,
    next: u64,
    inbox: Inbox,
    outbox: Outbox,
    /// Datagrams that wait until the pinholes of requests are open, and those of responses closed.
    datagrams: Vec<Output>,
    /// Time for which any host may respond, if that is allowed and needs an element in the rules.
    any_host_timeout: Option<Duration>,
    is_translating: bool,
    shared: Arc<Shared>,
}

/// External port of a mapping.
struct OutsidePort {
    number: u64,
    udp: UdpSocket,
    /// Reserves the TCP port.
    _reserved: Option<Socket>,
    /// Number of mappings; a client that changes its TCP port has two with one UDP port.
    mappings: usize,
}

const WAKER: u64 = 0;
const DIVERTED: u64 = 1;
/// First number of a mapping.
const FIRST: u64 = 2;

impl Driver {
    /// Creates one without mappings. It takes over the predecessor's socket for diverted requests if the port is the same.
    pub(super) fn new(
        config: &NatConfig,
        shared: Arc<Shared>,
        predecessor: Option<&Self>,
    ) -> Result<Self, NatError> {
        let diverted = match predecessor.filter(|predecessor| predecessor.port == config.port) {
            Some(predecessor) => predecessor.diverted.try_clone(),
            None => sockets::diverted(config.family, config.port),
        };
        let diverted = diverted.map_err(|error| NatError::Port(config.port, error))?;
        let poller = Poller::new()?;
        poller.add(&shared.waker, WAKER, Interest::IN)?;
        poller.add(&diverted, DIVERTED, Interest::IN)?;
        let is_translating = matches!(config.translator.translation, Translation::To(..));
        let any_host_timeout = match config.translator.responders {
            Responders::AnyHost | Responders::Caches(_) if !is_translating => Some(config.translator.timeout),
            Responders::AnyHost | Responders::Caches(_) | Responders::Server => None,
        };
        Ok(Self {
            config: config.clone(),
            clock: Clock::start(),
            poller,
            machine: Translator::new(config.translator.clone(), random::bytes()?),
            holes: Holes::open(config)?,
            port: config.port,
            diverted,
            icmp: sockets::icmp(config.family)?,
            outsides: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next: FIRST,
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            datagrams: Vec::new(),
            any_host_timeout,
            is_translating,
            shared,
        })
    }

    /// Runs until it is stopped; then the rules are removed.
    pub(super) fn run(mut self, mut installed: InstalledRules) {
        let mut events = Events::default();
        while !self.shared.stop.load(Ordering::Acquire) {
            let next = self.poll();
            self.settle();
            self.flush();
            self.poller.wake_by(self.clock.now(), next.unwrap_or(Time::MAX));
            let mut is_woken = false;
            // Each turn begins with the expired timers.
            self.poller.wait(&mut events);
            for (token, _) in events.drain() {
                match token {
                    WAKER => is_woken = true,
                    DIVERTED => self.requests(),
                    number => self.responses(number),
                }
            }
            if is_woken && let Some((config, result_sender)) = self.shared.change() {
                // If the caller has timed out, the result is dropped.
                let _ = result_sender.send(self.apply(&config, &mut installed));
            }
        }
    }

    /// Applies a new configuration, which replaces this one once its rules are in force.
    fn apply(&mut self, config: &NatConfig, installed: &mut InstalledRules) -> Result<(), NatError> {
        if config.family != self.config.family {
            return Err(NatError::Family);
        }
        if *config == self.config && installed.exists()? {
            return Ok(());
        }
        let next = Self::new(config, Arc::clone(&self.shared), Some(self))?;
        installed.replace(config.rules())?;
        self.shared.counters.mappings.store(0, Ordering::Relaxed);
        *self = next;
        Ok(())
    }

    fn requests(&mut self) {
        // After an error of the socket, clients resend.
        let _ = self.inbox.receive(&self.diverted);
        let now = self.clock.now();
        for index in 0..self.inbox.len() {
            if let Some((Endpoints { peer: from, local: Some(server) }, datagram)) =
                self.inbox.datagram(index)
            {
                // A local program can send to the loopback address directly; diverted datagrams have other addresses.
                if server.to_canonical().is_loopback() || from.ip().to_canonical().is_loopback() {
                    continue;
                }
                let to = SocketAddr::new(server, self.port);
                self.machine.handle(now, Input::Request { from, to, datagram });
                self.poll();
            }
        }
    }

    fn responses(&mut self, number: u64) {
        let Some(at) = self.numbers.get(&number).copied() else { return };
        let Some(outside) = self.outsides.get(&at) else { return };
        let mut unreachable = Vec::new();
        while let Some(server) = dhttp::batch::refused(&outside.udp) {
            unreachable.push(server);
        }
        let _ = self.inbox.receive(&outside.udp);
        let now = self.clock.now();
        for server in unreachable {
            self.machine.handle(now, Input::Unreachable { at, server });
            self.poll();
        }
        for index in 0..self.inbox.len() {
            if let Some((Endpoints { peer: from, local: _ }, datagram)) = self.inbox.datagram(index) {
                self.machine.handle(now, Input::Response { at, from, datagram });
                self.poll();
            }
        }
    }

    /// Performs the state machine's outputs, until there are none.
    fn poll(&mut self) -> Option<Time> {
        let mut failed_mappings = Vec::new();
        loop {
            let counters = &self.shared.counters;
            match self.machine.poll(self.clock.now()) {
                Output::Begin(mapping) => {
                    if self.begin(&mapping).is_err() {
                        failed_mappings.push(mapping);
                    }
                }
                Output::End(mapping) => self.end(&mapping),
                // A pinhole of a mapping that could not begin would lead nowhere.
                Output::Open(hole) if self.is_translating && !self.outsides.contains_key(&hole.outside) => {}
                Output::Open(hole) => {
                    counters.opened.fetch_add(1, Ordering::Relaxed);
                    self.holes.admit_server(&hole);
                    self.log_event(&format_args!("a hole at {} to {}", hole.outside, hole.inside));
                }
                Output::Close(hole) => {
                    counters.closed.fetch_add(1, Ordering::Relaxed);
                    self.holes.close(&hole);
                }
                request @ Output::Request { outside, .. } => {
                    if let Some(timeout) = self.any_host_timeout {
                        self.holes.admit_any_host(outside, timeout);
                    }
                    self.datagrams.push(request);
                }
                response @ Output::Response { .. } => self.datagrams.push(response),
                Output::Unreachable { server, to } => {
                    let message = sockets::port_unreachable(to, server);
                    // If the message is lost, the client waits for its timeout.
                    let _ = self.icmp.send_to(&message, &SocketAddr::new(to.ip(), 0).into());
                }
                Output::Refused(from, refusal) => self.refuse(from, refusal),
                Output::Timeout(next) => match failed_mappings.pop() {
                    None => return next,
                    Some(mapping) => self.machine.handle(self.clock.now(), Input::Taken(mapping)),
                },
            }
        }
    }

    fn begin(&mut self, mapping: &Mapping) -> io::Result<()> {
        self.shared.counters.mappings.store(self.machine.mappings() as u64, Ordering::Relaxed);
        let at = mapping.outside;
        if let Some(outside) = self.outsides.get_mut(&at) {
            outside.mappings += 1;
            return Ok(());
        }
        let (udp, reserved) = if self.is_translating {
            (sockets::own(at)?, Some(sockets::reserve_tcp(at)?))
        } else {
            (sockets::bind_as(at)?, None)
        };
        let number = self.next;
        self.next += 1;
        self.poller.add(&udp, number, Interest::IN)?;
        self.numbers.insert(number, at);
        self.outsides.insert(at, OutsidePort { number, udp, _reserved: reserved, mappings: 1 });
        self.holes.begin(mapping);
        Ok(())
    }

    fn end(&mut self, mapping: &Mapping) {
        self.shared.counters.mappings.store(self.machine.mappings() as u64, Ordering::Relaxed);
        let Some(outside) = self.outsides.get_mut(&mapping.outside) else { return };
        outside.mappings -= 1;
        if outside.mappings == 0 {
            self.numbers.remove(&outside.number);
            self.outsides.remove(&mapping.outside);
        }
        self.holes.end(mapping);
    }

    /// Changes the rules for all datagrams of a turn in one step, and sends these.
    fn settle(&mut self) {
        let changed = self.holes.commit();
        self.check(changed);
        for datagram in std::mem::take(&mut self.datagrams) {
            match datagram {
                Output::Request { outside, to, datagram } => self.send(outside, to, &datagram),
                Output::Response { from, to, datagram } => self.send_response(from, to, &datagram),
                _ => {}
            }
        }
    }

    fn send(&self, outside: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let Some(socket) = self.outsides.get(&outside) else { return };
        // A datagram that is not accepted is lost, as in the network; the client resends.
        let _ = socket.udp.send_to(datagram, to);
        self.shared.counters.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends a response with the server's source address: for another port than the servers', by a separate socket.
    fn send_response(&mut self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        self.shared.counters.responses.fetch_add(1, Ordering::Relaxed);
        if from.port() == self.port {
            let ends = Endpoints { peer: to, local: Some(from.ip().to_canonical()) };
            self.outbox.slot(ends).extend_from_slice(datagram);
            self.outbox.send(&self.diverted);
        } else if let Ok(socket) = sockets::bind_as(from) {
            let _ = socket.send_to(datagram, to);
        }
    }

    fn refuse(&self, from: SocketAddr, refusal: Refusal) {
        let counters = &self.shared.counters;
        let counter = match refusal {
            Refusal::Port(_) => &counters.refused_port,
            Refusal::Source => &counters.refused_source,
            Refusal::Crowded => &counters.refused_crowded,
            Refusal::Unsolicited => &counters.refused_unasked,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.log_event(&format_args!("refused: {from}: {refusal}"));
    }

    fn check(&self, result: Result<(), RulesError>) {
        if let Err(error) = result {
            self.shared.counters.failed.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%error, "the kernel rejected a change of the rules");
            self.log_event(&error);
        }
    }

    fn log_event(&self, event: &dyn Display) {
        tracing::debug!("{event}");
        if let Ok(log) = self.shared.log.lock()
            && let Some(log) = log.as_ref()
        {
            log.write_event(linux::clock::calendar(), event);
        }
    }

    fn flush(&self) {
        if let Ok(log) = self.shared.log.lock()
            && let Some(log) = log.as_ref()
        {
            log.flush();
        }
    }
}
