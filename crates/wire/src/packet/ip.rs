//! IP headers (RFC 791; RFC 8200, section 3), with the extension headers before the transport header.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::ParseError;

/// Protocol numbers (IANA, "Assigned Internet Protocol Numbers").
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;

/// Length of IPv4's header without options, and of IPv6's without extension headers.
const IPV4_LENGTH: usize = 20;
const IPV6_LENGTH: usize = 40;

/// IP header, of either version.
pub(super) struct IpHeader<'a> {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// Length of the packet according to the header, or as captured where that is less than the header itself.
    pub(super) length: usize,
    /// 0 in IPv6.
    pub(super) identification: u16,
    pub(super) hop_limit: u8,
    /// Protocol number of the payload; that of an extension header which is truncated or invalid.
    pub(super) protocol: u8,
    pub(super) is_fragment: bool,
    /// Bytes after all headers, as far as they were captured.
    pub(super) payload: &'a [u8],
}

impl<'a> IpHeader<'a> {
    /// Parses the headers of the packet that begins here.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let captured = bytes.len();
        match bytes.first().map(|first| (first >> 4, first & 0x0f)) {
            None => Err(ParseError::Truncated { header: "IP", captured }),
            Some((4, words)) if words < 5 => Err(ParseError::InvalidLength { header: "IPv4" }),
            Some((4, words)) => Self::of_version_4(bytes, usize::from(words) * 4)
                .ok_or(ParseError::Truncated { header: "IPv4", captured }),
            Some((6, _)) => {
                Self::of_version_6(bytes).ok_or(ParseError::Truncated { header: "IPv6", captured })
            }
            Some((version, _)) => Err(ParseError::NotIp { version }),
        }
    }

    fn of_version_4(bytes: &'a [u8], header_length: usize) -> Option<Self> {
        let (header, _) = bytes.split_at_checked(header_length)?;
        let fixed: &[u8; IPV4_LENGTH] = header.first_chunk()?;
        let [_, _, l0, l1, i0, i1, f0, f1, hop_limit, protocol, _, _, addresses @ ..] = *fixed;
        let [s0, s1, s2, s3, d0, d1, d2, d3] = addresses;
        let reported = usize::from(u16::from_be_bytes([l0, l1]));
        let length = if reported >= header_length { reported } else { bytes.len() };
        let mut ip = Self {
            source: Ipv4Addr::new(s0, s1, s2, s3).into(),
            destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
            length,
            identification: u16::from_be_bytes([i0, i1]),
            hop_limit,
            protocol,
            // More fragments, or an offset.
            is_fragment: u16::from_be_bytes([f0, f1]) & 0x3fff != 0,
            payload: &bytes[header_length..length.min(bytes.len())],
        };
        if protocol == AUTHENTICATION {
            ip.skip(authentication_length(ip.payload));
        }
        Some(ip)
    }

    fn of_version_6(bytes: &'a [u8]) -> Option<Self> {
        let fixed: &[u8; IPV6_LENGTH] = bytes.first_chunk()?;
        let [_, _, _, _, l0, l1, protocol, hop_limit, addresses @ ..] = fixed;
        let (source, destination) = addresses.split_first_chunk::<16>()?;
        let destination: &[u8; 16] = destination.first_chunk()?;
        let length = match usize::from(u16::from_be_bytes([*l0, *l1])) {
            0 => bytes.len(),
            reported => IPV6_LENGTH + reported,
        };
        let mut ip = Self {
            source: Ipv6Addr::from(*source).into(),
            destination: Ipv6Addr::from(*destination).into(),
            length,
            identification: 0,
            hop_limit: *hop_limit,
            protocol: *protocol,
            is_fragment: false,
            payload: &bytes[IPV6_LENGTH..length.min(bytes.len())],
        };
        ip.skip_extensions();
        Some(ip)
    }

    /// Skips the extension headers (RFC 8200, section 4), up to one that is truncated or invalid.
    fn skip_extensions(&mut self) {
        let mut is_first = true;
        loop {
            let length = match self.protocol {
                // Only directly after the header.
                HOP_BY_HOP if is_first => options_length(self.payload),
                ROUTING | DESTINATION_OPTIONS => options_length(self.payload),
                FRAGMENT => Some(8),
                AUTHENTICATION => authentication_length(self.payload),
                _ => return,
            };
            // Its offset, or more fragments.
            let is_fragment = self.protocol == FRAGMENT
                && matches!(self.payload, [_, _, f0, f1, ..] if u16::from_be_bytes([*f0, *f1]) & 0xfff9 != 0);
            if !self.skip(length) {
                return;
            }
            self.is_fragment |= is_fragment;
            is_first = false;
        }
    }

    /// Skips one extension header, whose first byte is the protocol of what follows. Returns whether it is whole.
    fn skip(&mut self, length: Option<usize>) -> bool {
        let Some(rest) = length.and_then(|length| self.payload.get(length..)) else { return false };
        self.protocol = self.payload[0];
        self.payload = rest;
        true
    }
}

