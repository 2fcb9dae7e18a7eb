//! What a run tells while it goes on, and what it is told: to end.
//!
//! A thread tells once a second, in one message, and never of single answers: nobody waits for a lock here. Not the record:
//! that is put together when all is over. What is told of a second is all there is of it, but for requests that were due in it
//! and leave later: of them the second is told when they have left.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use hdrhistogram::Histogram;
use wire::Duration;

use crate::record::{Channel, LATE, Record, Second, Trouble};

/// How a run is, after each of its seconds.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// How many seconds are over.
    pub over: u64,
    /// The last of them, the newest at the end: at most [`HISTORY`].
    pub seconds: VecDeque<Second>,
    /// The newest second's latencies from when answers were asked for, in nanoseconds; from when they were due, the second
    /// itself has them.
    pub experienced: Option<Histogram<u32>>,
    /// Answers until now, by the way they came.
    pub channels: BTreeMap<Channel, u64>,
    /// Failures until now, by their kind.
    pub troubles: BTreeMap<Trouble, u64>,
    /// Connections that were opened until now.
    pub connections: u64,
    /// Connections that are open.
    pub open: u64,
}

/// So many seconds are looked back on.
pub const HISTORY: usize = 120;

impl Progress {
    /// Adds what a thread has told.
    pub(crate) fn add(&mut self, told: Told) {
        let Told { number, second, experienced, late, came } = told;
        if let Some(ours) = self.second(number) {
            ours.add(second);
        }
        if number == self.newest() {
            match &mut self.experienced {
                Some(ours) => ours.add(experienced).expect("all of them have the same bounds"),
                none => *none = Some(experienced),
            }
        }
        for Late { number, is_late } in late {
            if let Some(ours) = self.second(number) {
                ours.due += 1;
                ours.late += u64::from(is_late);
            }
        }
        let Came { channels, troubles, connections } = came;
        for (way, count) in channels {
            *self.channels.entry(way).or_default() += count;
        }
        for (trouble, count) in troubles {
            *self.troubles.entry(trouble).or_default() += count;
        }
        self.connections += connections;
    }

    /// Datagrams were thrown away in this second.
    pub(crate) fn dropped(&mut self, number: u64, count: u64) {
        if let Some(second) = self.second(number) {
            second.dropped += count;
        }
    }

    /// The second with this number, if it is not too long ago.
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
        let place = self.seconds.len().checked_sub(back)?;
        self.seconds.get_mut(place)
    }

    fn newest(&self) -> u64 {
        self.over.saturating_sub(1)
    }
}

/// What a thread tells of a second.
#[derive(Debug)]
pub(crate) struct Told {
    number: u64,
    second: Second,
    experienced: Histogram<u32>,
    late: Vec<Late>,
    came: Came,
}

/// A request that was due in a second that others have been told of.
#[derive(Clone, Copy, Debug)]
struct Late {
    number: u64,
    is_late: bool,
}

/// What came since the last time.
#[derive(Debug, Default)]
struct Came {
    channels: BTreeMap<Channel, u64>,
    troubles: BTreeMap<Trouble, u64>,
    connections: u64,
}

/// Tells of a thread's seconds.
#[derive(Debug)]
pub(crate) struct Teller {
    to: Sender<Told>,
    /// Seconds that were told of.
    told: u64,
    experienced: Histogram<u32>,
    late: Vec<Late>,
    /// Until the last time.
    before: Came,
}

impl Teller {
    pub(crate) fn new(to: Sender<Told>) -> Self {
        Self { to, told: 0, experienced: latencies(), late: Vec::new(), before: Came::default() }
    }

    /// A request left that was due then.
    pub(crate) fn due(&mut self, when: Duration, lateness: Duration) {
        if when < Duration::from_secs(self.told) {
            self.late.push(Late { number: when.as_nanos() / NANOS, is_late: lateness > LATE });
        }
    }

    /// An answer came so long after it was asked for.
    pub(crate) fn answered(&mut self, experienced: Duration) {
        self.experienced.saturating_record(experienced.as_nanos());
    }

    /// Tells of the seconds that are over by now, and were not told of.
    pub(crate) fn tell(&mut self, since_beginning: Duration, record: &Record, connections: u64) {
        while Duration::from_secs(self.told + 1) <= since_beginning {
            let place = usize::try_from(self.told).unwrap_or(usize::MAX);
            let told = Told {
                number: self.told,
                second: record.seconds.get(place).cloned().unwrap_or_default(),
                experienced: std::mem::replace(&mut self.experienced, latencies()),
                late: std::mem::take(&mut self.late),
                came: self.came(record, connections),
            };
            self.told += 1;
            // Who does not listen any more has ended the run.
            let _ = self.to.send(told);
        }
    }

    fn came(&mut self, record: &Record, connections: u64) -> Came {
        let Record { channels, troubles, .. } = record;
        let now = Came { channels: channels.clone(), troubles: troubles.clone(), connections };
        let before = std::mem::replace(&mut self.before, now);
        Came {
            channels: more(channels, &before.channels),
            troubles: more(troubles, &before.troubles),
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

/// Tells a run to end before its time: nothing more is begun, and what is under way has [`GRACE`] to come. Copies are one.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// So long whoever ends a run waits for answers.
pub const GRACE: Duration = Duration::from_secs(1);

impl Stop {
    /// It is to end. Gives whether that was said before.
    pub fn stop(&self) -> bool {
        self.0.swap(true, Ordering::Relaxed)
    }

    /// Whether it is to end.
    pub(crate) fn is_said(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn seconds_of_several_threads_are_added_and_what_leaves_later_is_told_later() {
        let (to, from) = channel();
        let (mut one, mut other) = (Teller::new(to.clone()), Teller::new(to));
        let [early, late] = [500, 3_100].map(Duration::from_millis);
        let mut record = Record::default();
        record.due(early, Duration::ZERO);
        record.answered(early, 10, Channel::Udp, early, early);
        one.answered(early);
        one.tell(Duration::from_millis(1_001), &record, 2);
        other.tell(Duration::from_millis(900), &record, 2);
        let mut progress = Progress::default();
        from.try_iter().for_each(|told| progress.add(told));
        assert_eq!((progress.over, progress.seconds[0].answered, progress.connections), (1, 1, 2));
        assert_eq!(progress.experienced.as_ref().unwrap().len(), 1);
        // The other's first second had more, and left two seconds late.
        other.tell(Duration::from_millis(1_100), &record, 2);
        record.due(early, late);
        other.due(early, late);
        other.tell(Duration::from_millis(3_200), &record, 3);
        from.try_iter().for_each(|told| progress.add(told));
        let first = &progress.seconds[0];
        assert_eq!((first.due, first.late, first.answered), (3, 1, 2));
        assert_eq!((progress.over, progress.channels[&Channel::Udp], progress.connections), (3, 2, 5));
        assert_eq!(progress.experienced.as_ref().unwrap().len(), 0);
    }

    #[test]
    fn no_more_seconds_are_kept_than_are_looked_back_on() {
        let mut progress = Progress::default();
        progress.dropped(299, 7);
        progress.dropped(0, 1);
        assert_eq!((progress.over, progress.seconds.len()), (300, HISTORY));
        assert_eq!(progress.seconds.iter().map(|second| second.dropped).sum::<u64>(), 7);
    }
}
