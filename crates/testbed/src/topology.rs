//! A network: hosts, routers, and the links between their interfaces.
//!
//! Every host is a network namespace with its loopback device up. IPv6 is off on a host without an address of it:
//! neighbour and router discovery would be among the packets. An address without a network (`/32`, `/128`) gets a
//! route from the other end of its link; [`Interface::reaches`] adds routes beyond that.
//!
//! ```text
//! client eth0 10.0.0.2/24 -- 10.0.0.1/24 lan [router] wan 11.0.0.1/24 -- 11.0.0.2/24 eth0 server
//! ```
//!
//! ```no_run
//! use linux::netlink::Subnet;
//! use roundtrip_testbed::{Interface, Topology};
//!
//! let ([client, router, server], []) = Topology::new()
//!     .host("client")
//!     .router("router")
//!     .host("server")
//!     .cable([
//!         Interface::of("client", "eth0").address("10.0.0.2/24".parse::<Subnet>()?).reaches(Subnet::IPV4),
//!         Interface::of("router", "lan").address("10.0.0.1/24".parse::<Subnet>()?),
//!     ])
//!     .cable([
//!         Interface::of("router", "wan").address("11.0.0.1/24".parse::<Subnet>()?),
//!         Interface::of("server", "eth0").address("11.0.0.2/24".parse::<Subnet>()?).reaches(Subnet::IPV4),
//!     ])
//!     .build()?
//!     .split()?;
//! # Ok::<(), roundtrip_testbed::Error>(())
//! ```
//!
//! It starts nothing on the hosts: that is the caller's, by [`Namespace::start`].

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::fd::AsFd;

use wire::link::Config;

use crate::emulator::{Options, Running};
use crate::{Emulator, Error, Namespace};
use linux::card::{self, Offload};
use linux::netlink::{Link, Metrics, Netlink, Route, Subnet};
use linux::privilege::sysctl_path;
use linux::tun::Tun;

/// A network to be created.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    hosts: Vec<Host>,
    links: Vec<PlannedLink>,
}

#[derive(Clone, Debug)]
struct Host {
    name: &'static str,
    forwards: bool,
    settings: Vec<(&'static str, &'static str)>,
}

#[derive(Clone, Debug)]
enum PlannedLink {
    Cable([Interface; 2]),
    Emulated { ends: [Interface; 2], directions: Box<[Config; 2]>, options: Box<Options> },
    Stub(Interface),
}

/// One end of a link: a device of a host, its addresses, and the destinations beyond it.
#[derive(Clone, Debug)]
pub struct Interface {
    host: &'static str,
    device: String,
    addresses: Vec<Subnet>,
    beyond: Vec<Subnet>,
    metrics: Metrics,
    /// Settings of a device with an emulated link.
    settings: Link,
    /// Offloads of a cable's end.
    offloads: Vec<(Offload, bool)>,
    has_queue: bool,
    receives_in_thread: bool,
}

/// The created network, removed when dropped.
#[derive(Debug)]
pub struct Testbed {
    /// Emulated links, in order of addition.
    pub links: Vec<Running>,
    /// The other ends of the stubs, in order of addition.
    pub stubs: Vec<Tun>,
    /// Hosts and routers, in order of addition.
    pub hosts: Vec<Namespace>,
}

impl Topology {
    /// A network without hosts or links.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a host; `name` is also used in error messages.
    #[must_use]
    pub fn host(mut self, name: &'static str) -> Self {
        self.hosts.push(Host { name, forwards: false, settings: Vec::new() });
        self
    }

    /// Adds a host that forwards packets.
    #[must_use]
    pub fn router(mut self, name: &'static str) -> Self {
        self.hosts.push(Host { name, forwards: true, settings: Vec::new() });
        self
    }

    /// Sets a sysctl of the host or router added last, such as `net.ipv4.tcp_fastopen`, before its devices exist.
    #[must_use]
    pub fn setting(mut self, name: &'static str, value: &'static str) -> Self {
        if let Some(host) = self.hosts.last_mut() {
            host.settings.push((name, value));
        }
        self
    }

    /// Joins two interfaces by a cable (veth(4)), without a rate or a delay.
    #[must_use]
    pub fn cable(mut self, ends: [Interface; 2]) -> Self {
        self.links.push(PlannedLink::Cable(ends));
        self
    }

    /// Joins two interfaces by an emulated link: the client's side, which sends by the first configuration, and the
    /// server's, which sends by the second.
    #[must_use]
    pub fn emulated(mut self, ends: [Interface; 2], directions: [&Config; 2], options: &Options) -> Self {
        let (directions, options) = (Box::new(directions.map(Clone::clone)), Box::new(options.clone()));
        self.links.push(PlannedLink::Emulated { ends, directions, options });
        self
    }

    /// Adds an interface whose other end is the caller ([`Testbed::stubs`]).
    #[must_use]
    pub fn stub(mut self, end: Interface) -> Self {
        self.links.push(PlannedLink::Stub(end));
        self
    }

