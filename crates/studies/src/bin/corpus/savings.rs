//! Savings: `diagnose`'s prediction, and the real saving of the same run without the cause.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use diagnose::Cause;
use scenario::{Protocol, Scenario};
use simulate::{Experiment, Hosts};
use tcp::stack::{Acks, Idle};
use wire::{Bytes, Duration};

use crate::cases::Case;
use crate::vantage::{self, CaptureProperties, Vantage};

/// Predicted and real saving of one run, in milliseconds.
pub(crate) struct Saving {
    case: usize,
    /// Vantage point of the prediction's capture.
    vantage: Vantage,
    cause: Cause,
    predicted_ms: f64,
    saved_ms: f64,
}

impl Saving {
    pub(crate) fn new(
        case: usize,
        vantage: Vantage,
        cause: Cause,
        predicted: Duration,
        saved_ms: f64,
    ) -> Self {
        Self { case, vantage, cause, predicted_ms: predicted.as_millis_f64(), saved_ms }
    }

    /// Order in the table.
    pub(crate) const fn order(&self) -> (usize, Vantage) {
        (self.case, self.vantage)
    }

    /// Whether the error is within a tenth, or two milliseconds.
    pub(crate) fn is_right(&self) -> bool {
        let Self { case: _, vantage: _, cause: _, predicted_ms, saved_ms } = self;
        (predicted_ms - saved_ms).abs() <= (saved_ms.abs() / 10.0).max(2.0)
    }
}

/// Savings of each run whose cause has a fix, seen at the client, at the server and mid-path in turn.
pub(crate) fn savings(cases: &[Case]) -> Vec<Saving> {
    cases.iter().enumerate().filter_map(|(number, case)| saving(number, case)).collect()
}

fn saving(number: usize, case: &Case) -> Option<Saving> {
    let (cause, without_cause) = without_cause(case)?;
    let run = |scenario: &Scenario| {
        let experiment = Experiment::new(scenario, Hosts::default()).expect("it can be run");
        experiment.run(0, true).expect("it can be run")
    };
    let (before, after) = (run(&case.scenario), run(&without_cause));
    let properties = CaptureProperties {
        vantage: Vantage::ALL[number % Vantage::ALL.len()],
        one_way_delay: case.scenario.network.rtt / 2,
        is_cut: false,
        is_offloaded: false,
        is_numbered: true,
    };
    let findings = vantage::reports(&before.records, properties).into_iter().flat_map(|flow| flow.findings);
    let predicted: Duration =
        findings.filter(|finding| finding.cause == cause).filter_map(|finding| finding.saving).sum();
    let saved_ms = before.elapsed?.as_millis_f64() - after.elapsed?.as_millis_f64();
    // Shorter findings get no prediction.
    if predicted == Duration::ZERO {
        return None;
    }
    Some(Saving::new(number, properties.vantage, cause, predicted, saved_ms))
}

/// Returns the cause that the case provokes, and the scenario without it.
fn without_cause(case: &Case) -> Option<(Cause, Scenario)> {
    let mut scenario = case.scenario.clone();
    let Scenario { stack, programs, .. } = &mut scenario;
    let family = case.name.split(' ').next()?;
    let cause = match family {
        "connection-per-request" => {
            scenario.protocol = Protocol::Http11;
            Cause::ConnectionPerRequest
        }
        "server-thinks" => {
            scenario.server.processing = Duration::ZERO;
            Cause::ServerThink
        }
        "nagle" => {
            programs.nagle = Some(false);
            Cause::Nagle
        }
        "nagle-delayed-ack" => {
            programs.nagle = Some(false);
            Cause::NagleDelayedAck
        }
        "short-initial-segment" => {
            programs.server_head = None;
            Cause::ShortInitialSegment
        }
        "delayed-ack" => {
            stack.acks = Acks::EverySegment;
            Cause::DelayedAck
        }
        "send-buffer" => {
            programs.send_buffer = None;
            Cause::SendBufferLimited
        }
        "receive-buffer" => {
            stack.receive_buffer = Some(Bytes::new(4 << 20));
            Cause::ReceiveWindowLimited
        }
        "after-idle" => {
            stack.idle = Idle::Unchanged;
            Cause::SlowStartRestart
        }
        _ => return None,
    };
    Some((cause, scenario))
}

/// Formats the savings, with the number of right ones.
pub(crate) fn table(savings: &[Saving]) -> String {
    let mut text = "cause,case,place,predicted_ms,saved_ms,right\n".to_owned();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for saving in savings {
        let Saving { case, vantage, cause, predicted_ms, saved_ms } = saving;
        let _ = writeln!(
            text,
            "{},{case},{},{predicted_ms:.3},{saved_ms:.3},{}",
            cause.name(),
            vantage.name(),
            u8::from(saving.is_right())
        );
        let (right, all) = counts.entry(cause.name()).or_default();
        *right += usize::from(saving.is_right());
        *all += 1;
    }
    for (cause, (right, all)) in counts {
        let _ = writeln!(text, "# {cause}: {right} of {all}");
    }
    text
}
