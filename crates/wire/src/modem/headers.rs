//! TCP/IP header compression for serial lines (RFC 1144): the compressor, for IPv4.
//!
//! A packet of a known connection begins with its changes since the previous packet, usually in three to seven bytes
//! instead of forty.

/// PPP's protocol numbers (RFC 1332): IP, and both forms of RFC 1144.
const IP: u8 = 0x21;
const COMPRESSED: u8 = 0x2d;
const UNCOMPRESSED: u8 = 0x2f;

// Bits of the first byte.
const NEW_CONNECTION: u8 = 0x40;
const NEW_ID: u8 = 0x20;
const PUSH: u8 = 0x10;
const NEW_SEQUENCE: u8 = 0x08;
const NEW_ACKNOWLEDGEMENT: u8 = 0x04;
const NEW_WINDOW: u8 = 0x02;
const URGENT: u8 = 0x01;
/// Sequence and acknowledgement both grew by the previous payload.
const SPECIAL_ECHO: u8 = NEW_SEQUENCE | NEW_WINDOW | URGENT;
/// The sequence grew by the previous payload.
const SPECIAL_DATA: u8 = NEW_SEQUENCE | NEW_ACKNOWLEDGEMENT | NEW_WINDOW | URGENT;

/// Maximum number of connections.
const SLOTS: usize = 16;

/// Compressor of RFC 1144.
#[derive(Clone, Debug, Default)]
pub(super) struct Compressor {
    /// Headers of the last packets, each with its connection's number, most recently used last.
    connections: Vec<(u8, Header)>,
    last: Option<u8>,
}

/// IP and TCP headers of a packet.
#[derive(Clone, Debug)]
struct Header {
    bytes: Vec<u8>,
    payload: u32,
}

impl Compressor {
    /// Writes the packet into `out`, which is empty, and returns PPP's protocol number for it.
    pub(super) fn compress(&mut self, packet: &[u8], out: &mut Vec<u8>) -> u8 {
        let Some(header) = Header::parse(packet) else {
            out.extend_from_slice(packet);
            return IP;
        };
        let length = header.bytes.len();
        let index = self.connections.iter().position(|(_, previous)| previous.is_same_connection(&header));
        let Some(index) = index else {
            let number = if self.connections.len() < SLOTS {
                u8::try_from(self.connections.len()).unwrap_or(0)
            } else {
                self.connections.remove(0).0
            };
            return self.uncompressed(number, header, packet, out);
        };
        let (number, previous) = self.connections.remove(index);
        match header.changes_since(&previous, out) {
            Some(mask) => {
                let check = &header.bytes[header.tcp_offset() + 16..header.tcp_offset() + 18];
                let mut first = vec![mask];
                if self.last != Some(number) {
                    first[0] |= NEW_CONNECTION;
                    first.push(number);
                }
                first.extend_from_slice(check);
                out.splice(0..0, first);
                out.extend_from_slice(&packet[length..]);
                self.last = Some(number);
                self.connections.push((number, header));
                COMPRESSED
            }
            None => self.uncompressed(number, header, packet, out),
        }
    }

    fn uncompressed(&mut self, number: u8, header: Header, packet: &[u8], out: &mut Vec<u8>) -> u8 {
        out.clear();
        out.extend_from_slice(packet);
        // The connection number replaces the protocol field.
        out[9] = number;
        self.last = Some(number);
        self.connections.push((number, header));
        UNCOMPRESSED
    }
}

impl Header {
    /// Parses the headers of a segment that can be compressed: not a fragment, without SYN, FIN or RST, and with ACK.
    fn parse(packet: &[u8]) -> Option<Self> {
        let first = packet.first()?;
        let ip = usize::from(first & 15) * 4;
        let is_tcp = first >> 4 == 4 && ip >= 20 && packet.get(9) == Some(&6);
        let is_whole = packet.get(6)? & 0x3f == 0 && packet.get(7) == Some(&0);
        let tcp_length = usize::from(packet.get(ip + 12)? >> 4) * 4;
        let flags = packet.get(ip + 13)?;
        let end = ip + tcp_length;
        if !is_tcp || !is_whole || flags & 0x17 != 0x10 || tcp_length < 20 || packet.len() < end {
            return None;
        }
        let payload = u32::try_from(packet.len() - end).ok()?;
        Some(Self { bytes: packet[..end].to_vec(), payload })
    }

    fn tcp_offset(&self) -> usize {
        usize::from(self.bytes[0] & 15) * 4
    }

    fn is_same_connection(&self, other: &Self) -> bool {
        let (own_tcp, other_tcp) = (self.tcp_offset(), other.tcp_offset());
        self.bytes[12..20] == other.bytes[12..20]
            && self.bytes[own_tcp..own_tcp + 4] == other.bytes[other_tcp..other_tcp + 4]
    }

