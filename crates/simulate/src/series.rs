//! Runs of a scenario as means, and facts that only an engine with packets knows.

use std::collections::BTreeMap;

use fetch::{Failure, PageEvent};
use scenario::{Remark, Scenario};
use trace::{Cause, Metrics, Stall, Summary};
use wire::{Duration, Time};

use crate::error::Error;
use crate::page::{Experiment, Hosts, PageResult};
use crate::stalls::TimeAccount;
use crate::world::RunEnd;

/// Result of a scenario's runs.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// Means over the runs.
    pub metrics: Metrics,
    /// Stalls: means over the runs.
    pub stalls: Vec<Stall>,
    /// Failures first, then deviations from the scenario, then facts.
    pub remarks: Vec<Remark>,
}

/// Runs a scenario for its number of runs.
///
/// # Errors
/// The part of the scenario that this engine cannot honour, and the alternative.
pub fn simulate(scenario: &Scenario, hosts: Hosts) -> Result<Simulation, Error> {
    simulate_with(scenario, hosts, |_, _| ())
}

/// The same; the caller sees the first run with its packets before they are dropped.
///
/// # Errors
/// The part of the scenario that this engine cannot honour, and the alternative.
pub fn simulate_with(
    scenario: &Scenario,
    hosts: Hosts,
    mut see_first: impl FnMut(&Experiment, &PageResult),
) -> Result<Simulation, Error> {
    let experiment = Experiment::new(scenario, hosts)?;
    let is_random = experiment.is_random();
    let mut results: Vec<(PageResult, TimeAccount)> = Vec::new();
    for number in 0..scenario.runs {
        // Without chance every run is like the first.
        if let Some(first) = results.first().filter(|_| !is_random) {
            results.push(first.clone());
            continue;
        }
        let mut fetched = experiment.run(number, true)?;
        let spent = experiment.spent(&fetched);
        if number == 0 {
            see_first(&experiment, &fetched);
        }
        // The packets of a thousand runs would take too much memory.
        (fetched.records, fetched.probes, fetched.quic_probes) = (Vec::new(), Vec::new(), Vec::new());
        results.push((fetched, spent));
    }
    let (runs, spent): (Vec<PageResult>, Vec<TimeAccount>) = results.into_iter().unzip();
    let mut remarks = remarks(&experiment, &runs);
    // Failed runs have no page duration; they count only if every run failed.
    let is_complete = runs.iter().any(|run| run.elapsed.is_some());
    let (runs, spent): (Vec<PageResult>, Vec<TimeAccount>) =
        runs.into_iter().zip(spent).filter(|(run, _)| run.elapsed.is_some() == is_complete).unzip();
    let elapsed: Vec<f64> = runs.iter().filter_map(|run| run.elapsed).map(Duration::as_millis_f64).collect();
    let elapsed = Summary::of(&elapsed);
    let metrics = Metrics {
        elapsed_ms: elapsed.map(|elapsed| elapsed.mean),
        elapsed_ms_stddev: elapsed.and_then(|elapsed| elapsed.deviation),
        round_trips: round_trips(scenario, &runs, &spent),
        packets_up: mean(runs.iter().map(|run| run.up.packets as f64)),
        packets_down: mean(runs.iter().map(|run| run.down.packets as f64)),
        payload_bytes: mean(runs.iter().map(|run| (run.up.payload_bytes + run.down.payload_bytes) as f64)),
        connections: mean(runs.iter().map(|run| run.up.connections as f64)),
        runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        load_ms: event_ms(&runs, |run| scenario.page.load(run.ends(&scenario.page))),
    };
    let other_load = event_ms(&runs, |run| scenario.page.other_load(run.ends(&scenario.page)));
    remarks.extend(other_load.map(Remark::OtherLoad));
    Ok(Simulation { metrics, stalls: stalls(&spent), remarks })
}

/// Mean time of an event of the page, of the runs that have it.
fn event_ms(runs: &[PageResult], event: impl Fn(&PageResult) -> Option<Duration>) -> Option<f64> {
    let times: Vec<f64> = runs.iter().filter_map(event).map(Duration::as_millis_f64).collect();
    mean(times.into_iter())
}

/// Failures first, then deviations from the scenario, then facts.
fn remarks(experiment: &Experiment, runs: &[PageResult]) -> Vec<Remark> {
    let mut remarks = Vec::from_iter(failures(runs));
    if experiment.may_lose() {
        let lost = |run| {
            failed_objects(run).map(|(_, object, failure)| format!("object {object}: {failure}")).collect()
        };
        remarks.extend(scenario::robot::destroyed(&runs.iter().map(lost).collect::<Vec<Vec<String>>>()));
    }
    remarks.extend(experiment.remarks().to_vec());
    remarks.extend(session(experiment, runs));
    let channels: Vec<_> = runs.iter().filter_map(|run| run.channels).collect();
    remarks.extend(Remark::transports(&channels));
    let visits: Vec<_> = runs.iter().map(|run| (run.began, run.visit_stats())).collect();
    remarks.extend(scenario::robot::remarks(&visits));
    remarks
}

/// Mean time of each page of a session.
fn session(experiment: &Experiment, runs: &[PageResult]) -> Option<Remark> {
    let times: Vec<Vec<Duration>> = runs.iter().map(|run| experiment.page_times(run)).collect();
    let pages =
        times.first().map(Vec::len).filter(|pages| times.iter().all(|times| times.len() == *pages))?;
    let ms = |page: usize| mean(times.iter().map(|times| times[page].as_millis_f64()));
    (pages > 1).then(|| Remark::SessionPages((0..pages).filter_map(ms).collect()))
}

