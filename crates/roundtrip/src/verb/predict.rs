//! `roundtrip predict`: results of the papers' formulas.

use std::fs;

use lab::table::Layout;
use lab::{outcome, predict};
use reproduce::figures;
use scenario::spec::{Defaults, Plan};

use crate::cli::Predict;
use crate::failure::Failure;
use crate::plan_flags;
use crate::show::Results;

/// Prints a row for each scenario.
pub fn run(arguments: &Predict) -> Result<(), Failure> {
    let Predict { scenario, contours, output, advanced } = arguments;
    let plan = plan_flags::plan(scenario, advanced, &[], &Defaults::predict())?;
    if let Some(path) = contours {
        let picture =
            draw_contours(&plan).map_err(|reason| Failure::Value(format!("--contours: {reason}")))?;
        fs::write(path, picture).map_err(|error| Failure::Write { path: path.clone(), error })?;
    }
    let outcomes = predict::outcomes(&plan);
    if let Some(reason) = outcome::nothing(&outcomes) {
        return Err(Failure::Value(reason));
    }
    Results { outcomes, layout: Layout::Rows, provenance: predict::provenance(&plan) }.show(output)
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
