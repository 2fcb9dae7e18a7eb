//! True pauses of a run with their causes, derived from the programs' logs, the packets on the link, and the sender's
//! TCP_INFO. The rules of `diagnose` have no part in it.
//!
//! While a server has a response to send, its kernel reports the reason of a pause. It is limited by the receiver's
//! window or by its own buffer (the clocks `tcpi_rwnd_limited` and `tcpi_sndbuf_limited` run). It repairs a loss
//! (`tcpi_ca_state`). Everything is sent while its program cannot write more. The data in flight fills its congestion
//! window. Or it holds back a partial segment though the windows allow it, which is Nagle's rule. Delays of the
//! client's acknowledgements are seen on the link. Pauses without any of these reasons have no name and are not judged.

use std::collections::BTreeMap;

use linux::sockets::{CongestionState, SenderState, TcpInfo};
use testbed::emulator::{Capture, Observation, PacketDirection};
use trace::{Cause, Stall};
use wire::packet::{Flags, Packet, TcpSegment};
use wire::{Duration, Time};

use super::Run;
use super::cases::{Case, ProgramBehaviour, RequestOrder};
use super::programs::{HEAD, PERMISSION, REQUEST, UPLOAD};
use super::watch::Sample;
use crate::judge::Pause;

/// Stalls and repairs, in milliseconds since `began`.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) began: Time,
    /// Time at which the client had received everything.
    pub(crate) elapsed_ms: f64,
    pub(crate) stalls: Vec<Stall>,
    /// Retransmissions: from the first transmission.
    pub(crate) repairs: Vec<Stall>,
    /// Pauses that nothing explains.
    pub(crate) unexplained: Vec<Pause>,
    /// Pauses in which the kernel was not sampled, because the host was busy: their cause is unknown.
    pub(crate) unwatched: Vec<Pause>,
}

/// An acknowledgement is late if it comes this long after the data, whatever the round trip.
const LATE: Duration = Duration::from_millis(20);
/// Maximum time until an acknowledgement releases data.
const MAX_RELEASE_DELAY: Duration = Duration::from_millis(2);
/// Ten ticks of a slow kernel, the granularity of `tcpi_rwnd_limited` and similar clocks.
const TICKS: Duration = Duration::from_millis(40);
/// The payload of a full segment, with timestamps.
const SEGMENT: u64 = 1_448;
/// Shorter pauses are attributed to the host.
const MIN_STALL: Duration = Duration::from_millis(3);

pub(crate) fn of(case: &Case, run: &Run) -> Truth {
    let packets_by_port = PacketsByPort::of(&run.capture);
    let began = run.visit.connections.first().map_or(Time::ZERO, |first| first.began);
    let finished = run.visit.request_logs.iter().filter_map(|request| request.finished);
    let resets = packets_by_port.0.values().filter_map(|packets| packets.reset);
    let ended = finished.chain(resets).max().unwrap_or(began);
    let mut truth = Truth { began, elapsed_ms: ended.since(began).as_millis_f64(), ..Truth::default() };
    for (number, connected) in run.visit.connections.iter().enumerate() {
        let Some(packets) = packets_by_port.0.get(&connected.port) else { continue };
        // A retransmitted SYN gets another SYN-ACK.
        let retransmitted = packets.handshake_packets.iter().filter_map(|sent| sent.get(1..)?.first()).min();
        let retransmitted = retransmitted.copied().unwrap_or(connected.began);
        truth.stall(Cause::RetransmissionTimeout, connected.began, retransmitted);
        truth.stall(Cause::ConnectionSetup, retransmitted, packets.opened(connected.opened));
        let samples: Vec<Sample> =
            run.samples.iter().filter(|sample| sample.port == connected.port).copied().collect();
        ConnectionRun { case, run, packets, samples, connection: number }.record_stalls(&mut truth);
    }
    truth
}

impl Truth {
    fn span(&self, cause: Cause, from: Time, until: Time) -> Stall {
        let Pause { at_ms, lost_ms } = self.pause(from, until);
        Stall { cause, at_ms, lost_ms }
    }

