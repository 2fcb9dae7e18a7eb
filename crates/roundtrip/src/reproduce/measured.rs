//! What is not computed from the papers alone: what the kernel measures for a table, and what is counted of a log. Each
//! is asked for once, whatever the number of cells it fills.
//!
//! Not the laboratory and not the logs: whoever calls `reproduce` hands them in, or none.

use std::path::PathBuf;

use measure::Peers;
use scenario::Scenario;
use simulate::connections::Counts;
use trace::Row;
use wire::Duration;

/// Runs a scenario as often as it says, by these programs; `None` if they are not there, and a sentence if it cannot.
pub type Measure<'a> = dyn FnMut(&Scenario, Peers) -> Result<Option<Found>, String> + 'a;

/// What the kernel did.
#[derive(Clone, Debug)]
pub struct Found {
    /// Over all runs.
    pub row: Row,
    /// What the server really took for an answer, the mean over all answers: the scenario's time, and what the
    /// machine added.
    pub processing: Duration,
}

/// A laboratory, if there is one, and what it has measured.
pub struct Measured<'a> {
    measure: Option<&'a mut Measure<'a>>,
    found: Vec<(Scenario, Peers, Option<Found>)>,
    logs: Option<PathBuf>,
    counts: Option<Counts>,
}

/// Counts connections from a log, or says in a sentence why it cannot.
pub type Count = fn(PathBuf) -> Result<Counts, String>;

impl<'a> Measured<'a> {
    /// With nothing measured yet.
    pub fn new(measure: Option<&'a mut Measure<'a>>, logs: Option<PathBuf>) -> Self {
        Self { measure, found: Vec::new(), logs, counts: None }
    }

    /// What was counted of the one log that tables ask for; `None` where logs are not to be had.
    ///
    /// # Errors
    /// Why it could not be counted.
    pub fn counts(&mut self, name: &str, count: Count) -> Result<Option<&Counts>, String> {
        if self.counts.is_none() {
            let Some(logs) = &self.logs else { return Ok(None) };
            self.counts = Some(count(logs.join(name))?);
        }
        Ok(self.counts.as_ref())
    }

    /// What our own programs took for this scenario; `None` without a laboratory.
    ///
    /// # Errors
    /// Why the laboratory could not.
    pub fn found(&mut self, scenario: &Scenario) -> Result<Option<Found>, String> {
        self.found_by(Peers::default(), scenario)
    }

    /// What these programs took for it; `None` without a laboratory, or where they are not installed.
    ///
    /// # Errors
    /// Why the laboratory could not.
    pub fn found_by(&mut self, peers: Peers, scenario: &Scenario) -> Result<Option<Found>, String> {
        let is_it =
            |(measured, by, _): &&(Scenario, Peers, Option<Found>)| measured == scenario && *by == peers;
        if let Some((_, _, found)) = self.found.iter().find(is_it) {
            return Ok(found.clone());
        }
        let Some(measure) = &mut self.measure else { return Ok(None) };
        let found = measure(scenario, peers)?;
        self.found.push((scenario.clone(), peers, found.clone()));
        Ok(found)
    }
}
