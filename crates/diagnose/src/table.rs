//! All connections of a capture: packets in, finished connections out, in memory that does not grow with the packets.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dissect::connections::{Connections, Key, Slot};
use dissect::exchange::is_from_client;
use dissect::hosts::Hosts;
use dissect::tick::Tick;
use dissect::{KeyLog, Mark, Segment, Side};
use wire::packet::icmp::Unreachable;
use wire::packet::{Flags, Packet, TcpSegment, Transport};
use wire::{Duration, Time};

use crate::causes::connection_per_request::{IMMEDIATE, PreviousConnection, RIGHT_BEFORE, SOON};
use crate::dhttp::Dialogues;
use crate::failure::{ALTERNATIVE, RefusedConnection};
use crate::flow::Flow;
use crate::options::Options;
use crate::quic::QuicConnections;
use crate::report::FlowReport;
use crate::retention::RetentionLimits;

/// Diagnosis of a capture: call [`Diagnosis::handle`] for each packet, then [`Diagnosis::poll`] until it returns
/// nothing. At the end of the capture call [`Diagnosis::end`], and poll again.
#[derive(Debug, Default)]
pub struct Diagnosis {
    flows: Connections<Flow>,
    /// Limits on what each connection retains, and the number of connections of other diagnoses.
    limits: RetentionLimits,
    other_count: usize,
    /// Closed connections, oldest first: retransmissions may still follow.
    closed: VecDeque<(Time, Key)>,
    finished: VecDeque<FlowReport>,
    dialogues: Dialogues,
    quic: QuicConnections,
    /// Connections still open at the end of the capture, in reverse order of reporting.
    unfinished: Vec<(Time, u64, Slot)>,
    /// A client's last connections to a server.
    habits: BTreeMap<(IpAddr, SocketAddr), ConnectionHabit>,
    hosts: Hosts,
    /// Connections that were just refused.
    refused: VecDeque<RefusedConnection>,
    options: Options,
    /// Key log with which connections are read that begin TLS from now on.
    pub keys: Option<Arc<KeyLog>>,
    totals: Totals,
    tick: Tick,
    /// Earliest time at which one of too many connections can have become idle.
    none_idle_before: Time,
    /// Maximum number of connections, if other diagnoses of the same capture follow some, too.
    limit: Option<usize>,
}

/// Position of a packet in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketPosition {
    /// Its number, from 1.
    pub frame: u64,
    /// The interface on which it was captured. Where a connection crosses several, each direction is followed on the
    /// one on which it is captured first.
    pub interface: u32,
}

/// Totals of the capture as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// IP packets.
    pub packets: u64,
    /// TCP segments among them.
    pub segments: u64,
    /// Datagrams of DHTTP and QUIC connections among them.
    pub datagrams: u64,
    /// Connections finished early to follow others: unanswered or idle ones.
    pub evicted: u64,
    /// TCP segments of connections that were not followed, because the maximum number of connections was active.
    pub beyond: u64,
}

impl Totals {
    /// Returns the number of packets that belong to connections.
    pub const fn followed(&self) -> u64 {
        self.segments + self.datagrams
    }
}

#[derive(Clone, Debug, Default)]
struct ConnectionHabit {
    /// End of the last connection that closed, if one has.
    ended: Option<ClosedConnection>,
    /// The last connection that was opened.
    opened: Option<(Time, Slot)>,
}

#[derive(Clone, Debug)]
struct ClosedConnection {
    at: Time,
    /// Set if it had carried few requests.
    previous: Option<PreviousConnection>,
}

/// Maximum number of connections followed concurrently. Unanswered ones are evicted first, then idle ones. If there are
/// none, further connections are not followed: a complete diagnosis of some is worth more than a partial one of each.
const MAX_FLOWS: usize = 1 << 14;
/// Time without a packet after which a connection may be evicted.
const IDLE: Duration = Duration::from_secs(10);
/// Maximum number of refused connections that await an alternative.
const MAX_REFUSED: usize = 64;
const MAX_HABITS: usize = 1 << 14;
/// Maximum time after the close within which a retransmission may follow.
const LINGER: Duration = Duration::from_secs(3);

