//! One server under one plan of SURGE's users, and several such runs concurrently.
//!
//! Concurrent runs share the host's CPUs and nothing else. A server's capacity is therefore derived from its own CPU
//! time, never from idle time of this host.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use dhttp_proto::ClientConfig;
use load::bottleneck;
use load::config::PORTS;
use load::record::Channel;
use load::{Config, Record, Shard, Target};
use tempfile::TempDir;
use testbed::emulator::Scheduling;
use wire::Duration;
use workload::plan::{Plan, PlanSpec, contents, path};
use workload::schedule::Schedule;

use super::Error;
use super::hosts::Hosts;
use super::program;
use super::server::{self, ServerKind, ServerOptions};
use super::transport::Transport;

/// A run of the benchmark: server, transport and number of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BenchmarkRun {
    /// The server.
    pub kind: ServerKind,
    /// Idle timeout of the server's connections, in seconds; 0: it closes after each response.
    pub idle_s: u64,
    /// Maximum number of connections between it and a user.
    pub connections: usize,
    /// Whether users close theirs after each page ("altruistic").
    pub closes_early: bool,
    /// Transport of the users.
    pub how: Transport,
    /// User equivalents.
    pub users: u32,
}

/// Length of a run, and the users' timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Duration of a run.
    pub lasts: Duration,
    /// Timeout: a request without a response in this time has failed.
    pub timeout: Duration,
    /// Duration of a run behind a bottleneck: packets lost from UDP are few, and must be counted.
    pub fills: Duration,
    /// Numbers of users, ascending.
    pub users: &'static [u32],
}

impl Preset {
    /// Short runs: minutes in total.
    pub const QUICK: Self = Self {
        lasts: Duration::from_secs(20),
        timeout: Duration::from_secs(20),
        fills: Duration::from_secs(60),
        users: &[200, 600, 1_000],
    };
    /// The paper's two minutes for each run: an hour or two in total.
    pub const FULL: Self = Self {
        lasts: Duration::from_secs(120),
        timeout: Duration::from_secs(60),
        fills: Duration::from_secs(120),
        users: &[200, 400, 600, 800, 1_000],
    };
}

/// Outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Responses per second of the run's duration.
    pub per_second: f64,
    /// Mean milliseconds from the intended time of a request to its response; a failed one counts with the timeout.
    pub mean_ms: f64,
    /// Upper bound of the generator's share of the mean: its lateness in sending, and as much again in receiving.
    pub own_ms: f64,
    /// Median latency, in milliseconds.
    pub median_ms: f64,
    /// 99.9th percentile of the latency, in milliseconds.
    pub p999_ms: f64,
    /// Requests without a response.
    pub failed: u64,
    /// Share of responses that came in a datagram.
    pub by_udp: f64,
    /// Share of responses whose request was in the first packet of a connection.
    pub early: f64,
    /// Whether the latencies are limited by the generator ([`bottleneck::is_void`]).
    pub latency_is_void: bool,
    /// Whether the throughput is limited by it, too: the generator was late by more than a tenth of the interval between a
    /// user's requests.
    pub throughput_is_void: bool,
    /// Connections opened, by either end.
    pub connections: u64,
    /// Milliseconds of CPU time on the server's host for each response, its kernel's included.
    pub processor_ms: f64,
}

impl Outcome {
    /// Responses per second; `None` where the generator limits it.
    pub fn throughput(&self) -> Option<f64> {
        (!self.throughput_is_void).then_some(self.per_second)
    }

    /// The mean latency in milliseconds; `None` where the generator limits it.
    pub fn latency_ms(&self) -> Option<f64> {
        (!self.latency_is_void).then_some(self.mean_ms)
    }

    /// CPU time on the server's host for each response, in milliseconds; `None` where fewer requests came than planned.
    pub fn server_ms(&self) -> Option<f64> {
        (!self.throughput_is_void).then_some(self.processor_ms)
    }
}

/// Maximum number of concurrent runs: each needs little CPU time, and has some thousand files open.
const MAX_CONCURRENT_RUNS: usize = 5;

/// Maximum number of concurrent runs with encryption: users and server of one may take a CPU each for their handshakes.
fn encrypted_beside() -> usize {
    thread::available_parallelism()
        .map_or(1, |processors| (processors.get() / 2).clamp(1, MAX_CONCURRENT_RUNS))
}

