//! `roundtrip compare`: every engine on the same scenarios, side by side.

use lab::simulate::FirstRun;
use lab::table::Layout;
use lab::{Missing, Outcome, difference, outcome, predict, simulate};
use measure::Peers;
use render::provenance::Provenance;
use scenario::Engine;
use scenario::spec::{Defaults, Key, Plan};

use crate::cli::Compare;
use crate::failure::Failure;
use crate::laboratory::{self, Measurements};
use crate::show::Results;
use crate::verb::waterfall::{self, WaterfallForm};
use crate::{file, plan_flags};

/// Prints a line for each protocol.
pub fn run(arguments: &Compare) -> Result<(), Failure> {
    let Compare { scenario, engines, runs, waterfall, output, advanced } = arguments;
    let engines = engines.iter().map(|engine| (Key::Engine, engine.as_str()));
    let runs = runs.iter().map(|runs| (Key::Runs, runs.as_str()));
    let more: Vec<(Key, &str)> = engines.chain(runs).collect();
    let plan = plan_flags::plan(scenario, advanced, &more, &Defaults::compare())?;
    let form = waterfall.as_deref().map(|path| WaterfallForm::of(path, plan.scenarios.len())).transpose()?;
    for path in output.report.iter().chain(waterfall) {
        file::check(path)?;
    }
    let mut waterfalls = Vec::new();
    let see = |first: FirstRun<'_>| waterfalls.extend(form.and_then(|_| lab::waterfall::of(first)));
    let ComparisonResults { by_engine, provenance, failure } = run_engines(&plan, see)?;
    let mut outcomes = interleaved(by_engine);
    outcome::name_critical_paths(&mut outcomes);
    if let Some(reason) = outcome::nothing(&outcomes) {
        return Err(Failure::Value(reason));
    }
    if let (Some(path), Some(form)) = (waterfall, form) {
        waterfall::write(path, form, &waterfalls, simulate::provenance(&plan))?;
    }
    Results { outcomes, layout: Layout::Comparison, provenance }.show(output)?;
    failure.map_or(Ok(()), Err)
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
fn run_engines(plan: &Plan, mut see: impl FnMut(FirstRun<'_>)) -> Result<ComparisonResults, Failure> {
    let mut results = ComparisonResults::default();
    for engine in &plan.engines {
        match engine {
            Engine::Model => results.add(predict::outcomes(plan), predict::provenance(plan)),
            Engine::Simulate => {
                let simulated = plan.scenarios.iter().map(|scenario| simulate::outcome(scenario, &mut see));
                results.add(simulated.collect(), simulate::provenance(plan));
            }
            Engine::Measure => match laboratory::available() {
                Ok(()) => results.measure(plan),
                Err(reason) if plan.engines.len() == 1 => return Err(reason.into()),
                Err(reason) => {
                    eprintln!("roundtrip: {reason}");
                    let reason = reason.to_string();
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
        let Measurements { mut outcomes, hosts, visits: _, provenance, failure } =
            laboratory::outcomes(plan, Peers::default(), None);
        let is_simulated = |outcomes: &&Vec<Outcome>| {
            outcomes.first().is_some_and(|outcome| outcome.engine == Engine::Simulate)
        };
        if let Some(simulated) = self.by_engine.iter().find(is_simulated) {
            difference::explain(simulated, &mut outcomes, &hosts);
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
