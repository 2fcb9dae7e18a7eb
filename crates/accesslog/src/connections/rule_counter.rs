//! Reference counter for every rule: each connection simulated, for each timeout. Slow, for rules without a
//! fast method.
//!
//! It also counts what the single pass counts, and a test compares the two. A log cannot be split for it:
//! the order in which connections were opened may have been decided long before the split.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use wire::{Bytes, Duration, Time};

use crate::sizing::LARGE;
use crate::{Client, Request};

use super::amount_histogram::Load;
use super::connection_loads::ConnectionLoads;
use super::counts::{Counts, Peak};
use super::query::{Query, Rule};

/// Counter of requests in order of time, for any rule.
#[derive(Clone, Debug)]
pub struct RuleCounter {
    query: Query,
    counts: Counts,
    /// One per threshold, limit and timeout, in that order.
    servers: Vec<Server>,
}

/// A server under one threshold, one limit and one timeout.
#[derive(Clone, Debug, Default)]
struct Server {
    clients: BTreeMap<Client, Vec<Connection>>,
    /// Times at which connections close unless used before. Most entries are early, because the connection
    /// was used again.
    closings: BinaryHeap<Reverse<(u64, Client, u64)>>,
    opened: u64,
    open: u64,
    /// Requests and bytes carried by closed connections.
    load: Load,
}

/// An open connection.
#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// Number of the request that opened it.
    opened: u64,
    /// Number of the request that used it last.
    used: u64,
    /// Time at which it has sent all its responses, in milliseconds.
    idle_from: u64,
    /// Last time at which it is open unless used again, in milliseconds.
    closes: u64,
    /// Number of requests served.
    requests: u64,
    /// Bytes sent for them.
    bytes: u64,
}

/// Memory of a client of a server: its entry in a tree, whose nodes are two thirds full, and the first allocation of its
/// connections.
const CLIENT_BYTES: usize = size_of::<(Client, Vec<Connection>)>() * 3 / 2 + 4 * size_of::<Connection>();

impl RuleCounter {
    /// A counter before the first request.
    pub fn new(query: &Query) -> Self {
        let servers = query.thresholds().len() * query.limits().len() * query.timeouts().len();
        Self { counts: Counts::new(query), query: query.clone(), servers: vec![Server::default(); servers] }
    }

    /// Counts requests, which must be in order of time.
    pub fn count(&mut self, requests: &[Request]) {
        for request in requests {
            self.request(request);
        }
    }

    /// Approximate memory of the clients with open connections, in bytes.
    pub fn bytes(&self) -> usize {
        let of_server = |server: &Server| {
            server.clients.len() * CLIENT_BYTES
                + server.closings.len() * size_of::<Reverse<(u64, Client, u64)>>()
        };
        self.servers.iter().map(of_server).sum()
    }

    /// Counts of all requests.
    pub fn finish(self) -> Counts {
        self.counts
    }

    /// Counts of all requests, and the load of each connection.
    pub fn finish_with_loads(self) -> (Counts, ConnectionLoads) {
        let Self { query, counts, servers } = self;
        (counts, ConnectionLoads::new(&query, servers.into_iter().map(Server::finish).collect()))
    }

    fn request(&mut self, request: &Request) {
        let Self { query, counts, servers } = self;
        let Request { time, client, bytes, taken } = *request;
        let sent = if bytes == LARGE { Bytes::ZERO } else { bytes };
        let number = counts.requests;
        counts.requests += 1;
        counts.bytes += sent;
        counts.span = Some((counts.span.map_or(time, |(first, _)| first), time));
        let mut servers = servers.iter_mut();
        for stream in &mut counts.streams {
            let by_tcp = bytes >= stream.threshold;
            if by_tcp {
                stream.requests += 1;
                stream.bytes += sent;
            }
            for line in &mut stream.lines {
                for (index, opened) in line.opened.iter_mut().enumerate() {
                    let Some(server) = servers.next().filter(|_| by_tcp) else { continue };
                    let request = TimedRequest {
                        number,
                        at: millis(time.since(Time::ZERO)),
                        takes: if query.durations() { millis(taken) } else { 0 },
                        timeout: millis(opened.timeout),
                        limit: line.limit,
                        rule: query.rule(),
                        sent: sent.get(),
                    };
                    server.request(client, request);
                    opened.total = server.opened;
                    let at = Time::ZERO + Duration::from_millis(request.at);
                    opened.peak.raise(Peak { connections: server.open, at });
                    if index == query.curve() {
                        line.curve.raise(request.at / 60_000, server.open);
                    }
                }
            }
        }
    }
}

/// A request as the server sees it; times in milliseconds.
#[derive(Clone, Copy, Debug)]
struct TimedRequest {
    number: u64,
    at: u64,
    takes: u64,
    timeout: u64,
    limit: usize,
    rule: Rule,
    sent: u64,
}

impl Server {
    fn request(&mut self, client: Client, request: TimedRequest) {
        self.close(request.at);
        let connections = self.clients.entry(client).or_default();
        let index = match choose(connections, request) {
            Some(index) => index,
            None => {
                self.opened += 1;
                self.open += 1;
                connections.push(Connection { opened: request.number, ..Connection::default() });
                connections.len() - 1
            }
        };
        let connection = &mut connections[index];
        connection.used = request.number;
        connection.requests += 1;
        connection.bytes += request.sent;
        // A busy connection serves its requests sequentially.
        connection.idle_from = connection.idle_from.max(request.at).saturating_add(request.takes);
        connection.closes = connection.idle_from.saturating_add(request.timeout);
        self.closings.push(Reverse((connection.closes, client, connection.opened)));
    }

    /// Closes every connection whose timeout has passed.
    fn close(&mut self, now: u64) {
        while let Some(Reverse((closes, client, opened))) = self.closings.peek().copied()
            && closes < now
        {
            self.closings.pop();
            let Some(connections) = self.clients.get_mut(&client) else { continue };
            let index = connections
                .iter()
                .position(|connection| connection.opened == opened && connection.closes < now);
            if let Some(index) = index {
                let closed = connections.remove(index);
                self.load.add(closed.requests, closed.bytes);
                self.open -= 1;
            }
            if connections.is_empty() {
                self.clients.remove(&client);
            }
        }
    }
}

impl Server {
    /// Load of all connections, including those still open.
    fn finish(self) -> Load {
        let mut load = self.load;
        for open in self.clients.values().flatten() {
            load.add(open.requests, open.bytes);
        }
        load
    }
}

/// The connection that serves a request; `None` for a new one.
fn choose(connections: &[Connection], request: TimedRequest) -> Option<usize> {
    let lowest = |key: fn(&Connection) -> u64| {
        (0..connections.len())
            .min_by_key(|index| key(&connections[*index]))
            .filter(|_| connections.len() >= request.limit)
    };
    match request.rule {
        Rule::LeastRecentlyUsed => lowest(|connection| connection.used),
        Rule::FirstCreated => lowest(|connection| connection.opened),
        Rule::IdleFirst => (0..connections.len())
            .filter(|index| connections[*index].idle_from <= request.at)
            .max_by_key(|index| connections[*index].used)
            .or_else(|| lowest(|connection| connection.used)),
    }
}

fn millis(span: Duration) -> u64 {
    span.as_nanos() / 1_000_000
}
