//! One pass over logs: an idle thread cuts a block off a log, parses one into requests, or counts.
//!
//! Not the parsing of lines (`accesslog`) nor the counting of connections (`accesslog::connections`). The result is the
//! same for every number of threads: blocks are cut by size, sorted by number, and the counts of slices are added.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

use accesslog::connections::{
    ConnectionLoads, Counter, Counts, LoadCounter, PriorFacts, Query, RuleCounter, TimeUnit,
};
use accesslog::{Record, Request, Sizing, Tally};
use wire::Time;

use crate::error::Error;
use crate::merged_logs::{LogCounters, MergedLogs};
use crate::slices::{Batch, Slice, Slices};
use crate::source::{Log, UnparsedBlock};

/// Result of a pass over logs.
#[derive(Debug)]
pub struct PassResult {
    /// The connection counts.
    pub counts: Counts,
    /// Bytes and requests of each connection, if requested.
    pub loads: Option<ConnectionLoads>,
    /// Counters of each log, in the order given.
    pub read: Vec<LogCounters>,
    /// Number of requests that came too late to be sorted.
    pub late: u64,
}

/// Options of a pass.
#[derive(Clone, Copy, Debug)]
pub struct PassOptions<'a> {
    /// Time-outs, limits and thresholds to count.
    pub query: &'a Query,
    /// Whether to count the bytes and requests of each connection, too.
    pub distribution: bool,
    /// Rules for sizes.
    pub sizing: Sizing,
    /// Number of blocks of a log that are buffered to sort its lines.
    pub window: usize,
    /// Number of threads.
    pub threads: usize,
    /// Limit of the memory of each counter, in bytes.
    pub memory: usize,
}

/// Reads logs, sorted by the approximate times of their beginnings, and counts.
///
/// # Errors
/// [`Error::TooMuchMemory`] and [`Error::MixedTimes`].
pub fn pass(logs: Vec<(Time, Log)>, wanted: PassOptions<'_>) -> Result<PassResult, Error> {
    let shared = Shared { state: Mutex::new(State::new(logs, wanted)), changed: Condvar::new(), wanted };
    thread::scope(|scope| {
        for _ in 0..wanted.threads.max(1) {
            scope.spawn(|| shared.work());
        }
    });
    shared.finish()
}

/// State that all threads share.
struct Shared<'a> {
    state: Mutex<State>,
    changed: Condvar,
    wanted: PassOptions<'a>,
}

struct State {
    /// The logs; `None` while a thread cuts the next block.
    logs: Vec<Option<Log>>,
    to_read: VecDeque<Block>,
    /// Maximum number of blocks that wait to be parsed, so that cutting never stops.
    max_to_read: usize,
    merged_logs: MergedLogs,
    slices: Slices,
    to_count: VecDeque<(u64, Slice)>,
    /// Number of slices cut.
    cut: u64,
    /// Number of busy threads: there may be more jobs when they finish.
    busy: usize,
    counting: Counting,
    loading: Loading,
    /// The error that ends the pass.
    failed: Option<Error>,
}

/// Counter of the bytes and requests of each connection: none, or one for all requests in order.
#[derive(Default)]
struct Loading {
    /// The counter; `None` while a thread counts.
    loads: Option<Box<LoadCounter>>,
    is_wanted: bool,
    waiting: VecDeque<Vec<Batch>>,
}

/// Counter of slices.
enum Counting {
    /// Slices are counted independently: the counts so far, the clients known from them, and the counter of a slice
    /// that the next one continues.
    BySlice(BTreeMap<u64, Counts>, PriorFacts, Option<Box<Counter>>),
    /// Slices are counted in order; `None` while a thread counts.
    Sequential(Option<Box<RuleCounter>>),
}

struct Block {
    log: usize,
    number: u64,
    unread: UnparsedBlock,
}