    fn u16_at(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn u32_at(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]])
    }

    /// Appends the changes to `out` and returns the first byte; `None` if the packet must be sent uncompressed.
    fn changes_since(&self, previous: &Self, out: &mut Vec<u8>) -> Option<u8> {
        let tcp_offset = self.tcp_offset();
        let same = |range: std::ops::Range<usize>| self.bytes.get(range.clone()) == previous.bytes.get(range);
        // Version, header lengths, type of service, TTL, and options.
        let is_alike = self.bytes.len() == previous.bytes.len()
            && same(0..2)
            && same(6..9)
            && same(20..tcp_offset)
            && self.bytes[tcp_offset + 12] == previous.bytes[tcp_offset + 12]
            && same(tcp_offset + 20..self.bytes.len());
        let is_urgent = self.bytes[tcp_offset + 13] & 0x20 != 0;
        if !is_alike || (!is_urgent && self.u16_at(tcp_offset + 18) != previous.u16_at(tcp_offset + 18)) {
            return None;
        }
        let mut mask = 0;
        if is_urgent {
            encode(self.u16_at(tcp_offset + 18), out);
            mask |= URGENT;
        }
        let window = self.u16_at(tcp_offset + 14).wrapping_sub(previous.u16_at(tcp_offset + 14));
        if window != 0 {
            encode(window, out);
            mask |= NEW_WINDOW;
        }
        let acknowledged =
            u16::try_from(self.u32_at(tcp_offset + 8).wrapping_sub(previous.u32_at(tcp_offset + 8))).ok()?;
        if acknowledged != 0 {
            encode(acknowledged, out);
            mask |= NEW_ACKNOWLEDGEMENT;
        }
        let sent =
            u16::try_from(self.u32_at(tcp_offset + 4).wrapping_sub(previous.u32_at(tcp_offset + 4))).ok()?;
        if sent != 0 {
            encode(sent, out);
            mask |= NEW_SEQUENCE;
        }
        let follows = u32::from(sent) == previous.payload;
        match mask {
            // Data after a bare acknowledgement; otherwise a duplicate.
            0 if self.payload == previous.payload || previous.payload != 0 => return None,
            SPECIAL_ECHO | SPECIAL_DATA => return None,
            mixed if mixed == NEW_SEQUENCE | NEW_ACKNOWLEDGEMENT && follows && sent == acknowledged => {
                out.clear();
                mask = SPECIAL_ECHO;
            }
            NEW_SEQUENCE if follows => {
                out.clear();
                mask = SPECIAL_DATA;
            }
            _ => {}
        }
        let id = self.u16_at(4).wrapping_sub(previous.u16_at(4));
        if id != 1 {
            encode(id, out);
            mask |= NEW_ID;
        }
        if self.bytes[tcp_offset + 13] & 0x08 != 0 {
            mask |= PUSH;
        }
        Some(mask)
    }
}

/// Encodes a change in one byte, or in three for zero and for values above 255.
fn encode(change: u16, out: &mut Vec<u8>) {
    match u8::try_from(change) {
        Ok(small @ 1..) => out.push(small),
        Ok(0) | Err(_) => {
            out.push(0);
            out.extend(change.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a segment of port 80 with `payload` bytes.
    fn segment(id: u16, sequence: u32, flags: u8, payload: usize) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet[4..6].copy_from_slice(&id.to_be_bytes());
        packet.extend([0, 80, 4, 0]);
        packet.extend(sequence.to_be_bytes());
        packet.extend([0, 0, 0, 9, 0x50, flags, 16, 0, 0xab, 0xcd, 0, 0]);
        packet.extend(vec![7; payload]);
        packet
    }

    fn sizes(packets: &[Vec<u8>]) -> Vec<(u8, usize)> {
        let mut compressor = Compressor::default();
        let compress = |packet: &Vec<u8>| {
            let mut out = Vec::new();
            (compressor.compress(packet, &mut out), out.len())
        };
        packets.iter().map(compress).collect()
    }

    #[test]
    fn rfc1144_consecutive_data_takes_three_bytes_of_header() {
        let packets = [
            segment(1, 0, 0x02, 0),
            segment(2, 1, 0x10, 100),
            segment(3, 101, 0x10, 100),
            segment(4, 201, 0x18, 50),
            segment(9, 251, 0x10, 50),
        ];
        assert_eq!(
            sizes(&packets),
            [(IP, 40), (UNCOMPRESSED, 140), (COMPRESSED, 103), (COMPRESSED, 53), (COMPRESSED, 54)]
        );
    }

    #[test]
    fn rfc1144_duplicates_and_large_changes_are_sent_uncompressed() {
        let packets = [
            segment(1, 1, 0x10, 100),
            segment(2, 1, 0x10, 100),
            segment(3, 200_000, 0x10, 100),
            segment(4, 201_000, 0x10, 100),
        ];
        let kinds = sizes(&packets).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>();
        assert_eq!(kinds, [UNCOMPRESSED, UNCOMPRESSED, UNCOMPRESSED, COMPRESSED]);
    }

    #[test]
    fn non_segments_pass_unchanged() {
        for packet in [vec![], vec![0x45; 10], vec![0x4f; 60], vec![0x60; 60], vec![0xff; 41]] {
            let mut out = Vec::new();
            assert_eq!((Compressor::default().compress(&packet, &mut out), out), (IP, packet));
        }
    }
}
