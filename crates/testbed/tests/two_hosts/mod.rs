//! Two hosts connected only to each other: two namespaces, each with one TUN device. For tests and benchmarks
//! of the emulator alone; a measurement has its own, which pins TCP.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};

use testbed::Error;
use testbed::emulator::{Options, Running};
use testbed::netlink::{Link, Metrics, Netlink, Route};
use testbed::tun::Tun;
use testbed::{Emulator, Namespace};
use wire::link::Config;

pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
pub(crate) const PORT: u16 = 9_000;

/// A client and a server, each in its own namespace.
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

    /// The hosts with the running link between them.
    pub(crate) fn joined(up: &Config, down: &Config, options: &Options) -> Result<(Self, Running), Error> {
        let (hosts, [client, server]) = Self::new()?;
        let running = Emulator::start(client, server, up, down, options)?;
        Ok((hosts, running))
    }

    /// A socket on each, connected to the other's.
    pub(crate) fn sockets(&self) -> Result<[UdpSocket; 2], Error> {
        let connected = |own, peer| {
            move || {
                let socket = UdpSocket::bind((own, PORT)).expect("a fresh namespace has free ports");
                socket.connect((peer, PORT)).expect("there is a route");
                Ok::<_, Error>(socket)
            }
        };
        Ok([self.client.run(connected(CLIENT, SERVER))?, self.server.run(connected(SERVER, CLIENT))?])
    }
}

fn join(name: &str, own: Ipv4Addr, peer: Ipv4Addr) -> Result<Tun, Error> {
    // IPv6's neighbour discovery would be among the packets counted. Absent where the kernel has no IPv6.
    for scope in ["all", "default"] {
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
    }
    let tun = Tun::open(name)?;
    let mut netlink = Netlink::open()?;
    netlink.bring_up(name, Link { mtu: 1500, tx_queue_length: 1_000, gso_max_segments: 64 })?;
    netlink.add_address(name, own)?;
    let metrics = Metrics { congestion: Some("cubic"), ..Metrics::default() };
    netlink.set_route(name, &Route { destination: peer, source: own, metrics })?;
    Ok(tun)
}
