//! Stalls of a run: pauses in which the path lay idle, by cause, known from both ends.
//!
//! Derived from packets and from the limits that the endpoints themselves report, with `diagnose`'s names
//! of causes. It is not a diagnosis: that sees packets only and must infer what is known here.

mod quic;

use std::collections::BTreeMap;

use dhttp_proto::message::is_resend;
use tcp::Limit;
use trace::{Cause, Stall};
use wire::{Bytes, Duration, Rate, Time};

use crate::page::flow::Flow;
use crate::web::QuicProbe;
use crate::world::{CLIENT, ObservationPoint, Probe, Record};

/// Facts about path and hosts that packets do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// Towards the server.
    pub up: Rate,
    /// Towards the client.
    pub down: Rate,
    /// The largest segment's payload.
    pub mss: Bytes,
    /// Longest time that a host's process takes to wake up; this is not an avoidable pause.
    pub wake_up: Duration,
}

/// States that the endpoints report.
#[derive(Clone, Copy, Debug)]
pub struct Probes<'a> {
    /// Of TCP's connections.
    pub tcp: &'a [Probe],
    /// Of QUIC's.
    pub quic: &'a [QuicProbe],
}

/// Account of a run's time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeAccount {
    /// Time in which the path sent useful data, in either direction.
    pub working: Duration,
    /// Avoidable pauses, in order. Propagation of a request or a response is not one.
    pub stalls: Vec<Stall>,
    /// Retransmissions by the server: from the first transmission until the retransmission is sent, whatever
    /// the path carried meanwhile.
    pub repairs: Vec<Stall>,
}

/// Accounts for the time since `began` between a client and a server on one path.
///
/// The probes must be in order of time, as the records are.
pub fn spent(records: &[Record], probes: Probes<'_>, began: Time, known: &PathFacts) -> TimeAccount {
    observed(records, probes, began, known).spent
}

/// The same account's stalls, each with the index of the record that ended it.
pub fn ended_by(
    records: &[Record],
    probes: Probes<'_>,
    began: Time,
    known: &PathFacts,
) -> Vec<(usize, Stall)> {
    let StallObserver { spent, ended_by, .. } = observed(records, probes, began, known);
    ended_by.into_iter().zip(spent.stalls).collect()
}

fn observed(records: &[Record], probes: Probes<'_>, began: Time, known: &PathFacts) -> StallObserver {
    let mut watch = StallObserver::new(began, *known);
    let (mut probes, mut quic) = (probes.tcp.iter().peekable(), probes.quic.iter().peekable());
    for (index, record) in records.iter().enumerate() {
        // State before this packet: the packet's own event has changed it already.
        while let Some(probe) = probes.next_if(|probe| probe.at < record.at) {
            watch.record_probe(probe);
        }
        // What has been found lost is retransmitted in the same event.
        while let Some(probe) = quic.next_if(|probe| probe.recovery.at <= record.at) {
            watch.record_quic_probe(probe);
        }
        watch.record_packet(record);
        watch.ended_by.resize(watch.spent.stalls.len(), index);
    }
    watch
}

/// Observer of both ends.
struct StallObserver {
    began: Time,
    known: PathFacts,
    spent: TimeAccount,
    /// Index of the record that ended each stall.
    ended_by: Vec<usize>,
    lines: BTreeMap<Flow, ConnectionState>,
    quic: BTreeMap<Flow, quic::QuicState>,
    /// Time until which each direction is sending: up, down.
    busy: [Time; 2],
    /// End of the useful data so far.
    useful_until: Time,
    /// Time at which the client last received data.
    received: Time,
    /// Time at which the server last received a request in a datagram.
    requested: Time,
}

