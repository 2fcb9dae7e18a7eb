//! Links, addresses and routes of the calling thread's namespace: RTNETLINK, encoded by hand.
//!
//! Only a few requests, synchronous, on one socket. The numbers are
//! Linux's (`linux/rtnetlink.h`, `linux/if_link.h`), the format is that of netlink(7).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::str::FromStr;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};

use crate::Error;
use crate::netlink_message::{Attributes, Message, messages};

/// A socket to the kernel's routing tables.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

/// Settings of a link, as set when it is brought up and as read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Maximum IP packet, bytes.
    pub mtu: u32,
    /// The device's own queue, packets: it precedes the emulator's and must never be the one that fills.
    pub tx_queue_length: u32,
    /// Maximum segments cut from one large buffer at one instant: 1 sends them as an old host would.
    pub gso_max_segments: u32,
}

/// An address with its network's prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// The address.
    pub address: IpAddr,
    /// Prefix length in bits, at most 32 or 128.
    pub bits: u8,
}

impl Subnet {
    /// Every IPv4 address.
    pub const IPV4: Self = Self { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), bits: 0 };
    /// Every IPv6 address.
    pub const IPV6: Self = Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), bits: 0 };

    /// An address with a prefix length in bits.
    pub fn new(address: impl Into<IpAddr>, bits: u8) -> Self {
        Self { address: address.into(), bits }
    }

    /// Whether it is a single address: the prefix has its full length.
    pub const fn is_host(&self) -> bool {
        self.bits == if self.address.is_ipv4() { 32 } else { 128 }
    }
}

impl FromStr for Subnet {
    type Err = Error;

    /// Reads `10.0.0.1/24`, `2600:db8::1/64` or an address alone.
    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid =
            || Error::Topology(format!("{text:?} is not an address such as 10.0.0.1/24; write one"));
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let host = Self::from(address.parse::<IpAddr>().map_err(|_| invalid())?);
        let Some(bits) = bits else { return Ok(host) };
        let bits = bits.parse().ok().filter(|bits| *bits <= host.bits).ok_or_else(invalid)?;
        Ok(Self { bits, ..host })
    }
}

impl<A: Into<IpAddr>> From<A> for Subnet {
    fn from(address: A) -> Self {
        let address = address.into();
        Self { address, bits: if address.is_ipv4() { 32 } else { 128 } }
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// A route over a link, with its TCP metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination.
    pub destination: Subnet,
    /// Next hop; `None`: the destination is at the other end of the link.
    pub gateway: Option<IpAddr>,
    /// Source address; `None`: the kernel's choice.
    pub source: Option<IpAddr>,
    /// TCP settings, as in `ip route`.
    pub metrics: Metrics,
}

impl Route {
    /// A route from this address to the other end of a link, with the kernel's metrics.
    pub fn new(destination: impl Into<Subnet>, source: impl Into<IpAddr>) -> Self {
        let (destination, source) = (destination.into(), Some(source.into()));
        Self { destination, gateway: None, source, metrics: Metrics::default() }
    }
}

/// TCP metrics of a route; `None` leaves the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Maximum advertised window, bytes (`window`).
    pub window: Option<u32>,
    /// Advertised segment size, bytes (`advmss`).
    pub advertised_mss: Option<u32>,
    /// Segments in the first flight (`initcwnd`).
    pub initial_window: Option<u32>,
    /// Minimum retransmission timeout, milliseconds (`rto_min`, locked).
    pub rto_min_ms: Option<u32>,
    /// Whether every segment is acknowledged immediately (`quickack`).
    pub quick_acks: Option<bool>,
    /// The congestion control (`congctl`, locked).
    pub congestion: Option<&'static str>,
}

/// A rule of IPv4: the table in which packets are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Rules apply from the lowest priority to the highest.
    pub priority: u32,
    /// Interface by which the packets entered; `lo`: packets that this host sends. `None`: all packets.
    pub interface: Option<&'static str>,
    /// Number of the table.
    pub table: u8,
}

impl Rule {
    /// The kernel's own rule for local addresses, the first.
    pub const LOCAL: Self = Self { priority: 0, interface: None, table: RT_TABLE_LOCAL };

