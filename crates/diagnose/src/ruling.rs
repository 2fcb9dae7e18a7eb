//! A rule's judgement of a gap: the cause, the time attributed to it, and the evidence.
//!
//! The rules are in `causes`, their order in `judge`.

use wire::{Duration, Time};

use crate::cause::Cause;
use crate::finding::Confidence;
use crate::gap::Gap;
use trace::account::Share;

/// A rule's judgement of a gap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ruling {
    pub(crate) share: Share,
    /// Start of the attributed time: the time before it is the round trip of the path.
    pub(crate) since: Time,
    pub(crate) confidence: Confidence,
    /// The sentence of evidence; `None` if it is not a finding.
    pub(crate) evidence: Option<Evidence>,
    /// Time that a fix would save; `None` if unknown.
    pub(crate) saving: Option<Duration>,
    /// When the lost time began before the gap: the data was missing since then.
    pub(crate) lost_since: Option<dissect::Mark>,
}

impl Ruling {
    /// Attributes all of the gap to one cause, and counts all of it as the saving.
    pub(crate) fn all(gap: &Gap, cause: Cause, evidence: Evidence) -> Self {
        Self {
            share: Share::Stall(cause),
            since: gap.wait.from.at,
            confidence: Confidence::High,
            evidence: Some(evidence),
            saving: Some(gap.duration()),
            lost_since: None,
        }
    }

    /// Attributes all of the gap to `share`, without a finding.
    pub(crate) fn plain(gap: &Gap, share: Share) -> Self {
        Self {
            share,
            since: gap.wait.from.at,
            confidence: Confidence::High,
            evidence: None,
            saving: None,
            lost_since: None,
        }
    }
}

/// Formats how the packets of a gap show its cause.
pub(crate) type Evidence = fn(&Gap) -> String;
