//! Time for which threads of the command ran, or were ready to run and waited for a CPU (Linux: `/proc/PID/task/TID/schedstat`). A
//! response that was late while they waited was late because of the host, and a reader that ran had no time to read.
//!
//! Which thread wrote a response does not show, but it ran then. Of all that ran, the one that waited least counts: no time of the
//! program is taken for the host's. The kernel adds a wait when it ends, so that the time counts from there backwards. Kernels
//! without these statistics report none.
//!
//! A process may only pass on what it reads: those that read its pipes work for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use wire::{Duration, Time};

use crate::process_tree::descendants;

/// Threads of all processes below this one, as sampled.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    threads: BTreeMap<(u32, u32), Thread>,
    pipes: BTreeMap<u32, Pipes>,
    /// Whether a process has started since pipes were read.
    has_started: bool,
    next: Time,
}

/// Pipes of a process, by their inodes, that it writes to and reads from.
#[derive(Debug, Default)]
struct Pipes {
    written: BTreeSet<u64>,
    read: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct Thread {
    /// The last sample, and its time.
    sample: Schedstat,
    at: Time,
    /// Intervals between two samples in which it ran.
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    from: Time,
    to: Time,
    /// Time that it ran.
    ran: Duration,
    /// Time that it waited for a CPU; longer than the interval, if the wait had begun before.
    waited: Duration,
    /// Whether it was scheduled, and did not only run on.
    is_scheduled: bool,
}

/// The time on a CPU and the wait of a thread in total, and the number of times it was scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Schedstat {
    ran: Duration,
    waited: Duration,
    runs: u64,
}

/// Interval of samples.
const INTERVAL: Duration = Duration::from_millis(10);
/// Maximum number of threads, and of intervals of each.
const MAX_THREADS: usize = 256;
const MAX_RUNS: usize = 1 << 13;

impl RunQueue {
    /// Samples the threads of all processes below this one, if it is time.
    pub(crate) fn sample(&mut self, now: impl Fn() -> Time) {
        let began = now();
        if began < self.next {
            return;
        }
        let processes = descendants(std::process::id());
        // What a process has at its start is its parent's.
        if std::mem::take(&mut self.has_started) {
            self.pipes = processes.iter().map(|process| (*process, Pipes::of(*process))).collect();
        }
        for process in processes {
            for entry in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
                let thread = entry.file_name().to_str().and_then(|name| name.parse().ok());
                let text = fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
                if let (Some(thread), Some(sample)) = (thread, Schedstat::read(&text)) {
                    self.record((process, thread), began, sample);
                }
            }
        }
        // At most a twentieth of the time.
        self.next = now() + INTERVAL.max(now().since(began) * 20);
    }

    fn record(&mut self, key: (u32, u32), at: Time, sample: Schedstat) {
        let is_known = self.threads.contains_key(&key);
        if !is_known && self.threads.len() >= MAX_THREADS {
            return;
        }
        self.has_started |= !is_known;
        let thread = self.threads.entry(key).or_default();
        // What a thread did before its first sample has no known time.
        if is_known && sample != thread.sample && thread.runs.len() < MAX_RUNS {
            let Schedstat { ran, waited, runs } = thread.sample;
            let (ran, waited) = (sample.ran.saturating_sub(ran), sample.waited.saturating_sub(waited));
            thread.runs.push(Run { from: thread.at, to: at, ran, waited, is_scheduled: sample.runs != runs });
        }
        (thread.sample, thread.at) = (sample, at);
    }

    /// Returns the time for which each thread of `process` that ran at `to`, or ended before, had waited for a CPU since `from`.
    pub(crate) fn delay(&self, process: u32, from: Time, to: Time) -> Duration {
        let threads = || self.threads.range((process, 0)..=(process, u32::MAX)).map(|(_, thread)| thread);
        let latest = threads().map(|thread| thread.at).max().unwrap_or_default();
        let has_ended = |thread: &&Thread| (from..to).contains(&thread.at) && thread.at < latest;
        let wrote = threads().filter(|thread| thread.was_scheduled_at(to) || has_ended(thread));
        wrote.map(|thread| thread.time(from, to, |run| run.waited)).min().unwrap_or_default()
    }

    /// Returns the time for which a thread of `process` that ran at `to`, and of each process that reads its output, had run or waited
    /// for a CPU since `from`: of each process the one for which that was least. They wait for each other in turn.
    pub(crate) fn work(&self, process: u32, from: Time, to: Time) -> Duration {
        let of_process = |process: &u32| {
            let threads = self.threads.range((*process, 0)..=(*process, u32::MAX)).map(|(_, thread)| thread);
            let ran = threads.filter(|thread| thread.has_run_at(to));
            ran.map(|thread| thread.time(from, to, |run| run.ran + run.waited)).min()
        };
        let all: Duration = self.readers(process).iter().filter_map(of_process).sum();
        all.min(to.since(from))
    }

    /// Returns a process, and all to which its output goes through pipes.
    fn readers(&self, process: u32) -> BTreeSet<u32> {
        let (mut found, mut to_visit) = (BTreeSet::new(), vec![process]);
        while let Some(process) = to_visit.pop() {
            if found.insert(process)
                && let Some(Pipes { written, .. }) = self.pipes.get(&process)
            {
                let reads = |pipes: &Pipes| !pipes.read.is_disjoint(written);
                to_visit
                    .extend(self.pipes.iter().filter(|(_, pipes)| reads(pipes)).map(|(reader, _)| reader));
            }
        }
        found
    }
}