/// Length of an extension header whose second byte counts units of 8 bytes after the first.
fn options_length(bytes: &[u8]) -> Option<usize> {
    bytes.get(1).map(|units| (usize::from(*units) + 1) * 8)
}

/// Length of an authentication header (RFC 4302, section 2.2), whose second byte counts units of 4 bytes after the second; at
/// least 1, for the fixed fields.
fn authentication_length(bytes: &[u8]) -> Option<usize> {
    bytes.get(1).filter(|units| **units > 0).map(|units| (usize::from(*units) + 2) * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From ::1 to ::2, hop limit 64, with this first protocol and payload.
    fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, u8::try_from(payload.len()).unwrap(), protocol, 64];
        packet.extend(Ipv6Addr::from(1).octets());
        packet.extend(Ipv6Addr::from(2).octets());
        packet.extend(payload);
        packet
    }

    fn read(packet: &[u8]) -> (u8, bool, Vec<u8>) {
        let ip = IpHeader::read(packet).unwrap();
        (ip.protocol, ip.is_fragment, ip.payload.to_vec())
    }

    #[test]
    fn extension_headers_are_skipped_in_order() {
        let hop_by_hop = [43, 0, 0, 0, 0, 0, 0, 0];
        let routing = [[60, 1].as_slice(), &[0; 14]].concat();
        let destination = [44, 0, 0, 0, 0, 0, 0, 0];
        let whole = [51, 0, 0, 6, 0, 0, 0, 1];
        let authentication = [[17, 1].as_slice(), &[0; 10]].concat();
        let all = [&hop_by_hop[..], &routing, &destination, &whole, &authentication, b"udp"].concat();
        let ip = ipv6(HOP_BY_HOP, &all);
        assert_eq!(read(&ip), (UDP, false, b"udp".to_vec()));
        let header = IpHeader::read(&ip).unwrap();
        assert_eq!((header.source, header.destination), (Ipv6Addr::from(1).into(), Ipv6Addr::from(2).into()));
        assert_eq!((header.length, header.hop_limit), (ip.len(), 64));
    }

    #[test]
    fn fragments_have_an_offset_or_more_of_them() {
        for (field, is_fragment) in [([0, 0], false), ([0, 6], false), ([0, 1], true), ([0, 8], true)] {
            let header = [6, 0, field[0], field[1], 0, 0, 0, 1];
            assert_eq!(read(&ipv6(FRAGMENT, &header)), (TCP, is_fragment, Vec::new()), "{field:?}");
        }
    }

    #[test]
    fn a_truncated_or_misplaced_extension_header_is_the_payload() {
        let short = [6, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(read(&ipv6(DESTINATION_OPTIONS, &short)), (DESTINATION_OPTIONS, false, short.to_vec()));
        assert_eq!(read(&ipv6(FRAGMENT, &[6, 0, 0, 1])), (FRAGMENT, false, vec![6, 0, 0, 1]));
        let second = [[0, 0, 0, 0, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0, 0, 0]].concat();
        assert_eq!(read(&ipv6(HOP_BY_HOP, &second)), (HOP_BY_HOP, false, second[8..].to_vec()));
        // An authentication header of 8 bytes is shorter than its fixed fields.
        let empty = [[6, 0].as_slice(), &[0; 10]].concat();
        assert_eq!(read(&ipv6(AUTHENTICATION, &empty)), (AUTHENTICATION, false, empty));
    }

    #[test]
    fn authentication_header_of_ipv4_is_skipped() {
        let mut packet = vec![0x45, 0, 0, 35, 0, 0, 0, 0, 64, 51, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b't', b'c', b'p']);
        assert_eq!(read(&packet), (TCP, false, b"tcp".to_vec()));
        packet[21] = 2;
        assert_eq!(read(&packet).0, AUTHENTICATION);
    }
}
