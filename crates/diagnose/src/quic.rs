//! QUIC connections: their openings, by long headers; what follows is encrypted, and its time is unknown without a key log.
//!
//! Openings and frames are read by [`dissect::quic`], their causes are in `causes/quic.rs`. A connection is two sockets: one that
//! moves to another address counts as another, and is not followed there.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dissect::quic::opened::{OpenedQuic, QuicWait};
use dissect::quic::{QuicOpening, begins};
use dissect::{Both, KeyLog, Mark, Side};
use wire::packet::{Packet, UdpDatagram};
use wire::{Bytes, Time};

use crate::cause::{Cause, Describe as _};
use crate::causes::quic;
use crate::doubt::{Doubt, Doubts};
use crate::finding::Findings;
use crate::options::{LEAP, Options};
use crate::report::{ExchangeReport, FlowReport, Oddities, Protocol, VantagePoint};
use trace::account::{Account, Share};

/// All QUIC connections of a capture.
#[derive(Debug, Default)]
pub(crate) struct QuicConnections {
    /// By the client's and the server's sockets.
    all: BTreeMap<(SocketAddr, SocketAddr), QuicFlow>,
    finished: VecDeque<FlowReport>,
}

/// Maximum number of connections that are followed concurrently; beyond it the longest idle ones are finished.
const MAX_CONNECTIONS: usize = 1 << 12;
const MAX_FINDINGS: usize = 16;
const MAX_EXCHANGES: usize = 16;
/// Silence longer than this is idle time.
const IDLE: wire::Duration = wire::Duration::from_secs(5);

/// A connection, as far as it was captured.
#[derive(Debug)]
struct QuicFlow {
    opening: QuicOpening,
    /// Set with a key log.
    opened: Option<Box<OpenedQuic<Account>>>,
    /// Time of the connection up to its last event, and the findings of waits.
    account: Account,
    doubts: Doubts,
    findings: Findings,
    exchanges: Vec<ExchangeReport>,
    started: Mark,
    last_at: Time,
    packets: u64,
    bytes: Bytes,
    since: Time,
    oddities: Oddities,
    /// The interface on which each side's datagrams were captured first: on others the same ones appear again.
    interfaces: Both<Option<u32>>,
}

impl QuicConnections {
    /// Handles a datagram; returns whether it belongs to a connection.
    pub(crate) fn datagram(
        &mut self,
        (mark, interface): (Mark, u32),
        packet: &Packet<'_>,
        udp: UdpDatagram<'_>,
        options: Options,
        keys: Option<&Arc<KeyLog>>,
    ) -> bool {
        let Some((source, destination)) = packet.sockets() else { return false };
        let length = udp.payload_length.get();
        for (side, sockets) in [(Side::Server, (destination, source)), (Side::Client, (source, destination))]
        {
            let Some(flow) = self.all.get_mut(&sockets) else { continue };
            if side == Side::Client && flow.opening.is_of_another(udp.payload) {
                self.finished.extend(self.all.remove(&sockets).map(|flow| flow.finish(sockets)));
                continue;
            }
            if flow.is_watched_on(side, interface) {
                flow.datagram(side, mark, udp.payload, length);
            }
            return true;
        }
        let is_new = usize::try_from(length).is_ok_and(|length| begins(udp.payload, length));
        if is_new {
            self.evict_idle();
            let mut flow = QuicFlow::new(mark, options.since, keys);
            flow.is_watched_on(Side::Client, interface);
            flow.datagram(Side::Client, mark, udp.payload, length);
            self.all.insert((source, destination), flow);
        }
        is_new
    }

    /// Returns the report of a finished connection, if there is one.
    pub(crate) fn poll(&mut self) -> Option<FlowReport> {
        self.finished.pop_front()
    }

    /// Finishes all connections at the end of the capture.
    pub(crate) fn end(&mut self) {
        let all = std::mem::take(&mut self.all);
        self.finished.extend(all.into_iter().map(|(sockets, flow)| flow.finish(sockets)));
    }

