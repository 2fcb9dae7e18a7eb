//! The kernel's table of a process's descriptors, grown before it is needed.
//!
//! Linux doubles the table when it is full. In a process with threads, the thread that opens one descriptor too many then waits
//! for an RCU grace period on every CPU (fs/file.c, `expand_fdtable`). That takes 10 to 20 ms at the 65th, 129th, 257th
//! descriptor and so on. Meanwhile a server sends no responses, and a load generator is late. The hard limit is for the
//! operator to set.

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit of descriptors to the hard one, and grows the table to that limit, up to 262,144 entries (2 MB). Call
/// it before there are threads that must not wait.
pub fn grow_table() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Any process may do so; if it is refused, the limit is unchanged.
    let _ = setrlimit(Resource::Nofile, limit);
    let max = limit_now();
    let highest = i32::try_from(max - 1).unwrap_or(i32::MAX);
    // Opened and closed immediately. If it is refused, the table grows on demand.
    let _ = eventfd(0, EventfdFlags::CLOEXEC).and_then(|any| fcntl_dupfd_cloexec(any, highest));
}

/// Returns the maximum number of descriptors of this process, at most 262,144.
pub fn limit_now() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(MAX_DESCRIPTORS).clamp(1, MAX_DESCRIPTORS)
}

const MAX_DESCRIPTORS: u64 = 1 << 18;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_descriptor_table_grows_to_the_limit() {
        grow_table();
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let size: u64 =
            status.lines().find_map(|line| line.strip_prefix("FDSize:")?.trim().parse().ok()).unwrap();
        let max = getrlimit(Resource::Nofile).current.unwrap_or(MAX_DESCRIPTORS).min(MAX_DESCRIPTORS);
        assert!(size >= max, "{size} of {max}");
    }
}
