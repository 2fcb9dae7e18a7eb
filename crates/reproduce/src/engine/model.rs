//! Calls of the model.

use ::model::{Assumptions, predict};
use scenario::spec::Plan;
use scenario::{Engine, Scenario};
use tcp::stack::Acks;

use crate::figures;
use render::output::{Missing, Outcome};
use render::provenance::Provenance;

/// Predictions for each scenario. One that cannot be predicted becomes a row that states the reason.
pub fn outcomes(plan: &Plan) -> Vec<Outcome> {
    plan.scenarios.iter().map(|scenario| outcome(scenario, plan.acks(scenario))).collect()
}

/// The prediction for one scenario, with this acknowledgement policy of the receiver.
fn outcome(scenario: &Scenario, acks: Option<Acks>) -> Outcome {
    match predict(scenario, &Assumptions { acks, ..Assumptions::default() }) {
        Ok(prediction) => Outcome::new(scenario, prediction.row(), None),
        Err(refusal) => Outcome::missing(scenario, Engine::Model, Missing::Refused, refusal.to_string()),
    }
}

/// The overhead of the only scenario over every bandwidth and round trip, as a picture.
///
/// # Errors
/// Several scenarios, or one that cannot be predicted.
pub fn contours(plan: &Plan) -> Result<String, String> {
    let [scenario] = plan.scenarios.as_slice() else {
        return Err(format!(
            "{} scenarios, and a picture shows one; give one page, --protocol and --stack",
            plan.scenarios.len()
        ));
    };
    figures::contours(scenario, &Assumptions { acks: plan.acks(scenario), ..Assumptions::default() })
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
