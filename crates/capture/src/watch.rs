//! Stalls of live sockets from the kernel's statistics, without packets, privileges or the programs' help.
//!
//! Input: samples of sockets ([`linux::sockets`]). Output: [`Row`]s, stalls by program, endpoint and cause. Only the
//! kernel is read, so the protocol does not matter: TLS, HTTP/2 and gRPC work alike.
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | [`Watch`]: which sockets are sampled when |
//! | [`history`] | the rules |
//! | [`owner`] | the program that holds a socket |
//! | [`session`] | a watch for some time, or until Ctrl-C |
//! | [`guard`] | a test that fails on stalls |
//!
//! Sampling adapts: sockets with data in flight, or a hold in the last second, are *hot* and sampled each time. They
//! are queried one by one, or the whole table is listed, whichever has cost less so far. Every 50 ms the totals of the
//! namespace show whether any segment was sent or received, and any connection opened. If so, a scan without statistics
//! finds sockets that have data in flight, so that recurring holds make a socket hot, and new ones; or a few known ones are
//! queried at less cost. All are listed with their statistics every 250 ms after a scan, and each second: the kernel's own
//! counters lose nothing meanwhile.

pub mod guard;
pub mod history;
pub mod owner;
pub mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use diagnose::Side;
use linux::Error;
use linux::clock::Clock;
use linux::sockets::{Sockets, State, TcpSocket};
use linux::tcp_counters::{TcpCounters, TcpTotals};
use report::watched::{Owner, Row, Rows};
use wire::{Duration, Time};

use crate::kernel::inodes_below;
use crate::proc_sockets::sockets_of;
use history::{Coverage, History};
use owner::owners;

/// The sockets that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All sockets of this network namespace.
    All,
    /// Sockets with this port at either end.
    Port(u16),
    /// Sockets of this process and its descendants.
    Process(u32),
}

/// A watch in progress.
#[derive(Debug)]
pub struct Watch {
    scope: Scope,
    sockets: Sockets,
    counters: TcpCounters,
    /// Totals of the namespace at the last scan.
    totals: Option<TcpTotals>,
    clock: Clock,
    entries: BTreeMap<u64, Entry>,
    listening: BTreeSet<u16>,
    /// Stalls of closed sockets.
    closed: Rows,
    owners: BTreeMap<u32, Owner>,
    owners_read_at: Option<Time>,
    /// Addresses of sockets to be sampled each time.
    hot: Vec<(SocketAddr, SocketAddr)>,
    lists: u64,
    /// When all are listed if a scan has shown segments since the last list, and in any case.
    list_due: Time,
    list_overdue: Time,
    was_scanned: bool,
    scan_due: Time,
    /// Sockets of other processes, if those of one are watched.
    others: BTreeSet<u64>,
    list_cost: Duration,
    /// Cost of a query for a single socket.
    query_cost: Duration,
    samples: u64,
    left_out: u64,
    connections: u64,
    /// Coverage of closed sockets.
    coverage: Coverage,
    /// Sockets that are busy without a hold, sampled as the budget permits.
    busy: Vec<(SocketAddr, SocketAddr)>,
    busy_due: Time,
    /// Whether all sockets are sampled each time, at any cost, such as those of a command.
    is_thorough: bool,
}

/// Sampling frequency of a socket.
enum Heat {
    /// Each time: a segment is held or was recently, or a handshake is in progress.
    Hot,
    /// As the budget permits: data in flight.
    Busy,
    /// With all others.
    Idle,
}

/// A watched socket.
#[derive(Debug)]
struct Entry {
    history: History,
    side: Side,
    owner: Option<Owner>,
    /// Number of the last list that contained it.
    list: u64,
    /// When a segment was last found to be held.
    held_at: Option<Time>,
}

/// Maximum number of sockets watched concurrently.
const MAX_SOCKETS: usize = 1 << 17;
/// Maximum time until a new socket is sampled, or one that has data to send.
const BETWEEN_SCANS: Duration = Duration::from_millis(50);
/// Maximum time until an idle socket is sampled if there were segments, and if there were none.
const BETWEEN_LISTS: Duration = Duration::from_millis(250);
const BETWEEN_ALL_LISTS: Duration = Duration::from_secs(1);
/// Time after a hold within which the next one is expected.
const RECURRING: Duration = Duration::from_secs(1);
/// Time between scans, lists, and queries of busy sockets, as a multiple of their cost: together at most 3% of a CPU.
const SCAN_BUDGET: u64 = 150;
const LIST_BUDGET: u64 = 300;
const BUSY_BUDGET: u64 = 60;
/// The same for a command's sockets: at most half of a CPU.
const THOROUGH_BUDGET: u64 = 4;
/// Time between scans of all open files of the host.
const BETWEEN_OWNERS: Duration = Duration::from_secs(1);

