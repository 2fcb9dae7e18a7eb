//! Simulated runs as visits: the robot's reports, and the packets that opened its connections.
//!
//! Not the exchanges, which [`crate::engine::visits`] derives for every engine.

use ::simulate::PageResult;
use ::simulate::page::CLIENT;
use ::simulate::world::ObservationPoint;
use render::output::{Outcome, table};
use scenario::spec::Plan;
use scenario::{Protocol, Scenario};
use trace::har::{self, Visit};
use wire::{Duration, Time};

use super::first_run;
use crate::engine::visits::exchanges;

/// The first run of every scenario that can be simulated. Virtual time begins on the day of `papers/w3c`.
pub fn file(plan: &Plan, outcomes: &[Outcome]) -> String {
    let visits = plan.scenarios.iter().zip(outcomes).filter_map(|(scenario, outcome)| {
        let (_, fetched) = first_run(scenario).ok()?;
        Some(Visit {
            title: format!("{}, {}", scenario.protocol.name(), table::title(scenario)),
            began: DAY,
            elapsed: fetched.elapsed,
            exchanges: exchanges(scenario, &fetched.reports, &connects(scenario, &fetched), fetched.began),
            row: outcome.row.clone(),
        })
    });
    har::file(&visits.collect::<Vec<_>>())
}

/// 24 June 1997.
const DAY: Duration = Duration::from_secs(867_110_400);

/// Time at which each connection was requested: the first packet from each of the client's ports. With DHTTP, no request
/// waits for a connection.
fn connects(scenario: &Scenario, fetched: &PageResult) -> Vec<Time> {
    if scenario.protocol == Protocol::Dhttp {
        return Vec::new();
    }
    let mut seen = Vec::new();
    let mut times = Vec::new();
    for record in &fetched.records {
        if record.from.host == CLIENT
            && record.seen == ObservationPoint::Sent
            && !seen.contains(&record.from.port)
        {
            seen.push(record.from.port);
            times.push(record.at);
        }
    }
    times
}
