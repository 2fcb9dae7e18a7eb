//! The rules by which DHTTP's requests are taken on their way, as text for `nft` (`papers/dhttp#section-iv-a`: "will
//! intercept only requests sent over UDP and pass through any requests using TCP").
//!
//! Only what looks like a first request is taken: a datagram to one of the ports whose flags are zero and whose request
//! begins with `GET ` or `HEAD` (docs/dhttp.md). Whatever else uses those ports passes untouched, and so does a request
//! that is sent again: where the cache is silent, or its answer is not wanted, the server answers. While no cache listens,
//! the kernel finds nobody to divert to, and everything passes.

use std::net::SocketAddr;

use crate::nft::{Family, Rules};

/// The table.
pub const TABLE: &str = "roundtrip_cache";

/// On requests, which are diverted to this machine.
const DIVERTED: u32 = 0x7473;

/// Addresses that are not of the whole Internet: [`dhttp_proto::address::is_global`] as sets of nftables.
const PRIVATE_V4: &str = "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, \
                          192.0.0.0/24, 192.0.2.0/24, 192.88.99.0/24, 192.168.0.0/16, 198.18.0.0/15, 198.51.100.0/24, \
                          203.0.113.0/24, 224.0.0.0/3";
const PRIVATE_V6: &str = "2001::/23, 2001:db8::/32, 2002::/16, 3fff::/20";

/// Requests that a cache takes on their way.
#[derive(Clone, Copy, Debug)]
pub struct Interception<'a> {
    /// Where the cache listens: at `0.0.0.0` for IPv4, at `[::]` for both families.
    pub listen: SocketAddr,
    /// The servers' ports.
    pub ports: &'a [u16],
    /// Interfaces behind which clients are. Nothing that arrives at another one is taken, nor what would leave by one of
    /// them: the rules of the router's owner may forbid that way, and the cache's own requests would pass them.
    pub inside: &'a [String],
    /// Whether requests to addresses that are not of the whole Internet are taken, too.
    pub reaches_private: bool,
}

/// The rules that divert requests of this family.
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
    // Behind UDP's own eight bytes: id (8), port (2), flags (1), and the request.
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
