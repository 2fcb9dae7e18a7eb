//! Where threads run, and how long they have run. Not a clock.

use std::fs;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

/// The calling thread, and those it starts, run on the first processor: it serves.
pub(crate) fn serve_here() {
    keep_to(0..1);
}

/// The calling thread, and those it starts, run on all but the first: it loads servers.
pub(crate) fn load_here() {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    keep_to(1..all.max(2));
}

fn keep_to(processors: std::ops::Range<usize>) {
    let mut set = CpuSet::new();
    for processor in processors {
        // More processors than the set has room for are left out.
        let _ = set.set(processor);
    }
    // On a machine with one processor everything runs there.
    let _ = sched_setaffinity(Pid::from_raw(0), &set);
}

/// Processor time of this process and of those it waited for: what loads the servers.
pub(crate) fn time_of_loaders() -> Duration {
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN]
        .into_iter()
        .filter_map(|who| {
            let usage = getrusage(who).ok()?;
            let spent = usage.user_time() + usage.system_time();
            u64::try_from(spent.num_microseconds()).ok().map(Duration::from_micros)
        })
        .sum()
}

/// Processor time of all threads of a process that are there.
pub(crate) fn time(process: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| {
            // Documentation/scheduler/sched-stats.rst: the first number is nanoseconds on a processor.
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
        })
        .sum()
}