    /// Creates the network.
    ///
    /// # Errors
    /// A host that is named twice or not at all; an invalid link; a missing right, or the kernel's refusal.
    pub fn build(self) -> Result<Testbed, Error> {
        let mut hosts: Vec<Namespace> = Vec::with_capacity(self.hosts.len());
        for host in &self.hosts {
            if hosts.iter().any(|other| other.name() == host.name) {
                return Err(Error::Topology(format!("two hosts are called {}; rename one", host.name)));
            }
            let namespace = Namespace::new(host.name)?;
            let (host, has_ipv6) = (host.clone(), self.has_ipv6(host.name));
            namespace.run(move || host.prepare(has_ipv6))?;
            hosts.push(namespace);
        }
        let (mut links, mut stubs) = (Vec::new(), Vec::new());
        for link in self.links {
            match link {
                PlannedLink::Cable(ends) => create_cable(&hosts, ends)?,
                PlannedLink::Emulated { ends, directions, options } => {
                    let (mut tuns, [up, down]) = (Vec::new(), &*directions);
                    for (own, peer) in each_with_peer(&ends) {
                        tuns.push(create_tun(&hosts, own, &peer.addresses)?);
                    }
                    let (Some(server), Some(client)) = (tuns.pop(), tuns.pop()) else { continue };
                    links.push(Emulator::start(client, server, up, down, &options)?);
                }
                PlannedLink::Stub(end) => stubs.push(create_tun(&hosts, &end, &[])?),
            }
        }
        Ok(Testbed { links, stubs, hosts })
    }

    fn has_ipv6(&self, host: &str) -> bool {
        let ends = self.links.iter().flat_map(|link| match link {
            PlannedLink::Cable(ends) | PlannedLink::Emulated { ends, directions: _, options: _ } => {
                ends.as_slice()
            }
            PlannedLink::Stub(end) => std::slice::from_ref(end),
        });
        let mut addresses = ends.filter(|end| end.host == host).flat_map(|end| &end.addresses);
        addresses.any(|subnet| subnet.address.is_ipv6())
    }
}

impl Testbed {
    /// Returns the hosts and the emulated links, each in order of addition.
    ///
    /// # Errors
    /// [`Error::Topology`] if the topology has another number of them.
    pub fn split<const HOSTS: usize, const LINKS: usize>(
        self,
    ) -> Result<([Namespace; HOSTS], [Running; LINKS]), Error> {
        let Self { links, stubs: _, hosts } = self;
        let actual = format!("the topology has {} hosts and {} emulated links", hosts.len(), links.len());
        let mismatch = || Error::Topology(format!("{actual}, not {HOSTS} and {LINKS}"));
        Ok((hosts.try_into().map_err(|_| mismatch())?, links.try_into().map_err(|_| mismatch())?))
    }
}

impl Interface {
    /// A device of a host, without an address. The packets are at most 1,500 bytes, and one segment each.
    pub fn of(host: &'static str, device: impl Into<String>) -> Self {
        Self {
            host,
            device: device.into(),
            addresses: Vec::new(),
            beyond: Vec::new(),
            metrics: Metrics::default(),
            settings: Link { mtu: 1_500, tx_queue_length: DEVICE_QUEUE, gso_max_segments: 1 },
            offloads: Vec::new(),
            has_queue: false,
            receives_in_thread: false,
        }
    }

    /// The name of the host that it belongs to.
    pub const fn host(&self) -> &'static str {
        self.host
    }

    /// Adds an address: a [`Subnet`], or one without a network.
    #[must_use]
    pub fn address(mut self, address: impl Into<Subnet>) -> Self {
        self.addresses.push(address.into());
        self
    }

    /// Routes these addresses over the link, besides those of its other end. Over a cable the other end's first
    /// address of the same family is the next hop.
    #[must_use]
    pub fn reaches(mut self, destination: impl Into<Subnet>) -> Self {
        self.beyond.push(destination.into());
        self
    }

    /// Sets the TCP metrics of the routes over this link.
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Sets the maximum size of packets on an emulated link, bytes.
    #[must_use]
    pub const fn mtu(mut self, mtu: u32) -> Self {
        self.settings.mtu = mtu;
        self
    }

    /// Sets the number of segments that are cut from one large buffer at one instant, for an emulated link.
    #[must_use]
    pub const fn gso_max_segments(mut self, segments: u32) -> Self {
        self.settings.gso_max_segments = segments;
        self
    }

    /// Switches an offload of a cable's end on or off.
    #[must_use]
    pub fn offload(mut self, offload: Offload, is_on: bool) -> Self {
        self.offloads.push((offload, is_on));
        self
    }

    /// Gives a cable's end the queue of a network card: a sender waits while it is full, instead of losing packets.
    #[must_use]
    pub const fn queue(mut self) -> Self {
        self.has_queue = true;
        self
    }

    /// Makes a kernel thread of the receiving host process the packets that a cable's end receives
    /// ([`card::receive_in_thread`]).
    #[must_use]
    pub const fn receive_in_thread(mut self) -> Self {
        self.receives_in_thread = true;
        self
    }
}

