//! Two hosts in network namespaces of their own, and the cable between them: a server's, and that of its users.
//!
//! Not a link with a rate or a delay: that is `measure`'s emulator. What arrives at a host is taken by a thread of the kernel's
//! for that host (Documentation/networking/napi.rst, "threaded"), as a network card's interrupt would; over the loopback
//! interface whoever sends would be booked for both ends.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use measure::card::{self, Offload};
use measure::netlink::{Metrics, Netlink, Route};
use measure::{Error, Namespace};

use super::failed;

/// The address of a host that serves.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(192, 168, 78, 1);
const USERS: Ipv4Addr = Ipv4Addr::new(192, 168, 78, 2);

/// A server's host and its users', gone when dropped.
#[derive(Debug)]
pub struct Hosts {
    /// Where the server is.
    pub server: Namespace,
    /// Where its users are.
    pub users: Namespace,
    /// What the kernel calls the server's network.
    network: u64,
    /// The server's end of the cable.
    device: String,
}

impl Hosts {
    /// Two hosts that reach one another. It takes root.
    ///
    /// # Errors
    /// What the system lacks or refuses.
    pub fn new() -> Result<Self, Error> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Whose processor time is counted is found by these names, among all cables of the machine.
        let [device, far] = ["s", "u"].map(|end| format!("rt{}{end}{number}", std::process::id()));
        let [server, users] = [Namespace::new("server's host")?, Namespace::new("users' host")?];
        let (near, peer) = (device.clone(), far.clone());
        let network = users
            .run(|| File::open("/proc/thread-self/ns/net").map_err(failed("find the users' network")))?;
        server.run(move || {
            let mut netlink = Netlink::open()?;
            netlink.add_cable(&near, &peer, network.as_fd())?;
            up(netlink, &near, [SERVER, USERS])
        })?;
        users.run(move || up(Netlink::open()?, &far, [USERS, SERVER]))?;
        let network = server.run(|| Ok(network_of(Path::new("/proc/thread-self")).unwrap_or_default()))?;
        Ok(Self { server, users, network, device })
    }

    /// Seconds of processor time that whoever lives on the server's host has had, and what takes its packets.
    pub fn spent_s(&self) -> f64 {
        let taker = format!("napi/{}-", self.device);
        let processes = entries(Path::new("/proc"));
        let of_process = |process: PathBuf| {
            let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
            if name.starts_with(&taker) {
                return time_s(&process);
            }
            let tasks = entries(&process.join("task")).into_iter();
            tasks.filter(|task| network_of(task) == Some(self.network)).map(|task| time_s(&task)).sum()
        };
        processes.into_iter().map(of_process).sum()
    }
}

/// What the kernel calls the network that a thread is in.
fn network_of(task: &Path) -> Option<u64> {
    fs::metadata(task.join("ns/net")).ok().map(|network| network.ino())
}

/// Documentation/scheduler/sched-stats.rst: the first number is nanoseconds on a processor.
fn time_s(task: &Path) -> f64 {
    let text = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// What is numbered in a folder of /proc.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_numbered = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_numbered))
        .map(|entry| entry.path())
        .collect()
}

/// One end of the cable, with all that is needed to use it.
fn up(mut netlink: Netlink, device: &str, [own, other]: [Ipv4Addr; 2]) -> Result<(), Error> {
    netlink.bring_up_loopback()?;
    netlink.add_address(device, own)?;
    netlink.bring_up_as_it_is(device)?;
    netlink.set_route(device, &Route { destination: other, source: own, metrics: Metrics::default() })?;
    // Without the first a cable's end has nothing of which the kernel could make a thread, and without the second (at the other
    // end) it is passed by: drivers/net/veth.c, `veth_skb_is_eligible_for_gro`.
    card::set_offload(device, Offload::MergeSegments, true)?;
    card::set_offload(device, Offload::CutSegments, false)?;
    // Who sends waits when there is no room, instead of losing what was sent.
    netlink.add_queue(device)?;
    card::receive_in_thread(device)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use nix::unistd::geteuid;

    use super::*;

    #[test]
    fn regress_what_comes_to_the_server_is_on_its_hosts_account_though_others_send_it() {
        if !geteuid().is_root() {
            return skip::because("it takes root");
        }
        let hosts = Hosts::new().unwrap();
        let took = |to: Ipv4Addr, from: &Namespace| {
            let before = hosts.spent_s();
            from.run(move || {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(failed("send"))?;
                for _ in 0..2_000 {
                    // Nobody is there, and the kernel takes it none the less.
                    socket.send_to(&[0; 32], (to, 9)).map_err(failed("send"))?;
                }
                Ok(())
            })
            .unwrap();
            hosts.spent_s() - before
        };
        assert!(took(SERVER, &hosts.users) > 0.0);
        // Who sends to itself is on its own account alone.
        assert_eq!(took(USERS, &hosts.users), 0.0);
    }
}
