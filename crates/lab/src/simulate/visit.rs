//! A simulated run as a visit: the robot's reports, and the packets that opened its connections.
//!
//! Not the exchanges, which [`crate::exchanges`] derives for every engine.

use scenario::Protocol;
use simulate::page::openings;
use trace::har::Visit;
use wire::{Duration, Time};

use super::FirstRun;
use crate::exchanges::exchanges;

/// The first run of a scenario, without the means of all runs. Virtual time begins on the day of `papers/w3c`.
pub fn of(first: FirstRun<'_>) -> Visit {
    let FirstRun { scenario, experiment: _, result } = first;
    let exchanges = exchanges(scenario, &result.reports, &connects(first), result.began);
    let load = scenario.page.load(result.ends(&scenario.page));
    Visit { began: DAY, elapsed: result.elapsed, load, exchanges, ..Visit::default() }
}

/// 24 June 1997.
const DAY: Duration = Duration::from_secs(867_110_400);

/// Time at which each connection was requested: the first packet from each of the client's ports. With DHTTP, no request
/// waits for a connection.
fn connects(first: FirstRun<'_>) -> Vec<Time> {
    let FirstRun { scenario, experiment: _, result } = first;
    if scenario.protocol == Protocol::Dhttp {
        return Vec::new();
    }
    openings(&result.records).into_iter().map(|opening| opening.requested).collect()
}
