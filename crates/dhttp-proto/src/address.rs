//! Addresses and ports to which no response may be sent and no connection opened, by address and port alone.
//!
//! A server that opens connections on request can be used for attacks unless its destinations are restricted (RFC 2577,
//! sections 3 and 6; `papers/dhttp#section-iv-c`). Not the proof that a client receives at its address: that is
//! [`super::token`].

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Reach of a server's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only to addresses of the whole Internet, and not to ports on which other protocols listen.
    Internet,
    /// To any unicast address and any port from 1024 on: a laboratory, an intranet.
    Anywhere,
}

impl Reach {
    /// Whether a server may open a connection to this address and port. Never below port 1024, where clients do not
    /// listen (`papers/dhttp#section-iv-c`).
    pub fn allows(self, client: SocketAddr) -> bool {
        let address = unmapped(client.ip());
        let is_unicast = !address.is_unspecified() && !address.is_multicast() && !is_broadcast(address);
        is_unicast
            && client.port() >= 1_024
            && match self {
                Self::Anywhere => true,
                Self::Internet => is_global(address) && !is_listened_on(client.port()),
            }
    }
}

/// Whether a datagram from this source can come from a client. Ports below 1024 are those of servers; these and the
/// other ports refused here have been used for loops and reflection (CVE-2024-2169, US-CERT TA14-017A).
pub fn can_be_client(source: SocketAddr) -> bool {
    let address = unmapped(source.ip());
    !address.is_unspecified()
        && !address.is_multicast()
        && !is_broadcast(address)
        && source.port() >= 1_024
        && !REFLECTORS.contains(&source.port())
}

