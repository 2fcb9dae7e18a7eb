//! Blocks of every log, in the order of their completion, merged into one stream sorted by time.
//!
//! A log's blocks are sorted by their numbers, its requests within bounds ([`Reorderer`]), and the logs are merged
//! ([`Merge`]). It also selects the log to read next, so that the buffered requests stay bounded for any number of
//! logs.

use std::collections::BTreeMap;

use accesslog::{Request, Tally};
use wire::{Duration, Time};

use crate::merge::Merge;
use crate::reorder::Reorderer;

/// State of all logs.
#[derive(Debug)]
pub struct MergedLogs {
    logs: Vec<LogState>,
    merge: Merge,
    late: u64,
    /// Maximum number of blocks in flight or waiting.
    capacity: usize,
}

/// State of one log.
#[derive(Debug)]
struct LogState {
    /// Whether a thread holds it to cut its next block.
    is_taken: bool,
    /// Number of blocks cut from it.
    cut: u64,
    /// Whether its last block was cut.
    cut_all: bool,
    /// Blocks that were read, by number, which wait for an earlier one.
    read: BTreeMap<u64, (Vec<Request>, LogCounters)>,
    /// Number of the next block in order.
    next: u64,
    order: Reorderer,
    reported: LogCounters,
}

/// Counters of one log.
#[derive(Clone, Debug, Default)]
pub struct LogCounters {
    /// Its lines, by outcome.
    pub tally: Tally,
    /// Records without a size, which were left out.
    pub without_size: u64,
    /// The error that ended its reading early.
    pub failed: Option<String>,
}

/// Maximum time by which lines of a log may precede its first ones, when logs that began before it are read too.
const EARLIER: Duration = Duration::from_secs(3_600);

impl MergedLogs {
    /// State for logs that begin about at these times, in order. Lines may be out of order by up to `window` blocks;
    /// at most `capacity` blocks are in flight.
    pub fn new(begin: &[Time], window: usize, capacity: usize) -> Self {
        let first = begin.iter().min().copied().unwrap_or_default();
        // The requests of the first log are never too late.
        let from = begin.iter().map(|time| match *time == first {
            true => Time::ZERO,
            false => Time::from_nanos(time.as_nanos().saturating_sub(EARLIER.as_nanos())),
        });
        let logs = begin.iter().map(|_| LogState::new(window)).collect();
        Self { logs, merge: Merge::new(from), late: 0, capacity }
    }

    /// The log to cut the next block from; it is reserved for the caller until it is [returned](Self::cut).
    pub fn reserve_log(&mut self) -> Option<usize> {
        let total_in_flight: usize = self.logs.iter().map(LogState::blocks_in_flight).sum();
        let behind = self.merge.behind().filter(|log| self.logs[*log].blocks_in_flight() == 0);
        let log = match behind.filter(|log| self.logs[*log].is_free()) {
            Some(behind) => behind,
            None if total_in_flight + self.merge.waiting() >= self.capacity => return None,
            None => {
                let free = (0..self.logs.len()).filter(|log| self.logs[*log].is_free());
                // Logs that overlap in time advance alternately; otherwise the one that begins next.
                free.min_by_key(|log| match self.merge.has_begun(*log) {
                    true => (0, self.logs[*log].blocks_in_flight()),
                    false => (1, *log),
                })?
            }
        };
        self.logs[log].is_taken = true;
        Some(log)
    }

    /// Releases a log, with one more block to read (whose number is the result), or at its end.
    pub fn cut(&mut self, log: usize, block: bool) -> u64 {
        let source = &mut self.logs[log];
        let number = source.cut;
        source.is_taken = false;
        source.cut += u64::from(block);
        source.cut_all = !block;
        self.end(log);
        number
    }

    /// Ends a log that cannot be read any further.
    pub fn fail(&mut self, log: usize, reason: String) {
        self.logs[log].reported.failed = Some(reason);
        self.cut(log, false);
    }

    /// Adds a parsed block.
    pub fn put(&mut self, log: usize, number: u64, requests: Vec<Request>, read: LogCounters) {
        let source = &mut self.logs[log];
        source.read.insert(number, (requests, read));
        while let Some((requests, read)) = source.read.remove(&source.next) {
            source.next += 1;
            let LogCounters { tally, without_size, failed } = read;
            source.reported.tally.append(tally);
            source.reported.without_size += without_size;
            source.reported.failed = source.reported.failed.take().or(failed);
            self.merge.put(log, source.order.next(requests));
        }
        self.end(log);
    }

    /// The next requests, sorted by time; `None` while they are not known.
    pub fn next_requests(&mut self) -> Option<Vec<Request>> {
        self.merge.next_requests()
    }

    /// Whether every log was read to its end.
    pub fn is_done(&self) -> bool {
        self.logs.iter().all(|source| source.cut_all && source.blocks_in_flight() == 0)
    }

    /// Counters of each log, and the number of requests that came too late.
    pub fn finish(self) -> (Vec<LogCounters>, u64) {
        (self.logs.into_iter().map(|source| source.reported).collect(), self.late + self.merge.late())
    }

    /// Flushes the buffered requests of a finished log.
    fn end(&mut self, log: usize) {
        let source = &mut self.logs[log];
        if source.cut_all && source.blocks_in_flight() == 0 {
            let (buffered, late) = source.order.finish();
            self.late += late;
            self.merge.put(log, buffered);
            self.merge.end(log);
        }
    }
}

impl LogState {
    fn new(window: usize) -> Self {
        Self {
            is_taken: false,
            cut: 0,
            cut_all: false,
            read: BTreeMap::new(),
            next: 0,
            order: Reorderer::new(window),
            reported: LogCounters::default(),
        }
    }

    /// Number of blocks that were cut and are still in flight.
    fn blocks_in_flight(&self) -> usize {
        usize::try_from(self.cut - self.next).unwrap_or(usize::MAX)
    }

    fn is_free(&self) -> bool {
        !self.is_taken && !self.cut_all
    }
}
