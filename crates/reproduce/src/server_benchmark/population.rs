//! Users on one to three hosts behind a saturated bottleneck, with a competing bulk download: figure 13 and Table I of
//! `papers/dhttp#section-vi-b`, measured.
//!
//! Not the network ([`BottleneckHosts`]), nor the simulated dumbbell (`simulate::dumbbell`), which has the same bottleneck.
//! Users are those of `benchmark_run`, a hundred on each host, and DHTTP's client is the paper's, which retries after 5 and
//! 10 s.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration as Elapsed;

use dhttp_proto::ClientConfig;
use load::config::PORTS;
use load::{Config, Protocol, Record, Shard, Target, bottleneck};
use testbed::Namespace;
use wire::Duration;

use super::Error;
use super::benchmark_run::Site;
use super::bottleneck_hosts::{BottleneckHosts, LinkStats};
use super::hosts::SERVER;
use super::server::{self, DhttpCounters, ServerKind, ServerOptions};
use super::transport::Transport;

/// Users on some hosts, with one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Population {
    /// The server, which implies the protocol.
    pub kind: ServerKind,
    /// Hosts with a hundred users each, from 1 to 3.
    pub hosts: u32,
    /// Whether a bulk download competes, from the server's host and over the same bottleneck.
    pub with_download: bool,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Responses per second of the plan's duration.
    pub per_second: f64,
    /// Mean milliseconds from the intended time of a request to its response; a failed one counts with the timeout.
    pub mean_ms: f64,
    /// Median latency of the responses, in milliseconds.
    pub median_ms: f64,
    /// Requests without a response.
    pub failed: u64,
    /// The server's counters.
    pub counted: DhttpCounters,
    /// Bits per second of bodies that the users received.
    pub users_bits: f64,
    /// Bits per second of the download, after its first seconds.
    pub beside_bits: f64,
    /// Share of the packets towards the users that the bottleneck's full queue dropped.
    pub dropped_share: f64,
    /// 99.9th percentile of the lateness of the latest link's packets, in milliseconds.
    pub link_late_ms: f64,
    /// The component that could not keep up, if any: then no figure here is the server's.
    pub void: Option<VoidReason>,
}

/// Reason why a run is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoidReason {
    /// Users did not send requests on time ([`bottleneck::is_void`]).
    Generator,
    /// The link did not deliver packets on time.
    Link,
}

/// "Two SURGE processes with 50 threads on each client machine."
const USERS: u32 = 100;
/// "The persistent connection timeout for both servers is 5 seconds."
const SERVER_OPTIONS: ServerOptions = ServerOptions { idle_s: 5, per_client: 3, how: Transport::Usual };
/// Timeout: a request without a response in this time has failed. Three times the paper's.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The download counts from this time on, as in the simulated dumbbell.
const SETTLED: Duration = Duration::from_secs(10);
/// Maximum number of concurrent runs: a few hundred packets a second each, and four threads for links that must not be late.
const MAX_CONCURRENT_RUNS: usize = 2;

/// Runs all of them for the duration `lasts`; `progress` gets the number of finished ones.
///
/// # Errors
/// The first run that failed, with the reason.
pub fn run(
    populations: &[Population],
    lasts: Duration,
    progress: &dyn Fn(usize),
) -> Result<Vec<Outcome>, Error> {
    let mut outcomes = Vec::new();
    for some in populations.chunks(MAX_CONCURRENT_RUNS) {
        let ends: Vec<_> = thread::scope(|scope| {
            let runs: Vec<_> =
                some.iter().map(|population| scope.spawn(|| one(*population, lasts))).collect();
            runs.into_iter().map(|run| run.join().expect("a run does not panic")).collect()
        });
        for end in ends {
            outcomes.push(end?);
        }
        progress(outcomes.len());
    }
    Ok(outcomes)
}

fn one(population: Population, lasts: Duration) -> Result<Outcome, Error> {
    let Population { kind, hosts, with_download } = population;
    let site = Arc::new(Site::new(USERS * hosts, lasts)?);
    let line = BottleneckHosts::new(hosts as usize)?;
    let served_site = Arc::clone(&site);
    let running = line.server.run(move || server::start(kind, SERVER_OPTIONS, served_site.directory()))?;
    let download = with_download.then(|| BulkDownload::start(&line)).transpose()?;
    let mut asking = Vec::new();
    for (number, host) in (1..).zip(&line.machines) {
        let (site, config) = (Arc::clone(&site), config(kind, Shard::new(number, hosts)));
        let target = Target {
            address: server::address(),
            host: "server".to_owned(),
            directory: "/".to_owned(),
            security: None,
        };
        asking.push(host.start(move || load::run::run(&site.plan, &target, &config, &mut |_| ())));
    }
    let beside_bits = download.map_or(0.0, |download| download.end(lasts));
    let mut records = Vec::new();
    for requested in asking {
        records.push(requested.wait()??);
    }
    let counted = running.counted();
    line.server.start(move || drop(running)).wait()?;
    let carried = line.end()?;
    Ok(Outcome { counted, beside_bits, ..outcome(records, lasts, carried) })
}

