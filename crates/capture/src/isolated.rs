//! A private network for a command: separate namespaces, entered by this process before it captures.
//!
//! An ordinary user enters a user namespace first and keeps the same user name there: files and programs behave as
//! before, and the command that is run later has no privileges. The namespaces vanish with the last process inside.
//! From user_namespaces(7) and network_namespaces(7).

use std::fs;
use std::path::Path;

use linux::netlink::Netlink;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::Error;

/// Moves this process into a network namespace with nothing but loopback. Must be called while there is only one
/// thread.
///
/// # Errors
/// The setting that prevents it, and the remedy.
pub fn enter() -> Result<(), Error> {
    match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => {}
        Err(Errno::EPERM) => enter_as_user()?,
        Err(errno) => return Err(refused(errno)),
    }
    Netlink::open()?.bring_up_loopback().map_err(|error| match error {
        linux::Error::Kernel { doing: _, errno } => refused(errno),
        other => other.into(),
    })
}

fn enter_as_user() -> Result<(), Error> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(refused)?;
    // A group may be mapped only by a process that can no longer drop groups.
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{user} {user} 1")),
        ("/proc/self/gid_map", format!("{group} {group} 1")),
    ];
    for (path, text) in maps {
        let errno = |error: std::io::Error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        fs::write(path, text).map_err(|error| refused(errno(error)))?;
    }
    unshare(CloneFlags::CLONE_NEWNET).map_err(refused)
}

/// Settings that deny namespaces to users: the value that denies them, and the one that does not.
const GATES: [(&str, &str, &str); 4] = [
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "15000"),
    ("user.max_net_namespaces", "0", "15000"),
];

/// Returns the error for a refused namespace.
fn refused(errno: Errno) -> Error {
    let value = |name: &str| fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/")));
    let closed =
        GATES.iter().find(|(name, denying, _)| value(name).is_ok_and(|value| value.trim() == *denying));
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let has_filter = status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"]));
    let [missing, remedy] = match closed {
        Some((name, denying, permitting)) => [
            format!("private networks are not allowed ({name} is {denying})"),
            format!("run as root, or `sysctl {name}={permitting}`"),
        ],
        None if errno == Errno::EINVAL => {
            ["this process has several threads already".to_owned(), "run it by itself".to_owned()]
        }
        None if has_filter || Path::new("/.dockerenv").exists() => [
            format!("the container or sandbox forbids a private network ({})", errno.desc()),
            "start the container with --security-opt seccomp=unconfined".to_owned(),
        ],
        None => {
            [format!("the kernel refused a private network ({})", errno.desc()), "run as root".to_owned()]
        }
    };
    Error::Forbidden { missing, remedy }
}
