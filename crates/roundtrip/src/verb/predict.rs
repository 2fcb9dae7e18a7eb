//! `roundtrip predict`: results of the papers' formulas.

use std::fs;

use render::output::table::Layout;
use reproduce::engine::{self, model};
use scenario::spec::Defaults;

use crate::cli::Predict;
use crate::failure::Failure;
use crate::plan_flags;
use crate::show::Results;

/// Prints a row for each scenario.
pub fn run(predict: &Predict) -> Result<(), Failure> {
    let Predict { scenario, contours, output, advanced } = predict;
    let plan = plan_flags::plan(scenario, advanced, &[], &Defaults::predict())?;
    if let Some(path) = contours {
        let picture =
            model::contours(&plan).map_err(|reason| Failure::Value(format!("--contours: {reason}")))?;
        fs::write(path, picture).map_err(|error| Failure::Write { path: path.clone(), error })?;
    }
    let outcomes = model::outcomes(&plan);
    if let Some(reason) = engine::nothing(&outcomes) {
        return Err(Failure::Value(reason));
    }
    Results { outcomes, layout: Layout::Rows, provenance: model::provenance(&plan) }.show(output)
}
