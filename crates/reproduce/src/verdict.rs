//! The seven verdicts.

use serde::{Deserialize, Serialize};

/// Verdict on our value against the published one, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Equal as printed.
    Exact,
    /// Within the tolerance of the data.
    WithinTolerance,
    /// A published bound is met, or a published order.
    Holds,
    /// In agreement, and an input of ours or something that ours was fitted to.
    Fitted,
    /// Not equal; within the bound of the record with the mechanism of the reason switched on.
    Explained,
    /// Nothing here can test it.
    NotTestableHere,
    /// Not equal.
    Differs,
}

impl Verdict {
    /// Every one, best first.
    pub const ALL: [Self; 7] = [
        Self::Exact,
        Self::WithinTolerance,
        Self::Holds,
        Self::Fitted,
        Self::Explained,
        Self::NotTestableHere,
        Self::Differs,
    ];

    /// Name in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::WithinTolerance => "within-tolerance",
            Self::Holds => "holds",
            Self::Fitted => "fitted",
            Self::Explained => "explained",
            Self::NotTestableHere => "not-testable-here",
            Self::Differs => "differs",
        }
    }
}
