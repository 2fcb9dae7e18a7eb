//! The unencrypted part of a TLS handshake (RFC 8446, RFC 5246): its begin and end, the size of the server's first
//! flight, and fatal alerts.
//!
//! Not a TLS reader: records are counted and skipped, whatever they contain. A hole in a direction ends the reading.

use crate::{Both, Mark, Side};

/// The handshake of one connection.
#[derive(Debug)]
pub struct Tls {
    streams: Both<Stream>,
    /// The Client Hello.
    pub began: Mark,
    /// The server's flight that begins with its Server Hello: its first and last segment, and its bytes.
    pub flight: Option<Flight>,
    /// Whether the client sent something after that flight.
    is_answered: bool,
    /// The client's first application data.
    pub ended: Option<Mark>,
    /// The first fatal alert.
    pub alert: Option<Alert>,
}

/// The server's first flight.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// Its first segment.
    pub first: Mark,
    /// Its last segment.
    pub last: Mark,
    /// Its bytes, headers of records included.
    pub bytes: u64,
}

/// A fatal alert.
#[derive(Clone, Copy, Debug)]
pub struct Alert {
    /// Side that sent it.
    pub from: Side,
    /// Its packet.
    pub mark: Mark,
    /// Its description (RFC 8446, section 6).
    pub description: u8,
}

/// One direction, as far as it was captured in order.
#[derive(Debug, Default)]
struct Stream {
    /// Position of the next byte in the stream.
    next: Option<u64>,
    /// The beginning of a record: its header, and the two bytes of an alert.
    begun: Vec<u8>,
    /// Bytes of the record still to come.
    left: u64,
    is_lost: bool,
}

/// A record's header, and the bytes that identify an alert.
const HEADER: usize = 5;
const HEADER_AND_ALERT: usize = 7;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

impl Tls {
    /// Returns whether a connection that begins with `payload` speaks TLS: a record with a Client Hello.
    pub fn begins(payload: &[u8]) -> bool {
        const CLIENT_HELLO: u8 = 1;
        matches!(payload, [HANDSHAKE, 3, 0..=4, _, _, CLIENT_HELLO, ..])
    }

    /// Creates the state at a Client Hello.
    pub fn new(began: Mark) -> Self {
        Self { streams: Both::default(), began, flight: None, is_answered: false, ended: None, alert: None }
    }

    /// Returns whether the rest of it is encrypted.
    pub const fn is_over(&self) -> bool {
        self.ended.is_some() || self.alert.is_some()
    }

    /// Returns whether both directions were captured in order so far.
    pub const fn is_read(&self) -> bool {
        !self.streams.client.is_lost && !self.streams.server.is_lost
    }

    /// Handles `length` bytes that `side` sent from `start` on, `payload` of them captured.
    pub fn sent(&mut self, side: Side, start: u64, payload: &[u8], length: u64, mark: Mark) {
        self.is_answered |= side == Side::Client && self.flight.is_some();
        if side == Side::Server && !self.is_answered {
            let Flight { first, bytes, .. } =
                self.flight.unwrap_or(Flight { first: mark, last: mark, bytes: 0 });
            self.flight = Some(Flight { first, last: mark, bytes: bytes + length });
        }
        let stream = self.streams.of_mut(side);
        let next = *stream.next.get_or_insert(start);
        if stream.is_lost || start + length <= next {
            return;
        }
        if start > next || (payload.len() as u64) < length {
            stream.is_lost = true;
            return;
        }
        stream.next = Some(start + length);
        let mut rest =
            usize::try_from(next - start).ok().and_then(|known| payload.get(known..)).unwrap_or_default();
        while !rest.is_empty() && self.alert.is_none() {
            rest = self.record(side, rest, mark);
        }
    }

    /// Reads on within a record, or into the next; returns the remaining bytes.
    fn record<'a>(&mut self, side: Side, bytes: &'a [u8], mark: Mark) -> &'a [u8] {
        let stream = self.streams.of_mut(side);
        if stream.left > 0 {
            let here = usize::try_from(stream.left).unwrap_or(usize::MAX).min(bytes.len());
            stream.left -= here as u64;
            return bytes.get(here..).unwrap_or_default();
        }
        let is_alert = stream.begun.first() == Some(&ALERT)
            || (stream.begun.is_empty() && bytes.first() == Some(&ALERT));
        let wanted = if is_alert { HEADER_AND_ALERT } else { HEADER };
        let here = wanted.saturating_sub(stream.begun.len()).min(bytes.len());
        stream.begun.extend_from_slice(bytes.get(..here).unwrap_or_default());
        let rest = bytes.get(here..).unwrap_or_default();
        if stream.begun.len() < wanted {
            return rest;
        }
        let begun = std::mem::take(&mut stream.begun);
        let &[kind, 3, _, high, low, ..] = begun.as_slice() else {
            stream.is_lost = true;
            return &[];
        };
        let length = u64::from(u16::from_be_bytes([high, low]));
        stream.left = length.saturating_sub((begun.len() - HEADER) as u64);
        match (kind, begun.get(HEADER..)) {
            (ALERT, Some(&[FATAL, description])) if length == 2 && !is_orderly(description) => {
                self.alert = Some(Alert { from: side, mark, description });
            }
            (APPLICATION_DATA, _) if side == Side::Client => self.ended = self.ended.or(Some(mark)),
            _ => {}
        }
        rest
    }
}

const FATAL: u8 = 2;

/// Returns whether an alert is `close_notify` or `user_canceled`.
const fn is_orderly(description: u8) -> bool {
    matches!(description, 0 | 90)
}

impl Alert {
    /// Returns its name (RFC 8446, section 6).
    pub const fn name(&self) -> &'static str {
        match self.description {
            10 => "unexpected_message",
            20 => "bad_record_mac",
            21 => "decryption_failed",
            22 => "record_overflow",
            30 => "decompression_failure",
            40 => "handshake_failure",
            41 => "no_certificate",
            42 => "bad_certificate",
            43 => "unsupported_certificate",
            44 => "certificate_revoked",
            45 => "certificate_expired",
            46 => "certificate_unknown",
            47 => "illegal_parameter",
            48 => "unknown_ca",
            49 => "access_denied",
            50 => "decode_error",
            51 => "decrypt_error",
            60 => "export_restriction",
            70 => "protocol_version",
            71 => "insufficient_security",
            80 => "internal_error",
            86 => "inappropriate_fallback",
            100 => "no_renegotiation",
            109 => "missing_extension",
            110 => "unsupported_extension",
            111 => "certificate_unobtainable",
            112 => "unrecognized_name",
            113 => "bad_certificate_status_response",
            114 => "bad_certificate_hash_value",
            115 => "unknown_psk_identity",
            116 => "certificate_required",
            120 => "no_application_protocol",
            _ => "unknown alert",
        }
    }
}
