//! Packets that are not diagnosed, by kind: other protocols, and tunnels whose content cannot be read.

use std::collections::BTreeMap;

use diagnose::Cause;
use packets::tunnel::Tunnel;
use trace::text::counted;
use wire::packet::{Packet, Transport, UdpDatagram};

/// Packets of a capture, read and skipped.
#[derive(Clone, Debug, Default)]
pub struct SkippedPackets {
    /// Packets that are not TCP, by kind.
    kinds: BTreeMap<String, u64>,
    /// Packets of tunnels that cannot be decapsulated, by kind.
    sealed: BTreeMap<String, u64>,
    /// Packets that were decapsulated, by the outermost tunnel.
    pub tunnels: BTreeMap<Tunnel, u64>,
}

/// Maximum number of kinds counted separately.
const MAX_KINDS: usize = 64;
/// Maximum number of kinds named in a sentence.
const SHOWN: usize = 6;

impl SkippedPackets {
    /// Counts a frame without an IP packet.
    pub fn frame(&mut self, kind: &str) {
        count(&mut self.kinds, kind);
    }

    /// Counts a packet that is not TCP.
    pub fn packet(&mut self, packet: &Packet<'_>) {
        match kind(packet) {
            (Class::Sealed, name) => count(&mut self.sealed, &name),
            (Class::Plain, name) => count(&mut self.kinds, &name),
        }
    }

    /// Counts a packet that was decapsulated.
    pub fn unwrapped(&mut self, tunnel: Tunnel) {
        *self.tunnels.entry(tunnel).or_default() += 1;
    }

    /// Adds the counts of another part of the capture.
    pub fn merge(&mut self, other: &Self) {
        let Self { kinds, sealed, tunnels } = other;
        for (own, other) in [(&mut self.kinds, kinds), (&mut self.sealed, sealed)] {
            other.iter().for_each(|(kind, packets)| add(own, kind, *packets));
        }
        tunnels.iter().for_each(|(tunnel, packets)| *self.tunnels.entry(*tunnel).or_default() += packets);
    }

    /// Returns all kinds, the most frequent first.
    pub fn by_kind(&self) -> Vec<(&str, u64)> {
        sorted(self.kinds.iter().chain(&self.sealed))
    }

    /// Lists the kinds that are not TCP, tunnels included: `30 QUIC, 4 DNS`; empty if there are none.
    pub fn listed(&self) -> String {
        list(&self.by_kind())
    }

