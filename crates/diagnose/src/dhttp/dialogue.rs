//! One client and one server that use DHTTP: requests, responses, and where the time went.
//!
//! Requests may overlap, and each has its own wait; the account is the dialogue's. Time in which a request was pending
//! counts under the event that ended it: a response (the path's time, and the server's beyond its quickest response), a
//! resent request (a loss), a connection that was opened.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use dissect::dhttp::opened::{Event, OpenedConnection};
use dissect::dhttp::{Request, status};
use dissect::{Mark, Side};
use wire::packet::{Flags, TcpSegment};
use wire::{Bytes, Duration, Time};

use crate::cause::{Cause, Describe as _};
use crate::causes::datagram_resend;
use crate::doubt::{Doubt, Doubts};
use crate::finding::Findings;
use crate::gap::Wait;
use crate::options::{LEAP, Options};
use crate::report::{ExchangeReport, FlowReport, Oddities, Protocol, VantagePoint};
use crate::text::millis;
use trace::account::{Account, Share};

#[derive(Debug)]
pub(super) struct Dialogue {
    client: SocketAddr,
    server: SocketAddr,
    started: Mark,
    pub(super) last_at: Time,
    packets: u64,
    bytes: Bytes,
    /// Requests without a complete response, by id.
    waiting: BTreeMap<u64, PendingRequest>,
    /// Connections that the server opened, by the server's socket.
    connections: BTreeMap<SocketAddr, OpenedConnection>,
    round_trip: Option<Duration>,
    requests: u64,
    /// Time up to which the account reaches, and from which on time counts.
    spent: Time,
    since: Time,
    account: Account,
    doubts: Doubts,
    findings: Findings,
    exchanges: Vec<ExchangeReport>,
    oddities: Oddities,
}

#[derive(Debug)]
struct PendingRequest {
    request: String,
    is_head: bool,
    requested: Mark,
    /// When it was last sent.
    sent: Mark,
    /// Its own account, and the time up to which that reaches: other requests may wait concurrently, for other reasons.
    account: Account,
    spent: Time,
}

impl PendingRequest {
    fn spend_until(&mut self, until: Time, share: Share) {
        self.account.add(share, until.since(self.spent));
        self.spent = self.spent.max(until);
    }

    /// Records that the server handled it.
    fn served(&mut self, at: Time, round_trip: Option<Duration>) {
        let path_time = round_trip.map_or(at, |round_trip| (self.spent + round_trip).min(at));
        self.spend_until(path_time, Share::RoundTrip);
        self.spend_until(at, Share::Stall(Cause::ServerThink));
    }
}

const MAX_WAITING: usize = 1 << 12;
const MAX_CONNECTIONS: usize = 64;
const MAX_FINDINGS: usize = 64;
const MAX_EXCHANGES: usize = 16;
const MAX_TARGET_BYTES: usize = 200;
/// Silence longer than this is idle time.
const IDLE: Duration = Duration::from_secs(5);

impl Dialogue {
    pub(super) fn new(client: SocketAddr, server: SocketAddr, mark: Mark, options: Options) -> Self {
        Self {
            client,
            server,
            started: mark,
            last_at: mark.at,
            packets: 0,
            bytes: Bytes::ZERO,
            waiting: BTreeMap::new(),
            connections: BTreeMap::new(),
            round_trip: None,
            requests: 0,
            spent: mark.at,
            since: options.since,
            account: Account::default(),
            doubts: Doubts::default(),
            findings: Findings::default(),
            exchanges: Vec::new(),
            oddities: Oddities::default(),
        }
    }

    /// Counts a packet; no time is earlier than that of the previous packet.
    pub(super) fn count_packet(&mut self, mark: Mark, payload: Bytes) -> Mark {
        self.oddities.backwards += u64::from(mark.at < self.last_at);
        self.last_at = self.last_at.max(mark.at);
        self.packets += 1;
        self.bytes += payload;
        Mark { at: self.last_at, frame: mark.frame }
    }

