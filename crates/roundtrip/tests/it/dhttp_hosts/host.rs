//! A host whose only link ends in the test, which is the attacker, the victims and the network between them.
//!
//! The link has no delay and no loss. The test sees every packet that the host sends, and can send packets with any
//! source address.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsFd;
use std::sync::Arc;

use linux::netlink::Subnet;
use linux::tun::Tun;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use testbed::{Interface, Namespace, Testbed, Topology};
use wire::packet::{Flags, Packet, TcpBuilder, Transport, UdpBuilder};

/// A host with one address, whose default route is the test.
pub(crate) struct Host {
    namespace: Namespace,
    tun: Arc<Tun>,
    address: Ipv4Addr,
}

/// A packet that the host sent.
pub(crate) struct SentPacket(pub(crate) Vec<u8>);

impl Host {
    pub(crate) fn new(name: &'static str, address: [u8; 4]) -> Self {
        Self::of(address, Interface::of(name, name))
    }

    /// Creates a host with an IPv6 address, too.
    pub(crate) fn dual_stack(name: &'static str, address: [u8; 4], other: Ipv6Addr) -> Self {
        let host = Self::of(address, Interface::of(name, name).address(other).reaches(Subnet::IPV6));
        // Packets to a new IPv6 address have a route when a work queue has made it (Linux, addrconf_dad_work), which may be late.
        let route: String = other.octets().iter().map(|byte| format!("{byte:02x}")).collect();
        host.run(move || {
            let routes = || std::fs::read_to_string("/proc/thread-self/net/ipv6_route").unwrap();
            while !routes().contains(&format!("{route} 80 ")) {
                std::thread::yield_now();
            }
        });
        host
    }

    fn of(address: [u8; 4], end: Interface) -> Self {
        let address = Ipv4Addr::from(address);
        let end = end.address(address).reaches(Subnet::IPV4);
        let Testbed { links: _, stubs, hosts } = Topology::new().host(end.host()).stub(end).build().unwrap();
        let [namespace] = <[Namespace; 1]>::try_from(hosts).unwrap();
        let [tun] = <[Tun; 1]>::try_from(stubs).unwrap();
        Self { namespace, tun: Arc::new(tun), address }
    }

    /// Returns the test's end of the link.
    pub(crate) fn link(&self) -> Arc<Tun> {
        Arc::clone(&self.tun)
    }

    pub(crate) const fn socket(&self, port: u16) -> SocketAddr {
        SocketAddr::V4(SocketAddrV4::new(self.address, port))
    }

    /// Runs a job on the host; its child threads run there, too.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        self.namespace.start(job).wait().unwrap()
    }

    /// Delivers a packet to the host.
    pub(crate) fn deliver(&self, packet: &[u8]) {
        self.tun.write(packet).unwrap();
    }

    /// Delivers a datagram with this source address; returns its bytes on the network.
    pub(crate) fn deliver_datagram(&self, from: SocketAddr, port: u16, payload: &[u8]) -> u64 {
        self.deliver_datagram_at(self.socket(port), from, payload)
    }

    /// Delivers a datagram to one of the host's addresses.
    pub(crate) fn deliver_datagram_at(&self, at: SocketAddr, from: SocketAddr, payload: &[u8]) -> u64 {
        let mut packet = Vec::with_capacity(1_500);
        UdpBuilder { source: from, destination: at }.write(payload, &mut packet).unwrap();
        self.deliver(&packet);
        packet.len() as u64
    }

    /// Delivers a segment with this source address.
    pub(crate) fn deliver_segment(
        &self,
        (source, port): (SocketAddr, u16),
        (seq, ack): (u32, u32),
        flags: Flags,
        payload: &[u8],
    ) {
        let destination = self.socket(port);
        let segment = TcpBuilder { source, destination, seq, ack, flags, window: 65_535, options: &[] };
        let mut packet = Vec::new();
        segment.write(payload, &mut packet).unwrap();
        self.deliver(&packet);
    }

    /// Returns the next packet that the host sends within this time, if any.
    pub(crate) fn next(&self, within_ms: u16) -> Option<SentPacket> {
        let mut buffer = [0; 2_048];
        loop {
            if let Some(length) = self.tun.read(&mut buffer).unwrap() {
                return Some(SentPacket(buffer[..length].to_vec()));
            }
            let mut events = [PollFd::new(self.tun.as_fd(), PollFlags::POLLIN)];
            if poll(&mut events, PollTimeout::from(within_ms)).unwrap() == 0 {
                return None;
            }
        }
    }

    /// Returns every packet that the host sends until it has sent nothing for `silence_ms`.
    pub(crate) fn until_silent(&self, silence_ms: u16) -> Vec<SentPacket> {
        std::iter::from_fn(|| self.next(silence_ms)).collect()
    }
}

impl SentPacket {
    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet::read(&self.0).unwrap()
    }

    pub(crate) fn to(&self) -> SocketAddr {
        self.packet().sockets().map_or(SocketAddr::new(self.packet().destination, 0), |(_, to)| to)
    }

    pub(crate) fn is_tcp(&self) -> bool {
        self.packet().tcp().is_some()
    }

    /// The payload, if it is a datagram.
    pub(crate) fn datagram(&self) -> Option<&[u8]> {
        match self.packet().transport {
            Transport::Udp(datagram) => Some(datagram.payload),
            Transport::Tcp(_) | Transport::Fragment | Transport::Other { .. } => None,
        }
    }

    /// Its bytes on the network.
    pub(crate) fn bytes(&self) -> u64 {
        self.packet().ip_length.get()
    }
}
