//! Outcomes for this crate's tests: the formulas' predictions for a plan.

use model::{Assumptions, predict};
use scenario::spec::Plan;

use crate::output::Outcome;

/// The model's row of each scenario; all of them must be predictable.
pub(crate) fn outcomes(plan: &Plan) -> Vec<Outcome> {
    let predicted = plan.scenarios.iter().map(|scenario| {
        let assumptions = Assumptions { acks: plan.acks(scenario), ..Assumptions::default() };
        let prediction = predict(scenario, &assumptions).expect("a scenario that the model can predict");
        Outcome::new(scenario, prediction.row(), None)
    });
    predicted.collect()
}
