//! The kernel's view of connections that are captured live, which packets do not show: the owning program, and the
//! limits of their senders (`TCP_INFO`).
//!
//! The kernel is queried for a connection a few milliseconds after its opening was captured. A connection that has
//! closed by then has no known owner, and is shown. Not for captures in files: those sockets no longer exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;

use diagnose::host::{HostFacts, SenderTimes};
use diagnose::{FlowReport, Side};
use linux::clock::calendar;
use linux::sockets::{Sockets, State, TcpInfo, TcpSocket};
use report::kernel::{KernelStats, SenderCounters, SocketPair};
use wire::{Duration, Time};

use nix::sys::prctl::set_child_subreaper;

use crate::Error;
use crate::proc_sockets::sockets_of;
use crate::process_tree::descendants;
use crate::run_queue::RunQueue;
use crate::watch::owner::{name_of, owners};

/// Monitors sockets while a capture lasts.
#[derive(Debug)]
pub struct SocketMonitor {
    sockets: Sockets,
    /// Whether this program's children are distinguished from other processes.
    has_command: bool,
    known: BTreeMap<SocketPair, KnownSocket>,
    /// Opened connections that need further queries, and when their opening was captured.
    new: Vec<(SocketPair, Side, Time)>,
    /// Processes that serve the command's connections, or connections that these depend on.
    servers: BTreeSet<u32>,
    run_queue: RunQueue,
}

#[derive(Clone, Debug, Default)]
struct KnownSocket {
    info: TcpInfo,
    is_own: bool,
    inode: u32,
    /// The program that holds it, and its process, if it is the command's.
    program: Option<String>,
    process: Option<u32>,
    /// Number of times that another program was found to own it.
    foreign_sightings: u32,
    /// The process of another program that holds it.
    owner: Option<u32>,
    /// Time from its opening to the last query at which no program had accepted it.
    unaccepted: Duration,
}

/// Number of such observations after which a connection belongs to another program: a single one may precede the
/// discovery of the command's own program.
const CERTAIN: u32 = 2;
/// Maximum number of connections queried at one time; if there are more, some have no known owner.
const MAX_NEW: usize = 1_000;
/// Maximum number of connections that are remembered.
const MAX_KNOWN: usize = 1 << 17;

impl SocketMonitor {
    /// Starts monitoring; must be called before the command is started, if there is one.
    pub fn begin(has_command: bool) -> Result<Self, Error> {
        // Processes that outlive the command count as its own: they become this process's children. Where the kernel
        // does not support that, such processes count as others.
        let _ = set_child_subreaper(has_command);
        Ok(Self {
            sockets: Sockets::open()?,
            has_command,
            known: BTreeMap::new(),
            new: Vec::new(),
            servers: BTreeSet::new(),
            run_queue: RunQueue::default(),
        })
    }

    /// Records an opened connection: its server responded to `client`.
    pub fn opened(&mut self, client: SocketAddr, server: SocketAddr, now: Time) {
        if self.new.len() + 2 <= MAX_NEW && self.known.len() < MAX_KNOWN {
            self.new.extend([((client, server), Side::Client, now), ((server, client), Side::Server, now)]);
        }
    }

    /// Queries the opened connections, and reads notifications of closed ones.
    pub fn poll(&mut self, now: Time) -> Result<(), Error> {
        if self.has_command {
            self.run_queue.sample(captured_at);
        }
        for (ends, side, opened) in std::mem::take(&mut self.new) {
            let Some(socket) = self.sockets.find(ends.0, ends.1)? else { continue };
            // Nor does a program hold what it has closed.
            let is_open = socket.state == State::Open && !socket.is_closing;
            let is_accepted = socket.inode > 0 || side == Side::Client || !is_open;
            if self.record_socket(&socket, side) || !is_accepted {
                self.new.push((ends, side, opened));
            }
            if let Some(known) = self.known.get_mut(&ends).filter(|_| !is_accepted) {
                known.unaccepted = now.since(opened);
            }
        }
        let mut closed = Vec::new();
        self.sockets.ended(|socket| closed.push(socket))?;
        for socket in closed {
            if let Some(known) = self.known.get_mut(&(socket.local, socket.peer)) {
                known.info = socket.info;
            }
        }
        Ok(())
    }

    /// Reads the final counters of connections that are still open at the end of the capture.
    pub fn read_final_counters(&mut self, now: Time) -> Result<(), Error> {
        self.poll(now)?;
        for ((local, peer), known) in &mut self.known {
            if let Some(socket) = self.sockets.find(*local, *peer)? {
                known.info = socket.info;
            }
        }
        Ok(())
    }

