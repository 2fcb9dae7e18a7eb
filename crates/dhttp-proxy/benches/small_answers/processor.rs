//! Where threads run, and how long they have run. Not a clock.

use std::fs;
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

/// The calling thread, and those it starts, run on the first processor: it serves.
pub(crate) fn serve_here() {
    keep(0, 0..1);
}

/// The calling thread, and those it starts, run on all but the first: it loads servers.
pub(crate) fn load_here() {
    keep(0, others());
}

fn others() -> Range<usize> {
    1..std::thread::available_parallelism().map_or(1, usize::from).max(2)
}

/// A thread, 0 for the calling one, runs on these processors.
fn keep(thread: u32, processors: Range<usize>) {
    let mut set = CpuSet::new();
    for processor in processors {
        // More processors than the set has room for are left out.
        let _ = set.set(processor);
    }
    // On a machine with one processor everything runs there.
    let _ = sched_setaffinity(Pid::from_raw(thread.try_into().unwrap_or(0)), &set);
}

/// Processor time of this process, of those it waited for, and of the kernel's threads that take what arrives at them:
/// what loads the servers.
pub(crate) fn time_of_loaders() -> Duration {
    static KERNEL: OnceLock<Vec<u32>> = OnceLock::new();
    let kernel = KERNEL.get_or_init(|| kernel_threads("napi/loaders-"));
    let own = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN].into_iter().filter_map(|who| {
        let usage = getrusage(who).ok()?;
        let spent = usage.user_time() + usage.system_time();
        u64::try_from(spent.num_microseconds()).ok().map(Duration::from_micros)
    });
    own.chain(kernel.iter().map(|thread| time(*thread))).sum()
}

/// The calling thread, and what it starts, runs before all others that want its processors; whether that is allowed.
pub(crate) fn hurry() -> bool {
    schedule(libc::SCHED_FIFO, 1)
}

/// It does so no longer.
pub(crate) fn do_not_hurry() {
    schedule(libc::SCHED_OTHER, 0);
}

fn schedule(policy: i32, priority: i32) -> bool {
    let how = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters outlive the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const how) == 0 }
}

/// The kernel's threads that take what arrives run where those do that it is for.
pub(crate) fn keep_apart() {
    for number in kernel_threads("napi/servers-") {
        keep(number, 0..1);
    }
    for number in kernel_threads("napi/loaders-") {
        keep(number, others());
    }
}

/// Processor time of a server, and of the kernel's threads that take what arrives at it.
pub(crate) fn time_of_server(process: u32) -> Duration {
    static KERNEL: OnceLock<Vec<u32>> = OnceLock::new();
    let kernel = KERNEL
        .get_or_init(|| ["napi/servers-", "ksoftirqd/0"].into_iter().flat_map(kernel_threads).collect());
    time_of_process(process) + kernel.iter().map(|thread| time(*thread)).sum::<Duration>()
}

/// Processor time of a process, threads that have ended among it: a gateway has one for each connection.
fn time_of_process(process: u32) -> Duration {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    let number = process.try_into().unwrap_or(0);
    // SAFETY: both places outlive the calls, and the clock is asked only if there is one.
    let is_told = unsafe {
        libc::clock_getcpuclockid(number, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    if is_told {
        Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
    } else {
        Duration::ZERO
    }
}

/// Those whose names begin so.
fn kernel_threads(name: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let is_named = |number: &u32| {
        fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|text| text.starts_with(name))
    };
    numbers.filter(is_named).collect()
}

/// Processor time of all threads of a process that are there.
fn time(process: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| {
            // Documentation/scheduler/sched-stats.rst: the first number is nanoseconds on a processor.
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
        })
        .sum()
}
