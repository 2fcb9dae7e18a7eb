//! Outcomes for this crate's tests: what the formulas say of a plan. Not for anything else.

use model::{Assumptions, predict};
use scenario::spec::Plan;

use crate::output::Outcome;

/// The model's row of each scenario, all of which it can predict.
pub(crate) fn outcomes(plan: &Plan) -> Vec<Outcome> {
    let predicted = plan.scenarios.iter().map(|scenario| {
        let assumptions = Assumptions { acks: plan.acks(scenario), ..Assumptions::default() };
        let prediction = predict(scenario, &assumptions).expect("a scenario that the model can predict");
        Outcome::new(scenario, prediction.row(), None)
    });
    predicted.collect()
}
