//! `roundtrip compare`: every engine on the same scenarios, side by side.

use std::path::Path;

use lab::simulate::FirstRun;
use lab::table::Layout;
use lab::{Missing, Outcome, best_change, explanation, outcome, predict, setting, simulate};
use measure::Peers;
use render::provenance::Provenance;
use scenario::spec::{Defaults, Grid, Key, Plan};
use scenario::{Engine, Scenario};

use crate::cli::Compare;
use crate::failure::Failure;
use crate::laboratory::{self, Measurements};
use crate::show::Results;
use crate::verb::waterfall::{self, WaterfallForm};
use crate::{file, grid_run, plan_flags, terminal};

/// Prints a line for each protocol.
pub fn run(arguments: &Compare) -> Result<(), Failure> {
    let Compare { scenario, engines, runs, waterfall, output, into, grid: flags, advanced } = arguments;
    let engines = engines.iter().map(|engine| (Key::Engine, engine.as_str()));
    let runs = runs.iter().map(|runs| (Key::Runs, runs.as_str()));
    let more: Vec<(Key, &str)> = engines.chain(runs).collect();
    let grid = plan_flags::grid(scenario, advanced, &more, &Defaults::compare())?;
    let threads = grid_run::threads(flags)?;
    if let Some(path) = &into.into {
        return append(path, grid, threads);
    }
    let plan = plan_flags::all_in_memory(grid)?;
    let form = waterfall.as_deref().map(|path| WaterfallForm::of(path, plan.scenarios.len())).transpose()?;
    file::check(output.report.iter().chain(waterfall))?;
    let mut waterfalls = Vec::new();
    let mut see = |first: FirstRun<'_>| waterfalls.extend(lab::waterfall::of(first));
    let see = form.is_some().then_some(&mut see as &mut dyn FnMut(FirstRun<'_>));
    let ComparisonResults { by_engine, provenance, failure } = run_engines(&plan, threads, see)?;
    let mut outcomes = interleaved(by_engine);
    outcome::name_critical_paths(&mut outcomes);
    best_change::find(&mut outcomes);
    if let Some(reason) = outcome::nothing(&outcomes) {
        return Err(Failure::Value(reason));
    }
    if let (Some(path), Some(form)) = (waterfall, form) {
        waterfall::write(path, form, &waterfalls, simulate::provenance(&plan))?;
    }
    let settings = setting::settings(&plan.grid);
    let results = Results { outcomes, settings, layout: Layout::Comparison, provenance };
    results.write_stalls(flags.stalls.as_deref())?;
    results.show(output)?;
    failure.map_or(Ok(()), Err)
}

/// Scenarios of each thread whose rows are written together, where none is measured.
const BATCH: usize = 32;

/// Appends rows to a file. A scenario that cannot be measured ends it, so that the next run measures it again.
fn append(path: &Path, grid: Grid, threads: usize) -> Result<(), Failure> {
    let engines = grid.engines.clone();
    let is_measured = engines.contains(&Engine::Measure);
    is_measured.then(laboratory::available).transpose()?;
    let batch = if is_measured { 1 } else { BATCH * threads };
    grid_run::append(path, grid, &engines, batch, |plan| {
        let ComparisonResults { by_engine, failure, .. } = run_engines(plan, threads, None)?;
        failure.map_or_else(|| Ok(interleaved(by_engine)), Err)
    })
}

/// Results of all engines.
#[derive(Default)]
struct ComparisonResults {
    /// In the order of the engines, each in the order of the scenarios.
    by_engine: Vec<Vec<Outcome>>,
    provenance: Provenance,
    /// First error on the testbed, despite which there are results.
    failure: Option<Failure>,
}

/// Runs each engine; `see` gets the first run of each simulated scenario. Cells of an engine that cannot run on this host show its error, if another one can run.
fn run_engines(
    plan: &Plan,
    threads: usize,
    mut see: Option<&mut dyn FnMut(FirstRun<'_>)>,
) -> Result<ComparisonResults, Failure> {
    let mut results = ComparisonResults::default();
    // A process with threads cannot enter namespaces.
    let laboratory = plan.engines.contains(&Engine::Measure).then(laboratory::available);
    for engine in &plan.engines {
        match engine {
            Engine::Model => {
                let row = |scenario: &Scenario| predict::outcome(scenario, plan.acks(scenario));
                results.add(grid_run::all(&plan.scenarios, threads, row)?, predict::provenance(plan));
            }
            Engine::Simulate => {
                let simulated = match &mut see {
                    Some(see) => plan
                        .scenarios
                        .iter()
                        .map(|scenario| simulate::outcome(scenario, &mut **see))
                        .collect(),
                    None => grid_run::all(&plan.scenarios, threads, |scenario| {
                        simulate::outcome(scenario, |_| ())
                    })?,
                };
                results.add(simulated, simulate::provenance(plan));
            }
            Engine::Measure => match &laboratory {
                None | Some(Ok(())) => results.measure(plan),
                Some(Err(reason)) if plan.engines.len() == 1 => {
                    return Err(Failure::Laboratory(reason.to_string()));
                }
                Some(Err(reason)) => {
                    let reason = reason.to_string();
                    terminal::warn(&reason);
                    let failed = |scenario| {
                        Outcome::missing(scenario, Engine::Measure, Missing::Failed, reason.clone())
                    };
                    results.add(plan.scenarios.iter().map(failed).collect(), Provenance::default());
                }
            },
        }
    }
    Ok(results)
}

impl ComparisonResults {
    fn measure(&mut self, plan: &Plan) {
        let Measurements { mut outcomes, hosts, visits: _, recordings: _, provenance, failure } =
            laboratory::outcomes(plan, Peers::default(), None);
        let is_simulated = |outcomes: &&Vec<Outcome>| {
            outcomes.first().is_some_and(|outcome| outcome.engine == Engine::Simulate)
        };
        if let Some(simulated) = self.by_engine.iter().find(is_simulated) {
            explanation::explain(simulated, &mut outcomes, &hosts);
        }
        self.add(outcomes, provenance);
        self.failure = failure.map(Failure::from);
    }

    fn add(&mut self, outcomes: Vec<Outcome>, provenance: Provenance) {
        self.by_engine.push(outcomes);
        self.provenance = std::mem::take(&mut self.provenance).and(provenance);
    }
}

/// Returns the results of all engines for the first scenario, then for the second.
fn interleaved(by_engine: Vec<Vec<Outcome>>) -> Vec<Outcome> {
    let mut engines: Vec<_> = by_engine.into_iter().map(Vec::into_iter).collect();
    let mut outcomes = Vec::new();
    loop {
        let next: Vec<Outcome> = engines.iter_mut().filter_map(Iterator::next).collect();
        if next.is_empty() {
            return outcomes;
        }
        outcomes.extend(next);
    }
}
