//! A capture read on several threads: packets in batches, divided among shards by the hosts that they pass between.
//!
//! The calling thread reads batches, decides which shard handles each packet, and takes the reports of finished
//! connections. Workers own the shards. The result does not depend on the number of workers. A large capture always has
//! [`SHARDS`] shards, and each sees its packets in the order of the capture. Reports are taken in the order of the
//! packets that finished them.
//!
//! | global fact | treatment |
//! | --- | --- |
//! | times of packets, links, counts | the calling thread |
//! | the clock's tick | each shard, from the times of all packets |
//! | hosts that are up; SYN/ACKs, FINs, resets, ICMP | each shard ([`Diagnosis::is_for_all`]) |
//! | what connections of two hosts share | one shard handles both directions of both hosts |
//! | limits by the number of connections | divided for each batch, by the numbers after an earlier batch |

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle, scope};

use diagnose::{Diagnosis, FlowReport, KeyLog, Options, shard_of};
use packets::batch::FrameBatch;
use packets::clock::Verdict;
use packets::peek::PeekedSegment;
use packets::{Frame, Reader, Unreadable, tunnel};
use report::Capture;
use report::reading::{CaptureReader, DoubtfulPacket};
use report::shard::Shard;
use wire::Time;
use wire::packet::Packet;

/// Number of parts of a large capture: the maximum number of workers.
const SHARDS: usize = 4;
/// Maximum number of batches of a small capture (4 MB): one shard handles it.
const SMALL: usize = 16;
/// Number of batches between the division of packets and the collection of reports: 1 MB, which a CPU's cache holds.
const DEPTH: usize = 4;

/// Reads a capture to its end, or up to damage. If it has no more than [`SMALL`] batches, one shard handles it.
///
/// # Errors
/// Damage before the first packet.
pub(crate) fn read<R: Read>(
    mut reader: Reader<R>,
    mut reading: CaptureReader<'_>,
    threads: usize,
) -> Result<Capture, Unreadable> {
    let (mut batches, mut end) = (VecDeque::new(), Ok(true));
    while batches.len() < SMALL && matches!(end, Ok(true)) {
        let mut batch = FrameBatch::default();
        end = reader.read_batch(&mut batch);
        batches.push_back(batch);
    }
    if end.is_err() && batches.iter().all(FrameBatch::is_empty) {
        return end.map(|_| reading.finish());
    }
    let mut capture = if matches!(end, Ok(true)) {
        scope(|scope| {
            let mut division = Division::new(reading);
            loop {
                let batch = match batches.pop_front() {
                    Some(batch) => batch,
                    None if matches!(end, Ok(true)) => {
                        let mut batch = division.spare.pop().unwrap_or_default();
                        end = reader.read_batch(&mut batch);
                        batch
                    }
                    None => break,
                };
                division.add(scope, threads, batch);
            }
            division.finish()
        })
    } else {
        batches.iter().for_each(|batch| handle_all(&mut reading, batch));
        reading.finish()
    };
    capture.damage = end.err().map(|error| error.to_string());
    Ok(capture)
}

/// Handles the packets of a batch, each after the key logs before it.
fn handle_all(reading: &mut CaptureReader<'_>, batch: &FrameBatch) {
    let mut secrets = batch.secrets().peekable();
    for frame in batch.iter() {
        while let Some((_, text)) = secrets.next_if(|(before, _)| *before <= frame.number) {
            reading.read_secrets(text);
        }
        reading.handle(&frame);
    }
    secrets.for_each(|(_, text)| reading.read_secrets(text));
}

/// A batch, with the packets in the order in which they are handled.
#[derive(Default)]
struct Work {
    batch: FrameBatch,
    /// A packet of an earlier batch whose time was in doubt.
    carried: Option<DoubtfulPacket>,
    packets: Vec<Assignment>,
    /// Number of connections of each shard after an earlier batch.
    open: [usize; SHARDS],
}

/// A packet, and the shard that handles it.
#[derive(Clone, Copy)]
struct Assignment {
    /// Its index in the batch, or [`CARRIED`].
    index: usize,
    at: Time,
    shard: usize,
    is_for_all: bool,
}

const CARRIED: usize = usize::MAX;