impl Pipes {
    /// Reads the pipes of a process; none of one that is not permitted to be read.
    fn of(process: u32) -> Self {
        let mut pipes = Self::default();
        for entry in fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            let inode = target.to_str().and_then(|target| target.strip_prefix("pipe:[")?.strip_suffix(']'));
            // The permissions of the link are the mode in which it is open (proc_pid_fd(5)).
            let mode = entry.metadata().map(|metadata| metadata.permissions().mode()).unwrap_or_default();
            if let Some(inode) = inode.and_then(|inode| inode.parse().ok()) {
                if mode & 0o400 > 0 {
                    pipes.read.insert(inode);
                }
                if mode & 0o200 > 0 {
                    pipes.written.insert(inode);
                }
            }
        }
        pipes
    }
}

impl Thread {
    fn has_run_at(&self, time: Time) -> bool {
        self.runs.iter().any(|run| (run.from..=run.to).contains(&time))
    }

    fn was_scheduled_at(&self, time: Time) -> bool {
        self.runs.iter().any(|run| run.is_scheduled && (run.from..=run.to).contains(&time))
    }

    /// Returns its time of a kind between two times.
    fn time(&self, from: Time, to: Time, of: impl Fn(&Run) -> Duration) -> Duration {
        let overlap = |run: &Run| {
            let within = run.to.since(run.from).max(of(run));
            let begun = Time::from_nanos(run.to.as_nanos().saturating_sub(within.as_nanos()));
            let common = to.min(run.to).since(from.max(begun));
            // A part of an interval has a part of its time.
            let part = u128::from(of(run).as_nanos()) * u128::from(common.as_nanos())
                / u128::from(within.as_nanos().max(1));
            Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX))
        };
        self.runs.iter().map(overlap).sum()
    }
}

