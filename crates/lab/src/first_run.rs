//! The run of which packets, plots and waterfalls are written.

use scenario::Scenario;
use simulate::{Experiment, PageResult};

/// First run of a scenario, with its packets.
#[derive(Clone, Copy, Debug)]
pub struct FirstRun<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The checked scenario.
    pub experiment: &'a Experiment,
    /// The run.
    pub result: &'a PageResult,
}
