//! Outcomes for this crate's tests: the formulas' predictions for a plan.

use scenario::spec::Plan;

use crate::{Outcome, predict};

/// The model's outcome of each scenario; all of them must be predictable.
pub(crate) fn outcomes(plan: &Plan) -> Vec<Outcome> {
    let outcomes = predict::outcomes(plan);
    assert!(outcomes.iter().all(|outcome| outcome.missing.is_none()), "a scenario that the model refuses");
    outcomes
}
