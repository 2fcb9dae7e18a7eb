//! Samples of this host during a run: the kernel's statistics of the connections, the server's CPUs if it is here,
//! and counters. From sock_diag(7) and proc(5); what cannot be read stays unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration as Elapsed;

use linux::clock::Clock;
use linux::sockets::{Sockets, State, TcpSocket};
use wire::{Duration, Time};

use crate::evidence::{CpuShare, Evidence, HostCounters, ServerUsage, SocketSamples};

/// Name of the generator's own threads: a server in the same process is told from them.
pub(crate) const THREAD_NAME: &str = "roundtrip-load";
/// Interval of the samples, unless one takes longer than a twentieth of it.
const INTERVAL: Duration = Duration::from_millis(200);

/// Interval of the snapshots of CPU times; there is one at the end.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of threads of a process that are looked at; of this process, which has the generator's, fewer.
const MAX_THREADS: [usize; 2] = [1_024, 64];

/// Samples of this host in a thread, until it is dropped.
pub(crate) struct Sampling<'scope> {
    stop: Sender<()>,
    thread: ScopedJoinHandle<'scope, Evidence>,
}

/// Starts sampling, from the first of these times to the second at most; `None` where the system has no thread.
pub(crate) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    server: SocketAddr,
    clock: Clock,
    times: [Time; 2],
) -> Option<Sampling<'scope>> {
    let (stop, stopped) = channel();
    let builder = Builder::new().name(THREAD_NAME.to_owned());
    let thread = builder.spawn_scoped(scope, move || sample(server, clock, times, &stopped)).ok()?;
    Some(Sampling { stop, thread })
}

impl Sampling<'_> {
    /// Ends it, and returns what it saw.
    pub(crate) fn finish(self) -> Evidence {
        let Self { stop, thread } = self;
        drop(stop);
        thread.join().unwrap_or_default()
    }
}

/// Samples from the first of these times to the second, or until `stop` is disconnected.
fn sample(server: SocketAddr, clock: Clock, [begins, ends]: [Time; 2], stop: &Receiver<()>) -> Evidence {
    let wait = |until: Time| stop.recv_timeout(Elapsed::from_nanos(until.since(clock.now()).as_nanos()));
    let mut sampler = Sampler::new(server);
    if wait(begins) == Err(RecvTimeoutError::Disconnected) {
        return Evidence::default();
    }
    sampler.begin(clock.now());
    loop {
        let began = clock.now();
        sampler.sample(began, began >= ends);
        let took = clock.now().since(began);
        let next = began + INTERVAL.max(Duration::from_nanos(took.as_nanos().saturating_mul(20)));
        if began >= ends || wait(next.min(ends.max(began))) == Err(RecvTimeoutError::Disconnected) {
            return sampler.evidence();
        }
    }
}

struct Sampler {
    server: SocketAddr,
    sockets: Option<Sockets>,
    samples: SocketSamples,
    /// Retransmitted segments and segments out of order of each socket.
    counts: BTreeMap<u64, [u64; 2]>,
    processes: Vec<u32>,
    began: Time,
    before: Snapshot,
    /// The last one; a server's threads may end with the run.
    last: (Time, Snapshot),
}

impl Sampler {
    fn new(server: SocketAddr) -> Self {
        let mut sockets = Sockets::for_queries().ok();
        let mut listening = BTreeSet::new();
        if let Some(sockets) = &mut sockets {
            // Without the list the server counts as remote.
            let _ = sockets.scan(Some(server.port()), |socket| {
                if is_listener(&socket, server) {
                    listening.insert(socket.inode);
                }
            });
        }
        Self {
            server,
            sockets,
            samples: SocketSamples::default(),
            counts: BTreeMap::new(),
            processes: holders(&listening),
            began: Time::ZERO,
            before: Snapshot::default(),
            last: (Time::ZERO, Snapshot::default()),
        }
    }

    fn begin(&mut self, now: Time) {
        (self.began, self.before) = (now, Snapshot::of(&self.processes));
        self.last = (now, self.before.clone());
    }

