//! A finding: a cause, its time, its cost, and the packets that show it.
//!
//! A connection retains the worst findings of each cause and counts all of them: memory does not grow with the packets.
//! `RetentionLimits` limits their number.

use dissect::Side;
use wire::{Duration, Time};

use crate::cause::{Cause, CauseInfo, Describe as _};
use crate::gap::millis;
pub use crate::ruling::Confidence;

/// A stall and its cause.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its cause.
    pub cause: Cause,
    /// Severity, by the time lost.
    pub severity: Severity,
    /// Confidence of the rule.
    pub confidence: Confidence,
    /// The side that was held up or caused the delay.
    pub side: Side,
    /// When it began.
    pub at: Time,
    /// Time lost.
    pub lost: Duration,
    /// Time that a fix would save; `None` if unknown.
    pub saving: Option<Duration>,
    /// The packets that show it, by their numbers in the capture.
    pub packets: Vec<u64>,
    /// Evidence: a sentence on how the packets show it.
    pub evidence: String,
}

impl Finding {
    /// Lowers its confidence, and with it its severity.
    fn doubt(&mut self, reason: &str) {
        self.confidence = Confidence::Low;
        self.severity = self.severity.when(Confidence::Low);
        self.evidence.reserve_exact(reason.len());
        self.evidence.push_str(reason);
    }
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information, not a fault.
    Note,
    /// A fault that costs less than 20 ms.
    Low,
    /// Worth fixing: at least 20 ms.
    Medium,
    /// At least 100 ms lost, or data.
    High,
}

impl Severity {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Returns whether it is worth fixing.
    pub const fn is_worth_fixing(self) -> bool {
        match self {
            Self::Note | Self::Low => false,
            Self::Medium | Self::High => true,
        }
    }

    /// Limits the severity to low where something else may explain the finding as well: a guess must not fail a build.
    pub(crate) fn when(self, confidence: Confidence) -> Self {
        match confidence {
            Confidence::Low => self.min(Self::Low),
            Confidence::Medium | Confidence::High => self,
        }
    }

    /// Returns the severity of `lost` time due to `cause`.
    pub fn of(cause: Cause, lost: Duration) -> Self {
        let CauseInfo { description: _, fixes: _, is_fault, min_duration: _ } = cause.about();
        if !is_fault {
            return Self::Note;
        }
        // Programs may take their time: only a noticeable delay, a tenth of a second, is worth reporting.
        let timeout = if cause == Cause::ServerThink { 5 } else { 1 };
        match lost.as_nanos() / 1_000_000 / timeout {
            _ if cause.is_failure() => Self::High,
            100.. => Self::High,
            20.. => Self::Medium,
            0.. => Self::Low,
        }
    }
}

/// The findings of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    retained: Vec<Finding>,
    tallies: Vec<Tally>,
}

/// Tally of one cause: shows whether a finding is worth retaining without a scan of the retained ones.
#[derive(Clone, Copy, Debug)]
struct Tally {
    count: Count,
    retained: usize,
    /// Minimum time lost among those retained.
    least: Duration,
    /// Number of stalls too short for a finding, and the time that a fix would save of them.
    short: u64,
    short_saving: Duration,
}

impl Tally {
    fn of(tallies: &mut Vec<Self>, cause: Cause) -> &mut Self {
        match tallies.iter_mut().position(|tally| tally.count.cause == cause) {
            Some(index) => &mut tallies[index],
            None => {
                tallies.reserve_exact(1);
                let count = Count { cause, times: 0, lost: Duration::ZERO };
                let (least, short_saving) = (Duration::MAX, Duration::ZERO);
                tallies.push_mut(Self { count, retained: 0, least, short: 0, short_saving })
            }
        }
    }

