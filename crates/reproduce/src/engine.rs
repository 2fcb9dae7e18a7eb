//! Engine calls: scenarios in, rows out; a refusal becomes a row that states the reason.
//!
//! Nothing is computed here; `model`, `simulate` and `measure` do that.

pub mod difference;
pub mod measure;
pub mod model;
pub mod simulate;
pub mod visits;

use scenario::{Protocol, Scenario};
use trace::Row;
use wire::Duration;

use render::output::Outcome;

/// The reason why no row has a result, if none has.
pub fn nothing(outcomes: &[Outcome]) -> Option<String> {
    let known = outcomes.iter().any(|outcome| outcome.row.elapsed_ms.is_some());
    let reason = outcomes.iter().flat_map(|outcome| outcome.row.notes.first()).next();
    (!known).then(|| reason.cloned().unwrap_or_default())
}

/// Row with the ratio to the minimum, and a note where it is below 1.
fn with_overhead(scenario: &Scenario, mut row: Row) -> Row {
    row.overhead = overhead(scenario, row.elapsed_ms);
    if row.overhead.is_some_and(|overhead| overhead < BELOW_MINIMUM) {
        row.notes.push(
            "below the formula's minimum, which sends every request before the first response and, where requests are \
             dependent, waits for the whole document: here they overlap"
                .to_owned(),
        );
    }
    row
}

/// Ratios to the minimum that are printed as less than 1.
const BELOW_MINIMUM: f64 = 0.995;

/// The ratio of the transferred bytes to the minimum, which only the model knows.
fn overhead(scenario: &Scenario, elapsed_ms: Option<f64>) -> Option<f64> {
    let page = scenario.transferred();
    let minimal = Scenario { protocol: Protocol::Minimum, page, ..scenario.clone() };
    let minimum = ::model::predict(&minimal, &::model::Assumptions::default()).ok()?.elapsed;
    (minimum > Duration::ZERO).then_some(elapsed_ms? / minimum.as_millis_f64())
}