/// Maximum number of slices that wait to be counted in order.
const WAITING_SLICES: usize = 4;
/// Maximum number of blocks for each thread in flight or waiting for other logs.
const BLOCKS: usize = 4;

/// A thread's next job.
enum Job {
    Cut(usize, Log),
    Read(Block),
    Count(u64, Slice, PriorFacts, Option<Box<Counter>>),
    CountInTurn(Slice, Box<RuleCounter>),
    Load(Vec<Batch>, Box<LoadCounter>),
    Done,
}

impl State {
    fn new(logs: Vec<(Time, Log)>, wanted: PassOptions<'_>) -> Self {
        let PassOptions { query, distribution, sizing: _, window, threads, memory: _ } = wanted;
        let counting = match query.one_pass() {
            true => Counting::BySlice(BTreeMap::new(), PriorFacts::default(), None),
            false => Counting::Sequential(Some(Box::new(RuleCounter::new(query)))),
        };
        let (begin, logs): (Vec<Time>, Vec<Option<Log>>) =
            logs.into_iter().map(|(begin, log)| (begin, Some(log))).unzip();
        Self {
            merged_logs: MergedLogs::new(&begin, window, threads * BLOCKS),
            logs,
            to_read: VecDeque::new(),
            max_to_read: threads,
            slices: if query.one_pass() { Slices::new(query.longest()) } else { Slices::sequential() },
            to_count: VecDeque::new(),
            cut: 0,
            busy: 0,
            counting,
            loading: Loading::new(query, distribution),
            failed: None,
        }
    }

    /// The next job; `None` while there is none, though one may follow.
    fn job(&mut self) -> Option<Job> {
        if self.failed.is_some() {
            return Some(Job::Done);
        }
        // Counting comes first, because it frees memory.
        match &mut self.counting {
            Counting::BySlice(_, known, last) => {
                // A slice that continues another waits for its counter.
                let is_ready =
                    self.to_count.front().is_some_and(|(_, slice)| !slice.continues || last.is_some());
                if let Some((number, slice)) = self.to_count.pop_front_if(|_| is_ready) {
                    let counter = last.take_if(|_| slice.continues);
                    return Some(Job::Count(number, slice, known.clone(), counter));
                }
            }
            Counting::Sequential(counter) => {
                if let Some(counter) = counter.take_if(|_| !self.to_count.is_empty()) {
                    return self.to_count.pop_front().map(|(_, slice)| Job::CountInTurn(slice, counter));
                }
            }
        }
        if let Some(loads) = self.loading.loads.take_if(|_| !self.loading.waiting.is_empty()) {
            return self.loading.waiting.pop_front().map(|batches| Job::Load(batches, loads));
        }
        // Parsed requests are buffered in memory: no more of them than can be counted soon.
        if self.to_count.len().max(self.loading.waiting.len()) < WAITING_SLICES {
            if self.to_read.len() < self.max_to_read
                && let Some(log) = self.merged_logs.reserve_log()
            {
                let open_log = self.logs[log].take().expect("a reserved log is not taken");
                return Some(Job::Cut(log, open_log));
            }
            if let Some(block) = self.to_read.pop_front() {
                return Some(Job::Read(block));
            }
        }
        let is_idle = self.to_read.is_empty() && self.to_count.is_empty() && self.loading.waiting.is_empty();
        let done = self.busy == 0 && self.merged_logs.is_done() && is_idle;
        done.then_some(Job::Done)
    }

    /// Releases a log, with the block that was cut from it.
    fn cut(&mut self, log: usize, open_log: Log, next: Result<Option<UnparsedBlock>, String>) {
        self.logs[log] = Some(open_log);
        match next {
            Ok(unread) => {
                let number = self.merged_logs.cut(log, unread.is_some());
                self.to_read.extend(unread.map(|unread| Block { log, number, unread }));
            }
            Err(reason) => self.merged_logs.fail(log, reason),
        }
        self.slice();
    }

