//! Hosts and routers of tests, in which commands and servers run. The network between them is a [`Topology`].

use std::fs::File;
use std::io;
use std::process::Command;
use std::thread;

use linux::netlink::Subnet;
use nix::sched::{CloneFlags, setns};
use testbed::{Error, Interface, Topology};

/// A host or a router, removed with its last descriptor.
pub(crate) struct Node(pub(crate) File);

/// Adds a router to a topology, which accepts responses by another path than requests leave.
pub(crate) fn router(topology: Topology, name: &'static str) -> Topology {
    let settings = ["net.ipv4.conf.all.rp_filter", "net.ipv4.conf.default.rp_filter"];
    settings.into_iter().fold(topology.router(name), |topology, setting| topology.setting(setting, "0"))
}

/// Joins two hosts by a cable whose ends have this name, with the first two addresses of each network.
pub(crate) fn cable(
    topology: Topology,
    [first, second]: [&'static str; 2],
    name: &str,
    networks: &[&str],
) -> Topology {
    topology.cable([(first, 1), (second, 2)].map(|(host, last)| {
        networks.iter().fold(Interface::of(host, name), |end, network| {
            let (separator, bits) = if network.contains(':') { ("::", 64) } else { (".", 24) };
            let address = format!("{network}{separator}{last}/{bits}").parse::<Subnet>();
            end.address(address.expect("the start of an address"))
        })
    }))
}

/// Creates the network; returns its hosts in order of addition.
pub(crate) fn build<const HOSTS: usize>(topology: Topology) -> Result<[Node; HOSTS], Error> {
    let (hosts, []) = topology.build()?.split::<HOSTS, 0>()?;
    let open = || File::open("/proc/thread-self/ns/net").map_err(Error::io("open a network namespace"));
    let nodes = hosts.iter().map(|host| host.run(open).map(Node)).collect::<Result<Vec<_>, _>>()?;
    nodes.try_into().map_err(|_| Error::Topology("a host is missing".to_owned()))
}

impl Node {
    /// Runs a function in the namespace; threads and programs that it starts stay there.
    pub(crate) fn inside<T: Send>(&self, task: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let job = || {
                setns(&self.0, CloneFlags::CLONE_NEWNET).expect("the namespace is there as long as its file");
                task()
            };
            scope.spawn(job).join().expect("it does not panic")
        })
    }

    pub(crate) fn run(&self, lines: &str) -> io::Result<()> {
        self.inside(|| lines.lines().map(str::trim).filter(|line| !line.is_empty()).try_for_each(run))
    }
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