/// State of a connection.
#[derive(Debug, Default)]
struct ConnectionState {
    syn_sent: Option<Time>,
    /// Whether a SYN or its SYN-ACK was lost, and when the client retransmitted its SYN for that.
    was_syn_lost: bool,
    syn_retransmitted: Option<Time>,
    opened: Option<Time>,
    /// Whether the client has ended the handshake of TLS.
    is_secured: bool,
    /// The client's next sequence number; 0 before its first request.
    requested: u64,
    /// Times at which the server last received a request, and last sent data.
    request_received: Time,
    sent: Option<Time>,
    /// The server's next sequence number.
    next: u64,
    /// Limits that kept the client and the server from sending more.
    limits: [Limit; 2],
    /// The server's congestion window, and its maximum so far.
    window: u64,
    largest_window: u64,
    /// A segment shorter than the MSS is in flight.
    has_short: bool,
    data_received: Time,
    /// Acknowledgements in flight: acknowledgement number, and the client's delay.
    acks: BTreeMap<u64, Duration>,
    acknowledged: u64,
    /// Time at which the server last received a segment.
    last_received: Time,
    last_ack: Option<Ack>,
    /// Whether a retransmission has reduced the window.
    was_lost: bool,
    /// Expiry time of the server's timer, and whether the client has reported a loss since its last new
    /// acknowledgement.
    retransmits_at: Option<Time>,
    is_loss_reported: bool,
    /// Cause of the server's current recovery, and the acknowledgement number that ends it.
    repairing: Option<(Cause, u64)>,
    /// First transmission times of unacknowledged data, by sequence number.
    first_sent: BTreeMap<u64, Time>,
}

/// An acknowledgement that advanced the server's window.
#[derive(Clone, Copy, Debug)]
struct Ack {
    received: Time,
    /// Time since the acknowledged data had arrived.
    delay: Duration,
    /// Whether it acknowledges a segment shorter than the MSS.
    had_short: bool,
}

/// A pause before a transmission.
struct Pause {
    from: Time,
    until: Time,
    sent: Time,
    /// Serialisation time of the packet on its link.
    packet: Duration,
}

impl Pause {
    fn length(&self) -> Duration {
        self.until.since(self.from)
    }
}

/// Bytes of IPv4's and TCP's headers, without options.
const HEADERS: u64 = 40;

impl StallObserver {
    fn new(began: Time, known: PathFacts) -> Self {
        Self {
            began,
            known,
            spent: TimeAccount::default(),
            ended_by: Vec::new(),
            lines: BTreeMap::new(),
            quic: BTreeMap::new(),
            busy: [Time::ZERO; 2],
            useful_until: began,
            received: began,
            requested: began,
        }
    }

    fn record_packet(&mut self, record: &Record) {
        let is_client = record.from.host == CLIENT;
        if Flow::of(record).has_quic() {
            return self.record_quic(record, is_client);
        }
        if Flow::of(record).is_datagrams() {
            return self.record_datagram(record, is_client);
        }
        match (record.seen, is_client) {
            (ObservationPoint::Sent, true) => self.client_sends(record),
            (ObservationPoint::Sent, false) => self.server_sends(record),
            (ObservationPoint::Received, true) => self.server_receives(record),
            (ObservationPoint::Received, false) => self.client_receives(record),
            // No host has detected the loss yet. A SYN retransmitted for it is not spurious.
            (ObservationPoint::Lost, _) => {
                self.connection_mut(record).was_syn_lost |= record.segment.flags.syn
            }
        }
    }

    fn record_probe(&mut self, probe: &Probe) {
        let Probe { at: _, local, peer: _, stats } = probe;
        let is_client = local.host == CLIENT;
        let connection = self.lines.entry(Flow::of_probe(probe)).or_default();
        connection.limits[usize::from(!is_client)] = stats.limit;
        if !is_client {
            connection.window = stats.cwnd;
            connection.largest_window = connection.largest_window.max(stats.cwnd);
            connection.retransmits_at = stats.retransmits_at;
        }
    }

    fn connection_mut(&mut self, record: &Record) -> &mut ConnectionState {
        self.lines.entry(Flow::of(record)).or_default()
    }

    /// A request or a response of DHTTP. Only the client's timeout reveals a lost one.
    fn record_datagram(&mut self, record: &Record, is_client: bool) {
        match (record.seen, is_client) {
            (ObservationPoint::Sent, true) => {
                let received = self.received;
                let Some(pause) = self.transmit(record, 0, self.known.up) else { return };
                match is_resend(&record.segment.payload) {
                    true => self.stall(&pause, Cause::DatagramResend, pause.from, pause.until),
                    false => self.think(&pause, Cause::ClientThink, received, pause.sent),
                }
            }
            (ObservationPoint::Sent, false) => {
                let requested = self.requested;
                if let Some(pause) = self.transmit(record, 1, self.known.down) {
                    self.think(&pause, Cause::ServerThink, requested, pause.sent);
                }
            }
            (ObservationPoint::Received, true) => self.requested = record.at,
            (ObservationPoint::Received, false) => self.received = record.at,
            (ObservationPoint::Lost, _) => {}
        }
    }

