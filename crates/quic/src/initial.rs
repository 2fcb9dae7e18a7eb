//! Content of Initial packets: CRYPTO frames (RFC 9000, section 19.6), in which the Client Hello is, and acknowledgements.
//!
//! A hello with post-quantum keys fills two packets, and some clients split it into pieces out of order.

use std::ops::{Range, RangeInclusive};

use tls::ClientHello;
use tls::decrypt::Sender;
use tls::message::MessageType;

use crate::frame::{Frame, frames};
use crate::handshake::HandshakeBytes;
use crate::key::Protection;
use crate::packet::{Packet, PacketType, packets};

/// Returns whether a client's datagram begins a connection, or repeats its beginning: the keys of its Initial packet follow from the
/// packet's own destination connection ID (RFC 9001, section 5.2). Later ones have an ID of the server's, and the first one's keys.
pub fn begins_connection(datagram: &[u8]) -> bool {
    let Some(packet) = packets(datagram).next().filter(|packet| packet.kind == PacketType::Initial) else {
        return false;
    };
    let keys = Protection::initial(packet.version, packet.destination, Sender::Client);
    keys.is_some_and(|keys| keys.open(&packet, None).is_some())
}

/// Content of one Initial packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitialPacket {
    /// Packet number.
    pub number: u64,
    /// Positions of its bytes of the handshake.
    pub crypto: Vec<Range<u64>>,
    /// Numbers of the other side's packets that it acknowledges.
    pub acknowledged: Vec<RangeInclusive<u64>>,
    /// Error with which it closes the connection.
    pub closed: Option<u64>,
}

impl InitialPacket {
    /// Opens a packet of `sender`. `destination` is the connection ID of the keys: that of the client's first packet, or the source of
    /// the last Retry. Returns `None` for another type, a packet that is cut, and one of other keys.
    pub fn open(packet: &Packet<'_>, destination: &[u8], sender: Sender) -> Option<Self> {
        if packet.kind != PacketType::Initial {
            return None;
        }
        let keys = Protection::initial(packet.version, destination, sender)?;
        let (number, opened) = keys.open(packet, None)?;
        let mut content = Self { number, ..Self::default() };
        for frame in frames(&opened) {
            match frame {
                Frame::Crypto(from, bytes) => {
                    content.crypto.push(from..from.saturating_add(bytes.len() as u64))
                }
                Frame::Ack(ack) => content.acknowledged.extend(ack.ranges),
                Frame::ConnectionClose(_, error) => content.closed = Some(error),
                _ => {}
            }
        }
        Some(content)
    }
}

/// Reader of a client's Initial packets.
#[derive(Clone, Debug, Default)]
pub struct ClientInitials {
    bytes: HandshakeBytes,
    /// Number of packets opened.
    opened: u32,
}

/// Maximum number of packets opened.
const MAX_PACKETS: u32 = 16;

impl ClientInitials {
    /// Reads a packet. `destination` is the connection ID of the keys: that of the client's first packet, or the
    /// source of the last Retry. Returns the hello once it is complete.
    pub fn read(&mut self, packet: &Packet<'_>, destination: &[u8]) -> Option<ClientHello> {
        if packet.kind != PacketType::Initial || self.opened >= MAX_PACKETS {
            return None;
        }
        self.opened += 1;
        let keys = Protection::initial(packet.version, destination, Sender::Client)?;
        let (_, opened) = keys.open(packet, None)?;
        self.frames(&opened);
        self.hello()
    }

    fn frames(&mut self, packet: &[u8]) {
        for frame in frames(packet) {
            if let Frame::Crypto(offset, piece) = frame {
                self.bytes.add(offset, piece);
            }
        }
    }

    fn hello(&self) -> Option<ClientHello> {
        let mut hello = None;
        self.bytes.messages(&mut |message| {
            if message.kind == MessageType::CLIENT_HELLO {
                hello = ClientHello::read(message.body);
            }
        });
        hello
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT_INITIAL: &str = include_str!("../tests/rfc9001-a2.txt");

    fn bytes(digits: &str) -> Vec<u8> {
        let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let of = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(of).collect()
    }

    #[test]
    fn client_initial_of_rfc_9001_is_opened() {
        let datagram = bytes(CLIENT_INITIAL);
        let packet = packets(&datagram).next().unwrap();
        let id = packet.destination.to_vec();
        let hello = ClientInitials::default().read(&packet, &id).unwrap();
        assert_eq!(hello.server_name.as_deref(), Some("example.com"));
        assert!(hello.offers_tls13);
        assert!(begins_connection(&datagram));
        let content = InitialPacket::open(&packet, &id, Sender::Client).unwrap();
        assert_eq!((content.number, content.crypto.first()), (2, Some(&(0..241))));
        assert_eq!(InitialPacket::open(&packet, &id, Sender::Server), None);
    }

    #[test]
    fn packet_of_other_keys_is_not_opened() {
        let datagram = bytes(CLIENT_INITIAL);
        let packet = packets(&datagram).next().unwrap();
        assert_eq!(ClientInitials::default().read(&packet, &[1, 2, 3]), None);
        let mut damaged = datagram.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert!(!begins_connection(&damaged) && !begins_connection(&[]));
        let packet = packets(&damaged).next().unwrap();
        assert_eq!(ClientInitials::default().read(&packet, packet.destination), None);
    }

    #[test]
    fn pieces_out_of_order_are_joined() {
        let body: Vec<u8> = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
        let message: Vec<u8> = [&[1, 0, 0, u8::try_from(body.len()).unwrap()], &body[..]].concat();
        let mut initials = ClientInitials::default();
        let frame = |from: usize, to: usize| {
            let offset = u8::try_from(from).unwrap();
            [&[6, offset, u8::try_from(to - from).unwrap()], &message[from..to]].concat()
        };
        initials.frames(&[frame(20, message.len()), vec![0, 0, 1]].concat());
        assert_eq!(initials.hello(), None);
        initials.frames(&frame(0, 20));
        assert!(initials.hello().is_some());
    }
}