    fn pause(&self, from: Time, until: Time) -> Pause {
        let at_ms = from.since(Time::ZERO).as_millis_f64() - self.began.since(Time::ZERO).as_millis_f64();
        Pause { at_ms, lost_ms: until.since(from).as_millis_f64() }
    }

    fn stall(&mut self, cause: Cause, from: Time, until: Time) {
        if until.since(from) > MIN_STALL {
            self.stalls.push(self.span(cause, from, until));
        }
    }
}

/// Packets on the link, by the client's port.
#[derive(Debug, Default)]
struct PacketsByPort(BTreeMap<u16, PortPackets>);

#[derive(Debug, Default)]
struct PortPackets {
    /// Times at which SYNs and SYN-ACKs were sent.
    handshake_packets: [Vec<Time>; 2],
    /// Initial sequence numbers: of the client, of the server.
    first: [Option<u32>; 2],
    /// Time at which the client received the SYN-ACK.
    syn_ack_received: Option<Time>,
    /// Data segments of the server.
    sent: Vec<SentSegment>,
    /// Contiguous bytes received over time: at the server, at the client.
    arrived: [ReceivedRange; 2],
    /// Acknowledgements of the client: time sent, time received, acknowledged byte.
    acks: Vec<(Time, Option<Time>, u64)>,
    reset: Option<Time>,
}

/// A segment of the server: its bytes, counted from 0.
#[derive(Clone, Copy, Debug)]
struct SentSegment {
    at: Time,
    from: u64,
    until: u64,
    /// Whether all of it is a retransmission.
    is_retransmission: bool,
}

/// Contiguous bytes received.
#[derive(Debug, Default)]
struct ReceivedRange {
    steps: Vec<(Time, u64)>,
    /// Times at which anything arrived, in order or not.
    arrivals: Vec<Time>,
    out_of_order: BTreeMap<u64, u64>,
}

impl ReceivedRange {
    fn add(&mut self, at: Time, from: u64, until: u64) {
        self.arrivals.push(at);
        let mut reached = self.steps.last().map_or(0, |(_, reached)| *reached);
        let before = reached;
        let range_end = self.out_of_order.get(&from).copied().unwrap_or_default().max(until);
        self.out_of_order.insert(from, range_end);
        while let Some((&from, &until)) = self.out_of_order.first_key_value()
            && from <= reached
        {
            reached = reached.max(until);
            self.out_of_order.remove(&from);
        }
        if reached > before {
            self.steps.push((at, reached));
        }
    }

    /// Time at which everything up to this byte had arrived.
    fn time_of(&self, byte: u64) -> Option<Time> {
        self.steps.iter().find(|(_, reached)| *reached >= byte).map(|(at, _)| *at)
    }

    /// Time of the last arrival before that.
    fn last_before(&self, at: Time) -> Option<Time> {
        self.arrivals.iter().rev().find(|arrivals| **arrivals <= at).copied()
    }
}

impl PacketsByPort {
    fn of(capture: &Capture) -> Self {
        let mut packets_by_port = Self::default();
        for (at, direction, seen, bytes) in capture.iter() {
            if let Some(segment) = Packet::read(bytes).ok().and_then(|packet| packet.tcp()) {
                let port = match direction {
                    PacketDirection::Up => segment.source_port,
                    PacketDirection::Down => segment.destination_port,
                };
                packets_by_port.0.entry(port).or_default().see(at, direction, seen, &segment);
            }
        }
        packets_by_port
    }
}

impl PortPackets {
    /// Time at which the client could use the connection: its program may have been notified later.
    fn opened(&self, reported: Time) -> Time {
        self.syn_ack_received.map_or(reported, |received| received.min(reported))
    }

