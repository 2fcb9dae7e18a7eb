//! The engines, called: scenarios in, rows out, refusals made into rows that say so.
//!
//! Nothing is computed here; `model` and `measure` do that.

pub mod measure;
pub mod model;

use scenario::Scenario;
use trace::Row;

use crate::output::Outcome;

/// Why no row has a result, if that is so.
pub fn nothing(outcomes: &[Outcome]) -> Option<String> {
    let known = outcomes.iter().any(|outcome| outcome.row.elapsed_ms.is_some());
    let reason = outcomes.iter().flat_map(|outcome| outcome.row.notes.first()).next();
    (!known).then(|| reason.cloned().unwrap_or_default())
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