fn config(kind: ServerKind, part: Option<Shard>) -> Config {
    Config {
        protocol: if kind == ServerKind::Dhttp { Protocol::Dhttp } else { Protocol::Pipelined },
        dhttp: ClientConfig::paper(),
        connections: SERVER_OPTIONS.per_client,
        ports: PORTS,
        closes_early: false,
        fast_open: false,
        has_early: false,
        idle_timeout: None,
        threads: 1,
        shard: part.unwrap_or(Shard::WHOLE),
        users: USERS,
        timeout: TIMEOUT,
        at: None,
    }
}

fn outcome(records: Vec<Record>, lasts: Duration, carried: LinkStats) -> Outcome {
    let LinkStats { dropped_share, late, is_late } = carried;
    let is_generators = || records.iter().any(bottleneck::is_void).then_some(VoidReason::Generator);
    let void = is_late.then_some(VoidReason::Link).or_else(is_generators);
    let mut whole = Record::default();
    records.into_iter().for_each(|record| whole.join(record));
    let seconds = usize::try_from(lasts.as_nanos() / 1_000_000_000).unwrap_or(usize::MAX);
    let in_time = || whole.seconds.iter().take(seconds);
    let (responses, failed) = (whole.responses() as f64, whole.failures());
    let waited_ms = whole.intended.mean() / 1e6 * responses + TIMEOUT.as_millis_f64() * failed as f64;
    Outcome {
        per_second: in_time().map(|second| second.responses).sum::<u64>() as f64 / lasts.as_secs_f64(),
        mean_ms: waited_ms / (responses + failed as f64).max(1.0),
        median_ms: whole.intended.value_at_quantile(0.5) as f64 / 1e6,
        failed,
        counted: DhttpCounters::default(),
        users_bits: in_time().map(|second| second.bytes).sum::<u64>() as f64 * 8.0 / lasts.as_secs_f64(),
        beside_bits: 0.0,
        dropped_share,
        link_late_ms: late.as_millis_f64(),
        void,
    }
}

/// A bulk download of unlimited length.
struct BulkDownload {
    received: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    sink: thread::JoinHandle<()>,
}

/// Port of the download's source.
const PORT: u16 = 81;

impl BulkDownload {
    fn start(line: &BottleneckHosts) -> Result<Self, Error> {
        let address = SocketAddr::from((SERVER, PORT));
        let (received, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        // The thread ends when its client has disconnected, and is not joined.
        spawned(&line.server, move || {
            let (mut stream, _) = TcpListener::bind(address)?.accept()?;
            while stream.write_all(&[0; 65_536]).is_ok() {}
            Ok(())
        })?;
        let (count, over) = (Arc::clone(&received), Arc::clone(&is_over));
        let sink = spawned(&line.download_host, move || {
            let mut stream = connected(address)?;
            stream.set_read_timeout(Some(Elapsed::from_secs(1)))?;
            let mut buffer = vec![0; 65_536];
            while !over.load(Ordering::Relaxed) {
                match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(length) => drop(count.fetch_add(length as u64, Ordering::Relaxed)),
                    // Other flows fill the link for a while.
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })?;
        Ok(Self { received, is_over, sink })
    }

    /// Mean bits per second between [`SETTLED`] and `lasts`.
    fn end(self, lasts: Duration) -> f64 {
        let Self { received, is_over, sink } = self;
        sleep(SETTLED);
        let before = received.load(Ordering::Relaxed);
        let counted = lasts.saturating_sub(SETTLED).max(Duration::from_secs(1));
        sleep(counted);
        let bytes = received.load(Ordering::Relaxed) - before;
        is_over.store(true, Ordering::Relaxed);
        // A failed download has received nothing, and is reported as 0.
        let _ = sink.join();
        bytes as f64 * 8.0 / counted.as_secs_f64()
    }
}

/// Starts a thread on a host; it ends by itself.
fn spawned(
    host: &Namespace,
    job: impl FnOnce() -> std::io::Result<()> + Send + 'static,
) -> Result<thread::JoinHandle<()>, Error> {
    host.run(move || {
        let thread = thread::Builder::new().name("download".to_owned());
        thread.spawn(move || drop(job())).map_err(Error::system("start a download"))
    })
}

/// Retries, because the source may not listen yet.
fn connected(address: SocketAddr) -> std::io::Result<TcpStream> {
    for _ in 0..100 {
        if let Ok(stream) = TcpStream::connect(address) {
            return Ok(stream);
        }
        sleep(Duration::from_millis(10));
    }
    TcpStream::connect(address)
}

#[expect(clippy::disallowed_methods, reason = "a download goes on for a time of the real world's")]
fn sleep(span: Duration) {
    thread::sleep(Elapsed::from_nanos(span.as_nanos()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "fills a line for five minutes: as root, with Apache"]
    fn users_and_a_download_share_a_bottleneck() {
        let mut populations = Vec::new();
        for kind in [ServerKind::Dhttp, ServerKind::Prefork] {
            populations.extend([1, 2, 3].map(|hosts| Population { kind, hosts, with_download: true }));
        }
        populations.sort_unstable_by_key(|population| population.hosts);
        let outcomes = run(&populations, Duration::from_secs(60), &|_| ()).unwrap();
        for (population, outcome) in populations.iter().zip(outcomes) {
            println!("{population:?}: {outcome:?}");
            assert!(outcome.per_second > 0.0);
        }
    }
}
