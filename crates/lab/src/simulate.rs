//! Calls of the simulator: TCP packet by packet in virtual time.
//!
//! Read in this order: [`probes`] writes the state of a run's connections, [`sequence`] plots its packets, [`steps`]
//! explains each of them, [`visit`] is the
//! run as a visit of an HTTP archive. All take the first run, when it happens: it is simulated once.

pub mod panels;
pub mod probes;
pub mod sequence;
pub mod steps;
pub mod visit;

use render::provenance::Provenance;
use scenario::spec::Plan;
use scenario::{Engine, Scenario};
use simulate::{Experiment, Hosts, PageResult, Simulation};

pub use crate::first_run::FirstRun;
use crate::{Missing, Outcome, RunResult, waterfall};

/// Simulations of each scenario. One that cannot be simulated becomes an outcome that states the reason.
pub fn outcomes(plan: &Plan) -> Vec<Outcome> {
    plan.scenarios.iter().map(|scenario| outcome(scenario, |_| ())).collect()
}

/// Simulation of one scenario. `see_first` gets the first of the runs whose means the outcome has.
pub fn outcome(scenario: &Scenario, mut see_first: impl FnMut(FirstRun<'_>)) -> Outcome {
    let mut waterfall = None;
    let see = |experiment: &Experiment, result: &PageResult| {
        let first = FirstRun { scenario, experiment, result };
        if !scenario.page.is_plain() {
            waterfall = waterfall::of(first);
        }
        see_first(first);
    };
    match simulate::simulate_with(scenario, Hosts::default(), see) {
        Ok(Simulation { metrics, stalls, remarks }) => {
            let interval95_ms = metrics
                .elapsed_ms_stddev
                .map(|deviation| trace::statistics::interval95(deviation, metrics.runs as usize));
            let result = RunResult { metrics, interval95_ms, stalls, remarks };
            Outcome::of_runs(scenario, Engine::Simulate, result).with_waterfall(waterfall)
        }
        Err(error) => Outcome::missing(scenario, Engine::Simulate, Missing::Refused, error.to_string()),
    }
}

/// Why not every scenario has QUIC: the first protocol without it.
pub fn without_quic(plan: &Plan) -> Option<String> {
    let other = plan.scenarios.iter().find(|scenario| !scenario.protocol.is_http3())?;
    Some(format!("{} has no QUIC; give --protocol http3 or http3-upgrade", other.protocol.name()))
}

/// Provenance of the simulations.
pub fn provenance(plan: &Plan) -> Provenance {
    let seeds = plan.scenarios.first().map_or(0, |scenario| scenario.seed.get());
    Provenance::fact(
        "simulator",
        format!(
            "TCP of our own in virtual time, hosts that take no time beyond the stack's wake-up; seed {seeds}"
        ),
    )
}
