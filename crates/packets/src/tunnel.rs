//! Tunnels: the packet within IP-in-IP, GRE, VXLAN, Geneve and GTP-U.
//!
//! Sources: RFC 2003, RFC 2784 and 2890, RFC 2637 (PPTP), ERSPAN (draft-foschiano-erspan), RFC 7348, RFC 8926, 3GPP TS
//! 29.281. Tunnels may be nested, up to [`MAX_DEPTH`]. Encrypted (ESP, WireGuard) or compressed contents are not read.

use wire::packet::{Packet, Transport, UdpDatagram};

use crate::link::{by_type, ethernet, half, is_ip, ppp};

/// A kind of tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tunnel {
    /// IPv4 or IPv6 within IP.
    IpInIp,
    /// Generic routing encapsulation, including PPTP and ERSPAN.
    Gre,
    /// VXLAN, including its generic protocol extension.
    Vxlan,
    /// Geneve.
    Geneve,
    /// GTP-U: mobile networks between base station and gateway.
    GtpU,
}

/// Maximum depth of nested tunnels.
pub const MAX_DEPTH: usize = 8;

impl Tunnel {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IpInIp => "IP-in-IP",
            Self::Gre => "GRE",
            Self::Vxlan => "VXLAN",
            Self::Geneve => "Geneve",
            Self::GtpU => "GTP-U",
        }
    }
}

/// Returns the packet within all tunnels, and the outermost tunnel; without tunnels the packet itself.
pub fn innermost(mut packet: Packet<'_>) -> (Packet<'_>, Option<Tunnel>) {
    let mut outermost = None;
    for _ in 0..MAX_DEPTH {
        let Some((tunnel, Ok(inner_packet))) =
            inner(&packet).map(|(tunnel, bytes)| (tunnel, Packet::read(bytes)))
        else {
            break;
        };
        packet = inner_packet;
        outermost = outermost.or(Some(tunnel));
    }
    (packet, outermost)
}

fn inner<'a>(packet: &Packet<'a>) -> Option<(Tunnel, &'a [u8])> {
    const IPV4: u8 = 4;
    const IPV6: u8 = 41;
    const GRE: u8 = 47;
    match packet.transport {
        Transport::Other { protocol: IPV4 | IPV6, payload } => Some((Tunnel::IpInIp, is_ip(payload)?)),
        Transport::Other { protocol: GRE, payload } => Some((Tunnel::Gre, gre(payload)?)),
        Transport::Udp(UdpDatagram { destination_port, payload, .. }) => match destination_port {
            // 8472 is Linux's port from before the standard.
            4_789 | 4_790 | 8_472 => Some((Tunnel::Vxlan, vxlan(payload)?)),
            6_081 => Some((Tunnel::Geneve, geneve(payload)?)),
            2_152 => Some((Tunnel::GtpU, gtp_u(payload)?)),
            _ => None,
        },
        Transport::Tcp(_) | Transport::Fragment | Transport::Other { .. } => None,
    }
}

fn gre(packet: &[u8]) -> Option<&[u8]> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGEMENT: u16 = 0x0080;
    let (flags, protocol) = (half(packet, 0)?, half(packet, 2)?);
    let version = flags & 7;
    if flags & ROUTING != 0 || version > 1 {
        return None;
    }
    let optional = [CHECKSUM, KEY, SEQUENCE, if version == 1 { ACKNOWLEDGEMENT } else { 0 }];
    let words = optional.into_iter().filter(|flag| flags & flag != 0).count();
    let rest = packet.get(4 + 4 * words..)?;
    match protocol {
        0x6558 => ethernet(rest),
        0x880b => ppp(rest),
        // ERSPAN: type I has no header, type II one of 8 bytes, which needs a sequence number.
        0x88be => ethernet(rest.get(if flags & SEQUENCE == 0 { 0 } else { 8 }..)?),
        0x22eb => ethernet(rest.get(if rest.get(11)? & 1 == 0 { 12 } else { 20 }..)?),
        ether_type => by_type(ether_type, rest),
    }
}

fn vxlan(datagram: &[u8]) -> Option<&[u8]> {
    const HAS_NETWORK: u8 = 0x08;
    const HAS_PROTOCOL: u8 = 0x04;
    let (&[flags, _, _, protocol, _, _, _, _], rest) = datagram.split_first_chunk::<8>()?;
    match (flags & HAS_NETWORK != 0, flags & HAS_PROTOCOL != 0, protocol) {
        (true, false, _) | (true, true, 3) => ethernet(rest),
        (true, true, 1 | 2) => is_ip(rest),
        _ => None,
    }
}

fn geneve(datagram: &[u8]) -> Option<&[u8]> {
    let first = *datagram.first()?;
    let (version, options) = (first >> 6, usize::from(first & 0x3f) * 4);
    let rest = datagram.get(8 + options..).filter(|_| version == 0)?;
    match half(datagram, 2)? {
        0x6558 => ethernet(rest),
        ether_type => by_type(ether_type, rest),
    }
}

