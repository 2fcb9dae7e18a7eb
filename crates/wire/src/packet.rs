//! Parser and builder of IP packets: addresses, ports, TCP's sequence numbers, flags and options.
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | [`Packet::read`]: the parser |
//! | `ip` | the headers before it |
//! | [`tcp`] | [`TcpSegment`] and its [`Flags`] |
//! | [`option`] | [`TcpOptions`], read and written |
//! | [`udp`] | [`UdpDatagram`] |
//! | [`icmp`] | [`icmp::Unreachable`]: reports of undelivered packets |
//! | [`build`] | [`TcpBuilder`] and [`UdpBuilder`]: whole packets with checksums |
//!
//! There is no link layer and no reassembly of fragments. Checksums are not verified: with offloading, a capture on the
//! sending host has none. A truncated packet is parsed as far as its headers are complete.

pub mod build;
pub mod icmp;
mod ip;
pub mod option;
pub mod tcp;
pub mod udp;

pub use build::{BuildError, TcpBuilder, UdpBuilder};
pub use option::{SackBlocks, TcpOption, TcpOptions};
pub use tcp::{Flags, TcpSegment};
pub use udp::UdpDatagram;

use core::net::{IpAddr, SocketAddr};

use ip::IpHeader;

use crate::Bytes;

/// An IPv4 or IPv6 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Length of the packet according to its header, IP header included. A truncated packet is longer than its captured
    /// bytes. If the header's length is invalid (segmentation offload), this is the captured length.
    pub ip_length: Bytes,
    /// IPv4's identification (IP ID); 0 in IPv6.
    pub identification: u16,
    /// Remaining hops: IPv4's time to live, IPv6's hop limit.
    pub hop_limit: u8,
    /// The transport protocol's header and payload.
    pub transport: Transport<'a>,
}

/// Transport protocol of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport<'a> {
    /// TCP.
    Tcp(TcpSegment<'a>),
    /// UDP.
    Udp(UdpDatagram<'a>),
    /// A fragment: only the first one has ports, and none is complete.
    Fragment,
    /// Another protocol.
    Other {
        /// Its IP protocol number: 1 is ICMP, 58 is ICMPv6.
        protocol: u8,
        /// Its payload, as far as it was captured.
        payload: &'a [u8],
    },
}

impl<'a> Packet<'a> {
    /// Parses the headers of one packet, which begins with its IP header. Bytes beyond the packet's length (Ethernet
    /// padding) are ignored.
    ///
    /// # Errors
    /// The reason why the bytes are not a valid packet.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let ip = IpHeader::read(bytes)?;
        let IpHeader { source, destination, length, identification, hop_limit, payload, .. } = ip;
        let headers = bytes.len().min(length).saturating_sub(payload.len());
        let transport_length = length.saturating_sub(headers);
        let transport = match ip.protocol {
            _ if ip.is_fragment => Transport::Fragment,
            ip::TCP => Transport::Tcp(TcpSegment::read(payload, transport_length)?),
            ip::UDP => Transport::Udp(UdpDatagram::read(payload, transport_length)?),
            protocol => Transport::Other { protocol, payload },
        };
        let ip_length = Bytes::new(length as u64);
        Ok(Self { source, destination, ip_length, identification, hop_limit, transport })
    }

    /// Returns source and destination address and port; `None` for packets without ports.
    pub const fn sockets(&self) -> Option<(SocketAddr, SocketAddr)> {
        let (from, to) = match self.transport {
            Transport::Tcp(segment) => (segment.source_port, segment.destination_port),
            Transport::Udp(datagram) => (datagram.source_port, datagram.destination_port),
            Transport::Fragment | Transport::Other { .. } => return None,
        };
        Some((SocketAddr::new(self.source, from), SocketAddr::new(self.destination, to)))
    }

    /// Returns the TCP segment, if it carries one.
    pub const fn tcp(&self) -> Option<TcpSegment<'a>> {
        match self.transport {
            Transport::Tcp(segment) => Some(segment),
            Transport::Udp(_) | Transport::Fragment | Transport::Other { .. } => None,
        }
    }

    /// Returns the payload length in bytes; 0 for protocols other than TCP and UDP.
    pub const fn payload_length(&self) -> Bytes {
        match self.transport {
            Transport::Tcp(segment) => segment.payload_length,
            Transport::Udp(datagram) => datagram.payload_length,
            Transport::Fragment | Transport::Other { .. } => Bytes::ZERO,
        }
    }
}