    fn message(self, kind: u16, flags: u16) -> Message {
        let mut message = Message::new(kind, flags);
        // `struct fib_rule_hdr`: family, prefix lengths, TOS, table, two reserved, action; 32 bits of flags.
        message.put(&[AF_INET, 0, 0, 0, self.table, 0, 0, FR_ACT_TO_TBL, 0, 0, 0, 0]);
        message.number(FRA_PRIORITY, self.priority);
        if let Some(interface) = self.interface {
            message.text(FRA_IIFNAME, interface);
        }
        message
    }
}

impl Netlink {
    /// Opens a socket in the calling thread's namespace.
    pub fn open() -> Result<Self, Error> {
        let socket =
            socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)
                .map_err(Error::kernel("open a netlink socket"))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Brings a link up with these settings, and verifies them.
    pub fn bring_up(&mut self, name: &str, link: Link) -> Result<(), Error> {
        let Link { mtu, tx_queue_length, gso_max_segments } = link;
        let mut message = Message::new(RTM_NEWLINK, 0);
        message.put(&link_header(IFF_UP));
        message.text(IFLA_IFNAME, name);
        message.number(IFLA_MTU, mtu);
        message.number(IFLA_TXQLEN, tx_queue_length);
        message.number(IFLA_GSO_MAX_SEGS, gso_max_segments);
        self.send_request(message, &format!("bring up {name} with an MTU of {mtu} bytes"))?;
        let actual = self.link(name)?;
        if actual == link {
            return Ok(());
        }
        Err(Error::Unpinned {
            setting: format!("link {name}"),
            wanted: format!("{link:?}"),
            found: format!("{actual:?}"),
        })
    }

    /// Brings a link up with its present settings.
    pub fn set_link_up(&mut self, name: &str) -> Result<(), Error> {
        let mut message = Message::new(RTM_NEWLINK, 0);
        message.put(&link_header(IFF_UP));
        message.text(IFLA_IFNAME, name);
        self.send_request(message, &format!("bring up {name}")).map(drop)
    }

    /// Brings the loopback device up with its present settings.
    pub fn bring_up_loopback(&mut self) -> Result<(), Error> {
        self.set_link_up("lo")
    }