impl Schedstat {
    /// Reads the three numbers of `schedstat`: time on a CPU, time waiting for one, number of times it ran.
    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
        let (ran, waited) = (numbers.next()?, numbers.next()?);
        let (ran, waited) = (Duration::from_nanos(ran), Duration::from_nanos(waited));
        Some(Self { ran, waited, runs: numbers.next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Samples of process 7: the thread, the time, its wait so far, in milliseconds, and the number of its runs.
    fn sampled(samples: &[(u32, u64, u64, u64)]) -> RunQueue {
        let mut queue = RunQueue::default();
        for (thread, millis, waited, runs) in samples.iter().copied() {
            let waited = Duration::from_millis(waited);
            queue.record((7, thread), at(millis), Schedstat { ran: Duration::ZERO, waited, runs });
        }
        queue
    }

    #[test]
    fn wait_for_a_cpu_counts_from_its_end_backwards() {
        let queue = sampled(&[(7, 1_000, 500, 3), (7, 1_380, 500, 3), (7, 1_400, 800, 4)]);
        let delay = |process, from, to| queue.delay(process, at(from), at(to)).as_nanos() / 1_000_000;
        assert_eq!(delay(7, 1_000, 1_400), 300);
        assert_eq!(delay(7, 1_250, 1_390), 140, "a part of it");
        assert_eq!(delay(7, 1_000, 1_200), 0, "it did not run then");
        assert_eq!(delay(9, 1_000, 1_400), 0, "another process");
    }

    #[test]
    fn of_threads_that_may_have_written_the_one_that_waited_least_counts() {
        let mut samples = vec![(7, 1_000, 0, 1), (8, 1_000, 0, 1), (9, 1_000, 0, 1)];
        samples.extend([(7, 1_400, 300, 9), (8, 1_400, 0, 1)]);
        let delay = |queue: &RunQueue| queue.delay(7, at(1_000), at(1_390)).as_nanos() / 1_000_000;
        assert_eq!(delay(&sampled(&samples)), 0, "thread 9 may have written before it ended");
        samples.push((9, 1_400, 0, 1));
        assert_eq!(delay(&sampled(&samples)), 292, "only thread 7 ran");
        samples.push((8, 1_400, 50, 2));
        assert_eq!(delay(&sampled(&samples)), 292, "thread 8 ran later");
    }

    /// Process 7 runs for 100 ms of 400 and writes to pipe 5; process 8, which reads that, runs all the time; process 9 runs, too.
    #[test]
    fn work_of_a_process_is_that_of_those_that_read_its_pipes() {
        let mut queue = RunQueue::default();
        for (process, ran) in [(7, 100), (8, 400), (9, 400)] {
            for (millis, ran) in [(1_000, 0), (1_400, ran)] {
                let sample =
                    Schedstat { ran: Duration::from_millis(ran), waited: Duration::ZERO, runs: 1 + ran };
                queue.record((process, process), at(millis), sample);
            }
        }
        let work = |queue: &RunQueue, to| queue.work(7, at(1_000), at(to)).as_nanos() / 1_000_000;
        assert_eq!((work(&queue, 1_400), work(&queue, 1_200)), (100, 50));
        let pipe = |written: &[u64], read: &[u64]| Pipes {
            written: written.iter().copied().collect(),
            read: read.iter().copied().collect(),
        };
        queue.pipes = BTreeMap::from([(7, pipe(&[5], &[])), (8, pipe(&[], &[5])), (9, pipe(&[6, 5], &[]))]);
        assert_eq!(work(&queue, 1_400), 400);
        assert_eq!(work(&queue, 1_600), 0, "no thread ran when the window opened");
    }

    #[test]
    fn ends_of_a_pipe_are_told_apart() {
        let (reader, writer) = std::io::pipe().unwrap();
        let pipes = Pipes::of(std::process::id());
        let inode = |path: String| fs::read_link(path).unwrap().to_str().unwrap().to_owned();
        let inode = inode(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader)));
        let inode: u64 = inode.trim_start_matches("pipe:[").trim_end_matches(']').parse().unwrap();
        assert!(pipes.read.contains(&inode) && pipes.written.contains(&inode));
        drop(writer);
        let pipes = Pipes::of(std::process::id());
        assert!(pipes.read.contains(&inode) && !pipes.written.contains(&inode));
    }

    #[test]
    fn schedstat_has_the_time_on_a_cpu_the_wait_and_the_runs() {
        let (ran, waited) = (Duration::from_secs(2), Duration::from_millis(500));
        assert_eq!(Schedstat::read("2000000000 500000000 9\n"), Some(Schedstat { ran, waited, runs: 9 }));
        assert_eq!(Schedstat::read(""), None);
    }
}
