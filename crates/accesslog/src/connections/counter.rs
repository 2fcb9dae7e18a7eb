//! The single pass: each request once, for all timeouts, limits and thresholds.
//!
//! Only for reuse of the least recently used connection, without durations; [`super::RuleCounter`] is for
//! the others.

use wire::{Bytes, Duration, Time};

use crate::Request;
use crate::sizing::LARGE;

use super::client_table::{ClientLookup, ClientTable};
use super::clock::TimeUnit;
use super::counts::{Counts, PriorFacts};
use super::gap::Gaps;
use super::query::{MAX_THRESHOLDS, Query};
use super::response_batch::{BATCH, CountContext, ResponseBatch};
use super::second_counter::{self, SecondCounts};

/// Counter of requests in order of time.
#[derive(Clone, Debug)]
pub struct Counter {
    gaps: Gaps,
    /// Ascending.
    thresholds: Vec<Bytes>,
    limits: Vec<usize>,
    /// Number of a client's uses that matter under each threshold.
    depth: usize,
    curve: usize,
    clients: ClientTable,
    open: OpenConnections,
    counts: Counts,
    /// Requests and bytes sent for them, by the number of thresholds that they reach.
    reached: Vec<(u64, Bytes)>,
    /// Batches of requests until old uses are dropped next, before their numbers wrap around.
    until_forgetting: u32,
}

/// Storage of the open connections.
#[derive(Clone, Debug)]
enum OpenConnections {
    /// Use by use, for each threshold; and for each limit, the last uses that matter to a batch of requests.
    Uses(Vec<ResponseBatch>, Vec<[u32; BATCH]>),
    /// By the second, for all thresholds.
    Seconds(SecondCounts),
}

/// With 32 requests each, well below 2^32, at which the numbers of uses wrap around.
const FORGET_EVERY: u32 = 1 << 25;

impl Counter {
    /// A counter before the first request, for requests at any times.
    pub fn new(query: &Query) -> Self {
        Self::with_prior_facts(query, &PriorFacts::default(), TimeUnit::Milliseconds)
    }

    /// A counter before the first request, for requests with this clock. Peaks below the known ones are not
    /// searched for: they are 0 in the counts.
    pub fn with_prior_facts(query: &Query, known: &PriorFacts, clock: TimeUnit) -> Self {
        let gaps = Gaps::new(query.timeouts());
        let limits = query.limits().to_vec();
        let depth = limits.last().copied().unwrap_or(1);
        let thresholds = query.thresholds().to_vec();
        let mut clients = ClientTable::new(thresholds.len() * depth);
        clients.reserve(known.clients());
        let mut below = known.below();
        let open = match clock {
            TimeUnit::Milliseconds => {
                let mut uses = vec![ResponseBatch::new(limits.len(), &gaps); thresholds.len()];
                uses.iter_mut().for_each(|uses| uses.search_peaks_above(&mut below));
                OpenConnections::Uses(uses, vec![[0; BATCH]; limits.len()])
            }
            TimeUnit::Seconds => {
                let mut seconds = SecondCounts::new(limits.len() * thresholds.len(), &gaps, query.curve());
                seconds.search_peaks_above(&mut below);
                OpenConnections::Seconds(seconds)
            }
        };
        Self {
            clients,
            open,
            counts: Counts::new(query),
            reached: vec![(0, Bytes::ZERO); thresholds.len() + 1],
            curve: query.curve(),
            gaps,
            thresholds,
            limits,
            depth,
            until_forgetting: FORGET_EVERY,
        }
    }

    /// Processes the requests before the stretch that counts: all within the longest timeout before it.
    pub fn warm_up(&mut self, requests: &[Request]) {
        self.process_all(requests, false);
        // The stretch may begin in the middle of an instant: earlier requests of the same time do not count.
        match &mut self.open {
            OpenConnections::Uses(uses, _) => {
                uses.iter_mut().for_each(|uses| uses.end_instant(&self.gaps, self.curve))
            }
            OpenConnections::Seconds(_) => {}
        }
    }

    /// Counts requests, which must be in order of time.
    pub fn count(&mut self, requests: &[Request]) {
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else { return };
        let before = self.counts.span.map_or(first.time, |(first, _)| first);
        self.counts.span = Some((before, last.time));
        self.process_all(requests, true);
    }

