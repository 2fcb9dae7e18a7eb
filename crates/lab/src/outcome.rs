//! Outcome of one scenario by one engine: typed, for every form of output.

use render::output::number;
use scenario::{Engine, Scenario};
use trace::{Metrics, Stall};

use crate::saving::Saving;
use crate::waterfall::RunWaterfall;
use crate::{Remark, minimum};

/// One engine's result of one scenario.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The input.
    pub scenario: Scenario,
    /// The engine.
    pub engine: Engine,
    /// Means over the runs.
    pub metrics: Metrics,
    /// `elapsed_ms` over that of the protocol `minimum` in the same scenario, by the model.
    pub overhead: Option<f64>,
    /// Half the width of the 95% confidence interval of `elapsed_ms`, where there were several runs.
    pub interval95_ms: Option<f64>,
    /// Stalls, where the engine knows them.
    pub stalls: Vec<Stall>,
    /// Waterfall of the first run, if it was simulated and the page is a graph.
    pub waterfall: Option<Box<RunWaterfall>>,
    /// The change of the page that saves most, if it was looked for.
    pub saving: Option<Saving>,
    /// The engine's remarks, then the page's.
    pub remarks: Vec<Remark>,
    /// Reason for a missing time.
    pub missing: Option<Missing>,
}

/// Result of an engine that runs programs: simulated here, or measured by the caller.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Means over the runs.
    pub metrics: Metrics,
    /// Half the width of the 95% confidence interval of `elapsed_ms`.
    pub interval95_ms: Option<f64>,
    /// Stalls, where the engine knows them.
    pub stalls: Vec<Stall>,
    /// Remarks on the runs.
    pub remarks: Vec<scenario::Remark>,
}

/// Reason why there is no time; the sentence is in the remarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The engine does not support a part of the scenario.
    Refused,
    /// The engine failed.
    Failed,
}

impl Missing {
    /// The word in a table's cell.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

impl Outcome {
    /// An outcome of runs, beside the scenario's lower bound.
    pub fn of_runs(scenario: &Scenario, engine: Engine, result: RunResult) -> Self {
        let RunResult { metrics, interval95_ms, stalls, remarks } = result;
        let overhead = minimum::overhead(scenario, metrics.elapsed_ms);
        let remarks = remarks.into_iter().map(Remark::Runs).chain(minimum::remark(overhead));
        Self::new(scenario, engine, metrics, overhead, remarks.collect()).with(stalls, interval95_ms)
    }

    /// An outcome without stalls; the page's remarks are added.
    pub(crate) fn new(
        scenario: &Scenario,
        engine: Engine,
        metrics: Metrics,
        overhead: Option<f64>,
        mut remarks: Vec<Remark>,
    ) -> Self {
        let missing = metrics.elapsed_ms.is_none().then_some(Missing::Failed);
        remarks.extend(scenario.page.notes.iter().cloned().map(Remark::Page));
        let (scenario, stalls, waterfall) = (scenario.clone(), Vec::new(), None);
        Self {
            scenario,
            engine,
            metrics,
            overhead,
            interval95_ms: None,
            stalls,
            waterfall,
            saving: None,
            remarks,
            missing,
        }
    }

    pub(crate) fn with(self, stalls: Vec<Stall>, interval95_ms: Option<f64>) -> Self {
        Self { stalls, interval95_ms, ..self }
    }

    /// The same with the waterfall of its first run.
    pub(crate) fn with_waterfall(self, waterfall: Option<RunWaterfall>) -> Self {
        Self { waterfall: waterfall.map(Box::new), ..self }
    }

    /// An outcome without results, which has the reason in its remarks.
    pub fn missing(scenario: &Scenario, engine: Engine, missing: Missing, reason: String) -> Self {
        let none = Self::new(scenario, engine, Metrics::default(), None, vec![Remark::Missing(reason)]);
        Self { missing: Some(missing), ..none }
    }

    /// The elapsed time as in a table: a number, or the word for its absence.
    pub fn elapsed(&self) -> String {
        match (self.metrics.elapsed_ms, self.missing) {
            (Some(elapsed_ms), _) => number::significant(elapsed_ms),
            (None, missing) => missing.map(Missing::word).unwrap_or_default().to_owned(),
        }
    }

    /// The remarks as sentences.
    pub fn notes(&self) -> Vec<String> {
        self.remarks.iter().map(Remark::to_string).collect()
    }

    /// The same without the page's, which are next to the title.
    pub fn own_notes(&self) -> Vec<String> {
        let mut notes = self.notes();
        notes.retain(|note| !self.scenario.page.notes.contains(note));
        notes
    }
}

/// Adds a remark on the critical path of each simulated run, unless there are too many to be read.
pub fn name_critical_paths(outcomes: &mut [Outcome]) {
    let count = outcomes.iter().filter(|outcome| outcome.waterfall.is_some()).count();
    for outcome in outcomes.iter_mut().filter(|_| count <= MAX_PATHS) {
        let path = outcome.waterfall.as_ref().map(|waterfall| Remark::CriticalPath(waterfall.shares()));
        outcome.remarks.splice(0..0, path);
    }
}

/// Maximum number of critical paths in notes: two protocols over four networks.
const MAX_PATHS: usize = 8;

/// The reason why no outcome has a time, if none has.
pub fn nothing(outcomes: &[Outcome]) -> Option<String> {
    let is_known = outcomes.iter().any(|outcome| outcome.metrics.elapsed_ms.is_some());
    let reason = outcomes.iter().find_map(|outcome| outcome.remarks.first());
    (!is_known).then(|| reason.map(Remark::to_string).unwrap_or_default())
}
