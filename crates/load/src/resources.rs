//! Resources that a run needs of this host, checked in advance instead of after minutes of failures.
//!
//! The numbers are estimates: sockets and ports are worst cases, memory is a rule of thumb.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use workload::plan::PageStart;

use crate::config::{Config, Protocol};
use crate::job::{Job, Turns};
use crate::second::Second;

/// Resources of a run, or of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Maximum number of open files: mostly sockets.
    pub files: u64,
    /// Maximum number of local ports in use.
    pub ports: u64,
    /// Bytes of memory.
    pub bytes: u64,
}

/// A missing resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingResource {
    /// Open files (sockets).
    #[error(
        "the run needs about {needed} concurrent sockets and may have {allowed}; raise the limit (ulimit \
         -n), or have fewer users"
    )]
    Files {
        /// Number needed.
        needed: u64,
        /// Limit of the system.
        allowed: u64,
    },
    /// Local ports towards one server.
    #[error(
        "the run needs {needed} concurrent ports and this host has {available}; widen \
         net.ipv4.ip_local_port_range, plan fewer users or connections, or run parts of it on several \
         machines (--shard)"
    )]
    Ports {
        /// Number needed.
        needed: u64,
        /// Number that the system provides.
        available: u64,
    },
    /// Bytes of memory.
    #[error(
        "the run needs about {} MB of memory and {} MB are free; plan fewer users or a shorter time, or run \
         parts of it on several machines (--shard)",
        .needed.div_ceil(MEGA),
        .available / MEGA
    )]
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
}

const MEGA: u64 = 1_000_000;

/// Checks that this host has the resources of a run.
///
/// # Errors
/// [`MissingResource`], with the needed and the available amount.
pub fn check(job: &Job<'_>, config: &Config) -> Result<(), MissingResource> {
    needs(job, config).check_available(&of_this_host())
}

impl Resources {
    fn check_available(&self, available: &Self) -> Result<(), MissingResource> {
        let Self { files, ports, bytes } = *self;
        if files > available.files {
            return Err(MissingResource::Files { needed: files, allowed: available.files });
        }
        if ports > available.ports {
            return Err(MissingResource::Ports { needed: ports, available: available.ports });
        }
        if bytes > available.bytes {
            return Err(MissingResource::Memory { needed: bytes, available: available.bytes });
        }
        Ok(())
    }
}

/// Resources of a run in the worst case.
pub(crate) fn needs(job: &Job<'_>, config: &Config) -> Resources {
    let users = (0..users(job, config)).filter(|user| config.shard.has(*user)).count() as u64;
    let connections = users * config.connections as u64;
    // No thread is without a user.
    let threads = (config.threads as u64).min(users.max(1));
    let (sockets, ports) = match config.protocol {
        // A listening port, its connection, and connections for requests that fall back to plain HTTP.
        Protocol::Dhttp => (2 * users + connections + threads * config.ports as u64, users),
        Protocol::Http10 | Protocol::KeepAlive | Protocol::Pipelined | Protocol::Http2 => {
            (connections, connections)
        }
        // One port for all connections.
        Protocol::Http3 => (users, users),
    };
    let seconds = job.lasts.as_nanos() / 1_000_000_000 + 1;
    let of_second = Second::default().intended.distinct_values() as u64 * COUNTER_BYTES;
    let bytes = users * bytes_of_user(config) + (threads + 1) * seconds * of_second;
    Resources { files: sockets + 16 * threads, ports, bytes }
}

/// Number of users: the plan's own, or those who share an open schedule.
pub(crate) fn users(job: &Job<'_>, config: &Config) -> usize {
    if let Turns::Loop(users) = job.turns {
        return users as usize;
    }
    let is_open = job.pages.first().is_some_and(|page| matches!(page.start, PageStart::At(_)));
    let max = job.pages.iter().map(|page| page.user).max().map_or(0, |max| max as usize + 1);
    if is_open { max.min(config.users as usize) } else { max }
}

/// Bytes of a counter in a second's histogram.
const COUNTER_BYTES: u64 = 4;

/// Upper bound of the memory of a user with its connections, in bytes. 2,000 users took 2 KiB each over HTTP/1.1 and 8
/// over DHTTP, and the kernel's sockets take a few more; for HTTP/2 and HTTP/3 it is an estimate.
const fn bytes_of_user(config: &Config) -> u64 {
    let kib = match config.protocol {
        Protocol::Http10 | Protocol::KeepAlive | Protocol::Pipelined => 16 * config.connections as u64,
        Protocol::Http2 => 64 * config.connections as u64,
        Protocol::Http3 => 128,
        Protocol::Dhttp => 32 + 8 * config.connections as u64,
    };
    kib << 10
}

/// Resources of this host; an unknown one counts as sufficient.
fn of_this_host() -> Resources {
    Resources { files: allowed_files(), ports: ephemeral_ports(), bytes: free_memory() }
}

/// Number of files that this process may have open; the soft limit is raised as far as permitted.
fn allowed_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Number of ephemeral ports (ip(7)), in this network namespace.
fn ephemeral_ports() -> u64 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = range.split_whitespace().filter_map(|end| end.parse::<u64>().ok());
    match (ends.next(), ends.next()) {
        (Some(first), Some(last)) if last >= first => last - first + 1,
        _ => u64::MAX,
    }
}

