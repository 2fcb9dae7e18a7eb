//! The engines, called: scenarios in, rows out, refusals made into rows that say so.
//!
//! Nothing is computed here; `model`, `simulate` and `measure` do that.

pub mod difference;
pub mod measure;
pub mod model;
pub mod simulate;
pub mod visits;

use scenario::{Protocol, Scenario};
use wire::Duration;

use crate::output::Outcome;

/// Why no row has a result, if that is so.
pub fn nothing(outcomes: &[Outcome]) -> Option<String> {
    let known = outcomes.iter().any(|outcome| outcome.row.elapsed_ms.is_some());
    let reason = outcomes.iter().flat_map(|outcome| outcome.row.notes.first()).next();
    (!known).then(|| reason.cloned().unwrap_or_default())
}

/// The ratio to the minimum of the bytes that are transferred, which only the model knows.
fn overhead(scenario: &Scenario, elapsed_ms: Option<f64>) -> Option<f64> {
    let page = scenario.transferred();
    let least = Scenario { protocol: Protocol::Minimum, page, ..scenario.clone() };
    let minimum = ::model::predict(&least, &::model::Assumptions::default()).ok()?.elapsed;
    (minimum > Duration::ZERO).then_some(elapsed_ms? / minimum.as_millis_f64())
}
