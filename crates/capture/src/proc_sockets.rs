//! Sockets of a process, by their inodes (proc_pid_fd(5)).

use std::fs;

/// Returns the inodes of the sockets that a process holds; none where they cannot be read.
pub(crate) fn sockets_of(process: u32) -> impl Iterator<Item = u32> {
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| {
        let target = fs::read_link(file.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}
