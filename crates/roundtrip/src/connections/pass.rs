//! One pass over logs: blocks are read by one thread, made into requests and counted by the others.
//!
//! Not how lines are read (`scenario::access_log`) nor how connections are counted (`simulate::connections`). The
//! outcome is the same for every number of threads: blocks are cut by their size, put in order by their numbers, and
//! slices add up to the whole.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

use arrow_array::RecordBatch;
use columns::{Batches, Columns};
use scenario::access_log::{Reader, Record, Request, Sizing, Tally, Who};
use simulate::connections::{ByRule, Counter, Counts, Known, Question};

use super::blocks::Blocks;
use super::order::Order;
use super::slices::{Slice, Slices};

/// One log and how it is read.
pub enum Log {
    /// Lines, and what reads them.
    Lines(Blocks, Reader),
    /// A table, which is opened when it is its turn, and what makes a client.
    Table(OpenTable, Who),
}

/// How a table is come by.
pub type OpenTable = Box<dyn FnOnce() -> Result<Batches, String>>;

/// What a pass over logs gives.
#[derive(Debug)]
pub struct Passed {
    /// The answer.
    pub counts: Counts,
    /// What was read of each log, in the order given.
    pub read: Vec<Read>,
    /// Requests that came too late to be put in order.
    pub late: u64,
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

/// Reads logs, which follow one another in time, and counts.
pub fn pass(logs: Vec<Log>, sizing: Sizing, question: &Question, threads: usize) -> Passed {
    let shared = Shared {
        state: Mutex::new(State::new(logs.len(), question)),
        changed: Condvar::new(),
        sizing,
        question,
        waiting: threads * 2,
    };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| shared.work());
        }
        shared.feed(logs);
    });
    shared.finish()
}

/// What all threads see.
struct Shared<'a> {
    state: Mutex<State>,
    changed: Condvar,
    sizing: Sizing,
    question: &'a Question,
    /// Blocks that may wait to be read: more would only take memory.
    waiting: usize,
}

struct State {
    to_read: VecDeque<Block>,
    /// Blocks that were read, by number, until all before them were.
    read: BTreeMap<u64, Requests>,
    next: u64,
    fed: bool,
    order: Order,
    slices: Slices,
    to_count: VecDeque<(u64, Slice)>,
    /// Slices that were cut.
    cut: u64,
    /// How many threads are at work: there may be more to do when they are done.
    busy: usize,
    counting: Counting,
    logs: Vec<Read>,
}

/// What counts slices.
enum Counting {
    /// Each apart from the others: the answers so far, and what is known from them.
    Apart(BTreeMap<u64, Counts>, Known),
    /// One after the other; taken out by the thread that counts.
    InTurn(Option<Box<ByRule>>),
}

struct Block {
    number: u64,
    log: usize,
    unread: Unread,
}

/// What is to be made into requests.
enum Unread {
    Lines(Reader, Vec<u8>),
    Rows(Columns, RecordBatch, Who),
}

struct Requests {
    log: usize,
    requests: Vec<Request>,
    read: Read,
}

/// Slices that may wait to be counted in turn.
const WAITING_SLICES: usize = 4;

/// What a thread does next.
enum Job {
    Read(Block),
    Count(u64, Slice, Known),
    CountInTurn(Slice, Box<ByRule>),
    Done,
}

impl State {
    fn new(logs: usize, question: &Question) -> Self {
        let counting = match question.one_pass() {
            true => Counting::Apart(BTreeMap::new(), Known::default()),
            false => Counting::InTurn(Some(Box::new(ByRule::new(question)))),
        };
        Self {
            to_read: VecDeque::new(),
            read: BTreeMap::new(),
            next: 0,
            fed: false,
            order: Order::default(),
            slices: Slices::new(question.longest()),
            to_count: VecDeque::new(),
            cut: 0,
            busy: 0,
            counting,
            logs: vec![Read::default(); logs],
        }
    }

    /// The next job; `None` while there is none, though there may be.
    fn job(&mut self) -> Option<Job> {
        // What is counted is out of the way.
        match &mut self.counting {
            Counting::Apart(_, known) => {
                if let Some((number, slice)) = self.to_count.pop_front() {
                    return Some(Job::Count(number, slice, known.clone()));
                }
            }
            Counting::InTurn(counter) => {
                if let Some(counter) = counter.take_if(|_| !self.to_count.is_empty()) {
                    return self.to_count.pop_front().map(|(_, slice)| Job::CountInTurn(slice, counter));
                }
            }
        }
        // What was read waits in memory: no more of it than can be counted soon.
        if self.to_count.len() < WAITING_SLICES
            && let Some(block) = self.to_read.pop_front()
        {
            return Some(Job::Read(block));
        }
        (self.fed && self.busy == 0 && self.to_count.is_empty()).then_some(Job::Done)
    }

    /// Takes a block that was read; whatever follows without a gap is put in order and cut into slices.
    fn put(&mut self, number: u64, requests: Requests) {
        self.read.insert(number, requests);
        while let Some(Requests { log, requests, read }) = self.read.remove(&self.next) {
            self.next += 1;
            let Read { tally, without_size, failed } = read;
            self.logs[log].tally.append(tally);
            self.logs[log].without_size += without_size;
            self.logs[log].failed = self.logs[log].failed.take().or(failed);
            let due = self.order.next(requests);
            let slice = self.slices.next(due);
            self.enqueue(slice);
        }
    }

