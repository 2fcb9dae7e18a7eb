//! `roundtrip compare`: every engine on the same scenarios, side by side.

use ::measure::Peers;
use scenario::Engine;
use scenario::spec::{Defaults, Key, Plan};

use crate::cli::Compare;
use crate::engine::{difference, measure, model, simulate};
use crate::failure::Failure;
use crate::output::Outcome;
use crate::output::table::Layout;
use crate::provenance::Provenance;
use crate::show::Results;
use crate::{ask, engine, file};

/// Prints a line for each protocol.
pub fn run(arguments: &Compare) -> Result<(), Failure> {
    let Compare { scenario, engines, runs, output } = arguments;
    let engines = engines.iter().map(|engine| (Key::Engine, engine.as_str()));
    let runs = runs.iter().map(|runs| (Key::Runs, runs.as_str()));
    let more: Vec<(Key, &str)> = engines.chain(runs).collect();
    let plan = ask::plan(scenario, &more, &Defaults::compare())?;
    if let Some(path) = &output.report {
        file::check(path)?;
    }
    let Heard { by_engine, provenance, failure } = ask_engines(&plan)?;
    let outcomes = interleaved(by_engine);
    if let Some(reason) = engine::nothing(&outcomes) {
        return Err(Failure::Value(reason));
    }
    Results { outcomes, layout: Layout::Comparison, provenance }.show(output)?;
    failure.map_or(Ok(()), Err)
}

/// What the engines said.
#[derive(Default)]
struct Heard {
    /// In the order of the engines, each in the order of the scenarios.
    by_engine: Vec<Vec<Outcome>>,
    provenance: Provenance,
    /// Something that went wrong in the laboratory, though there are results.
    failure: Option<Failure>,
}

/// Asks each engine that can be asked here; what cannot is said on stderr, as long as another one can.
fn ask_engines(plan: &Plan) -> Result<Heard, Failure> {
    let mut heard = Heard::default();
    let mut missing = None;
    for engine in &plan.engines {
        let asked = match engine {
            Engine::Model => {
                heard.add(model::outcomes(plan), model::provenance(plan));
                Ok(())
            }
            Engine::Simulate => {
                heard.add(simulate::outcomes(plan), simulate::provenance(plan));
                Ok(())
            }
            Engine::Measure => measure::available().map(|()| heard.measure(plan)).map_err(Failure::from),
        };
        if let Err(reason) = asked {
            missing.get_or_insert(reason);
        }
    }
    match missing {
        Some(reason) if heard.by_engine.is_empty() => Err(reason),
        Some(reason) => {
            eprintln!("roundtrip: {reason}");
            Ok(heard)
        }
        None => Ok(heard),
    }
}

impl Heard {
    fn measure(&mut self, plan: &Plan) {
        let measure::Measurements { mut outcomes, hosts, visits: _, provenance, failure } =
            measure::outcomes(plan, Peers::default(), None);
        let is_simulated = |outcomes: &&Vec<Outcome>| {
            outcomes.first().is_some_and(|outcome| outcome.row.engine == "simulate")
        };
        if let Some(simulated) = self.by_engine.iter().find(is_simulated) {
            difference::explain(simulated, &mut outcomes, &hosts);
        }
        self.add(outcomes, provenance);
        self.failure = failure;
    }

    fn add(&mut self, outcomes: Vec<Outcome>, provenance: Provenance) {
        self.by_engine.push(outcomes);
        self.provenance = std::mem::take(&mut self.provenance).and(provenance);
    }
}

/// What each engine said about the first scenario, then about the second.
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
