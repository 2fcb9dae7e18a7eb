//! Findings as comma-separated values, a line each.

use diagnose::Finding;
use render::output::csv::line;

use crate::{Capture, advice};

/// A heading line and a line for each finding.
pub fn text(captures: &[Capture]) -> String {
    let heading = [
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
    let mut text = line(heading.map(str::to_owned));
    for capture in captures {
        for flow in &capture.flows {
            for finding in &flow.findings {
                let Finding { cause, severity, confidence, side: _, at, lost, saving, packets, evidence } =
                    finding;
                let packets: Vec<String> = packets.iter().map(u64::to_string).collect();
                text += &line([
                    capture.name.clone(),
                    flow.client.to_string(),
                    flow.server.to_string(),
                    cause.name().to_owned(),
                    severity.name().to_owned(),
                    confidence.name().to_owned(),
                    capture.millis(*at).to_string(),
                    lost.as_millis_f64().to_string(),
                    saving.map(|span| span.as_millis_f64().to_string()).unwrap_or_default(),
                    packets.join(" "),
                    evidence.clone(),
                    advice::line(flow, finding),
                ]);
            }
        }
    }
    text
}
