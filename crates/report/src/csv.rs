//! Findings as comma-separated values, a line each.

use diagnose::{Finding, FlowReport};
use render::output::csv::table;

use crate::{Capture, advice};

const COLUMNS: [&str; 12] = [
    "capture",
    "client",
    "server",
    "cause",
    "severity",
    "confidence",
    "at_ms",
    "lost_ms",
    "saving_ms",
    "packets",
    "evidence",
    "fix",
];

/// Returns a heading line and a line for each finding.
pub fn text(captures: &[Capture]) -> String {
    let flows = captures.iter().flat_map(|capture| capture.flows.iter().map(move |flow| (capture, flow)));
    let findings =
        flows.flat_map(|(capture, flow)| flow.findings.iter().map(move |finding| (capture, flow, finding)));
    table(COLUMNS, findings.map(|(capture, flow, finding)| cells(capture, flow, finding)))
}

fn cells(capture: &Capture, flow: &FlowReport, finding: &Finding) -> [String; COLUMNS.len()] {
    let Finding { cause, severity, confidence, side: _, at, lost, saving, packets, evidence } = finding;
    [
        capture.name.clone(),
        flow.client.to_string(),
        flow.server.to_string(),
        cause.name().to_owned(),
        severity.name().to_owned(),
        confidence.name().to_owned(),
        capture.millis(*at).to_string(),
        lost.as_millis_f64().to_string(),
        saving.map(|span| span.as_millis_f64().to_string()).unwrap_or_default(),
        packets.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
        evidence.clone(),
        advice::line(flow, finding),
    ]
}
