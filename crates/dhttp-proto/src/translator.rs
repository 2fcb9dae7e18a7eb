//! DHTTP support of a router that translates addresses, or of a firewall (`papers/dhttp#section-iv-c`, and IV-D).
//!
//! The response to a request comes in a datagram or on a connection, and the port of the latter is inside the request.
//! A router without DHTTP support does not translate that port, and the connection never arrives. This state machine
//! rewrites the port, and opens a [`Pinhole`] for each request. It admits one connection from the server to the
//! requesting host, to a port from 1024 on, for 30 seconds.
//!
//! ```text
//! Request ──► handle ──► poll ──► Begin, Open, Request        Response ──► handle ──► poll ──► Close, Response
//!                                 Refused                                                     Refused
//! ```
//!
//! A datagram that is not a DHTTP request is forwarded unchanged, and opens no pinhole. Not the kernel's rules that
//! implement pinholes, and not a socket.

mod events;

use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wire::{Duration, Time};

use super::address::{can_be_client, is_listened_on};
use super::client::Responders;
use super::message::{Id, Request, RequestHeader};
use super::parts::is_part;
use super::secret::Secret;
use super::shares::{Holders, ShareLimits, ShareRefusal, Shares};
use http1::message::Limits;

pub use events::{Input, Mapping, Output, Pinhole, Refusal, Translation, TranslatorConfig};

/// Maximum number of connections that one server may have in progress to one client; further responses wait for these.
pub const SLOTS: u8 = 4;

/// Maximum number of outstanding requests of one mapping; beyond it the oldest is forgotten.
const OUTSTANDING: usize = 256;

/// Time without a request after which a mapping may end for another: the first response has come, or is to be requested again.
const EVICTABLE: Duration = Duration::from_secs(2);

/// Maximum number of servers of one mapping that were sent something other than DHTTP.
const UNKNOWN_PEERS: usize = 16;

/// State machine of a translator. `poll` until it returns a timeout, then `handle` an input, and so on.
#[derive(Debug)]
pub struct Translator {
    config: TranslatorConfig,
    secret: Secret,
    drawn: u64,
    mappings: BTreeMap<Key, State>,
    /// Numbers of mappings, by inside host and its networks.
    shares: Shares,
    /// Mappings by their last activity.
    activity: BTreeSet<(Time, Key)>,
    /// Reverse map, by outside address; empty where addresses are not translated, because responses do not pass here
    /// then.
    outsides: BTreeMap<SocketAddr, Key>,
    timers: BTreeSet<(Time, TimerTarget)>,
    outputs: VecDeque<Output>,
}

