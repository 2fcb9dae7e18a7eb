//! The Client Hello in Initial packets, which anyone can open: the part of it that was lost, and the server's reply.
//!
//! A hello with post-quantum keys fills two datagrams. A server that loses one of them acknowledges the other, and can begin its
//! handshake only after the client has retransmitted what it lacks (RFC 9002, section 6.2.4).

use std::ops::{Range, RangeInclusive};

use quic::initial::InitialPacket;
use quic::packet::{Packet, PacketType};
use tls::decrypt::Sender;

use crate::{Mark, Side};

/// A part of the Client Hello that the client had to retransmit before the server replied, or before its reply arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostHello {
    /// The client's datagram that no acknowledgement covers; or the first one, if the server's packets before this number were lost.
    pub lost: Mark,
    /// Number of the server's first packet, if it acknowledges that datagram.
    pub lost_replies: Option<u64>,
    /// The server's first datagram, if it came before the retransmission: it had received another one.
    pub acknowledged: Option<Mark>,
    /// The client's datagram that carries the same part.
    pub retransmitted: Mark,
    /// The server's first datagram of its handshake.
    pub replied: Mark,
}

/// An error with which a side closes a connection within its handshake (RFC 9000, section 20.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// An alert of TLS (RFC 9001, section 4.8).
    Alert(tls::Alert),
    /// CONNECTION_REFUSED.
    Refused,
    /// Another error of the transport.
    Transport(u64),
}

/// The course of the hello so far.
#[derive(Debug, Default)]
pub(super) struct Hello {
    /// Parts that the client sent, each with its packet.
    sent: Vec<(Range<u64>, u64, Mark)>,
    /// The packet of the first part that was repeated, and the repetition.
    repeated: Option<(u64, Mark, Mark)>,
    acknowledged: Vec<RangeInclusive<u64>>,
    /// Number of the server's first packet; they begin with 0 (RFC 9000, section 12.3).
    first_number: Option<u64>,
    /// The server's first datagram of its handshake.
    replied: Option<Mark>,
    /// The datagram that closed the connection, its side, and its error.
    closed: Option<(Mark, Side, u64)>,
}

const CONNECTION_REFUSED: u64 = 0x02;
/// The error of an application in place of its own (RFC 9000, section 10.2.3): of a client, it abandons the connection.
const APPLICATION_ERROR: u64 = 0x0c;
const NO_ERROR: u64 = 0;
/// The first of the errors that are alerts.
const CRYPTO_ERROR: u64 = 0x100;

/// Maximum number of parts and ranges that are retained.
const MAX_PARTS: usize = 64;

impl Hello {
    /// Handles a packet of `side`; `key_id` is the connection ID of the keys.
    pub(super) fn packet(&mut self, side: Side, packet: &Packet<'_>, key_id: &[u8], mark: Mark) {
        if packet.kind != PacketType::Initial || self.closed.is_some() || self.sent.len() > MAX_PARTS {
            return;
        }
        let sender = if side == Side::Client { Sender::Client } else { Sender::Server };
        let Some(initial) = InitialPacket::open(packet, key_id, sender) else { return };
        self.closed = initial.closed.map(|error| (mark, side, error));
        match side {
            _ if self.replied.is_some() => {}
            Side::Client => {
                for part in initial.crypto {
                    let overlaps = |(earlier, ..): &&(Range<u64>, u64, Mark)| {
                        earlier.start < part.end && part.start < earlier.end
                    };
                    if let Some((_, number, lost)) = self.sent.iter().find(overlaps) {
                        self.repeated.get_or_insert((*number, *lost, mark));
                    }
                    self.sent.push((part, initial.number, mark));
                }
            }
            Side::Server => {
                self.first_number.get_or_insert(initial.number);
                self.acknowledged.extend(initial.acknowledged);
                self.acknowledged.truncate(MAX_PARTS);
                self.replied = (!initial.crypto.is_empty()).then_some(mark);
            }
        }
    }

