//! The hosts and flags of a plain TCP packet, which determine the thread that handles it.
//!
//! The packet is not checked: its handler parses it in full and counts it if it is damaged.

use core::net::IpAddr;

use wire::packet::Flags;

/// Hosts and flags of a TCP packet outside tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeekedSegment {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Flags that open or end a connection, and ACK.
    pub flags: Flags,
}

/// Offset of the flags in TCP's header.
const FLAGS: usize = 13;
const TCP: u8 = 6;

impl PeekedSegment {
    /// Reads an IP packet; `None` if that needs a full parse: a fragment, an IPv6 extension header, a tunnel, another
    /// protocol.
    pub fn read(ip: &[u8]) -> Option<Self> {
        match ip.first()? >> 4 {
            4 => {
                let fixed: &[u8; 20] = ip.first_chunk()?;
                let [first, _, _, _, _, _, offset, offset_low, _, TCP, _, _, a, b, c, d, e, f, g, h] = *fixed
                else {
                    return None;
                };
                let header = usize::from(first & 0x0f) * 4;
                let is_fragment = offset & 0x3f != 0 || offset_low != 0;
                let flags = flags(*ip.get(header + FLAGS)?);
                let is_plain = header >= fixed.len() && !is_fragment;
                is_plain.then_some(Self {
                    source: [a, b, c, d].into(),
                    destination: [e, f, g, h].into(),
                    flags,
                })
            }
            6 => {
                let (&[_, _, _, _, _, _, TCP, _], rest) = ip.split_first_chunk::<8>()? else { return None };
                let (source, rest) = rest.split_first_chunk::<16>()?;
                let (destination, tcp) = rest.split_first_chunk::<16>()?;
                let flags = flags(*tcp.get(FLAGS)?);
                Some(Self { source: (*source).into(), destination: (*destination).into(), flags })
            }
            _ => None,
        }
    }
}

fn flags(byte: u8) -> Flags {
    let all = [(1, Flags::FIN), (1 << 1, Flags::SYN), (1 << 2, Flags::RST), (1 << 4, Flags::ACK)];
    let set = all.into_iter().filter(|(bit, _)| byte & bit != 0);
    set.fold(Flags::default(), |flags, (_, flag)| flags | flag)
}

#[cfg(test)]
mod tests {
    use wire::packet::{Packet, TcpBuilder};

    use super::*;
    use crate::tunnel;

    fn segment(source: &str, destination: &str, flags: Flags) -> Vec<u8> {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        let mut packet = Vec::new();
        TcpBuilder { source, destination, seq: 7, ack: 9, flags, window: 9, options: &[] }
            .write(b"data", &mut packet)
            .unwrap();
        packet
    }

    #[test]
    fn peeked_hosts_and_flags_are_those_of_the_whole_parse() {
        for (source, destination) in
            [("10.0.0.1:4000", "192.0.2.9:80"), ("[fe80::1]:4000", "[2001:db8::9]:80")]
        {
            for flags in
                [Flags::SYN, Flags::SYN | Flags::ACK, Flags::FIN | Flags::ACK, Flags::RST, Flags::ACK]
            {
                let bytes = segment(source, destination, flags);
                let (packet, _) = tunnel::innermost(Packet::read(&bytes).unwrap());
                let peeked = PeekedSegment::read(&bytes).unwrap();
                assert_eq!((peeked.source, peeked.destination), (packet.source, packet.destination));
                assert_eq!(peeked.flags, packet.tcp().unwrap().flags);
                for short in 0..bytes.len() {
                    let _ = PeekedSegment::read(&bytes[..short]);
                }
            }
        }
    }

    #[test]
    fn fragments_options_beyond_the_capture_and_other_protocols_need_the_whole_parse() {
        let bytes = segment("10.0.0.1:4000", "192.0.2.9:80", Flags::ACK);
        let with_byte = |offset: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[offset] = byte;
            PeekedSegment::read(&bytes)
        };
        assert_eq!([with_byte(6, 0x20), with_byte(7, 1), with_byte(9, 17), with_byte(0, 0x44)], [None; 4]);
        assert_eq!(with_byte(0, 0x4f), None, "the header is longer than the packet");
        assert_eq!(with_byte(6, 0x40), PeekedSegment::read(&bytes), "DF is no fragment");
    }
}
