//! Progress reports of a run, and its interruption.
//!
//! A thread reports once a second, in one message, and never on single responses: nothing waits for a lock here. Not
//! the record: that is assembled at the end. A second's report is complete, except for requests that were due in it and
//! leave later: those are added when they have left.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use hdrhistogram::Histogram;
use wire::Duration;

use crate::record::{Channel, FailureReason, LATE, Record};
use crate::second::Second;

/// State of a run, after each of its seconds.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Number of completed seconds.
    pub over: u64,
    /// The last of them, the newest at the end: at most [`HISTORY`].
    pub seconds: VecDeque<Second>,
    /// The newest second's service times, in nanoseconds from when requests were sent; the second itself has the
    /// response times from when they were due.
    pub experienced: Option<Histogram<u32>>,
    /// Responses so far, by channel.
    pub channels: BTreeMap<Channel, u64>,
    /// Failures so far, by kind.
    pub failure_counts: BTreeMap<FailureReason, u64>,
    /// Connections opened so far.
    pub connections: u64,
    /// Connections that are open.
    pub open: u64,
}

/// Number of seconds in the history.
pub const HISTORY: usize = 120;

impl Progress {
    /// Adds a thread's report.
    pub(crate) fn add(&mut self, reported: SecondReport) {
        let SecondReport { number, second, experienced, late, counts } = reported;
        if let Some(own) = self.second(number) {
            own.add(second);
        }
        if number == self.newest() {
            match &mut self.experienced {
                Some(own) => own.add(experienced).expect("all of them have the same bounds"),
                none => *none = Some(experienced),
            }
        }
        for LateRequest { number, is_late } in late {
            if let Some(own) = self.second(number) {
                own.due += 1;
                own.late += u64::from(is_late);
            }
        }
        let CountsSinceReport { channels, failure_counts, connections } = counts;
        for (channel, count) in channels {
            *self.channels.entry(channel).or_default() += count;
        }
        for (reason, count) in failure_counts {
            *self.failure_counts.entry(reason).or_default() += count;
        }
        self.connections += connections;
    }

    /// Counts datagrams dropped in this second.
    pub(crate) fn dropped(&mut self, number: u64, count: u64) {
        if let Some(second) = self.second(number) {
            second.dropped += count;
        }
    }

    /// The second with this number, if it is still in the history.
    fn second(&mut self, number: u64) -> Option<&mut Second> {
        while self.over <= number {
            self.over += 1;
            self.experienced = None;
            self.seconds.push_back(Second::default());
            if self.seconds.len() > HISTORY {
                self.seconds.pop_front();
            }
        }
        let back = usize::try_from(self.over - number).ok()?;
        let index = self.seconds.len().checked_sub(back)?;
        self.seconds.get_mut(index)
    }

    fn newest(&self) -> u64 {
        self.over.saturating_sub(1)
    }
}

/// A thread's report of a second.
#[derive(Debug)]
pub(crate) struct SecondReport {
    number: u64,
    second: Second,
    experienced: Histogram<u32>,
    late: Vec<LateRequest>,
    counts: CountsSinceReport,
}

/// A request that was due in a second that is already reported.
#[derive(Clone, Copy, Debug)]
struct LateRequest {
    number: u64,
    is_late: bool,
}

/// Counts since the last report.
#[derive(Debug, Default)]
struct CountsSinceReport {
    channels: BTreeMap<Channel, u64>,
    failure_counts: BTreeMap<FailureReason, u64>,
    connections: u64,
}

/// Sender of a thread's reports.
#[derive(Debug)]
pub(crate) struct ProgressSender {
    to: Sender<SecondReport>,
    /// Number of reported seconds.
    reported: u64,
    experienced: Histogram<u32>,
    late: Vec<LateRequest>,
    /// Counts of the last report.
    before: CountsSinceReport,
}

impl ProgressSender {
    pub(crate) fn new(to: Sender<SecondReport>) -> Self {
        Self {
            to,
            reported: 0,
            experienced: latencies(),
            late: Vec::new(),
            before: CountsSinceReport::default(),
        }
    }

