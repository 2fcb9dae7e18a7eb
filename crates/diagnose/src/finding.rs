//! What was found: a cause, when, what it cost, and the packets that show it.
//!
//! A connection keeps the worst findings of each cause, and counts them all: memory does not grow with the packets. How
//! many it keeps is said by `keep::Keep`.

use wire::{Duration, Time};

use crate::cause::{About, Cause};
pub use crate::judge::Confidence;
use crate::side::Side;

/// A stall, and why.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Why.
    pub cause: Cause,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// Who was held up, or took the time.
    pub side: Side,
    /// When it began.
    pub at: Time,
    /// What it cost.
    pub lost: Duration,
    /// What a fix would save; `None` where that cannot be said.
    pub saving: Option<Duration>,
    /// The packets that show it, by their number in the capture.
    pub packets: Vec<u64>,
    /// How they show it.
    pub evidence: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Note,
    /// A fault that costs little.
    Low,
    /// Worth fixing: at least 20 ms.
    Medium,
    /// At least 100 ms, or data.
    High,
}

impl Severity {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Whether somebody should do something about it.
    pub const fn is_worth_fixing(self) -> bool {
        match self {
            Self::Note | Self::Low => false,
            Self::Medium | Self::High => true,
        }
    }

    /// Of so much time lost to `cause`.
    pub(crate) fn of(cause: Cause, lost: Duration) -> Self {
        let About { what: _, fixes: _, is_fault, least: _ } = cause.about();
        if !is_fault {
            return Self::Note;
        }
        // Programs may take their time: what an eye notices is worth a look, a tenth of a second.
        let patience = if cause == Cause::ServerThink { 5 } else { 1 };
        match lost.as_nanos() / 1_000_000 / patience {
            _ if cause == Cause::ResetLostData => Self::High,
            100.. => Self::High,
            20.. => Self::Medium,
            0.. => Self::Low,
        }
    }
}

/// The findings of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    kept: Vec<Finding>,
    pub(crate) counts: Vec<Count>,
}

/// How often a cause was found, and what it cost in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The cause.
    pub cause: Cause,
    /// How often.
    pub times: u64,
    /// In all.
    pub lost: Duration,
}

impl Findings {
    /// Counts a stall, and keeps it if it is among the `most` worst of its cause: only then is it written out.
    pub(crate) fn add(
        &mut self,
        cause: Cause,
        lost: Duration,
        most: usize,
        finding: impl FnOnce() -> Finding,
    ) {
        match self.counts.iter_mut().find(|count| count.cause == cause) {
            Some(count) => (count.times, count.lost) = (count.times + 1, count.lost + lost),
            None => self.counts.push(Count { cause, times: 1, lost }),
        }
        let alike = || self.kept.iter().enumerate().filter(|(_, kept)| kept.cause == cause);
        if alike().count() < most {
            self.kept.reserve_exact(1);
            self.kept.push(finding());
            return;
        }
        let least = alike().min_by_key(|(_, kept)| kept.lost);
        if let Some((place, _)) = least.filter(|(_, kept)| kept.lost < lost) {
            self.kept[place] = finding();
        }
    }

    /// What was kept, in the order of time.
    pub(crate) fn into_sorted(mut self) -> Vec<Finding> {
        self.kept.sort_by_key(|finding| (finding.at, finding.cause));
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(millis: u64) -> Finding {
        let lost = Duration::from_millis(millis);
        Finding {
            cause: Cause::DelayedAck,
            severity: Severity::of(Cause::DelayedAck, lost),
            confidence: Confidence::High,
            side: Side::Client,
            at: Time::from_nanos(1_000 - millis),
            lost,
            saving: None,
            packets: Vec::new(),
            evidence: String::new(),
        }
    }

    #[test]
    fn the_worst_are_kept_and_all_are_counted() {
        let mut findings = Findings::default();
        for millis in 1..=200 {
            let lost = Duration::from_millis(millis);
            findings.add(Cause::DelayedAck, lost, 64, || finding(millis));
        }
        assert_eq!(findings.counts[0].times, 200);
        assert_eq!(findings.counts[0].lost, Duration::from_millis(20_100));
        let kept = findings.into_sorted();
        assert_eq!(
            (kept.len(), kept[0].lost, kept[63].lost),
            (64, Duration::from_millis(200), Duration::from_millis(137))
        );
    }

    #[test]
    fn severity_goes_by_what_was_lost() {
        let of = |cause, millis| Severity::of(cause, Duration::from_millis(millis));
        assert_eq!(of(Cause::NagleDelayedAck, 44), Severity::Medium);
        assert_eq!(of(Cause::RetransmissionTimeout, 206), Severity::High);
        assert_eq!(of(Cause::ServerThink, 44), Severity::Low);
        assert_eq!(of(Cause::ResetLostData, 0), Severity::High);
        assert_eq!(of(Cause::ClientThink, 10_000), Severity::Note);
    }
}
