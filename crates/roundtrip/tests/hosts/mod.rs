//! Two hosts that know nothing but each other, and an emulated link between them: for tests of whole programs.
//!
//! Not the programs: those are started in the namespaces by each test.

use std::net::Ipv4Addr;

use measure::emulator::{Options, Running};
use measure::netlink::{Link, Metrics, Netlink, Route};
use measure::tun::Tun;
use measure::{Emulator, Namespace};
use wire::link::Config;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

pub(crate) struct Hosts {
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
    pub(crate) link: Running,
}

impl Hosts {
    /// With this link up and down, for packets of so many bytes at most.
    pub(crate) fn new(up: &Config, down: &Config, mtu: u32, options: &Options) -> Self {
        let [client, server] = ["client", "server"].map(|name| Namespace::new(name).unwrap());
        let [client_end, server_end] = [(&client, CLIENT, SERVER), (&server, SERVER, CLIENT)]
            .map(|(host, own, peer)| host.run(move || join(own, peer, mtu)).unwrap());
        let link = Emulator::start(client_end, server_end, up, down, options).unwrap();
        Self { client, server, link }
    }
}

/// Whether namespaces can be made; if not, says so, unless they must be.
pub(crate) fn can_be() -> bool {
    let Err(missing) = measure::available() else { return true };
    let required = std::env::var_os("ROUNDTRIP_REQUIRE_KERNEL").is_some_and(|value| value == "1");
    assert!(!required, "ROUNDTRIP_REQUIRE_KERNEL is set, and {missing}");
    eprintln!("skipped: {missing}");
    false
}

fn join(own: Ipv4Addr, peer: Ipv4Addr, mtu: u32) -> Result<Tun, measure::Error> {
    let link = Link { mtu, tx_queue_length: 1_000, gso_max_segments: 64 };
    let tun = Tun::open("link0")?;
    let mut netlink = Netlink::open()?;
    netlink.bring_up("lo", Link { mtu: 65_535, ..link })?;
    netlink.bring_up("link0", link)?;
    netlink.add_address("link0", own)?;
    netlink.set_route("link0", &Route { destination: peer, source: own, metrics: Metrics::default() })?;
    Ok(tun)
}
