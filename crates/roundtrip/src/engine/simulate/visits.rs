//! Simulated runs as visits: what the robot tells, and when its connections began by their packets.
//!
//! Not the exchanges, which [`crate::engine::visits`] makes of that for every engine.

use ::simulate::Fetched;
use ::simulate::page::CLIENT;
use ::simulate::world::Seen;
use scenario::spec::Plan;
use scenario::{Protocol, Scenario};
use trace::har::{self, Visit};
use wire::{Duration, Time};

use super::first_run;
use crate::engine::visits::exchanges;
use crate::output::{Outcome, table};

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

/// When each connection was asked for: the first packet from each of the client's ports. Under DHTTP nothing waits for
/// one before it is asked for.
fn connects(scenario: &Scenario, fetched: &Fetched) -> Vec<Time> {
    if scenario.protocol == Protocol::Dhttp {
        return Vec::new();
    }
    let mut seen = Vec::new();
    let mut times = Vec::new();
    for record in &fetched.records {
        if record.from.host == CLIENT && record.seen == Seen::Sent && !seen.contains(&record.from.port) {
            seen.push(record.from.port);
            times.push(record.at);
        }
    }
    times
}
