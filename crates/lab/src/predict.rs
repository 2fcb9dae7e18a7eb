//! Calls of the formulas.

use model::Assumptions;
use render::provenance::Provenance;
use scenario::spec::Plan;
use scenario::{Engine, Scenario};
use tcp::stack::Acks;

use crate::{Missing, Outcome, Remark};

/// Predictions for each scenario. One that cannot be predicted becomes an outcome that states the reason.
pub fn outcomes(plan: &Plan) -> Vec<Outcome> {
    plan.scenarios.iter().map(|scenario| outcome(scenario, plan.acks(scenario))).collect()
}

/// The prediction for one scenario, with this acknowledgement policy of the receiver.
pub fn outcome(scenario: &Scenario, acks: Option<Acks>) -> Outcome {
    match model::predict(scenario, &assumptions(acks)) {
        Ok(prediction) => {
            let remarks = prediction.notes.iter().cloned().map(Remark::Assumption).collect();
            let (metrics, overhead) = (prediction.metrics(), prediction.overhead());
            Outcome::new(scenario, Engine::Model, metrics, overhead, remarks)
                .with(prediction.named_stalls(), None)
        }
        Err(refusal) => Outcome::missing(scenario, Engine::Model, Missing::Refused, refusal.to_string()),
    }
}

/// The formulas' inputs beyond a scenario, with this acknowledgement policy.
pub fn assumptions(acks: Option<Acks>) -> Assumptions {
    Assumptions { acks, ..Assumptions::default() }
}

/// Provenance of the predictions.
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
