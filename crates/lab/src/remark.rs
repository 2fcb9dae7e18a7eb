//! Remarks of all engines: assumptions that a scenario breaks, deviations, facts that no metric has.

use std::fmt;

use crate::difference::Difference;

/// Remark on an outcome, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Remark {
    /// Assumption of the formulas that the scenario breaks.
    Assumption(model::Note),
    /// The critical path of a simulated run, and its share of waits.
    CriticalPath(String),
    /// Remark on simulated or measured runs.
    Runs(scenario::Remark),
    /// The time is below the formula's minimum.
    BelowMinimum,
    /// Reason why simulator and kernel differ.
    Difference(Difference),
    /// Reason of a missing result: the engine's sentence.
    Missing(String),
    /// Remark of the page's source.
    Page(String),
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assumption(note) => note.fmt(f),
            Self::Runs(remark) => remark.fmt(f),
            Self::BelowMinimum => f.write_str(
                "below the formula's minimum, which sends every request before the first response and, where \
                 requests are dependent, waits for the whole document: here they overlap",
            ),
            Self::Difference(difference) => difference.fmt(f),
            Self::Missing(sentence) | Self::Page(sentence) | Self::CriticalPath(sentence) => {
                f.write_str(sentence)
            }
        }
    }
}