    pub(super) fn request(&mut self, mark: Mark, request: &Request<'_>) {
        let Request { id, port: _, is_retransmission, method, target } = *request;
        if let Some(waiting) = self.waiting.get_mut(&id) {
            if !datagram_resend::is_resent(is_retransmission, waiting.sent, mark) {
                self.oddities.captured_twice += 1;
                return;
            }
            let before = std::mem::replace(&mut waiting.sent, mark);
            waiting.spend_until(mark.at, Share::Stall(Cause::RetransmissionTimeout));
            self.spend_until(mark.at, Share::Stall(Cause::RetransmissionTimeout));
            let wait = Wait { from: before, to: mark, side: Side::Client };
            self.find(Cause::RetransmissionTimeout, wait, || datagram_resend::evidence(before, mark));
            return;
        }
        if self.waiting.is_empty() {
            let silence = mark.at.since(self.spent);
            let share = if silence > IDLE { Share::Idle } else { Share::Stall(Cause::ClientThink) };
            self.spend_until(mark.at, share);
        }
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_first();
        }
        self.requests += 1;
        let target: String = target.chars().take(MAX_TARGET_BYTES).collect();
        let waiting = PendingRequest {
            request: format!("{method} {target}"),
            is_head: method == "HEAD",
            requested: mark,
            sent: mark,
            account: Account::default(),
            spent: mark.at,
        };
        self.waiting.insert(id, waiting);
    }

    /// Handles a response in a datagram; a bare id refers the client to plain HTTP.
    pub(super) fn respond(&mut self, mark: Mark, id: u64, response: &[u8]) {
        let Some(mut waiting) = self.waiting.remove(&id) else {
            self.oddities.needless += 1;
            return;
        };
        let took = mark.at.since(waiting.sent.at);
        self.round_trip = Some(self.round_trip.map_or(took, |least| least.min(took)));
        self.served(mark, waiting.sent);
        waiting.served(mark.at, self.round_trip);
        self.record_exchange(mark, waiting, status(response));
    }

    /// Handles a segment of a connection from `server`.
    pub(super) fn opened(&mut self, mark: Mark, server: SocketAddr, tcp: TcpSegment<'_>) {
        let mark = self.count_packet(mark, tcp.payload_length);
        if tcp.flags.contains(Flags::SYN) {
            if self.connections.len() >= MAX_CONNECTIONS {
                self.connections.pop_first();
            }
            // The request that it serves is unknown until later: assume the oldest pending one.
            if let Some(sent) = self.waiting.values().map(|waiting| waiting.sent).min_by_key(|sent| sent.at) {
                self.served(mark, sent);
            }
            self.connections.insert(server, OpenedConnection::new(mark, tcp.seq.wrapping_add(1)));
            return;
        }
        let Some(mut connection) = self.connections.remove(&server) else { return };
        let (is_first, is_within) = (connection.is_fresh(), connection.is_within());
        let is_head = |id| self.waiting.get(&id).is_some_and(|waiting| waiting.is_head);
        let events = connection.read(tcp.seq, tcp.payload, tcp.payload_length, is_head);
        if is_within {
            self.spend_until(mark.at, Share::Transfer);
        }
        for event in events {
            match event {
                Event::Began { id } => self.began(mark, id, is_first.then_some(connection.opened)),
                Event::Ended { id, status } => {
                    if let Some(mut waiting) = self.waiting.remove(&id) {
                        waiting.spend_until(mark.at, Share::Transfer);
                        self.record_exchange(mark, waiting, Some(status));
                    }
                }
            }
        }
        if !connection.is_lost() && !tcp.flags.contains(Flags::FIN) && !tcp.flags.contains(Flags::RST) {
            self.connections.insert(server, connection);
        }
    }

    /// Records the beginning of a response on a connection, which was `opened` for it or is older.
    fn began(&mut self, mark: Mark, id: u64, opened: Option<Mark>) {
        let round_trip = self.round_trip;
        let waiting = self.waiting.get_mut(&id).map(|waiting| {
            waiting.served(opened.map_or(mark.at, |opened| opened.at), round_trip);
            waiting.spend_until(mark.at, Share::Stall(Cause::ConnectionSetup));
            waiting.sent
        });
        match (opened, waiting) {
            (Some(opened), _) => self.set_up(opened, mark),
            (None, Some(sent)) => self.served(mark, sent),
            (None, None) => {}
        }
    }

    /// Closes the dialogue and returns its report.
    pub(super) fn finish(mut self) -> FlowReport {
        self.spend_until(self.last_at, if self.waiting.is_empty() { Share::Closing } else { Share::Unknown });
        let (findings, counts) = self.findings.into_sorted(self.account.waited());
        let mut exchanges = self.exchanges;
        exchanges.sort_by_key(|exchange| exchange.at);
        FlowReport {
            protocol: Protocol::Dhttp,
            is_within_dialogue: false,
            client: self.client,
            server: self.server,
            started: self.started.at,
            first_packet: self.started.frame,
            is_whole: true,
            elapsed: self.last_at.since(self.started.at),
            packets: self.packets,
            bytes: self.bytes,
            round_trip: self.round_trip,
            vantage_point: VantagePoint::Unknown,
            requests: self.requests,
            findings,
            counts,
            account: self.account,
            doubts: self.doubts,
            exchanges,
            serial: dissect::serial::SerialRequests::default(),
            oddities: self.oddities,
            missing_direction: None,
            unexplained: Duration::ZERO,
            is_opening_lost: false,
            keys: None,
            plot: None,
            host: None,
        }
    }

    /// Records that the server responded to a request: the time beyond its quickest response was its own.
    fn served(&mut self, mark: Mark, sent: Mark) {
        let since = self.spent.max(sent.at);
        let path_time = self.round_trip.unwrap_or_else(|| mark.at.since(since)).min(mark.at.since(since));
        self.spend_until(since + path_time, Share::RoundTrip);
        self.spend_until(mark.at, Share::Stall(Cause::ServerThink));
        let from = Mark { at: since + path_time, frame: sent.frame };
        let wait = Wait { from, to: mark, side: Side::Server };
        self.find(Cause::ServerThink, wait, || {
            format!(
                "the server began its response to the request of packet {} in packet {}, {} later than the quickest would have come",
                sent.frame,
                mark.frame,
                millis(wait.duration())
            )
        });
    }

    /// Records that a connection opened by the server has carried its first response.
    fn set_up(&mut self, opened: Mark, mark: Mark) {
        self.spend_until(mark.at, Share::Stall(Cause::ConnectionSetup));
        let wait = Wait { from: opened, to: mark, side: Side::Server };
        self.find(Cause::ConnectionSetup, wait, || {
            format!(
                "the server opened a connection for its response (packet {}), whose first byte came in packet {}, {} later",
                opened.frame,
                mark.frame,
                millis(wait.duration())
            )
        });
    }

    fn record_exchange(&mut self, mark: Mark, waiting: PendingRequest, status: Option<u16>) {
        let PendingRequest { request, is_head: _, requested, sent: _, account, spent: _ } = waiting;
        if mark.at <= self.since {
            return;
        }
        self.exchanges.push(ExchangeReport {
            request,
            status,
            at: requested.at,
            elapsed: mark.at.since(requested.at),
            packets: (requested.frame, mark.frame),
            account,
        });
        ExchangeReport::retain_longest(&mut self.exchanges, MAX_EXCHANGES);
    }

    /// Adds the time up to `until` to `share`, as far as it counts. Everything in the account goes through here.
    fn spend_until(&mut self, until: Time, share: Share) {
        let time = until.since(self.spent);
        let share = if time >= LEAP { Share::Unknown } else { share };
        let before = self.since.since(self.spent).min(time);
        self.spent = self.spent.max(until);
        self.account.add(share, time - before);
        if share == Share::Unknown {
            let doubt = if time >= LEAP { Doubt::ClockJumped } else { Doubt::CaptureEnded };
            self.doubts.add(doubt, time - before);
        }
    }

    fn find(&mut self, cause: Cause, wait: Wait, evidence: impl FnOnce() -> String) {
        let lost = wait.duration();
        if lost < cause.about().min_duration || lost >= LEAP || wait.to.at <= self.since {
            return;
        }
        self.findings.add(cause, [lost; 2], MAX_FINDINGS, || wait.finding(cause, evidence()));
    }
}
