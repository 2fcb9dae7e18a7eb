//! The kernel's table of a process's descriptors, made large before it is needed.
//!
//! Linux doubles it when it is full. In a process with threads whoever opens the descriptor that is one too many then waits until every
//! processor has been elsewhere (fs/file.c, `expand_fdtable`): ten to twenty milliseconds, at the 65th, the 129th, the 257th and so on,
//! in which a server answers nobody and a generator of load is late. The hard limit is for whoever runs the program to set.

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit of descriptors to the hard one, and makes the table as large as that lets it, up to 262,144 (two megabytes); to be
/// called before there are threads that may not wait.
pub fn make_room() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Any process may do so; if it is refused the limit is what it was.
    let _ = setrlimit(Resource::Nofile, limit);
    let most = limit_now();
    let highest = i32::try_from(most - 1).unwrap_or(i32::MAX);
    // Taken and given back at once. If it is refused the table grows as it always did.
    let _ = eventfd(0, EventfdFlags::CLOEXEC).and_then(|any| fcntl_dupfd_cloexec(any, highest));
}

/// Descriptors that this process may have, at most 262,144.
pub fn limit_now() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(MAX_DESCRIPTORS).clamp(1, MAX_DESCRIPTORS)
}

const MAX_DESCRIPTORS: u64 = 1 << 18;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn there_is_room_for_as_many_as_the_limit_allows() {
        make_room();
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let size: u64 =
            status.lines().find_map(|line| line.strip_prefix("FDSize:")?.trim().parse().ok()).unwrap();
        let most = getrlimit(Resource::Nofile).current.unwrap_or(MAX_DESCRIPTORS).min(MAX_DESCRIPTORS);
        assert!(size >= most, "{size} of {most}");
    }
}
