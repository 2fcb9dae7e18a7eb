//! Time for which threads of the command were ready to run and waited for a CPU (Linux: `/proc/PID/task/TID/schedstat`). A response
//! that was late meanwhile was late because of the host.
//!
//! Which thread wrote a response does not show, but it ran then. Of all that ran, the one that waited least counts: no time of the
//! program is taken for the host's. The kernel adds a wait when it ends, so that the time counts from there backwards. Kernels
//! without these statistics report none.

use std::collections::BTreeMap;
use std::fs;

use wire::{Duration, Time};

use crate::process_tree::descendants;

/// Threads of all processes below this one, as sampled.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    threads: BTreeMap<(u32, u32), Thread>,
    next: Time,
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
    /// Time that it waited for a CPU; longer than the interval, if the wait had begun before.
    waited: Duration,
}

/// The wait of a thread in total, and the number of times it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Schedstat {
    waited: Duration,
    runs: u64,
}

/// Interval of samples.
const INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of threads, and of intervals of each.
const MAX_THREADS: usize = 256;
const MAX_RUNS: usize = 1 << 12;

impl RunQueue {
    /// Samples the threads of all processes below this one, if it is time.
    pub(crate) fn sample(&mut self, now: impl Fn() -> Time) {
        let began = now();
        if began < self.next {
            return;
        }
        for process in descendants(std::process::id()) {
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
        let thread = self.threads.entry(key).or_default();
        // What a thread did before its first sample has no known time.
        if is_known && sample != thread.sample && thread.runs.len() < MAX_RUNS {
            let waited = sample.waited.saturating_sub(thread.sample.waited);
            thread.runs.push(Run { from: thread.at, to: at, waited });
        }
        (thread.sample, thread.at) = (sample, at);
    }

    /// Returns the time for which each thread of `process` that ran at `to`, or ended before, had waited for a CPU since `from`.
    pub(crate) fn delay(&self, process: u32, from: Time, to: Time) -> Duration {
        let threads = || self.threads.range((process, 0)..=(process, u32::MAX)).map(|(_, thread)| thread);
        let latest = threads().map(|thread| thread.at).max().unwrap_or_default();
        let has_ended = |thread: &&Thread| (from..to).contains(&thread.at) && thread.at < latest;
        let wrote = threads().filter(|thread| thread.has_run_at(to) || has_ended(thread));
        wrote.map(|thread| thread.delay(from, to)).min().unwrap_or_default()
    }
}

impl Thread {
    fn has_run_at(&self, time: Time) -> bool {
        self.runs.iter().any(|run| (run.from..=run.to).contains(&time))
    }

    fn delay(&self, from: Time, to: Time) -> Duration {
        let overlap = |run: &Run| {
            let within = run.to.since(run.from).max(run.waited);
            let begun = Time::from_nanos(run.to.as_nanos().saturating_sub(within.as_nanos()));
            let common = to.min(run.to).since(from.max(begun));
            // A part of an interval has a part of its waits.
            let part = u128::from(run.waited.as_nanos()) * u128::from(common.as_nanos())
                / u128::from(within.as_nanos().max(1));
            Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX))
        };
        self.runs.iter().map(overlap).sum()
    }
}

impl Schedstat {
    /// Reads the three numbers of `schedstat`: time on a CPU, time waiting for one, number of times it ran.
    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().skip(1).map_while(|number| number.parse().ok());
        Some(Self { waited: Duration::from_nanos(numbers.next()?), runs: numbers.next()? })
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
            queue.record((7, thread), at(millis), Schedstat { waited: Duration::from_millis(waited), runs });
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

    #[test]
    fn schedstat_has_the_wait_second_and_the_runs_third() {
        let waited = Duration::from_millis(500);
        assert_eq!(Schedstat::read("2000000000 500000000 9\n"), Some(Schedstat { waited, runs: 9 }));
        assert_eq!(Schedstat::read(""), None);
    }
}
