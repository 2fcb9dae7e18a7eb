//! Rights of this process: namespaces and TUN devices, as root or inside a user namespace.
//!
//! No right is dropped. From user_namespaces(7) and capabilities(7).

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::{Error, Namespace};

/// Acquires the rights that measuring needs, if the system grants them. To be called first in `main`, while
/// there is only one thread: a user namespace cannot be entered later.
///
/// As root it does nothing. As another user it enters a user namespace, in which the process is root over the
/// networks it creates and over nothing else: files stay the caller's.
pub fn prepare() -> Result<(), Error> {
    if has_capabilities() {
        return Ok(());
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(no_user_namespace)?;
    // Its own group may be mapped only by a process that can no longer drop groups.
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ];
    for (path, text) in maps {
        fs::write(path, text)
            .map_err(|error| no_user_namespace(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)))?;
    }
    Ok(())
}

/// Checks that hosts and links can be created here; the error names the missing right and the remedy.
pub fn available() -> Result<(), Error> {
    check_tun_device(Path::new("/dev/net/tun"))?;
    if !has_capabilities() {
        return Err(forbidden(
            "this process has neither CAP_NET_ADMIN nor a user namespace of its own",
            "run as root, or allow unprivileged user namespaces",
        ));
    }
    match Namespace::new("trial") {
        Ok(_) => Ok(()),
        Err(Error::Kernel { doing: _, errno: Errno::ENOSPC }) => Err(forbidden(
            "no more network namespaces may be created (user.max_net_namespaces)",
            "raise it with `sysctl user.max_net_namespaces=15000`",
        )),
        Err(error) => Err(error),
    }
}

fn check_tun_device(device: &Path) -> Result<(), Error> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(device)
        .map(drop)
        .map_err(|error| tun_unavailable(device, &error))
}

/// Error of a TUN device node that could not be opened.
pub(crate) fn tun_unavailable(device: &Path, error: &io::Error) -> Error {
    let device = device.display();
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => forbidden(
            &format!("{device} is absent or has no driver"),
            "load it with `modprobe tun`, or give the container the device",
        ),
        Some(Errno::EACCES | Errno::EPERM) => forbidden(
            &format!("{device} may not be opened by this user"),
            "run as root, or `chmod 666` it (most systems ship it so)",
        ),
        _another_reason => forbidden(&format!("{device} cannot be opened: {error}"), "run as root"),
    }
}

/// Whether CAP_NET_ADMIN (devices, addresses, routes) and CAP_SYS_ADMIN (namespaces) are in effect.
fn has_capabilities() -> bool {
    const NET_ADMIN: u64 = 1 << 12;
    const SYS_ADMIN: u64 = 1 << 21;
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    effective_capabilities(&status).is_some_and(|held| held & NET_ADMIN != 0 && held & SYS_ADMIN != 0)
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Error of a refused user namespace: each setting by which common systems refuse it, and the remedy.
fn no_user_namespace(errno: Errno) -> Error {
    const GATES: [(&str, &str); 3] = [
        ("kernel.unprivileged_userns_clone", "0"),
        ("user.max_user_namespaces", "0"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1"),
    ];
    let closed_gate = GATES.iter().find(|(name, off_value)| {
        fs::read_to_string(sysctl_path(name)).is_ok_and(|value| value.trim() == *off_value)
    });
    match closed_gate {
        Some((name, off_value)) => forbidden(
            &format!("this process is not privileged, and user namespaces are off ({name} is {off_value})"),
            &format!("run as root, or `sysctl {name}={}`", if *off_value == "0" { "15000" } else { "0" }),
        ),
        None if errno == Errno::EINVAL => forbidden(
            "this process is not privileged, and has several threads already",
            "call prepare() first thing in main, or run as root",
        ),
        None => forbidden(
            &format!(
                "this process is not privileged, and the kernel refused it a user namespace ({})",
                errno.desc()
            ),
            "run as root, or outside the container or sandbox that forbids it",
        ),
    }
}

/// Path of a sysctl.
pub fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

fn forbidden(missing: &str, remedy: &str) -> Error {
    Error::Forbidden { missing: missing.to_owned(), remedy: remedy.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_status_file() {
        assert_eq!(effective_capabilities("Name:\tx\nCapEff:\t0000000000201000\n"), Some(0x0020_1000));
        assert_eq!(effective_capabilities("Name:\tx\n"), None);
    }

    #[test]
    fn a_missing_device_is_named_with_its_remedy() {
        let error = check_tun_device(Path::new("/nonexistent/tun")).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/tun is absent") && error.contains("modprobe tun"), "{error}");
    }
}