/// Bytes of available memory: of this host (proc(5)), of each cgroup of this process (cgroups(7)), and of this process; an
/// unknown limit counts as sufficient.
pub fn free_memory() -> u64 {
    let client = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let client = kib(&client, "MemAvailable:");
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = groups.lines().filter_map(MemoryCgroup::of).filter_map(|group| group.free()).min();
    let own = getrlimit(Resource::As).current.map(|max| {
        let used = fs::read_to_string("/proc/self/status").unwrap_or_default();
        max.saturating_sub(kib(&used, "VmSize:").unwrap_or(0))
    });
    [client, groups, own].into_iter().flatten().min().unwrap_or(u64::MAX)
}

/// A cgroup in a hierarchy that limits memory; a container sees its own as the root.
#[derive(Debug, PartialEq, Eq)]
struct MemoryCgroup<'a> {
    root: &'static str,
    path: &'a Path,
    /// The files with its limit, its usage, and the reclaimable part of that: the key in `memory.stat`.
    max: &'static str,
    used: &'static str,
    idle: &'static str,
}

impl<'a> MemoryCgroup<'a> {
    /// The cgroup of a line of `/proc/self/cgroup`: of version 2, or of version 1 with its own hierarchy for memory.
    fn of(line: &'a str) -> Option<Self> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(":/")?;
        let (root, max, used, idle) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            let (max, used) = ("memory.limit_in_bytes", "memory.usage_in_bytes");
            ("/sys/fs/cgroup/memory", max, used, "total_inactive_file ")
        } else {
            return None;
        };
        Some(Self { root, path: Path::new(path), max, used, idle })
    }

    /// Bytes that it and its ancestors leave; `None` without a limit.
    fn free(&self) -> Option<u64> {
        let Self { root, path, max, used, idle } = self;
        let free = |group: &Path| {
            let read = |name: &str| fs::read_to_string(Path::new(root).join(group).join(name)).ok();
            let value = |name| read(name)?.trim().parse::<u64>().ok();
            let (max, used) = value(max).zip(value(used))?;
            let stat = read("memory.stat").unwrap_or_default();
            let idle = stat.lines().find_map(|line| line.strip_prefix(idle)?.parse::<u64>().ok());
            Some(max.saturating_sub(used.saturating_sub(idle.unwrap_or(0))))
        };
        path.ancestors().filter_map(free).min()
    }
}

/// The bytes of a line such as `VmSize:  123 kB`.
fn kib(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use workload::plan::PlanSpec;
    use workload::schedule::Schedule;

    use super::*;
    use crate::config::Shard;
    use crate::run::tests::config;

    #[test]
    fn an_oversized_plan_is_refused_with_needed_and_available_resources() {
        let available = Resources { files: 100, ports: 50, bytes: 9_000_000 };
        assert_eq!(available.check_available(&available), Ok(()));
        for (needs, message) in [
            (Resources { files: 101, ..available }, "about 101 concurrent sockets and may have 100"),
            (Resources { ports: 51, ..available }, "needs 51 concurrent ports and this host has 50"),
            (Resources { bytes: 9_000_001, ..available }, "about 10 MB of memory and 9 MB are free"),
        ] {
            let short = needs.check_available(&available).unwrap_err().to_string();
            assert!(short.contains(message), "{short}");
        }
    }

    #[test]
    fn users_of_every_protocol_are_counted_with_their_concurrent_sockets() {
        let plan =
            PlanSpec { schedule: Schedule::Users(7), files: 20, ..PlanSpec::default() }.plan().unwrap();
        let of = |protocol, connections| {
            let Resources { files, ports, bytes: _ } =
                needs(&(&plan).into(), &Config { protocol, connections, ..config(1, 7) });
            (files - 16, ports)
        };
        assert_eq!(of(Protocol::KeepAlive, 3), (21, 21));
        assert_eq!(of(Protocol::Dhttp, 3), (35, 7));
        assert_eq!(of(Protocol::Http3, 3), (7, 7));
        // With any number of threads, the number of users counts.
        let of_threads = |threads| needs(&(&plan).into(), &config(threads, 7)).files;
        assert_eq!(of_threads(1_000_000_000), of_threads(7));
        let half = Config { shard: Shard::new(1, 2).unwrap(), ..config(1, 7) };
        assert_eq!(needs(&(&plan).into(), &half).ports, 4);
    }

    #[test]
    fn a_cgroup_is_found_inside_and_outside_of_a_container() {
        let found = |line| MemoryCgroup::of(line).map(|group| (group.root, group.path));
        assert_eq!(found("0::/"), Some(("/sys/fs/cgroup", Path::new(""))));
        assert_eq!(found("0::/a/b:c"), Some(("/sys/fs/cgroup", Path::new("a/b:c"))));
        assert_eq!(found("4:cpu,memory:/x"), Some(("/sys/fs/cgroup/memory", Path::new("x"))));
        for other in ["1:cpu:/x", "", "0::", "memory"] {
            assert_eq!(found(other), None, "{other}");
        }
        assert_eq!(kib("VmPeak:\t 9 kB\nVmSize:\t 12 kB\n", "VmSize:"), Some(12 << 10));
        assert_eq!(kib("VmSize:\t many kB\n", "VmSize:"), None);
    }

    #[test]
    fn this_host_reports_its_resources() {
        let Resources { files, ports, bytes } = of_this_host();
        assert!(
            files > 16 && ports < 65_536 && bytes < u64::MAX,
            "{files} files, {ports} ports, {bytes} bytes"
        );
    }
}
