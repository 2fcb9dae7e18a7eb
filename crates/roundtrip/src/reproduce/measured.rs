//! What the kernel measures for a table: asked for once per scenario, whatever the number of cells it fills.
//!
//! Not the laboratory: whoever calls `reproduce` hands one in, or none.

use scenario::Scenario;
use trace::Row;

/// Runs a scenario as often as it says, or says in a sentence why it cannot.
pub type Measure<'a> = dyn FnMut(&Scenario) -> Result<Row, String> + 'a;

/// A laboratory, if there is one, and what it has measured.
pub struct Measured<'a> {
    measure: Option<&'a mut Measure<'a>>,
    rows: Vec<(Scenario, Row)>,
}

impl<'a> Measured<'a> {
    /// With nothing measured yet.
    pub fn new(measure: Option<&'a mut Measure<'a>>) -> Self {
        Self { measure, rows: Vec::new() }
    }

    /// What was measured for this scenario; `None` without a laboratory.
    ///
    /// # Errors
    /// Why the laboratory could not.
    pub fn row(&mut self, scenario: &Scenario) -> Result<Option<Row>, String> {
        if let Some((_, row)) = self.rows.iter().find(|(measured, _)| measured == scenario) {
            return Ok(Some(row.clone()));
        }
        let Some(measure) = &mut self.measure else { return Ok(None) };
        let row = measure(scenario)?;
        self.rows.push((scenario.clone(), row.clone()));
        Ok(Some(row))
    }
}