    /// Counts of all requests.
    pub fn finish(self) -> Counts {
        let mut counts = self.counts;
        for (index, (requests, bytes)) in self.reached.into_iter().enumerate() {
            counts.requests += requests;
            counts.bytes += bytes;
            for stream in &mut counts.streams[..index] {
                stream.requests += requests;
                stream.bytes += bytes;
            }
        }
        match self.open {
            OpenConnections::Uses(uses, _) => {
                for (uses, stream) in uses.into_iter().zip(&mut counts.streams) {
                    uses.finish(&mut stream.lines, &self.gaps, self.curve);
                }
            }
            OpenConnections::Seconds(seconds) => {
                seconds.finish(counts.streams.iter_mut().flat_map(|stream| &mut stream.lines));
            }
        }
        counts
    }

    /// Approximate number of clients stored at a time.
    pub fn clients(&self) -> usize {
        self.clients.active()
    }

    /// Resolution with which it counts.
    pub const fn clock(&self) -> TimeUnit {
        match self.open {
            OpenConnections::Uses(..) => TimeUnit::Milliseconds,
            OpenConnections::Seconds(_) => TimeUnit::Seconds,
        }
    }

    /// Memory that grows with clients and with requests within the longest timeout, in bytes.
    pub fn bytes(&self) -> usize {
        let uses = match &self.open {
            OpenConnections::Uses(uses, _) => uses.iter().map(ResponseBatch::bytes).sum(),
            OpenConnections::Seconds(_) => 0,
        };
        self.clients.bytes() + uses
    }

    /// Memory of the table of clients, in bytes.
    pub fn client_bytes(&self) -> usize {
        self.clients.bytes()
    }

    /// Processes requests, one batch at a time.
    fn process_all(&mut self, mut requests: &[Request], counts: bool) {
        while let Some(first) = requests.first() {
            let max = requests.len().min(BATCH);
            let count = match &mut self.open {
                OpenConnections::Uses(..) => max,
                OpenConnections::Seconds(seconds) => {
                    let until = seconds.begin(seconds.number(first.time), counts);
                    let is_later = |request: &Request| seconds.number(request.time) >= until;
                    match is_later(&requests[max - 1]) {
                        true => requests[..max].partition_point(|request| !is_later(request)).max(1),
                        false => max,
                    }
                }
            };
            let (flock, rest) = requests.split_at(count);
            self.process_batch(flock, counts);
            requests = rest;
        }
    }

