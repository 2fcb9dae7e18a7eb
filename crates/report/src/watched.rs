//! Watched sockets: stalls of many connections, aggregated by program, side, address and cause.
//!
//! The kernel's statistics are sampled by `capture::watch`; [`view`] shows the report.

pub mod view;

use core::net::SocketAddr;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use diagnose::{Cause, Severity, Side};
use wire::Duration;

use crate::command::CommandExit;
use crate::verdict::unjudged::Unjudged;

/// A report on the state of a watch.
#[derive(Clone, Debug)]
pub struct WatchReport {
    /// Time since it began.
    pub elapsed: Duration,
    /// The stalls so far, the most severe first.
    pub rows: Vec<Row>,
    /// Whether this is the first report.
    pub is_first: bool,
    /// Number of open sockets.
    pub open: usize,
    /// Number of samples of single sockets.
    pub samples: u64,
    /// Number of sockets beyond the limit, which are not watched.
    pub left_out: u64,
    /// CPU time of this process since the watch began.
    pub cpu: Duration,
    /// Number of sockets that were watched at any time.
    pub connections: u64,
    /// Time between samples of which it is known what happened.
    pub observed: Duration,
    /// Time between samples that were too far apart to show what happened.
    pub unseen: Duration,
    /// Exit of the command.
    pub command: Option<CommandExit>,
    /// Whether the command was ended because the time was up, or by Ctrl-C.
    pub is_command_stopped: bool,
    /// Whether this is the last report.
    pub is_last: bool,
}

impl WatchReport {
    /// Returns the reason why it allows no verdict, if there is one. With `is_failure_accepted`, a command that failed is judged.
    pub fn unjudged(&self, is_failure_accepted: bool) -> Option<Unjudged> {
        match self.command {
            Some(exit) if exit.has_failed() && !is_failure_accepted && !self.is_command_stopped => {
                Some(Unjudged::CommandFailed(exit))
            }
            _ if self.connections == 0 => Some(Unjudged::NoConnection),
            Some(_) if self.is_sparse() => Some(Unjudged::FewSamples { samples: self.samples }),
            Some(_) | None => None,
        }
    }

    /// Returns whether any stall is worth fixing.
    pub fn fails(&self) -> bool {
        self.rows.iter().any(|row| row.severity.is_worth_fixing())
    }

    /// Returns whether most of the busy time fell between samples that were too far apart.
    pub fn is_sparse(&self) -> bool {
        self.unseen > self.observed
    }

    /// Returns the exit status of a watch: 1 for a stall worth fixing, 3 if nothing could be judged, otherwise 0.
    pub fn status(&self) -> u8 {
        match (self.fails(), self.unjudged(false)) {
            (true, _) => 1,
            (false, Some(_)) => 3,
            (false, None) => 0,
        }
    }

    /// Returns the CPU time as a share of the elapsed time.
    pub fn load(&self) -> f64 {
        self.cpu.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Process ID.
    pub pid: u32,
    /// Its name (`/proc/PID/comm`), without control characters.
    pub name: String,
    /// The first twelve digits of its container's identifier.
    pub container: Option<String>,
}

/// Stalls of one cause at one socket.
#[derive(Clone, Debug)]
pub struct Stall {
    /// The cause.
    pub cause: Cause,
    /// Severity of the total time lost.
    pub severity: Severity,
    /// Number of stalls.
    pub times: u64,
    /// Total time lost.
    pub lost: Duration,
    /// The longest stall.
    pub longest: Duration,
    /// Evidence: a sentence on the counters that show it.
    pub evidence: String,
}

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
    /// Adds the stalls of a connection with this server.
    pub fn add(
        &mut self,
        server: SocketAddr,
        side: Side,
        owner: Option<&Owner>,
        stalls: impl IntoIterator<Item = Stall>,
    ) {
        for stall in stalls {
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
