//! An emulated link between the programs of one host: what clients send to 127.0.0.0/8 crosses it, and so do replies.
//!
//! ```text
//! client, 127.255.0.1 -- device `client` == emulated link == device `server` -- 127.0.0.1, servers
//! ```
//!
//! A connection to a loopback address leaves through the client's device, with its source address from the route
//! ([`CLIENT`]). That address shows the direction of every packet: those to it leave through the server's device. Packets
//! that the link delivers are for this host, because rules give them the table of local addresses. Servers still see a
//! client at a loopback address.
//!
//! [`reach_outside`] sends packets for other hosts over the link as well: they leave by the server's device, and are forwarded to a
//! device that leads out.
//!
//! A client that binds to another loopback address itself has both directions on the client's device, and so the link's
//! upward direction twice. IPv6 is off, because no packet of ::1 may enter by a device: `localhost` falls back to IPv4.
//! From ip-rule(8) and the kernel's Documentation/networking/ip-sysctl.rst (`route_localnet`, `accept_local`).

use std::fs;
use std::io::ErrorKind;
use std::net::Ipv4Addr;

use nix::net::if_::if_nametoindex;
use wire::link::Config;
use wire::{Duration, Seed};

use crate::emulator::{Options, Running};
use crate::{Emulator, Error};
use linux::netlink::{Link, Metrics, Netlink, Route, Rule, Subnet};
use linux::tun::Tun;

/// Name of the device of all clients.
pub const CLIENT_DEVICE: &str = "client";
/// Name of the device of all servers.
pub const SERVER_DEVICE: &str = "server";
/// Source address of clients.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(127, 255, 0, 1);

/// Table of the two routes; any number that the kernel does not use.
const TABLE: u8 = 100;
/// Table of the route of replies from outside.
const RETURN_TABLE: u8 = 101;
/// Queue length above any window: the emulator's queue is the one that may fill.
const DEVICE_QUEUE: u32 = 100_000;

/// Starts the link in the calling thread's network namespace, which must be a private one: its other networks and its IPv6
/// stop working. `up` is what clients send; packets have at most `mtu` bytes; `seed` is that of the link's randomness.
///
/// # Errors
/// A missing right; an invalid link; or the kernel's refusal.
pub fn start(up: &Config, down: &Config, mtu: u32, seed: Seed) -> Result<Running, Error> {
    let devices = [CLIENT_DEVICE, SERVER_DEVICE];
    let [client, server] = [Tun::open(devices[0])?, Tun::open(devices[1])?];
    let mut netlink = Netlink::open()?;
    set("net/ipv6/conf/all/disable_ipv6", "1")?;
    // The highest of this and the device's counts.
    set("net/ipv4/conf/all/rp_filter", "0")?;
    for device in devices {
        for (name, value) in [("route_localnet", "1"), ("accept_local", "1"), ("rp_filter", "0")] {
            set(&format!("net/ipv4/conf/{device}/{name}"), value)?;
        }
        netlink.bring_up(device, Link { mtu, tx_queue_length: DEVICE_QUEUE, gso_max_segments: 1 })?;
    }
    let to_servers = Route::new(Subnet::new(Ipv4Addr::new(127, 0, 0, 0), 8), CLIENT);
    let to_clients = Route::new(CLIENT, Ipv4Addr::LOCALHOST);
    netlink.add_route_in(TABLE, CLIENT_DEVICE, &to_servers)?;
    netlink.add_route_in(TABLE, SERVER_DEVICE, &to_clients)?;
    // Packets of this host come from `lo`. The table of local addresses follows.
    netlink.add_rule(Rule { priority: 1, interface: Some("lo"), table: TABLE })?;
    netlink.add_rule(Rule { priority: 2, ..Rule::LOCAL })?;
    netlink.remove_rule(Rule::LOCAL)?;
    // A thread that polls the clock for every packet would take the programs' CPU.
    let options = Options { seed, spin: Duration::ZERO, ..Options::default() };
    Emulator::start(client, server, up, down, &options)
}

/// Makes what clients send to other hosts cross the link, too, and leave by `device`, towards `gateway`; `address` is that of
/// clients. To be called after [`start`].
///
/// # Errors
/// The kernel's refusal.
pub fn reach_outside(device: &'static str, address: Ipv4Addr, gateway: Ipv4Addr) -> Result<(), Error> {
    let mut netlink = Netlink::open()?;
    netlink.add_address(CLIENT_DEVICE, address)?;
    netlink.set_link_up(device)?;
    // Replies are for sockets of this host, on their way over the link: the kernel drops forwarded packets of sockets.
    for (name, value) in [("net/ipv4/ip_early_demux", "0"), ("net/ipv4/ip_forward", "1")] {
        set(name, value)?;
    }
    set(&format!("net/ipv4/conf/{device}/rp_filter"), "0")?;
    netlink.set_route(device, &Route::new(gateway, address))?;
    let beyond = Route { gateway: Some(gateway.into()), ..Route::new(Subnet::IPV4, address) };
    netlink.set_route(device, &beyond)?;
    netlink.add_route_in(TABLE, CLIENT_DEVICE, &Route::new(Subnet::IPV4, address))?;
    let to_clients =
        Route { destination: address.into(), gateway: None, source: None, metrics: Metrics::default() };
    netlink.add_route_in(RETURN_TABLE, SERVER_DEVICE, &to_clients)?;
    // Before the table of local addresses, which has this one.
    netlink.add_rule(Rule { priority: 1, interface: Some(device), table: RETURN_TABLE })
}

/// Whether the calling thread's network namespace has such a link.
pub fn is_running() -> bool {
    [CLIENT_DEVICE, SERVER_DEVICE].into_iter().all(|device| if_nametoindex(device).is_ok())
}

/// Sets a sysctl; a kernel without IPv6 has none of its settings.
fn set(path: &str, value: &str) -> Result<(), Error> {
    match fs::write(format!("/proc/sys/{path}"), value) {
        Err(error) if error.kind() == ErrorKind::NotFound && path.starts_with("net/ipv6") => Ok(()),
        result => result.map_err(Error::io(format!("set {} to {value}", path.replace('/', ".")))),
    }
}
