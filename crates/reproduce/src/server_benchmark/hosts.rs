//! Two hosts in network namespaces of their own, and the veth pair between them: a server's host and its users'.
//!
//! Without a rate or a delay: that is `measure`'s emulator. A kernel thread of the receiving host handles the packets
//! that arrive there (Documentation/networking/napi.rst, "threaded"), as a network card's interrupt would. Over the
//! loopback interface the sender's CPU time would include both ends.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use linux::card::Offload;
use testbed::{Error, Interface, Namespace, Topology};

/// The address of a host that serves.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(192, 168, 78, 1);
const USERS: Ipv4Addr = Ipv4Addr::new(192, 168, 78, 2);

/// A server's host and its users', removed when dropped.
#[derive(Debug)]
pub struct Hosts {
    /// Namespace of the server.
    pub server: Namespace,
    /// Namespace of its users.
    pub users: Namespace,
    /// Inode of the server's network namespace.
    network: u64,
    /// The server's end of the veth pair.
    device: String,
}

impl Hosts {
    /// Two connected hosts. Needs root.
    ///
    /// # Errors
    /// A missing program, or the system's error.
    pub fn new() -> Result<Self, Error> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The owner of the CPU time is found by these names, among all veth pairs of the host.
        let [device, far] = ["s", "u"].map(|end| format!("rt{}{end}{number}", std::process::id()));
        let end = |host, device: &str, address| {
            let end = Interface::of(host, device).address(address);
            // Without the first, a veth end has no NAPI instance that the kernel could run in a thread. Without the second (at
            // the other end) the thread is bypassed: drivers/net/veth.c, `veth_skb_is_eligible_for_gro`.
            let end = end.offload(Offload::MergeSegments, true).offload(Offload::CutSegments, false);
            end.queue().receive_in_thread()
        };
        let ([server, users], []) = Topology::new()
            .host("server's host")
            .host("users' host")
            .cable([end("server's host", &device, SERVER), end("users' host", &far, USERS)])
            .build()?
            .split()?;
        let network =
            server.start(|| network_of(Path::new("/proc/thread-self")).unwrap_or_default()).wait()?;
        Ok(Self { server, users, network, device })
    }

    /// CPU time on the server's host in seconds, including the threads that receive its packets.
    pub fn spent_s(&self) -> f64 {
        let prefix = format!("napi/{}-", self.device);
        let processes = entries(Path::new("/proc"));
        let of_process = |process: PathBuf| {
            let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
            if name.starts_with(&prefix) {
                return time_s(&process);
            }
            let tasks = entries(&process.join("task")).into_iter();
            tasks.filter(|task| network_of(task) == Some(self.network)).map(|task| time_s(&task)).sum()
        };
        processes.into_iter().map(of_process).sum()
    }
}

/// Inode of the network namespace of a thread.
fn network_of(task: &Path) -> Option<u64> {
    fs::metadata(task.join("ns/net")).ok().map(|network| network.ino())
}

/// CPU time of a thread. Documentation/scheduler/sched-stats.rst: the first number is nanoseconds on a CPU.
fn time_s(task: &Path) -> f64 {
    let text = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Numbered entries of a directory of /proc.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_numbered = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_numbered))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use nix::unistd::geteuid;

    use super::*;

    #[test]
    fn regress_receive_processing_counts_as_cpu_time_of_the_receiving_host() {
        if !geteuid().is_root() {
            return skip::report_skip("it takes root");
        }
        let hosts = Hosts::new().unwrap();
        let took = |to: Ipv4Addr, from: &Namespace| {
            let before = hosts.spent_s();
            from.run(move || {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(Error::io("send"))?;
                for _ in 0..10_000 {
                    // No program listens there, but the kernel receives it all the same.
                    socket.send_to(&[0; 32], (to, 9)).map_err(Error::io("send"))?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
            hosts.spent_s() - before
        };
        let across = took(SERVER, &hosts.users);
        // A sender to itself uses CPU time of its own host; the other host may answer a neighbour's question meanwhile.
        let within = took(USERS, &hosts.users);
        assert!(across > 4.0 * within, "{across} s across the link, {within} s within the host");
    }
}
