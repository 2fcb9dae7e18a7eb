//! Distribution of requests and bytes over connections, for all timeouts, limits and thresholds.
//!
//! For reuse of the least recently used connection. A client with up to K connections uses them in turn.
//! They are K chains of requests, which break where a gap is longer than the timeout. Chains are nested: a
//! chain that breaks under a timeout breaks under every shorter one. Only a stack of beginnings is stored
//! for a chain, whatever the number of timeouts.
//!
//! It cannot be split in time as [`Counter`](super::Counter) can: a connection may be kept alive without limit.

use wire::{Bytes, Time};

use crate::sizing::LARGE;
use crate::{Client, Request};

use super::amount_histogram::{AmountHistogram, Load, bucket};
use super::client_table::ClientTable;
use super::gap::Gaps;
use super::query::Query;

/// Loads of connections, by threshold, limit and timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLoads {
    limits: usize,
    timeouts: usize,
    loads: Vec<Load>,
}

impl ConnectionLoads {
    /// Loads in order of threshold, then limit, then timeout.
    pub(super) fn new(query: &Query, loads: Vec<Load>) -> Self {
        Self { limits: query.limits().len(), timeouts: query.timeouts().len(), loads }
    }

    /// Load under these, by their indices in the query.
    pub fn of(&self, threshold: usize, limit: usize, timeout: usize) -> Option<&Load> {
        self.loads.get((threshold * self.limits + limit) * self.timeouts + timeout)
    }
}

/// Counter of connections' loads; requests come in order of time.
#[derive(Clone, Debug)]
pub struct LoadCounter {
    query: Query,
    gaps: Gaps,
    clients: ClientTable,
    /// Chains of the clients in the table; some entries are free.
    chains_of_clients: Vec<Box<[Chain]>>,
    free: Vec<u32>,
    /// By threshold and limit: its first chain, and the number of its chains.
    lines: Vec<(Bytes, usize, usize)>,
    ended: Vec<ConnectionEnds>,
}

/// The successive requests of one connection.
#[derive(Clone, Debug, Default)]
struct Chain {
    /// Time of its last use, in milliseconds; `None` if it was never used.
    used: Option<u64>,
    /// Number of uses of this line's chains by their client; stored in the first chain.
    turn: usize,
    /// Total carried, under every timeout.
    sum: LoadSum,
    starts: Vec<ConnectionStart>,
}

/// Memory of a chain in bytes, with the first allocation of its beginnings.
const CHAIN_BYTES: usize = size_of::<Chain>() + 4 * size_of::<ConnectionStart>();

#[derive(Clone, Copy, Debug, Default)]
struct LoadSum {
    requests: u64,
    bytes: u64,
}

/// A connection's beginning, under all timeouts below an index that have no later one.
#[derive(Clone, Copy, Debug)]
struct ConnectionStart {
    below: u8,
    before: LoadSum,
}

/// Connections that ended, as changes: more from one timeout on, fewer from another on.
#[derive(Clone, Debug)]
struct ConnectionEnds {
    timeouts: usize,
    requests: Vec<i64>,
    bytes: Vec<i64>,
    /// Maximum that any connection carried, known from a timeout on: a longer timeout's connections carry no
    /// less.
    max: Vec<LoadSum>,
}

impl LoadCounter {
    /// A counter before the first request.
    pub fn new(query: &Query) -> Self {
        let gaps = Gaps::new(query.timeouts());
        let mut lines = Vec::new();
        let mut chains = 0;
        for threshold in query.thresholds() {
            for limit in query.limits() {
                lines.push((*threshold, chains, *limit));
                chains += limit;
            }
        }
        Self {
            ended: vec![ConnectionEnds::new(query.timeouts().len()); lines.len()],
            query: query.clone(),
            gaps,
            clients: ClientTable::new(1),
            chains_of_clients: Vec::new(),
            free: Vec::new(),
            lines,
        }
    }

    /// Counts requests, which must be in order of time.
    pub fn count(&mut self, requests: &[Request]) {
        for request in requests {
            self.request(request);
        }
    }

    /// Approximate memory of clients' connections, in bytes.
    pub fn bytes(&self) -> usize {
        let chains = self.lines.last().map_or(0, |(_, first, limit)| first + limit);
        self.clients.bytes() + self.chains_of_clients.len() * chains * CHAIN_BYTES
    }

    /// Loads of all connections.
    pub fn finish(mut self) -> ConnectionLoads {
        // Chains that are free have ended already.
        for chains in &mut self.chains_of_clients {
            end(chains, &self.lines, &mut self.ended);
        }
        let loads = self.ended.into_iter().flat_map(ConnectionEnds::loads).collect();
        ConnectionLoads::new(&self.query, loads)
    }