    fn enqueue(&mut self, slice: Option<Slice>) {
        if let Some(slice) = slice {
            self.to_count.push_back((self.cut, slice));
            self.cut += 1;
        }
    }
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a thread that panicked has ended the program")
    }

    /// Cuts logs into blocks, as fast as they are read.
    fn feed(&self, logs: Vec<Log>) {
        let mut number = 0;
        for (log, source) in logs.into_iter().enumerate() {
            let fed = match source {
                Log::Lines(blocks, reader) => self.feed_lines(log, &mut number, blocks, reader),
                Log::Table(open, who) => self.feed_rows(log, &mut number, open, &who),
            };
            if let Err(error) = fed {
                self.lock().logs[log].failed = Some(error);
            }
        }
        self.lock().fed = true;
        self.changed.notify_all();
    }

    fn feed_lines(
        &self,
        log: usize,
        number: &mut u64,
        mut blocks: Blocks,
        mut master: Reader,
    ) -> Result<(), String> {
        while let Some(bytes) = blocks.next().map_err(|error| error.to_string())? {
            let reader = master.clone();
            master.skim(&bytes);
            self.feed_block(log, number, Unread::Lines(reader, bytes));
        }
        Ok(())
    }

    fn feed_rows(&self, log: usize, number: &mut u64, open: OpenTable, who: &Who) -> Result<(), String> {
        let Batches { columns, batches } = open()?;
        for batch in batches {
            let batch = batch.map_err(|error| error.to_string())?;
            self.feed_block(log, number, Unread::Rows(columns, batch, who.clone()));
        }
        Ok(())
    }

    /// Puts a block where a thread finds it, as soon as there is room.
    fn feed_block(&self, log: usize, number: &mut u64, unread: Unread) {
        let full = |state: &mut State| state.to_read.len() >= self.waiting;
        let mut state = self.changed.wait_while(self.lock(), full).expect("no thread has panicked");
        state.to_read.push_back(Block { number: *number, log, unread });
        *number += 1;
        self.changed.notify_all();
    }

    /// Does whatever there is to do, until there is no more.
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
            // There is room for another block.
            self.changed.notify_all();
            state = match job {
                Job::Read(block) => {
                    let number = block.number;
                    let requests = read(block, self.sizing);
                    let mut state = self.lock();
                    state.put(number, requests);
                    state
                }
                Job::Count(number, slice, known) => {
                    let counts = count(&slice, self.question, &known);
                    let mut state = self.lock();
                    if let Counting::Apart(counted, known) = &mut state.counting {
                        known.learn(&counts);
                        counted.insert(number, counts);
                    }
                    state
                }
                Job::CountInTurn(slice, mut counter) => {
                    slice.requests.iter().for_each(|requests| counter.count(requests));
                    let mut state = self.lock();
                    state.counting = Counting::InTurn(Some(counter));
                    state
                }
                Job::Done => return,
            };
            state.busy -= 1;
            self.changed.notify_all();
        }
    }

    /// Counts what is left, and adds everything up.
    fn finish(self) -> Passed {
        let state = self.state.into_inner().expect("no thread has panicked");
        let State { order, mut slices, counting, cut, logs, .. } = state;
        let (held, late) = order.finish();
        let rest = [slices.next(held), slices.finish()];
        let rest = rest.into_iter().flatten();
        let counts = match counting {
            Counting::Apart(mut counted, known) => {
                counted.extend((cut..).zip(rest.map(|slice| count(&slice, self.question, &known))));
                let mut counts = Counts::new(self.question);
                counted.values().for_each(|next| counts.append(next));
                counts
            }
            Counting::InTurn(counter) => {
                let mut counter = counter.expect("every thread gave it back");
                rest.flat_map(|slice| slice.requests).for_each(|requests| counter.count(&requests));
                counter.finish()
            }
        };
        Passed { counts, read: logs, late }
    }
}

fn read(block: Block, sizing: Sizing) -> Requests {
    let Block { number: _, log, unread } = block;
    let mut requests = Vec::with_capacity(match &unread {
        Unread::Lines(_, bytes) => bytes.len() / SHORT_LINE,
        Unread::Rows(_, batch, _) => batch.num_rows(),
    });
    let mut without_size = 0;
    let sink = |record: Record| match sizing.request(&record) {
        Some(request) => requests.push(request),
        None => without_size += 1,
    };
    let (tally, failed) = match unread {
        Unread::Lines(mut reader, bytes) => (reader.read(&bytes, sink), None),
        Unread::Rows(columns, batch, who) => match columns.read(&batch, &who, sink) {
            Ok(tally) => (tally, None),
            Err(error) => (Tally::default(), Some(error.to_string())),
        },
    };
    if tally.backwards > 0 {
        requests.sort_by_key(|request| request.time);
    }
    Requests { log, requests, read: Read { tally, without_size, failed } }
}

/// No log has many lines that are shorter, in bytes.
const SHORT_LINE: usize = 64;

fn count(slice: &Slice, question: &Question, known: &Known) -> Counts {
    let mut counter = Counter::knowing(question, known);
    slice.warm_up.iter().for_each(|requests| counter.warm_up(requests));
    slice.requests.iter().for_each(|requests| counter.count(requests));
    counter.finish()
}
