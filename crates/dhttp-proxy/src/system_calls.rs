//! System calls that a service does not need, refused by seccomp (Linux 3.5 and later): those by which code starts programs,
//! reaches other processes, changes mounts, clocks or the kernel, or uses parts of it that had many faults.
//!
//! A list of what is refused, not of what is permitted: which other calls the C library makes changes with its version. Files
//! are confined by Landlock (`confinement`), rights by capabilities (`privileges`).

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use libc::{SYS_clone, SYS_clone3, SYS_ioctl, SYS_kill, SYS_rt_sigqueueinfo, SYS_socket, SYS_tgkill};
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

/// Calls that no service makes: tracing, mounts, namespaces, modules, programs in the kernel, keys, clocks, `io_uring`.
const NEVER: [i64; 44] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_personality,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
];
/// Calls of x86 alone: to the devices' ports, and those that start processes.
#[cfg(target_arch = "x86_64")]
const OF_X86: ([i64; 3], [i64; 2]) =
    ([libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt], [libc::SYS_fork, libc::SYS_vfork]);
#[cfg(not(target_arch = "x86_64"))]
const OF_X86: ([i64; 0], [i64; 0]) = ([], []);
/// Calls that only a router's service makes, which runs `nft` and `ip`.
const PROGRAMS: [i64; 3] = [libc::SYS_execve, libc::SYS_execveat, libc::SYS_pidfd_send_signal];
/// Kinds of socket: the Internet's; of this host, for name services; and those of netlink, for the host's addresses.
const SOCKETS: [libc::c_int; 4] = [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX, libc::AF_NETLINK];
/// Second numbers of the calls of x86-64 (its x32 interface).
const X32: i64 = 0x4000_0000;

/// Refuses these system calls (`EPERM`) to the calling thread, and to all that it starts. A service of a router may run programs.
///
/// # Errors
/// The reason why the kernel does not.
pub(crate) fn refuse(is_router: bool) -> Result<(), Error> {
    let arch = TargetArch::try_from(ARCH).map_err(Error::Backend)?;
    // A C library falls back to `clone`, whose flags can be seen, where there is no `clone3`.
    apply(&BTreeMap::from([(SYS_clone3, Vec::new())]), libc::ENOSYS, arch)?;
    apply(&rules(is_router).map_err(Error::Backend)?, libc::EPERM, arch)
}

fn apply(rules: &BTreeMap<i64, Vec<SeccompRule>>, errno: libc::c_int, arch: TargetArch) -> Result<(), Error> {
    let refused = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules.clone(), SeccompAction::Allow, refused, arch);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(Error::Backend)?;
    apply_filter(&program)
}

fn rules(is_router: bool) -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let programs = PROGRAMS.iter().chain(&OF_X86.1).filter(|_| !is_router);
    let calls = NEVER.iter().chain(&OF_X86.0).chain(programs);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = calls.map(|call| (*call, Vec::new())).collect();
    let terminal = vec![on(1, SeccompCmpOp::Eq, libc::TIOCSTI)?];
    rules.insert(SYS_ioctl, vec![SeccompRule::new(terminal)?]);
    let namespaces = libc::CLONE_NEWNS
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    let flags =
        (0..32).map(|bit| 1_u64 << bit).filter(|bit| u64::from(namespaces.cast_unsigned()) & bit != 0);
    let mut cloned: Vec<SeccompRule> = flags
        .map(|flag| SeccompRule::new(vec![on(0, SeccompCmpOp::MaskedEq(flag), flag)?]))
        .collect::<Result<_, _>>()?;
    if !is_router {
        let threads = u64::from(libc::CLONE_THREAD.cast_unsigned());
        cloned.push(SeccompRule::new(vec![on(0, SeccompCmpOp::MaskedEq(threads), 0_u64)?])?);
        let others = SOCKETS.map(|domain| on(0, SeccompCmpOp::Ne, domain.unsigned_abs()));
        rules.insert(SYS_socket, vec![SeccompRule::new(others.into_iter().collect::<Result<_, _>>()?)?]);
        // Signals to other processes. The panic of a thread raises one in this process.
        let other = on(0, SeccompCmpOp::Ne, std::process::id())?;
        for call in [SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo] {
            rules.insert(call, vec![SeccompRule::new(vec![other.clone()])?]);
        }
    }
    rules.insert(SYS_clone, cloned);
    if cfg!(target_arch = "x86_64") {
        let second: Vec<_> = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
        rules.extend(second);
    }
    Ok(rules)
}

/// A condition on an argument's lower 32 bits.
fn on(argument: u8, operator: SeccompCmpOp, value: impl Into<u64>) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::{TcpListener, UdpSocket};
    use std::process::Command;
    use std::thread;

    use socket2::{Domain, Socket, Type};

    use super::*;

    /// Runs in a thread of its own, which alone is restricted; `None` where the kernel has no seccomp.
    fn restricted<T: Send + 'static>(is_router: bool, run: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let result = thread::spawn(move || refuse(is_router).map(|()| run())).join().unwrap();
        result.map_err(|error| skip::refused(&error.to_string())).ok()
    }

    fn raw<T>(result: io::Result<T>) -> Option<i32> {
        result.err().and_then(|error| error.raw_os_error())
    }

    #[test]
    fn a_server_starts_no_programs_and_opens_sockets_of_the_internet_only() {
        let results = restricted(false, || {
            let started = raw(Command::new("/bin/true").status());
            let packets = raw(Socket::new(Domain::PACKET, Type::RAW, None));
            let signal = rustix::process::getppid()
                .map(|parent| rustix::process::kill_process(parent, rustix::process::Signal::CHILD));
            let namespace = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER);
            (started, packets, signal, namespace)
        });
        let Some((started, packets, signal, namespace)) = results else { return };
        assert_eq!((started, packets), (Some(libc::EPERM), Some(libc::EPERM)));
        assert_eq!(signal, Some(Err(rustix::io::Errno::PERM)));
        assert_eq!(namespace, Err(nix::errno::Errno::EPERM));
    }

    #[test]
    fn a_server_keeps_threads_files_names_and_sockets() {
        let results = restricted(false, || {
            let sockets = TcpListener::bind("127.0.0.1:0").is_ok() && UdpSocket::bind("[::1]:0").is_ok();
            let thread =
                thread::spawn(|| std::fs::read_to_string("/proc/self/status").is_ok()).join().unwrap();
            let named = std::net::ToSocketAddrs::to_socket_addrs("localhost:80").is_ok();
            let signal =
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::CHILD);
            (sockets, thread, named, signal.is_ok())
        });
        assert!(results.is_none_or(|results| results == (true, true, true, true)), "{results:?}");
    }

    #[test]
    fn a_router_runs_programs_but_loads_no_modules_and_enters_no_namespace() {
        let results = restricted(true, || {
            let started = Command::new("/bin/true").status().is_ok_and(|status| status.success());
            (started, nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET))
        });
        assert!(
            results.is_none_or(|results| results == (true, Err(nix::errno::Errno::EPERM))),
            "{results:?}"
        );
    }
}
