//! Stalls of many connections, aggregated by program, side, address and cause.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use diagnose::{Cause, Severity, Side};
use wire::Duration;

use super::history::{History, Stall};
use super::owner::Owner;

/// Stalls of one cause at one side of a program's connections with one address.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The program; `None` where it is not visible to this user.
    pub owner: Option<Owner>,
    /// The side that was held up.
    pub side: Side,
    /// The server's address.
    pub server: SocketAddr,
    /// The cause.
    pub cause: Cause,
    /// Number of connections.
    pub connections: u64,
    /// Number of stalls.
    pub times: u64,
    /// Total time lost.
    pub lost: Duration,
    /// The longest stall.
    pub longest: Duration,
    /// Severity of the worst connection.
    pub severity: Severity,
    /// Evidence of the worst connection.
    pub evidence: String,
    /// Time lost in the worst connection.
    worst: Duration,
}

/// A set of rows.
#[derive(Clone, Debug, Default)]
pub struct Rows(BTreeMap<Key, Row>);

type Key = (Option<Owner>, Side, SocketAddr, Cause);

/// Maximum number of rows; later keys are ignored: a client of ten thousand servers has one problem, not ten thousand.
const MAX_ROWS: usize = 10_000;

impl Rows {
    /// Adds the stalls of a connection.
    pub fn add(&mut self, history: &History, side: Side, owner: Option<&Owner>) {
        let last = history.last();
        let server = if side == Side::Server { last.local } else { last.peer };
        for stall in history.stalls() {
            let key = (owner.cloned(), side, server, stall.cause);
            if self.0.len() < MAX_ROWS || self.0.contains_key(&key) {
                let row = self.0.entry(key).or_insert_with(|| Row::empty(owner, side, server, &stall));
                row.add(stall);
            }
        }
    }

    /// Returns the rows, the most severe first.
    pub fn sorted(self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.0.into_values().collect();
        rows.sort_by_key(|row| Reverse((row.severity, row.lost)));
        rows
    }
}

impl Row {
    fn empty(owner: Option<&Owner>, side: Side, server: SocketAddr, stall: &Stall) -> Self {
        Self {
            owner: owner.cloned(),
            side,
            server,
            cause: stall.cause,
            connections: 0,
            times: 0,
            lost: Duration::ZERO,
            longest: Duration::ZERO,
            severity: stall.severity,
            evidence: String::new(),
            worst: Duration::ZERO,
        }
    }

    fn add(&mut self, stall: Stall) {
        let Stall { cause: _, severity, times, lost, longest, evidence } = stall;
        self.connections += 1;
        (self.times, self.lost) = (self.times + times, self.lost + lost);
        self.longest = self.longest.max(longest);
        self.severity = self.severity.max(severity);
        if lost > self.worst {
            (self.worst, self.evidence) = (lost, evidence);
        }
    }
}
