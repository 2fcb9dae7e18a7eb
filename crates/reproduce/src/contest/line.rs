//! A server's host behind a bottleneck, hosts of users beyond it, and a queue that drops packets: the network of
//! `papers/dhttp#section-vi-b`, figure 13.
//!
//! All hosts are kernels: the server's, a router's, and one for each host of users. `measure`'s emulated links connect
//! them, one as the bottleneck and one for each host's path to it. Not the programs on the hosts: see `crowd`.

use std::fs;
use std::net::Ipv4Addr;

use measure::Error;
use testbed::emulator::{Options, Running};
use testbed::netlink::{Link, Metrics, Netlink, Route};
use testbed::tun::Tun;
use testbed::{Emulator, Namespace};
use wire::link::{Config, QueueLimit};
use wire::{Duration, Rate};

use super::failed;
use super::hosts::SERVER;

/// "A fractional T3 line with a bandwidth of up to 9Mbps."
const BITS: u64 = 9_000_000;
/// A router's queue: 60 packets, 80 ms of this link (as in `simulate::town`).
const QUEUE: QueueLimit = QueueLimit { packets: Some(60), bytes: None };
/// Round-trip times from New Jersey to Seattle, Durham and New York.
const ROUND_TRIPS: [Duration; 3] =
    [Duration::from_millis(70), Duration::from_millis(25), Duration::from_millis(10)];
/// Round-trip time of the competing download.
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// A tenth of a full queue's delay: a link that is later distorts the measurement.
const LATE: Duration = Duration::from_millis(8);

/// An Ethernet's device; the emulator's queue is the one that may fill, never the device's.
const DEVICE: Link = Link { mtu: 1_500, tx_queue_length: 100_000, gso_max_segments: 1 };

/// The hosts, removed when dropped.
pub struct Line {
    /// Namespace of the server.
    pub server: Namespace,
    /// Namespaces of the users: one for each host.
    pub machines: Vec<Namespace>,
    /// Namespace of the competing download.
    pub beside: Namespace,
    links: Vec<Running>,
    _router: Namespace,
}

/// Statistics of the links.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Carried {
    /// Share of the packets towards the users that the bottleneck's full queue dropped.
    pub dropped_share: f64,
    /// 99.9th percentile of the lateness of the latest link.
    pub late: Duration,
    /// Whether a link was too late, or lost packets that it should have carried: then no result is valid.
    pub is_late: bool,
}

impl Line {
    /// A server and `machines` hosts. Needs the capability to create network namespaces.
    ///
    /// # Errors
    /// A missing program, or the system's error.
    pub fn new(machines: usize) -> Result<Self, Error> {
        let router = Namespace::new("router")?;
        router.run(|| {
            fs::write("/proc/sys/net/ipv4/ip_forward", "1").map_err(failed("let a router forward"))
        })?;
        let rate = Rate::from_bits_per_second(BITS);
        let line = Config { rate, queue: QUEUE, ..Config::default() };
        let (server, link) = host("server's host", &router, 0, line)?;
        let mut links = vec![link];
        let mut far = |name, number: u8, round_trip: Duration| {
            let way = Config { delay: round_trip / 2, ..Config::default() };
            let (host, link) = host(name, &router, number, way)?;
            links.push(link);
            Ok::<_, Error>(host)
        };
        let beside = far("host beside", u8::MAX, ROUND_TRIP)?;
        let mut hosts = Vec::new();
        for (number, round_trip) in (1..).zip(ROUND_TRIPS.into_iter().take(machines)) {
            hosts.push(far("users' host", number, round_trip)?);
        }
        Ok(Self { server, machines: hosts, beside, links, _router: router })
    }

    /// Stops the links and returns their statistics.
    ///
    /// # Errors
    /// When one had failed.
    pub fn end(self) -> Result<Carried, Error> {
        let mut carried = Carried::default();
        for (number, link) in self.links.into_iter().enumerate() {
            let report = link.stop()?;
            carried.late = carried.late.max(report.lateness.per_mille(999));
            carried.is_late |= report.void().is_some();
            // The bottleneck is the first link; its server's side sends towards the users.
            if number == 0 {
                let counters = report.down.link;
                let offered = counters.offered.packets.max(1);
                carried.dropped_share = counters.dropped.packets as f64 / offered as f64;
            }
        }
        Ok(carried)
    }
}

/// A host with one device, whose other end is the router's; 0 is the server's.
fn host(
    name: &'static str,
    router: &Namespace,
    number: u8,
    way: Config,
) -> Result<(Namespace, Running), Error> {
    let (own, hop) = match number {
        0 => (SERVER, Ipv4Addr::new(192, 168, 80, 0)),
        number => (Ipv4Addr::new(192, 168, 79, number), Ipv4Addr::new(192, 168, 80, number)),
    };
    let device = format!("way{number}");
    let host = Namespace::new(name)?;
    let called = device.clone();
    let near = host.run(move || {
        let (tun, mut netlink) = device_up(&called, own)?;
        netlink.set_default_route(&called, own)?;
        netlink.bring_up_loopback()?;
        Ok::<_, Error>(tun)
    })?;
    let far = router.run(move || {
        let (tun, mut netlink) = device_up(&device, hop)?;
        let route = Route { destination: own, source: hop, metrics: Metrics::default() };
        netlink.set_route(&device, &route)?;
        Ok::<_, Error>(tun)
    })?;
    // The server sends downstream, users send upstream.
    let [client, server] = if number == 0 { [far, near] } else { [near, far] };
    // Busy-waiting for every packet of a minute would use up a thread's CPU share and make it late. Waking up takes a
    // tenth of a millisecond at most, which is negligible here.
    let options = Options { late_limit: LATE, spin: Duration::ZERO, ..Options::default() };
    let link = Emulator::start(client, server, &way, &way, &options)?;
    Ok((host, link))
}

fn device_up(name: &str, own: Ipv4Addr) -> Result<(Tun, Netlink), Error> {
    let tun = Tun::open(name)?;
    let mut netlink = Netlink::open()?;
    netlink.bring_up(name, DEVICE)?;
    netlink.add_address(name, own)?;
    Ok((tun, netlink))
}