    fn sample(&mut self, now: Time, is_last: bool) {
        let (at, last) = &mut self.last;
        if is_last || now.since(*at) >= SNAPSHOT_INTERVAL {
            let snapshot = Snapshot::of(&self.processes);
            // Threads that have ended keep their times.
            let mut threads = std::mem::take(&mut last.threads);
            threads.extend(snapshot.threads);
            (*at, *last) = (now, Snapshot { threads, ..snapshot });
        }
        let Some(sockets) = &mut self.sockets else { return };
        let (server, samples, counts) = (self.server, &mut self.samples, &mut self.counts);
        samples.lists += 1;
        // A failed list is a missing sample.
        let _ = sockets.list(Some(server.port()), |socket| add(samples, counts, server, &socket));
    }

    fn evidence(self) -> Evidence {
        let mut sockets = self.samples;
        for [retransmitted, out_of_order] in self.counts.into_values() {
            sockets.retransmitted += retransmitted;
            sockets.out_of_order += out_of_order;
        }
        let (at, last) = self.last;
        let seconds = at.since(self.began).as_secs_f64();
        let server = (seconds > 0.0).then(|| usage(&self.processes, &self.before, &last, seconds)).flatten();
        Evidence { sockets, server, host: last.counters_since(&self.before, seconds), ..Evidence::default() }
    }
}

fn is_listener(socket: &TcpSocket, server: SocketAddr) -> bool {
    let ip = socket.local.ip();
    socket.state == State::Listening
        && socket.local.port() == server.port()
        && (ip.is_unspecified() || ip == server.ip().to_canonical())
}

fn add(
    samples: &mut SocketSamples,
    counts: &mut BTreeMap<u64, [u64; 2]>,
    server: SocketAddr,
    socket: &TcpSocket,
) {
    let is_client = socket.peer.port() == server.port() && socket.peer.ip() == server.ip().to_canonical();
    let is_server = socket.local.port() == server.port() && socket.peer.port() > 0;
    if is_listener(socket, server) {
        samples.max_accept_queue = samples.max_accept_queue.max(u64::from(socket.receive_queue));
        samples.backlog = samples.backlog.max(u64::from(socket.send_queue));
    } else if socket.state == State::Open && is_server {
        // A socket that no process holds was not accepted yet.
        samples.unaccepted += u64::from(socket.inode == 0);
        if socket.progress.bytes_sent > u64::from(socket.progress.mss) {
            samples.server_round_trip.add(socket.info.round_trip);
        }
        counts.entry(socket.cookie).or_default()[0] = u64::from(socket.info.retransmitted);
    } else if socket.state == State::Open && is_client {
        samples.round_trip.add(socket.info.round_trip);
        let min = socket.progress.min_round_trip.as_millis_f64();
        // A connection without a sample has the largest value.
        if min > 0.0
            && min < MAX_ROUND_TRIP_MS
            && (samples.min_round_trip_ms == 0.0 || min < samples.min_round_trip_ms)
        {
            samples.min_round_trip_ms = min;
        }
        let out_of_order = u64::from(socket.progress.received_out_of_order);
        counts.insert(socket.cookie, [u64::from(socket.info.retransmitted), out_of_order]);
    }
}

/// Longest round trip time that is believed, in milliseconds.
const MAX_ROUND_TRIP_MS: f64 = 60_000.0;

/// Processes that hold one of these sockets.
fn holders(inodes: &BTreeSet<u32>) -> Vec<u32> {
    if inodes.is_empty() {
        return Vec::new();
    }
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |process: &u32| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let mut sockets = files.filter_map(|file| socket_inode(fs::read_link(file.path()).ok()?.to_str()?));
        sockets.any(|inode| inodes.contains(&inode))
    };
    numbers.filter(holds).collect()
}

