//! One run, captured at the client, at the server and half-way: a time that is blamed on a cause in one capture is blamed on the same
//! in the others, or on less, never on another fault.

use diagnose::{Cause, Finding, Severity};
use simulate::world::Record;
use wire::{Duration, Time};

use crate::vantage::{self, CaptureProperties, Vantage};

/// Two captures that contradict one another, in a sentence; and how many faults were held against the other places.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    pub(crate) held: usize,
    pub(crate) contradictions: Vec<String>,
}

impl Agreement {
    pub(crate) fn add(&mut self, other: Self) {
        self.held += other.held;
        self.contradictions.extend(other.contradictions);
    }
}

/// Whole captures of one run held against one another.
pub(crate) fn of(name: &str, records: &[Record], way: Duration) -> Agreement {
    let findings = |vantage| {
        let how = CaptureProperties { vantage, way, is_cut: false, is_offloaded: false, is_numbered: true };
        vantage::reports(records, how).into_iter().flat_map(|flow| flow.findings).collect::<Vec<_>>()
    };
    let all = Vantage::ALL.map(|vantage| (vantage, findings(vantage)));
    let mut agreement = Agreement::default();
    for (one, found) in &all {
        for (other, others) in all.iter().filter(|(other, _)| other != one) {
            for finding in found.iter().filter(|finding| is_fault(finding)) {
                agreement.held += 1;
                let against = contradiction(finding, others, way);
                agreement.contradictions.extend(against.map(|against| {
                    format!(
                        "{name}: {} for {} at the {} ({}) is {} for {} at the {} ({})",
                        finding.cause.name(),
                        finding.lost,
                        one.name(),
                        finding.evidence,
                        against.cause.name(),
                        against.lost,
                        other.name(),
                        against.evidence
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

/// A fault of another name in most of the same time, where nothing of the same name is in any of it.
fn contradiction<'a>(finding: &Finding, others: &'a [Finding], way: Duration) -> Option<&'a Finding> {
    // What one end does passes the other half a round trip later.
    let within = |other: &Finding| {
        let shifts = [Duration::ZERO, way / 2, way];
        let earlier = shifts.map(|shift| overlap(finding, other, shift));
        let later = shifts.map(|shift| overlap(other, finding, shift));
        earlier.into_iter().chain(later).max().unwrap_or_default()
    };
    let is_same = |other: &&Finding| is_of(finding.cause, other.cause) && within(other) > Duration::ZERO;
    if others.iter().any(|other| is_same(&other)) {
        return None;
    }
    let longer = |other: &Finding| finding.lost.max(other.lost);
    // In place: another wait may lie beside it.
    let is_there = |other: &&Finding| overlap(finding, other, Duration::ZERO) * 4 >= longer(other) * 3;
    others.iter().filter(|other| is_fault(other)).find(is_there)
}

/// Time covered by both if the first is `shift` later.
fn overlap(one: &Finding, other: &Finding, shift: Duration) -> Duration {
    let from: Time = (one.at + shift).max(other.at);
    let until = (one.at + shift + one.lost).min(other.at + other.lost);
    until.since(from.min(until))
}

/// Whether two names are of one cause, or one says less than the other.
fn is_of(one: Cause, other: Cause) -> bool {
    let family = |cause| match cause {
        // How a loss was noticed is known to its sender alone.
        Cause::RetransmissionTimeout | Cause::TailLossProbe | Cause::FastRetransmit => 1,
        // An acknowledgement that nobody is seen to delay is one that took as long as the path.
        Cause::Nagle | Cause::NagleDelayedAck => 2,
        Cause::ConnectionSetup | Cause::ConnectionPerRequest => 3,
        _ => 0,
    };
    one == other || (family(one) != 0 && family(one) == family(other))
}
