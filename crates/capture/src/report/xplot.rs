//! A connection of a capture for xplot: one file for each direction, by the shared xplot writer.
//!
//! Not the interactive plots of the page (`sequence`).

use diagnose::plot::{Plot, Point};
use diagnose::{Finding, FlowReport, Side};
use render::plot::time_sequence::xplot;
use render::plot::time_sequence::{End, ObservationPoint, Packet, Panel, Stall};
use wire::Time;

/// Iterates over the two files of a connection, one for each direction, with the sender's name; none if its packets
/// were not retained.
pub fn files(flow: &FlowReport) -> impl Iterator<Item = (&'static str, String)> {
    let of = |plot| {
        [(Side::Client, "client"), (Side::Server, "server")]
            .map(|(sender, name)| (name, xplot::file(&panel(flow, plot, sender))))
    };
    flow.plot.as_ref().map(of).into_iter().flatten()
}

/// Returns the segments of one side. A capture contains each packet once, whatever its point of capture.
fn panel(flow: &FlowReport, plot: &Plot, sender: Side) -> Panel {
    let (from, to) = match sender {
        Side::Client => (flow.client, flow.server),
        Side::Server => (flow.server, flow.client),
    };
    let sender = end(sender);
    let since = |at: Time| Time::ZERO + at.since(plot.started);
    let stall = |finding: &Finding| Stall {
        name: finding.cause.name().to_owned(),
        at: since(finding.at),
        lost: finding.lost,
    };
    Panel {
        title: format!("{from} to {to}"),
        seen_by: sender,
        sender,
        packets: plot.points.iter().map(|point| packet(point, since(point.at), sender)).collect(),
        windows: Vec::new(),
        stalls: flow.findings.iter().map(stall).collect(),
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
    }
}

const fn end(side: Side) -> End {
    match side {
        Side::Client => End::Client,
        Side::Server => End::Server,
    }
}