    /// Records a socket; returns whether it should be queried again.
    fn record_socket(&mut self, socket: &TcpSocket, side: Side) -> bool {
        let TcpSocket { local, peer, inode, info, .. } = *socket;
        let is_held = self.has_command && inode > 0;
        let holder = is_held.then(|| inodes_below(std::process::id()).remove(&inode)).flatten();
        let is_own = holder.is_some();
        let is_foreign = self.has_command && !is_own && inode > 0;
        let owner = if is_foreign { self.owner_of((local, peer), side, inode) } else { None };
        let known = self.known.entry((local, peer)).or_default();
        *known = KnownSocket {
            owner: owner.or(known.owner),
            info,
            is_own: known.is_own || is_own,
            inode,
            program: holder.map(name_of).or(known.program.take()),
            process: holder.or(known.process),
            foreign_sightings: known.foreign_sightings + u32::from(inode > 0 && !is_own),
            unaccepted: known.unaccepted,
        };
        self.has_command && !known.is_own && known.foreign_sightings < CERTAIN
    }

    /// Returns the process of another program that holds a socket, as far as the command depends on it: the server of one of
    /// the command's connections, or the client of a connection of such a process. Only servers' files are read, unless a
    /// server is new.
    fn owner_of(&mut self, (local, peer): SocketPair, side: Side, inode: u32) -> Option<u32> {
        match side {
            Side::Client => {
                let mut servers = self.servers.iter();
                servers.find(|server| sockets_of(**server).any(|held| held == inode)).copied()
            }
            Side::Server => {
                let client = self.known.get(&(peer, local))?;
                if !client.is_own && client.owner.is_none() {
                    return None;
                }
                let server = owners().get(&inode)?.pid;
                self.servers.insert(server);
                Some(server)
            }
        }
    }

    /// Divides connections of other programs into those on which the command's own depend, and the rest.
    pub fn between(&self, others: Vec<FlowReport>) -> (Vec<FlowReport>, Vec<FlowReport>) {
        let client = |flow: &FlowReport| self.known.get(&(flow.client, flow.server));
        others.into_iter().partition(|flow| client(flow).is_some_and(|client| client.owner.is_some()))
    }

    /// Returns whether a connection is known to be between other programs.
    pub fn is_of_others(&self, flow: &FlowReport) -> bool {
        let ends = [(flow.client, flow.server), (flow.server, flow.client)];
        let known: Vec<&KnownSocket> = ends.iter().filter_map(|ends| self.known.get(ends)).collect();
        self.has_command
            && known.iter().all(|end| !end.is_own)
            && known.iter().any(|end| end.foreign_sightings >= CERTAIN || end.owner.is_some())
    }

    /// Adds what this host knows of these connections: their programs, its settings, and the kernel's counters.
    pub fn inform(&self, flows: &mut [FlowReport]) {
        let setting = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
            Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        let buffers = ["tcp_rmem", "tcp_wmem"].map(setting);
        let owners = owners();
        let program = |known: &KnownSocket| {
            let owner = owners.get(&known.inode).map(|owner| owner.name.clone());
            known.program.clone().or(owner)
        };
        for flow in &mut *flows {
            let programs = self.ends(flow).map(|(_, known)| known.and_then(program));
            flow.host = Some(Box::new(HostFacts { programs, buffers: buffers.clone() }));
        }
        let first_responses = first_responses(flows);
        let machines = self.virtual_machines(flows);
        let mut servers = BTreeMap::new();
        for flow in flows {
            let known = self.ends(flow);
            if servers.get(&flow.server).is_none_or(|ready| flow.started < *ready) {
                let ready = flow.hear_first_use();
                servers.entry(flow.server).or_insert(ready);
            }
            flow.hear_accept(known[1].1.map(|known| known.unaccepted).unwrap_or_default());
            if let Some((first, Some(later))) = first_responses.get(&flow.server)
                && machines.contains(&flow.server)
            {
                flow.hear_first_responses(*first, *later);
            }
            if let Some(process) = known[1].1.and_then(|known| known.process) {
                flow.hear_run_queue(|at, lost| self.run_queue.delay(process, at, at + lost));
            }
            for (side, socket) in known {
                let Some(KnownSocket { info, .. }) = socket else { continue };
                let (busy, receive_window) = (info.busy, info.receive_window_limited);
                let send_buffer = info.send_buffer_limited;
                flow.hear_kernel(side, SenderTimes { busy, receive_window, send_buffer });
            }
            for (side, socket) in known {
                if let Some(process) = socket.and_then(|known| known.process) {
                    flow.hear_reader(side, |at, lost| self.run_queue.work(process, at, at + lost));
                }
            }
        }
    }