/// An inside host's UDP address, and its TCP port.
type Key = (SocketAddr, u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TimerTarget {
    Mapping(Key),
    Response(Key, Id),
}

#[derive(Debug)]
struct State {
    mapping: Mapping,
    active: Time,
    /// When its activity is checked next.
    due: Time,
    outstanding: BTreeMap<Id, OutstandingRequest>,
    unknown_peers: VecDeque<SocketAddr>,
    requested: u8,
}

#[derive(Clone, Copy, Debug)]
struct OutstandingRequest {
    server: SocketAddr,
    slot: u8,
    until: Time,
}

impl Translator {
    /// Creates a translator without mappings. `secret` comes from a CSPRNG: it determines the ports.
    pub const fn new(config: TranslatorConfig, secret: [u8; 16]) -> Self {
        Self {
            config,
            secret: Secret(secret),
            drawn: 0,
            mappings: BTreeMap::new(),
            shares: Shares::of_holders(Holders::Inside),
            activity: BTreeSet::new(),
            outsides: BTreeMap::new(),
            timers: BTreeSet::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Handles an input from the sockets.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        let (peer, refused) = match input {
            Input::Request { from, to, datagram } => (from, self.request(now, from, to, datagram)),
            Input::Response { at, from, datagram } => (from, self.respond(at, from, datagram)),
            Input::Unreachable { at, server } => (server, self.unreachable(at, server)),
            Input::Taken(mapping) => return self.end((mapping.inside, mapping.tcp_port)),
        };
        if let Err(refusal) = refused {
            self.outputs.push_back(Output::Refused(peer, refusal));
        }
    }

    /// Returns the next action.
    pub fn poll(&mut self, now: Time) -> Output {
        while self.outputs.is_empty()
            && let Some((time, due)) = self.timers.first().copied()
            && time <= now
        {
            self.timers.remove(&(time, due));
            match due {
                TimerTarget::Mapping(key) => self.age(now, key),
                // Its pinhole has expired.
                TimerTarget::Response(key, id) => self.forget(key, id, time),
            }
        }
        self.outputs.pop_front().unwrap_or(Output::Timeout(self.timers.first().map(|(time, _)| *time)))
    }

    /// Returns the number of mappings.
    pub fn mappings(&self) -> usize {
        self.mappings.len()
    }

    fn request(
        &mut self,
        now: Time,
        from: SocketAddr,
        to: SocketAddr,
        datagram: &[u8],
    ) -> Result<(), Refusal> {
        if !can_be_client(from) {
            return Err(Refusal::Source);
        }
        let header = Request::read(datagram, &Limits::default()).ok().map(|request| request.header);
        let port = header.map_or(0, |header| header.port);
        // A web page could open such a pinhole to telnet, or to an X server.
        if port != 0 && (port < 1_024 || is_listened_on(port)) {
            return Err(Refusal::Port(port));
        }
        let key = (from, port);
        let mapping = self.mapping(now, key)?;
        let appears = mapping.appears_at(&self.config.translation);
        let datagram = match header {
            None => {
                self.pass(key, to);
                datagram.to_vec()
            }
            Some(header) => {
                self.expect(now, key, to, header.id);
                let port = if port == 0 { 0 } else { appears.port() };
                rewritten(datagram, RequestHeader { port, ..header })
            }
        };
        self.outputs.push_back(Output::Request { outside: mapping.outside, to, datagram });
        Ok(())
    }

    /// Returns the mapping of these ports, and creates it if there is none.
    fn mapping(&mut self, now: Time, key: Key) -> Result<Mapping, Refusal> {
        if let Some(state) = self.mappings.get_mut(&key) {
            self.activity.remove(&(state.active, key));
            self.activity.insert((now, key));
            state.active = now;
            return Ok(state.mapping);
        }
        let (inside, tcp_port) = key;
        if !self.has_room(now, inside.ip()) {
            return Err(Refusal::Crowded);
        }
        let outside = match self.config.translation.clone() {
            Translation::None => inside,
            Translation::To(address, ports) => {
                let port = self.draw(&ports, |port| SocketAddr::new(address, port));
                SocketAddr::new(address, port.ok_or(Refusal::Crowded)?)
            }
        };
        let mapping = Mapping { inside, tcp_port, outside };
        let state = State {
            mapping,
            active: now,
            due: now + self.config.idle,
            outstanding: BTreeMap::new(),
            unknown_peers: VecDeque::new(),
            requested: 0,
        };
        match self.config.translation {
            Translation::To(..) => self.outsides.insert(outside, key),
            Translation::None => None,
        };
        self.timers.insert((state.due, TimerTarget::Mapping(key)));
        self.mappings.insert(key, state);
        self.shares.add(inside.ip());
        self.activity.insert((now, key));
        self.outputs.push_back(Output::Begin(mapping));
        Ok(mapping)
    }

    /// Whether an inside host may have another mapping. In a network that has its share, the mapping that has been inactive for
    /// the longest time ends for it.
    fn has_room(&mut self, now: Time, inside: IpAddr) -> bool {
        let to_u64 = |count| u64::try_from(count).unwrap_or(u64::MAX);
        let limits = ShareLimits {
            total: to_u64(self.config.max),
            client: to_u64(self.config.most_per_host),
            has_networks: true,
        };
        let is_full_of = match self.shares.check(inside, limits) {
            Ok(()) => return true,
            Err(ShareRefusal::Client(_)) => return false,
            Err(ShareRefusal::Network(network)) => Some(network),
            Err(ShareRefusal::Total) => None,
        };
        let is_inactive = |(active, _): &&(Time, Key)| *active + EVICTABLE <= now;
        let mut inactive = self.activity.iter().take_while(is_inactive).map(|(_, key)| *key);
        let evicted =
            inactive.find(|(address, _)| is_full_of.is_none_or(|network| network.contains(address.ip())));
        evicted.map(|key| self.end(key)).is_some()
    }

    /// Generates an unpredictable port that is not in use here.
    fn draw(&mut self, ports: &RangeInclusive<u16>, at: impl Fn(u16) -> SocketAddr) -> Option<u16> {
        let count = ports.len();
        (0..64).find_map(|_| {
            self.drawn += 1;
            let index = self.secret.index(&self.drawn.to_be_bytes(), count);
            let port = ports.clone().nth(index)?;
            (!self.outsides.contains_key(&at(port))).then_some(port)
        })
    }

    fn pass(&mut self, key: Key, to: SocketAddr) {
        let Some(state) = self.mappings.get_mut(&key) else { return };
        if !state.unknown_peers.contains(&to) {
            state.unknown_peers.truncate(UNKNOWN_PEERS - 1);
            state.unknown_peers.push_front(to);
        }
    }

    /// Registers an outstanding request, whose response may come on either channel.
    fn expect(&mut self, now: Time, key: Key, server: SocketAddr, id: Id) {
        let until = now + self.config.timeout;
        let Some(state) = self.mappings.get_mut(&key) else { return };
        let before = state.outstanding.get(&id).filter(|before| before.server == server);
        let slot = before.map_or(state.requested % SLOTS, |before| before.slot);
        state.requested = state.requested.wrapping_add(1);
        let mut evicted =
            state.outstanding.insert(id, OutstandingRequest { server, slot, until }).map(|old| (id, old));
        if state.outstanding.len() > OUTSTANDING {
            let oldest =
                state.outstanding.iter().min_by_key(|(_, requested)| requested.until).map(|(id, _)| *id);
            evicted = oldest.and_then(|id| Some((id, state.outstanding.remove(&id)?)));
        }
        if let Some((id, evicted)) = evicted {
            self.timers.remove(&(evicted.until, TimerTarget::Response(key, id)));
        }
        self.timers.insert((until, TimerTarget::Response(key, id)));
        if key.1 != 0 {
            let pinhole = self.pinhole(key, id, server, slot);
            self.outputs.extend(pinhole.map(Output::Open));
        }
    }

    fn respond(&mut self, at: SocketAddr, from: SocketAddr, datagram: &[u8]) -> Result<(), Refusal> {
        let key = *self.outsides.get(&at).ok_or(Refusal::Unsolicited)?;
        let state = self.mappings.get_mut(&key).ok_or(Refusal::Unsolicited)?;
        let id = Id::split(datagram).ok().map(|(id, _)| id);
        let responders = self.config.responders;
        let requested = id
            .and_then(|id| Some((id, *state.outstanding.get(&id)?)))
            .filter(|(_, requested)| requested.server == from || responders.include(from.ip()));
        match requested {
            // More of its parts may follow.
            Some(_) if is_part(datagram) => {}
            Some((id, requested)) => {
                state.outstanding.remove(&id);
                self.timers.remove(&(requested.until, TimerTarget::Response(key, id)));
                self.close(key, id, requested);
            }
            None if state.unknown_peers.contains(&from) => {}
            None => return Err(Refusal::Unsolicited),
        }
        self.outputs.push_back(Output::Response { from, to: key.0, datagram: datagram.to_vec() });
        Ok(())
    }

    /// Forwards an ICMP error, but only to a client that has sent to this server and has no response yet.
    fn unreachable(&mut self, at: SocketAddr, server: SocketAddr) -> Result<(), Refusal> {
        let key = *self.outsides.get(&at).ok_or(Refusal::Unsolicited)?;
        let state = self.mappings.get(&key).ok_or(Refusal::Unsolicited)?;
        let waits = state.outstanding.values().any(|requested| requested.server == server);
        if !waits && !state.unknown_peers.contains(&server) {
            return Err(Refusal::Unsolicited);
        }
        self.outputs.push_back(Output::Unreachable { server, to: key.0 });
        Ok(())
    }

    /// Closes the pinhole of a request whose response came in a datagram, unless outstanding requests share it.
    fn close(&mut self, key: Key, id: Id, requested: OutstandingRequest) {
        let Some(state) = self.mappings.get(&key).filter(|_| key.1 != 0) else { return };
        // Where hosts other than the server may respond, pinholes are not distinguished by server.
        let shares = |other: &OutstandingRequest| {
            let is_for_all = self.config.responders != Responders::Server;
            other.slot == requested.slot && (is_for_all || other.server.ip() == requested.server.ip())
        };
        if !state.outstanding.values().any(shares) {
            let pinhole = self.pinhole(key, id, requested.server, requested.slot);
            self.outputs.extend(pinhole.map(Output::Close));
        }
    }

    fn pinhole(&self, key: Key, id: Id, server: SocketAddr, slot: u8) -> Option<Pinhole> {
        let mapping = self.mappings.get(&key)?.mapping;
        let server = match self.config.responders {
            Responders::Server | Responders::Caches(_) => Some(server.ip()),
            Responders::AnyHost => None,
        };
        let outside = mapping.appears_at(&self.config.translation);
        Some(Pinhole { server, outside, inside: mapping.listener(), slot, id, lifetime: self.config.timeout })
    }

    fn forget(&mut self, key: Key, id: Id, time: Time) {
        let Some(state) = self.mappings.get_mut(&key) else { return };
        if state.outstanding.get(&id).is_some_and(|requested| requested.until <= time) {
            state.outstanding.remove(&id);
        }
    }

    fn age(&mut self, now: Time, key: Key) {
        let Some(state) = self.mappings.get_mut(&key) else { return };
        state.due = state.active + self.config.idle;
        if state.due <= now {
            self.end(key);
        } else {
            self.timers.insert((state.due, TimerTarget::Mapping(key)));
        }
    }

    fn end(&mut self, key: Key) {
        let Some(state) = self.mappings.remove(&key) else { return };
        self.outsides.remove(&state.mapping.outside);
        self.shares.give_back(key.0.ip());
        self.activity.remove(&(state.active, key));
        self.timers.remove(&(state.due, TimerTarget::Mapping(key)));
        for (id, requested) in &state.outstanding {
            self.timers.remove(&(requested.until, TimerTarget::Response(key, *id)));
        }
        self.outputs.push_back(Output::End(state.mapping));
    }
}

/// The same request with another header.
fn rewritten(datagram: &[u8], header: RequestHeader) -> Vec<u8> {
    let rest = datagram.get(RequestHeader::BYTES..).unwrap_or_default();
    [&header.to_bytes(), rest].concat()
}

#[cfg(test)]
mod tests;
