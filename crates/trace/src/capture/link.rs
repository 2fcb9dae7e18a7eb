//! What stands before the IP header: Ethernet with its tags, Linux's cooked headers, loopback, none at all.
//!
//! Numbers are those of <https://www.tcpdump.org/linktypes.html>. Not a dissector: it finds the IP packet and asks
//! nothing else of the link. Tunnels are not looked into.

/// How the packets of an interface begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Two addresses and a type; tags between them.
    Ethernet,
    /// `tcpdump -i any`, of old.
    LinuxCooked,
    /// `tcpdump -i any`, of late.
    LinuxCooked2,
    /// The IP header itself.
    Raw,
    /// BSD's loopback: the address family as a word, in either byte order.
    Loopback,
    /// PPP, with or without its HDLC framing.
    Ppp,
    /// Endace's capture cards: a record header, then what the record says.
    Erf,
    /// One that is not read here.
    Other(u32),
}

impl LinkType {
    /// By its number.
    pub const fn of(number: u32) -> Self {
        match number {
            0 | 108 => Self::Loopback,
            1 => Self::Ethernet,
            9 | 50 => Self::Ppp,
            // 12 and 14 are raw IP on the BSDs.
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            113 => Self::LinuxCooked,
            197 => Self::Erf,
            276 => Self::LinuxCooked2,
            other => Self::Other(other),
        }
    }

    /// The IP packet behind the link's header; `None` if there is another protocol, or too few bytes.
    pub fn ip(self, frame: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Ethernet => ethernet(frame),
            Self::LinuxCooked => by_type(half(frame, 14)?, frame.get(16..)?),
            Self::LinuxCooked2 => by_type(half(frame, 0)?, frame.get(20..)?),
            Self::Raw => Some(frame),
            Self::Loopback => is_ip(frame.get(4..)?),
            Self::Ppp => ppp(frame),
            Self::Erf => erf(frame),
            Self::Other(_) => None,
        }
    }
}

fn ethernet(frame: &[u8]) -> Option<&[u8]> {
    by_type(half(frame, 12)?, frame.get(14..)?)
}

/// By an EtherType, with what may stand between it and the packet.
fn by_type(mut ether_type: u16, mut rest: &[u8]) -> Option<&[u8]> {
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
        0x8864 => ppp(rest.get(6..)?),
        _ => None,
    }
}

/// Behind the label that says it is the last.
fn mpls(labels: &[u8]) -> Option<&[u8]> {
    let (words, _) = labels.as_chunks::<4>();
    let last = words.iter().take(8).position(|[_, _, bottom, _]| bottom & 1 == 1)?;
    is_ip(labels.get(4 * (last + 1)..)?)
}

fn ppp(frame: &[u8]) -> Option<&[u8]> {
    let frame = frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame);
    match half(frame, 0)? {
        0x0021 | 0x0057 => frame.get(2..),
        _ => None,
    }
}

/// A record of type Ethernet: 16 bytes, extensions of 8 while the highest bit says so, two bytes of padding.
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

/// Where the family is not to be trusted (each BSD numbers IPv6 differently), the version tells.
fn is_ip(bytes: &[u8]) -> Option<&[u8]> {
    matches!(bytes.first()? >> 4, 4 | 6).then_some(bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk::<2>().map(|half| u16::from_be_bytes(*half))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: &[u8] = &[0x45, 1, 2, 3];

    fn framed(before: &[u8]) -> Vec<u8> {
        [before, IP].concat()
    }

    #[test]
    fn the_packet_is_found_behind_every_link_header() {
        let mut ethernet = vec![0; 12];
        let vlans = [&ethernet[..], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x08, 0]].concat();
        let mpls = [&ethernet[..], &[0x88, 0x47, 0, 0, 0, 9, 0, 0, 1, 9]].concat();
        let pppoe = [&ethernet[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 6, 0, 0x21]].concat();
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
            (197, &erf),
        ] {
            let frame = framed(before);
            assert_eq!(LinkType::of(number).ip(&frame), Some(IP), "{number}: {before:?}");
            for short in 0..before.len() {
                let _ = LinkType::of(number).ip(&frame[..short]);
            }
        }
    }

    #[test]
    fn other_protocols_are_none_of_ours() {
        let arp = [&[0; 12][..], &[0x08, 0x06, 0, 1]].concat();
        assert_eq!(LinkType::Ethernet.ip(&arp), None);
        assert_eq!(LinkType::of(105).ip(IP), None);
        assert_eq!(LinkType::Loopback.ip(&[7, 0, 0, 0, 0x10]), None);
    }
}
