//! The model, called.

use ::model::{Assumptions, predict};
use scenario::Scenario;
use scenario::spec::Plan;

use super::refused;
use crate::output::Outcome;
use crate::provenance::Provenance;

/// What the formulas say about each scenario. One that they cannot predict becomes a row that says why.
pub fn outcomes(plan: &Plan) -> Vec<Outcome> {
    let assumptions = assumptions(plan);
    plan.scenarios.iter().map(|scenario| outcome(scenario, &assumptions)).collect()
}

/// What the formulas are told beside the scenario.
fn assumptions(plan: &Plan) -> Assumptions {
    Assumptions { acks: plan.acks, ..Assumptions::default() }
}

/// What the formulas say about one scenario.
fn outcome(scenario: &Scenario, assumptions: &Assumptions) -> Outcome {
    let row = match predict(scenario, assumptions) {
        Ok(prediction) => prediction.row(),
        Err(refusal) => refused(scenario, "model", refusal.to_string()),
    };
    Outcome { scenario: scenario.clone(), row, interval95_ms: None }
}

/// What a reader must know of how predictions came about.
pub fn provenance(plan: &Plan) -> Provenance {
    let acks = match plan.acks {
        Some(acks) => format!("receivers acknowledge {}", acks.name()),
        None => "receivers acknowledge as the stack does".to_owned(),
    };
    Provenance::fact("model", format!("{PAPER}; {acks}"))
}

const PAPER: &str = "Heidemann, Obraczka and Touch, Modeling the performance of HTTP over several transport protocols, \
                     IEEE/ACM Transactions on Networking 5(5), 1997";
