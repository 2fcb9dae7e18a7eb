//! Two hosts in network namespaces of their own, and the cable between them: a server's, and that of its users.
//!
//! Not a link with a rate or a delay: that is `measure`'s emulator. What arrives at a host is taken by a thread of the kernel's
//! for that host (Documentation/networking/napi.rst, "threaded"), as a network card's interrupt would; over the loopback
//! interface whoever sends would be booked for both ends.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use measure::{Error, Namespace};
use nix::unistd::gettid;

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
    /// Two hosts that reach one another. It takes root and iproute2.
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
        let network = users.run(move || Ok(thread_in(gettid().as_raw())))?;
        server.run(move || {
            let place = format!("/proc/{network}/ns/net");
            ip(&["link", "set", "lo", "up"])?;
            ip(&["link", "add", &near, "type", "veth", "peer", "name", &peer, "netns", &place])?;
            up(&near, SERVER)
        })?;
        users.run(move || {
            ip(&["link", "set", "lo", "up"])?;
            up(&far, USERS)
        })?;
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

/// A thread's folder below /proc.
fn thread_in(thread: i32) -> String {
    format!("{}/task/{thread}", std::process::id())
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
fn up(device: &str, own: Ipv4Addr) -> Result<(), Error> {
    ip(&["address", "add", &format!("{own}/30"), "dev", device])?;
    ip(&["link", "set", device, "up"])?;
    // Only a /sys that was mounted in a namespace shows its devices. Where the kernel has no such threads the sender's
    // thread takes the packets, at both ends.
    let script = format!("mount -t sysfs sysfs /sys && echo 1 > /sys/class/net/{device}/threaded");
    let _ = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output();
    Ok(())
}

fn ip(words: &[&str]) -> Result<(), Error> {
    let doing = format!("run ip {}", words.join(" "));
    let output = Command::new("ip").args(words).output().map_err(failed(doing.clone()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(failed(doing)(std::io::Error::other(said)))
}