/// Runs all of them; `progress` gets the number of finished ones.
///
/// # Errors
/// The first run that failed, with the reason.
pub fn run(
    benchmarks: &[BenchmarkRun],
    extent: Preset,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Outcome>, Error> {
    let mut sites = Vec::new();
    for users in
        extent.users.iter().filter(|users| benchmarks.iter().any(|benchmark| benchmark.users == **users))
    {
        sites.push((*users, Arc::new(Site::new(*users, extent.lasts)?)));
    }
    let outcomes = Mutex::new(vec![None; benchmarks.len()]);
    let run_one = |number: usize| -> Result<(), Error> {
        let benchmark = benchmarks[number];
        let Some((_, site)) = sites.iter().find(|(users, _)| *users == benchmark.users) else {
            return Ok(());
        };
        let outcome = one(benchmark, extent, site)?;
        if let Ok(mut outcomes) = outcomes.lock() {
            outcomes[number] = Some(outcome);
            progress(outcomes.iter().flatten().count());
        }
        Ok(())
    };
    let mut order: Vec<usize> = (0..benchmarks.len()).collect();
    // Runs are taken from the end, so the longest start first: servers that may not keep up.
    order.sort_by_key(|number| (benchmarks[*number].kind == ServerKind::Prefork, benchmarks[*number].users));
    let (encrypted, plain) =
        order.into_iter().partition(|number| benchmarks[*number].how.security().is_some());
    run_concurrently(plain, MAX_CONCURRENT_RUNS, &run_one)?;
    run_concurrently(encrypted, encrypted_beside(), &run_one)?;
    let outcomes = outcomes.into_inner().unwrap_or_default();
    Ok(outcomes.into_iter().flatten().collect())
}

/// Runs those whose server is installed; the others have no outcome, and `missing` gets the error of each server once.
///
/// # Errors
/// As for [`run`].
pub fn run_installed(
    benchmarks: &[BenchmarkRun],
    extent: Preset,
    progress: &(dyn Fn(usize) + Sync),
    missing: &dyn Fn(&Error),
) -> Result<Vec<Option<Outcome>>, Error> {
    let kinds: BTreeSet<ServerKind> = benchmarks.iter().map(|benchmark| benchmark.kind).collect();
    kinds.iter().filter_map(|kind| kind.available().err()).for_each(|error| missing(&error));
    let is_installed = |benchmark: &BenchmarkRun| benchmark.kind.available().is_ok();
    let installed: Vec<BenchmarkRun> = benchmarks.iter().copied().filter(is_installed).collect();
    let mut outcomes = run(&installed, extent, progress)?.into_iter();
    let outcome = |benchmark: &BenchmarkRun| if is_installed(benchmark) { outcomes.next() } else { None };
    Ok(benchmarks.iter().map(outcome).collect())
}

/// Runs these from the last to the first, at most `beside` concurrently, until one fails.
fn run_concurrently(
    pending: Vec<usize>,
    worker_count: usize,
    run_one: &(dyn Fn(usize) -> Result<(), Error> + Sync),
) -> Result<(), Error> {
    let pending = Mutex::new(pending);
    let next = || pending.lock().ok()?.pop();
    let work = || -> Result<(), Error> {
        while let Some(number) = next() {
            run_one(number)?;
        }
        Ok(())
    };
    let ends: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..worker_count).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a benchmark does not panic")).collect()
    });
    ends.into_iter().collect()
}

/// A plan, with its files in a directory.
pub struct Site {
    /// The plan.
    pub plan: Plan,
    directory: TempDir,
}

impl Site {
    /// The site of SURGE's plan for this number of users.
    pub(super) fn new(users: u32, lasts: Duration) -> Result<Self, Error> {
        let spec = PlanSpec { schedule: Schedule::Users(users), duration: lasts, ..PlanSpec::default() };
        Self::of(spec.plan().expect("two thousand files for some hundred users are no plan beyond bounds"))
    }

    /// The site of this plan.
    ///
    /// # Errors
    /// The disk's error.
    pub fn of(plan: Plan) -> Result<Self, Error> {
        let doing = "write a site's files";
        let directory = program::directory().map_err(Error::system(doing))?;
        for (file, size) in (0..).zip(&plan.files) {
            let contents = contents(plan.spec.seed, file, *size);
            fs::write(directory.path().join(path(file)), contents).map_err(Error::system(doing))?;
        }
        Ok(Self { plan, directory })
    }