    /// Puts a packet on its link. Returns the pause before it, if it carries data and the path was idle.
    fn transmit(&mut self, record: &Record, direction: usize, rate: Rate) -> Option<Pause> {
        let from = self.busy[direction].max(record.at);
        // A network's rate counts the packets' payloads.
        let carried = record.segment.ip_bytes().saturating_sub(HEADERS);
        let until = from + rate.time_for(Bytes::new(carried));
        self.busy[direction] = until;
        if record.segment.payload.is_empty() {
            return None;
        }
        let pause =
            Pause { from: self.useful_until, until: from, sent: record.at, packet: until.since(from) };
        self.spent.working += until.since(from.max(self.useful_until));
        self.useful_until = self.useful_until.max(until);
        (pause.length() > Duration::ZERO).then_some(pause)
    }

    fn client_sends(&mut self, record: &Record) {
        let pause = self.transmit(record, 0, self.known.up);
        let received = self.received;
        let has_tls = Flow::of(record).has_tls();
        let segment = &record.segment;
        let connection = self.connection_mut(record);
        if segment.flags.syn {
            if connection.was_syn_lost && connection.syn_sent.is_some() && connection.opened.is_none() {
                connection.syn_retransmitted = Some(record.at);
            }
            connection.syn_sent.get_or_insert(record.at);
        } else if segment.flags.ack {
            let delay = record.at.since(connection.data_received);
            connection.acks.entry(segment.acknowledgement).or_insert(delay);
        }
        if segment.payload.is_empty() {
            return;
        }
        let handshake = connection.syn_sent.zip(connection.opened).filter(|_| connection.requested == 0);
        let syn_retransmitted = connection.syn_retransmitted;
        let is_retransmission = segment.sequence < connection.requested;
        let [held, _] = connection.limits;
        let is_securing = has_tls && !connection.is_secured;
        connection.is_secured |= ends_handshake(&segment.payload);
        connection.requested = connection.requested.max(segment.end());
        let Some(pause) = pause else { return };
        if is_retransmission {
            self.stall(&pause, Cause::RetransmissionTimeout, pause.from, pause.until);
            return;
        }
        // The request waited for the preceding data, or for its connection.
        match handshake {
            Some((syn, opened)) => {
                self.think(&pause, Cause::ClientThink, received, syn);
                let answered = syn_retransmitted.unwrap_or(syn);
                self.stall(&pause, Cause::RetransmissionTimeout, syn, answered);
                self.stall(&pause, Cause::ConnectionSetup, answered, opened);
                self.think(&pause, Cause::ClientThink, opened, pause.sent);
            }
            None => match held {
                Limit::Nothing if is_securing => {
                    self.stall(&pause, Cause::TlsHandshake, pause.from, pause.until);
                }
                Limit::Nothing => self.think(&pause, Cause::ClientThink, received, pause.sent),
                Limit::Nagle => self.stall(&pause, Cause::Nagle, pause.from, pause.until),
                Limit::CongestionWindow | Limit::Pacing => {
                    self.stall(&pause, Cause::SlowStart, pause.from, pause.until);
                }
                Limit::ReceiveWindow => {
                    self.stall(&pause, Cause::ReceiveWindowLimited, pause.from, pause.until);
                }
                Limit::SendBuffer => self.stall(&pause, Cause::SendBufferLimited, pause.from, pause.until),
            },
        }
    }

