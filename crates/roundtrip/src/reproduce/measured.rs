//! What the kernel measures for a table: asked for once per scenario, whatever the number of cells it fills.
//!
//! Not the laboratory: whoever calls `reproduce` hands one in, or none.

use scenario::Scenario;
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
}

impl<'a> Measured<'a> {
    /// With nothing measured yet.
    pub fn new(measure: Option<&'a mut Measure<'a>>) -> Self {
        Self { measure, found: Vec::new() }
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