impl Diagnosis {
    /// Creates an empty diagnosis.
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Handles a packet captured at `now`.
    pub fn handle(&mut self, now: Time, seen: PacketPosition, packet: &Packet<'_>) {
        let PacketPosition { frame, interface } = seen;
        self.totals.packets += 1;
        self.tick.passed(now);
        let mark = Mark { at: now, frame };
        let tcp = match packet.transport {
            Transport::Tcp(tcp) => tcp,
            Transport::Udp(udp) => {
                let is_followed =
                    self.quic.datagram((mark, interface), packet, udp, self.options, self.keys.as_ref())
                        || self.dialogues.datagram(mark, packet, udp, self.options);
                self.totals.datagrams += u64::from(is_followed);
                return;
            }
            Transport::Other { .. } => return self.undelivered(mark, packet),
            Transport::Fragment => return,
        };
        let Some((source, destination)) = packet.sockets() else { return };
        self.dialogues.segment(mark, packet, tcp);
        self.totals.segments += 1;
        self.release(now);
        self.observe_host(source, now, tcp);
        let key = Key::of(source, destination);
        let slot = match self.flows.find(&key) {
            Some(slot) if self.is_reused(slot, now, seen, packet, tcp) => {
                self.finish(&key);
                None
            }
            found => found,
        };
        if slot.is_none() && self.flows.len() >= self.limit.unwrap_or(MAX_FLOWS) && !self.evict(now) {
            self.totals.beyond += 1;
            return;
        }
        let slot = slot.unwrap_or_else(|| {
            let (flow, idle) = self.open(source, destination, now, frame, packet, tcp);
            let client = (flow.client.ip(), flow.server);
            let tick = self.tick.coarse();
            let (slot, abandoned) = self.flows.insert(key, flow);
            self.update_limits();
            self.change_habit(client, |habit| habit.opened = Some((now, slot)));
            idle.and_then(|idle| self.flows.at(idle))
                .into_iter()
                .for_each(|idle| idle.is_followed_by(slot, frame));
            self.totals.evicted += u64::from(abandoned.is_some());
            self.finished.extend(abandoned.map(|flow| flow.finish(tick, &self.hosts)));
            slot
        });
        self.pass(key, slot, now, seen, packet);
    }

    /// Records the time of a packet that another diagnosis of the same capture handles ([`shard_of`](crate::shard_of)).
    pub fn pass_time(&mut self, now: Time) {
        self.tick.passed(now);
    }

    /// Returns whether the times of further packets matter ([`Diagnosis::pass_time`]): the clock is not known to be fine.
    pub fn needs_times(&self) -> bool {
        !self.tick.is_fine()
    }

    /// Handles a packet that another diagnosis follows, as far as it is evidence for this one's connections: it opens or
    /// ends a connection, or reports a packet as undeliverable ([`Diagnosis::is_for_all`]).
    pub fn notice(&mut self, now: Time, seen: PacketPosition, packet: &Packet<'_>) {
        self.tick.passed(now);
        match packet.transport {
            Transport::Tcp(tcp) => {
                if let Some((source, _)) = packet.sockets() {
                    self.observe_host(source, now, tcp);
                }
            }
            Transport::Other { .. } => self.undelivered(Mark { at: now, frame: seen.frame }, packet),
            Transport::Udp(_) | Transport::Fragment => {}
        }
    }

    /// Returns whether every diagnosis of a capture needs the packet.
    pub fn is_for_all(packet: &Packet<'_>) -> bool {
        match packet.transport {
            Transport::Tcp(tcp) => Self::is_segment_for_all(tcp.flags),
            Transport::Other { .. } => true,
            Transport::Udp(_) | Transport::Fragment => false,
        }
    }

    /// Returns whether every diagnosis of a capture needs a TCP segment with these flags.
    pub fn is_segment_for_all(flags: Flags) -> bool {
        flags.contains(Flags::SYN | Flags::ACK) || flags.intersects(Flags::FIN | Flags::RST)
    }

