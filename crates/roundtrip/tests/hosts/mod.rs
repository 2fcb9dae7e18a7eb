//! Two hosts connected by an emulated link: for tests of whole programs.
//!
//! Not the programs: those are started in the namespaces by each test.

use std::net::Ipv4Addr;

use testbed::emulator::{Options, Running};
use testbed::netlink::{Link, Metrics, Netlink, Route};
use testbed::tun::Tun;
use testbed::{Emulator, Namespace};
use wire::link::Config;

pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

pub(crate) struct Hosts {
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
    pub(crate) link: Running,
}

impl Hosts {
    /// With this link up and down, for packets of at most `mtu` bytes.
    pub(crate) fn new(up: &Config, down: &Config, mtu: u32, options: &Options) -> Self {
        let [client, server] = ["client", "server"].map(|name| Namespace::new(name).unwrap());
        let ends = [(&client, CLIENT, &[SERVER][..]), (&server, SERVER, &[CLIENT])];
        let link = wire("link0", ends, [up, down], mtu, options);
        Self { client, server, link }
    }
}

/// One end of a link: namespace, address, and addresses reached through it.
pub(crate) type End<'a> = (&'a Namespace, Ipv4Addr, &'static [Ipv4Addr]);

/// A link of this name at both ends.
pub(crate) fn wire(
    name: &'static str,
    ends: [End<'_>; 2],
    [up, down]: [&Config; 2],
    mtu: u32,
    options: &Options,
) -> Running {
    let [one, other] = ends.map(|(host, own, peers)| host.run(move || join(name, own, peers, mtu)).unwrap());
    Emulator::start(one, other, up, down, options).unwrap()
}

/// Whether namespaces can be made; if not, a message, or a failure where they are required.
pub(crate) fn can_be() -> bool {
    let Err(missing) = testbed::available() else { return true };
    skip::refused(&missing.to_string());
    false
}

fn join(name: &str, own: Ipv4Addr, peers: &[Ipv4Addr], mtu: u32) -> Result<Tun, testbed::Error> {
    let link = Link { mtu, tx_queue_length: 1_000, gso_max_segments: 64 };
    let tun = Tun::open(name)?;
    let mut netlink = Netlink::open()?;
    netlink.bring_up("lo", Link { mtu: 65_535, ..link })?;
    netlink.bring_up(name, link)?;
    netlink.add_address(name, own)?;
    for peer in peers {
        netlink.set_route(name, &Route { destination: *peer, source: own, metrics: Metrics::default() })?;
    }
    Ok(tun)
}