    /// Adds the savings of stalls too short for a finding to those of the worst finding of the cause: one fix saves both.
    fn report_short_stalls(&self, retained: &mut [Finding]) {
        /// Imperceptible below this.
        const FELT: Duration = Duration::from_millis(1);
        let Self { count, retained: _, least: _, short, short_saving } = self;
        let alike =
            retained.iter_mut().filter(|retained| retained.cause == count.cause && retained.saving.is_some());
        let Some(worst) = alike.max_by_key(|retained| retained.lost).filter(|_| *short_saving >= FELT) else {
            return;
        };
        worst.saving = worst.saving.map(|saving| saving + *short_saving);
        let waits = if *short == 1 { "one more wait".to_owned() } else { format!("{short} more waits") };
        let millis = millis(*short_saving);
        worst.evidence = format!("{}; a fix also saves {waits} ({millis})", worst.evidence);
    }
}

/// Occurrences of a cause, and its total cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The cause.
    pub cause: Cause,
    /// Number of occurrences.
    pub times: u64,
    /// Total time lost.
    pub lost: Duration,
}

impl Findings {
    /// Counts a stall, and retains it if it is among the `most` worst of its cause. Only then is its evidence
    /// formatted.
    pub(crate) fn add(
        &mut self,
        cause: Cause,
        lost: Duration,
        most: usize,
        finding: impl FnOnce() -> Finding,
    ) {
        let tally = Tally::of(&mut self.tallies, cause);
        (tally.count.times, tally.count.lost) = (tally.count.times + 1, tally.count.lost + lost);
        if tally.retained < most {
            (tally.retained, tally.least) = (tally.retained + 1, tally.least.min(lost));
            self.retained.reserve_exact(1);
            self.retained.push(finding());
        } else if tally.least < lost {
            let alike = self.retained.iter().enumerate().filter(|(_, retained)| retained.cause == cause);
            if let Some((index, _)) = alike.min_by_key(|(_, retained)| retained.lost) {
                self.retained[index] = finding();
            }
            let alike = self.retained.iter().filter(|retained| retained.cause == cause);
            tally.least = alike.map(|retained| retained.lost).min().unwrap_or(Duration::MAX);
        }
    }

    /// Counts a stall that is too short for a finding, of which a fix would save `saving` nevertheless.
    pub(crate) fn add_short(&mut self, cause: Cause, saving: Duration) {
        let tally = Tally::of(&mut self.tallies, cause);
        (tally.short, tally.short_saving) = (tally.short + 1, tally.short_saving + saving);
    }

    /// Adds `more` to the saving of the latest stall of a cause, and subtracts `less` from those of its latest stalls.
    pub(crate) fn correct(&mut self, cause: Cause, more: Duration, less: Duration) {
        let mut alike: Vec<&mut Finding> =
            self.retained.iter_mut().filter(|retained| retained.cause == cause).collect();
        alike.sort_by_key(|retained| std::cmp::Reverse(retained.at));
        let mut less = less;
        for (finding, more) in
            alike.into_iter().zip(std::iter::once(more).chain(std::iter::repeat(Duration::ZERO)))
        {
            let saving = finding.saving.unwrap_or_default() + more;
            finding.saving = Some(saving.saturating_sub(less));
            less = less.saturating_sub(saving);
        }
    }

    /// Returns the number of occurrences of a cause.
    pub(crate) fn times(&self, cause: Cause) -> u64 {
        self.tallies.iter().filter(|tally| tally.count.cause == cause).map(|tally| tally.count.times).sum()
    }

    /// Retracts the findings of a cause at a side since then: another cause applies. Returns their time.
    pub(crate) fn retract(&mut self, cause: Cause, side: Side, since: Time) -> Duration {
        self.retract_if(cause, |retained| retained.side == side && retained.at >= since)
    }

    /// Retracts the findings of a cause that a packet shows. Returns their time.
    pub(crate) fn retract_shown_by(&mut self, cause: Cause, frame: u64) -> Duration {
        self.retract_if(cause, |retained| retained.packets.contains(&frame))
    }

    fn retract_if(&mut self, cause: Cause, is_wrong: impl Fn(&Finding) -> bool) -> Duration {
        let is_match = |retained: &Finding| retained.cause == cause && is_wrong(retained);
        let retracted = self.retained.iter().filter(|retained| is_match(retained));
        let (times, lost) =
            retracted.fold((0, Duration::ZERO), |(times, lost), retained| (times + 1, lost + retained.lost));
        self.retained.retain(|retained| !is_match(retained));
        if times > 0 {
            let tally = Tally::of(&mut self.tallies, cause);
            tally.retained = tally.retained.saturating_sub(times);
            tally.count.times = tally.count.times.saturating_sub(times as u64);
            tally.count.lost = tally.count.lost - lost;
        }
        lost
    }

