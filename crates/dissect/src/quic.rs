//! The opening of a QUIC connection without keys, by its long headers: Initial packets and their repetitions, Retry, Version
//! Negotiation, the end of the handshake, and the limit on what a server may send to an unvalidated address.
//!
//! Packets with short headers are encrypted: the client's first one shows that its handshake is complete. With a key log
//! [`opened`] reads them.

mod end;
mod hello;
mod messages;
pub mod opened;
mod silence;
mod spans;
mod unfinished;

use quic::initial::{ClientInitials, begins_connection};
use quic::packet::{Packet, PacketType, packets};
use quic::{AMPLIFICATION_LIMIT, MIN_INITIAL_BYTES};
use wire::Duration;

use crate::{Mark, Side};
use hello::Hello;
pub use hello::{CloseReason, LostHello};
pub use silence::Silence;
pub use unfinished::{UnfinishedEnd, UnfinishedHandshake};

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
    hello: Hello,
    progress: unfinished::Progress,
    silences: silence::Silences,
    initials_reader: ClientInitials,
    /// Connection ID from which the keys of Initial packets follow; before it, that of the client's first packet.
    key_id: Vec<u8>,
    first_id: Vec<u8>,
    /// The client's first datagrams, each with the bytes up to it.
    received: Vec<(Mark, u64)>,
    /// Bytes of the server before its last datagram and with it.
    sent: [u64; 2],
    /// The client's datagram that validates its address.
    validated: Option<Mark>,
    /// The server's last datagram before it had validated the client's address.
    last_sent: Option<Mark>,
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
            hello: Hello::default(),
            progress: unfinished::Progress::default(),
            silences: silence::Silences::default(),
            initials_reader: ClientInitials::default(),
            key_id: Vec::new(),
            first_id: Vec::new(),
            received: Vec::new(),
            sent: [0; 2],
            validated: None,
            last_sent: None,
        }
    }

    /// Handles a datagram of `side` with `length` bytes, `payload` of them captured.
    pub fn datagram(&mut self, side: Side, payload: &[u8], length: u64, mark: Mark) {
        if self.is_over() {
            self.silences.datagram(side, mark);
            return;
        }
        match side {
            Side::Client => self.receives(length, mark),
            Side::Server => self.sends(payload, length, mark),
        }
        let [mut is_initial, mut is_retry, mut is_handshake] = [false; 3];
        for packet in packets(payload) {
            is_initial |= packet.kind == PacketType::Initial;
            is_retry |= packet.kind == PacketType::Retry;
            is_handshake |= !matches!(packet.kind, PacketType::Retry | PacketType::VersionNegotiation);
            match side {
                Side::Client => self.client_packet(&packet, mark),
                Side::Server => self.server_packet(&packet, mark),
            }
            self.hello.packet(side, &packet, &self.key_id, mark);
        }
        self.progress.datagram(side, is_handshake, is_retry, mark);
        if side == Side::Client && is_initial && self.answered.is_none() {
            self.note_round(mark);
        }
    }

    /// Returns whether a client's datagram begins another connection between the same ports.
    pub fn is_of_another(&self, payload: &[u8]) -> bool {
        let is_known = |id: &[u8]| self.key_id.is_empty() || id == self.key_id || id == self.first_id;
        packets(payload).next().is_some_and(|packet| !is_known(packet.destination))
            && begins_connection(payload)
    }

    /// Returns the times after the handshake in which a side sent in vain.
    pub fn silences(&self) -> impl Iterator<Item = Silence> {
        self.silences.all()
    }

    /// Returns whether nothing more is to be read: the handshake is over.
    const fn is_over(&self) -> bool {
        self.ended.is_some()
            && self.answered.is_some()
            && self.validated.is_some()
            && self.last_sent.is_none()
    }

    /// Returns the round trips that the handshake took, as agreed.
    pub fn round_trips(&self) -> u32 {
        1 + u32::from(self.retry.is_some()) + u32::from(self.negotiation.is_some())
    }

    /// Returns the part of the Client Hello that was lost, if the server's handshake waited for it.
    pub fn lost_hello(&self) -> Option<LostHello> {
        self.hello.lost(self.answered)
    }

    /// Returns the datagram that ended the handshake with an error, its side, and why.
    pub fn closed(&self) -> Option<(Mark, Side, CloseReason)> {
        self.hello.closed()
    }

    /// Returns the end of a handshake that was neither completed nor closed.
    pub fn unfinished(&self) -> Option<UnfinishedHandshake> {
        let is_over = self.ended.is_some() || self.hello.is_closed();
        let limit = AMPLIFICATION_LIMIT * self.received.last().map_or(0, |(_, bytes)| *bytes);
        let is_limited = self.validated.is_none() && self.sent[1] + MIN_INITIAL_BYTES as u64 > limit;
        (!is_over).then(|| self.progress.unfinished(self.negotiation.is_some(), is_limited)).flatten()
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
                for id in [&mut self.key_id, &mut self.first_id] {
                    if id.is_empty() {
                        *id = packet.destination.to_vec();
                    }
                }
                // A token of an earlier connection or of a Retry validates the address.
                if !packet.token.is_empty() {
                    self.validated.get_or_insert(mark);
                }
                if self.server_name.is_none() && self.answered.is_none() {
                    let hello = self.initials_reader.read(packet, &self.key_id);
                    self.server_name = hello.and_then(|hello| hello.server_name);
                }
            }
            PacketType::ZeroRtt => {
                self.is_early = true;
                self.ended.get_or_insert(mark);
            }
            PacketType::Handshake => {
                self.validated.get_or_insert(mark);
            }
            PacketType::OneRtt => {
                self.ended.get_or_insert(mark);
                self.validated.get_or_insert(mark);
            }
            PacketType::Retry | PacketType::VersionNegotiation => {}
        }
    }

    fn server_packet(&mut self, packet: &Packet<'_>, mark: Mark) {
        match packet.kind {
            PacketType::Retry => {
                self.retry.get_or_insert(mark);
                self.key_id = packet.source.to_vec();
                self.hello = Hello::default();
            }
            PacketType::VersionNegotiation => {
                self.negotiation.get_or_insert(mark);
                self.key_id.clear();
                self.hello = Hello::default();
            }
            PacketType::Initial | PacketType::ZeroRtt | PacketType::Handshake | PacketType::OneRtt => {}
        }
        self.answered.get_or_insert(mark);
    }

    fn receives(&mut self, length: u64, mark: Mark) {
        let before = self.received.last().map_or(0, |(_, bytes)| *bytes);
        if self.received.len() < MAX_ROUNDS {
            self.received.push((mark, before + length));
        }
    }

    /// Handles a datagram of the server: a wait ends if it had reached its limit.
    fn sends(&mut self, payload: &[u8], length: u64, mark: Mark) {
        if let Some(wait) = self.last_sent.and_then(|since| self.limited_since(since, payload, length, mark))
            && self.limited.len() < MAX_ROUNDS
        {
            self.limited.push(wait);
        }
        // The datagram that validates the address may be what the server waited for, and counts once.
        self.last_sent = (!self.has_validated(mark)).then_some(mark);
        self.sent = [self.sent[1], self.sent[1] + length];
    }

    /// Returns the time from a client's datagram to the server's first response, as captured: what the client sent later than that
    /// before a datagram of the server was still in flight.
    fn distance(&self) -> Option<Duration> {
        let answered = self.answered?;
        let requested = self.received.iter().take_while(|(sent, _)| sent.frame < answered.frame).last()?.0;
        Some(answered.at.since(requested.at))
    }

    /// Returns whether the server had validated the client's address when it sent a datagram.
    fn has_validated(&self, sent: Mark) -> bool {
        let distance = self.distance().unwrap_or_default();
        self.validated.is_some_and(|validated| validated.at + distance <= sent.at)
    }

    /// Returns the wait of a server that continues with a datagram, if the limit held it since its last one.
    fn limited_since(
        &self,
        since: Mark,
        payload: &[u8],
        length: u64,
        resumed: Mark,
    ) -> Option<LimitedServer> {
        let distance = self.distance()?;
        let count = self.received.partition_point(|(sent, _)| sent.at + distance <= since.at);
        let received = count.checked_sub(1).and_then(|last| self.received.get(last))?.1;
        let released = self.received.get(count)?.0;
        let (limit, [before, sent]) = (AMPLIFICATION_LIMIT * received, self.sent);
        // It may begin a datagram below the limit and not another one. After the client's Handshake packet no limit holds:
        // only the rest of a handshake shows that it had more to send.
        let is_reached = before < limit && sent + length > limit;
        (is_reached && (!self.has_validated(resumed) || continues_handshake(payload)))
            .then_some(LimitedServer { since, released, resumed, received, sent })
    }
}

