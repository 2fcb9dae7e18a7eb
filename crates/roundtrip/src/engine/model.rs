//! The model, called.

use ::model::{Assumptions, predict};
use scenario::spec::Plan;
use scenario::{Engine, Scenario};
use tcp::stack::Acks;

use crate::output::{Missing, Outcome};
use crate::provenance::Provenance;

/// What the formulas say about each scenario. One that they cannot predict becomes a row that says why.
pub fn outcomes(plan: &Plan) -> Vec<Outcome> {
    plan.scenarios.iter().map(|scenario| outcome(scenario, plan.acks(scenario))).collect()
}

/// What the formulas say about one scenario, whose receiver is taken to acknowledge so.
fn outcome(scenario: &Scenario, acks: Option<Acks>) -> Outcome {
    match predict(scenario, &Assumptions { acks, ..Assumptions::default() }) {
        Ok(prediction) => Outcome::new(scenario, prediction.row(), None),
        Err(refusal) => Outcome::missing(scenario, Engine::Model, Missing::Refused, refusal.to_string()),
    }
}

/// What a reader must know of how predictions came about.
pub fn provenance(plan: &Plan) -> Provenance {
    let mut policies: Vec<&str> = Vec::new();
    for acks in plan.scenarios.iter().map(|scenario| plan.acks(scenario)) {
        let policy = acks.map_or("as the stack does", Acks::name);
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    Provenance::fact("model", format!("{PAPER}; receivers acknowledge {}", policies.join(", or ")))
}

const PAPER: &str = "Heidemann, Obraczka and Touch, Modeling the performance of HTTP over several transport protocols, \
                     IEEE/ACM Transactions on Networking 5(5), 1997";
