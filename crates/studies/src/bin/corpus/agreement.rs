//! Consistency of captures of one run at the client, at the server and mid-path. A time with a cause in one capture has the
//! same cause in the others, a less specific one, or none; never another fault.

use diagnose::{Cause, Finding, Severity};
use simulate::world::Record;
use wire::{Duration, Time};

use crate::vantage::{self, CaptureProperties, Vantage};

/// Contradictions between two captures, each in a sentence; and the number of faults compared with the other vantage points.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    pub(crate) compared: usize,
    pub(crate) contradictions: Vec<String>,
}

impl Agreement {
    pub(crate) fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.contradictions.extend(other.contradictions);
    }
}

/// Compares the findings in the whole captures of one run.
pub(crate) fn of(name: &str, records: &[Record], one_way_delay: Duration) -> Agreement {
    let findings = |vantage| {
        let properties = CaptureProperties {
            vantage,
            one_way_delay,
            is_cut: false,
            is_offloaded: false,
            is_numbered: true,
        };
        vantage::reports(records, properties).into_iter().flat_map(|flow| flow.findings).collect::<Vec<_>>()
    };
    let all = Vantage::ALL.map(|vantage| (vantage, findings(vantage)));
    let mut agreement = Agreement::default();
    for (one, found) in &all {
        for (other, other_findings) in all.iter().filter(|(other, _)| other != one) {
            for finding in found.iter().filter(|finding| is_fault(finding)) {
                agreement.compared += 1;
                let contradicting = contradiction(finding, other_findings, one_way_delay);
                agreement.contradictions.extend(contradicting.map(|contradicting| {
                    format!(
                        "{name}: {} for {} at the {} ({}) is {} for {} at the {} ({})",
                        finding.cause.name(),
                        finding.lost,
                        one.name(),
                        finding.evidence,
                        contradicting.cause.name(),
                        contradicting.lost,
                        other.name(),
                        contradicting.evidence
                    )
                }));
            }
        }
    }
    agreement
}

/// Findings that fail a build.
fn is_fault(finding: &Finding) -> bool {
    finding.severity >= Severity::Medium
}

/// Returns a fault of another name in most of the same time, if no finding of the same name overlaps it.
fn contradiction<'a>(
    finding: &Finding,
    other_findings: &'a [Finding],
    one_way_delay: Duration,
) -> Option<&'a Finding> {
    // An event at one end is seen at the other half a round trip later.
    let within = |other: &Finding| {
        let shifts = [Duration::ZERO, one_way_delay / 2, one_way_delay];
        let earlier = shifts.map(|shift| overlap(finding, other, shift));
        let later = shifts.map(|shift| overlap(other, finding, shift));
        earlier.into_iter().chain(later).max().unwrap_or_default()
    };
    let is_same = |other: &&Finding| is_of(finding.cause, other.cause) && within(other) > Duration::ZERO;
    if other_findings.iter().any(|other| is_same(&other)) {
        return None;
    }
    let longer = |other: &Finding| finding.lost.max(other.lost);
    // At the same time: another wait may overlap it in part.
    let is_there = |other: &&Finding| overlap(finding, other, Duration::ZERO) * 4 >= longer(other) * 3;
    other_findings.iter().filter(|other| is_fault(other)).find(is_there)
}

/// Overlap of two findings if the first is shifted by `shift`.
fn overlap(one: &Finding, other: &Finding, shift: Duration) -> Duration {
    let from: Time = (one.at + shift).max(other.at);
    let until = (one.at + shift + one.lost).min(other.at + other.lost);
    until.since(from.min(until))
}

/// Whether two names mean one cause, or one is less specific than the other.
fn is_of(one: Cause, other: Cause) -> bool {
    let family = |cause| match cause {
        // Only the sender knows how a loss was detected.
        Cause::RetransmissionTimeout | Cause::TailLossProbe | Cause::FastRetransmit => 1,
        // An acknowledgement without a visible delay took as long as the path.
        Cause::Nagle | Cause::NagleDelayedAck => 2,
        Cause::ConnectionSetup | Cause::ConnectionPerRequest => 3,
        _ => 0,
    };
    one == other || (family(one) != 0 && family(one) == family(other))
}