    fn request(&mut self, request: &Request) {
        let Request { time, client, bytes, taken: _ } = *request;
        let now = time.since(Time::ZERO).as_nanos() / 1_000_000;
        let client_index = self.client_index(client, now);
        let sent = if bytes == LARGE { 0 } else { bytes.get() };
        let chains = &mut self.chains_of_clients[client_index];
        for ((threshold, first, limit), ended) in self.lines.iter().zip(&mut self.ended) {
            if bytes < *threshold {
                break;
            }
            let turn = chains[*first].turn;
            chains[*first].turn = if turn + 1 == *limit { 0 } else { turn + 1 };
            let chain = &mut chains[first + turn];
            let index =
                chain.used.map_or(ended.timeouts, |used| usize::from(self.gaps.shorter_timeouts(now - used)));
            chain.end(index, ended);
            chain.used = Some(now);
            chain.sum.requests += 1;
            chain.sum.bytes += sent;
        }
    }

    /// Index of a client's chains. If no entry is free, it first ends the chains of clients that have been
    /// idle too long.
    fn client_index(&mut self, client: Client, now: u64) -> usize {
        if !self.clients.fits(1) {
            let (chains_of_clients, lines, ended) =
                (&mut self.chains_of_clients, &self.lines, &mut self.ended);
            let (free, longest) = (&mut self.free, self.gaps.longest_ms());
            self.clients.rebuild(|number| {
                let chains = &mut chains_of_clients[number[0] as usize];
                let is_recent =
                    chains.iter().any(|chain| chain.used.is_some_and(|used| used + longest >= now));
                if !is_recent {
                    end(chains, lines, ended);
                    chains.fill(Chain::default());
                    free.push(number[0]);
                }
                is_recent
            });
        }
        let lookup = self.clients.probe(client);
        let (chains_of_clients, free, lines) = (&mut self.chains_of_clients, &mut self.free, &self.lines);
        let index = self.clients.slot(lookup, |number| {
            number[0] = free.pop().unwrap_or_else(|| {
                let chains = lines.last().map_or(0, |(_, first, limit)| first + limit);
                chains_of_clients.push(vec![Chain::default(); chains].into_boxed_slice());
                u32::try_from(chains_of_clients.len() - 1).expect("memory holds fewer clients")
            });
        });
        self.clients.at(index)[0] as usize
    }
}

/// Ends every connection of a client.
fn end(chains: &mut [Chain], lines: &[(Bytes, usize, usize)], ended: &mut [ConnectionEnds]) {
    for ((_, first, limit), ended) in lines.iter().zip(ended) {
        for chain in &mut chains[*first..first + limit] {
            chain.end(ended.timeouts, ended);
            chain.starts.clear();
        }
    }
}

impl Chain {
    /// Ends the connection under all timeouts below an index; the next begins.
    fn end(&mut self, index: usize, ended: &mut ConnectionEnds) {
        let mut from = 0;
        while from < index
            && let Some(starts) = self.starts.last()
        {
            let below = usize::from(starts.below);
            let carried = LoadSum {
                requests: self.sum.requests - starts.before.requests,
                bytes: self.sum.bytes - starts.before.bytes,
            };
            ended.add(carried, from, below.min(index));
            if below > index {
                break;
            }
            self.starts.pop();
            from = below;
        }
        if index > 0 {
            let below = u8::try_from(index).expect("at most 200 timeouts");
            self.starts.push(ConnectionStart { below, before: self.sum });
        }
    }
}

impl ConnectionEnds {
    fn new(timeouts: usize) -> Self {
        Self { timeouts, requests: Vec::new(), bytes: Vec::new(), max: vec![LoadSum::default(); timeouts] }
    }

    /// Adds a connection under the timeouts from one index up to another.
    #[inline]
    fn add(&mut self, carried: LoadSum, from: usize, until: usize) {
        if from == until {
            return;
        }
        let row = self.timeouts + 1;
        for (changes, value) in [(&mut self.requests, carried.requests), (&mut self.bytes, carried.bytes)] {
            let at = bucket(value) * row;
            if changes.len() < at + row {
                changes.resize(at + row, 0);
            }
            changes[at + from] += 1;
            changes[at + until] -= 1;
        }
        let max = &mut self.max[from];
        *max = LoadSum { requests: max.requests.max(carried.requests), bytes: max.bytes.max(carried.bytes) };
    }

    /// One load per timeout.
    fn loads(self) -> impl Iterator<Item = Load> {
        let Self { timeouts, requests, bytes, max } = self;
        let requests = spreads(&requests, timeouts, max.iter().map(|sum| sum.requests));
        let bytes = spreads(&bytes, timeouts, max.iter().map(|sum| sum.bytes));
        requests.into_iter().zip(bytes).map(|(requests, bytes)| Load { requests, bytes })
    }
}

/// A histogram per timeout, from the change in the number of connections between successive timeouts.
fn spreads(changes: &[i64], timeouts: usize, max: impl Iterator<Item = u64>) -> Vec<AmountHistogram> {
    let mut spreads = vec![AmountHistogram::default(); timeouts];
    for (bucket, changes) in changes.chunks_exact(timeouts + 1).enumerate() {
        let mut connections = 0;
        for (spread, change) in spreads.iter_mut().zip(changes) {
            connections += change;
            if connections > 0 {
                spread.add_many(bucket, connections.unsigned_abs());
            }
        }
    }
    let mut highest = 0;
    for (spread, max) in spreads.iter_mut().zip(max) {
        highest = highest.max(max);
        spread.raise(highest);
    }
    spreads
}