    fn evict_idle(&mut self) {
        if self.all.len() < MAX_CONNECTIONS {
            return;
        }
        let mut idle: Vec<_> = self.all.iter().map(|(key, flow)| (flow.last_at, *key)).collect();
        idle.sort_unstable();
        for (_, key) in idle.into_iter().take(MAX_CONNECTIONS / 8) {
            self.finished.extend(self.all.remove(&key).map(|flow| flow.finish(key)));
        }
    }
}

impl QuicFlow {
    fn new(mark: Mark, since: Time, keys: Option<&Arc<KeyLog>>) -> Self {
        Self {
            opening: QuicOpening::new(mark),
            opened: keys.map(|keys| Box::new(OpenedQuic::new(Arc::clone(keys)))),
            account: Account::default(),
            doubts: Doubts::default(),
            findings: Findings::default(),
            exchanges: Vec::new(),
            started: mark,
            last_at: mark.at,
            packets: 0,
            bytes: Bytes::ZERO,
            since,
            oddities: Oddities::default(),
            interfaces: Both::default(),
        }
    }

    /// Returns whether datagrams of a side on an interface are read.
    fn is_watched_on(&mut self, side: Side, interface: u32) -> bool {
        let is_watched = *self.interfaces.of_mut(side).get_or_insert(interface) == interface;
        self.oddities.captured_twice += u64::from(!is_watched);
        is_watched
    }

    fn datagram(&mut self, side: Side, mark: Mark, payload: &[u8], length: u64) {
        self.oddities.backwards += u64::from(mark.at < self.last_at);
        self.last_at = self.last_at.max(mark.at);
        self.packets += 1;
        self.bytes += Bytes::new(length);
        let mark = Mark { at: self.last_at, frame: mark.frame };
        self.opening.datagram(side, payload, length, mark);
        let Some(opened) = &mut self.opened else { return };
        let wait = opened.datagram(side, mark, payload, &self.account);
        let answered = std::mem::take(&mut opened.answered);
        if let Some(wait) = wait {
            self.spend(&wait);
        }
        for exchange in answered.into_iter().filter(|exchange| exchange.ended.at > self.since) {
            self.exchanges.push(ExchangeReport::new(exchange, &self.account));
            ExchangeReport::retain_longest(&mut self.exchanges, MAX_EXCHANGES);
        }
    }

    /// Divides the time of a wait after the handshake.
    fn spend(&mut self, wait: &QuicWait) {
        let QuicWait { from, to, since, .. } = *wait;
        let Some(ended) = self.opening.ended else { return };
        let floor = self.since.max(ended.at);
        let time = |from: Time, to: Time| to.max(floor).since(from.max(floor));
        let (in_flight, rest) = (time(from.at, since), time(since, to.at));
        let share = match quic::share(wait) {
            _ if to.at.since(from.at) >= LEAP => Share::Unknown,
            Share::Stall(Cause::ClientThink) if rest > IDLE => Share::Idle,
            share => share,
        };
        self.account.add(Share::RoundTrip, in_flight);
        self.account.add(share, rest);
        match share {
            Share::Unknown => self.doubts.add(Doubt::NoRule, rest),
            Share::Stall(cause) if rest > wire::Duration::ZERO && rest >= cause.about().min_duration => {
                let request_of = |packet| self.opened.as_ref()?.request_of(packet);
                let finding = quic::finding(wait, cause, request_of);
                let times = [finding.lost, finding.saving.unwrap_or_default()];
                self.findings.add(cause, times, MAX_FINDINGS, || finding);
            }
            _ => {}
        }
    }