/// Failures of objects that were requested: time, number of the object from 1, and reason.
fn failed_objects(run: &PageResult) -> impl Iterator<Item = (Time, usize, Failure)> {
    run.reports.iter().filter_map(|report| match report.event {
        PageEvent::ObjectFailed { object, failure } => Some((report.at, object + 1, failure)),
        PageEvent::RequestSent { .. }
        | PageEvent::HeadReceived { .. }
        | PageEvent::ObjectFound { .. }
        | PageEvent::TooManyObjects { .. }
        | PageEvent::FirstBytesReceived { .. }
        | PageEvent::ObjectComplete { .. }
        | PageEvent::Fault { .. }
        | PageEvent::Finished { .. } => None,
    })
}

/// Time in which the path sent no useful data, in round trips.
fn round_trips(scenario: &Scenario, runs: &[PageResult], spent: &[TimeAccount]) -> Option<f64> {
    let rtt = scenario.network.rtt.as_secs_f64();
    let idle = runs
        .iter()
        .zip(spent)
        .filter_map(|(run, spent)| Some(run.elapsed?.saturating_sub(spent.working).as_secs_f64()));
    let idle: Vec<f64> = idle.collect();
    mean(idle.into_iter()).filter(|_| rtt > 0.0).map(|idle| idle / rtt)
}

/// Means over the runs: the first stall of a cause is averaged with the first of that cause in every other
/// run, and so on. They add up to the mean cost of a run's stalls.
fn stalls(spent: &[TimeAccount]) -> Vec<Stall> {
    let mut sums: BTreeMap<(Cause, usize), (f64, f64, f64)> = BTreeMap::new();
    for TimeAccount { working: _, stalls, repairs: _ } in spent {
        let mut seen: BTreeMap<Cause, usize> = BTreeMap::new();
        for Stall { cause, at_ms, lost_ms } in stalls {
            let number = seen.entry(*cause).or_default();
            let (count, at, lost) = sums.entry((*cause, *number)).or_default();
            *number += 1;
            *count += 1.0;
            *at += at_ms;
            *lost += lost_ms;
        }
    }
    let mut stalls: Vec<Stall> = sums
        .into_iter()
        .map(|((cause, _), (count, at, lost))| Stall {
            cause,
            at_ms: at / count,
            lost_ms: lost / spent.len() as f64,
        })
        .collect();
    let by_name = |one: &Stall, other: &Stall| one.cause.name().cmp(other.cause.name());
    stalls.sort_by(|one, other| one.at_ms.total_cmp(&other.at_ms).then(by_name(one, other)));
    stalls
}

/// Number of failed runs, and the first failure's reason.
fn failures(runs: &[PageResult]) -> Option<Remark> {
    let failed: Vec<&PageResult> = runs.iter().filter(|run| run.elapsed.is_none()).collect();
    let first = failed.first()?;
    let reason = match first.ended {
        RunEnd::OutOfTime | RunEnd::OutOfEvents => format!("after {} events", first.events),
        RunEnd::Finished | RunEnd::Quiet => failed_objects(first)
            .next()
            .map(|(at, object, failure)| {
                let after = at.since(first.began).as_secs_f64();
                format!("after {after:.0} s: object {object} did not arrive: {failure}")
            })
            .unwrap_or_else(|| "with nothing left to do".to_owned()),
    };
    Some(Remark::FailedRuns { failed: failed.len(), runs: runs.len(), reason })
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}

#[cfg(test)]
mod tests {
    use scenario::{Network, Page, Protocol, Stack, Tls};
    use wire::Probability;
    use wire::link::Loss;

    use super::*;

    fn experiment(network: &Network, stack: &str, protocol: Protocol) -> Experiment {
        let (page, stack) = (Page::named("small-cluster").unwrap(), Stack::named(stack).unwrap());
        let tls = if protocol == Protocol::Http3 { Tls::V13 } else { Tls::None };
        let scenario = Scenario { tls, ..Scenario::new(network.clone(), page, protocol, stack) };
        Experiment::new(&scenario, Hosts::default()).unwrap()
    }

    #[test]
    fn runs_without_chance_are_alike() {
        let protocols =
            [Protocol::Http10, Protocol::Http11Pipelined, Protocol::Http11Parallel, Protocol::Http2];
        let mut alike = 0;
        for network in Network::all() {
            for protocol in protocols {
                let experiment = experiment(&network, "linux", protocol);
                if !experiment.is_random() {
                    let runs = [0, 7].map(|number| experiment.run(number, true).unwrap());
                    let [first, second] = runs.map(|run| (run.elapsed, run.events, run.reports, run.records));
                    assert_eq!(first, second, "{} over {}", protocol.name(), network.name);
                    alike += 1;
                }
            }
        }
        assert!(alike > 40, "{alike}");
    }

    #[test]
    fn chance_of_losses_clocks_and_ids_is_known() {
        let cable = Network::named("cable").unwrap();
        let mut lossy = cable.clone();
        lossy.up.loss = Loss::Independent(Probability::new(0.01).unwrap());
        assert!(experiment(&lossy, "linux", Protocol::Http11).is_random());
        assert!(experiment(&cable, "period", Protocol::Http11).is_random());
        assert!(experiment(&cable, "linux", Protocol::Http3).is_random());
        assert!(experiment(&cable, "linux", Protocol::Dhttp).is_random());
        assert!(!experiment(&cable, "linux", Protocol::Http11).is_random());
    }
}