/// Reason why bytes could not be parsed as a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The version is neither 4 nor 6.
    #[error("not an IP packet: version {version}, not 4 or 6; remove the link-layer header")]
    NotIp {
        /// The version.
        version: u8,
    },
    /// A header is longer than the captured bytes, or than the packet itself.
    #[error("{header} header: truncated after {captured} bytes; capture at least 160 bytes of each packet")]
    Truncated {
        /// Protocol of the header.
        header: &'static str,
        /// Number of its bytes that are present.
        captured: usize,
    },
    /// A header length below the minimum.
    #[error("{header} header: length below the minimum; the packet is damaged")]
    InvalidLength {
        /// Protocol of the header.
        header: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 172.16.0.1:4660 to 172.16.0.2:80, seq 1, ack 2, PSH ACK, window 512, "GET".
    const GET: [u8; 43] = [
        0x45, 0, 0, 43, 1, 2, 0x40, 0, 64, 6, 0, 0, 172, 16, 0, 1, 172, 16, 0, 2, // IPv4
        0x12, 0x34, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 2, 0, 0, 0, 0, 0, // TCP
        b'G', b'E', b'T',
    ];

    #[test]
    fn segment_is_parsed() {
        let packet = Packet::read(&GET).unwrap();
        let sockets = packet.sockets().map(|(from, to)| (from.to_string(), to.to_string()));
        assert_eq!(sockets, Some(("172.16.0.1:4660".into(), "172.16.0.2:80".into())));
        assert_eq!(packet.ip_length, Bytes::new(43));
        assert_eq!((packet.identification, packet.hop_limit), (0x0102, 64));
        let segment = packet.tcp().unwrap();
        assert_eq!((segment.seq, segment.ack, segment.window), (1, 2, 512));
        assert_eq!(segment.flags, Flags::PSH | Flags::ACK);
        assert_eq!((segment.payload, segment.payload_length), (&b"GET"[..], Bytes::new(3)));
        assert!(!segment.is_pure_ack());
    }

    #[test]
    fn padding_is_not_payload_and_truncated_payload_counts() {
        let padded = [&GET[..], &[0; 3]].concat();
        assert_eq!(Packet::read(&padded), Packet::read(&GET));
        let truncated = Packet::read(&GET[..41]).unwrap();
        assert_eq!((truncated.ip_length, truncated.payload_length()), (Bytes::new(43), Bytes::new(3)));
        assert_eq!(truncated.tcp().unwrap().payload, b"G");
    }

    #[test]
    fn length_zero_means_the_captured_length() {
        let mut offloaded = GET;
        offloaded[3] = 0;
        let packet = Packet::read(&offloaded).unwrap();
        assert_eq!((packet.ip_length, packet.payload_length()), (Bytes::new(43), Bytes::new(3)));
    }

    #[test]
    fn ip_header_alone_is_truncated_tcp() {
        let mut alone = GET;
        alone[3] = 20;
        assert_eq!(Packet::read(&alone), Err(ParseError::Truncated { header: "TCP", captured: 0 }));
    }

    #[test]
    fn fragments_and_other_protocols_have_no_ports() {
        let mut fragment = GET;
        fragment[6] = 0x20;
        assert_eq!(Packet::read(&fragment).unwrap().transport, Transport::Fragment);
        let mut icmp = GET;
        icmp[9] = 1;
        let packet = Packet::read(&icmp).unwrap();
        let payload = &GET[20..];
        assert_eq!((packet.transport, packet.sockets()), (Transport::Other { protocol: 1, payload }, None));
    }

    #[test]
    fn rejects_other_bytes_with_their_fault() {
        let error = |bytes: &[u8]| Packet::read(bytes).unwrap_err();
        assert_eq!(error(&[]), ParseError::Truncated { header: "IP", captured: 0 });
        assert_eq!(error(&GET[..19]), ParseError::Truncated { header: "IPv4", captured: 19 });
        assert_eq!(error(&GET[..39]), ParseError::Truncated { header: "TCP", captured: 19 });
        assert_eq!(error(&[0x60; 39]), ParseError::Truncated { header: "IPv6", captured: 39 });
        assert_eq!(error(&[0x44; 40]), ParseError::InvalidLength { header: "IPv4" });
        assert_eq!(error(&[0xff; 40]), ParseError::NotIp { version: 15 });
        let mut short_tcp = GET;
        short_tcp[32] = 0x40;
        assert_eq!(error(&short_tcp), ParseError::InvalidLength { header: "TCP" });
    }
}
