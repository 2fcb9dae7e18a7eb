//! What is not computed from the papers alone: what the kernel measures for a table, and what is counted of a log. Each
//! is asked for once, whatever the number of cells it fills.
//!
//! Not the laboratory and not the logs: whoever calls `reproduce` hands them in, or none.

use std::path::PathBuf;

use scenario::Scenario;
use simulate::connections::Counts;
use trace::Row;
use wire::Duration;

/// Runs a scenario as often as it says, or says in a sentence why it cannot.
pub type Measure<'a> = dyn FnMut(&Scenario) -> Result<Found, String> + 'a;

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
    found: Vec<(Scenario, Found)>,
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

    /// What was measured for this scenario; `None` without a laboratory.
    ///
    /// # Errors
    /// Why the laboratory could not.
    pub fn found(&mut self, scenario: &Scenario) -> Result<Option<Found>, String> {
        if let Some((_, found)) = self.found.iter().find(|(measured, _)| measured == scenario) {
            return Ok(Some(found.clone()));
        }
        let Some(measure) = &mut self.measure else { return Ok(None) };
        let found = measure(scenario)?;
        self.found.push((scenario.clone(), found.clone()));
        Ok(Some(found))
    }
}