impl Work {
    fn frame(&self, index: usize, at: Time) -> Option<Frame<'_>> {
        match index {
            CARRIED => self.carried.as_ref().map(|carried| carried.frame(at)),
            index => self.batch.get(index).map(|frame| Frame { at, ..frame }),
        }
    }

    /// Handles the packets on behalf of some shards.
    fn pass(&self, shards: &mut [(usize, Shard)]) -> Outcome {
        let mut outcome = Outcome::default();
        for (number, shard) in &mut *shards {
            shard.diagnosis.share(&self.open, *number);
        }
        let mut secrets = self.batch.secrets().peekable();
        for Assignment { index, at, shard: owner, is_for_all } in self.packets.iter().copied() {
            if secrets.peek().is_some() {
                let number = self.frame(index, at).map_or(0, |frame| frame.number);
                while let Some((_, text)) = secrets.next_if(|(before, _)| *before <= number) {
                    shards.iter_mut().for_each(|(_, shard)| shard.read_secrets(text));
                }
            }
            // Every shard has seen the same times.
            let need_times = shards.first().is_some_and(|(_, shard)| shard.diagnosis.needs_times());
            for (number, shard) in &mut *shards {
                let is_own = owner == *number;
                if is_own || is_for_all {
                    let Some(frame) = self.frame(index, at) else { continue };
                    match is_own {
                        true => shard.handle(&frame),
                        false => shard.notice(&frame),
                    }
                    while let Some(flow) = shard.poll() {
                        outcome.finished.push((frame.number, flow));
                    }
                } else if need_times {
                    shard.diagnosis.pass_time(at);
                }
            }
        }
        for (_, text) in secrets {
            shards.iter_mut().for_each(|(_, shard)| shard.read_secrets(text));
        }
        outcome
            .open
            .extend(shards.iter().map(|(number, shard)| (*number, shard.diagnosis.open_connections())));
        outcome
    }
}

/// Result of a batch for some shards.
#[derive(Default)]
struct Outcome {
    /// Finished connections, with the packets that finished them.
    finished: Vec<(u64, FlowReport)>,
    /// Number of connections of each shard.
    open: Vec<(usize, usize)>,
}

/// The calling thread's part of the work.
struct Division<'a, 'scope> {
    reading: CaptureReader<'a>,
    /// A packet whose time is in doubt, from before the next batch.
    carried: Option<DoubtfulPacket>,
    /// Number of connections of each shard.
    open: [usize; SHARDS],
    workers: Vec<Worker<'scope>>,
    /// Batches whose results were not collected yet, oldest first, as far as a thread may be using them.
    pending: VecDeque<Option<Arc<Work>>>,
    spare: Vec<FrameBatch>,
}