fn socket_inode(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// CPU times and counters at one time.
#[derive(Clone, Debug, Default)]
struct Snapshot {
    /// Seconds of CPU time of each process, with its ended threads.
    processes: BTreeMap<u32, f64>,
    /// Seconds on a CPU and waiting for one, of each thread.
    threads: BTreeMap<(u32, u32), CpuShare>,
    /// Seconds of all CPUs: busy.
    busy: f64,
    retransmitted: u64,
    listen_overflows: u64,
}

impl Snapshot {
    fn of(processes: &[u32]) -> Self {
        let mut snapshot = Self { busy: busy_seconds(&read("/proc/stat")), ..Self::default() };
        for process in processes {
            let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
            let threads = threads.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
            let threads: Vec<u32> = threads.collect();
            // This process has the generator's threads.
            let is_own = *process == std::process::id();
            for thread in threads.iter().filter(|_| threads.len() <= MAX_THREADS[usize::from(is_own)]) {
                let of_thread = |file: &str| read(&format!("/proc/{process}/task/{thread}/{file}"));
                if !is_own || !of_thread("comm").starts_with(THREAD_NAME) {
                    snapshot.threads.insert((*process, *thread), schedstat(&of_thread("schedstat")));
                }
            }
            if !is_own {
                snapshot.processes.insert(*process, cpu_seconds(&read(&format!("/proc/{process}/stat"))));
            }
        }
        let count = |path: &str, table, name| counter(&read(path), table, name);
        snapshot.retransmitted = count("/proc/thread-self/net/snmp", "Tcp:", "RetransSegs");
        snapshot.listen_overflows = count("/proc/thread-self/net/netstat", "TcpExt:", "ListenOverflows");
        snapshot
    }

    fn counters_since(&self, before: &Self, seconds: f64) -> HostCounters {
        HostCounters {
            cpus: std::thread::available_parallelism().map_or(1, usize::from) as f64,
            busy: if seconds > 0.0 { (self.busy - before.busy).max(0.0) / seconds } else { 0.0 },
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
            listen_overflows: self.listen_overflows.saturating_sub(before.listen_overflows),
        }
    }
}

/// CPU usage between two snapshots; `None` if no process is known.
fn usage(processes: &[u32], before: &Snapshot, after: &Snapshot, seconds: f64) -> Option<ServerUsage> {
    let (mut of_processes, mut busiest) = (BTreeMap::<u32, CpuShare>::new(), CpuShare::default());
    for ((process, thread), now) in &after.threads {
        let earlier = before.threads.get(&(*process, *thread)).copied().unwrap_or_default();
        let share = CpuShare {
            used: (now.used - earlier.used).max(0.0) / seconds,
            waited: (now.waited - earlier.waited).max(0.0) / seconds,
        };
        let whole = of_processes.entry(*process).or_default();
        (whole.used, whole.waited) = (whole.used + share.used, whole.waited + share.waited);
        if share.demand() > busiest.demand() {
            busiest = share;
        }
    }
    for (process, now) in &after.processes {
        let earlier = before.processes.get(process).copied().unwrap_or_default();
        // Threads that ended are in the process's time alone.
        let whole = of_processes.entry(*process).or_default();
        whole.used = whole.used.max((now - earlier) / seconds);
    }
    let (pid, _) = of_processes.iter().max_by(|one, other| one.1.used.total_cmp(&other.1.used))?;
    let sum = |part: fn(&CpuShare) -> f64| of_processes.values().map(part).sum();
    Some(ServerUsage {
        program: read(&format!("/proc/{pid}/comm")).trim_end().replace(char::is_control, "?"),
        pid: *pid,
        processes: processes.len() as u64,
        all: CpuShare { used: sum(|share| share.used), waited: sum(|share| share.waited) },
        busiest,
        cpus: allowed_cpus(&read(&format!("/proc/{pid}/status"))),
    })
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// CPU time of the calling thread and its waiting for a CPU, in seconds.
pub(crate) fn own_thread() -> CpuShare {
    schedstat(&read("/proc/thread-self/schedstat"))
}

/// The two times of `/proc/PID/schedstat`, in seconds.
fn schedstat(text: &str) -> CpuShare {
    let mut numbers =
        text.split_whitespace().map(|word| word.parse::<f64>().map_or(0.0, |nanos| nanos / 1e9));
    CpuShare { used: numbers.next().unwrap_or(0.0), waited: numbers.next().unwrap_or(0.0) }
}

/// Ticks of a second in /proc (USER_HZ), the same on every architecture that Linux has today.
const TICKS: f64 = 100.0;

/// User and system time of `/proc/PID/stat`, in seconds; the name before them may contain spaces and parentheses.
fn cpu_seconds(text: &str) -> f64 {
    let Some((_, rest)) = text.rsplit_once(')') else { return 0.0 };
    let times = rest.split_whitespace().skip(11).take(2);
    times.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// Time in which CPUs were not idle, of `/proc/stat`, in seconds.
fn busy_seconds(text: &str) -> f64 {
    let Some(line) = text.lines().find_map(|line| line.strip_prefix("cpu ")) else { return 0.0 };
    // user nice system idle iowait irq softirq steal
    let times = line.split_whitespace().take(8).enumerate();
    let busy = times.filter(|(index, _)| !matches!(index, 3 | 4));
    busy.filter_map(|(_, ticks)| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// A counter of `/proc/net/snmp` or `/proc/net/netstat`: a line of names, and a line of values.
fn counter(text: &str, table: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(table));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.find(|(found, _)| *found == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// Number of CPUs in `Cpus_allowed_list` of `/proc/PID/status`; that of this process if it is unknown.
fn allowed_cpus(text: &str) -> f64 {
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.trim().parse::<u32>().ok()?.checked_sub(first.trim().parse().ok()?)? + 1)
    };
    let own = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let allowed: u32 = list.split(',').filter_map(count).sum();
    if allowed == 0 { own } else { f64::from(allowed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc_are_read_and_unreadable_ones_are_zero() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 5 1 1";
        assert_eq!((cpu_seconds(stat), cpu_seconds("7 (a"), cpu_seconds("")), (3.0, 0.0, 0.0));
        assert_eq!(busy_seconds("cpu  100 0 100 700 100 0 50 50 9 9\ncpu0 1"), 3.0);
        assert_eq!(busy_seconds("cpu0 1 2"), 0.0);
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 22 333\nIpExt: A\n";
        assert_eq!(counter(text, "TcpExt:", "ListenOverflows"), 22);
        assert_eq!((counter(text, "TcpExt:", "Other"), counter("", "Tcp:", "RetransSegs")), (0, 0));
        assert_eq!(allowed_cpus("Cpus_allowed_list:\t0,2-4\n"), 4.0);
        assert!(allowed_cpus("Cpus_allowed_list:\t4-2\n") >= 1.0);
        assert_eq!(schedstat("2000000000 500000000 9\n"), CpuShare { used: 2.0, waited: 0.5 });
        assert_eq!((socket_inode("socket:[12]"), socket_inode("pipe:[1]")), (Some(12), None));
    }

    #[test]
    fn usage_counts_threads_that_came_and_went() {
        let cpu = |used| CpuShare { used, waited: 0.0 };
        let before = Snapshot {
            processes: BTreeMap::from([(1, 1.0)]),
            threads: BTreeMap::from([((1, 1), cpu(1.0))]),
            ..Snapshot::default()
        };
        let after = Snapshot {
            processes: BTreeMap::from([(1, 3.0)]),
            threads: BTreeMap::from([((1, 1), cpu(1.0)), ((1, 2), cpu(0.5))]),
            ..Snapshot::default()
        };
        let usage = usage(&[1], &before, &after, 2.0).unwrap();
        assert_eq!((usage.all.used, usage.busiest.used), (1.0, 0.25));
        assert!(super::usage(&[], &Snapshot::default(), &Snapshot::default(), 1.0).is_none());
    }

    #[test]
    fn a_listener_of_this_process_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let sampler = Sampler::new(listener.local_addr().unwrap());
        assert_eq!(sampler.processes, [std::process::id()]);
    }
}
