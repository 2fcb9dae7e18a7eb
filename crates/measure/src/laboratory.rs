//! Two hosts and the link between them, created for one run and removed after it.
//!
//! A pair of namespaces costs 2 ms, so every run has its own: no window, round trip or port is carried over
//! from the run before. The addresses are private: nothing outside is reachable.
//!
//! The programs on the hosts are in `driver`.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use scenario::Network;
use testbed::advertised_window::AdvertisedWindow;
use testbed::emulator::{Options, Running};
use testbed::netlink::{Link, Netlink, Route};
use testbed::tun::Tun;
use testbed::{Emulator, Namespace};
use testbed::{End, Ends};
use wire::{Bytes, Seed};

use crate::Error;
use crate::profile::{Profile, Setting, Shims};

/// Address at which the server listens.
pub(crate) const SERVER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(SERVER_ADDRESS, 80));

const CLIENT_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Queue length above any window: the emulator's queue is the one that may fill, never the device's.
const DEVICE_QUEUE: u32 = 100_000;

/// Minimum MSS of the kernel (`net.ipv4.tcp_min_snd_mss`), apart from its minimum MTU.
const LEAST_MSS: Bytes = Bytes::new(48);

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
    /// Builds a laboratory, with everything pinned and read back.
    pub(crate) fn build(
        network: &Network,
        profile: &Profile,
        seed: Seed,
        capture: Option<Bytes>,
    ) -> Result<Self, Error> {
        let mtu = mtu(network)?;
        let (client, client_tun, mut settings) =
            host(End::Client, CLIENT_ADDRESS, SERVER_ADDRESS, mtu, profile)?;
        let (server, server_tun, _) = host(End::Server, SERVER_ADDRESS, CLIENT_ADDRESS, mtu, profile)?;
        settings.extend(profile.settings());
        let Shims { ack_heartbeat, largest_window, slow_start } = profile.shims;
        // An end's data in flight is limited by the window that the other end advertises.
        let windows = Ends::of(|sender| {
            let slow_start = *slow_start.at(sender);
            (largest_window.is_some() || slow_start.is_some())
                .then(|| AdvertisedWindow::new(largest_window.unwrap_or(u16::MAX), slow_start))
        });
        let options =
            Options { seed, ack_heartbeat, windows, reactions: true, capture, ..Options::default() };
        let scenario::network::Links { up, down } = network.links();
        let link = Emulator::start(client_tun, server_tun, &up, &down, &options)?;
        Ok(Self { client, server, link, settings })
    }
}

/// A namespace pinned to a profile, with one device and one route.
fn host(
    end: End,
    own: Ipv4Addr,
    peer: Ipv4Addr,
    mtu: u32,
    profile: &Profile,
) -> Result<(Namespace, Tun, Vec<Setting>), Error> {
    let name = match end {
        End::Client => "client",
        End::Server => "server",
    };
    let namespace = Namespace::new(name)?;
    let profile = profile.clone();
    let (tun, settings) = namespace.run(move || {
        let settings = profile.pin()?;
        let tun = Tun::open(name)?;
        let mut netlink = Netlink::open()?;
        netlink.bring_up(name, Link { mtu, tx_queue_length: DEVICE_QUEUE, gso_max_segments: 1 })?;
        netlink.add_address(name, own)?;
        netlink.set_route(
            name,
            &Route { destination: peer, source: own, metrics: profile.metrics.at(end).clone() },
        )?;
        Ok::<_, Error>((tun, settings))
    })?;
    Ok((namespace, tun, settings))
}

/// The MTU, if the kernel supports it.
fn mtu(network: &Network) -> Result<u32, Error> {
    let fitting = u32::try_from(network.mtu().get()).ok().filter(|_| network.mss >= LEAST_MSS);
    fitting.ok_or_else(|| Error::Unsuited {
        part: format!("segments of {} on a Linux kernel", network.mss),
        remedy: format!("use --mss {} or more, or another engine", LEAST_MSS.get()),
    })
}
