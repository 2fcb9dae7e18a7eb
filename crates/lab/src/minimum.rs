//! Lower bound of all protocols, and the ratio of a time to it.

use model::Assumptions;
use scenario::{Protocol, Scenario};
use wire::Duration;

use crate::Remark;

/// Time of the protocol `minimum` for the transferred bytes; `None` if the formulas have none.
pub fn elapsed(scenario: &Scenario) -> Option<Duration> {
    let page = scenario.transferred();
    let minimal = Scenario { protocol: Protocol::Minimum, page, ..scenario.clone() };
    model::predict(&minimal, &Assumptions::default()).ok().map(|prediction| prediction.elapsed)
}

/// Ratio of a time to the minimum.
pub(crate) fn overhead(scenario: &Scenario, elapsed_ms: Option<f64>) -> Option<f64> {
    let minimum = elapsed(scenario)?;
    (minimum > Duration::ZERO).then_some(elapsed_ms? / minimum.as_millis_f64())
}

/// A remark where the ratio is printed as less than 1.
pub(crate) fn remark(overhead: Option<f64>) -> Option<Remark> {
    overhead.filter(|overhead| *overhead < BELOW_MINIMUM).map(|_| Remark::BelowMinimum)
}

/// Ratios to the minimum that are printed as less than 1.
const BELOW_MINIMUM: f64 = 0.995;
