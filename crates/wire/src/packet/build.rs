//! Builders of whole IP packets, with lengths and checksums, for captures of simulated traffic, probes and tests.

use core::net::{IpAddr, SocketAddr};

use super::ip::{TCP, UDP};
use super::{Flags, TcpOption, tcp, udp};

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
        let ip = Ip::new(self.source.ip(), self.destination.ip(), TCP, header.len() + payload.len())?;
        let checksum = ip.checksum(&header, payload);
        header[16..18].copy_from_slice(&checksum.to_be_bytes());
        ip.write(into);
        into.extend(header);
        into.extend(payload);
        Ok(())
    }

    /// Returns the header, with checksum 0 (RFC 9293, section 3.1).
    fn header(&self) -> Result<Vec<u8>, BuildError> {
        let Self { source, destination, seq, ack, flags, window, options } = self;
        let mut bytes = vec![0; tcp::FIXED_LENGTH];
        options.iter().for_each(|option| option.write(&mut bytes));
        let options_length = bytes.len() - tcp::FIXED_LENGTH;
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        // The length has four bits.
        let words = u8::try_from(bytes.len() / 4).ok().filter(|words| *words < 16);
        let words = words.ok_or(BuildError::OptionsTooLong(options_length))?;
        bytes[..2].copy_from_slice(&source.port().to_be_bytes());
        bytes[2..4].copy_from_slice(&destination.port().to_be_bytes());
        bytes[4..8].copy_from_slice(&seq.to_be_bytes());
        bytes[8..12].copy_from_slice(&ack.to_be_bytes());
        (bytes[12], bytes[13]) = (words << 4, flags.bits());
        bytes[14..16].copy_from_slice(&window.to_be_bytes());
        Ok(bytes)
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
        let length = udp::HEADER_LENGTH + payload.len();
        let ip = Ip::new(source.ip(), destination.ip(), UDP, length)?;
        let mut header = [0; udp::HEADER_LENGTH];
        header[..2].copy_from_slice(&source.port().to_be_bytes());
        header[2..4].copy_from_slice(&destination.port().to_be_bytes());
        header[4..6].copy_from_slice(&ip.payload_length.to_be_bytes());
        // 0 means none (RFC 768).
        let checksum = match ip.checksum(&header, payload) {
            0 => u16::MAX,
            checksum => checksum,
        };
        header[6..].copy_from_slice(&checksum.to_be_bytes());
        ip.write(into);
        into.extend(header);
        into.extend(payload);
        Ok(())
    }
}

/// The fields of an IP header, of either version.
struct Ip {
    addresses: Addresses,
    protocol: u8,
    payload_length: u16,
}

/// Source and destination.
enum Addresses {
    V4([[u8; 4]; 2]),
    V6([[u8; 16]; 2]),
}

/// Length of IPv4's header without options.
const IPV4_LENGTH: u16 = 20;

/// Initial time to live.
const TIME_TO_LIVE: u8 = 64;

impl Ip {
    fn new(source: IpAddr, destination: IpAddr, protocol: u8, length: usize) -> Result<Self, BuildError> {
        let too_long = BuildError::TooLong(length);
        let payload_length = u16::try_from(length).map_err(|_| too_long)?;
        let addresses = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                // Its length counts its header, IPv6's does not.
                payload_length.checked_add(IPV4_LENGTH).ok_or(too_long)?;
                Addresses::V4([source.octets(), destination.octets()])
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                Addresses::V6([source.octets(), destination.octets()])
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => {
                return Err(BuildError::MixedVersions);
            }
        };
        Ok(Self { addresses, protocol, payload_length })
    }

    /// Returns the checksum of a header that has 0 in its place, of an even length, and a payload: with the pseudo-header of RFC 9293,
    /// section 3.1, or of RFC 8200, section 8.1, which have the same sum.
    fn checksum(&self, header: &[u8], payload: &[u8]) -> u16 {
        let addresses = match &self.addresses {
            Addresses::V4(both) => both.as_flattened(),
            Addresses::V6(both) => both.as_flattened(),
        };
        let rest = u64::from(self.protocol) + u64::from(self.payload_length);
        ones_complement(sum(addresses) + rest + sum(header) + sum(payload))
    }

    fn write(self, into: &mut Vec<u8>) {
        let Self { addresses, protocol, payload_length } = self;
        match addresses {
            Addresses::V4(addresses) => {
                let [l0, l1] = (payload_length + IPV4_LENGTH).to_be_bytes();
                // Identification 0, and Don't Fragment.
                let start = into.len();
                into.extend([0x45, 0, l0, l1, 0, 0, 0x40, 0, TIME_TO_LIVE, protocol, 0, 0]);
                into.extend(addresses.as_flattened());
                let checksum = ones_complement(sum(&into[start..]));
                into[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
            }
            Addresses::V6(addresses) => {
                let [l0, l1] = payload_length.to_be_bytes();
                into.extend([0x60, 0, 0, 0, l0, l1, protocol, TIME_TO_LIVE]);
                into.extend(addresses.as_flattened());
            }
        }
    }
}

/// Sum of 16-bit words, the last one padded with 0 (RFC 1071): of twice the width, which has the same ones' complement.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().chain([&last]).map(|word| u64::from(u32::from_be_bytes(*word))).sum()
}

/// Ones' complement of a sum, folded into 16 bits.
fn ones_complement(mut sum: u64) -> u16 {
    loop {
        match u16::try_from(sum) {
            Ok(folded) => return !folded,
            Err(_) => sum = (sum & 0xffff) + (sum >> 16),
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
