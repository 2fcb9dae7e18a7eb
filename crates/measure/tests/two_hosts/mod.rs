//! Two hosts that know nothing but each other: two namespaces, each with one TUN device. For tests and benchmarks of
//! the emulator alone; a measurement has its own, which pins TCP.

use std::fs;
use std::net::Ipv4Addr;

use measure::netlink::{Link, Metrics, Netlink, Route};
use measure::tun::Tun;
use measure::{Error, Namespace};

pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// A client and a server, each on its own.
pub(crate) struct TwoHosts {
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
}

impl TwoHosts {
    /// The hosts, and the other ends of their interfaces.
    pub(crate) fn new() -> Result<(Self, [Tun; 2]), Error> {
        let [client, server] = [Namespace::new("client")?, Namespace::new("server")?];
        let tuns = [
            client.run(|| join("client0", CLIENT, SERVER))?,
            server.run(|| join("server0", SERVER, CLIENT))?,
        ];
        Ok((Self { client, server }, tuns))
    }
}

fn join(name: &str, own: Ipv4Addr, peer: Ipv4Addr) -> Result<Tun, Error> {
    // Its neighbour discovery would be among the packets counted. Absent where the kernel has no IPv6.
    let _ = fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    let tun = Tun::open(name)?;
    let mut netlink = Netlink::open()?;
    netlink.bring_up(name, Link { mtu: 1500, tx_queue_length: 500, gso_max_segments: 1 })?;
    netlink.add_address(name, own)?;
    let metrics = Metrics { congestion: Some("cubic"), ..Metrics::default() };
    netlink.set_route(name, &Route { destination: peer, source: own, metrics })?;
    Ok(tun)
}
