//! `roundtrip compare`: every engine on the same scenarios, side by side.

use scenario::Engine;
use scenario::spec::{Defaults, Key};

use crate::ask;
use crate::cli::Compare;
use crate::engine::model;
use crate::failure::Failure;
use crate::output::table::Layout;
use crate::show::Results;

/// Prints a line for each protocol.
pub fn run(compare: &Compare) -> Result<(), Failure> {
    let Compare { scenario, engines, runs, output } = compare;
    let engines = engines.iter().map(|engine| (Key::Engine, engine.as_str()));
    let runs = runs.iter().map(|runs| (Key::Runs, runs.as_str()));
    let more: Vec<(Key, &str)> = engines.chain(runs).collect();
    let plan = ask::plan(scenario, &more, &Defaults::compare())?;
    for engine in &plan.engines {
        match engine {
            Engine::Model => {}
            Engine::Simulate | Engine::Measure => {
                eprintln!(
                    "roundtrip: the engine `{}` is not part of this version, and is left out",
                    engine.name()
                );
            }
        }
    }
    let outcomes = model::outcomes(&plan)?;
    Results { outcomes, layout: Layout::Comparison, provenance: vec![model::provenance(&plan)] }.show(output)
}