fn gtp_u(datagram: &[u8]) -> Option<&[u8]> {
    const USER_DATA: u8 = 255;
    /// Version 1, and GTP itself rather than GTP'.
    const VERSION: u8 = 0x30;
    let (&[flags, kind, ..], mut rest) = datagram.split_first_chunk::<8>()?;
    if flags & 0xf0 != VERSION || kind != USER_DATA {
        return None;
    }
    if flags & 7 != 0 {
        const HAS_EXTENSION: u8 = 4;
        let (&[_, _, _, mut next], tail) = rest.split_first_chunk::<4>()?;
        rest = tail;
        for _ in 0..8 {
            if next == 0 || flags & HAS_EXTENSION == 0 {
                break;
            }
            let length = usize::from(*rest.first()?).max(1) * 4;
            next = *rest.get(length - 1)?;
            rest = rest.get(length..)?;
        }
    }
    is_ip(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::packet::{Flags, TcpBuilder, UdpBuilder};

    fn segment() -> Vec<u8> {
        let (source, destination) = (([10, 0, 0, 1], 4_000).into(), ([10, 0, 0, 2], 80).into());
        let mut packet = Vec::new();
        TcpBuilder { source, destination, seq: 7, ack: 0, flags: Flags::SYN, window: 9, options: &[] }
            .write(&[], &mut packet)
            .unwrap();
        packet
    }

    /// An IPv4 packet of another protocol.
    fn ip_packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let [high, low] = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
        let header = [0x45, 0, high, low, 0, 1, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        [&header[..], payload].concat()
    }

    fn datagram(port: u16, payload: &[u8]) -> Vec<u8> {
        let (source, destination) = (([192, 0, 2, 1], 50_000).into(), ([192, 0, 2, 2], port).into());
        let mut packet = Vec::new();
        UdpBuilder { source, destination }.write(payload, &mut packet).unwrap();
        packet
    }

    #[test]
    fn the_packet_is_found_in_every_tunnel() {
        let segment = segment();
        let with = |header: &[u8]| [header, &segment].concat();
        let framed = [&[0; 12][..], &[0x08, 0], &segment].concat();
        let frame_with = |header: &[u8]| [header, &framed].concat();
        for (tunnel, bytes) in [
            (Tunnel::IpInIp, ip_packet(4, &segment)),
            (Tunnel::Gre, ip_packet(47, &with(&[0, 0, 0x08, 0]))),
            (Tunnel::Gre, ip_packet(47, &with(&[0xb0, 0, 0x08, 0, 1, 1, 0, 0, 2, 2, 2, 2, 3, 3, 3, 3]))),
            (Tunnel::Gre, ip_packet(47, &frame_with(&[0, 0, 0x65, 0x58]))),
            (
                Tunnel::Gre,
                ip_packet(47, &frame_with(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8])),
            ),
            (Tunnel::Gre, ip_packet(47, &with(&[0x30, 0x01, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 1, 0x21]))),
            (Tunnel::Vxlan, datagram(4_789, &frame_with(&[8, 0, 0, 0, 0, 0, 9, 0]))),
            (Tunnel::Vxlan, datagram(4_790, &with(&[0x0c, 0, 0, 1, 0, 0, 9, 0]))),
            (Tunnel::Geneve, datagram(6_081, &frame_with(&[1, 0, 0x65, 0x58, 0, 0, 9, 0, 1, 2, 3, 4]))),
            (Tunnel::GtpU, datagram(2_152, &with(&[0x30, 255, 0, 40, 0, 0, 0, 1]))),
            (
                Tunnel::GtpU,
                datagram(2_152, &with(&[0x34, 255, 0, 44, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0])),
            ),
        ] {
            let (packet, outermost) = innermost(Packet::read(&bytes).unwrap());
            assert_eq!((packet.tcp().map(|tcp| tcp.seq), outermost), (Some(7), Some(tunnel)), "{bytes:?}");
            for short in 0..bytes.len() {
                let _ = Packet::read(&bytes[..short]).map(innermost);
            }
        }
    }

    #[test]
    fn tunnels_within_tunnels_are_read_up_to_a_limit() {
        let nested = |depth: usize| (0..depth).fold(segment(), |packet, _| ip_packet(4, &packet));
        let is_read = |depth| innermost(Packet::read(&nested(depth)).unwrap()).0.tcp().is_some();
        assert!(is_read(4) && is_read(MAX_DEPTH) && !is_read(MAX_DEPTH + 1));
    }

    #[test]
    fn packets_that_only_resemble_a_tunnel_are_unchanged() {
        for bytes in
            [segment(), datagram(4_789, b"not a tunnel"), datagram(2_152, &[0x32, 1, 0, 4, 0, 0, 0, 0])]
        {
            let packet = Packet::read(&bytes).unwrap();
            assert_eq!(innermost(packet), (packet, None));
        }
    }
}