    /// The directory of the files, which is removed with the site.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

fn one(benchmark: BenchmarkRun, extent: Preset, site: &Arc<Site>) -> Result<Outcome, Error> {
    let BenchmarkRun { kind, idle_s, connections, closes_early, how, users } = benchmark;
    let hosts = Hosts::new()?;
    how.prepare(&hosts)?;
    let (served_site, progress) = (Arc::clone(site), ServerOptions { idle_s, per_client: connections, how });
    let running = hosts.server.run(move || server::start(kind, progress, served_site.directory()))?;
    let config = Config {
        protocol: how.protocol(kind, idle_s),
        dhttp: ClientConfig::paper(),
        connections,
        ports: PORTS,
        shard: Shard::WHOLE,
        closes_early,
        has_early: how == Transport::Http3Early,
        fast_open: how == Transport::FastOpen,
        idle_timeout: None,
        threads: 1,
        users,
        timeout: extent.timeout,
        at: None,
    };
    let target = Target {
        address: server::address(),
        host: "server".to_owned(),
        directory: "/".to_owned(),
        security: how.security(),
    };
    let (there, before) = (Arc::clone(site), hosts.spent_s());
    let record = hosts.users.start(move || {
        // Concurrent runs share CPUs: a user's request must not wait for another run's server. A refusal shows as lateness.
        let _ = Scheduling::real_time();
        load::run::run(&there.plan, &target, &config, &mut |_| ())
    });
    let record = record.wait()?;
    let spent_s = hosts.spent_s() - before;
    hosts.server.start(move || drop(running)).wait()?;
    let record = record?;
    let early = how.early(&hosts, &record)?;
    Ok(Outcome { early, ..outcome(&record, extent, users, spent_s) })
}

/// Maximum lateness of the generator, as a share of the interval between a user's requests.
const OWN_SHARE: f64 = 0.1;

fn outcome(record: &Record, extent: Preset, users: u32, spent_s: f64) -> Outcome {
    let Preset { lasts, timeout, fills: _, users: _ } = extent;
    let seconds = usize::try_from(lasts.as_nanos() / 1_000_000_000).unwrap_or(usize::MAX);
    let in_time: u64 = record.seconds.iter().take(seconds).map(|second| second.responses).sum();
    let (responses, failed) = (record.responses().max(1) as f64, record.failures() as f64);
    let waited_ms = record.intended.mean() / 1e6 * responses + timeout.as_millis_f64() * failed;
    let per_second = in_time as f64 / lasts.as_secs_f64();
    let (asks_every_s, late_s) = (f64::from(users) / per_second, 2.0 * record.lateness.mean() / 1e9);
    let quantile = |share| record.intended.value_at_quantile(share) as f64 / 1e6;
    Outcome {
        per_second,
        mean_ms: waited_ms / (responses + failed),
        own_ms: late_s * 1e3,
        median_ms: quantile(0.5),
        p999_ms: quantile(0.999),
        failed: record.failures(),
        by_udp: record.channels.get(&Channel::Udp).copied().unwrap_or(0) as f64 / responses,
        early: 0.0,
        latency_is_void: bottleneck::is_void(record),
        throughput_is_void: late_s > OWN_SHARE * asks_every_s,
        connections: record.connections,
        processor_ms: spent_s * 1e3 / responses,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "runs two servers for half a minute: as root"]
    fn paper_the_modified_prefork_server_is_as_fast_as_one_with_a_short_timeout() {
        let run_of = |kind, idle_s| BenchmarkRun {
            kind,
            idle_s,
            connections: 3,
            closes_early: false,
            how: Transport::Usual,
            users: 1_000,
        };
        let benchmarks = [
            run_of(ServerKind::Prefork, 1),
            run_of(ServerKind::PreforkModified, 15),
            run_of(ServerKind::Prefork, 15),
        ];
        let outcomes = run(&benchmarks, Preset::QUICK, &|_| ()).unwrap();
        for (benchmark, outcome) in benchmarks.iter().zip(&outcomes) {
            println!("{benchmark:?}: {outcome:?}");
        }
        let [short, modified, usual] = [0, 1, 2].map(|number| outcomes[number].per_second);
        assert!(modified > 0.95 * short && modified > 1.5 * usual, "{modified} and {short}, {usual}");
    }

    #[test]
    #[ignore = "runs servers of others for some minutes: as root, with Apache and nginx"]
    fn all_servers_respond_to_the_papers_users() {
        let kinds = [
            ServerKind::Prefork,
            ServerKind::Event,
            ServerKind::Nginx,
            ServerKind::NginxFew,
            ServerKind::Hyper,
            ServerKind::Roundtrip,
            ServerKind::Dhttp,
        ];
        let mut benchmarks = Vec::new();
        for kind in kinds {
            for idle_s in [0, 1, 15] {
                benchmarks.push(BenchmarkRun {
                    kind,
                    idle_s,
                    connections: 3,
                    closes_early: false,
                    how: Transport::Usual,
                    users: 1_000,
                });
            }
        }
        let outcomes = run(&benchmarks, Preset::QUICK, &|_| ()).unwrap();
        for (benchmark, outcome) in benchmarks.iter().zip(outcomes) {
            println!("{benchmark:?}: {outcome:?}");
            assert!(outcome.per_second > 0.0);
        }
    }
}
