//! The model, called.

use ::model::{Assumptions, predict};
use scenario::Scenario;
use scenario::spec::Plan;

use super::refused;
use crate::failure::Failure;
use crate::output::Outcome;

/// What the formulas say about each scenario. One that they cannot predict becomes a row that says why; if that is
/// so for all of them, there is no result.
pub fn outcomes(plan: &Plan) -> Result<Vec<Outcome>, Failure> {
    let assumptions = assumptions(plan);
    let outcomes: Vec<Outcome> =
        plan.scenarios.iter().map(|scenario| outcome(scenario, &assumptions)).collect();
    match outcomes.iter().all(|outcome| outcome.row.elapsed_ms.is_none()) {
        true => Err(Failure::Value(first_reason(&outcomes))),
        false => Ok(outcomes),
    }
}

/// What the formulas are told beside the scenario.
pub fn assumptions(plan: &Plan) -> Assumptions {
    Assumptions { acks: plan.acks, ..Assumptions::default() }
}

/// What the formulas say about one scenario.
pub fn outcome(scenario: &Scenario, assumptions: &Assumptions) -> Outcome {
    let row = match predict(scenario, assumptions) {
        Ok(prediction) => prediction.row(),
        Err(refusal) => refused(scenario, "model", refusal.to_string()),
    };
    Outcome { scenario: scenario.clone(), row }
}

/// What a reader must know of how predictions came about.
pub fn provenance(plan: &Plan) -> (String, String) {
    let acks = match plan.acks {
        Some(acks) => format!("receivers acknowledge {}", acks.name()),
        None => "receivers acknowledge as the stack does".to_owned(),
    };
    ("model".to_owned(), format!("{PAPER}; {acks}"))
}

const PAPER: &str = "Heidemann, Obraczka and Touch, Modeling the performance of HTTP over several transport protocols, \
                     IEEE/ACM Transactions on Networking 5(5), 1997";

fn first_reason(outcomes: &[Outcome]) -> String {
    outcomes.iter().flat_map(|outcome| outcome.row.notes.first()).next().cloned().unwrap_or_default()
}