    fn finish(mut self, (client, server): (SocketAddr, SocketAddr)) -> FlowReport {
        let (account, doubts) = self.account();
        let mut findings = std::mem::take(&mut self.findings);
        let limited = self.opening.limited.iter().filter_map(|wait| quic::limited(&self.opening, wait));
        let one_each = [quic::handshake, quic::lost_hello, quic::closed, quic::unfinished]
            .map(|rule| rule(&self.opening));
        // With a key log frames show it.
        let is_read = self.opened.as_ref().is_some_and(|opened| opened.is_read());
        let silences = self.opening.silences().filter(|_| !is_read).map(|silence| quic::silence(&silence));
        let of_opening = [&[quic::unanswered(&self.opening, self.last_at)][..], &one_each].concat();
        let is_counted = |finding: &crate::Finding| finding.at + finding.lost > self.since;
        for finding in of_opening.into_iter().flatten().chain(limited).chain(silences).filter(is_counted) {
            let times = [finding.lost, finding.saving.unwrap_or_default()];
            findings.add(finding.cause, times, MAX_FINDINGS, || finding);
        }
        let (findings, counts) = findings.into_sorted(account.waited());
        let QuicOpening { began, answered, rounds, .. } = &self.opening;
        // Of a repeated packet nothing shows which one was answered.
        let round_trip = answered.filter(|_| rounds.len() == 1).map(|answered| answered.at.since(began.at));
        let opened = self.opened.as_ref();
        self.exchanges.sort_by_key(|exchange| exchange.at);
        FlowReport {
            protocol: Protocol::Quic,
            is_within_dialogue: false,
            client,
            server,
            started: self.started.at,
            first_packet: self.started.frame,
            is_whole: true,
            elapsed: self.last_at.since(self.started.at),
            packets: self.packets,
            bytes: self.bytes,
            round_trip,
            vantage_point: VantagePoint::Unknown,
            requests: opened.map_or(0, |opened| opened.requests),
            findings,
            counts,
            account,
            doubts,
            exchanges: self.exchanges,
            serial: dissect::serial::SerialRequests::default(),
            oddities: Oddities { cut: opened.map_or(0, |opened| opened.cut), ..self.oddities },
            missing_direction: None,
            unexplained: wire::Duration::ZERO,
            is_opening_lost: false,
            keys: opened.and_then(|opened| opened.key_use()),
            plot: None,
            host: None,
        }
    }

    /// Divides the time: the opening, the waits after it, and what is encrypted.
    fn account(&self) -> (Account, Doubts) {
        let is_answered = self.opening.answered.is_some();
        let judged = is_answered.then(|| (self.account.clone(), self.doubts.clone()));
        let (mut account, mut doubts) = judged.unwrap_or_default();
        let cause = if is_answered { Cause::QuicHandshake } else { Cause::QuicUnanswered };
        let opening = self.opening.ended.filter(|_| is_answered).map_or(self.last_at, |ended| ended.at);
        let from = self.started.at.max(self.since);
        let opening = opening.clamp(self.started.at, self.last_at);
        let lost = quic::lost_hello(&self.opening).map_or(wire::Duration::ZERO, |finding| finding.lost);
        account.add(Share::Stall(Cause::RetransmissionTimeout), lost);
        account.add(Share::Stall(cause), opening.since(from).saturating_sub(lost));
        let opened = self.opened.as_ref().filter(|opened| opened.is_read());
        let judged = opened.and_then(|opened| opened.last()).map_or(opening, |last| last.at.max(opening));
        let rest = self.last_at.since(from.max(judged));
        let (share, doubt) = match opened {
            Some(opened) if opened.unanswered() > 0 => (Share::Unknown, Doubt::CaptureEnded),
            None => (Share::Unknown, Doubt::Encrypted),
            Some(_) if rest > IDLE => (Share::Idle, Doubt::NoRule),
            Some(_) => (Share::Closing, Doubt::NoRule),
        };
        account.add(share, rest);
        doubts.add(doubt, if share == Share::Unknown { rest } else { wire::Duration::ZERO });
        (account, doubts)
    }
}
