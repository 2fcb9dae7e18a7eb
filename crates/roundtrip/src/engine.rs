//! The engines, called: scenarios in, rows out, refusals made into rows that say so.
//!
//! Nothing is computed here; `model` and `measure` do that.

pub mod model;

use scenario::Scenario;
use trace::Row;

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
