//! Two hosts and the link between them, created for one run and removed after it.
//!
//! A pair of namespaces costs 2 ms, so every run has its own. No window, round trip or port is carried over
//! from the run before. The addresses are private: nothing outside is reachable.
//!
//! The programs on the hosts are in `driver`.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use page::Host;
use scenario::Network;
use testbed::advertised_window::AdvertisedWindow;
use testbed::emulator::{Options, Running};
use testbed::{End, Interface, Namespace, PerEnd, Topology};
use wire::{Bytes, Duration, Seed};

use crate::Error;
use crate::profile::{Profile, Setting, Shims};

/// Address at which the server of a page's host listens, by the host's number and whether it has TLS.
pub(crate) fn server_address(host: usize, has_tls: bool) -> SocketAddr {
    SocketAddrV4::new(host_address(host), if has_tls { 443 } else { 80 }).into()
}

/// Addresses of the page's hosts follow one another.
fn host_address(host: usize) -> Ipv4Addr {
    let first = SERVER_ADDRESS.to_bits();
    u32::try_from(host).map_or(SERVER_ADDRESS, |host| Ipv4Addr::from_bits(first.saturating_add(host)))
}

const CLIENT_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Minimum MSS of the kernel (`net.ipv4.tcp_min_snd_mss`), apart from its minimum MTU.
const MIN_MSS: Bytes = Bytes::new(48);

/// A client's host, a server's host, and the link.
#[derive(Debug)]
pub(crate) struct Laboratory {
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
    pub(crate) link: Running,
    /// Pinned settings of both hosts.
    pub(crate) settings: Vec<Setting>,
}

impl Laboratory {
    /// Builds a laboratory, with everything pinned and read back. The server's host has an address for each of `hosts`, as far
    /// away as that is.
    pub(crate) fn build(
        network: &Network,
        hosts: &[Host],
        profile: &Profile,
        seed: Seed,
        capture: Option<Bytes>,
    ) -> Result<Self, Error> {
        let mtu = mtu(network)?;
        let Shims { ack_heartbeat, largest_window, slow_start } = profile.shims;
        // An end's data in flight is limited by the window that the other end advertises.
        let windows = PerEnd::of(|sender| {
            let slow_start = *slow_start.at(sender);
            (largest_window.is_some() || slow_start.is_some())
                .then(|| AdvertisedWindow::new(largest_window.unwrap_or(u16::MAX), slow_start))
        });
        let far = hosts.iter().enumerate().filter(|(_, host)| host.extra_rtt > Duration::ZERO);
        let extra_rtts = far.map(|(index, host)| (host_address(index), host.extra_rtt)).collect();
        let options = Options {
            seed,
            ack_heartbeat,
            windows,
            extra_rtts,
            reactions: true,
            capture,
            ..Options::default()
        };
        let scenario::network::Links { up, down } = network.links();
        let interface =
            |end, name| Interface::of(name, name).mtu(mtu).metrics(profile.metrics.at(end).clone());
        let servers = (0..hosts.len()).map(host_address);
        let server = servers.fold(interface(End::Server, "server"), Interface::address);
        let ([client, server], [link]) = Topology::new()
            .host("client")
            .host("server")
            .emulated(
                [interface(End::Client, "client").address(CLIENT_ADDRESS), server],
                [&up, &down],
                &options,
            )
            .build()?
            .split()?;
        let pin = |host: &Namespace| {
            let profile = profile.clone();
            host.run(move || profile.pin())
        };
        let mut settings = pin(&client)?;
        pin(&server)?;
        settings.extend(profile.settings());
        Ok(Self { client, server, link, settings })
    }
}

/// The MTU, if the kernel supports it.
fn mtu(network: &Network) -> Result<u32, Error> {
    let fitting = u32::try_from(network.mtu().get()).ok().filter(|_| network.mss >= MIN_MSS);
    fitting.ok_or_else(|| Error::Unsuited {
        part: format!("segments of {} on a Linux kernel", network.mss),
        remedy: format!("use --mss {} or more, or another engine", MIN_MSS.get()),
    })
}
