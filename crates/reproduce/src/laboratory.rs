//! Values that are not computed from the papers alone, or take long: kernel measurements, log counts, runs of
//! populations. Each is computed once, for any number of cells.
//!
//! Not the laboratory and not the logs: the caller of `reproduce` supplies them, or none.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;

use measure::Peers;
use scenario::Scenario;
use simulate::dumbbell::{self, DumbbellConfig, DumbbellResult};
use trace::Metrics;
use wire::{Duration, Seed};

use super::rabinovich::logs::{Log, LogCounts};
use crate::server_benchmark::benchmark_run::{BenchmarkRun, Outcome};
use crate::server_benchmark::population::{self, Population};

/// Runs a scenario with these programs. Returns `None` if they are not installed; the error is a sentence.
pub type Measure<'a> = dyn FnMut(&Scenario, Peers) -> Result<Option<KernelResult>, String> + 'a;

/// Runs the server benchmark. Returns an outcome for each run, `None` where its server is not installed; the error is a
/// sentence.
pub type RunBenchmark<'a> = dyn FnMut(&[BenchmarkRun]) -> Result<Vec<Option<Outcome>>, String> + 'a;

/// Runs users behind a bottleneck. Returns `None` if a server is not installed; the error is a sentence.
pub type RunPopulations<'a> =
    dyn FnMut(&[Population]) -> Result<Option<Vec<population::Outcome>>, String> + 'a;

/// The server benchmark.
pub struct Benchmarks<'a> {
    /// Runs servers under users.
    pub run: &'a mut RunBenchmark<'a>,
    /// Runs servers behind a bottleneck.
    pub gather: &'a mut RunPopulations<'a>,
    /// Numbers of users of each server, ascending.
    pub users: &'static [u32],
}

/// Outcomes of the server benchmark.
#[derive(Clone, Debug, Default)]
pub struct BenchmarkResults {
    /// Numbers of users of each server, ascending.
    pub users: &'static [u32],
    found: Vec<(BenchmarkRun, Option<Outcome>)>,
    gathered: Vec<(Population, population::Outcome)>,
}

impl BenchmarkResults {
    /// Outcome behind a bottleneck; `None` where there was no run, or it was void.
    pub fn population(&self, population: Population) -> Option<&population::Outcome> {
        let found = self.gathered.iter().find(|(known, _)| *known == population);
        found.map(|(_, outcome)| outcome).filter(|outcome| outcome.void.is_none())
    }

    /// Whether this run was done, void or not.
    fn is_done(&self, benchmark: &BenchmarkRun) -> bool {
        self.found.iter().any(|(known, _)| known == benchmark)
    }

    /// Outcome of this run; `None` where there was none, or its server is not installed.
    pub fn of(&self, benchmark: &BenchmarkRun) -> Option<&Outcome> {
        let found = self.found.iter().find(|(known, _)| known == benchmark);
        found.and_then(|(_, outcome)| outcome.as_ref())
    }
}

/// Result of the kernel.
#[derive(Clone, Debug)]
pub struct KernelResult {
    /// Means over all runs.
    pub metrics: Metrics,
    /// Mean processing time of a response: the scenario's time plus the host's own.
    pub processing: Duration,
}

/// A laboratory, if there is one, with its results so far.
pub struct Laboratory<'a> {
    measure: Option<&'a mut Measure<'a>>,
    found: Vec<(Scenario, Peers, Option<KernelResult>)>,
    logs: Option<PathBuf>,
    counted: CountedLogs,
    dumbbells: Vec<(DumbbellConfig, Vec<DumbbellResult>)>,
    contests: Option<Benchmarks<'a>>,
    benchmarks: BenchmarkResults,
}

/// Counts of all requested logs.
#[derive(Debug, Default)]
pub struct CountedLogs(Vec<(Log, LogCounts)>);

impl CountedLogs {
    /// Counts of this log; `None` where it was not requested, or is not available.
    pub fn of(&self, log: Log) -> Option<&LogCounts> {
        self.0.iter().find(|(counted, _)| *counted == log).map(|(_, counts)| counts)
    }
}

/// Simulates each seed, as many at a time as there are CPUs.
fn over_seeds(config: &DumbbellConfig, seeds: u64) -> Result<Vec<DumbbellResult>, simulate::Error> {
    let seeds: Vec<u64> = (1..=seeds).collect();
    let cpus = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let run = |seeds: &[u64]| {
        let results = seeds.iter().map(|seed| dumbbell::run(config, Seed::new(*seed)));
        results.collect::<Result<Vec<_>, _>>()
    };
    let parts: Result<Vec<_>, _> = thread::scope(|scope| {
        let parts = seeds.chunks(seeds.len().div_ceil(cpus).max(1));
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || run(part))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a simulation does not panic")).collect()
    });
    Ok(parts?.concat())
}

