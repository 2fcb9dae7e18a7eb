//! CPU affinity, scheduling and CPU time of threads. It is not a clock.

use std::fs;
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

/// Pins the calling thread, and those it starts, to the first CPU, for servers.
pub(crate) fn serve_here() {
    pin(0, 0..1);
}

/// Pins the calling thread, and those it starts, to all CPUs but the first, for loads.
pub(crate) fn load_here() {
    pin(0, other_cpus());
}

fn other_cpus() -> Range<usize> {
    1..std::thread::available_parallelism().map_or(1, usize::from).max(2)
}

/// Pins a thread, 0 for the calling one, to these CPUs.
fn pin(thread: u32, cpus: Range<usize>) {
    let mut set = CpuSet::new();
    for cpu in cpus {
        // CPUs beyond the set's size are left out.
        let _ = set.set(cpu);
    }
    // On a host with one CPU everything runs there.
    let _ = sched_setaffinity(Pid::from_raw(thread.try_into().unwrap_or(0)), &set);
}

/// CPU time of this process, of children that it waited for, and of the kernel threads that receive their packets: the cost of
/// the load.
pub(crate) fn time_of_loaders() -> Duration {
    static KERNEL: OnceLock<Vec<u32>> = OnceLock::new();
    let kernel = KERNEL.get_or_init(|| kernel_threads("napi/loaders-"));
    let own = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN].into_iter().filter_map(|usage_of| {
        let usage = getrusage(usage_of).ok()?;
        let spent = usage.user_time() + usage.system_time();
        u64::try_from(spent.num_microseconds()).ok().map(Duration::from_micros)
    });
    own.chain(kernel.iter().map(|thread| time(*thread))).sum()
}

/// Raises the calling thread, and what it starts, to real-time priority; returns whether that is allowed.
pub(crate) fn raise_priority() -> bool {
    schedule(libc::SCHED_FIFO, 1)
}

/// Returns to normal priority.
pub(crate) fn restore_priority() {
    schedule(libc::SCHED_OTHER, 0);
}

fn schedule(policy: i32, priority: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters outlive the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}

/// Pins the kernel threads that receive packets to the CPUs of the receiving programs.
pub(crate) fn pin_network_threads() {
    for number in kernel_threads("napi/servers-") {
        pin(number, 0..1);
    }
    for number in kernel_threads("napi/loaders-") {
        pin(number, other_cpus());
    }
}

/// CPU time of a server, and of the kernel threads that receive its packets.
pub(crate) fn time_of_server(process: u32) -> Duration {
    static KERNEL: OnceLock<Vec<u32>> = OnceLock::new();
    let kernel = KERNEL
        .get_or_init(|| ["napi/servers-", "ksoftirqd/0"].into_iter().flat_map(kernel_threads).collect());
    time_of_process(process) + kernel.iter().map(|thread| time(*thread)).sum::<Duration>()
}

/// CPU time of a process, including threads that have ended: a gateway has one for each connection.
fn time_of_process(process: u32) -> Duration {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    let number = process.try_into().unwrap_or(0);
    // SAFETY: both variables outlive the calls, and the clock is read only if it exists.
    let is_read = unsafe {
        libc::clock_getcpuclockid(number, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    if is_read {
        Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
    } else {
        Duration::ZERO
    }
}

/// Returns the kernel threads whose names have this prefix.
fn kernel_threads(name: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let is_named = |number: &u32| {
        fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|text| text.starts_with(name))
    };
    numbers.filter(is_named).collect()
}

/// CPU time of all live threads of a process.
fn time(process: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| {
            // Documentation/scheduler/sched-stats.rst: the first number is the CPU time in nanoseconds.
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
        })
        .sum()
}
