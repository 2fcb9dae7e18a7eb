//! Two hosts with a socket each, for tests and benchmarks of the emulator alone.

use std::net::{Ipv4Addr, UdpSocket};

use linux::netlink::Metrics;
use testbed::emulator::{Options, Running};
use testbed::{Error, Interface, Namespace, Topology};
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
    /// The hosts with the running link between them.
    pub(crate) fn joined(up: &Config, down: &Config, options: &Options) -> Result<(Self, Running), Error> {
        let cubic = Metrics { congestion: Some("cubic"), ..Metrics::default() };
        let end = |host, device, address| {
            Interface::of(host, device).address(address).metrics(cubic.clone()).gso_max_segments(64)
        };
        let ([client, server], [link]) = Topology::new()
            .host("client")
            .host("server")
            .emulated(
                [end("client", "client0", CLIENT), end("server", "server0", SERVER)],
                [up, down],
                options,
            )
            .build()?
            .split()?;
        Ok((Self { client, server }, link))
    }

    /// A socket on each, connected to the other's.
    pub(crate) fn sockets(&self) -> Result<[UdpSocket; 2], Error> {
        let connected = |own, peer| {
            move || {
                let socket = UdpSocket::bind((own, PORT)).expect("a fresh namespace has free ports");
                socket.connect((peer, PORT)).expect("there is a route");
                socket
            }
        };
        let [client, server] = [(&self.client, CLIENT, SERVER), (&self.server, SERVER, CLIENT)]
            .map(|(host, own, peer)| host.start(connected(own, peer)).wait());
        Ok([client?, server?])
    }
}
