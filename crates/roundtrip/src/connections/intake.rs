//! Blocks of every log as they come back from the threads that read them, made into one stream in order of time.
//!
//! A log's blocks are put in order by their numbers, its requests within bounds ([`Order`]), and the logs are merged
//! ([`Merge`]). It also says which log to read next, so that what waits stays bounded however many logs there are.

use std::collections::BTreeMap;

use accesslog::{Request, Tally};
use wire::{Duration, Time};

use super::merge::Merge;
use super::order::Order;

/// Every log.
#[derive(Debug)]
pub struct Intake {
    logs: Vec<Lane>,
    merge: Merge,
    late: u64,
    /// Blocks that may be on their way or wait: more would only take memory.
    room: usize,
}

/// One log.
#[derive(Debug)]
struct Lane {
    /// Whether a thread has it and gets its next block.
    taken: bool,
    /// Blocks cut from it.
    cut: u64,
    /// Whether these are all.
    cut_all: bool,
    /// Blocks that were read, by number, until all before them were.
    read: BTreeMap<u64, (Vec<Request>, Read)>,
    /// The number of the next.
    next: u64,
    order: Order,
    said: Read,
}

/// What was read of one log.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// Its lines.
    pub tally: Tally,
    /// Records without a size, which were left out.
    pub without_size: u64,
    /// Why it could not be read to its end.
    pub failed: Option<String>,
}

/// How much earlier than its first lines a log may have others, when it is read beside logs that began before it.
const EARLIER: Duration = Duration::from_secs(3_600);

impl Intake {
    /// For logs that begin about at these times, in order, lines of which may be `window` blocks apart; `room` blocks may
    /// be on their way.
    pub fn new(begin: &[Time], window: usize, room: usize) -> Self {
        let first = begin.iter().min().copied().unwrap_or_default();
        // Nothing comes before the first.
        let from = begin.iter().map(|time| match *time == first {
            true => Time::ZERO,
            false => Time::from_nanos(time.as_nanos().saturating_sub(EARLIER.as_nanos())),
        });
        let logs = begin.iter().map(|_| Lane::new(window)).collect();
        Self { logs, merge: Merge::new(from), late: 0, room }
    }

    /// The log whose next block is wanted now; it is nobody else's until it is [given back](Self::cut).
    pub fn want(&mut self) -> Option<usize> {
        let on_their_way: usize = self.logs.iter().map(Lane::on_its_way).sum();
        let behind = self.merge.behind().filter(|log| self.logs[*log].on_its_way() == 0);
        let log = match behind.filter(|log| self.logs[*log].is_free()) {
            Some(behind) => behind,
            None if on_their_way + self.merge.waiting() >= self.room => return None,
            None => {
                let free = (0..self.logs.len()).filter(|log| self.logs[*log].is_free());
                // Of those that overlap each a little; else the one that begins next.
                free.min_by_key(|log| match self.merge.has_begun(*log) {
                    true => (0, self.logs[*log].on_its_way()),
                    false => (1, *log),
                })?
            }
        };
        self.logs[log].taken = true;
        Some(log)
    }

    /// A log is given back, with a block more to read (which gets this number), or at its end.
    pub fn cut(&mut self, log: usize, block: bool) -> u64 {
        let lane = &mut self.logs[log];
        let number = lane.cut;
        lane.taken = false;
        lane.cut += u64::from(block);
        lane.cut_all = !block;
        self.end(log);
        number
    }

    /// A log cannot be read any further.
    pub fn fail(&mut self, log: usize, reason: String) {
        self.logs[log].said.failed = Some(reason);
        self.cut(log, false);
    }

    /// Takes a block that was read.
    pub fn put(&mut self, log: usize, number: u64, requests: Vec<Request>, read: Read) {
        let lane = &mut self.logs[log];
        lane.read.insert(number, (requests, read));
        while let Some((requests, read)) = lane.read.remove(&lane.next) {
            lane.next += 1;
            let Read { tally, without_size, failed } = read;
            lane.said.tally.append(tally);
            lane.said.without_size += without_size;
            lane.said.failed = lane.said.failed.take().or(failed);
            self.merge.put(log, lane.order.next(requests));
        }
        self.end(log);
    }

    /// Requests that follow, in order of time; `None` while it is not known which do.
    pub fn next(&mut self) -> Option<Vec<Request>> {
        self.merge.next()
    }

    /// Whether all of every log was cut and read.
    pub fn is_done(&self) -> bool {
        self.logs.iter().all(|lane| lane.cut_all && lane.on_its_way() == 0)
    }

    /// What was read of each, and how many requests came too late.
    pub fn finish(self) -> (Vec<Read>, u64) {
        (self.logs.into_iter().map(|lane| lane.said).collect(), self.late + self.merge.late())
    }

    /// Gives away what a log that has ended still held.
    fn end(&mut self, log: usize) {
        let lane = &mut self.logs[log];
        if lane.cut_all && lane.on_its_way() == 0 {
            let (held, late) = lane.order.finish();
            self.late += late;
            self.merge.put(log, held);
            self.merge.end(log);
        }
    }
}

impl Lane {
    fn new(window: usize) -> Self {
        Self {
            taken: false,
            cut: 0,
            cut_all: false,
            read: BTreeMap::new(),
            next: 0,
            order: Order::new(window),
            said: Read::default(),
        }
    }

    /// Blocks that were cut and not put in order yet.
    fn on_its_way(&self) -> usize {
        usize::try_from(self.cut - self.next).unwrap_or(usize::MAX)
    }

    fn is_free(&self) -> bool {
        !self.taken && !self.cut_all
    }
}