impl<'a, 'scope> Division<'a, 'scope> {
    fn new(reading: CaptureReader<'a>) -> Self {
        Self {
            reading,
            carried: None,
            open: [0; SHARDS],
            workers: Vec::new(),
            pending: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Divides the packets of a batch among the workers, which the first one starts.
    fn add(&mut self, scope: &'scope Scope<'scope, '_>, threads: usize, batch: FrameBatch) {
        let carried = self.carried.take();
        let mut held = carried.is_some().then_some(CARRIED);
        let packets = Vec::with_capacity(batch.len() + 1);
        let mut work = Work { batch, carried, packets, open: self.open };
        for index in 0..work.batch.len() {
            let Some(frame) = work.batch.get(index) else { continue };
            match self.reading.clock.read(frame.at) {
                Verdict::Good { doubtful } => {
                    if let Some((index, at)) = held.take().zip(doubtful) {
                        work.packets.extend(self.assign(&work, index, at));
                    }
                    work.packets.extend(self.assign(&work, index, frame.at));
                }
                Verdict::Doubtful { before } => {
                    let before = held.replace(index).zip(before);
                    work.packets.extend(before.and_then(|(index, at)| self.assign(&work, index, at)));
                }
            }
        }
        self.carried = match held {
            Some(CARRIED) => work.carried.take(),
            Some(index) => work.batch.get(index).map(|frame| DoubtfulPacket::new(&frame)),
            None => None,
        };
        if self.workers.is_empty() {
            let options = self.reading.options(self.reading.capture.started);
            self.workers = Worker::start(scope, threads, options, self.reading.keys());
        }
        if self.pending.len() == DEPTH {
            self.collect();
        }
        work.open = self.open;
        self.give(work);
    }

    fn give(&mut self, work: Work) {
        let work = Arc::new(work);
        self.workers.iter_mut().for_each(|worker| worker.give(&work));
        let pending = match Arc::try_unwrap(work) {
            Ok(work) => {
                self.retain(work.batch);
                None
            }
            Err(work) => Some(work),
        };
        self.pending.push_back(pending);
    }

    /// Retains the buffer of a batch for another one.
    fn retain(&mut self, batch: FrameBatch) {
        if self.spare.len() <= DEPTH {
            self.spare.push(batch);
        }
    }

    /// Counts a packet, and decides which shard handles it.
    fn assign(&mut self, work: &Work, index: usize, at: Time) -> Option<Assignment> {
        let frame = work.frame(index, at)?;
        self.reading.counts(&frame);
        let (shard, is_for_all) = frame.ip().and_then(shard_and_scope).unwrap_or_default();
        Some(Assignment { index, at, shard, is_for_all })
    }

    /// Takes the results of the oldest pending batch.
    fn collect(&mut self) {
        let Some(work) = self.pending.pop_front() else { return };
        let mut finished = Vec::new();
        for outcome in self.workers.iter_mut().filter_map(Worker::take) {
            finished.extend(outcome.finished);
            outcome.open.into_iter().for_each(|(shard, open)| self.open[shard] = open);
        }
        // Stable: connections that one packet finished have one shard, which lists them in order.
        finished.sort_by_key(|(frame, _)| *frame);
        finished.into_iter().for_each(|(_, flow)| self.reading.take(flow));
        if let Some(work) = work.and_then(Arc::into_inner) {
            self.retain(work.batch);
        }
    }

    fn finish(mut self) -> Capture {
        let last = self.reading.clock.end();
        if let Some((at, carried)) = last.zip(self.carried.take()) {
            let mut work = Work { carried: Some(carried), open: self.open, ..Work::default() };
            work.packets = self.assign(&work, CARRIED, at).into_iter().collect();
            self.give(work);
        }
        while !self.pending.is_empty() {
            self.collect();
        }
        let (mut shards, mut unfinished): (Vec<_>, Vec<_>) =
            self.workers.into_iter().map(Worker::end).unzip();
        let mut unfinished: Vec<FlowReport> = unfinished.drain(..).flatten().collect();
        unfinished.sort_by_key(|flow| (flow.started, flow.first_packet));
        unfinished.into_iter().for_each(|flow| self.reading.take(flow));
        let mut shards: Vec<_> = shards.drain(..).flatten().collect();
        shards.sort_by_key(|(number, _)| *number);
        let shards: Vec<Shard> = shards.into_iter().map(|(_, shard)| shard).collect();
        self.reading.finish_with(&shards)
    }
}

/// Returns the shard that handles an IP packet, and whether every shard needs it; `None` if it cannot be read. Its shard
/// parses it, too: a plain TCP packet is not parsed here.
fn shard_and_scope(ip: &[u8]) -> Option<(usize, bool)> {
    if let Some(PeekedSegment { source, destination, flags }) = PeekedSegment::read(ip) {
        return Some((shard_of(source, destination, SHARDS), Diagnosis::is_segment_for_all(flags)));
    }
    let (packet, _) = tunnel::innermost(Packet::read(ip).ok()?);
    Some((shard_of(packet.source, packet.destination, SHARDS), Diagnosis::is_for_all(&packet)))
}

/// Shards, and the thread that owns them.
enum Worker<'scope> {
    Here {
        shards: Vec<(usize, Shard)>,
        outcomes: VecDeque<Outcome>,
    },
    Thread {
        work: Sender<Arc<Work>>,
        outcomes: Receiver<Outcome>,
        handle: ScopedJoinHandle<'scope, EndedShards>,
    },
}

/// Shards at the end, and the reports of connections that were still open.
type EndedShards = (Vec<(usize, Shard)>, Vec<FlowReport>);

impl<'scope> Worker<'scope> {
    fn start(
        scope: &'scope Scope<'scope, '_>,
        threads: usize,
        options: Options,
        keys: Option<&Arc<KeyLog>>,
    ) -> Vec<Self> {
        let shard = || {
            let mut shard = Shard::new(options);
            shard.diagnosis.keys = keys.cloned();
            shard
        };
        let shards = |worker: usize, workers: usize| {
            let numbers = (0..SHARDS).filter(move |number| number % workers == worker);
            numbers.map(|number| (number, shard())).collect::<Vec<_>>()
        };
        if threads < 2 {
            return vec![Self::Here { shards: shards(0, 1), outcomes: VecDeque::new() }];
        }
        let workers = threads.min(SHARDS);
        let start = |worker| {
            let (work, received) = channel::<Arc<Work>>();
            let (send, outcomes) = channel();
            let mut shards = shards(worker, workers);
            let handle = scope.spawn(move || {
                for work in received {
                    let outcome = work.pass(&mut shards);
                    // The caller reuses its buffers.
                    drop(work);
                    if send.send(outcome).is_err() {
                        break;
                    }
                }
                end(shards)
            });
            Self::Thread { work, outcomes, handle }
        };
        (0..workers).map(start).collect()
    }

    fn give(&mut self, new: &Arc<Work>) {
        match self {
            Self::Here { shards, outcomes } => outcomes.push_back(new.pass(shards)),
            // A worker that has panicked is noticed when it is joined.
            Self::Thread { work, .. } => drop(work.send(Arc::clone(new))),
        }
    }

    fn take(&mut self) -> Option<Outcome> {
        match self {
            Self::Here { outcomes, .. } => outcomes.pop_front(),
            Self::Thread { outcomes, .. } => outcomes.recv().ok(),
        }
    }

    fn end(self) -> EndedShards {
        match self {
            Self::Here { shards, .. } => end(shards),
            Self::Thread { work, outcomes: _, handle } => {
                drop(work);
                handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        }
    }
}

fn end(mut shards: Vec<(usize, Shard)>) -> EndedShards {
    let mut unfinished = Vec::new();
    for (_, shard) in &mut shards {
        shard.diagnosis.end();
        unfinished.extend(std::iter::from_fn(|| shard.poll()));
    }
    (shards, unfinished)
}
