//! ICMP and ICMPv6 messages about a packet that was not delivered (RFC 792, RFC 1191, RFC 4443).
//!
//! Such a message quotes the beginning of the packet, which identifies its connection.

use core::net::{IpAddr, SocketAddr};

use super::ip::{IpHeader, TCP, UDP};
use super::{Packet, Transport};

/// A TCP or UDP packet that was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// Sender of the message: a router, a firewall, or the destination.
    pub reporter: IpAddr,
    /// Source of the undelivered packet.
    pub source: SocketAddr,
    /// Its destination.
    pub destination: SocketAddr,
    /// The sequence number of a TCP segment.
    pub seq: u32,
    /// The reason.
    pub reason: Reason,
}

/// The reason why a packet was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The packet exceeds the MTU of the next link; `mtu` is 0 where the router does not report it.
    TooBig {
        /// The MTU of that link, in bytes.
        mtu: u32,
    },
    /// No process listens on the port, or a firewall claims so.
    Port,
    /// No route to the host, or no such host on the last link.
    Host,
    /// A filter prohibits it.
    Prohibited,
    /// Its TTL expired.
    HopLimit,
}

impl Unreachable {
    /// Parses a message; `None` for other messages, and where the quoted packet is not TCP or UDP.
    pub fn read(packet: &Packet<'_>) -> Option<Self> {
        let Transport::Other { protocol, payload } = packet.transport else { return None };
        let (&[kind, code, _, _, a, b, c, d], quoted) = payload.split_first_chunk::<8>()?;
        let reason = match (protocol, kind, code) {
            (ICMP, 3, 4) => Reason::TooBig { mtu: u32::from(u16::from_be_bytes([c, d])) },
            (ICMP, 3, 3) | (ICMP_V6, 1, 4) => Reason::Port,
            (ICMP, 3, 9 | 10 | 13) | (ICMP_V6, 1, 1 | 5 | 6) => Reason::Prohibited,
            (ICMP, 3, _) | (ICMP_V6, 1, _) => Reason::Host,
            (ICMP, 11, 0) | (ICMP_V6, 3, 0) => Reason::HopLimit,
            (ICMP_V6, 2, _) => Reason::TooBig { mtu: u32::from_be_bytes([a, b, c, d]) },
            _ => return None,
        };
        let ip = IpHeader::read(quoted).ok().filter(|ip| matches!(ip.protocol, TCP | UDP))?;
        let (&[a, b, c, d, e, f, g, h], _) = ip.payload.split_first_chunk::<8>()?;
        Some(Self {
            reporter: packet.source,
            source: SocketAddr::new(ip.source, u16::from_be_bytes([a, b])),
            destination: SocketAddr::new(ip.destination, u16::from_be_bytes([c, d])),
            seq: u32::from_be_bytes([e, f, g, h]),
            reason,
        })
    }
}

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Flags, TcpBuilder};

    /// Returns a message from 10.9.9.9 (or fe80::9) that quotes the first 28 (or 48) bytes of a segment.
    fn message(kind: u8, code: u8, parameter: [u8; 4], is_v6: bool) -> Vec<u8> {
        let sockets: (SocketAddr, SocketAddr) = if is_v6 {
            ("[fd00::1]:4000".parse().unwrap(), "[fd00::2]:80".parse().unwrap())
        } else {
            ("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:80".parse().unwrap())
        };
        let (source, destination) = sockets;
        let mut quoted = Vec::new();
        TcpBuilder { source, destination, seq: 77, ack: 0, flags: Flags::SYN, window: 9, options: &[] }
            .write(&[], &mut quoted)
            .unwrap();
        quoted.truncate(if is_v6 { 48 } else { 28 });
        let icmp = [&[kind, code, 0, 0][..], &parameter, &quoted].concat();
        let length = u8::try_from(icmp.len()).unwrap();
        let ip = if is_v6 {
            let mut ip = vec![0x60, 0, 0, 0, 0, length, 58, 64];
            ip.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9].repeat(2));
            ip
        } else {
            vec![0x45, 0, 0, 20 + length, 0, 0, 0, 0, 64, 1, 0, 0, 10, 9, 9, 9, 10, 0, 0, 1]
        };
        [ip, icmp].concat()
    }

    #[test]
    fn quoted_packet_and_reason_are_parsed() {
        for (kind, code, parameter, is_v6, reason) in [
            (3, 4, [0, 0, 5, 0x14], false, Reason::TooBig { mtu: 1_300 }),
            (3, 3, [0; 4], false, Reason::Port),
            (3, 1, [0; 4], false, Reason::Host),
            (3, 13, [0; 4], false, Reason::Prohibited),
            (11, 0, [0; 4], false, Reason::HopLimit),
            (2, 0, [0, 0, 5, 0], true, Reason::TooBig { mtu: 1_280 }),
            (1, 4, [0; 4], true, Reason::Port),
            (1, 1, [0; 4], true, Reason::Prohibited),
        ] {
            let bytes = message(kind, code, parameter, is_v6);
            let read = Unreachable::read(&Packet::read(&bytes).unwrap()).unwrap();
            assert_eq!((read.reason, read.seq, read.source.port()), (reason, 77, 4_000));
            assert_eq!(read.destination.port(), 80);
            for short in 0..bytes.len() {
                let _ = Packet::read(&bytes[..short]).ok().as_ref().map(Unreachable::read);
            }
        }
    }

    #[test]
    fn other_messages_are_skipped() {
        let echo = message(8, 0, [0; 4], false);
        assert_eq!(Unreachable::read(&Packet::read(&echo).unwrap()), None);
    }
}