/// Returns whether a server's datagram has more of a handshake than acknowledgements.
fn continues_handshake(payload: &[u8]) -> bool {
    /// Upper bound of a packet number, an ACK frame of a few ranges and the tag (RFC 9000, section 19.3; RFC 9001, section
    /// 5.3), and lower than what remains of a Finished message.
    const ACK_BYTES: usize = 4 + 24 + 16;
    packets(payload).any(|packet| {
        let is_long = matches!(packet.kind, PacketType::Initial | PacketType::Handshake);
        is_long && packet.bytes.len() > packet.number_at + ACK_BYTES
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quic::sealer::Sealer;
    use tls::decrypt::Sender;
    use tls::keylog::Secrets;
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

    /// A sealed Initial packet with this number and these frames.
    fn sealed(sealer: &mut Sealer, sender: Sender, number: u8, frames: &[&[u8]]) -> Vec<u8> {
        const NUMBER_AT: usize = 12;
        let mut bytes = datagram(INITIAL, 1_200);
        if sender == Sender::Server {
            (bytes[6], bytes[8]) = (9, 8);
        }
        bytes[NUMBER_AT] = number;
        let frames = frames.concat();
        bytes[NUMBER_AT + 1..][..frames.len()].copy_from_slice(&frames);
        sealer.seal(sender, &mut bytes);
        bytes
    }

    #[test]
    fn server_that_lost_a_part_of_the_hello_begins_after_its_retransmission() {
        let mut sealer = Sealer::new(Secrets::default());
        let [first, second, reply]: [&[u8]; 3] = [&[6, 0, 2, 1, 2], &[6, 2, 2, 3, 4], &[6, 0, 1, 5]];
        let (ack_first, ack_third): (&[u8], &[u8]) = (&[2, 0, 0, 0, 0], &[2, 2, 0, 1, 0, 0, 0]);
        let mut packet = |sender, number, frames: &[&[u8]]| sealed(&mut sealer, sender, number, frames);
        let lost = opening(&[
            (Side::Client, 0, packet(Sender::Client, 0, &[first])),
            (Side::Client, 0, packet(Sender::Client, 1, &[second])),
            (Side::Server, 30, packet(Sender::Server, 0, &[ack_first])),
            (Side::Client, 90, packet(Sender::Client, 2, &[second])),
            (Side::Server, 120, packet(Sender::Server, 1, &[ack_third, reply])),
        ]);
        let LostHello { lost, acknowledged, retransmitted, replied, .. } = lost.lost_hello().unwrap();
        assert_eq!(
            [lost, acknowledged.unwrap(), retransmitted, replied].map(|mark| mark.frame),
            [2, 3, 4, 5]
        );
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

    /// Waits of a server that sent these datagrams after 20 ms, and `after` in response to the client's `release` at 40 ms.
    fn limited(lengths: &[usize], release: &[u8], after: &[u8]) -> Vec<(u64, u64, u64)> {
        let mut all = vec![(Side::Client, 0, datagram(INITIAL, 1_200))];
        all.extend(lengths.iter().map(|length| (Side::Server, 20, datagram(HANDSHAKE, *length))));
        all.extend([(Side::Client, 40, release.to_vec()), (Side::Server, 60, after.to_vec())]);
        opening(&all)
            .limited
            .iter()
            .map(|wait| (wait.sent, wait.released.frame, wait.resumed.frame))
            .collect()
    }

    #[test]
    fn datagram_that_validates_the_address_releases_the_rest_of_the_handshake() {
        let (ack, one_rtt) = (datagram(HANDSHAKE, 60), [&[0x40; 80][..]].concat());
        let full = [1_200; 3];
        assert_eq!(limited(&full, &ack, &datagram(HANDSHAKE, 700)), [(3_600, 5, 6)]);
        // The handshake was complete: an acknowledgement, and what follows it.
        let done = [datagram(HANDSHAKE, 50), one_rtt].concat();
        assert_eq!(limited(&full, &ack, &done), []);
        assert_eq!(limited(&[1_200, 900], &ack, &datagram(HANDSHAKE, 700)), []);
    }

    #[test]
    fn last_datagram_below_the_limit_may_exceed_it() {
        let rest = datagram(HANDSHAKE, 700);
        let ack = datagram(INITIAL, 1_200);
        assert_eq!(limited(&[1_250, 1_250, 1_250], &ack, &rest), [(3_750, 5, 6)]);
        // A server that ignores the limit did not wait for it.
        assert_eq!(limited(&[1_250, 1_250, 1_250, 1_250], &ack, &rest), []);
    }

    #[test]
    fn datagram_still_in_flight_does_not_raise_the_limit() {
        let server = |ms| (Side::Server, ms, datagram(HANDSHAKE, 1_200));
        let client = |ms| (Side::Client, ms, datagram(INITIAL, 1_200));
        // Captured at the client, which acknowledges the first datagrams while the last one is coming.
        let all = [client(0), server(20), server(20), client(21), server(22), server(41)];
        let limited = opening(&all).limited;
        assert_eq!(limited.len(), 1, "{limited:?}");
        assert_eq!((limited[0].received, limited[0].since.frame, limited[0].released.frame), (1_200, 5, 4));
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
