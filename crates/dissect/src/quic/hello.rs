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

/// An error with which a server closes a connection instead of beginning its handshake (RFC 9000, section 20.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// An alert of TLS (RFC 9001, section 4.8).
    Alert(tls::Alert),
    /// CONNECTION_REFUSED.
    Refused,
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
    /// The server's datagram that closed the connection, and its error.
    closed: Option<(Mark, u64)>,
}

const CONNECTION_REFUSED: u64 = 0x02;
/// The first of the errors that are alerts.
const CRYPTO_ERROR: u64 = 0x100;

/// Maximum number of parts and ranges that are retained.
const MAX_PARTS: usize = 64;

impl Hello {
    /// Handles a packet of `side`; `key_id` is the connection ID of the keys.
    pub(super) fn packet(&mut self, side: Side, packet: &Packet<'_>, key_id: &[u8], mark: Mark) {
        if packet.kind != PacketType::Initial || self.replied.is_some() || self.sent.len() > MAX_PARTS {
            return;
        }
        match side {
            Side::Client => {
                let Some(initial) = InitialPacket::open(packet, key_id, Sender::Client) else { return };
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
                let Some(initial) = InitialPacket::open(packet, key_id, Sender::Server) else { return };
                self.first_number.get_or_insert(initial.number);
                self.acknowledged.extend(initial.acknowledged);
                self.acknowledged.truncate(MAX_PARTS);
                self.closed = self.closed.or(initial.closed.map(|error| (mark, error)));
                self.replied = (!initial.crypto.is_empty()).then_some(mark);
            }
        }
    }

    /// The server's datagram that refused the connection, or ended it with an alert, before it replied.
    pub(super) fn closed(&self) -> Option<(Mark, CloseReason)> {
        let (mark, error) = self.closed?;
        let alert = u8::try_from(error ^ CRYPTO_ERROR).ok();
        let alert = alert.map(|description| CloseReason::Alert(tls::Alert { is_fatal: true, description }));
        Some((mark, alert.or((error == CONNECTION_REFUSED).then_some(CloseReason::Refused))?))
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
    fn alerts_and_refusals_are_reasons_and_other_errors_none() {
        let closed = |error| Hello { closed: Some((mark(3, 30), error)), ..Hello::default() }.closed();
        let reason = |error| closed(error).map(|(_, reason)| reason);
        assert_eq!(reason(0x178), Some(CloseReason::Alert(tls::Alert { is_fatal: true, description: 120 })));
        assert_eq!([reason(2), reason(0), reason(0xa)], [Some(CloseReason::Refused), None, None]);
    }
}
