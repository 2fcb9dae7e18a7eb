//! Link-layer headers: Ethernet with its tags, Linux's cooked headers, loopback, raw IP, Wi-Fi, older networks.
//!
//! Numbers are those of <https://www.tcpdump.org/linktypes.html>. This module only locates the IP
//! packet. Tunnels are in `tunnel`.

mod wifi;

/// Link-layer type of an interface's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Two addresses and a type; optional tags between them.
    Ethernet,
    /// `tcpdump -i any`, older versions.
    LinuxCooked,
    /// `tcpdump -i any`, current versions.
    LinuxCooked2,
    /// Raw IP.
    Raw,
    /// BSD's loopback: the address family as a word, in either byte order.
    Loopback,
    /// PPP, with or without its HDLC framing.
    Ppp,
    /// PPP over Ethernet, without the Ethernet header.
    Pppoe,
    /// Endace's capture cards: a record header, then the contents that it names.
    Erf,
    /// Linux's packet filter log (`tcpdump -i nflog:N`).
    Nflog,
    /// PPP behind a byte for the direction.
    PppWithDirection,
    /// Cisco's HDLC.
    CiscoHdlc,
    /// Frame Relay.
    FrameRelay,
    /// IEEE 802.5.
    TokenRing,
    /// FDDI.
    Fddi,
    /// LLC without addresses: ATM (RFC 2684).
    Llc,
    /// IP over IEEE 1394.
    FireWire,
    /// SLIP, behind the 16 bytes of the BSDs.
    Slip,
    /// OpenBSD's `pflog` and `enc`.
    Pflog,
    /// The same, of a decapsulated IPsec packet.
    Enc,
    /// IEEE 802.11.
    Wifi,
    /// IEEE 802.11 behind a radiotap header.
    Radiotap,
    /// IEEE 802.11 behind the header of a Prism card.
    Prism,
    /// IEEE 802.11 behind an AVS header.
    Avs,
    /// A header with information about the packet, which also names its link type.
    PerPacketInformation,
    /// A type that is not supported.
    Other(u32),
}

impl LinkType {
    /// Returns the type of a LINKTYPE number.
    pub const fn of(number: u32) -> Self {
        match number {
            0 | 108 => Self::Loopback,
            1 => Self::Ethernet,
            6 => Self::TokenRing,
            8 => Self::Slip,
            9 | 50 => Self::Ppp,
            10 => Self::Fddi,
            11 | 100 => Self::Llc,
            // 12 and 14 are raw IP on the BSDs.
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            51 => Self::Pppoe,
            104 => Self::CiscoHdlc,
            105 => Self::Wifi,
            107 => Self::FrameRelay,
            109 => Self::Enc,
            113 => Self::LinuxCooked,
            117 => Self::Pflog,
            119 => Self::Prism,
            127 => Self::Radiotap,
            138 => Self::FireWire,
            163 => Self::Avs,
            166 | 204 => Self::PppWithDirection,
            192 => Self::PerPacketInformation,
            197 => Self::Erf,
            239 => Self::Nflog,
            276 => Self::LinuxCooked2,
            other => Self::Other(other),
        }
    }

