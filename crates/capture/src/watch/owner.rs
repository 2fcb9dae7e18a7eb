//! The program that holds a socket: process, name and container, from /proc (proc(5)), as far as visible to this user.

use std::collections::BTreeMap;
use std::fs;

use report::watched::Owner;

use crate::proc_sockets::sockets_of;

/// Returns the owners of all visible sockets, by inode. Scans every open file of the host.
pub fn owners() -> BTreeMap<u32, Owner> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut owners = BTreeMap::new();
    for pid in numbers {
        let mut owner = None;
        for inode in sockets_of(pid) {
            let owner = owner.get_or_insert_with(|| owner_of(pid));
            owners.entry(inode).or_insert_with(|| owner.clone());
        }
    }
    owners
}

fn owner_of(pid: u32) -> Owner {
    Owner { pid, name: name_of(pid), container: container(&read(pid, "cgroup")) }
}

/// Returns the name of a process; empty if it has ended.
pub(crate) fn name_of(pid: u32) -> String {
    read(pid, "comm").trim_end().replace(char::is_control, "?")
}

fn read(pid: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

/// Returns the identifier in a control group's path: 64 hexadecimal digits, as in Docker, Podman, containerd and CRI-O.
fn container(groups: &str) -> Option<String> {
    const DIGITS: usize = 64;
    let mut words = groups.split(|letter: char| !letter.is_ascii_alphanumeric());
    let found =
        words.find(|word| word.len() == DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    found.get(..12).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn this_process_owns_its_sockets() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let inode =
            link.to_str().unwrap().trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap();
        let owner = owners().remove(&inode).unwrap();
        assert_eq!(owner.pid, std::process::id());
        assert!(!owner.name.is_empty());
    }

    #[test]
    fn containers_are_recognised_in_each_runtimes_path() {
        let id = "0123456789abcdef".repeat(4);
        for path in [
            format!("0::/system.slice/docker-{id}.scope"),
            format!("12:cpu:/docker/{id}\n0::/"),
            format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
            format!("0::/machine.slice/libpod-{id}.scope/container"),
        ] {
            assert_eq!(container(&path).as_deref(), Some("0123456789ab"), "{path}");
        }
        assert_eq!(container("0::/user.slice/user-1000.slice/session-2.scope"), None);
    }
}
