//! Stalls of QUIC's connections, from datagrams whose headers are in the clear.
//!
//! The reason of a wait is known by what the host received last, and by what loss detection reported. A request is answered, an
//! acknowledgement opens the window; before the client's address is validated the server may send three times what it has
//! received; and what is retransmitted waited for a loss to be found: by acknowledgements, or by a timer whose probe was
//! acknowledged (RFC 9002, section 6).

use std::collections::BTreeMap;

use fetch::Recovery;
use quic::frame::{Frame, StreamData, frames};
use quic::packet::{PacketType, frames_in_the_clear, packets};
use trace::Cause;
use wire::{Duration, Time};

use super::StallObserver;
use crate::page::flow::Flow;
use crate::web::QuicProbe;
use crate::world::{CLIENT, ObservationPoint, Record};

/// Maximum payload of a datagram that carries acknowledgements and windows only: a request or the end of a response that is
/// shorter than that is taken for one.
const MAX_CONTROL_BYTES: usize = 80;
/// Factor of the limit before the client's address is validated (RFC 9000, section 8.1).
const AMPLIFICATION: u64 = 3;

/// State of a connection.
#[derive(Debug, Default)]
pub(super) struct QuicState {
    /// Whether the client has sent a request.
    is_secured: bool,
    /// Whether the server has received something of the handshake's second flight.
    is_validated: bool,
    /// Whether what the client had sent allowed no further full datagram after the server's last.
    is_limited: bool,
    /// Time of the client's last datagram, and whether one was lost since it last received anything.
    client_sent: Option<Time>,
    was_request_lost: bool,
    /// Bytes of datagrams that the server has received and sent.
    received: u64,
    sent: u64,
    /// Time at which the server last received a request, and whether it has sent nothing since.
    request_received: Time,
    is_unanswered: bool,
    /// Time at which the server last received anything.
    last_received: Time,
    /// Length of the ID by which the server addresses the client.
    client_id: usize,
    /// Time of the server's last datagram that has to be acknowledged.
    server_sent: Time,
    /// Data of responses by stream and offset: when it was last sent, and its end.
    responses: BTreeMap<(u64, u64), (Time, u64)>,
    /// Number of packets that the server has found to be lost, and the time of the last one.
    lost: u64,
    loss_found: Time,
    /// Number of its packets that a link has dropped.
    dropped: u64,
    /// Time of its last probe, whose acknowledgement may reveal a loss.
    probed: Time,
    /// The server's smoothed round trip.
    round_trip: Duration,
}

/// Content of a server's datagram.
#[derive(Clone, Copy, Debug, Default)]
struct Content {
    /// Whether it has to be acknowledged.
    is_eliciting: bool,
    has_response: bool,
    /// When data of a response in it was sent before.
    sent_before: Option<Time>,
}

impl QuicState {
    /// Handles the frames of a server's datagram.
    fn read(&mut self, at: Time, datagram: &[u8]) -> Content {
        let mut content = Content::default();
        for packet in packets(datagram) {
            for frame in frames(frames_in_the_clear(&packet, self.client_id).unwrap_or_default()) {
                content.is_eliciting |= frame.is_ack_eliciting();
                let Frame::Stream(StreamData { id, offset, data, is_end: _ }) = frame else { continue };
                // Requests and their responses (RFC 9114, section 4.1).
                if id & 3 != 0 {
                    continue;
                }
                content.has_response = true;
                let before = self.responses.range((id, 0)..=(id, offset)).next_back();
                let before = before.filter(|(_, (_, end))| *end > offset).map(|(_, (sent, _))| *sent);
                content.sent_before = content.sent_before.or(before);
                self.responses.insert((id, offset), (at, offset + data.len() as u64));
            }
        }
        content
    }
}

/// Minimum of the maximum datagram size (RFC 9000, section 14).
const FULL_DATAGRAM: u64 = 1_200;

/// Packets of a datagram.
#[derive(Clone, Copy, Debug)]
struct Coalesced {
    /// Whether it begins with one of the handshake's second flight.
    begins_with_handshake: bool,
    /// Whether one has early data, or what follows the handshake.
    has_application_data: bool,
}

impl Coalesced {
    fn of(datagram: &[u8]) -> Self {
        let kinds = || packets(datagram).map(|packet| packet.kind);
        Self {
            begins_with_handshake: kinds().next() == Some(PacketType::Handshake),
            has_application_data: kinds()
                .any(|kind| matches!(kind, PacketType::ZeroRtt | PacketType::OneRtt)),
        }
    }
}

/// Whether a client's datagram validates its address: it has a packet of the handshake's second flight (RFC 9000, section 8.1).
fn validates(datagram: &[u8]) -> bool {
    packets(datagram).any(|packet| matches!(packet.kind, PacketType::Handshake | PacketType::OneRtt))
}

