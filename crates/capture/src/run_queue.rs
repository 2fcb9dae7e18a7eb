//! Time for which threads of the command ran, or were ready to run and waited for a CPU (Linux: `/proc/PID/task/TID/schedstat`). A
//! response that was late while they waited was late because of the host, and a reader that ran had no time to read.
//!
//! Which thread wrote a response does not show, but it ran then. Of all that ran, the one that waited least counts: no time of the
//! program is taken for the host's. The kernel adds a wait when it ends, so that the time counts from there backwards. Kernels
//! without these statistics report none.
//!
//! A reader may leave the work on what it reads to other threads (those of a virtual machine that compile and collect, a pool's), or to
//! processes that read its pipes and socket pairs. Whichever of them works, those that wait for it do not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use linux::sockets::unix_pairs;
use wire::{Duration, Time};

use crate::process_tree::descendants;

/// Threads of all processes below this one, as sampled.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    threads: BTreeMap<(u32, u32), Thread>,
    pipes: BTreeMap<u32, Pipes>,
    /// Whether a process has started since pipes were read.
    has_started: bool,
    /// When all threads were sampled last.
    sampled: Option<Time>,
    next: Time,
}

/// Pipes and sockets of a process, by their inodes, that it writes to and reads from.
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
            let pairs = unix_pairs().unwrap_or_default();
            self.pipes = processes.iter().map(|process| (*process, Pipes::of(*process, &pairs))).collect();
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
        self.sampled = Some(began);
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
        // A thread that is new since all were sampled has started since. What the first ones did before has no known time.
        let from = if is_known { Some(thread.at) } else { self.sampled };
        if let Some(from) = from.filter(|_| sample != thread.sample && thread.runs.len() < MAX_RUNS) {
            let Schedstat { ran, waited, runs } = thread.sample;
            let (ran, waited) = (sample.ran.saturating_sub(ran), sample.waited.saturating_sub(waited));
            let is_scheduled = is_known && sample.runs != runs;
            thread.runs.push(Run { from, to: at, ran, waited, is_scheduled });
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

    /// Returns the time for which any thread of `process`, or of the processes that read its output, ran or waited for a CPU from `from`
    /// to `to`. Time of several at once counts once.
    pub(crate) fn work(&self, process: u32, from: Time, to: Time) -> Duration {
        let readers = self.readers(process);
        let threads: Vec<_> = self
            .threads
            .iter()
            .filter(|((of, _), _)| readers.contains(of))
            .map(|(_, thread)| thread)
            .collect();
        let (mut all, mut at) = (Duration::ZERO, from);
        while at < to {
            let end = to.min(at + INTERVAL);
            let each = threads.iter().map(|thread| thread.time(at, end, |run| run.ran + run.waited));
            all += each.sum::<Duration>().min(end.since(at));
            at = end;
        }
        all
    }

    /// Returns a process, and all to which its output goes through pipes and socket pairs.
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
    /// Reads the pipes of a process, and its sockets that are one of `pairs`; none of one that is not permitted to be read.
    fn of(process: u32, pairs: &BTreeMap<u64, u64>) -> Self {
        let mut pipes = Self::default();
        for entry in fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            let target = target.to_str().unwrap_or_default();
            let inode = |kind| target.strip_prefix(kind)?.strip_suffix(']')?.parse().ok();
            // What is written to a socket of a pair is read from the other.
            if let Some((socket, other)) = inode("socket:[").and_then(|socket| pairs.get_key_value(&socket)) {
                pipes.read.insert(*socket);
                pipes.written.insert(*other);
            }
            // The permissions of the link are the mode in which it is open (proc_pid_fd(5)).
            let mode = entry.metadata().map(|metadata| metadata.permissions().mode()).unwrap_or_default();
            if let Some(inode) = inode("pipe:[") {
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
        let first = self.runs.partition_point(|run| run.to < from);
        self.runs.iter().skip(first).map(overlap).sum()
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

    /// A queue of threads that ran so long, in milliseconds, of the 400 from 1,000 ms on.
    fn ran(threads: &[((u32, u32), u64)]) -> RunQueue {
        let mut queue = RunQueue::default();
        for (key, ran) in threads.iter().copied() {
            for (millis, ran) in [(1_000, 0), (1_400, ran)] {
                let sample =
                    Schedstat { ran: Duration::from_millis(ran), waited: Duration::ZERO, runs: 1 + ran };
                queue.record(key, at(millis), sample);
            }
        }
        queue
    }

    fn work(queue: &RunQueue, to: u64) -> u64 {
        queue.work(7, at(1_000), at(to)).as_nanos() / 1_000_000
    }

    /// Process 8 reads pipe 5, to which process 7 writes; process 9 writes to it, too.
    #[test]
    fn work_of_a_process_is_that_of_those_that_read_its_pipes() {
        let mut queue = ran(&[((7, 7), 100), ((8, 8), 320), ((9, 9), 400)]);
        assert_eq!((work(&queue, 1_400), work(&queue, 1_200)), (100, 50));
        let pipe = |written: &[u64], read: &[u64]| Pipes {
            written: written.iter().copied().collect(),
            read: read.iter().copied().collect(),
        };
        queue.pipes = BTreeMap::from([(7, pipe(&[5], &[])), (8, pipe(&[], &[5])), (9, pipe(&[6, 5], &[]))]);
        assert_eq!(work(&queue, 1_400), 400, "at once for 20 ms, which count once");
        assert_eq!(work(&queue, 1_600), 400, "none ran later");
    }

    #[test]
    fn work_of_a_process_is_that_of_all_its_threads() {
        let queue = ran(&[((7, 7), 20), ((7, 8), 180), ((7, 9), 100)]);
        assert_eq!(work(&queue, 1_400), 300);
        assert_eq!(work(&ran(&[((7, 7), 20), ((7, 8), 0)]), 1_400), 20, "a reader that sleeps");
    }

    #[test]
    fn work_of_a_thread_counts_from_the_sample_of_the_others_before_its_first() {
        let mut queue = ran(&[((7, 7), 0)]);
        let sample = Schedstat { ran: Duration::from_millis(8), waited: Duration::ZERO, runs: 2 };
        queue.record((7, 8), at(1_400), sample);
        assert_eq!(work(&queue, 1_400), 0, "nothing shows when it ran");
        queue.sampled = Some(at(1_400));
        queue.record((7, 9), at(1_410), sample);
        assert_eq!(work(&queue, 1_410), 8);
    }

    #[test]
    fn ends_of_a_pipe_and_of_a_socket_pair_are_told_apart() {
        use std::os::fd::AsRawFd;
        let inode = |descriptor: i32| {
            let link = fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap();
            link.to_str().unwrap().split(['[', ']']).nth(1).unwrap().parse::<u64>().unwrap()
        };
        let (reader, writer) = std::io::pipe().unwrap();
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let [pipe, one, far] = [reader.as_raw_fd(), one.as_raw_fd(), other.as_raw_fd()].map(inode);
        let of_this = || Pipes::of(std::process::id(), &unix_pairs().unwrap());
        let pipes = of_this();
        assert!(pipes.read.contains(&pipe) && pipes.written.contains(&pipe));
        assert!(pipes.read.contains(&one) && pipes.written.contains(&far));
        drop((writer, other));
        let pipes = of_this();
        assert!(pipes.read.contains(&pipe) && !pipes.written.contains(&pipe));
        assert!(!pipes.written.contains(&far), "it has no other end any more");
    }

    #[test]
    fn schedstat_has_the_time_on_a_cpu_the_wait_and_the_runs() {
        let (ran, waited) = (Duration::from_secs(2), Duration::from_millis(500));
        assert_eq!(Schedstat::read("2000000000 500000000 9\n"), Some(Schedstat { ran, waited, runs: 9 }));
        assert_eq!(Schedstat::read(""), None);
    }
}