    fn server_receives(&mut self, record: &Record) {
        let segment = &record.segment;
        let is_response = Flow::of(record).is_opened_by_server() && segment.flags.syn;
        let connection = self.connection_mut(record);
        connection.last_received = record.at;
        if is_response {
            connection.opened.get_or_insert(record.at);
        }
        if !segment.payload.is_empty() {
            connection.request_received = record.at;
        }
        if segment.flags.ack && segment.acknowledgement > connection.acknowledged {
            let delay = connection.acks.remove(&segment.acknowledgement).unwrap_or_default();
            connection.acks.retain(|number, _| *number > segment.acknowledgement);
            connection.last_ack = Some(Ack { received: record.at, delay, had_short: connection.has_short });
            connection.acknowledged = segment.acknowledgement;
            connection.has_short = false;
            connection.is_loss_reported = false;
            connection.first_sent = connection.first_sent.split_off(&segment.acknowledgement);
        } else if segment.payload.is_empty() && segment.acknowledgement < connection.next {
            connection.is_loss_reported = true;
        }
        connection.is_loss_reported |= !segment.options.sack.is_empty();
    }

    fn server_sends(&mut self, record: &Record) {
        let pause = self.transmit(record, 1, self.known.down);
        let sent_at = self.busy[1];
        let (known, requested) = (self.known, self.requested);
        let segment = &record.segment;
        let is_of_server_opened = Flow::of(record).is_opened_by_server();
        let has_tls = Flow::of(record).has_tls();
        let connection = self.connection_mut(record);
        let is_securing = has_tls && !connection.is_secured;
        if is_of_server_opened {
            connection.request_received = requested;
            if segment.flags.syn {
                connection.syn_sent.get_or_insert(record.at);
            }
        }
        if segment.payload.is_empty() {
            return;
        }
        let handshake = connection
            .syn_sent
            .zip(connection.opened)
            .filter(|_| is_of_server_opened && connection.sent.is_none());
        let bytes = segment.payload.len() as u64;
        if connection.sent.is_none() {
            // The first data seen on an open connection: everything before it has arrived.
            (connection.next, connection.acknowledged) = (segment.sequence, segment.sequence);
        }
        let repair = connection.repair(record);
        let named = pause.map(|pause| {
            let cause = repair.map_or_else(
                || connection.cause(record, known.wake_up),
                |mended| PauseReason::Named(mended.waited_for),
            );
            (cause, pause)
        });
        connection.has_short |= bytes < known.mss.get();
        // Spurious or not, a retransmission has reduced the window.
        connection.was_lost |= repair.is_some();
        connection.first_sent.entry(segment.sequence).or_insert(record.at);
        connection.next = connection.next.max(segment.end());
        connection.sent = Some(record.at);
        if let Some(((syn, opened), (_, pause))) = handshake.zip(named.as_ref()) {
            self.think(pause, Cause::ServerThink, requested, syn);
            self.stall(pause, Cause::ConnectionSetup, syn, opened);
            self.think(pause, Cause::ServerThink, opened, pause.sent);
            return;
        }
        match named {
            Some((PauseReason::Request(_), pause)) if is_securing => {
                self.stall(&pause, Cause::TlsHandshake, pause.from, pause.until);
            }
            Some((PauseReason::Request(received), pause)) => {
                self.think(&pause, Cause::ServerThink, received, pause.sent);
            }
            // A pause no longer than this packet's serialisation is not a stall.
            Some((PauseReason::Named(cause), pause)) if pause.length() > pause.packet => {
                self.stall(&pause, cause, pause.from, pause.until);
            }
            Some((PauseReason::Named(_), _)) | None => {}
        }
        if let Some(Retransmission { cause, first_sent, waited_for: _ }) = repair {
            let at_ms = first_sent.since(self.began).as_millis_f64();
            let lost_ms = sent_at.since(first_sent).as_millis_f64();
            self.spent.repairs.push(Stall { cause, at_ms, lost_ms });
        }
    }

    fn client_receives(&mut self, record: &Record) {
        let is_of_server_opened = Flow::of(record).is_opened_by_server();
        let connection = self.connection_mut(record);
        if record.segment.flags.syn && !is_of_server_opened {
            connection.opened.get_or_insert(record.at);
        }
        if !record.segment.payload.is_empty() {
            connection.data_received = record.at;
            self.received = record.at;
        }
    }

    /// Counts the part of a host's reaction time that is not wake-up time.
    fn think(&mut self, pause: &Pause, cause: Cause, from: Time, until: Time) {
        self.stall(pause, cause, from + self.known.wake_up, until);
    }