    /// Stores the counts of a slice, or its counter for the slice that continues it.
    fn counted(&mut self, number: u64, counter: Result<Box<Counter>, Error>, is_continued: bool) {
        let Counting::BySlice(counted, known, last) = &mut self.counting else { return };
        match counter {
            Ok(counter) if is_continued => *last = Some(counter),
            Ok(counter) => {
                let clients = counter.clients();
                let counts = counter.finish();
                known.record(&counts);
                known.expect_clients(clients);
                counted.insert(number, counts);
            }
            Err(error) => self.failed = Some(error),
        }
    }

    /// Cuts the requests that follow without a gap into slices.
    fn slice(&mut self) {
        while let Some(due) = self.merged_logs.next_requests() {
            if let Some(slice) = self.slices.next(due) {
                if self.loading.is_wanted {
                    self.loading.waiting.push_back(slice.requests.clone());
                }
                self.to_count.push_back((self.cut, slice));
                self.cut += 1;
            }
        }
    }
}

impl Loading {
    /// Rules without a fast algorithm count the connections' load as they go.
    fn new(query: &Query, distribution: bool) -> Self {
        let is_wanted = distribution && query.one_pass();
        let loads = is_wanted.then(|| Box::new(LoadCounter::new(query)));
        Self { loads, is_wanted, waiting: VecDeque::new() }
    }
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a thread that panicked has ended the program")
    }

    /// Runs jobs until none are left.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            let job = match state.job() {
                Some(Job::Done) => return,
                Some(job) => job,
                None => {
                    state = self.changed.wait(state).expect("no thread has panicked");
                    continue;
                }
            };
            state.busy += 1;
            drop(state);
            // There is capacity for another block.
            self.changed.notify_all();
            state = match job {
                Job::Cut(log, mut open_log) => {
                    let next = open_log.next_block();
                    let mut state = self.lock();
                    state.cut(log, open_log, next);
                    state
                }
                Job::Read(Block { log, number, unread }) => {
                    let (requests, read) = read(unread, self.wanted.sizing);
                    let mut state = self.lock();
                    state.merged_logs.put(log, number, requests, read);
                    state.slice();
                    state
                }
                Job::Count(number, slice, known, counter) => {
                    let counter = count(&slice, self.wanted, &known, counter);
                    let mut state = self.lock();
                    state.counted(number, counter, slice.is_continued);
                    state
                }
                Job::CountInTurn(slice, mut counter) => {
                    let counted = count_rules(&slice.requests, &mut counter, self.wanted.memory);
                    let mut state = self.lock();
                    state.counting = Counting::Sequential(Some(counter));
                    state.failed = state.failed.take().or(counted.err());
                    state
                }
                Job::Load(batches, mut loads) => {
                    let counted = count_loads(&batches, &mut loads, self.wanted.memory);
                    let mut state = self.lock();
                    state.loading.loads = Some(loads);
                    state.failed = state.failed.take().or(counted.err());
                    state
                }
                Job::Done => return,
            };
            state.busy -= 1;
            self.changed.notify_all();
        }
    }

    /// Counts the rest, and adds everything up.
    fn finish(self) -> Result<PassResult, Error> {
        let state = self.state.into_inner().expect("no thread has panicked");
        let State { merged_logs, slices, counting, loading, cut, failed, .. } = state;
        if let Some(failed) = failed {
            return Err(failed);
        }
        let wanted @ PassOptions { query, distribution, .. } = self.wanted;
        let rest = slices.finish();
        let (counts, loads) = match counting {
            Counting::BySlice(mut counted, known, mut last) => {
                let mut loads = loading.loads;
                if let (Some(loads), Some(slice)) = (&mut loads, &rest) {
                    count_loads(&slice.requests, loads, wanted.memory)?;
                }
                let loads = loads.map(|loads| loads.finish());
                if let Some(slice) = rest {
                    let counter = last.take_if(|_| slice.continues);
                    last = Some(count(&slice, wanted, &known, counter)?);
                }
                counted.extend(last.map(|counter| (cut, counter.finish())));
                let mut counts = Counts::new(query);
                counted.values().for_each(|next| counts.append(next));
                (counts, loads)
            }
            Counting::Sequential(counter) => {
                let mut counter = counter.expect("every thread gave it back");
                if let Some(slice) = &rest {
                    count_rules(&slice.requests, &mut counter, wanted.memory)?;
                }
                let (counts, loads) = counter.finish_with_loads();
                (counts, distribution.then_some(loads))
            }
        };
        let (read, late) = merged_logs.finish();
        let requests = read.iter().map(|read| read.tally.records).sum();
        if late > requests / 2 {
            return Err(Error::OutOfOrder { late, requests });
        }
        Ok(PassResult { counts, loads, read, late })
    }
}

