//! Content of a client's Initial packets: CRYPTO frames (RFC 9000, section 19.6), in which the Client Hello is.
//!
//! A hello with post-quantum keys fills two packets, and some clients split it into pieces out of order.

use std::collections::BTreeMap;

use tls::ClientHello;
use tls::message::{MessageReader, MessageType};

use crate::key::{InitialKeys, Sender};
use crate::packet::{Packet, PacketType, variable};

/// Reader of a client's Initial packets.
#[derive(Clone, Debug, Default)]
pub struct ClientInitials {
    /// Pieces of the handshake, by their offset.
    pieces: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
    /// Number of packets opened.
    opened: u32,
}

/// Maximum number of bytes stored, and of packets opened.
const MAX_BYTES: usize = 1 << 14;
const MAX_PACKETS: u32 = 16;

impl ClientInitials {
    /// Reads a packet. `destination` is the connection ID of the keys: that of the client's first packet, or the
    /// source of the last Retry. Returns the hello once it is complete.
    pub fn read(&mut self, packet: &Packet<'_>, destination: &[u8]) -> Option<ClientHello> {
        if packet.kind != PacketType::Initial || self.opened >= MAX_PACKETS {
            return None;
        }
        self.opened += 1;
        let keys = InitialKeys::new(packet.version, destination, Sender::Client)?;
        self.frames(&keys.open(packet)?);
        self.hello()
    }

    /// Stores the pieces in CRYPTO frames; stops at a frame that an Initial packet cannot have.
    fn frames(&mut self, frames: &[u8]) {
        let mut at = 0;
        while at < frames.len() {
            let Some((offset, piece)) = next_frame(frames, &mut at) else { return };
            if !piece.is_empty() && self.bytes + piece.len() <= MAX_BYTES {
                self.bytes += piece.len();
                self.pieces.insert(offset, piece.to_vec());
            }
        }
    }

    fn hello(&self) -> Option<ClientHello> {
        let (mut reader, mut next, mut hello) = (MessageReader::default(), 0, None);
        for (offset, piece) in &self.pieces {
            let known = usize::try_from(u64::checked_sub(next, *offset)?).ok()?;
            let Some(fresh) = piece.get(known..) else { continue };
            next += fresh.len() as u64;
            reader.read(fresh, &mut |message| {
                if message.kind == MessageType::CLIENT_HELLO {
                    hello = ClientHello::read(message.body);
                }
            });
        }
        hello
    }
}

/// Reads the next frame; returns the offset and the bytes of CRYPTO, and an empty piece for other frames.
fn next_frame<'a>(frames: &'a [u8], at: &mut usize) -> Option<(u64, &'a [u8])> {
    const NOTHING: (u64, &[u8]) = (0, &[]);
    match variable(frames, at)? {
        // PADDING and PING.
        0 | 1 => Some(NOTHING),
        kind @ (2 | 3) => {
            skip_ack(frames, at, kind == 3)?;
            Some(NOTHING)
        }
        6 => {
            let offset = variable(frames, at)?;
            let length = usize::try_from(variable(frames, at)?).ok()?;
            let piece = frames.get(*at..at.checked_add(length)?)?;
            *at += length;
            Some((offset, piece))
        }
        _ => None,
    }
}

fn skip_ack(frames: &[u8], at: &mut usize, has_ecn: bool) -> Option<()> {
    const MAX_RANGES: u64 = 1_024;
    variable(frames, at)?;
    variable(frames, at)?;
    let ranges = variable(frames, at)?;
    let values = 1 + 2 * ranges.min(MAX_RANGES) + if has_ecn { 3 } else { 0 };
    for _ in 0..values {
        variable(frames, at)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::packets;

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
    }

    #[test]
    fn packet_of_other_keys_is_not_opened() {
        let datagram = bytes(CLIENT_INITIAL);
        let packet = packets(&datagram).next().unwrap();
        assert_eq!(ClientInitials::default().read(&packet, &[1, 2, 3]), None);
        let mut damaged = datagram.clone();
        *damaged.last_mut().unwrap() ^= 1;
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
