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

/// The rules that divert requests of this family to these ports, to a cache that listens there: at `0.0.0.0` for IPv4, at
/// `[::]` for both.
pub fn rules(family: Family, listen: SocketAddr, ports: &[u16]) -> Rules {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let (ports, own) = (ports.join(", "), listen.port());
    // Behind UDP's own eight bytes: id (8), port (2), flags (1), and the request.
    let content = format!(
        "\tchain requests {{\n\t\ttype filter hook prerouting priority mangle; policy accept;\n\t\tfib daddr type \
         unicast udp dport {{ {ports} }} @th,144,8 0 @th,152,32 {{ 0x47455420, 0x48454144 }} meta mark set \
         {DIVERTED:#x} tproxy to :{own} accept\n\t}}\n"
    );
    Rules { family, table: TABLE, content, diverted: DIVERTED }
}
