//! A finding: a cause, its time, its cost, and the packets that show it.
//!
//! A connection retains the worst findings of each cause and counts all of them: memory does not grow with the packets.
//! `RetentionLimits` limits their number.

use dissect::Side;
use wire::{Duration, Time};

use crate::cause::{Cause, Describe as _};
use crate::text::millis;

/// A stall and its cause.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its cause.
    pub cause: Cause,
    /// Severity, by what a fix would save; until the connection ends, the maximum.
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
    /// Returns a note on a connection.
    pub(crate) const fn note(cause: Cause, at: Time, lost: Duration, evidence: String) -> Self {
        Self {
            cause,
            severity: Severity::Note,
            confidence: Confidence::High,
            side: Side::Server,
            at,
            lost,
            saving: None,
            packets: Vec::new(),
            evidence,
        }
    }

    /// Returns whether it is a repair of lost data.
    pub(crate) const fn is_of_loss(&self) -> bool {
        matches!(self.cause, Cause::FastRetransmit | Cause::RetransmissionTimeout | Cause::TailLossProbe)
    }

    /// Lowers its confidence, and with it its severity.
    pub(crate) fn doubt(&mut self, reason: &str) {
        self.confidence = Confidence::Low;
        self.evidence.reserve_exact(reason.len());
        self.evidence.push_str(reason);
    }
}

/// Confidence in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The facts fit, but other causes may, too.
    Low,
    /// Few other causes fit.
    Medium,
    /// The packets allow no other interpretation.
    High,
}

impl Confidence {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Severity of a finding: by one rule for every cause, what a fix would save.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information, not a fault.
    Note,
    /// A fault that costs less, or that the packets do not prove.
    Low,
    /// Worth fixing: at least 20 ms and a hundredth of the waiting time.
    Medium,
    /// At least 100 ms and a tenth of the waiting time, or data.
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

    /// Returns the maximum for a cause: what the path or the protocol's start costs is never a fault.
    pub(crate) fn most(cause: Cause) -> Self {
        if cause.about().is_fault { Self::High } else { Self::Note }
    }

    /// Returns the severity of a cause whose fix would save `saving` of `waited`.
    pub fn of(cause: Cause, saving: Duration, waited: Duration) -> Self {
        /// Perceptible savings, in milliseconds, and the shares of the waiting time that they must reach.
        const LEAST: [(u64, u64, Severity); 2] = [(100, 10, Severity::High), (20, 100, Severity::Medium)];
        // Programs may take their time: only a noticeable delay, a tenth of a second, is worth reporting.
        let patience = if cause == Cause::ServerThink { 5 } else { 1 };
        let is_reached = |(millis, part): (u64, u64)| {
            saving >= Duration::from_millis(millis * patience) && saving >= waited / part
        };
        let reached = LEAST.into_iter().find(|(millis, part, _)| is_reached((*millis, *part)));
        reached.map_or(Self::Low, |(_, _, severity)| severity).min(Self::most(cause))
    }

    /// Limits the severity to low where something else may explain the finding as well: a guess must not fail a build.
    pub(crate) fn unless(self, is_guess: bool) -> Self {
        if is_guess { self.min(Self::Low) } else { self }
    }
}

/// The findings of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    retained: Vec<Finding>,
    tallies: Vec<Tally>,
}

/// Tally of one cause: shows whether a finding is worth retaining without a scan of the retained ones.
#[derive(Clone, Debug)]
struct Tally {
    count: Count,
    retained: usize,
    /// Minimum time lost among those retained.
    least: Duration,
    /// Time that a fix would save of those not retained.
    unlisted_saving: Duration,
    /// Number of stalls too short for a finding, the time that a fix would save of them, and their sum with the evidence
    /// of the longest.
    short: u64,
    short_saving: Duration,
    short_sum: Option<Box<(Duration, Finding)>>,
}

impl Tally {
    fn of(tallies: &mut Vec<Self>, cause: Cause) -> &mut Self {
        match tallies.iter_mut().position(|tally| tally.count.cause == cause) {
            Some(index) => &mut tallies[index],
            None => {
                tallies.reserve_exact(1);
                let (least, none) = (Duration::MAX, Duration::ZERO);
                let count = Count { cause, times: 0, lost: none, saving: none };
                tallies.push_mut(Self {
                    count,
                    retained: 0,
                    least,
                    unlisted_saving: none,
                    short: 0,
                    short_saving: none,
                    short_sum: None,
                })
            }
        }
    }