    /// Returns the sockets at both ends of a connection.
    fn ends(&self, flow: &FlowReport) -> [(Side, Option<&KnownSocket>); 2] {
        let ends = [(Side::Client, (flow.client, flow.server)), (Side::Server, (flow.server, flow.client))];
        ends.map(|(side, ends)| (side, self.known.get(&ends)))
    }

    /// Returns the servers that wait for virtual machines: their own, and those of relays before them.
    fn virtual_machines(&self, flows: &[FlowReport]) -> BTreeSet<SocketAddr> {
        let processes = |flow: &FlowReport| {
            self.ends(flow).map(|(_, known)| known.and_then(|known| known.process.or(known.owner)))
        };
        let hops: Vec<Hop> = flows.iter().map(|flow| (processes(flow), flow.server)).collect();
        let machines = flows.iter().filter(|flow| flow.is_of_virtual_machine()).map(|flow| flow.server);
        with_relays(machines.collect(), &hops)
    }

    /// Returns the kernel's counters for local ends of these connections.
    pub fn reported(&self, flows: &[FlowReport]) -> KernelStats {
        let of = |flow: &FlowReport| {
            let reported =
                self.ends(flow).map(|(side, known)| known.map(|known| (side, sender_counters(known.info))));
            ((flow.client, flow.server), reported.into_iter().flatten().collect())
        };
        flows.iter().map(of).collect()
    }
}

/// A connection: the processes at its client's and its server's end, and the server.
type Hop = ([Option<u32>; 2], SocketAddr);

/// Adds to servers those whose program is a client of one of them.
fn with_relays(mut servers: BTreeSet<SocketAddr>, hops: &[Hop]) -> BTreeSet<SocketAddr> {
    loop {
        let clients: BTreeSet<u32> = hops
            .iter()
            .filter(|(_, server)| servers.contains(server))
            .filter_map(|([client, _], _)| *client)
            .collect();
        let is_relay = |process: Option<u32>| process.is_some_and(|process| clients.contains(&process));
        let relays = hops.iter().filter(|([_, server], _)| is_relay(*server)).map(|(_, server)| *server);
        let before = servers.len();
        servers.extend(relays);
        if servers.len() == before {
            return servers;
        }
    }
}

/// Returns when the first response of each server ended, and the longest time of requests sent after that.
fn first_responses(flows: &[FlowReport]) -> BTreeMap<SocketAddr, (Time, Option<Duration>)> {
    let exchanges =
        || flows.iter().flat_map(|flow| flow.exchanges.iter().map(|exchange| (flow.server, exchange)));
    let mut servers: BTreeMap<SocketAddr, (Time, Option<Duration>)> = BTreeMap::new();
    for (server, exchange) in exchanges() {
        let end = exchange.at + exchange.elapsed;
        let first = servers.entry(server).or_insert((end, None));
        first.0 = first.0.min(end);
    }
    for (server, exchange) in exchanges() {
        let first = servers.get_mut(&server).filter(|(first, _)| exchange.at >= *first);
        if let Some((_, later)) = first {
            *later = Some(later.map_or(exchange.elapsed, |longest| longest.max(exchange.elapsed)));
        }
    }
    servers
}

/// Returns the time as packets have it.
fn captured_at() -> Time {
    Time::ZERO + calendar()
}

/// Returns the counters of a report.
fn sender_counters(info: TcpInfo) -> SenderCounters {
    let TcpInfo { busy, receive_window_limited, send_buffer_limited, round_trip, retransmitted, sending: _ } =
        info;
    SenderCounters { busy, receive_window_limited, send_buffer_limited, round_trip, retransmitted }
}

/// Returns the sockets that `process`'s descendants hold, by inode, with a process that holds each.
pub(crate) fn inodes_below(process: u32) -> BTreeMap<u32, u32> {
    let below = descendants(process).into_iter();
    below.flat_map(|process| sockets_of(process).map(move |inode| (inode, process))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relays_of_a_server_are_found_over_several_hops_and_other_programs_are_not() {
        let [front, proxy, machine, other] =
            [80, 81, 82, 83].map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port)));
        let hops = [
            ([Some(1), Some(2)], front),
            ([Some(2), Some(3)], proxy),
            ([Some(3), Some(4)], machine),
            ([Some(1), Some(5)], other),
            ([None, None], other),
        ];
        assert_eq!(with_relays(BTreeSet::from([machine]), &hops), BTreeSet::from([front, proxy, machine]));
        assert_eq!(with_relays(BTreeSet::new(), &hops), BTreeSet::new());
    }
}