    /// Counts the part of a time that lies within a pause: other connections may have sent useful data.
    fn stall(&mut self, pause: &Pause, cause: Cause, from: Time, until: Time) {
        let from = from.max(pause.from);
        let lost = until.min(pause.until).since(from);
        if lost > Duration::ZERO {
            let (at_ms, lost_ms) = (from.since(self.began).as_millis_f64(), lost.as_millis_f64());
            self.spent.stalls.push(Stall { cause, at_ms, lost_ms });
        }
    }
}

/// Whether a client's write ends its handshake of TLS: application data, or in TLS 1.3 what comes after Change Cipher Spec.
pub(crate) fn ends_handshake(payload: &[u8]) -> bool {
    const CHANGE_CIPHER_SPEC: u8 = 20;
    const APPLICATION_DATA: u8 = 23;
    match payload {
        [APPLICATION_DATA, ..] => true,
        [CHANGE_CIPHER_SPEC, _, _, _, _, _, next, ..] => *next == APPLICATION_DATA,
        _ => false,
    }
}

/// Reason for a pause before the server's data.
enum PauseReason {
    /// A request was in flight; it arrived at this time.
    Request(Time),
    /// A named cause.
    Named(Cause),
}

/// A retransmission.
#[derive(Clone, Copy)]
struct Retransmission {
    /// Cause by which the loss was detected.
    cause: Cause,
    first_sent: Time,
    /// Cause of the last wait before it.
    waited_for: Cause,
}

impl ConnectionState {
    /// Classifies data that is retransmitted: how its loss was detected, and when it was first sent. `None` for
    /// new data.
    fn repair(&mut self, record: &Record) -> Option<Retransmission> {
        let start = record.segment.sequence;
        if start >= self.next {
            return None;
        }
        let was_timer = self.retransmits_at.is_some_and(|due| due <= record.at);
        let same = self.repairing.filter(|(_, until)| self.acknowledged < *until);
        let cause = match same {
            _ if was_timer => Cause::RetransmissionTimeout,
            Some((cause, _)) => cause,
            None if self.last_received == record.at || self.is_loss_reported => Cause::FastRetransmit,
            None => Cause::TailLossProbe,
        };
        if cause != Cause::TailLossProbe {
            self.repairing = Some((cause, self.next));
        }
        let first = self.first_sent.range(..=start).next_back();
        Some(Retransmission {
            cause,
            first_sent: first.map_or(record.at, |(_, at)| *at),
            // Later retransmissions of a recovery are clocked by acknowledgements.
            waited_for: if same.is_some() && self.last_received == record.at {
                Cause::CongestionWindow
            } else {
                cause
            },
        })
    }

    /// Reason why the data sent now was not sent earlier.
    fn cause(&self, record: &Record, wake_up: Duration) -> PauseReason {
        let [_, limit] = self.limits;
        let has_answered = self.sent.is_some_and(|sent| sent >= self.request_received);
        let ack = self.last_ack.filter(|ack| ack.received == record.at);
        let is_delayed = ack.is_some_and(|ack| ack.delay > wake_up);
        let delayed = || {
            if ack.is_some_and(|ack| ack.had_short) { Cause::ShortInitialSegment } else { Cause::DelayedAck }
        };
        PauseReason::Named(match (limit, is_delayed) {
            (Limit::Nothing, _) if has_answered => Cause::ServerThink,
            // A greeting, as the SETTINGS of HTTP/2, follows the end of the handshake.
            (Limit::Nothing, _) if self.request_received == Time::ZERO => {
                return PauseReason::Request(self.last_received);
            }
            (Limit::Nothing, _) => return PauseReason::Request(self.request_received),
            (Limit::Nagle, true) => Cause::NagleDelayedAck,
            (Limit::Nagle, false) => Cause::Nagle,
            (Limit::ReceiveWindow, _) => Cause::ReceiveWindowLimited,
            (Limit::Pacing, _) => Cause::SlowStartRestart,
            (Limit::CongestionWindow | Limit::SendBuffer, true) => delayed(),
            (Limit::SendBuffer, false) => Cause::SendBufferLimited,
            (Limit::CongestionWindow, false) => self.window_cause(),
        })
    }

    /// Reason why the congestion window is small.
    const fn window_cause(&self) -> Cause {
        if self.was_lost {
            Cause::CongestionWindow
        } else if self.window < self.largest_window {
            Cause::SlowStartRestart
        } else {
            Cause::SlowStart
        }
    }
}