    fn see(&mut self, at: Time, direction: PacketDirection, seen: Observation, segment: &TcpSegment<'_>) {
        let has_left = seen != Observation::Delivered;
        let (sender, peer) = match direction {
            PacketDirection::Up => (0, 1),
            PacketDirection::Down => (1, 0),
        };
        if segment.flags.contains(Flags::SYN) {
            self.first[sender] = Some(segment.seq.wrapping_add(1));
            if has_left {
                self.handshake_packets[sender].push(at);
            } else if direction == PacketDirection::Down {
                self.syn_ack_received.get_or_insert(at);
            }
            return;
        }
        if segment.flags.contains(Flags::RST) && direction == PacketDirection::Down {
            self.reset.get_or_insert(at);
        }
        let (Some(first), length) = (self.first[sender], segment.payload_length.get()) else { return };
        let from = u64::from(segment.seq.wrapping_sub(first));
        if length > 0 {
            match (direction, has_left) {
                (PacketDirection::Down, true) => {
                    let until = from + length;
                    let is_retransmission = self.sent.iter().any(|sent| sent.until >= until);
                    self.sent.push(SentSegment { at, from, until, is_retransmission });
                }
                (PacketDirection::Down, false) => self.arrived[1].add(at, from, from + length),
                (PacketDirection::Up, true) => {}
                (PacketDirection::Up, false) => self.arrived[0].add(at, from, from + length),
            }
        }
        if let (PacketDirection::Up, Some(first)) = (direction, self.first[peer]) {
            let number = u64::from(segment.ack.wrapping_sub(first));
            match self
                .acks
                .iter_mut()
                .rev()
                .find(|(_, received, acked)| received.is_none() && *acked == number)
            {
                Some((_, received, _)) if !has_left => *received = Some(at),
                Some(_) | None if has_left => self.acks.push((at, None, number)),
                Some(_) | None => {}
            }
        }
    }
}

/// One connection.
struct ConnectionRun<'a> {
    case: &'a Case,
    run: &'a Run,
    packets: &'a PortPackets,
    samples: Vec<Sample>,
    connection: usize,
}