/// Queue length above any window: the emulator's queue is the one that may fill, never the device's.
const DEVICE_QUEUE: u32 = 100_000;

impl Host {
    /// Sets the calling thread's namespace up, before it has devices.
    fn prepare(&self, has_ipv6: bool) -> Result<(), Error> {
        let for_all =
            |name, value| [("all", value), ("default", value)].map(|(scope, value)| (scope, name, value));
        let ipv6: &[(&str, &str)] = match (has_ipv6, self.forwards) {
            (false, _) => &[("disable_ipv6", "1")],
            // The topology has every address once, and no router advertises itself.
            (true, false) => &[("disable_ipv6", "0"), ("accept_dad", "0"), ("router_solicitations", "0")],
            (true, true) => &[("disable_ipv6", "0"), ("accept_dad", "0"), ("forwarding", "1")],
        };
        for (scope, name, value) in ipv6.iter().flat_map(|(name, value)| for_all(*name, *value)) {
            match fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/{name}"), value) {
                Err(error) if error.kind() == ErrorKind::NotFound && !has_ipv6 => {}
                result => result.map_err(Error::io(format!("set {name} of IPv6 to {value}")))?,
            }
        }
        let forwarding = self.forwards.then_some(("net.ipv4.ip_forward", "1"));
        for (name, value) in forwarding.iter().chain(&self.settings) {
            fs::write(sysctl_path(name), value).map_err(Error::io(format!("set {name} to {value}")))?;
        }
        Netlink::open()?.bring_up_loopback()
    }
}

fn each_with_peer(ends: &[Interface; 2]) -> [(&Interface, &Interface); 2] {
    let [first, second] = ends;
    [(first, second), (second, first)]
}

fn find_host<'a>(hosts: &'a [Namespace], end: &Interface) -> Result<&'a Namespace, Error> {
    let missing = || {
        let Interface { host, device, .. } = end;
        Error::Topology(format!("{device} belongs to {host}, an unknown host; add it"))
    };
    hosts.iter().find(|host| host.name() == end.host).ok_or_else(missing)
}

/// Creates a TUN device with its addresses and routes; returns its other end.
fn create_tun(hosts: &[Namespace], end: &Interface, peers: &[Subnet]) -> Result<Tun, Error> {
    let (host, routes) = (find_host(hosts, end)?, end.routes(peers, false));
    let end = end.clone();
    host.run(move || {
        let tun = Tun::open(&end.device)?;
        let mut netlink = Netlink::open()?;
        netlink.bring_up(&end.device, end.settings)?;
        end.configure(&mut netlink, &routes)?;
        Ok(tun)
    })
}

/// Creates both ends of a cable, with their addresses and routes.
fn create_cable(hosts: &[Namespace], ends: [Interface; 2]) -> Result<(), Error> {
    let [near, far] = &ends;
    let (name, peer) = (near.device.clone(), far.device.clone());
    let network = find_host(hosts, far)?
        .run(|| File::open("/proc/thread-self/ns/net").map_err(Error::io("open a network namespace")))?;
    find_host(hosts, near)?.run(move || Netlink::open()?.add_cable(&name, &peer, network.as_fd()))?;
    for (own, _) in each_with_peer(&ends) {
        let device = own.device.clone();
        find_host(hosts, own)?.run(move || Netlink::open()?.set_link_up(&device))?;
    }
    for (own, peer) in each_with_peer(&ends) {
        let (routes, end) = (own.routes(&peer.addresses, true), own.clone());
        find_host(hosts, own)?.run(move || {
            end.configure(&mut Netlink::open()?, &routes)?;
            for (offload, is_on) in &end.offloads {
                card::set_offload(&end.device, *offload, *is_on)?;
            }
            if end.has_queue {
                Netlink::open()?.add_queue(&end.device)?;
            }
            if end.receives_in_thread {
                card::receive_in_thread(&end.device)?;
            }
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}

impl Interface {
    /// Routes to the other end's addresses without a network, and to the destinations beyond.
    fn routes(&self, peers: &[Subnet], has_next_hop: bool) -> Vec<Route> {
        let same_family = |subnets: &[Subnet], address: IpAddr| {
            let mut matching = subnets.iter().filter(|subnet| subnet.address.is_ipv4() == address.is_ipv4());
            matching.next().map(|subnet| subnet.address)
        };
        let route = |destination: Subnet, gateway| Route {
            destination,
            gateway,
            source: same_family(&self.addresses, destination.address),
            metrics: self.metrics.clone(),
        };
        let to_peers = peers.iter().filter(|peer| peer.is_host()).map(|peer| route(*peer, None));
        let beyond = self.beyond.iter().map(|destination| {
            let gateway = same_family(peers, destination.address).filter(|_| has_next_hop);
            route(*destination, gateway)
        });
        to_peers.chain(beyond).collect()
    }

    fn configure(&self, netlink: &mut Netlink, routes: &[Route]) -> Result<(), Error> {
        for address in &self.addresses {
            netlink.add_address(&self.device, *address)?;
        }
        routes.iter().try_for_each(|route| netlink.set_route(&self.device, route))
    }
}
