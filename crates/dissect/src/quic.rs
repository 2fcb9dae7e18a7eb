//! The opening of a QUIC connection without keys, by its long headers: Initial packets and their repetitions, Retry, Version
//! Negotiation, the end of the handshake, and the limit on what a server may send to an unvalidated address.
//!
//! Packets with short headers are encrypted: the client's first one shows that its handshake is complete.

use quic::initial::ClientInitials;
use quic::packet::{Packet, PacketType, packets};
use quic::{AMPLIFICATION_LIMIT, MIN_INITIAL_BYTES};
use wire::Duration;

use crate::{Mark, Side};

/// The opening of one connection.
#[derive(Debug)]
pub struct QuicOpening {
    /// The version of the client's last Initial packet.
    pub version: u32,
    /// The client's first Initial packet.
    pub began: Mark,
    /// Datagrams with Initial packets that the client sent before the server's first response: the first of each
    /// round, and the number of all.
    pub rounds: Vec<Mark>,
    /// Number of these datagrams.
    pub initials: u32,
    /// The server's first datagram.
    pub answered: Option<Mark>,
    /// A Retry, which costs a round trip.
    pub retry: Option<Mark>,
    /// A Version Negotiation, which costs a round trip.
    pub negotiation: Option<Mark>,
    /// The client's first packet after its handshake, or its first early data.
    pub ended: Option<Mark>,
    /// Whether the client sent early data (0-RTT).
    pub is_early: bool,
    /// The server's name that the client requested.
    pub server_name: Option<String>,
    /// Waits of a server that had reached its limit.
    pub limited: Vec<LimitedServer>,
    initials_reader: ClientInitials,
    /// Connection ID from which the keys of Initial packets follow.
    key_id: Vec<u8>,
    /// Bytes of each direction, until the server has validated the client's address.
    received: u64,
    sent: u64,
    /// Bytes that the server had received when it last sent.
    received_before: u64,
    is_validated: bool,
    /// The server's last datagram, and the client's next one.
    last_sent: Option<Mark>,
    released: Option<Mark>,
}

/// A wait of a server that had sent as much as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitedServer {
    /// Its last datagram before.
    pub since: Mark,
    /// The client's datagram that raised the limit.
    pub released: Mark,
    /// Its next datagram.
    pub resumed: Mark,
    /// Bytes that it had received and sent by then.
    pub received: u64,
    /// The same, sent.
    pub sent: u64,
}

/// Maximum number of rounds and waits that are retained.
const MAX_ROUNDS: usize = 32;
/// Datagrams of one round are sent together.
const TOGETHER: Duration = Duration::from_millis(100);

/// Returns whether a datagram begins a connection, from its client: it has an Initial packet and is as long as it must be.
pub fn begins(payload: &[u8], length: usize) -> bool {
    length >= MIN_INITIAL_BYTES
        && packets(payload).next().is_some_and(|packet| packet.kind == PacketType::Initial)
}

impl QuicOpening {
    /// Creates the state at the client's first Initial packet.
    pub fn new(mark: Mark) -> Self {
        Self {
            version: 0,
            began: mark,
            rounds: Vec::new(),
            initials: 0,
            answered: None,
            retry: None,
            negotiation: None,
            ended: None,
            is_early: false,
            server_name: None,
            limited: Vec::new(),
            initials_reader: ClientInitials::default(),
            key_id: Vec::new(),
            received: 0,
            sent: 0,
            received_before: 0,
            is_validated: false,
            last_sent: None,
            released: None,
        }
    }

    /// Handles a datagram of `side` with `length` bytes, `payload` of them captured.
    pub fn datagram(&mut self, side: Side, payload: &[u8], length: u64, mark: Mark) {
        match side {
            Side::Client => self.received += length,
            Side::Server => self.sends(length, mark),
        }
        let mut is_initial = false;
        for packet in packets(payload) {
            is_initial |= packet.kind == PacketType::Initial;
            match side {
                Side::Client => self.client_packet(&packet, mark),
                Side::Server => self.server_packet(&packet, mark),
            }
        }
        if side == Side::Client {
            self.released = self.last_sent.map(|_| mark).filter(|_| !self.is_validated);
            if is_initial && self.answered.is_none() {
                self.note_round(mark);
            }
        }
    }

    /// Returns whether nothing more is to be read: the handshake is over.
    pub const fn is_over(&self) -> bool {
        self.ended.is_some() && self.answered.is_some() && self.is_validated
    }

    /// Returns the round trips that the handshake took, as agreed.
    pub fn round_trips(&self) -> u32 {
        1 + u32::from(self.retry.is_some()) + u32::from(self.negotiation.is_some())
    }

    fn note_round(&mut self, mark: Mark) {
        self.initials += 1;
        let is_next = self.rounds.last().is_none_or(|last| mark.at.since(last.at) > TOGETHER);
        if is_next && self.rounds.len() < MAX_ROUNDS {
            self.rounds.push(mark);
        }
    }

