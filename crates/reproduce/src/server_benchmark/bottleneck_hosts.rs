//! A server's host behind a bottleneck, hosts of users beyond it, and a queue that drops packets: the network of
//! `papers/dhttp#section-vi-b`, figure 13.
//! All hosts are network namespaces of the kernel: the server's, a router's, and one for each host of users. `measure`'s
//! emulated links connect them, one as the bottleneck and one for each host's path to it. Not the programs on the hosts: see
//! `population`.

use std::net::Ipv4Addr;

use linux::netlink::Subnet;
use testbed::emulator::{Options, Running};
use testbed::{Error, Interface, Namespace, Testbed, Topology};
use wire::link::{Config, QueueLimit};
use wire::{Duration, Rate};

use super::hosts::SERVER;

/// "A fractional T3 line with a bandwidth of up to 9Mbps."
const BITS: u64 = 9_000_000;
/// A router's queue: 60 packets, 80 ms of this link (as in `simulate::dumbbell`).
const QUEUE: QueueLimit = QueueLimit { packets: Some(60), bytes: None };
/// Hosts of users, with their round-trip times: from New Jersey to Seattle, Durham and New York.
const USERS: [(&str, Duration); 3] = [
    ("users in Seattle", Duration::from_millis(70)),
    ("users in Durham", Duration::from_millis(25)),
    ("users in New York", Duration::from_millis(10)),
];
/// Round-trip time of the competing download.
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// A tenth of a full queue's delay: a link that is later distorts the measurement.
const LATE: Duration = Duration::from_millis(8);

/// The hosts, removed when dropped.
pub struct BottleneckHosts {
    /// Namespace of the server.
    pub server: Namespace,
    /// Namespaces of the users: one for each host.
    pub machines: Vec<Namespace>,
    /// Namespace of the competing download.
    pub download_host: Namespace,
    links: Vec<Running>,
    _router: Namespace,
}

/// Statistics of the links.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkStats {
    /// Share of the packets towards the users that the bottleneck's full queue dropped.
    pub dropped_share: f64,
    /// 99.9th percentile of the lateness of the latest link.
    pub late: Duration,
    /// Whether a link was too late, or lost packets that it should have delivered: then no result is valid.
    pub is_late: bool,
}

impl BottleneckHosts {
    /// A server and `machines` hosts. Needs the capability to create network namespaces.
    ///
    /// # Errors
    /// A missing program, or the system's error.
    pub fn new(machines: usize) -> Result<Self, Error> {
        let rate = Rate::from_bits_per_second(BITS);
        let bottleneck = Config { rate, queue: QUEUE, ..Config::default() };
        // Busy-waiting for every packet of a minute would use up a thread's CPU share and make it late. Waking up takes
        // a tenth of a millisecond at most, which is negligible here.
        let options = Options { late_limit: LATE, spin: Duration::ZERO, ..Options::default() };
        let host = |name, number, address| {
            Interface::of(name, format!("way{number}")).address(address).reaches(Subnet::IPV4)
        };
        let hop = |number| {
            let address = Ipv4Addr::new(192, 168, 80, number);
            Interface::of("router", format!("way{number}")).address(address)
        };
        let far = |drawing: Topology, name, number, round_trip: Duration| {
            let way = Config { delay: round_trip / 2, ..Config::default() };
            let users = host(name, number, Ipv4Addr::new(192, 168, 79, number));
            drawing.host(name).emulated([users, hop(number)], [&way; 2], &options)
        };
        let mut drawing = Topology::new().router("router").host("server's host").emulated(
            [hop(0), host("server's host", 0, SERVER)],
            [&bottleneck; 2],
            &options,
        );
        drawing = far(drawing, "host beside", u8::MAX, ROUND_TRIP);
        for (number, (name, round_trip)) in (1..).zip(USERS.into_iter().take(machines)) {
            drawing = far(drawing, name, number, round_trip);
        }
        let Testbed { links, stubs: _, hosts } = drawing.build()?;
        let mut hosts = hosts.into_iter();
        let missing = || Error::Topology("a host is missing".to_owned());
        let mut next = || hosts.next().ok_or_else(missing);
        let (router, server, download_host) = (next()?, next()?, next()?);
        Ok(Self { server, machines: hosts.collect(), download_host, links, _router: router })
    }

    /// Stops the links and returns their statistics.
    ///
    /// # Errors
    /// When one of them had failed.
    pub fn end(self) -> Result<LinkStats, Error> {
        let mut carried = LinkStats::default();
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