    /// Records that a request left that was due then.
    pub(crate) fn due(&mut self, when: Duration, lateness: Duration) {
        if when < Duration::from_secs(self.reported) {
            self.late.push(LateRequest { number: when.as_nanos() / NANOS, is_late: lateness > LATE });
        }
    }

    /// Records the service time of a response.
    pub(crate) fn record_response(&mut self, experienced: Duration) {
        self.experienced.saturating_record(experienced.as_nanos());
    }

    /// Reports the seconds that are complete and not reported yet.
    pub(crate) fn report(&mut self, since_beginning: Duration, record: &Record, connections: u64) {
        while Duration::from_secs(self.reported + 1) <= since_beginning {
            let index = usize::try_from(self.reported).unwrap_or(usize::MAX);
            let reported = SecondReport {
                number: self.reported,
                second: record.seconds.get(index).cloned().unwrap_or_default(),
                experienced: std::mem::replace(&mut self.experienced, latencies()),
                late: std::mem::take(&mut self.late),
                counts: self.counts_since_report(record, connections),
            };
            self.reported += 1;
            // A receiver that is gone has ended the run.
            let _ = self.to.send(reported);
        }
    }

    fn counts_since_report(&mut self, record: &Record, connections: u64) -> CountsSinceReport {
        let Record { channels, failure_counts, .. } = record;
        let now = CountsSinceReport {
            channels: channels.clone(),
            failure_counts: failure_counts.clone(),
            connections,
        };
        let before = std::mem::replace(&mut self.before, now);
        CountsSinceReport {
            channels: more(channels, &before.channels),
            failure_counts: more(failure_counts, &before.failure_counts),
            connections: connections - before.connections,
        }
    }
}

fn more<T: Copy + Ord>(now: &BTreeMap<T, u64>, before: &BTreeMap<T, u64>) -> BTreeMap<T, u64> {
    now.iter().map(|(kind, count)| (*kind, count - before.get(kind).copied().unwrap_or(0))).collect()
}

fn latencies() -> Histogram<u32> {
    Second::default().intended
}

const NANOS: u64 = 1_000_000_000;

/// Interrupts a run: nothing more is started, and requests in flight have [`GRACE`] to finish. Copies share their state.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// Maximum wait for responses after an interruption.
pub const GRACE: Duration = Duration::from_secs(1);

impl Stop {
    /// Sets it. Returns whether it was set before.
    pub fn stop(&self) -> bool {
        self.0.swap(true, Ordering::Relaxed)
    }

    /// Whether it is set.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn seconds_of_several_threads_are_added_and_late_requests_are_reported_later() {
        let (to, from) = channel();
        let (mut one, mut other) = (ProgressSender::new(to.clone()), ProgressSender::new(to));
        let [early, late] = [500, 3_100].map(Duration::from_millis);
        let mut record = Record::default();
        record.due(early, Duration::ZERO);
        record.count_response(early, 10, Channel::Udp, early, early);
        one.record_response(early);
        one.report(Duration::from_millis(1_001), &record, 2);
        other.report(Duration::from_millis(900), &record, 2);
        let mut progress = Progress::default();
        from.try_iter().for_each(|reported| progress.add(reported));
        assert_eq!((progress.over, progress.seconds[0].responses, progress.connections), (1, 1, 2));
        assert_eq!(progress.experienced.as_ref().unwrap().len(), 1);
        // The other's first second had more requests, and they left two seconds late.
        other.report(Duration::from_millis(1_100), &record, 2);
        record.due(early, late);
        other.due(early, late);
        other.report(Duration::from_millis(3_200), &record, 3);
        from.try_iter().for_each(|reported| progress.add(reported));
        let first = &progress.seconds[0];
        assert_eq!((first.due, first.late, first.responses), (3, 1, 2));
        assert_eq!((progress.over, progress.channels[&Channel::Udp], progress.connections), (3, 2, 5));
        assert_eq!(progress.experienced.as_ref().unwrap().len(), 0);
    }

    #[test]
    fn the_history_is_bounded() {
        let mut progress = Progress::default();
        progress.dropped(299, 7);
        progress.dropped(0, 1);
        assert_eq!((progress.over, progress.seconds.len()), (300, HISTORY));
        assert_eq!(progress.seconds.iter().map(|second| second.dropped).sum::<u64>(), 7);
    }
}