impl StallObserver {
    pub(super) fn record_quic(&mut self, record: &Record, is_client: bool) {
        let payload = &record.segment.payload;
        let is_control = payload.len() <= MAX_CONTROL_BYTES;
        let state = self.quic.entry(Flow::of(record)).or_default();
        match (record.seen, is_client) {
            (ObservationPoint::Sent, true) if is_control => {}
            (ObservationPoint::Sent, true) => self.client_sends_quic(record),
            (ObservationPoint::Sent, false) => self.server_sends_quic(record, is_control),
            (ObservationPoint::Received, true) => {
                state.is_validated |= validates(payload);
                let long = packets(payload).find(|packet| packet.kind != PacketType::OneRtt);
                state.client_id = long.map_or(state.client_id, |packet| packet.source.len());
                state.received += payload.len() as u64;
                if !is_control && Coalesced::of(payload).has_application_data {
                    (state.request_received, state.is_unanswered) = (record.at, true);
                }
                state.last_received = record.at;
            }
            (ObservationPoint::Received, false) if is_control => {}
            (ObservationPoint::Received, false) => self.received = record.at,
            (ObservationPoint::Lost, true) => state.was_request_lost |= !is_control,
            (ObservationPoint::Lost, false) => state.dropped += 1,
        }
    }

    /// Handles what an end knows of losses: only the server's data is told apart by it.
    pub(super) fn record_quic_probe(&mut self, probe: &QuicProbe) {
        if probe.local.host == CLIENT {
            return;
        }
        let state = self.quic.entry(Flow::of_quic_probe(probe)).or_default();
        let Recovery { at, lost, round_trip, .. } = probe.recovery;
        state.loss_found = if lost > state.lost { at } else { state.loss_found };
        (state.lost, state.round_trip) = (lost, round_trip);
    }

    fn client_sends_quic(&mut self, record: &Record) {
        let received = self.received;
        let pause = self.transmit(record, 0, self.known.up);
        let Coalesced { begins_with_handshake, has_application_data } =
            Coalesced::of(&record.segment.payload);
        let state = self.quic.entry(Flow::of(record)).or_default();
        // The client's last flight of the handshake and its first request may share a datagram.
        let is_securing = !state.is_secured && state.sent > 0;
        // Nothing has come since the client's last datagram: its timer has expired.
        let is_probe = state.client_sent.replace(record.at).is_some_and(|sent| received <= sent);
        let was_lost = pause.is_some() && std::mem::take(&mut state.was_request_lost) && is_probe;
        let is_waiting = is_securing || is_probe && !state.is_secured;
        state.is_secured |= has_application_data || begins_with_handshake;
        let Some(pause) = pause else { return };
        match () {
            () if was_lost => self.stall(&pause, Cause::RetransmissionTimeout, pause.from, pause.until),
            () if is_waiting => self.stall(&pause, Cause::QuicHandshake, pause.from, pause.until),
            // The response is on its way.
            () if is_probe => {}
            () => self.think(&pause, Cause::ClientThink, received, pause.sent),
        }
    }

    fn server_sends_quic(&mut self, record: &Record, is_control: bool) {
        let bytes = record.segment.payload.len() as u64;
        let state = self.quic.entry(Flow::of(record)).or_default();
        let content = state.read(record.at, &record.segment.payload);
        let reacts =
            record.at.since(state.last_received) <= self.known.wake_up || state.loss_found == record.at;
        // A timer waits for longer than the round trip (RFC 9002, section 6.2.1), and pacing takes less.
        let has_undetected = state.dropped > state.lost;
        let is_silent = content.is_eliciting && record.at.since(state.server_sent) > state.round_trip;
        let is_probe = has_undetected && !reacts && !state.is_unanswered && is_silent;
        state.probed = if is_probe { record.at } else { state.probed };
        state.server_sent = if content.is_eliciting { record.at } else { state.server_sent };
        // What repairs the handshake after a request does not end the wait for its response.
        if is_control || state.is_secured && !content.has_response {
            state.sent += if is_control { 0 } else { bytes };
            return;
        }
        let pause = self.transmit(record, 1, self.known.down);
        let state = self.quic.entry(Flow::of(record)).or_default();
        let was_limited = state.is_limited;
        state.sent += bytes;
        let is_full = bytes >= FULL_DATAGRAM;
        state.is_limited =
            is_full && !state.is_validated && state.sent + FULL_DATAGRAM > AMPLIFICATION * state.received;
        let is_unanswered = std::mem::take(&mut state.is_unanswered);
        // A loss that only the acknowledgement of a probe reveals is the timer's.
        let is_timeout = is_probe || content.sent_before.is_some_and(|before| state.probed > before);
        let Some(pause) = pause else { return };
        let request_received = state.request_received;
        let cause = match () {
            () if was_limited => Cause::QuicAmplificationLimit,
            () if !state.is_secured => Cause::QuicHandshake,
            // What follows a request is its response.
            () if !is_unanswered && is_timeout => Cause::RetransmissionTimeout,
            () if !is_unanswered && content.sent_before.is_some() => Cause::FastRetransmit,
            () if is_unanswered => {
                return self.think(&pause, Cause::ServerThink, request_received, pause.sent);
            }
            () if state.lost > 0 => Cause::CongestionWindow,
            // The window, or its pacing.
            () => Cause::SlowStart,
        };
        // A pause no longer than this packet's serialisation is not a stall.
        if pause.length() > pause.packet.max(Duration::ZERO) {
            self.stall(&pause, cause, pause.from, pause.until);
        }
    }
}