    /// Returns the IP packet after the link's header; `None` for another protocol, or too few bytes.
    pub fn ip(self, frame: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Ethernet => ethernet(frame),
            Self::LinuxCooked => by_type(half(frame, 14)?, frame.get(16..)?),
            Self::LinuxCooked2 => by_type(half(frame, 0)?, frame.get(20..)?),
            Self::Raw => Some(frame),
            Self::Loopback => is_ip(frame.get(4..)?),
            Self::Ppp => ppp(frame),
            Self::Pppoe => pppoe(frame),
            Self::Erf => erf(frame),
            Self::Nflog => nflog(frame),
            // The direction replaces the address in the framing of some, and precedes it in that of others.
            Self::PppWithDirection => {
                frame.get(1..).and_then(|rest| ppp(rest.strip_prefix(&[0x03]).unwrap_or(rest)))
            }
            Self::CiscoHdlc => by_type(half(frame, 2)?, frame.get(4..)?),
            Self::FrameRelay => frame_relay(frame),
            Self::TokenRing => token_ring(frame),
            Self::Fddi => llc(frame.get(13..)?),
            Self::Llc => llc(frame),
            Self::FireWire => by_type(half(frame, 16)?, frame.get(18..)?),
            Self::Slip => is_ip(frame.get(16..)?),
            Self::Pflog => is_ip(frame.get(usize::from(*frame.first()?).next_multiple_of(4)..)?),
            Self::Enc => is_ip(frame.get(12..)?),
            Self::Wifi => wifi::ip(frame),
            Self::Radiotap => wifi::radiotap(frame),
            Self::Prism => wifi::ip(frame.get(word(frame, 4, u32::from_le_bytes)?..)?),
            Self::Avs => wifi::ip(frame.get(word(frame, 4, u32::from_be_bytes)?..)?),
            Self::PerPacketInformation => per_packet_information(frame),
            Self::Other(_) => None,
        }
    }

    /// Returns the name of the contents of a frame without an IP packet, as far as known.
    pub fn content(self, frame: &[u8]) -> &'static str {
        let ether_type = match self {
            Self::Ethernet => half(frame, 12),
            Self::LinuxCooked => half(frame, 14),
            Self::LinuxCooked2 => half(frame, 0),
            Self::Ppp => return ppp_content(frame),
            Self::CiscoHdlc => half(frame, 2),
            Self::Wifi | Self::Radiotap | Self::Prism | Self::Avs => {
                return "Wi-Fi frames that are encrypted, or without IP";
            }
            _ => None,
        };
        match ether_type {
            Some(0..0x600) => "LLC",
            Some(0x0806) => "ARP",
            Some(0x8035) => "RARP",
            Some(0x8863 | 0x8864) => "PPPoE",
            Some(0x888e) => "EAPOL",
            Some(0x88cc) => "LLDP",
            Some(0x88e5) => "MACsec",
            Some(0x88f7) => "PTP",
            Some(_) | None => "not IP",
        }
    }
}

pub(crate) fn ethernet(frame: &[u8]) -> Option<&[u8]> {
    by_type(half(frame, 12)?, frame.get(14..)?)
}

/// Returns the IP packet after an LLC header (IEEE 802.2): with SNAP (RFC 1042), or of IP's own access point.
fn llc(frame: &[u8]) -> Option<&[u8]> {
    match frame {
        [0xaa, 0xaa, 0x03, _, _, _, high, low, rest @ ..] => by_type(u16::from_be_bytes([*high, *low]), rest),
        [0x06, 0x06, 0x03, rest @ ..] => is_ip(rest),
        _ => None,
    }
}

/// Returns the IP packet of a Frame Relay frame (RFC 2427), or of one with Cisco's EtherType.
fn frame_relay(frame: &[u8]) -> Option<&[u8]> {
    // The last byte of the address has its lowest bit set.
    let address = frame.iter().take(4).position(|byte| byte & 1 == 1)? + 1;
    match frame.get(address..)? {
        [0x03, 0xcc | 0x8e, rest @ ..] => is_ip(rest),
        [0x03, 0x80, _, _, _, high, low, rest @ ..] | [0x03, 0x00, 0x80, _, _, _, high, low, rest @ ..] => {
            by_type(u16::from_be_bytes([*high, *low]), rest)
        }
        rest => by_type(half(rest, 0)?, rest.get(2..)?),
    }
}

/// Returns the IP packet of a Token Ring frame: two bytes, two addresses, and a route if the source address says so.
fn token_ring(frame: &[u8]) -> Option<&[u8]> {
    const ADDRESSES: usize = 14;
    let has_route = frame.get(8)? & 0x80 != 0;
    let route = if has_route { usize::from(frame.get(ADDRESSES)? & 0x1f) } else { 0 };
    llc(frame.get(ADDRESSES + route..)?)
}

/// Returns the IP packet behind a PPI header: flags, length and link type, all little-endian.
fn per_packet_information(frame: &[u8]) -> Option<&[u8]> {
    let length = usize::from(half(frame, 2)?.swap_bytes());
    let link = LinkType::of(u32::try_from(word(frame, 4, u32::from_le_bytes)?).ok()?);
    // One within another would be an attack.
    if link == LinkType::PerPacketInformation { None } else { link.ip(frame.get(length.max(8)..)?) }
}

/// Returns the IP packet of an EtherType, after optional tags.
pub(crate) fn by_type(mut ether_type: u16, mut rest: &[u8]) -> Option<&[u8]> {
    const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
    // Provider tags may be stacked; more than a few are an attack.
    for _ in 0..4 {
        if !VLAN.contains(&ether_type) {
            break;
        }
        (ether_type, rest) = (half(rest, 2)?, rest.get(4..)?);
    }
    match ether_type {
        0x0800 | 0x86dd => Some(rest),
        0x8847 | 0x8848 => mpls(rest),
        0x8864 => pppoe(rest),
        // A length, in IEEE 802.3; the number with which Linux marks such packets.
        0x0000..0x0600 => llc(rest),
        _ => None,
    }
}

