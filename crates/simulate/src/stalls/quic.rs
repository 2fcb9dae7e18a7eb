//! Stalls of QUIC's connections, from datagrams whose headers are in the clear.
//!
//! Congestion control is not probed: what a host waited for is known by what it received last. A request is answered, an
//! acknowledgement opens the window; and before the client's address is validated the server may send three times what it has
//! received.

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

/// Packets of the handshake and early data have long headers (RFC 9000, section 17.2), and their types.
const LONG: u8 = 0x80;
const EARLY_DATA: u8 = 1;
const HANDSHAKE: u8 = 2;

/// The type of the first packet, if it has a long header.
fn long_type(datagram: &[u8]) -> Option<u8> {
    let first = *datagram.first()?;
    (first & LONG != 0).then_some((first >> 4) & 3)
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
                let kind = long_type(payload);
                state.is_validated |= kind.is_none_or(|kind| kind == HANDSHAKE);
                state.received += payload.len() as u64;
                if !is_control && kind.is_none_or(|kind| kind == EARLY_DATA) {
                    (state.request_received, state.is_unanswered) = (record.at, true);
                }
                state.last_received = record.at;
            }
            (ObservationPoint::Received, false) if is_control => {}
            (ObservationPoint::Received, false) => self.received = record.at,
            (ObservationPoint::Lost, true) => {}
            (ObservationPoint::Lost, false) => (state.was_lost, state.has_lost) = (true, true),
        }
    }

    fn client_sends_quic(&mut self, record: &Record) {
        let received = self.received;
        let pause = self.transmit(record, 0, self.known.up);
        let kind = long_type(&record.segment.payload);
        let state = self.quic.entry(Flow::of(record)).or_default();
        let is_request = kind.is_none_or(|kind| kind == EARLY_DATA);
        // The client's last flight of the handshake and its first request may share a datagram.
        let is_securing = !state.is_secured && state.sent > 0;
        state.is_secured |= is_request || kind == Some(HANDSHAKE);
        let Some(pause) = pause else { return };
        if is_securing {
            self.stall(&pause, Cause::QuicHandshake, pause.from, pause.until);
        } else {
            self.think(&pause, Cause::ClientThink, received, pause.sent);
        }
    }

    fn server_sends_quic(&mut self, record: &Record) {
        let wake_up = self.known.wake_up;
        let pause = self.transmit(record, 1, self.known.down);
        let bytes = record.segment.payload.len() as u64;
        let state = self.quic.entry(Flow::of(record)).or_default();
        let was_limited = state.sent > 0 && !state.is_secured;
        let is_at_limit = state.sent + bytes > AMPLIFICATION * state.received.saturating_sub(bytes);
        state.sent += bytes;
        let is_unanswered = std::mem::take(&mut state.is_unanswered);
        let Some(pause) = pause else { return };
        let reacts = record.at.since(state.last_received) <= wake_up;
        let request_received = state.request_received;
        let cause = match () {
            () if was_limited && is_at_limit => Cause::QuicAmplificationLimit,
            () if !state.is_secured => Cause::QuicHandshake,
            () if std::mem::take(&mut state.was_lost) && reacts => Cause::FastRetransmit,
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
