//! Time-sequence plots of connections, as SVG that a page can zoom, and for xplot (papers/p-http#figure-1).
//!
//! A capture contains each packet once, whatever its point of capture. Not the drawing: `render` does that.

use diagnose::cause::Describe as _;
use diagnose::plot::{Plot, Point};
use diagnose::{Finding, FlowReport, Side};
use render::plot::time_sequence::picture::{Form, Picture};
use render::plot::time_sequence::{End, ObservationPoint, Packet, Panel, Stall, xplot};
use wire::Time;

use crate::Capture;

/// Iterates over connections with findings, with file names.
pub fn named(captures: &[Capture]) -> impl Iterator<Item = (String, &FlowReport)> {
    let several = captures.len() > 1;
    captures.iter().zip(1..).flat_map(move |(capture, number)| {
        let flows = capture.flows.iter().filter(|flow| !flow.findings.is_empty());
        flows.map(move |flow| {
            let prefix = if several { format!("{number}-") } else { String::new() };
            let plain = |address: String| address.replace(['[', ']'], "").replace([':', '%'], "_");
            let (client, server) = (plain(flow.client.to_string()), plain(flow.server.to_string()));
            (format!("{prefix}{}-{client}-{server}", flow.first_packet), flow)
        })
    })
}

/// Renders the plot of the side that sent more data; `None` if no packets were retained, or they carried nothing.
pub fn svg(flow: &FlowReport) -> Option<String> {
    let plot = flow.plot.as_ref()?;
    let sender = busier_side(plot)?;
    let panel = panel(flow, plot, sender, format!("Bytes sent by the {sender}"));
    let title = format!("{} to {}", flow.client, flow.server);
    let source = if plot.is_cut { "Only the first packets are drawn." } else { "" };
    let picture = Picture {
        title: &title,
        subtitle: "",
        panels: &[panel],
        is_one_time: true,
        source,
        form: Form::Interactive,
    };
    Some(picture.draw())
}

/// Iterates over the two files for xplot, one for each direction, with the sender's name; none if no packets were
/// retained.
pub fn xplot_files(flow: &FlowReport) -> impl Iterator<Item = (&'static str, String)> {
    let of = |plot| {
        [(Side::Client, "client"), (Side::Server, "server")].map(|(sender, name)| {
            let (from, to) = match sender {
                Side::Client => (flow.client, flow.server),
                Side::Server => (flow.server, flow.client),
            };
            (name, xplot::file(&panel(flow, plot, sender, format!("{from} to {to}"))))
        })
    };
    flow.plot.as_ref().map(of).into_iter().flatten()
}

/// Returns the side that sent more data.
fn busier_side(plot: &Plot) -> Option<Side> {
    let bytes =
        |side| plot.points.iter().filter(|point| point.from == side).map(|point| point.length).sum::<u64>();
    let (client, server) = (bytes(Side::Client), bytes(Side::Server));
    (client + server > 0).then_some(if client > server { Side::Client } else { Side::Server })
}

/// Returns the segments of one side, with the findings.
fn panel(flow: &FlowReport, plot: &Plot, sender: Side, title: String) -> Panel {
    let sender = end(sender);
    let since = |at: Time| Time::ZERO + at.since(plot.started);
    Panel {
        title,
        seen_by: sender,
        sender,
        packets: plot.points.iter().map(|point| packet(point, since(point.at), sender)).collect(),
        windows: Vec::new(),
        stalls: flow.findings.iter().map(|finding| stall(finding, since(finding.at))).collect(),
    }
}

fn stall(finding: &Finding, at: Time) -> Stall {
    let packets: Vec<String> = finding.packets.iter().map(u64::to_string).collect();
    let packets =
        if packets.is_empty() { String::new() } else { format!("packets {}\n", packets.join(", ")) };
    Stall {
        name: finding.cause.name().to_owned(),
        at,
        lost: finding.lost,
        is_note: !finding.cause.about().is_fault,
        evidence: packets + &finding.evidence,
    }
}

/// Converts a point. Sequence numbers before the first captured byte are clamped to it.
fn packet(point: &Point, at: Time, drawn: End) -> Packet {
    let from = end(point.from);
    let number = |number: i64| u64::try_from(number).unwrap_or_default();
    let edge = point.edge.zip(point.ack).map(|(edge, ack)| number(edge).saturating_sub(number(ack)));
    Packet {
        at,
        connection: 0,
        sender: from,
        seen: if from == drawn { ObservationPoint::Sent } else { ObservationPoint::Received },
        sequence: number(point.start),
        bytes: point.length,
        acknowledged: point.ack.map(number),
        window: edge,
        flags: point.flags,
        number: Some(point.frame),
    }
}

const fn end(side: Side) -> End {
    match side {
        Side::Client => End::Client,
        Side::Server => End::Server,
    }
}
