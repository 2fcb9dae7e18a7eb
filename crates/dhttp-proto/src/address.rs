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

/// Whether services other than DHTTP clients listen on this TCP port: below [`FIRST_CLIENT_PORT`], and at a few above.
pub(crate) fn is_listened_on(port: u16) -> bool {
    port < FIRST_CLIENT_PORT || LISTENED_ON.contains(&port)
}

/// UDP ports above 1023 of services that reply to any datagram: SSDP, mDNS, STUN, SIP, Memcached and others.
const REFLECTORS: [u16; 10] = [1_434, 1_900, 3_283, 3_389, 3_478, 3_702, 5_060, 5_353, 10_001, 11_211];

/// First TCP port of clients in the Internet: where Linux' own choices begin (`ip_local_port_range`). Services choose
/// ports below, with the exceptions of `LISTENED_ON`.
pub const FIRST_CLIENT_PORT: u16 = 32_768;

/// TCP ports from 32,768 on of services with defaults there: MySQL's X protocol, EtherNet/IP, Hadoop and HBase,
/// ActiveMQ.
const LISTENED_ON: [u16; 14] = [
    33_060, 34_980, 44_818, 50_010, 50_020, 50_030, 50_060, 50_070, 50_075, 50_090, 60_010, 60_030, 61_613,
    61_616,
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
        let allowed = ["8.8.8.8:32768", "[2600::1]:40000", "[::ffff:8.8.8.8]:65535"];
        assert_eq!(reached(Reach::Internet, &allowed), [true; 3]);
        let refused = [
            "8.8.8.8:32767",
            "8.8.8.8:25",
            "8.8.8.8:0",
            "8.8.8.8:6667",
            "8.8.8.8:50070",
            "127.0.0.1:45001",
            "10.1.2.3:45001",
            "172.16.0.1:45001",
            "192.168.1.1:45001",
            "169.254.169.254:45001",
            "100.64.0.1:45001",
            "192.0.2.1:45001",
            "198.18.0.1:45001",
            "0.0.0.0:45001",
            "0.1.2.3:45001",
            "224.0.0.1:45001",
            "240.0.0.1:45001",
            "255.255.255.255:45001",
            "[::1]:45001",
            "[::]:45001",
            "[fe80::1]:45001",
            "[fd00::1]:45001",
            "[ff02::1]:45001",
            "[2001:db8::1]:45001",
            "[2002:a00:1::]:45001",
            "[64:ff9b::a00:1]:45001",
            "[::ffff:127.0.0.1]:45001",
            "[::ffff:10.0.0.1]:45001",
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
