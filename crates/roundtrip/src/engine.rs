//! The engines, called: scenarios in, rows out, refusals made into rows that say so.
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

use crate::output::Outcome;

/// Why no row has a result, if that is so.
pub fn nothing(outcomes: &[Outcome]) -> Option<String> {
    let known = outcomes.iter().any(|outcome| outcome.row.elapsed_ms.is_some());
    let reason = outcomes.iter().flat_map(|outcome| outcome.row.notes.first()).next();
    (!known).then(|| reason.cloned().unwrap_or_default())
}

/// Over the minimum, which only the model knows.
fn overhead(scenario: &Scenario, elapsed_ms: Option<f64>) -> Option<f64> {
    let least = Scenario { protocol: Protocol::Minimum, ..scenario.clone() };
    let minimum = ::model::predict(&least, &::model::Assumptions::default()).ok()?.elapsed;
    (minimum > Duration::ZERO).then_some(elapsed_ms? / minimum.as_millis_f64())
}

/// A row in which nothing is known but why.
fn refused(scenario: &Scenario, engine: &str, reason: String) -> Row {
    Row {
        network: scenario.network.name.clone(),
        page: scenario.page.name.clone(),
        visit: scenario.visit.name().to_owned(),
        protocol: scenario.protocol.name().to_owned(),
        engine: engine.to_owned(),
        stack: scenario.stack.name.to_owned(),
        elapsed_ms: None,
        overhead: None,
        round_trips: None,
        packets_up: None,
        packets_down: None,
        payload_bytes: None,
        overhead_percent: None,
        connections: None,
        runs: 0,
        elapsed_ms_stddev: None,
        stalls: Vec::new(),
        notes: vec![reason],
    }
}