    /// Returns whether a side has closed the connection, with an error or without.
    pub(super) const fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// The datagram that closed the connection within its handshake, its side, and why; not those that only abandon it.
    pub(super) fn closed(&self) -> Option<(Mark, Side, CloseReason)> {
        let (mark, side, error) = self.closed?;
        let alert = error.checked_sub(CRYPTO_ERROR).and_then(|alert| u8::try_from(alert).ok());
        let reason = match (alert, error) {
            (Some(description), _) => CloseReason::Alert(tls::Alert { is_fatal: true, description }),
            (None, CONNECTION_REFUSED) => CloseReason::Refused,
            (None, _) => CloseReason::Transport(error),
        };
        let is_abandoned = match reason {
            CloseReason::Alert(alert) => alert.is_orderly(),
            _ => error == NO_ERROR || (error == APPLICATION_ERROR && side == Side::Client),
        };
        (!is_abandoned).then_some((mark, side, reason))
    }

    /// The loss that the reply waited for; `answered` is the server's first datagram. A packet that the server acknowledged was not
    /// lost: its reply was, or else it was slow.
    pub(super) fn lost(&self, answered: Option<Mark>) -> Option<LostHello> {
        let (number, lost, retransmitted) = self.repeated?;
        let is_acknowledged = self.acknowledged.iter().any(|range| range.contains(&number));
        let acknowledged = answered.filter(|answered| answered.frame < retransmitted.frame);
        let lost_replies =
            self.first_number.filter(|first| *first > 0 && is_acknowledged && acknowledged.is_none());
        let loss = LostHello { lost, lost_replies, acknowledged, retransmitted, replied: self.replied? };
        (!is_acknowledged || lost_replies.is_some()).then_some(loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Time;

    const fn mark(frame: u64, millis: u64) -> Mark {
        Mark { at: Time::from_nanos(millis * 1_000_000), frame }
    }

    /// A hello of two parts, and its second part again; the server's first packet has this number and acknowledges those.
    fn lost(first_number: u64, acknowledged: &[RangeInclusive<u64>], answered: Mark) -> Option<LostHello> {
        let hello = Hello {
            sent: vec![
                (0..1_000, 1, mark(1, 0)),
                (1_000..1_700, 2, mark(2, 0)),
                (1_000..1_700, 3, mark(4, 90)),
            ],
            repeated: Some((2, mark(2, 0), mark(4, 90))),
            acknowledged: acknowledged.to_vec(),
            first_number: Some(first_number),
            replied: Some(mark(5, 120)),
            closed: None,
        };
        hello.lost(Some(answered))
    }

    #[test]
    fn part_that_the_server_never_acknowledged_was_lost() {
        let found = lost(0, &[1..=1, 3..=3], mark(3, 30)).unwrap();
        assert_eq!((found.lost.frame, found.acknowledged.map(|mark| mark.frame)), (2, Some(3)));
        assert_eq!((found.retransmitted.frame, found.replied.frame), (4, 5));
        assert_eq!(found.lost_replies, None);
        assert_eq!(lost(0, &[1..=3], mark(5, 120)), None, "the server was slow");
    }

    #[test]
    fn server_whose_first_packets_are_missing_has_replied_before() {
        assert_eq!(lost(2, &[1..=3], mark(5, 120)).map(|lost| lost.lost_replies), Some(Some(2)));
        assert_eq!(lost(2, &[1..=3], mark(3, 30)), None, "the client had heard of it");
    }

    #[test]
    fn errors_are_reasons_and_clients_that_abandon_none() {
        let closed = |side, error| {
            let hello = Hello { closed: Some((mark(3, 30), side, error)), ..Hello::default() };
            hello.closed().map(|(_, _, reason)| reason)
        };
        let alert = |description| Some(CloseReason::Alert(tls::Alert { is_fatal: true, description }));
        let of_server = [0x178, 2, 0xa, 0xc].map(|error| closed(Side::Server, error));
        let other = |error| Some(CloseReason::Transport(error));
        assert_eq!(of_server, [alert(120), Some(CloseReason::Refused), other(0xa), other(0xc)]);
        assert_eq!([0, 0x15a, 0xc].map(|error| closed(Side::Client, error)), [None; 3]);
        assert_eq!(closed(Side::Client, 0x12a), alert(42));
    }
}
