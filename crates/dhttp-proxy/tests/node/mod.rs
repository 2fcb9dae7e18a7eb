//! Hosts and routers of tests: network namespaces that are removed with the test, and virtual links between them.
//!
//! It requires root, `ip` and `sysctl`. Programs are started by the tests.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

/// A host or a router.
pub(crate) struct Node(pub(crate) File);

impl Node {
    pub(crate) fn new() -> io::Result<Self> {
        in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let node = Self(File::open("/proc/thread-self/ns/net")?);
            run("ip link set lo up")?;
            // Responses arrive by another path than requests leave.
            for name in ["all", "default"] {
                run(&format!("sysctl -q -w net.ipv4.conf.{name}.rp_filter=0"))?;
            }
            run("sysctl -q -w net.ipv4.ip_forward=1")?;
            Ok(node)
        })
    }

    /// Runs a function in the namespace; threads and programs that it starts stay there.
    pub(crate) fn inside<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        in_thread(|| {
            setns(&self.0, CloneFlags::CLONE_NEWNET).expect("the namespace is there as long as its file");
            what()
        })
    }

    pub(crate) fn run(&self, lines: &str) -> io::Result<()> {
        self.inside(|| lines.lines().map(str::trim).filter(|line| !line.is_empty()).try_for_each(run))
    }

    /// Connects it to another by a virtual link, with the first two addresses of a network of 256.
    pub(crate) fn wire(&self, other: &Self, name: &str, network: &str) -> io::Result<()> {
        let path = format!("/proc/{}/fd/{}", std::process::id(), other.0.as_raw_fd());
        self.run(&format!(
            "ip link add {name} type veth peer name {name} netns {path}
             ip address add {network}.1/24 dev {name}
             ip link set {name} up"
        ))?;
        other.run(&format!("ip address add {network}.2/24 dev {name}\nip link set {name} up"))
    }
}

fn in_thread<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(what).join().expect("it does not panic"))
}

fn run(line: &str) -> io::Result<()> {
    let mut words = line.split_whitespace();
    let output =
        Command::new(words.next().unwrap_or_default()).args(words).env("PATH", skip::path()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{line}: {}", String::from_utf8_lossy(&output.stderr))))
}