/// Returns the IP packet after the label with the bottom-of-stack bit.
fn mpls(labels: &[u8]) -> Option<&[u8]> {
    let (words, _) = labels.as_chunks::<4>();
    let last = words.iter().take(8).position(|[_, _, bottom, _]| bottom & 1 == 1)?;
    is_ip(labels.get(4 * (last + 1)..)?)
}

/// Returns the IP packet after a session header of six bytes (RFC 2516).
fn pppoe(frame: &[u8]) -> Option<&[u8]> {
    ppp(frame.get(6..)?)
}

const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

pub(crate) fn ppp(frame: &[u8]) -> Option<&[u8]> {
    let (protocol, rest) = ppp_protocol(frame)?;
    matches!(protocol, PPP_IPV4 | PPP_IPV6).then_some(rest)
}

/// Parses the protocol number, which may be compressed to its lower byte (RFC 1661, section 6.5): that is odd, the
/// upper one even.
fn ppp_protocol(frame: &[u8]) -> Option<(u16, &[u8])> {
    let frame = frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame);
    match *frame.first()? {
        byte if byte & 1 == 1 => Some((u16::from(byte), frame.get(1..)?)),
        _ => Some((half(frame, 0)?, frame.get(2..)?)),
    }
}

fn ppp_content(frame: &[u8]) -> &'static str {
    match ppp_protocol(frame) {
        Some((0x002d | 0x002f, _)) => "TCP with compressed headers (Van Jacobson)",
        Some((0x003d, _)) => "PPP multilink",
        Some((0x00fd | 0x0053, _)) => "compressed or encrypted PPP",
        Some((0xc000.., _)) => "PPP link control",
        Some((0x8000.., _)) => "PPP network control",
        Some(_) | None => "not IP",
    }
}

/// The IP packet after a header of four bytes and attributes; lengths and types are in the capturing host's
/// byte order.
fn nflog(frame: &[u8]) -> Option<&[u8]> {
    const PAYLOAD: u16 = 9;
    let attributes = frame.get(4..)?;
    let payload = |read: fn([u8; 2]) -> u16| {
        let mut rest = attributes;
        while let Some((&[a, b, c, d], _)) = rest.split_first_chunk::<4>() {
            let (length, kind) = (usize::from(read([a, b])), read([c, d]));
            if length < 4 {
                return None;
            }
            if kind == PAYLOAD {
                // The last attribute may be truncated.
                return is_ip(rest.get(4..length.min(rest.len()))?);
            }
            rest = rest.get(length.next_multiple_of(4)..)?;
        }
        None
    };
    payload(u16::from_le_bytes).or_else(|| payload(u16::from_be_bytes))
}

/// The IP packet of an Ethernet record: 16 bytes, extensions of 8 while the highest bit is set, two bytes of
/// padding.
fn erf(record: &[u8]) -> Option<&[u8]> {
    const ETHERNET: u8 = 2;
    let mut kind = *record.get(8)?;
    if kind & 0x7f != ETHERNET {
        return None;
    }
    let mut rest = record.get(16..)?;
    for _ in 0..8 {
        if kind & 0x80 == 0 {
            break;
        }
        (kind, rest) = (*rest.first()?, rest.get(8..)?);
    }
    ethernet(rest.get(2..)?)
}

/// The bytes if they begin with an IP version, where the address family is unreliable (each BSD numbers IPv6
/// differently).
pub(crate) fn is_ip(bytes: &[u8]) -> Option<&[u8]> {
    matches!(bytes.first()? >> 4, 4 | 6).then_some(bytes)
}

/// Returns a length of four bytes.
fn word(bytes: &[u8], at: usize, read: fn([u8; 4]) -> u32) -> Option<usize> {
    let word = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(read(*word)).ok()
}

pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk::<2>().map(|half| u16::from_be_bytes(*half))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: &[u8] = &[0x45, 1, 2, 3];
    const SNAP: &[u8] = &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

    fn framed(before: &[u8]) -> Vec<u8> {
        [before, IP].concat()
    }

    #[test]
    fn the_packet_is_found_behind_every_link_header() {
        let mut ethernet = vec![0; 12];
        let vlans = [&ethernet[..], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x08, 0]].concat();
        let mpls = [&ethernet[..], &[0x88, 0x47, 0, 0, 0, 9, 0, 0, 1, 9]].concat();
        let pppoe = [&ethernet[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 6, 0, 0x21]].concat();
        let compressed = [&ethernet[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 5, 0x21]].concat();
        ethernet.extend([0x08, 0]);
        let cooked = [&[0; 14][..], &[0x86, 0xdd]].concat();
        let cooked2 = [&[0x08, 0][..], &[0; 18]].concat();
        let erf = [
            &[0, 0, 0, 0, 0, 0, 0, 0, 0x82, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
            &ethernet,
        ]
        .concat();
        for (number, before) in [
            (1, ethernet.as_slice()),
            (1, &vlans),
            (1, &mpls),
            (1, &pppoe),
            (113, &cooked),
            (276, &cooked2),
            (101, &[]),
            (228, &[]),
            (0, &[2, 0, 0, 0]),
            (108, &[0, 0, 0, 30]),
            (9, &[0xff, 0x03, 0, 0x21]),
            (9, &[0xff, 0x03, 0x57]),
            (51, &[0x11, 0, 0, 1, 0, 5, 0x21]),
            (1, &compressed),
            (239, &[2, 0, 0, 0, 5, 0, 10, 0, 7, 0, 0, 0, 8, 0, 9, 0]),
            (239, &[2, 0, 0, 0, 0, 5, 0, 10, 7, 0, 0, 0, 0, 8, 0, 9]),
            (197, &erf),
            (1, &[&[0; 12][..], &[0, 30], SNAP].concat()),
            (1, &[&[0; 12][..], &[0, 30, 6, 6, 3]].concat()),
            (113, &[&[0; 14][..], &[0, 4], SNAP].concat()),
            (6, &[&[0; 14][..], SNAP].concat()),
            (6, &[&[0; 8][..], &[0x80, 0, 0, 0, 0, 0, 4, 0, 1, 2], SNAP].concat()),
            (8, &[0; 16]),
            (10, &[&[0x57; 13][..], SNAP].concat()),
            (100, SNAP),
            (104, &[0x0f, 0, 0x08, 0]),
            (107, &[0x18, 0x41, 0x03, 0xcc]),
            (107, &[0x18, 0x41, 0x03, 0, 0x80, 0, 0, 0, 0x08, 0]),
            (107, &[0x18, 0x41, 0x08, 0]),
            (109, &[0; 12]),
            (117, &[&[61][..], &[0; 63]].concat()),
            (138, &[&[0; 16][..], &[0x08, 0]].concat()),
            (166, &[1, 3, 0, 0x21]),
            (192, &[0, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]),
            (204, &[1, 0xff, 3, 0, 0x21]),
        ] {
            let frame = framed(before);
            assert_eq!(LinkType::of(number).ip(&frame), Some(IP), "{number}: {before:?}");
            for short in 0..before.len() {
                let _ = LinkType::of(number).ip(&frame[..short]);
            }
        }
    }

    #[test]
    fn other_protocols_have_no_ip_packet() {
        let arp = [&[0; 12][..], &[0x08, 0x06, 0, 1]].concat();
        assert_eq!((LinkType::Ethernet.ip(&arp), LinkType::Ethernet.content(&arp)), (None, "ARP"));
        assert_eq!(LinkType::of(147).ip(IP), None);
        let nested = [&[0, 0, 8, 0, 192, 0, 0, 0][..], &[0, 0, 8, 0, 101, 0, 0, 0], IP].concat();
        assert_eq!(LinkType::PerPacketInformation.ip(&nested), None);
        assert_eq!(LinkType::Loopback.ip(&[7, 0, 0, 0, 0x10]), None);
    }

    #[test]
    fn no_link_reads_beyond_a_frame() {
        for number in 0..300 {
            for byte in [0, 1, 3, 8, 0x40, 0x80, 0x88, 0xaa, 0xff] {
                for length in 0..48 {
                    let mut frame = vec![byte; length];
                    let found = LinkType::of(number).ip(&frame).map(<[u8]>::len);
                    assert!(found.is_none_or(|found| found <= length));
                    if let Some(last) = frame.last_mut() {
                        *last = 0x45;
                        let _ = LinkType::of(number).ip(&frame);
                    }
                }
            }
        }
    }
}
