//! The same plots for xplot, in the language that tcptrace writes.

use std::fmt::Write;
use std::path::Path;

use ::diagnose::plot::Plot;
use ::diagnose::{FlowReport, Side};
use wire::Time;

use super::Capture;
use super::sequence::{folder_of, named};
use crate::failure::Failure;
use crate::file;

/// Two files for each connection with findings, one a direction, in `folder`.
pub fn write_all(captures: &[Capture], folder: &Path) -> Result<(), Failure> {
    for (name, flow) in named(captures) {
        let Some(plot) = &flow.plot else { continue };
        for (sender, ending) in [(Side::Client, "client"), (Side::Server, "server")] {
            let path = folder_of(folder)?.join(format!("{name}-{ending}.xpl"));
            file::write(&path, drawing(flow, plot, sender).as_bytes())?;
        }
    }
    Ok(())
}

fn drawing(flow: &FlowReport, plot: &Plot, sender: Side) -> String {
    let (from, to) = match sender {
        Side::Client => (flow.client, flow.server),
        Side::Server => (flow.server, flow.client),
    };
    let mut out = format!(
        "timeval signed\ntitle\n{from}_==>_{to} (time sequence graph)\nxlabel\ntime\nylabel\nsequence offset\n"
    );
    let mut reached = i64::MIN;
    let mut before: Option<(Time, i64)> = None;
    for point in &plot.points {
        let at = time(point.at);
        if point.from == sender && point.length > 0 {
            let end = point.start.saturating_add_unsigned(point.length);
            let colour = if point.start < reached { "red" } else { "white" };
            reached = reached.max(end);
            let _ = write!(
                out,
                "{colour}\ndarrow {at} {}\nuarrow {at} {end}\nline {at} {} {at} {end}\n",
                point.start, point.start
            );
        }
        if let Some(ack) = point.ack.filter(|_| point.from != sender) {
            if let Some((last, level)) = before {
                let _ = write!(
                    out,
                    "green\nline {} {level} {at} {level}\nline {at} {level} {at} {ack}\n",
                    time(last)
                );
            }
            before = Some((point.at, ack));
        }
    }
    for finding in &flow.findings {
        let _ = write!(out, "yellow\natext {} 0\n{}\n", time(finding.at), finding.cause.name());
    }
    out + "go\n"
}

/// Seconds and microseconds.
fn time(at: Time) -> String {
    let micros = at.as_nanos() / 1_000;
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}