/// Whether an address is reachable only from this host, or from this site.
pub const fn is_private(address: IpAddr) -> bool {
    match unmapped(address) {
        IpAddr::V4(address) => address.is_loopback() || address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

/// An address in IPv6 form; IPv4 addresses are mapped.
pub(crate) const fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The IPv4 address in an IPv4-mapped IPv6 address, which must be judged by the rules of IPv4; other addresses
/// unchanged.
pub(crate) const fn unmapped(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Whether services other than DHTTP clients listen on this TCP port, from 1024 on.
pub(crate) fn is_listened_on(port: u16) -> bool {
    LISTENED_ON.contains(&port)
}

/// UDP ports above 1023 of services that reply to any datagram: SSDP, mDNS, STUN, SIP, Memcached and others.
const REFLECTORS: [u16; 10] = [1_434, 1_900, 3_283, 3_389, 3_478, 3_702, 5_060, 5_353, 10_001, 11_211];

/// TCP ports above 1023 of other services. Some are the "bad ports" of the fetch standard (section 2.9), to which
/// browsers do not connect. The others are default ports of databases, caches, queues, consoles and second web servers,
/// which accept text from any peer. Ports chosen by clients or operating systems lie elsewhere (RFC 6335, section 6).
const LISTENED_ON: [u16; 66] = [
    1_433, 1_521, 1_719, 1_720, 1_723, 1_883, 2_049, 2_181, 2_375, 2_376, 2_379, 2_380, 3_000, 3_128, 3_260,
    3_306, 3_389, 3_659, 4_045, 4_190, 4_369, 4_444, 5_000, 5_060, 5_061, 5_432, 5_555, 5_601, 5_672, 5_900,
    5_984, 5_985, 6_000, 6_379, 6_443, 6_566, 6_665, 6_666, 6_667, 6_668, 6_669, 6_679, 6_697, 7_001, 8_000,
    8_008, 8_080, 8_081, 8_086, 8_443, 8_500, 8_888, 9_000, 9_042, 9_090, 9_092, 9_100, 9_200, 9_300, 10_080,
    10_250, 11_211, 15_672, 26_379, 27_017, 50_070,
];

fn is_broadcast(address: IpAddr) -> bool {
    address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// Whether an address is globally reachable according to the registries of special-purpose addresses (RFC 6890; IANA's
/// registries of 2026). Multicast and broadcast are not. An address that embeds one of IPv4 (RFC 4291 mapped, RFC 6052
/// `64:ff9b::/96`) is judged by that; 6to4 and Teredo are refused.
pub const fn is_global(address: IpAddr) -> bool {
    match unmapped(address) {
        IpAddr::V4(address) => is_global_v4(address),
        IpAddr::V6(address) => {
            let [first, second, third, fourth, fifth, sixth, seventh, eighth] = address.segments();
            if first == 0x64 && second == 0xff9b && third | fourth | fifth | sixth == 0 {
                let ([a, b], [c, d]) = (seventh.to_be_bytes(), eighth.to_be_bytes());
                return is_global_v4(Ipv4Addr::new(a, b, c, d));
            }
            // Only 2000::/3 is allocated. Of it, 2001::/23 (protocols), 2001:db8::/32 and 3fff::/20 (documentation) are
            // not global, and 2002::/16 (6to4) embeds an IPv4 address.
            first & 0xe000 == 0x2000
                && !(first == 0x2001 && (second < 0x200 || second == 0xdb8))
                && first != 0x2002
                && !(first == 0x3fff && second < 0x1000)
        }
    }
}

const fn is_global_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_shared = a == 100 && b & 0xc0 == 64;
    let is_protocols = a == 192 && b == 0 && c == 0;
    // 6to4 relays, deprecated by RFC 7526.
    let is_relay = a == 192 && b == 88 && c == 99;
    let is_benchmark = a == 198 && b & 0xfe == 18;
    // From 224 on: multicast, reserved, broadcast.
    !(a == 0
        || a >= 224
        || is_shared
        || is_protocols
        || is_relay
        || is_benchmark
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(reach: Reach, sockets: &[&str]) -> Vec<bool> {
        sockets.iter().map(|socket| reach.allows(socket.parse().unwrap())).collect()
    }

    #[test]
    fn a_connection_goes_only_where_a_client_can_be() {
        let allowed = ["8.8.8.8:1024", "[2600::1]:40000", "[::ffff:8.8.8.8]:5001"];
        assert_eq!(reached(Reach::Internet, &allowed), [true; 3]);
        let refused = [
            "8.8.8.8:1023",
            "8.8.8.8:25",
            "8.8.8.8:0",
            "8.8.8.8:6667",
            "8.8.8.8:6379",
            "127.0.0.1:5001",
            "10.1.2.3:5001",
            "172.16.0.1:5001",
            "192.168.1.1:5001",
            "169.254.169.254:5001",
            "100.64.0.1:5001",
            "192.0.2.1:5001",
            "198.18.0.1:5001",
            "0.0.0.0:5001",
            "0.1.2.3:5001",
            "224.0.0.1:5001",
            "240.0.0.1:5001",
            "255.255.255.255:5001",
            "[::1]:5001",
            "[::]:5001",
            "[fe80::1]:5001",
            "[fd00::1]:5001",
            "[ff02::1]:5001",
            "[2001:db8::1]:5001",
            "[2002:a00:1::]:5001",
            "[64:ff9b::a00:1]:5001",
            "[::ffff:127.0.0.1]:5001",
            "[::ffff:10.0.0.1]:5001",
        ];
        assert_eq!(reached(Reach::Internet, &refused), [false; 28]);
    }

    #[test]
    fn special_purpose_addresses_follow_the_iana_registries() {
        let global = |address: &str| is_global(address.parse().unwrap());
        for address in
            ["8.8.8.8", "11.0.1.1", "192.31.196.1", "2600::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]
        {
            assert!(global(address), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.0.0.9",
            "100.64.0.9",
            "100.100.100.200",
            "127.0.0.1",
            "169.254.169.254",
            "172.31.0.1",
            "192.0.0.9",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.9",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::9",
            "64:ff9b:0:1::808:808",
            "100::1",
            "2001::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:a00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fe80::1",
            "fec0::9",
            "ff02::1",
        ] {
            assert!(!global(address), "{address}");
        }
    }

    #[test]
    fn in_a_laboratory_only_impossible_addresses_are_refused() {
        assert_eq!(
            reached(Reach::Anywhere, &["127.0.0.1:5000", "10.0.0.1:6667", "[fd00::1]:1024"]),
            [true; 3]
        );
        assert_eq!(reached(Reach::Anywhere, &["127.0.0.1:80", "224.0.0.1:5000", "[::]:5000"]), [false; 3]);
    }

    #[test]
    fn ports_of_servers_and_reflectors_are_refused() {
        let can = |socket: &str| can_be_client(socket.parse().unwrap());
        assert!(can("127.0.0.1:40000") && can("[2600::1]:1024"));
        for socket in
            ["8.8.8.8:53", "8.8.8.8:123", "8.8.8.8:1900", "8.8.8.8:11211", "8.8.8.8:0", "224.0.0.1:5000"]
        {
            assert!(!can(socket), "{socket}");
        }
    }
}