    /// Processes a batch of requests. First it looks up all their clients, so that the CPU waits for memory once.
    /// Then it goes through the batch once per threshold.
    fn process_batch(&mut self, requests: &[Request], counts: bool) {
        let Some(first) = requests.first() else { return };
        self.free_slots(requests.len(), first.time);
        let mut slots = [0; BATCH];
        // For each threshold, the requests of the batch that reach it: no branch depends on a size, because
        // it could not be predicted.
        let mut reaching = [[0_u8; BATCH]; MAX_THRESHOLDS];
        let mut counted = [0_usize; MAX_THRESHOLDS];
        let mut lookups = [ClientLookup::default(); BATCH];
        for (lookup, request) in lookups.iter_mut().zip(requests) {
            *lookup = self.clients.probe(request.client);
        }
        for (number, request) in (0_u8..).zip(requests) {
            let mut reached = 0;
            let lists = reaching.iter_mut().zip(&mut counted).zip(&self.thresholds);
            for ((reaching, counted), threshold) in lists {
                let reaches = usize::from(request.bytes >= *threshold);
                reaching[*counted % BATCH] = number;
                *counted += reaches;
                reached += reaches;
            }
            let number = usize::from(number);
            if reached > 0 {
                slots[number] = self.slot(lookups[number]);
            }
            if counts {
                let (requests, bytes) = &mut self.reached[reached];
                *requests += 1;
                *bytes += if request.bytes == LARGE { Bytes::ZERO } else { request.bytes };
            }
        }
        let reaching = |threshold: usize| &reaching[threshold][..counted[threshold]];
        let (clients, depth, limits) = (&mut self.clients, self.depth, &self.limits);
        match &mut self.open {
            OpenConnections::Uses(uses, before) => {
                let now =
                    CountContext { time_ms: millis(first.time), gaps: &self.gaps, curve: self.curve, counts };
                for (threshold, uses) in uses.iter_mut().enumerate() {
                    let requests_of = reaching(threshold).iter().map(|request| usize::from(*request));
                    uses.begin(now);
                    let number =
                        uses.extend(requests_of.clone().map(|request| millis(requests[request].time)));
                    for (index, request) in requests_of.enumerate() {
                        let numbers = &mut clients.at(slots[request])[threshold * depth..][..depth];
                        // The latest is first: the K-th last is the connection that was used longest ago.
                        for (before, limit) in before.iter_mut().zip(limits) {
                            before[index] = numbers[limit - 1];
                        }
                        // Less than a batch.
                        #[expect(clippy::cast_possible_truncation)]
                        let number = number.wrapping_add(index as u32);
                        put_first(numbers, number);
                    }
                    uses.end(reaching(threshold).len(), before, now);
                }
            }
            OpenConnections::Seconds(seconds) => {
                let mut times = [0; BATCH];
                for (time, request) in times.iter_mut().zip(requests) {
                    *time = seconds.number(request.time);
                }
                for threshold in 0..self.thresholds.len() {
                    let (lines, now) = seconds.lines(threshold, limits.len());
                    for request in reaching(threshold).iter().map(|request| usize::from(*request)) {
                        let numbers = &mut clients.at(slots[request])[threshold * depth..][..depth];
                        for (line, limit) in lines.iter_mut().zip(limits) {
                            line.request(times[request], numbers[limit - 1], now);
                        }
                        put_first(numbers, times[request]);
                    }
                }
            }
        }
    }

    /// Slot of a client.
    #[inline]
    fn slot(&mut self, lookup: ClientLookup) -> usize {
        let (depth, open) = (self.depth, &self.open);
        self.clients.slot(lookup, |numbers| match open {
            OpenConnections::Uses(uses, _) => {
                for (numbers, uses) in numbers.chunks_exact_mut(depth).zip(uses) {
                    numbers.fill(uses.none());
                }
            }
            OpenConnections::Seconds(_) => numbers.fill(second_counter::NONE),
        })
    }

    /// Frees space for this number of new clients, and drops old uses when that is due.
    #[inline]
    fn free_slots(&mut self, requests: usize, time: Time) {
        self.until_forgetting = self.until_forgetting.saturating_sub(1);
        if self.clients.fits(requests) && self.until_forgetting > 0 {
            return;
        }
        self.until_forgetting = FORGET_EVERY;
        let now = CountContext { time_ms: millis(time), gaps: &self.gaps, curve: self.curve, counts: false };
        let (depth, open) = (self.depth, &self.open);
        self.clients.rebuild(|numbers| match open {
            OpenConnections::Uses(uses, _) => forget(numbers, depth, uses, now),
            OpenConnections::Seconds(seconds) => {
                numbers.iter().any(|number| seconds.is_recent(*number, seconds.number(time)))
            }
        });
    }
}

/// Inserts a number before the others and drops the last.
#[inline]
fn put_first(numbers: &mut [u32], number: u32) {
    match numbers {
        // The paper's number of connections, without a loop.
        [one] => *one = number,
        [one, two, three] => (*one, *two, *three) = (number, *one, *two),
        many => {
            let mut next = number;
            many.iter_mut().for_each(|index| next = std::mem::replace(index, next));
        }
    }
}

#[inline]
fn millis(time: Time) -> u64 {
    time.since(Time::ZERO).as_nanos() / MILLI
}

const MILLI: u64 = Duration::from_millis(1).as_nanos();

/// Clears the numbers of uses that no longer matter; returns whether any are left.
fn forget(numbers: &mut [u32], depth: usize, uses: &[ResponseBatch], now: CountContext<'_>) -> bool {
    let mut matters = false;
    for (numbers, uses) in numbers.chunks_exact_mut(depth).zip(uses) {
        for number in numbers {
            let retained = uses.forget(*number, now);
            matters |= retained.is_some();
            *number = retained.unwrap_or(uses.none());
        }
    }
    matters
}
