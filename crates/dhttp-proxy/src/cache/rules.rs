//! Rules that intercept DHTTP requests, as text for `nft` (`papers/dhttp#section-iv-a`: "will intercept only requests sent over
//! UDP and pass through any requests using TCP").
//!
//! Only datagrams that look like a first request are diverted: to one of the ports, flags zero, beginning with `GET ` or `HEAD`
//! (docs/dhttp.md). Other traffic to those ports passes untouched. So do resends: where the cache does not respond, or its
//! response is not wanted, the server does. While no cache listens, the kernel finds no socket to divert to, and everything
//! passes.

use std::net::SocketAddr;

use crate::nft::{Family, Rules};

/// Name of the table.
pub const TABLE: &str = "roundtrip_cache";

/// Mark of diverted requests.
const DIVERTED: u32 = 0x7473;

/// Addresses that are not globally reachable: [`dhttp_proto::address::is_global`] as sets of nftables.
const PRIVATE_V4: &str = "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, \
                          192.0.0.0/24, 192.0.2.0/24, 192.88.99.0/24, 192.168.0.0/16, 198.18.0.0/15, 198.51.100.0/24, \
                          203.0.113.0/24, 224.0.0.0/3";
const PRIVATE_V6: &str = "2001::/23, 2001:db8::/32, 2002::/16, 3fff::/20";

/// Parameters of an interception.
#[derive(Clone, Copy, Debug)]
pub struct Interception<'a> {
    /// Address on which the cache listens: `0.0.0.0` for IPv4, `[::]` for both families.
    pub listen: SocketAddr,
    /// UDP ports of servers.
    pub ports: &'a [u16],
    /// Interfaces behind which clients are. Packets that arrive elsewhere, or would leave by one of these, are not diverted.
    /// The router's own rules may forbid that route, and the cache's own requests would bypass them.
    pub inside: &'a [String],
    /// Whether requests to addresses that are not globally reachable are diverted, too.
    pub reaches_private: bool,
}

/// Returns the rules that divert requests of this family.
pub fn rules(family: Family, interception: Interception<'_>) -> Rules {
    let Interception { listen, ports, inside, reaches_private } = interception;
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let (ports, own) = (ports.join(", "), listen.port());
    let inside: Vec<String> = inside.iter().map(|name| format!("\"{name}\"")).collect();
    let inside = inside.join(", ");
    let reached = match (family, reaches_private) {
        (_, true) => String::new(),
        (Family::Ip, false) => format!("ip daddr != {{ {PRIVATE_V4} }} "),
        (Family::Ip6, false) => format!("ip6 daddr 2000::/3 ip6 daddr != {{ {PRIVATE_V6} }} "),
    };
    // Behind UDP's header of 8 bytes: id (8), port (2), flags (1), and the request.
    let content = format!(
        "\tchain requests {{\n\t\ttype filter hook prerouting priority mangle; policy accept;\n\t\tiifname {{ {inside} }} \
         fib daddr type unicast fib daddr oifname != {{ {inside} }} {reached}udp dport {{ {ports} }} @th,144,8 0 @th,152,32 {{ 0x47455420, 0x48454144 }} meta mark set \
         {DIVERTED:#x} tproxy to :{own} accept\n\t}}\n"
    );
    Rules { family, table: TABLE, content, diverted: DIVERTED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_from_inside_to_the_internet_are_diverted() {
        let inside = ["lan0".to_owned(), "guest".to_owned()];
        let listen = "[::]:3129".parse().unwrap();
        let of = |family, reaches_private| {
            rules(family, Interception { listen, ports: &[80], inside: &inside, reaches_private }).content
        };
        let four = of(Family::Ip, false);
        assert!(four.contains("iifname { \"lan0\", \"guest\" } fib daddr type unicast"), "{four}");
        assert!(four.contains("oifname != { \"lan0\", \"guest\" } ip daddr != { 0.0.0.0/8,"), "{four}");
        assert!(of(Family::Ip6, false).contains("ip6 daddr 2000::/3 ip6 daddr != {"));
        assert!(!of(Family::Ip, true).contains("10.0.0.0/8"));
    }
}