    /// Returns notes about the capture: the cause's name, the number of packets, and a sentence.
    pub fn notes(&self) -> Vec<(&'static str, u64, String)> {
        let of = |name, kinds: &BTreeMap<String, u64>, what: &str, remedy: &str| {
            let total: u64 = kinds.values().sum();
            let kinds = list(&sorted(kinds.iter()));
            (total > 0)
                .then(|| (name, total, format!("{what}: {} ({kinds}){remedy}", counted(total, "packet"))))
        };
        let sealed = "; capture within the tunnel to see its connections";
        [
            of(Cause::NotTcp.name(), &self.kinds, "not TCP, and not diagnosed", ""),
            of(Cause::TunnelNotRead.name(), &self.sealed, "tunnels that are not read", sealed),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Returns the notes as sentences, with the decapsulated tunnels.
    pub fn sentences(&self) -> Vec<String> {
        let total: u64 = self.tunnels.values().sum();
        let names: Vec<&str> = self.tunnels.keys().map(|tunnel| tunnel.name()).collect();
        let read =
            (total > 0).then(|| format!("read within {}: {}", names.join(", "), counted(total, "packet")));
        self.notes().into_iter().map(|(_, _, sentence)| sentence).chain(read).collect()
    }
}

fn count(kinds: &mut BTreeMap<String, u64>, kind: &str) {
    add(kinds, kind, 1);
}

fn add(kinds: &mut BTreeMap<String, u64>, kind: &str, packets: u64) {
    let kind = if kinds.len() < MAX_KINDS || kinds.contains_key(kind) { kind } else { "other" };
    if let Some(count) = kinds.get_mut(kind) {
        *count += packets;
    } else {
        kinds.insert(kind.to_owned(), packets);
    }
}

fn sorted<'a>(kinds: impl Iterator<Item = (&'a String, &'a u64)>) -> Vec<(&'a str, u64)> {
    let mut kinds: Vec<(&str, u64)> = kinds.map(|(kind, count)| (kind.as_str(), *count)).collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    kinds
}

fn list(kinds: &[(&str, u64)]) -> String {
    let mut parts: Vec<String> =
        kinds.iter().take(SHOWN).map(|(kind, count)| format!("{count} {kind}")).collect();
    let others: u64 = kinds.iter().skip(SHOWN).map(|(_, count)| count).sum();
    parts.extend((others > 0).then(|| format!("{others} other")));
    parts.join(", ")
}

enum Class {
    Plain,
    /// A tunnel.
    Sealed,
}

/// Classifies a packet; protocol and port numbers are IANA's.
fn kind(packet: &Packet<'_>) -> (Class, String) {
    match packet.transport {
        Transport::Tcp(_) => (Class::Plain, "TCP".to_owned()),
        Transport::Fragment => (Class::Plain, "IP fragment".to_owned()),
        Transport::Udp(udp) => {
            let (class, name) = datagram(&udp);
            (class, name.to_owned())
        }
        Transport::Other { protocol, payload: _ } => match protocol {
            1 => (Class::Plain, "ICMP".to_owned()),
            2 => (Class::Plain, "IGMP".to_owned()),
            4 | 41 => (Class::Sealed, "IP-in-IP".to_owned()),
            47 => (Class::Sealed, "GRE".to_owned()),
            50 | 51 => (Class::Sealed, "IPsec".to_owned()),
            58 => (Class::Plain, "ICMPv6".to_owned()),
            89 => (Class::Plain, "OSPF".to_owned()),
            103 => (Class::Plain, "PIM".to_owned()),
            112 => (Class::Plain, "VRRP".to_owned()),
            115 => (Class::Sealed, "L2TP".to_owned()),
            132 => (Class::Plain, "SCTP".to_owned()),
            other => (Class::Plain, format!("IP protocol {other}")),
        },
    }
}

fn datagram(udp: &UdpDatagram<'_>) -> (Class, &'static str) {
    let has = |port| udp.source_port == port || udp.destination_port == port;
    if is_quic(udp.payload) || has(443) {
        return (Class::Plain, "QUIC");
    }
    if is_wireguard(udp.payload) {
        return (Class::Sealed, "WireGuard");
    }
    let (port, name) = PORTS.into_iter().find(|(port, _)| has(*port)).unwrap_or((0, "UDP"));
    let class = match port {
        500 | 1_194 | 1_701 | 4_500 => Class::Sealed,
        _ => Class::Plain,
    };
    (class, name)
}

const PORTS: [(u16, &str); 22] = [
    (53, "DNS"),
    (67, "DHCP"),
    (69, "TFTP"),
    (123, "NTP"),
    (137, "NetBIOS"),
    (138, "NetBIOS"),
    (161, "SNMP"),
    (162, "SNMP"),
    (500, "IPsec"),
    (514, "syslog"),
    (546, "DHCPv6"),
    (1_194, "OpenVPN"),
    (1_701, "L2TP"),
    (1_900, "SSDP"),
    (2_123, "GTP-C"),
    (2_152, "GTP-U control"),
    (3_478, "STUN"),
    (3_702, "WS-Discovery"),
    (4_500, "IPsec"),
    (5_060, "SIP"),
    (5_353, "mDNS"),
    (5_355, "LLMNR"),
];

/// Returns whether a payload has a long header of a known QUIC version (RFC 9000, section 17.2; RFC 9369).
fn is_quic(payload: &[u8]) -> bool {
    let Some((&[first, a, b, c, d], _)) = payload.split_first_chunk::<5>() else { return false };
    let version = u32::from_be_bytes([a, b, c, d]);
    let is_known = matches!(version, 1 | 0x6b33_43cf | 0xff00_0000..=0xff00_00ff) || (a == b'Q' && b == b'0');
    first & 0x80 != 0 && is_known
}

/// Returns whether a payload has a message type, three zero bytes, and the length of that message (WireGuard, section
/// 5.4).
fn is_wireguard(payload: &[u8]) -> bool {
    match payload {
        [1, 0, 0, 0, ..] => payload.len() == 148,
        [2, 0, 0, 0, ..] => payload.len() == 92,
        [3, 0, 0, 0, ..] => payload.len() == 64,
        [4, 0, 0, 0, ..] => payload.len() >= 32 && payload.len().is_multiple_of(16),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(source_port: u16, destination_port: u16, payload: &[u8]) -> &'static str {
        let payload_length = wire::Bytes::new(payload.len() as u64);
        datagram(&UdpDatagram { source_port, destination_port, payload, payload_length }).1
    }

    #[test]
    fn datagrams_are_named_by_content_or_port() {
        assert_eq!(named(50_000, 4_433, &[0xc3, 0, 0, 0, 1, 8]), "QUIC");
        assert_eq!(named(443, 50_000, &[0x41, 9, 9]), "QUIC");
        assert_eq!(named(40_000, 53, &[0, 1]), "DNS");
        assert_eq!(named(40_000, 51_820, &[[4, 0, 0, 0].as_slice(), &[7; 28]].concat()), "WireGuard");
        assert_eq!(named(40_000, 40_001, &[0]), "UDP");
    }

    #[test]
    fn kinds_are_listed_by_count_and_bounded() {
        let mut skipped = SkippedPackets::default();
        assert_eq!((skipped.listed(), skipped.notes()), (String::new(), Vec::new()));
        for kind in ["ARP", "DNS", "ARP"] {
            skipped.frame(kind);
        }
        assert_eq!(skipped.listed(), "2 ARP, 1 DNS");
        (0..1_000).for_each(|number| skipped.frame(&format!("kind {number}")));
        assert!(skipped.by_kind().len() <= MAX_KINDS + 1);
        assert_eq!(skipped.notes()[0].1, 1_003);
    }
}