    fn client_packet(&mut self, packet: &Packet<'_>, mark: Mark) {
        match packet.kind {
            PacketType::Initial => {
                self.version = packet.version;
                if self.key_id.is_empty() {
                    self.key_id = packet.destination.to_vec();
                }
                // A token of an earlier connection or of a Retry validates the address.
                self.is_validated |= !packet.token.is_empty();
                if self.server_name.is_none() && self.answered.is_none() {
                    let hello = self.initials_reader.read(packet, &self.key_id);
                    self.server_name = hello.and_then(|hello| hello.server_name);
                }
            }
            PacketType::ZeroRtt => {
                self.is_early = true;
                self.ended.get_or_insert(mark);
            }
            PacketType::Handshake => self.is_validated = true,
            PacketType::OneRtt => {
                self.ended.get_or_insert(mark);
                self.is_validated = true;
            }
            PacketType::Retry | PacketType::VersionNegotiation => {}
        }
    }

    fn server_packet(&mut self, packet: &Packet<'_>, mark: Mark) {
        match packet.kind {
            PacketType::Retry => {
                self.retry.get_or_insert(mark);
                self.key_id = packet.source.to_vec();
            }
            PacketType::VersionNegotiation => {
                self.negotiation.get_or_insert(mark);
                self.key_id.clear();
            }
            PacketType::Initial | PacketType::ZeroRtt | PacketType::Handshake | PacketType::OneRtt => {}
        }
        self.answered.get_or_insert(mark);
    }

    /// Handles a datagram of the server: a wait ends if it had reached its limit.
    fn sends(&mut self, length: u64, mark: Mark) {
        let (received, sent) = (self.received_before, self.sent);
        if let (Some(since), Some(released)) = (self.last_sent, self.released.take()) {
            // Another datagram like this one would have exceeded the limit, and nothing sent so far did.
            let limit = AMPLIFICATION_LIMIT * received;
            let was_reached = sent + length > limit && sent <= limit;
            if was_reached && self.limited.len() < MAX_ROUNDS {
                self.limited.push(LimitedServer { since, released, resumed: mark, received, sent });
            }
        }
        self.last_sent = (!self.is_validated).then_some(mark);
        self.received_before = self.received;
        self.sent += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Time;

    /// A datagram of `length` bytes with one packet of this type, without its content.
    fn datagram(first: u8, length: usize) -> Vec<u8> {
        let mut datagram = vec![first, 0, 0, 0, 1, 1, 7, 1, 9];
        datagram.extend((first & 0x30 == 0).then_some(0));
        let rest = u16::try_from(length - datagram.len() - 2).unwrap();
        datagram.extend((0x4000 | rest).to_be_bytes());
        datagram.resize(length, 0);
        datagram
    }

    const INITIAL: u8 = 0xc0;
    const HANDSHAKE: u8 = 0xe0;

    fn opening(datagrams: &[(Side, u64, Vec<u8>)]) -> QuicOpening {
        let mark = |frame: u64, ms| Mark { at: Time::from_nanos(ms * 1_000_000), frame };
        let mut opening = QuicOpening::new(mark(1, datagrams[0].1));
        for (frame, (side, ms, bytes)) in (1..).zip(datagrams) {
            opening.datagram(*side, bytes, bytes.len() as u64, mark(frame, *ms));
        }
        opening
    }

    #[test]
    fn repeated_initials_without_response_are_rounds() {
        let initial = |ms| (Side::Client, ms, datagram(INITIAL, 1_200));
        let opening = opening(&[initial(0), initial(1), initial(300), initial(900)]);
        assert_eq!((opening.initials, opening.rounds.len(), opening.answered), (4, 3, None));
    }

    #[test]
    fn server_that_stops_at_three_times_what_it_received_is_limited() {
        let client = |ms, length| (Side::Client, ms, datagram(INITIAL, length));
        let server = |ms, length| (Side::Server, ms, datagram(HANDSHAKE, length));
        let whole = [
            client(0, 1_200),
            server(20, 1_200),
            server(20, 1_200),
            server(20, 1_200),
            client(40, 1_200),
            server(60, 1_200),
        ];
        let limited = opening(&whole).limited;
        assert_eq!(limited.len(), 1);
        assert_eq!((limited[0].received, limited[0].sent, limited[0].resumed.frame), (1_200, 3_600, 6));
        let small = [client(0, 1_200), server(20, 1_200), client(40, 1_200), server(60, 1_200)];
        assert_eq!(opening(&small).limited, []);
    }

    #[test]
    fn early_data_ends_the_wait_for_the_handshake() {
        let opening = opening(&[
            (Side::Client, 0, [datagram(INITIAL, 1_200), datagram(0xd0, 300)].concat()),
            (Side::Server, 20, datagram(HANDSHAKE, 1_200)),
        ]);
        assert!(opening.is_early && opening.ended.is_some_and(|ended| ended.frame == 1));
    }
}