    /// Creates a cable (veth(4)): one end here, the other in the network namespace that is open as `network`.
    pub fn add_cable(&mut self, name: &str, far: &str, network: BorrowedFd<'_>) -> Result<(), Error> {
        let mut message = Message::new(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
        message.put(&link_header(0));
        message.text(IFLA_IFNAME, name);
        message.nested(IFLA_LINKINFO, |message| {
            message.text(IFLA_INFO_KIND, "veth");
            message.nested(IFLA_INFO_DATA, |message| {
                message.nested(VETH_INFO_PEER, |message| {
                    message.put(&link_header(0));
                    message.text(IFLA_IFNAME, far);
                    message.attribute(IFLA_NET_NS_FD, &network.as_raw_fd().to_ne_bytes());
                });
            });
        });
        self.send_request(message, &format!("create the veth pair {name} and {far}")).map(drop)
    }

    /// Adds the queueing discipline of a network card to a link, of three bands (tc-pfifo_fast(8)): a sender
    /// waits while it is full.
    pub fn add_queue(&mut self, name: &str) -> Result<(), Error> {
        let index = self.index(name)?;
        let mut message = Message::new(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL);
        // `struct tcmsg`: family and padding, interface, handle, parent, info.
        for word in [0, index, 0, TC_H_ROOT, 0] {
            message.put(&word.to_ne_bytes());
        }
        message.text(TCA_KIND, "pfifo_fast");
        self.send_request(message, &format!("set the queue of {name}")).map(drop)
    }

    /// Adds an address to a link, without duplicate address detection.
    pub fn add_address(&mut self, name: &str, address: impl Into<Subnet>) -> Result<(), Error> {
        let (index, subnet) = (self.index(name)?, address.into());
        let mut message = Message::new(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
        message.put(&[family(subnet.address), subnet.bits, IFA_F_NODAD, 0]);
        message.put(&index.to_ne_bytes());
        message.address(IFA_LOCAL, subnet.address);
        message.address(IFA_ADDRESS, subnet.address);
        self.send_request(message, &format!("add the address {subnet} to {name}")).map(drop)
    }

    /// Creates or replaces a route over a link, and verifies it.
    pub fn set_route(&mut self, name: &str, route: &Route) -> Result<(), Error> {
        let Route { destination, gateway, source, metrics } = route;
        let index = self.index(name)?;
        let mut message = Message::new(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
        message.put(&route_header(*destination, gateway.is_some()));
        if destination.bits > 0 {
            message.address(RTA_DST, destination.address);
        }
        if let Some(gateway) = gateway {
            message.address(RTA_GATEWAY, *gateway);
        }
        if let Some(source) = source {
            message.address(RTA_PREFSRC, *source);
        }
        message.number(RTA_OIF, index);
        message.nested(RTA_METRICS, |nested| put_metrics(nested, metrics));
        self.send_request(message, &format!("route {destination} over {name} with {metrics:?}"))?;
        let actual = self.metrics(*destination, metrics.congestion)?;
        if actual == *metrics {
            return Ok(());
        }
        Err(Error::Unpinned {
            setting: format!("the route to {destination}"),
            wanted: format!("{metrics:?}"),
            found: format!("{actual:?}"),
        })
    }

    /// Adds a route over a link to another table than the main one, without metrics.
    pub fn add_route_in(&mut self, table: u8, name: &str, route: &Route) -> Result<(), Error> {
        let Route { destination, gateway: _, source, metrics: _ } = route;
        let index = self.index(name)?;
        let mut header = route_header(*destination, false);
        header[4] = table;
        let mut message = Message::new(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
        message.put(&header);
        message.address(RTA_DST, destination.address);
        if let Some(source) = source {
            message.address(RTA_PREFSRC, *source);
        }
        message.number(RTA_OIF, index);
        self.send_request(message, &format!("route {destination} over {name} in table {table}")).map(drop)
    }

    /// Adds a rule of IPv4 (ip-rule(8)).
    pub fn add_rule(&mut self, rule: Rule) -> Result<(), Error> {
        let message = rule.message(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
        self.send_request(message, &format!("add {rule:?}")).map(drop)
    }

    /// Removes a rule of IPv4.
    pub fn remove_rule(&mut self, rule: Rule) -> Result<(), Error> {
        self.send_request(rule.message(RTM_DELRULE, 0), &format!("remove {rule:?}")).map(drop)
    }

    /// Removes the route to all of IPv4.
    pub fn remove_default_route(&mut self) -> Result<(), Error> {
        let mut message = Message::new(RTM_DELROUTE, 0);
        message.put(&route_header(Subnet::IPV4, false));
        self.send_request(message, "remove the default route").map(drop)
    }

    /// Number of packets that a link dropped before the emulator could read them.
    pub fn dropped(&mut self, name: &str) -> Result<u64, Error> {
        let response = self.get_link(name)?;
        let statistics = attribute(&response, LINK_HEADER, IFLA_STATS64).unwrap_or_default();
        // rtnl_link_stats64: rx and tx packets, bytes, errors, then rx_dropped, tx_dropped; 8 bytes each.
        let tx_dropped = statistics.get(7 * 8..8 * 8).and_then(|bytes| bytes.try_into().ok());
        tx_dropped.map(u64::from_ne_bytes).ok_or_else(|| incomplete(name, "statistics"))
    }

    fn link(&mut self, name: &str) -> Result<Link, Error> {
        let response = self.get_link(name)?;
        let number =
            |kind, attribute| number(&response, LINK_HEADER, kind).ok_or_else(|| incomplete(name, attribute));
        Ok(Link {
            mtu: number(IFLA_MTU, "MTU")?,
            tx_queue_length: number(IFLA_TXQLEN, "queue length")?,
            gso_max_segments: number(IFLA_GSO_MAX_SEGS, "gso_max_segs")?,
        })
    }

    fn index(&mut self, name: &str) -> Result<u32, Error> {
        let response = self.get_link(name)?;
        let index = response.get(4..8).and_then(|bytes| bytes.try_into().ok());
        index.map(u32::from_ne_bytes).ok_or_else(|| incomplete(name, "index"))
    }

    fn get_link(&mut self, name: &str) -> Result<Vec<u8>, Error> {
        let mut message = Message::new(RTM_GETLINK, 0);
        message.put(&link_header(0));
        message.text(IFLA_IFNAME, name);
        let responses = self.send_request(message, &format!("read the state of link {name}"))?;
        responses.into_iter().next().ok_or_else(|| incomplete(name, "description"))
    }

    /// The kernel's metrics of the route to `destination`, limited to those in [`Metrics`].
    fn metrics(&mut self, destination: Subnet, expected: Option<&'static str>) -> Result<Metrics, Error> {
        let mut message = Message::new(RTM_GETROUTE, NLM_F_DUMP);
        message.put(&route_header(destination, false));
        let responses = self.send_request(message, "list the routes")?;
        let matches_destination = |prefix: Option<&[u8]>| match destination.address {
            _ if destination.bits == 0 => prefix.is_none(),
            IpAddr::V4(address) => prefix == Some(&address.octets()),
            IpAddr::V6(address) => prefix == Some(&address.octets()),
        };
        let route = responses.iter().find(|response| {
            matches_destination(attribute(response, ROUTE_HEADER, RTA_DST))
                && response.get(1) == Some(&destination.bits)
                && number(response, ROUTE_HEADER, RTA_TABLE) == Some(u32::from(RT_TABLE_MAIN))
        });
        let nested =
            route.and_then(|response| attribute(response, ROUTE_HEADER, RTA_METRICS)).unwrap_or_default();
        let congestion = attribute(nested, 0, RTAX_CC_ALGO).map(without_nul);
        Ok(Metrics {
            window: number(nested, 0, RTAX_WINDOW),
            advertised_mss: number(nested, 0, RTAX_ADVMSS),
            initial_window: number(nested, 0, RTAX_INITCWND),
            rto_min_ms: number(nested, 0, RTAX_RTO_MIN),
            quick_acks: number(nested, 0, RTAX_QUICKACK).map(|quick| quick != 0),
            // A name other than the expected one shows as `None`, which is as much a mismatch.
            congestion: expected.filter(|name| congestion == Some(name.as_bytes())),
        })
    }

    /// Sends a message and returns the bodies of the replies before the acknowledgement.
    fn send_request(&mut self, message: Message, doing: &str) -> Result<Vec<Vec<u8>>, Error> {
        let refused = |errno| Error::Kernel { doing: doing.to_owned(), errno };
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = message.finish(self.sequence);
        let kernel = NetlinkAddr::new(0, 0);
        sendto(self.socket.as_raw_fd(), &bytes, &kernel, MsgFlags::empty()).map_err(refused)?;
        let mut responses = Vec::new();
        loop {
            let mut buffer = [0; 65_536];
            let length = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()).map_err(refused)?;
            let received = buffer.get(..length).unwrap_or_default();
            for response in messages(received).filter(|response| response.sequence == self.sequence) {
                match response.kind {
                    NLMSG_DONE => return Ok(responses),
                    NLMSG_ERROR => {
                        return match response.error() {
                            0 => Ok(responses),
                            code => Err(refused(Errno::from_raw(-code))),
                        };
                    }
                    _another_message => responses.push(response.body.to_vec()),
                }
            }
        }
    }
}

/// `struct ifinfomsg`, with the flags to set.
fn link_header(flags: u32) -> [u8; LINK_HEADER] {
    let mut header = [0; LINK_HEADER];
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..].copy_from_slice(&flags.to_ne_bytes());
    header
}

/// `struct rtmsg` for a unicast route in the main table. A gateway need not be in a network of the link's own.
const fn route_header(destination: Subnet, has_gateway: bool) -> [u8; ROUTE_HEADER] {
    let (scope, flags) = if has_gateway { (RT_SCOPE_UNIVERSE, RTNH_F_ONLINK) } else { (RT_SCOPE_LINK, 0) };
    let [f0, f1, f2, f3] = u32::to_ne_bytes(flags);
    let family = family(destination.address);
    [family, destination.bits, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST, f0, f1, f2, f3]
}

const fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => AF_INET,
        IpAddr::V6(_) => AF_INET6,
    }
}

fn put_metrics(nested: &mut Message, metrics: &Metrics) {
    let Metrics { window, advertised_mss, initial_window, rto_min_ms, quick_acks, congestion } = metrics;
    let numbers = [
        (RTAX_WINDOW, *window),
        (RTAX_ADVMSS, *advertised_mss),
        (RTAX_INITCWND, *initial_window),
        (RTAX_RTO_MIN, *rto_min_ms),
        (RTAX_QUICKACK, quick_acks.map(u32::from)),
    ];
    for (kind, value) in numbers {
        if let Some(value) = value {
            nested.number(kind, value);
        }
    }
    if let Some(name) = congestion {
        nested.text(RTAX_CC_ALGO, name);
    }
    // A locked metric is not changed by what connections learn. One that is locked and not set counts as 0:
    // this would reset the minimum timeout and, bounded by it, the delay of ACKs (`tcp_delack_max`).
    let lock = |kind: u16, is_set: bool| u32::from(is_set) << kind;
    nested.number(
        RTAX_LOCK,
        lock(RTAX_RTO_MIN, rto_min_ms.is_some()) | lock(RTAX_CC_ALGO, congestion.is_some()),
    );
}

fn attribute(body: &[u8], header: usize, kind: u16) -> Option<&[u8]> {
    Attributes::after(body, header).find(|(other, _)| *other == kind).map(|(_, value)| value)
}

fn number(body: &[u8], header: usize, kind: u16) -> Option<u32> {
    attribute(body, header, kind)?.try_into().ok().map(u32::from_ne_bytes)
}

fn without_nul(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\0").unwrap_or(text)
}

fn incomplete(name: &str, attribute: &str) -> Error {
    Error::Kernel { doing: format!("read the {attribute} of link {name}"), errno: Errno::ENODATA }
}

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IFA_F_NODAD: u8 = 2;
const IFF_UP: u32 = 1;

const NLM_F_CREATE: u16 = 0x400;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWRULE: u16 = 32;
const RTM_DELRULE: u16 = 33;
const RTM_NEWQDISC: u16 = 36;

const LINK_HEADER: usize = 16;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const TCA_KIND: u16 = 1;
const TC_H_ROOT: u32 = 0xffff_ffff;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

const ROUTE_HEADER: usize = 12;
const RT_TABLE_MAIN: u8 = 254;
const RT_TABLE_LOCAL: u8 = 255;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_LINK: u8 = 253;
const RTNH_F_ONLINK: u32 = 4;
const RTN_UNICAST: u8 = 1;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTA_TABLE: u16 = 15;
const RTAX_LOCK: u16 = 1;
const RTAX_WINDOW: u16 = 3;
const RTAX_ADVMSS: u16 = 8;
const RTAX_INITCWND: u16 = 11;
const RTAX_RTO_MIN: u16 = 13;
const RTAX_QUICKACK: u16 = 15;
const RTAX_CC_ALGO: u16 = 16;

const FRA_IIFNAME: u16 = 3;
const FRA_PRIORITY: u16 = 6;
const FR_ACT_TO_TBL: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits of the locked metrics.
    fn locked(metrics: &Metrics) -> Option<u32> {
        let mut message = Message::new(RTM_NEWROUTE, 0);
        put_metrics(&mut message, metrics);
        number(&message.finish(0), MESSAGE_HEADER, RTAX_LOCK)
    }

    #[test]
    fn regress_only_set_metrics_are_locked() {
        let metrics = Metrics { congestion: Some("cubic"), ..Metrics::default() };
        assert_eq!(locked(&metrics), Some(1 << RTAX_CC_ALGO));
        let metrics = Metrics { rto_min_ms: Some(1_000), ..metrics };
        assert_eq!(locked(&metrics), Some(1 << RTAX_CC_ALGO | 1 << RTAX_RTO_MIN));
        assert_eq!(locked(&Metrics::default()), Some(0));
    }

    /// `struct nlmsghdr`.
    const MESSAGE_HEADER: usize = 16;
}