    /// Lowers the confidence of the findings of a cause since then, except of those that the packets prove.
    pub(crate) fn doubt_since(&mut self, cause: Cause, since: Time, reason: &str) {
        let is_match = |finding: &&mut Finding| {
            finding.cause == cause && finding.at >= since && finding.confidence == Confidence::Medium
        };
        self.retained.iter_mut().filter(is_match).for_each(|finding| finding.doubt(reason));
    }

    /// Lowers the confidence of all findings of a cause.
    pub(crate) fn doubt_all(&mut self, cause: Cause, reason: &str) {
        let is_match =
            |finding: &&mut Finding| finding.cause == cause && finding.confidence > Confidence::Low;
        self.retained.iter_mut().filter(is_match).for_each(|finding| finding.doubt(reason));
    }

    /// Retracts all findings of a cause.
    pub(crate) fn withdraw(&mut self, cause: Cause) {
        self.retained.retain(|retained| retained.cause != cause);
        self.tallies.retain(|tally| tally.count.cause != cause);
    }

    /// Returns the retained findings in chronological order, and the counts.
    pub(crate) fn into_sorted(mut self) -> (Vec<Finding>, Vec<Count>) {
        self.tallies.iter().for_each(|tally| tally.report_short_stalls(&mut self.retained));
        self.retained.sort_by_key(|finding| (finding.at, finding.cause));
        let counts = self.tallies.into_iter().map(|tally| tally.count);
        (self.retained, counts.filter(|count| count.times > 0).collect())
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
    fn worst_findings_are_retained_and_all_are_counted() {
        let mut findings = Findings::default();
        for millis in 1..=200 {
            let lost = Duration::from_millis(millis);
            findings.add(Cause::DelayedAck, lost, 64, || finding(millis));
        }
        let (retained, counts) = findings.into_sorted();
        assert_eq!((counts[0].times, counts[0].lost), (200, Duration::from_millis(20_100)));
        assert_eq!(
            (retained.len(), retained[0].lost, retained[63].lost),
            (64, Duration::from_millis(200), Duration::from_millis(137))
        );
    }

    #[test]
    fn saving_of_short_stalls_is_added_to_the_worst_finding() {
        let mut findings = Findings::default();
        findings.add_short(Cause::Nagle, Duration::from_millis(4));
        findings.add_short(Cause::DelayedAck, Duration::from_millis(4));
        for millis in [6, 9, 7] {
            let found = Finding { saving: Some(Duration::from_millis(millis)), ..finding(millis) };
            findings.add(Cause::DelayedAck, found.lost, 64, || found);
        }
        findings.add_short(Cause::DelayedAck, Duration::from_millis(3));
        let (retained, counts) = findings.into_sorted();
        let savings: Vec<_> = retained.iter().filter_map(|retained| retained.saving).collect();
        // The latest is the first: `finding` has it so.
        assert_eq!(savings, [16, 7, 6].map(Duration::from_millis));
        assert_eq!(retained[0].evidence, "; a fix also saves 2 more waits (7.0 ms)");
        assert_eq!(counts.len(), 1);
    }

    #[test]
    fn severity_goes_by_what_was_lost() {
        let of = |cause, millis| Severity::of(cause, Duration::from_millis(millis));
        assert_eq!(of(Cause::NagleDelayedAck, 44), Severity::Medium);
        assert_eq!(of(Cause::RetransmissionTimeout, 206), Severity::High);
        assert_eq!(of(Cause::ServerThink, 44), Severity::Low);
        assert_eq!(of(Cause::ResetLostData, 0), Severity::High);
        assert_eq!(of(Cause::ClientThink, 10_000), Severity::Note);
        assert_eq!(of(Cause::RetransmissionTimeout, 206).when(Confidence::Low), Severity::Low);
        assert_eq!(of(Cause::RetransmissionTimeout, 206).when(Confidence::Medium), Severity::High);
    }
}