impl ConnectionRun<'_> {
    fn record_stalls(&self, truth: &mut Truth) {
        let Self { case, run, packets, samples: _, connection } = self;
        let ProgramBehaviour { responses, request_order, expects, closes_after, .. } = &case.behaviour;
        let (mut up, mut down) = (0, 0);
        let mut free = packets.opened(run.visit.connections[*connection].opened);
        let mut busy_until = Time::ZERO;
        let mut has_lost = false;
        for (number, request) in run.visit.request_logs.iter().enumerate() {
            if request.connection != *connection {
                continue;
            }
            if *request_order != RequestOrder::Pipelined {
                truth.stall(Cause::ClientThink, free, request.at);
            }
            up += REQUEST as u64;
            if *expects {
                if let Some(permitted) = request.permitted {
                    truth.stall(Cause::ExpectContinue, request.at, permitted);
                }
                up += UPLOAD as u64;
                down += PERMISSION.len() as u64;
            }
            let Some(response) = run.response_logs.get(number) else { break };
            let received = packets.arrived[0].time_of(up).unwrap_or(response.began);
            // Before that it was busy with the previous response.
            let could = received.max(busy_until);
            if !*expects {
                truth.stall(Cause::ServerThink, could, response.began);
                if *request_order == RequestOrder::Pipelined && number == 0 {
                    truth.stall(Cause::HeadOfLine, could, response.began);
                }
            }
            let size = HEAD + responses.get(number).copied().unwrap_or_default();
            let until = down + size as u64;
            let sent = packets.sent.iter().filter(|sent| (down..until).contains(&sent.from));
            let mut last = response.began.max(busy_until);
            for sent in sent {
                self.pause(last.max(busy_until), sent, response.ended, &mut has_lost, truth);
                last = sent.at;
                let time = case.rate.time_for(wire::Bytes::new(sent.until - sent.from + 52));
                busy_until = busy_until.max(sent.at) + time;
            }
            down = until;
            // Data that has arrived and is not read yet waits for the client.
            let arrived = packets.arrived[1].time_of(until);
            free = request.finished.map_or(free, |read| arrived.map_or(read, |arrived| arrived.min(read)));
        }
        if let (Some(reset), Some(closes_after)) = (packets.reset, closes_after) {
            let first_lost =
                packets.arrived[0].time_of((REQUEST * (*closes_after + 1)) as u64).unwrap_or(reset);
            truth.stalls.push(truth.span(Cause::ResetLostData, first_lost.min(reset), reset));
        }
    }

    /// The pause before a segment of a response that the kernel had accepted completely at `written`.
    fn pause(&self, from: Time, sent: &SentSegment, written: Time, has_lost: &mut bool, truth: &mut Truth) {
        let until = sent.at;
        if sent.is_retransmission {
            let was_repairing =
                self.samples.iter().rev().find(|sample| sample.at < until).is_some_and(|sample| {
                    matches!(
                        sample.info.sending.congestion_state,
                        CongestionState::Recovery | CongestionState::Loss
                    )
                });
            let cause = self.repair(until);
            let first = self
                .packets
                .sent
                .iter()
                .find(|earlier| earlier.from <= sent.from && earlier.until > sent.from);
            let first = first.map_or(from, |first| first.at);
            // It is repaired when the retransmission has arrived, after the link's queue.
            let one_way_delay = self.case.rtt / 2;
            let arrived = self.packets.arrived[1]
                .time_of(sent.until)
                .filter(|arrived| *arrived > until + one_way_delay);
            let repaired = arrived.map_or(until, |arrived| until + (arrived.since(until) - one_way_delay));
            truth.repairs.push(truth.span(cause, first, repaired));
            // Further segments of a repair are released by acknowledgements.
            let is_next = was_repairing && self.is_released(until);
            truth.stall(if is_next { Cause::CongestionWindow } else { cause }, from, until);
            *has_lost = true;
            return;
        }
        if until.since(from) <= MIN_STALL {
            return;
        }
        match self.limiting_cause(from, until, written, *has_lost) {
            Some(cause) => {
                truth.stall(cause, from, until);
                // A pause that both windows enforce has two names.
                if matches!(cause, Cause::SlowStart | Cause::SlowStartRestart | Cause::CongestionWindow)
                    && self.allows_no_segment(from, until)
                {
                    truth.repairs.push(truth.span(Cause::ReceiveWindowLimited, from, until));
                }
            }
            None if self.is_watched(from, until) => {
                truth.unexplained.push(truth.pause(from, until));
            }
            None => truth.unwatched.push(truth.pause(from, until)),
        }
    }

    /// Trigger of a retransmission.
    fn repair(&self, at: Time) -> Cause {
        // It cannot have been acknowledged within half a round trip: until then the kernel's state is that of the trigger.
        let soon = (self.case.rtt / 2).max(Duration::from_millis(4));
        let after = self.samples.iter().filter(|sample| sample.at >= at && sample.at.since(at) < soon);
        let mut congestion_states = after.map(|sample| sample.info.sending.congestion_state);
        match congestion_states.find(|congestion_state| {
            matches!(congestion_state, CongestionState::Recovery | CongestionState::Loss)
        }) {
            Some(CongestionState::Recovery) => Cause::FastRetransmit,
            Some(CongestionState::Loss) => Cause::RetransmissionTimeout,
            // A tail loss probe does not change the state (RFC 8985, section 7.2); for the others the sample may be late.
            Some(CongestionState::Open | CongestionState::Disorder | CongestionState::Reduced) | None => {
                if self.is_released(at) {
                    Cause::FastRetransmit
                } else {
                    Cause::TailLossProbe
                }
            }
        }
    }

    /// Whether the kernel was sampled during a pause.
    fn is_watched(&self, from: Time, until: Time) -> bool {
        self.samples.iter().any(|sample| sample.at > from && sample.at <= until)
    }

    /// The reason why it sent no new data.
    fn limiting_cause(&self, from: Time, until: Time, written: Time, has_lost: bool) -> Option<Cause> {
        let ProgramBehaviour { nagle, head_apart, .. } = &self.case.behaviour;
        let before = self.samples.iter().rev().find(|sample| sample.at <= from);
        let within: Vec<&Sample> =
            self.samples.iter().filter(|sample| sample.at > from && sample.at <= until).collect();
        let (last, middle) = (within.last()?, within.get(within.len() / 2)?);
        let first = before.or(within.first().copied())?;
        let half = until.since(from) / 2;
        let is_below_clock_granularity = until.since(from) < TICKS;
        let mostly_runs = |clock: fn(&TcpInfo) -> Duration| clock(&last.info) - clock(&first.info) >= half;
        // The kernel's clocks tick every few milliseconds.
        if mostly_runs(|info| info.receive_window_limited)
            || (is_below_clock_granularity && self.allows_no_segment(from, until))
        {
            // With a window of less than a segment nothing is sent.
            let is_closed = within.iter().any(|sample| sample.info.sending.peer_window.get() < SEGMENT);
            return Some(if is_closed { Cause::ZeroWindow } else { Cause::ReceiveWindowLimited });
        }
        if mostly_runs(|info| info.send_buffer_limited) {
            return Some(Cause::SendBufferLimited);
        }
        let SenderState {
            congestion_state,
            unacknowledged,
            congestion_window,
            slow_start_threshold: _,
            not_sent,
            peer_window: _,
        } = middle.info.sending;
        match congestion_state {
            // The repair takes what the window allows.
            CongestionState::Recovery | CongestionState::Loss => return Some(Cause::CongestionWindow),
            CongestionState::Open | CongestionState::Disorder | CongestionState::Reduced => {}
        }
        // The clock does not run where the program found the buffer full only after the last segment had left.
        if not_sent.get() == 0 && middle.at < written {
            return Some(Cause::SendBufferLimited);
        }
        let is_late = self.acknowledged_late(from, until);
        // The kernel waits with a third of its window, to send more together (tcp_tso_win_divisor).
        let is_full = unacknowledged * 3 >= congestion_window * 2;
        if *nagle && not_sent.get() > 0 && not_sent.get() < SEGMENT && unacknowledged < congestion_window {
            return Some(if is_late { Cause::NagleDelayedAck } else { Cause::Nagle });
        }
        if !is_full {
            return None;
        }
        if is_late {
            return Some(if *head_apart { Cause::ShortInitialSegment } else { Cause::DelayedAck });
        }
        if has_lost {
            return Some(Cause::CongestionWindow);
        }
        let earlier = self.samples.iter().take_while(|sample| sample.at < from);
        let largest = earlier.map(|sample| sample.info.sending.congestion_window).max().unwrap_or_default();
        Some(if largest > congestion_window { Cause::SlowStartRestart } else { Cause::SlowStart })
    }

    /// Whether the receiver's window does not allow another segment.
    fn allows_no_segment(&self, from: Time, until: Time) -> bool {
        let mut within = self.samples.iter().filter(|sample| sample.at > from && sample.at <= until);
        within.any(|sample| {
            let SenderState { unacknowledged, peer_window, not_sent, .. } = sample.info.sending;
            not_sent.get() > 0 && (u64::from(unacknowledged) + 1) * SEGMENT > peer_window.get()
        })
    }

    /// Whether a late acknowledgement of the client released the server's next data.
    fn acknowledged_late(&self, from: Time, until: Time) -> bool {
        let mut arrivals =
            self.packets.acks.iter().filter_map(|(sent_at, received, _)| Some((sent_at, (*received)?)));
        let last = arrivals.rfind(|(_, received)| *received > from && *received <= until);
        last.is_some_and(|(sent_at, _)| {
            let arrived = self.packets.arrived[1].last_before(*sent_at);
            arrived.is_some_and(|arrived| sent_at.since(arrived) >= LATE)
        })
    }

    /// Whether an acknowledgement that had just arrived released it.
    fn is_released(&self, at: Time) -> bool {
        let mut arrivals = self.packets.acks.iter().filter_map(|(_, received, _)| *received);
        arrivals
            .rfind(|received| *received <= at)
            .is_some_and(|received| at.since(received) <= MAX_RELEASE_DELAY)
    }
}