    /// Adds the savings of stalls too short for a finding to those of the worst finding of the cause: one fix saves both.
    /// Without one, they are a finding together if their sum is worth one; not a program's short times, nor probes, of which later
    /// packets may show that nothing was lost.
    fn report_short_stalls(&mut self, retained: &mut Vec<Finding>) {
        /// Imperceptible below this; and the least sum that is worth a finding of its own.
        const FELT: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];
        let Self { count, retained: _, least: _, unlisted_saving: _, short, short_saving, short_sum } = self;
        let alike =
            retained.iter_mut().filter(|retained| retained.cause == count.cause && retained.saving.is_some());
        let (millis, most) = (millis(*short_saving), alike.max_by_key(|retained| retained.lost));
        if let Some(worst) = most.filter(|_| *short_saving >= FELT[0]) {
            worst.saving = worst.saving.map(|saving| saving + *short_saving);
            let waits = if *short == 1 { "one more wait".to_owned() } else { format!("{short} more waits") };
            worst.evidence = format!("{}; a fix also saves {waits} ({millis})", worst.evidence);
        } else if *short_saving >= FELT[1]
            && count.times == 0
            && !matches!(count.cause, Cause::ServerThink | Cause::TailLossProbe)
            && let Some(sum) = short_sum.take()
        {
            let (_, sum) = *sum;
            (count.times, count.lost) = (*short, sum.lost);
            let evidence = format!("{}; {short} such waits, of which a fix saves {millis}", sum.evidence);
            retained.push(Finding { saving: Some(*short_saving), evidence, ..sum });
        }
    }

    /// Sets the severity of the cause's findings by their savings, of `waited` time, and that of the worst by their sum:
    /// one fix saves all. A program takes its time for each request anew.
    fn grade(&self, retained: &mut [Finding], waited: Duration) {
        let cause = self.count.cause;
        let mut sum = Duration::ZERO;
        let alike = retained.iter_mut().filter(|retained| retained.cause == cause);
        for finding in alike {
            let is_of_saving = !cause.is_failure() || finding.saving.is_some();
            let saving = finding.saving.unwrap_or_default();
            // A client's stall within a handshake is graded as a server's.
            let is_promoted = finding.severity > Severity::most(cause);
            let graded = if is_promoted { Cause::ServerThink } else { cause };
            // The short waits that the worst finding also saves are those of other requests.
            let of_it = if graded == Cause::ServerThink { saving.min(finding.lost) } else { saving };
            if is_of_saving {
                finding.severity = finding.severity.min(Severity::of(graded, of_it, waited));
            }
            finding.severity = finding.severity.unless(finding.confidence == Confidence::Low);
            sum += if finding.confidence == Confidence::High { saving } else { Duration::ZERO };
        }
        let is_proven = |retained: &&mut Finding| {
            retained.cause == cause
                && retained.confidence == Confidence::High
                && retained.severity > Severity::Note
        };
        let proven = retained.iter_mut().filter(is_proven);
        if let Some(worst) =
            proven.max_by_key(|retained| retained.saving).filter(|_| cause != Cause::ServerThink)
        {
            worst.severity = worst.severity.max(Severity::of(cause, sum, waited));
        }
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
    /// Total time that a fix would save; zero if that is unknown.
    pub saving: Duration,
}