impl<'a> Laboratory<'a> {
    /// A laboratory without results.
    pub fn new(
        measure: Option<&'a mut Measure<'a>>,
        logs: Option<PathBuf>,
        contests: Option<Benchmarks<'a>>,
    ) -> Self {
        let (found, dumbbells) = (Vec::new(), Vec::new());
        let users: &[u32] = contests.as_ref().map_or(&[], |contests| contests.users);
        let benchmarks = BenchmarkResults { users, ..BenchmarkResults::default() };
        Self { measure, found, logs, counted: CountedLogs::default(), dumbbells, contests, benchmarks }
    }

    /// Numbers of users of each server; empty where the benchmark cannot run.
    pub fn users(&self) -> &'static [u32] {
        self.benchmarks.users
    }

    /// Outcomes of these runs and of earlier ones; `None` where the benchmark cannot run.
    ///
    /// # Errors
    /// The reason why they could not run.
    pub fn benchmarks(&mut self, requested: &[BenchmarkRun]) -> Result<Option<&BenchmarkResults>, String> {
        let Some(Benchmarks { run, gather: _, users: _ }) = &mut self.contests else { return Ok(None) };
        let new: Vec<BenchmarkRun> =
            requested.iter().filter(|benchmark| !self.benchmarks.is_done(benchmark)).copied().collect();
        if !new.is_empty() {
            let outcomes = run(&new)?;
            self.benchmarks.found.extend(new.into_iter().zip(outcomes));
        }
        Ok(Some(&self.benchmarks))
    }

    /// Outcomes of these runs behind a bottleneck and of earlier ones; `None` where they cannot run.
    ///
    /// # Errors
    /// The reason why they could not run.
    pub fn populations(&mut self, requested: &[Population]) -> Result<Option<&BenchmarkResults>, String> {
        let Some(Benchmarks { run: _, gather, users: _ }) = &mut self.contests else { return Ok(None) };
        let is_known =
            |population: &Population| self.benchmarks.gathered.iter().any(|(known, _)| known == population);
        let new: Vec<Population> =
            requested.iter().filter(|population| !is_known(population)).copied().collect();
        if !new.is_empty() {
            let Some(outcomes) = gather(&new)? else {
                self.contests = None;
                return Ok(None);
            };
            self.benchmarks.gathered.extend(new.into_iter().zip(outcomes));
        }
        Ok(Some(&self.benchmarks))
    }

    /// Simulated outcomes of users of a server, for the seeds from 1 to `seeds`.
    ///
    /// # Errors
    /// The simulator's error.
    pub fn dumbbells(&mut self, config: &DumbbellConfig, seeds: u64) -> Result<&[DumbbellResult], String> {
        let count = usize::try_from(seeds).unwrap_or(usize::MAX);
        let is_it = |known: &(DumbbellConfig, Vec<_>)| known.0 == *config && known.1.len() >= count;
        let index = match self.dumbbells.iter().position(is_it) {
            Some(index) => index,
            None => {
                let results = over_seeds(config, seeds).map_err(|error| error.to_string())?;
                self.dumbbells.push((*config, results));
                self.dumbbells.len() - 1
            }
        };
        Ok(&self.dumbbells[index].1[..count])
    }

    /// Counts of a log; `None` where logs are not available.
    ///
    /// # Errors
    /// The reason why it could not be counted.
    pub fn counts(&mut self, log: Log) -> Result<Option<&LogCounts>, String> {
        if self.counted.of(log).is_none() {
            let Some(counted) = log.count(self.logs.as_deref())? else { return Ok(None) };
            self.counted.0.push((log, counted));
        }
        Ok(self.counted.of(log))
    }

    /// Log counts and server benchmark runs, for drawing.
    pub fn into_results(self) -> (CountedLogs, BenchmarkResults) {
        (self.counted, self.benchmarks)
    }

    /// Result of our own programs for this scenario; `None` without a laboratory.
    ///
    /// # Errors
    /// The laboratory's error.
    pub fn found(&mut self, scenario: &Scenario) -> Result<Option<KernelResult>, String> {
        self.found_by(Peers::default(), scenario)
    }

    /// Result of these programs for it; `None` without a laboratory, or where they are not installed.
    ///
    /// # Errors
    /// The laboratory's error.
    pub fn found_by(&mut self, peers: Peers, scenario: &Scenario) -> Result<Option<KernelResult>, String> {
        let is_it = |(measured, by, _): &&(Scenario, Peers, Option<KernelResult>)| {
            measured == scenario && *by == peers
        };
        if let Some((_, _, found)) = self.found.iter().find(is_it) {
            return Ok(found.clone());
        }
        let Some(measure) = &mut self.measure else { return Ok(None) };
        let found = measure(scenario, peers)?;
        self.found.push((scenario.clone(), peers, found.clone()));
        Ok(found)
    }
}