fn read(unread: UnparsedBlock, sizing: Sizing) -> (Vec<Request>, LogCounters) {
    let mut requests = Vec::with_capacity(match &unread {
        UnparsedBlock::Lines(_, bytes) => bytes.len() / SHORT_LINE,
        UnparsedBlock::Rows(_, batch, _) => batch.num_rows(),
    });
    let mut without_size = 0;
    let sink = |record: Record| match sizing.request(&record) {
        Some(request) => requests.push(request),
        None => without_size += 1,
    };
    let (tally, failed) = match unread {
        UnparsedBlock::Lines(mut reader, bytes) => (reader.read(&bytes, sink), None),
        UnparsedBlock::Rows(columns, batch, definition) => match columns.read(&batch, &definition, sink) {
            Ok(tally) => (tally, None),
            Err(error) => (Tally::default(), Some(error.to_string())),
        },
    };
    if tally.backwards > 0 {
        requests.sort_by_key(|request| request.time);
    }
    (requests, LogCounters { tally, without_size, failed })
}

/// Typical minimum length of a log's lines, in bytes.
const SHORT_LINE: usize = 64;

/// Counts a slice, with the counter of the one that it continues, if it does.
fn count(
    slice: &Slice,
    wanted: PassOptions<'_>,
    known: &PriorFacts,
    counter: Option<Box<Counter>>,
) -> Result<Box<Counter>, Error> {
    let mut counter = match counter {
        Some(counter) => {
            let clock = counter.clock();
            let is_covered = slice.requests.iter().all(|requests| clock.covers(requests));
            if is_covered { counter } else { return Err(Error::MixedTimes) }
        }
        None => {
            let requests = slice.before().chain(slice.requests.iter().map(|batch| &batch[..]));
            let clock = TimeUnit::of(requests, wanted.query);
            let mut counter = Box::new(Counter::with_prior_facts(wanted.query, known, clock));
            slice.before().for_each(|requests| counter.warm_up(requests));
            counter
        }
    };
    for requests in &slice.requests {
        counter.count(requests);
        within(counter.bytes(), wanted.memory)?;
    }
    Ok(counter)
}

/// Counts by a rule that has no fast algorithm.
fn count_rules(batches: &[Batch], counter: &mut RuleCounter, memory: usize) -> Result<(), Error> {
    batches.iter().try_for_each(|requests| {
        counter.count(requests);
        within(counter.bytes(), memory)
    })
}

/// Counts the bytes and requests of each connection.
fn count_loads(batches: &[Batch], loads: &mut LoadCounter, memory: usize) -> Result<(), Error> {
    batches.iter().try_for_each(|requests| {
        loads.count(requests);
        within(loads.bytes(), memory)
    })
}

/// Checks a counter's memory in bytes, which a batch of requests increases by little.
const fn within(bytes: usize, memory: usize) -> Result<(), Error> {
    if bytes > memory { Err(Error::TooMuchMemory(memory)) } else { Ok(()) }
}
