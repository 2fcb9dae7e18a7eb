//! Stalls of QUIC's connections, from datagrams whose headers are in the clear.
//!
//! Congestion control is not probed: what a host waited for is known by what it received last. A request is answered, an
//! acknowledgement opens the window; and before the client's address is validated the server may send three times what it has
//! received.

use quic::packet::{PacketType, packets};
use trace::Cause;
use wire::{Duration, Time};

use super::StallObserver;
use crate::page::flow::Flow;
use crate::world::{ObservationPoint, Record};

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
    /// Whether data of the server was lost, and has not been followed by a pause.
    was_lost: bool,
    /// Whether any was.
    has_lost: bool,
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
            (ObservationPoint::Sent, false) if is_control => {}
            (ObservationPoint::Sent, false) => self.server_sends_quic(record),
            (ObservationPoint::Received, true) => {
                state.is_validated |= validates(payload);
                state.received += payload.len() as u64;
                if !is_control && Coalesced::of(payload).has_application_data {
                    (state.request_received, state.is_unanswered) = (record.at, true);
                }
                state.last_received = record.at;
            }
            (ObservationPoint::Received, false) if is_control => {}
            (ObservationPoint::Received, false) => self.received = record.at,
            (ObservationPoint::Lost, true) => state.was_request_lost |= !is_control,
            (ObservationPoint::Lost, false) => (state.was_lost, state.has_lost) = (true, true),
        }
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

    fn server_sends_quic(&mut self, record: &Record) {
        let wake_up = self.known.wake_up;
        let pause = self.transmit(record, 1, self.known.down);
        let bytes = record.segment.payload.len() as u64;
        let state = self.quic.entry(Flow::of(record)).or_default();
        let was_limited = state.is_limited;
        state.sent += bytes;
        let is_full = bytes >= FULL_DATAGRAM;
        state.is_limited =
            is_full && !state.is_validated && state.sent + FULL_DATAGRAM > AMPLIFICATION * state.received;
        let is_unanswered = std::mem::take(&mut state.is_unanswered);
        let Some(pause) = pause else { return };
        let reacts = record.at.since(state.last_received) <= wake_up;
        let request_received = state.request_received;
        let cause = match () {
            () if was_limited => Cause::QuicAmplificationLimit,
            () if !state.is_secured => Cause::QuicHandshake,
            // What follows a request is its response.
            () if !is_unanswered && std::mem::take(&mut state.was_lost) && reacts => Cause::FastRetransmit,
            () if state.has_lost && !reacts && !is_unanswered => Cause::RetransmissionTimeout,
            () if is_unanswered => {
                return self.think(&pause, Cause::ServerThink, request_received, pause.sent);
            }
            () if state.has_lost => Cause::CongestionWindow,
            // The window, or its pacing.
            () => Cause::SlowStart,
        };
        // A pause no longer than this packet's serialisation is not a stall.
        if pause.length() > pause.packet.max(Duration::ZERO) {
            self.stall(&pause, cause, pause.from, pause.until);
        }
    }
}
