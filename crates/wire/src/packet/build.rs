//! Builders of whole IP packets, with lengths and checksums, for captures of simulated traffic, probes and tests.

use core::net::{IpAddr, SocketAddr};

use etherparse::{IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, TcpHeader, UdpHeader, ip_number};

use super::{Flags, TcpOption};

/// A TCP segment to be written as an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpBuilder<'a> {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port, of the same IP version.
    pub destination: SocketAddr,
    /// The sequence number of the first byte, or of the SYN.
    pub seq: u32,
    /// The next sequence number expected.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// The window, before scaling.
    pub window: u16,
    /// Options in order; at most 40 bytes, padding included.
    pub options: &'a [TcpOption<'a>],
}

impl TcpBuilder<'_> {
    /// Appends the packet that carries `payload` to `into`.
    ///
    /// # Errors
    /// Fields that do not fit a packet; `into` is then unchanged.
    pub fn write(&self, payload: &[u8], into: &mut Vec<u8>) -> Result<(), BuildError> {
        let mut header = self.header()?;
        let length = header.header_len() + payload.len();
        let ip = Ip::new(self.source.ip(), self.destination.ip(), ip_number::TCP, length)?;
        header.checksum = match &ip {
            Ip::V4(ip) => header.calc_checksum_ipv4(ip, payload),
            Ip::V6(ip) => header.calc_checksum_ipv6(ip, payload),
        }
        .map_err(|_| BuildError::TooLong(length))?;
        ip.write(into);
        into.extend(header.to_bytes());
        into.extend(payload);
        Ok(())
    }

    fn header(&self) -> Result<TcpHeader, BuildError> {
        let Self { source, destination, seq, ack, flags, window, options } = self;
        let mut header = TcpHeader::new(source.port(), destination.port(), *seq, *window);
        header.acknowledgment_number = *ack;
        let is_set = |flag| flags.contains(flag);
        (header.fin, header.syn, header.rst) = (is_set(Flags::FIN), is_set(Flags::SYN), is_set(Flags::RST));
        (header.psh, header.ack, header.urg) = (is_set(Flags::PSH), is_set(Flags::ACK), is_set(Flags::URG));
        (header.ece, header.cwr) = (is_set(Flags::ECE), is_set(Flags::CWR));
        let mut bytes = Vec::new();
        options.iter().for_each(|option| option.write(&mut bytes));
        header.set_options_raw(&bytes).map_err(|_| BuildError::OptionsTooLong(bytes.len()))?;
        Ok(header)
    }
}

/// A UDP datagram to be written as an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpBuilder {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port, of the same IP version.
    pub destination: SocketAddr,
}

impl UdpBuilder {
    /// Appends the packet that carries `payload` to `into`.
    ///
    /// # Errors
    /// A payload that does not fit a packet; `into` is then unchanged.
    pub fn write(&self, payload: &[u8], into: &mut Vec<u8>) -> Result<(), BuildError> {
        let Self { source, destination } = self;
        let length = UdpHeader::LEN + payload.len();
        let ip = Ip::new(source.ip(), destination.ip(), ip_number::UDP, length)?;
        let header = match &ip {
            Ip::V4(ip) => UdpHeader::with_ipv4_checksum(source.port(), destination.port(), ip, payload),
            Ip::V6(ip) => UdpHeader::with_ipv6_checksum(source.port(), destination.port(), ip, payload),
        }
        .map_err(|_| BuildError::TooLong(length))?;
        ip.write(into);
        into.extend(header.to_bytes());
        into.extend(payload);
        Ok(())
    }
}

/// An IP header of either version.
enum Ip {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

/// Initial time to live.
const TIME_TO_LIVE: u8 = 64;

impl Ip {
    fn new(
        source: IpAddr,
        destination: IpAddr,
        protocol: IpNumber,
        length: usize,
    ) -> Result<Self, BuildError> {
        let too_long = |_| BuildError::TooLong(length);
        let payload_length = u16::try_from(length).map_err(too_long)?;
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                Ipv4Header::new(payload_length, TIME_TO_LIVE, protocol, source.octets(), destination.octets())
                    .map(Self::V4)
                    .map_err(|_| BuildError::TooLong(length))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => Ok(Self::V6(Ipv6Header {
                traffic_class: 0,
                flow_label: Ipv6FlowLabel::ZERO,
                payload_length,
                next_header: protocol,
                hop_limit: TIME_TO_LIVE,
                source: source.octets(),
                destination: destination.octets(),
            })),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => Err(BuildError::MixedVersions),
        }
    }

    fn write(self, into: &mut Vec<u8>) {
        match self {
            Self::V4(mut header) => {
                header.header_checksum = header.calc_header_checksum();
                into.extend(header.to_bytes());
            }
            Self::V6(header) => into.extend(header.to_bytes()),
        }
    }
}

/// Reason why a packet cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Transport header and payload, in bytes, exceed the maximum of an IP packet.
    #[error("packet of {0} bytes: too long for IP; send at most 65,535 bytes with headers")]
    TooLong(usize),
    /// More than 40 bytes of TCP options.
    #[error("{0} bytes of TCP options: too long for a header; send at most 40")]
    OptionsTooLong(usize),
    /// Addresses of different IP versions.
    #[error("source and destination: different IP versions; use one version for both")]
    MixedVersions,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syn<'a>(source: &str, destination: &str, options: &'a [TcpOption<'a>]) -> TcpBuilder<'a> {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        TcpBuilder { source, destination, seq: 0, ack: 0, flags: Flags::SYN, window: 0, options }
    }

    /// Returns the ones' complement sum of 16-bit words: 0xffff with a correct checksum (RFC 1071).
    fn sum(bytes: &[u8]) -> u32 {
        let words = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
        let sum: u32 = words.sum();
        (sum & 0xffff) + (sum >> 16)
    }

    #[test]
    fn checksums_are_correct() {
        let mut packet = Vec::new();
        syn("10.0.0.1:1", "10.0.0.2:2", &[TcpOption::Mss(512)]).write(b"odd", &mut packet).unwrap();
        assert_eq!(sum(&packet[..20]), 0xffff);
        let pseudo = [&packet[12..20], &[0, 6, 0, 27], &packet[20..]].concat();
        assert_eq!(sum(&pseudo), 0xffff);
    }

    #[test]
    fn rejects_oversized_packets_and_leaves_the_buffer_unchanged() {
        let mut packet = Vec::new();
        let many = [TcpOption::Timestamps { value: 0, echo: 0 }; 5];
        let v4 = syn("10.0.0.1:1", "10.0.0.2:2", &[]);
        assert_eq!(v4.write(&[0; 65_496], &mut packet), Err(BuildError::TooLong(65_516)));
        let v6 = syn("[::1]:1", "[::2]:2", &[]);
        assert_eq!(v6.write(&[0; 65_516], &mut packet), Err(BuildError::TooLong(65_536)));
        let options = TcpBuilder { options: &many, ..v4 };
        assert_eq!(options.write(&[], &mut packet), Err(BuildError::OptionsTooLong(50)));
        assert_eq!(syn("10.0.0.1:1", "[::2]:2", &[]).write(&[], &mut packet), Err(BuildError::MixedVersions));
        assert!(packet.is_empty());
        v4.write(&[0; 65_495], &mut packet).unwrap();
        assert_eq!(packet.len(), 65_535);
    }
}
