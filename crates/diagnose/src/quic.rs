//! QUIC connections: their openings, by long headers; what follows is encrypted, and its time is unknown.
//!
//! The opening is read by [`dissect::quic`], its causes are in `causes/quic.rs`. A connection is two sockets: one that
//! moves to another address counts as another, and is not followed there.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use dissect::quic::{QuicOpening, begins};
use dissect::{Both, Mark, Side};
use wire::packet::{Packet, UdpDatagram};
use wire::{Bytes, Time};

use crate::cause::Cause;
use crate::causes::quic;
use crate::doubt::{Doubt, Doubts};
use crate::finding::Findings;
use crate::options::Options;
use crate::report::{FlowReport, Oddities, Protocol, VantagePoint};
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

/// A connection, as far as it was captured.
#[derive(Debug)]
struct QuicFlow {
    opening: QuicOpening,
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
    ) -> bool {
        let Some((source, destination)) = packet.sockets() else { return false };
        let length = udp.payload_length.get();
        for (side, sockets) in [(Side::Server, (destination, source)), (Side::Client, (source, destination))]
        {
            if let Some(flow) = self.all.get_mut(&sockets) {
                if flow.is_watched_on(side, interface) {
                    flow.datagram(side, mark, udp.payload, length);
                }
                return true;
            }
        }
        let is_new = usize::try_from(length).is_ok_and(|length| begins(udp.payload, length));
        if is_new {
            self.evict_idle();
            let mut flow = QuicFlow::new(mark, options.since);
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
    fn new(mark: Mark, since: Time) -> Self {
        Self {
            opening: QuicOpening::new(mark),
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
        if !self.opening.is_over() {
            self.opening.datagram(side, payload, length, Mark { at: self.last_at, frame: mark.frame });
        }
    }

    fn finish(self, (client, server): (SocketAddr, SocketAddr)) -> FlowReport {
        let (account, doubts) = self.account();
        let mut findings = Findings::default();
        let limited = self.opening.limited.iter().filter_map(|wait| quic::limited(&self.opening, wait));
        let of_opening = [quic::unanswered(&self.opening, self.last_at), quic::handshake(&self.opening)];
        let is_counted = |finding: &crate::Finding| finding.at + finding.lost > self.since;
        for finding in of_opening.into_iter().flatten().chain(limited).filter(is_counted) {
            let times = [finding.lost, finding.saving.unwrap_or_default()];
            findings.add(finding.cause, times, MAX_FINDINGS, || finding);
        }
        let (findings, counts) = findings.into_sorted(account.waited());
        let QuicOpening { began, answered, rounds, .. } = &self.opening;
        // Of a repeated packet nothing shows which one was answered.
        let round_trip = answered.filter(|_| rounds.len() == 1).map(|answered| answered.at.since(began.at));
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
            requests: 0,
            findings,
            counts,
            account,
            doubts,
            exchanges: Vec::new(),
            serial: dissect::serial::SerialRequests::default(),
            oddities: self.oddities,
            missing_direction: None,
            unexplained: wire::Duration::ZERO,
            is_opening_lost: false,
            keys: None,
            plot: None,
            host: None,
        }
    }

    /// Divides the time: the opening, and what is encrypted.
    fn account(&self) -> (Account, Doubts) {
        let (mut account, mut doubts) = (Account::default(), Doubts::default());
        let (opening, share) = match (self.opening.ended, self.opening.answered) {
            (_, None) => (self.last_at, Share::Stall(Cause::QuicUnanswered)),
            (Some(ended), Some(_)) => (ended.at, Share::Stall(Cause::QuicHandshake)),
            (None, Some(_)) => (self.last_at, Share::Stall(Cause::QuicHandshake)),
        };
        let from = self.started.at.max(self.since);
        let opening = opening.clamp(self.started.at, self.last_at);
        account.add(share, opening.since(from));
        let rest = self.last_at.since(from.max(opening));
        account.add(Share::Unknown, rest);
        doubts.add(Doubt::Encrypted, rest);
        (account, doubts)
    }
}

#[cfg(test)]
mod tests {
    use wire::packet::{Packet, UdpBuilder};
    use wire::{Duration, Time};

    use crate::report::{FlowReport, Protocol};
    use crate::{Cause, Diagnosis, Options, PacketPosition, Share};

    /// Side, time in milliseconds, first byte and length of each datagram.
    fn diagnosed(datagrams: &[(char, u64, u8, usize)]) -> Vec<FlowReport> {
        diagnosed_on(datagrams, &[0])
    }

    fn diagnosed_on(datagrams: &[(char, u64, u8, usize)], interfaces: &[u32]) -> Vec<FlowReport> {
        let (client, server) = (([192, 0, 2, 1], 50_000).into(), ([192, 0, 2, 2], 443).into());
        let mut diagnosis = Diagnosis::new(Options::default());
        for (frame, (side, ms, first, length)) in (1..).zip(datagrams.iter().copied()) {
            let mut payload = vec![first, 0, 0, 0, 1, 1, 7, 1, 9];
            payload.extend((first & 0x30 == 0).then_some(0));
            payload.extend((0x4000 | u16::try_from(length - payload.len() - 2).unwrap()).to_be_bytes());
            payload.resize(length, 0);
            let (source, destination) = if side == 'C' { (client, server) } else { (server, client) };
            let mut bytes = Vec::new();
            UdpBuilder { source, destination }.write(&payload, &mut bytes).unwrap();
            let now = Time::ZERO + Duration::from_millis(ms);
            for interface in interfaces.iter().copied() {
                diagnosis.handle(now, PacketPosition { frame, interface }, &Packet::read(&bytes).unwrap());
            }
        }
        diagnosis.end();
        let reports: Vec<FlowReport> = std::iter::from_fn(|| diagnosis.poll()).collect();
        for report in &reports {
            assert_eq!(report.account.total(), report.elapsed);
            assert_eq!(report.doubts.total(), report.account.of(Share::Unknown));
        }
        reports
    }

    fn causes(datagrams: &[(char, u64, u8, usize)]) -> Vec<(Cause, u64, bool)> {
        let found = diagnosed(datagrams).into_iter().flat_map(|report| report.findings);
        found
            .map(|finding| {
                (finding.cause, finding.lost.as_nanos() / 1_000_000, finding.severity.is_worth_fixing())
            })
            .collect()
    }

    #[test]
    fn client_without_response_is_a_failure_until_its_last_attempt() {
        let initials = [0, 300, 900, 2_100].map(|ms| ('C', ms, 0xc0, 1_200));
        assert_eq!(causes(&initials), [(Cause::QuicUnanswered, 2_100, true)]);
        assert_eq!(causes(&initials[..1]), [], "it may still come");
    }

    #[test]
    fn handshake_is_a_note() {
        let datagrams = [
            ('C', 0, 0xc0, 1_200),
            ('S', 30, 0xc0, 1_200),
            ('C', 31, 0xe0, 1_200),
            ('C', 31, 0x40, 80),
            ('S', 500, 0x40, 900),
        ];
        assert_eq!(causes(&datagrams), [(Cause::QuicHandshake, 31, false)]);
        assert!(
            diagnosed(&datagrams)
                .iter()
                .all(|report| report.protocol == Protocol::Quic && report.packets == 5)
        );
    }

    #[test]
    fn server_at_its_limit_waits_for_the_client() {
        let server = |ms| ('S', ms, 0xe0, 1_200);
        let datagrams = [
            ('C', 0, 0xc0, 1_200),
            server(30),
            server(30),
            server(30),
            ('C', 60, 0xc0, 1_200),
            server(90),
            ('C', 91, 0x40, 80),
        ];
        assert!(
            causes(&datagrams).contains(&(Cause::QuicAmplificationLimit, 60, true)),
            "{:?}",
            causes(&datagrams)
        );
        // Captured on two interfaces, each datagram counts once.
        let report = &diagnosed_on(&datagrams, &[0, 1])[0];
        assert!(report.findings.iter().any(|finding| finding.cause == Cause::QuicAmplificationLimit));
        assert_eq!((report.packets, report.oddities.captured_twice), (7, 7));
    }
}