impl Findings {
    /// Counts a stall, of which a fix saves `saving`, and retains it if it is among the `most` worst of its cause. Only
    /// then is its evidence formatted.
    pub(crate) fn add(
        &mut self,
        cause: Cause,
        [lost, saving]: [Duration; 2],
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
            if let Some((index, least)) = alike.min_by_key(|(_, retained)| retained.lost) {
                tally.unlisted_saving += least.saving.unwrap_or_default();
                self.retained[index] = finding();
            }
            let alike = self.retained.iter().filter(|retained| retained.cause == cause);
            tally.least = alike.map(|retained| retained.lost).min().unwrap_or(Duration::MAX);
        } else {
            tally.unlisted_saving += saving;
        }
    }

    /// Counts a stall that is too short for a finding, of which a fix would save `saving` nevertheless.
    pub(crate) fn add_short(&mut self, cause: Cause, saving: Duration) {
        let tally = Tally::of(&mut self.tallies, cause);
        (tally.short, tally.short_saving) = (tally.short + 1, tally.short_saving + saving);
    }

    /// The same with its evidence.
    pub(crate) fn add_short_finding(
        &mut self,
        cause: Cause,
        lost: Duration,
        saving: Duration,
        finding: impl FnOnce() -> Finding,
    ) {
        self.add_short(cause, saving);
        let sum = &mut Tally::of(&mut self.tallies, cause).short_sum;
        match sum.as_deref_mut() {
            None => *sum = Some(Box::new((lost, finding()))),
            Some((longest, sum)) => {
                let (at, total) = (sum.at, sum.lost + lost);
                if lost > *longest {
                    (*longest, *sum) = (lost, Finding { at, ..finding() });
                }
                sum.lost = total;
            }
        }
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
        let unlisted = &mut Tally::of(&mut self.tallies, cause).unlisted_saving;
        *unlisted = unlisted.saturating_sub(less);
    }

    /// Returns the time lost to a cause beyond what fixes save of it.
    pub(crate) fn unsaved(&mut self, cause: Cause) -> Duration {
        let alike = self.retained.iter().filter(|retained| retained.cause == cause);
        let saved: Duration = alike.filter_map(|retained| retained.saving).sum();
        let tally = Tally::of(&mut self.tallies, cause);
        tally.count.lost.saturating_sub(saved + tally.unlisted_saving)
    }

    /// Returns the number of occurrences of a cause.
    pub(crate) fn times(&self, cause: Cause) -> u64 {
        self.tallies.iter().filter(|tally| tally.count.cause == cause).map(|tally| tally.count.times).sum()
    }

    /// Retracts the findings of a cause at a side since then: another cause applies. Returns their time.
    pub(crate) fn retract(&mut self, cause: Cause, side: Side, since: Time) -> Duration {
        self.retract_if(cause, |retained| retained.side == side && retained.at >= since)
    }

    /// Adds to the evidence of the findings of a cause that a packet shows.
    pub(crate) fn explain(&mut self, cause: Cause, frame: u64, text: &str) {
        let is_match = |retained: &&mut Finding| retained.cause == cause && retained.packets.contains(&frame);
        self.retained.iter_mut().filter(is_match).for_each(|retained| retained.evidence.push_str(text));
    }

    /// Retracts the findings of a cause that a packet shows. Returns their time.
    pub(crate) fn retract_shown_by(&mut self, cause: Cause, frame: u64) -> Duration {
        self.retract_if(cause, |retained| retained.packets.contains(&frame))
    }

    /// Retracts those of a cause that are wrong. Returns their time.
    pub(crate) fn retract_if(&mut self, cause: Cause, is_wrong: impl Fn(&Finding) -> bool) -> Duration {
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
        let is_likely = |finding: &Finding| finding.at >= since && finding.confidence == Confidence::Medium;
        self.doubt_if(cause, reason, is_likely);
    }

    /// Raises the confidence of what was only likely to medium: later packets show it.
    pub(crate) fn trust(&mut self, cause: Cause) {
        let is_match =
            |finding: &&mut Finding| finding.cause == cause && finding.confidence == Confidence::Low;
        for finding in self.retained.iter_mut().filter(is_match) {
            (finding.confidence, finding.severity) = (Confidence::Medium, Severity::most(cause));
        }
    }

    /// Lowers the confidence of all findings of a cause.
    pub(crate) fn doubt_all(&mut self, cause: Cause, reason: &str) {
        self.doubt_if(cause, reason, |_| true);
    }

    /// Lowers the confidence of some findings of a cause.
    pub(crate) fn doubt_if(&mut self, cause: Cause, reason: &str, is_doubtful: impl Fn(&Finding) -> bool) {
        let is_match = |finding: &&mut Finding| {
            finding.cause == cause && finding.confidence > Confidence::Low && is_doubtful(finding)
        };
        let short = self.tallies.iter_mut().filter_map(|tally| Some(&mut tally.short_sum.as_deref_mut()?.1));
        self.retained.iter_mut().chain(short).filter(is_match).for_each(|finding| finding.doubt(reason));
    }

    /// Retracts all findings of a cause.
    pub(crate) fn withdraw(&mut self, cause: Cause) {
        self.retained.retain(|retained| retained.cause != cause);
        self.tallies.retain(|tally| tally.count.cause != cause);
    }

    /// Moves the savings of windows that losses had reduced to the loss before them: without it the window had been larger. Their
    /// cause is only inferred, so the severity of the loss remains that of its repair.
    fn attribute_reduced_windows(&mut self) {
        let mut losses: [Option<usize>; 2] = [None; 2];
        let mut sums = vec![(0_u64, Duration::ZERO); self.retained.len()];
        for (index, finding) in self.retained.iter_mut().enumerate() {
            let loss = &mut losses[finding.side as usize];
            if finding.is_of_loss() {
                let is_shown = finding.confidence == Confidence::High && finding.saving.is_some();
                *loss = is_shown.then_some(index);
            } else if finding.cause == Cause::CongestionWindow
                && let Some(loss) = *loss
                && let Some(saving) = finding.saving.take()
            {
                sums[loss] = (sums[loss].0 + 1, sums[loss].1 + saving);
            }
        }
        for (finding, (count, sum)) in self.retained.iter_mut().zip(sums).filter(|(_, (count, _))| *count > 0)
        {
            finding.saving = finding.saving.map(|saving| saving + sum);
            let (waits, sum) = (crate::text::counted(count, "wait"), millis(sum));
            finding.evidence = format!(
                "{}; the smaller window afterwards cost {waits}, of which {sum} would be saved",
                finding.evidence
            );
        }
    }

    /// Returns the retained findings in chronological order, and the counts; `waited` is the time in which a side waited.
    pub(crate) fn into_sorted(mut self, waited: Duration) -> (Vec<Finding>, Vec<Count>) {
        for tally in &mut self.tallies {
            tally.report_short_stalls(&mut self.retained);
            tally.grade(&mut self.retained, waited);
        }
        self.retained.sort_by_key(|finding| (finding.at, finding.cause));
        self.attribute_reduced_windows();
        let counts = self.tallies.into_iter().filter(|tally| tally.count.times > 0).map(|tally| {
            let alike = self.retained.iter().filter(|retained| retained.cause == tally.count.cause);
            let listed: Duration = alike.filter_map(|retained| retained.saving).sum();
            Count { saving: listed + tally.unlisted_saving, ..tally.count }
        });
        let counts = counts.collect();
        (self.retained, counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(millis: u64) -> Finding {
        let lost = Duration::from_millis(millis);
        Finding {
            cause: Cause::DelayedAck,
            severity: Severity::most(Cause::DelayedAck),
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
            let saved = || Finding { saving: Some(lost), ..finding(millis) };
            findings.add(Cause::DelayedAck, [lost; 2], 64, saved);
        }
        let (retained, counts) = findings.into_sorted(Duration::ZERO);
        let Count { cause: _, times, lost, saving } = counts[0];
        assert_eq!((times, [lost, saving]), (200, [Duration::from_millis(20_100); 2]));
        assert_eq!(
            (retained.len(), retained[0].lost, retained[63].lost),
            (64, Duration::from_millis(200), Duration::from_millis(137))
        );
    }

    #[test]
    fn smaller_windows_after_a_loss_count_as_its_cost() {
        let stall = |cause, at, saving, side, confidence| Finding {
            at: Time::from_nanos(at),
            saving: Some(Duration::from_millis(saving)),
            side,
            confidence,
            ..Finding { cause, ..finding(saving) }
        };
        let mut findings = Findings::default();
        let window = |at, saving, side| stall(Cause::CongestionWindow, at, saving, side, Confidence::Medium);
        let loss = |at, confidence| stall(Cause::FastRetransmit, at, 10, Side::Server, confidence);
        // The first wait has no loss before it, the third is of the other side, and the last follows a full queue.
        for stall in [
            window(1, 40, Side::Server),
            loss(2, Confidence::High),
            window(3, 200, Side::Server),
            window(4, 300, Side::Client),
            loss(5, Confidence::Medium),
            window(6, 500, Side::Server),
        ] {
            findings.add(stall.cause, [stall.lost, stall.saving.unwrap_or_default()], 64, || stall);
        }
        let (retained, counts) = findings.into_sorted(SECOND);
        let savings: Vec<_> = retained.iter().map(|retained| retained.saving).collect();
        let of_causes: Vec<_> = counts.iter().map(|count| count.saving.as_millis_f64()).collect();
        assert_eq!(of_causes, [840.0, 220.0], "windows, and losses");
        let millis = |saving| Some(Duration::from_millis(saving));
        assert_eq!(savings, [millis(40), millis(210), None, millis(300), millis(10), millis(500)]);
        assert_eq!(retained[1].severity, Severity::Low, "what is inferred does not raise it");
        assert!(retained[1].evidence.ends_with("cost 1 wait, of which 200 ms would be saved"));
    }

    #[test]
    fn saving_of_short_stalls_is_added_to_the_worst_finding() {
        let mut findings = Findings::default();
        findings.add_short(Cause::Nagle, Duration::from_millis(4));
        findings.add_short(Cause::DelayedAck, Duration::from_millis(4));
        for millis in [6, 9, 7] {
            let found = Finding { saving: Some(Duration::from_millis(millis)), ..finding(millis) };
            findings.add(Cause::DelayedAck, [found.lost; 2], 64, || found);
        }
        findings.add_short(Cause::DelayedAck, Duration::from_millis(3));
        let (retained, counts) = findings.into_sorted(Duration::ZERO);
        let savings: Vec<_> = retained.iter().filter_map(|retained| retained.saving).collect();
        // The latest is the first: `finding` has it so.
        assert_eq!(savings, [16, 7, 6].map(Duration::from_millis));
        assert_eq!(retained[0].evidence, "; a fix also saves 2 more waits (7.0 ms)");
        assert_eq!(counts.len(), 1);
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn severity_goes_by_what_a_fix_saves_and_by_its_share_of_the_waiting_time() {
        let of =
            |cause, millis, waited: u64| Severity::of(cause, Duration::from_millis(millis), SECOND * waited);
        assert_eq!(of(Cause::NagleDelayedAck, 44, 1), Severity::Medium);
        assert_eq!(of(Cause::RetransmissionTimeout, 206, 1), Severity::High);
        assert_eq!(of(Cause::RetransmissionTimeout, 206, 3), Severity::Medium);
        assert_eq!(of(Cause::RetransmissionTimeout, 206, 60), Severity::Low);
        assert_eq!(of(Cause::ServerThink, 44, 0), Severity::Low);
        assert_eq!(of(Cause::ClientThink, 10_000, 0), Severity::Note);
    }

    /// Graded findings of a cause with these savings in milliseconds.
    fn graded(cause: Cause, savings: &[u64], confidence: Confidence) -> Vec<Severity> {
        let mut findings = Findings::default();
        for millis in savings {
            let (lost, saving) = (SECOND, Some(Duration::from_millis(*millis)));
            let found = Finding { cause, lost, saving, confidence, ..finding(*millis) };
            findings.add(cause, [lost, saving.unwrap_or_default()], 64, || found);
        }
        findings.into_sorted(SECOND).0.into_iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn worst_of_many_small_stalls_has_the_severity_of_their_sum() {
        // The latest is the first.
        let of = |confidence| graded(Cause::ReceiveWindowLimited, &[9, 8, 7], confidence);
        assert_eq!(of(Confidence::High), [Severity::Medium, Severity::Low, Severity::Low]);
        assert_eq!(of(Confidence::Low), [Severity::Low; 3]);
        assert_eq!(graded(Cause::ServerThink, &[44, 45, 46], Confidence::High), [Severity::Low; 3]);
        // The time lost does not count.
        assert_eq!(graded(Cause::ReceiveWindowLimited, &[0], Confidence::High), [Severity::Low]);
    }

    #[test]
    fn short_waits_of_other_requests_make_no_request_slow() {
        let of = |millis: u64| {
            let (mut findings, wait) = (Findings::default(), Duration::from_millis(millis));
            let found =
                Finding { cause: Cause::ServerThink, lost: wait, saving: Some(wait), ..finding(millis) };
            findings.add(Cause::ServerThink, [wait; 2], 64, || found);
            (0..5).for_each(|_| findings.add_short(Cause::ServerThink, Duration::from_millis(10)));
            findings.into_sorted(SECOND).0[0].severity
        };
        assert_eq!([86, 110].map(of), [Severity::Low, Severity::Medium]);
    }

    #[test]
    fn stalls_that_are_all_too_short_are_a_finding_by_their_sum() {
        let of = |times: u64| {
            let mut findings = Findings::default();
            let millis = Duration::from_millis;
            for lost in 1..=times {
                let short = || Finding { saving: Some(millis(lost)), ..finding(lost) };
                findings.add_short_finding(Cause::DelayedAck, millis(lost), millis(lost), short);
            }
            findings.into_sorted(SECOND)
        };
        assert!(of(4).0.is_empty() && of(4).1.is_empty());
        let (found, counts) = of(8);
        let [sum] = &found[..] else { panic!("{found:?}") };
        assert_eq!((sum.lost, sum.saving), (Duration::from_millis(36), Some(Duration::from_millis(36))));
        assert_eq!((sum.severity, counts[0].times), (Severity::Medium, 8));
    }
}