    /// Returns the number of connections that are followed now.
    pub fn open_connections(&self) -> usize {
        self.flows.len()
    }

    /// Divides the limits among the diagnoses of one capture: `open` has the number of connections that each followed
    /// at some time, and this is the one at `index`. It may follow as many more as its part of what is left.
    pub fn share(&mut self, open: &[usize], index: usize) {
        let (all, own) = (open.iter().sum::<usize>(), open.get(index).copied().unwrap_or_default());
        self.other_count = all - own;
        self.update_limits();
        self.limit = Some(own + MAX_FLOWS.saturating_sub(all) / open.len().max(1));
    }

    /// Handles a packet that reports another as undeliverable (ICMP).
    fn undelivered(&mut self, mark: Mark, packet: &Packet<'_>) {
        let Some(unreachable) = Unreachable::read(packet) else { return };
        let slot = self.flows.find(&Key::of(unreachable.source, unreachable.destination));
        if let Some(flow) = slot.and_then(|slot| self.flows.at(slot)) {
            flow.is_undelivered(mark, &unreachable);
        }
    }

    /// Handles a packet that opens or ends a connection: its host is up.
    fn observe_host(&mut self, source: SocketAddr, now: Time, tcp: TcpSegment<'_>) {
        if tcp.flags.contains(Flags::SYN | Flags::ACK) {
            self.accepted(source, now);
        } else if tcp.flags.contains(Flags::FIN) || tcp.flags.contains(Flags::RST) {
            self.hosts.record_alive(source.ip(), now);
        }
    }

    /// Handles a SYN/ACK of `server`: an alternative for a client that was refused elsewhere.
    fn accepted(&mut self, server: SocketAddr, now: Time) {
        self.hosts.accepted(server, now);
        self.refused.retain(|refused| now.since(refused.at) <= ALTERNATIVE);
        for RefusedConnection { at: _, port, slot, frame } in self.refused.iter().copied() {
            let flow =
                self.flows.at(slot).filter(|flow| port == server.port() && flow.started.frame == frame);
            if let Some(flow) = flow.filter(|flow| flow.server != server) {
                flow.has_alternative();
            }
        }
    }

    /// Returns whether a packet begins another connection between the sockets of an existing one.
    fn is_reused(
        &mut self,
        slot: Slot,
        now: Time,
        seen: PacketPosition,
        packet: &Packet<'_>,
        tcp: TcpSegment<'_>,
    ) -> bool {
        if !tcp.flags.contains(Flags::SYN) {
            return false;
        }
        let Some(flow) = self.flows.at(slot) else { return false };
        let from = flow.side_of(packet);
        flow.is_reused_by(&Segment::new(seen.frame, now, from, packet, tcp))
    }

    /// Passes a packet to its connection.
    fn pass(&mut self, key: Key, slot: Slot, now: Time, seen: PacketPosition, packet: &Packet<'_>) {
        let PacketPosition { frame, interface } = seen;
        let Transport::Tcp(tcp) = packet.transport else { return };
        let limits = self.limits;
        let Some(flow) = self.flows.at(slot) else { return };
        let from = flow.side_of(packet);
        if !flow.is_watched_on(from, interface) {
            return;
        }
        let mut segment = Segment::new(frame, now, from, packet, tcp);
        if flow.are_roles_guessed()
            && let Some(is_from_client) = is_from_client(tcp.payload)
            && let Some(anew) = flow.prove_roles(&segment, is_from_client)
        {
            *flow = anew;
            segment.from = from.other();
        }
        if let Some(keys) = &self.keys {
            flow.conversation.unlock(tcp.payload, keys);
        }
        flow.take_distances(&self.hosts);
        let (was_ending, was_over, was_set_up) = (flow.is_ending(), flow.is_over(), flow.is_set_up());
        flow.segment(&segment, limits);
        if flow.is_set_up() && !was_set_up {
            flow.give_distances(&mut self.hosts);
        }
        let (is_ending, is_over) = (flow.is_ending(), flow.is_over());
        let refuted = flow.take_refuted_follower();
        let (server, frame, is_refused) = (flow.server, flow.started.frame, is_over && flow.is_refused());
        if let Some((follower, first)) = refuted {
            let follower = self.flows.at(follower).filter(|follower| follower.started.frame == first);
            follower.into_iter().for_each(Flow::follows_nothing);
        }
        if is_ending && !was_ending {
            self.remember(now, slot);
            self.was_followed(now, slot);
        }
        if is_over && !was_over {
            self.closed.push_back((now, key));
            if is_refused && self.refused.len() < MAX_REFUSED {
                self.refused.push_back(RefusedConnection { at: now, port: server.port(), slot, frame });
            }
        }
    }

