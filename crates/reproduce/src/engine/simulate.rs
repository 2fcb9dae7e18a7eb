//! Calls of the simulator: TCP packet by packet in virtual time.

pub mod probes;
pub mod sequence;
pub mod visits;

use ::simulate::{Error, Experiment, Hosts, PageResult};
use render::output::{Missing, Outcome};
use render::provenance::Provenance;
use scenario::spec::Plan;
use scenario::{Engine, Scenario};

use super::with_overhead;

/// Simulations of each scenario. One that cannot be simulated becomes a row that states the reason.
pub fn outcomes(plan: &Plan) -> Vec<Outcome> {
    plan.scenarios.iter().map(outcome).collect()
}

/// The simulation of one scenario.
fn outcome(scenario: &Scenario) -> Outcome {
    match ::simulate::simulate(scenario, Hosts::default()) {
        Ok(row) => {
            let interval95_ms = row
                .elapsed_ms_stddev
                .map(|deviation| trace::statistics::interval95(deviation, row.runs as usize));
            let row = with_overhead(scenario, row);
            Outcome::new(scenario, row, interval95_ms)
        }
        Err(error) => Outcome::missing(scenario, Engine::Simulate, Missing::Refused, error.to_string()),
    }
}

/// First of the runs whose mean [`outcomes`] takes, with its packets.
///
/// # Errors
/// The reason why it cannot be simulated.
pub fn first_run(scenario: &Scenario) -> Result<(Experiment, PageResult), Error> {
    let experiment = Experiment::new(scenario, Hosts::default())?;
    let fetched = experiment.run(0, true)?;
    Ok((experiment, fetched))
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
