//! Two hosts connected by an emulated link: for tests of whole programs.
//!
//! Each test starts its programs in the namespaces.

use std::net::Ipv4Addr;

use testbed::emulator::{Options, Running};
use testbed::{Interface, Namespace, Topology};
use wire::link::Config;

pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

pub(crate) struct Hosts {
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
    pub(crate) link: Running,
}

impl Hosts {
    /// Connects two hosts by these links, for packets of at most `mtu` bytes.
    pub(crate) fn new(up: &Config, down: &Config, mtu: u32, options: &Options) -> Self {
        let ends = [interface("client", CLIENT).mtu(mtu), interface("server", SERVER).mtu(mtu)];
        let topology = Topology::new().host("client").host("server").emulated(ends, [up, down], options);
        let ([client, server], [link]) = topology.build().unwrap().split().unwrap();
        Self { client, server, link }
    }
}

/// The interface of a host with one link.
pub(crate) fn interface(host: &'static str, address: Ipv4Addr) -> Interface {
    Interface::of(host, "link0").address(address).gso_max_segments(64)
}