impl Watch {
    /// Starts a watch with a list of the existing sockets.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn begin(scope: Scope) -> Result<Self, Error> {
        Self::start(scope, false)
    }

    /// Starts a watch of a command's sockets: all are sampled each time, so that nothing falls between samples.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn of_command(scope: Scope) -> Result<Self, Error> {
        Self::start(scope, true)
    }

    fn start(scope: Scope, is_thorough: bool) -> Result<Self, Error> {
        let mut watch = Self {
            scope,
            sockets: Sockets::open()?,
            counters: TcpCounters::open(),
            totals: None,
            clock: Clock::start(),
            entries: BTreeMap::new(),
            listening: BTreeSet::new(),
            closed: Rows::default(),
            owners: BTreeMap::new(),
            owners_read_at: None,
            hot: Vec::new(),
            lists: 0,
            list_due: Time::ZERO,
            list_overdue: Time::ZERO,
            was_scanned: false,
            scan_due: Time::ZERO,
            others: BTreeSet::new(),
            list_cost: Duration::from_millis(1),
            query_cost: Duration::from_micros(5),
            samples: 0,
            left_out: 0,
            connections: 0,
            coverage: Coverage::default(),
            busy: Vec::new(),
            busy_due: Time::ZERO,
            is_thorough,
        };
        watch.list()?;
        Ok(watch)
    }

    /// Samples the hot sockets, or all of them.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn sample(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        let list_due = if self.was_scanned { self.list_due } else { self.list_overdue };
        let is_due = now >= list_due || self.query_cost * self.hot.len() as u64 > self.list_cost;
        if is_due || (now >= self.scan_due && self.look(now)?) {
            self.list()?;
        } else {
            self.query()?;
        }
        self.read_closed_sockets()
    }

    /// Returns the time until the next sample, which is not needed each time while no socket is hot or busy.
    pub fn idle(&self) -> Duration {
        let is_idle = self.hot.is_empty() && self.busy.is_empty() && !self.is_thorough;
        if is_idle { self.scan_due.since(self.clock.now()) } else { Duration::ZERO }
    }

    /// Finds out what happened since the last scan: nothing, segments of few known sockets, which the next query samples, or
    /// more, which a scan finds. Returns whether there are new sockets, which a list must add.
    fn look(&mut self, now: Time) -> Result<bool, Error> {
        let totals = self.counters.read();
        let before = std::mem::replace(&mut self.totals, totals);
        let Some((totals, before)) = totals.zip(before).filter(|_| !self.is_thorough) else {
            return self.scan();
        };
        let is_quiet = totals == before;
        let are_few = totals.opened == before.opened
            && self.query_cost * self.entries.len() as u64 * 4 <= self.list_cost;
        if !is_quiet && !are_few {
            return self.scan();
        }
        if !is_quiet {
            let ends = |entry: &Entry| (entry.history.last().local, entry.history.last().peer);
            self.hot = self.entries.values().map(ends).collect();
            self.busy.clear();
        }
        self.scan_due = now + BETWEEN_SCANS;
        Ok(false)
    }

    /// Makes sockets with data in flight hot; returns whether there are new sockets, which a list must add.
    fn scan(&mut self) -> Result<bool, Error> {
        let began = self.clock.now();
        let port = self.port();
        let hot: BTreeSet<(SocketAddr, SocketAddr)> = self.hot.iter().chain(&self.busy).copied().collect();
        let Self { sockets, entries, others, hot: waiting, .. } = self;
        let mut has_new = false;
        sockets.scan(port, |socket| {
            let is_idle = socket.send_queue == 0 && socket.state == State::Open;
            if socket.state == State::Listening || (is_idle && entries.contains_key(&socket.cookie)) {
                return;
            }
            let ends = (socket.local, socket.peer);
            match entries.contains_key(&socket.cookie) {
                true if hot.contains(&ends) => {}
                true => waiting.push(ends),
                false => has_new |= !others.contains(&socket.cookie),
            }
        })?;
        let now = self.clock.now();
        self.scan_due = now + self.pause(BETWEEN_SCANS, now.since(began), SCAN_BUDGET);
        self.was_scanned = true;
        Ok(has_new && self.entries.len() < MAX_SOCKETS)
    }

    /// The port by which the kernel selects sockets.
    const fn port(&self) -> Option<u16> {
        match self.scope {
            Scope::Port(port) => Some(port),
            Scope::All | Scope::Process(_) => None,
        }
    }

    /// Returns the time until the next scan or list, of this cost.
    fn pause(&self, usual: Duration, cost: Duration, budget: u64) -> Duration {
        match self.is_thorough {
            true => cost * THOROUGH_BUDGET,
            false => usual.max(cost * budget),
        }
    }

    fn query(&mut self) -> Result<(), Error> {
        let began = self.clock.now();
        let mut hot = std::mem::take(&mut self.hot);
        let with_busy = began >= self.busy_due;
        if with_busy {
            hot.append(&mut self.busy);
        }
        if hot.is_empty() {
            return Ok(());
        }
        let Self { sockets, clock, entries, samples, hot: still_hot, busy, is_thorough, .. } = self;
        sockets.find_all(&hot, |socket| {
            if let Some(entry) = entries.get_mut(&socket.cookie) {
                *samples += 1;
                match entry.take(clock.now(), &socket) {
                    Heat::Hot => still_hot.push((socket.local, socket.peer)),
                    _ if *is_thorough => still_hot.push((socket.local, socket.peer)),
                    Heat::Busy => busy.push((socket.local, socket.peer)),
                    Heat::Idle => {}
                }
            }
        })?;
        let now = self.clock.now();
        if with_busy {
            self.busy_due = now + now.since(began) * BUSY_BUDGET;
        }
        let cost = now.since(began) / hot.len() as u64;
        self.query_cost = smoothed(self.query_cost, cost);
        Ok(())
    }

    fn list(&mut self) -> Result<(), Error> {
        let began = self.clock.now();
        let own = match self.scope {
            Scope::Process(pid) => Some(inodes_of(pid)),
            Scope::All | Scope::Port(_) => None,
        };
        let port = self.port();
        self.lists += 1;
        let is_first = self.lists == 1;
        let mut has_unowned = false;
        let mut new = Vec::new();
        self.hot.clear();
        self.busy.clear();
        self.others.clear();
        let Self {
            sockets, clock, entries, listening, samples, lists, hot, busy, others, is_thorough, ..
        } = self;
        sockets.list(port, |socket| match entries.get_mut(&socket.cookie) {
            _ if socket.state == State::Listening => drop(listening.insert(socket.local.port())),
            Some(entry) => {
                *samples += 1;
                entry.list = *lists;
                match entry.take(clock.now(), &socket) {
                    Heat::Hot => hot.push((socket.local, socket.peer)),
                    _ if *is_thorough => hot.push((socket.local, socket.peer)),
                    Heat::Busy => busy.push((socket.local, socket.peer)),
                    Heat::Idle => {}
                }
            }
            None if own.as_ref().is_none_or(|own| own.contains(&socket.inode)) => {
                new.push((clock.now(), socket))
            }
            // A connection that is not accepted yet has no owner.
            None if socket.inode > 0 => drop(others.insert(socket.cookie)),
            None => has_unowned = true,
        })?;
        for (at, socket) in new {
            self.samples += 1;
            self.add(at, &socket, !is_first);
        }
        let missing: Vec<u64> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.list != self.lists)
            .map(|(cookie, _)| *cookie)
            .collect();
        missing.iter().for_each(|cookie| self.close(*cookie));
        self.name_owners();
        let now = self.clock.now();
        self.list_cost = smoothed(self.list_cost, now.since(began));
        self.list_due = now + self.pause(BETWEEN_LISTS, self.list_cost, LIST_BUDGET);
        self.list_overdue = self.list_due.max(now + BETWEEN_ALL_LISTS);
        self.was_scanned = self.is_thorough;
        // No segment shows that it is accepted.
        self.totals = self.totals.filter(|_| !has_unowned);
        self.scan_due = now + self.pause(BETWEEN_SCANS, self.list_cost, SCAN_BUDGET / 3);
        Ok(())
    }

    fn add(&mut self, at: Time, socket: &TcpSocket, is_opened_since: bool) {
        if self.entries.len() >= MAX_SOCKETS {
            self.left_out += 1;
            return;
        }
        let ports = [socket.local.port(), socket.peer.port()];
        let is_server = match ports.map(|port| self.listening.contains(&port)) {
            [true, false] => true,
            [false, true] => false,
            // Both ends listen, or the listener is gone: the server is assumed to have the lower port.
            _ => ports[0] < ports[1],
        };
        let side = if is_server { Side::Server } else { Side::Client };
        let history = History::new(at, socket, is_opened_since);
        let entry = Entry { history, side, owner: None, list: self.lists, held_at: None };
        // Hot until a second sample shows whether it is.
        self.hot.push((socket.local, socket.peer));
        self.connections += 1;
        self.entries.insert(socket.cookie, entry);
    }

    /// Reads the final counters of sockets that were destroyed since the last call.
    fn read_closed_sockets(&mut self) -> Result<(), Error> {
        let mut closed = Vec::new();
        self.sockets.ended(|socket| closed.push(socket))?;
        for socket in closed {
            if let Some(entry) = self.entries.get_mut(&socket.cookie) {
                let last = *entry.history.last();
                // Its ports are no longer known; nothing is held any more.
                let last = TcpSocket { info: socket.info, progress: socket.progress, send_queue: 0, ..last };
                entry.history.handle(self.clock.now(), &last);
                self.close(socket.cookie);
            }
        }
        Ok(())
    }

    fn close(&mut self, cookie: u64) {
        if let Some(entry) = self.entries.remove(&cookie) {
            entry.add_to(&mut self.closed);
            self.coverage.add(entry.history.coverage());
        }
    }

    /// Looks up the programs of sockets that stalled, while they are open.
    fn name_owners(&mut self) {
        let now = self.clock.now();
        let mut unnamed: Vec<&mut Entry> = self
            .entries
            .values_mut()
            .filter(|entry| entry.owner.is_none() && entry.history.has_stalled())
            .collect();
        let is_known = |entry: &&mut Entry| self.owners.contains_key(&entry.history.last().inode);
        let is_due = self.owners_read_at.is_none_or(|at| now.since(at) >= BETWEEN_OWNERS);
        if is_due && !unnamed.iter().all(is_known) {
            self.owners = owners();
            self.owners_read_at = Some(now);
        }
        for entry in &mut unnamed {
            entry.owner = self.owners.get(&entry.history.last().inode).cloned();
        }
    }

    /// Returns the stalls so far, the most severe first.
    pub fn rows(&mut self) -> Vec<Row> {
        self.name_owners();
        let mut rows = self.closed.clone();
        for entry in self.entries.values() {
            entry.add_to(&mut rows);
        }
        rows.sorted()
    }

    /// Returns the number of watched sockets.
    pub fn open(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of sockets that were watched at any time.
    pub const fn connections(&self) -> u64 {
        self.connections
    }

    /// Returns the busy time of all sockets that the samples cover, and that they do not.
    pub fn coverage(&self) -> Coverage {
        let mut all = self.coverage;
        self.entries.values().for_each(|entry| all.add(entry.history.coverage()));
        all
    }

    /// Returns the number of samples of single sockets.
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the number of sockets beyond the limit.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }
}

impl Entry {
    fn add_to(&self, rows: &mut Rows) {
        let last = self.history.last();
        let server = if self.side == Side::Server { last.local } else { last.peer };
        rows.add(server, self.side, self.owner.as_ref(), self.history.stalls());
    }

    /// Takes a sample.
    fn take(&mut self, at: Time, socket: &TcpSocket) -> Heat {
        self.history.handle(at, socket);
        if self.history.is_holding() {
            self.held_at = Some(at);
        }
        let was_held = self.held_at.is_some_and(|held_at| at.since(held_at) < RECURRING);
        if was_held || matches!(socket.state, State::SynSent | State::SynReceived) {
            Heat::Hot
        } else if socket.send_queue > 0 {
            Heat::Busy
        } else {
            Heat::Idle
        }
    }
}

fn inodes_of(pid: u32) -> BTreeSet<u32> {
    let mut inodes: BTreeSet<u32> = inodes_below(pid).into_keys().collect();
    inodes.extend(sockets_of(pid));
    inodes
}

/// Returns a moving average with a weight of an eighth for the new value.
fn smoothed(average: Duration, value: Duration) -> Duration {
    (average * 7 + value) / 8
}
