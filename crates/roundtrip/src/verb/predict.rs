//! `roundtrip predict`: results of the papers' formulas.

use std::fs;

use lab::predict;
use reproduce::figures;
use scenario::spec::{Defaults, Grid, Plan};
use scenario::{Engine, Scenario};

use crate::cli::Predict;
use crate::failure::Failure;
use crate::grid_run::GridRun;
use crate::plan_flags;

/// Prints a row for each scenario.
pub fn run(arguments: &Predict) -> Result<(), Failure> {
    let Predict { scenario, contours, output, into, grid: flags, advanced } = arguments;
    let grid = plan_flags::grid(scenario, advanced, &[], &Defaults::predict())?;
    if let Some(path) = contours {
        let plan = plan_flags::all_in_memory(grid.clone())?;
        let picture =
            draw_contours(&plan).map_err(|reason| Failure::Value(format!("--contours: {reason}")))?;
        fs::write(path, picture).map_err(|error| Failure::Write { path: path.clone(), error })?;
    }
    let row = |grid: &Grid, scenario: &Scenario| predict::outcome(scenario, grid.acks(scenario));
    GridRun { grid, engine: Engine::Model, output, into, flags }.run(row, predict::provenance)
}

/// Renders the overhead of the only scenario over every bandwidth and round trip.
fn draw_contours(plan: &Plan) -> Result<String, String> {
    let [scenario] = plan.scenarios.as_slice() else {
        return Err(format!(
            "{} scenarios, and a picture shows one; give one page, --protocol and --stack",
            plan.scenarios.len()
        ));
    };
    figures::contours(scenario, &predict::assumptions(plan.acks(scenario)))
}