    /// Returns the report of a finished connection, if there is one.
    pub fn poll(&mut self) -> Option<FlowReport> {
        self.finished.pop_front().or_else(|| self.dialogues.poll()).or_else(|| self.quic.poll()).or_else(
            || {
                let (_, _, slot) = self.unfinished.pop()?;
                let tick = self.tick.coarse();
                self.flows.remove_at(slot).map(|flow| flow.finish(tick, &self.hosts))
            },
        )
    }

    /// Ends the capture: every connection is finished, in the order in which they began, as it is polled.
    pub fn end(&mut self) {
        self.dialogues.end();
        self.quic.end();
        self.unfinished =
            self.flows.iter().map(|(slot, flow)| (flow.started.at, flow.started.frame, slot)).collect();
        self.unfinished.sort_unstable_by(|one, other| other.cmp(one));
    }

    /// Returns the totals of the capture as a whole.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    fn open(
        &mut self,
        source: SocketAddr,
        destination: SocketAddr,
        now: Time,
        frame: u64,
        packet: &Packet<'_>,
        tcp: TcpSegment<'_>,
    ) -> (Flow, Option<Slot>) {
        let opens = tcp.flags.contains(Flags::SYN);
        let responses = opens && tcp.flags.contains(Flags::ACK);
        let source_is_client = match (opens, responses) {
            (true, responses) => !responses,
            (false, _) => is_client(source, destination),
        };
        let (client, server) = if source_is_client { (source, destination) } else { (destination, source) };
        let from = if source_is_client { Side::Client } else { Side::Server };
        let first = Segment::new(frame, now, from, packet, tcp);
        let mut flow = Flow::new(client, server, &first, self.options);
        let mut idle = None;
        if self.dialogues.is_for_responses(client, server) {
            flow.is_of_a_dialogue();
        } else if opens {
            idle = self.notice_habit(&mut flow, now);
        }
        (flow, idle)
    }

    /// Checks whether the client had just closed a connection to the same server after one request, or has one that is
    /// open and idle. Returns the slot of the latter.
    fn notice_habit(&mut self, flow: &mut Flow, now: Time) -> Option<Slot> {
        let habit = self.habits.get(&(flow.client.ip(), flow.server))?;
        let ended = habit.ended.as_ref().filter(|ended| now.since(ended.at) <= SOON);
        if let Some(ClosedConnection { at, previous: Some(previous) }) = ended {
            // A client that opens immediately, as seen at the point of capture, had waited for that close.
            let is_at_once = now.since(*at) <= previous.closing * 3 / 2 + IMMEDIATE;
            let closing = if is_at_once { previous.closing } else { Duration::ZERO };
            flow.follows(PreviousConnection { closing, is_open: false, ..previous.clone() });
            return None;
        }
        let (_, slot) = habit.opened?;
        let (client, server) = (flow.client.ip(), flow.server);
        let open = self.flows.at(slot).filter(|open| (open.client.ip(), open.server) == (client, server))?;
        let is_recent = !open.is_ending() && now.since(open.last_at) <= SOON;
        let previous = open.as_previous(Duration::ZERO).filter(|open| is_recent && open.requests == 1)?;
        flow.follows(previous);
        Some(slot)
    }

    /// Records facts at the end of a connection for the next one.
    fn remember(&mut self, now: Time, slot: Slot) {
        let Some(flow) = self.flows.at(slot) else { return };
        let ended = ClosedConnection { at: now, previous: flow.as_previous(flow.closing()) };
        let client = (flow.client.ip(), flow.server);
        self.change_habit(client, |habit| habit.ended = Some(ended));
    }

    fn change_habit(&mut self, client: (IpAddr, SocketAddr), change: impl FnOnce(&mut ConnectionHabit)) {
        change(self.habits.entry(client).or_default());
        if self.habits.len() > MAX_HABITS {
            let other = self.habits.keys().find(|other| **other != client).copied();
            other.and_then(|other| self.habits.remove(&other));
        }
    }

    /// Handles the close of a connection whose only request has its response, right after the client opened its next
    /// connection: that one follows it, too. The last packet of the first is in flight while the client opens the next.
    fn was_followed(&mut self, now: Time, slot: Slot) {
        let Some(flow) = self.flows.at(slot) else { return };
        let (client, server) = (flow.client.ip(), flow.server);
        let Some(previous) = flow.as_previous(Duration::ZERO) else { return };
        let next = self.habits.get(&(client, server)).and_then(|habit| habit.opened);
        let Some((opened, next)) = next.filter(|(_, next)| *next != slot) else { return };
        let is_right_before = now.since(opened) <= RIGHT_BEFORE;
        let follower = self.flows.at(next).filter(|flow| is_right_before && flow.started.at == opened);
        if let Some(follower) = follower {
            follower.follows(PreviousConnection { is_open: false, ..previous });
        }
    }

    fn release(&mut self, now: Time) {
        while let Some((ended, key)) = self.closed.front().copied() {
            if now.since(ended) < LINGER && self.closed.len() < MAX_FLOWS {
                break;
            }
            self.closed.pop_front();
            let slot = self.flows.find(&key);
            let flow = slot.and_then(|slot| self.flows.at(slot));
            if flow.is_some_and(|flow| flow.is_over() && flow.last_at <= now) {
                self.finish(&key);
            }
        }
    }

    fn finish(&mut self, key: &Key) {
        if let Some(flow) = self.flows.remove(key) {
            self.finished.push_back(flow.finish(self.tick.coarse(), &self.hosts));
            self.update_limits();
        }
    }

    fn update_limits(&mut self) {
        self.limits = RetentionLimits::among(self.flows.len() + self.other_count);
    }

    /// Evicts up to an eighth of the connections, the unanswered first, then those idle the longest. Returns whether
    /// there were any.
    fn evict(&mut self, now: Time) -> bool {
        if now < self.none_idle_before {
            return false;
        }
        let flows = self.flows.iter().map(|(slot, flow)| (!flow.is_half_open(), flow.last_at, slot));
        let mut flows: Vec<(bool, Time, Slot)> = flows.collect();
        flows.sort_unstable();
        let is_evictable =
            |(is_answered, last_at, _): &(bool, Time, Slot)| !is_answered || now.since(*last_at) >= IDLE;
        let longest_idle = flows.first().map(|(_, last_at, _)| *last_at).unwrap_or(now);
        let evicted: Vec<Slot> =
            flows.into_iter().filter(is_evictable).map(|(_, _, slot)| slot).take(MAX_FLOWS / 8).collect();
        if evicted.is_empty() {
            self.none_idle_before = longest_idle + IDLE;
        }
        let tick = self.tick.coarse();
        self.totals.evicted += evicted.len() as u64;
        for slot in &evicted {
            self.finished.extend(self.flows.remove_at(*slot).map(|flow| flow.finish(tick, &self.hosts)));
        }
        self.update_limits();
        !evicted.is_empty()
    }
}

/// Returns whether `source` is likely to have opened a connection whose opening was not captured: the other side has a
/// service port, or the lower one.
fn is_client(source: SocketAddr, destination: SocketAddr) -> bool {
    const SERVICES: u16 = 1_024;
    match (source.port() < SERVICES, destination.port() < SERVICES) {
        (true, false) => false,
        (false, true) => true,
        (true, true) | (false, false) => source.port() >= destination.port(),
    }
}
