//! Time-sequence plots as SVG: what was sent, what was acknowledged, how far the window reached, and where it stalled
//! (papers/p-http#figure-1).
//!
//! The x axis is time, the y axis bytes; each segment is a vertical stroke of its length. One direction is drawn, the
//! one that carried more data; the other direction's packets are ticks below. Generated without a library and kept
//! small, so that a thousand take a second. Not interactive: the HTML page adds that.

use std::fmt::Write;

use diagnose::cause::Describe as _;
use diagnose::plot::{Plot, Point};
use diagnose::{Finding, FlowReport, Side};
use render::plot::scale::{multiples, round_step};
use render::report::html::escaped;
use wire::Time;

use crate::Capture;
use crate::span::shown;

/// Size of the plot, and the position of the drawing in it.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 76.0;
/// The drawing in its own units: it is scaled to fit its position.
const INNER_WIDTH: f64 = 1_000.0;
const INNER_HEIGHT: f64 = 300.0;
/// Maximum number of strokes; more cannot be distinguished.
const MAX_STROKES: usize = 4_000;

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

/// Renders the plot of a connection; `None` if its packets were not retained, or carried nothing.
pub fn svg(flow: &FlowReport) -> Option<String> {
    let plot = flow.plot.as_ref()?;
    let sender = busier(plot)?;
    let scale = Scale::of(plot, sender)?;
    let mut out = String::new();
    let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sequence\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\" data-left=\"{LEFT}\" data-width=\"{width}\" data-begin=\"{:.3}\" \
         data-span=\"{:.3}\">\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
         <text x=\"{LEFT}\" y=\"16\" class=\"title\">{} to {}, bytes sent by the {sender}</text>\n",
        0.0, scale.span_ms, flow.client, flow.server,
    );
    let _ = writeln!(
        out,
        "<svg class=\"data\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {INNER_WIDTH} {INNER_HEIGHT}\" preserveAspectRatio=\"none\">"
    );
    flow.findings.iter().for_each(|finding| shade(&mut out, &scale, finding));
    steps(&mut out, &scale, plot, sender);
    strokes(&mut out, &scale, plot, sender);
    out += "</svg>\n";
    axes(&mut out, &scale);
    flow.findings.iter().for_each(|finding| name(&mut out, &scale, finding, &flow.findings));
    key(&mut out, plot);
    out += "</svg>\n";
    Some(out)
}

const STYLE: &str = ".paper{fill:#fff}.title{font-weight:600}.faint,.tick{fill:#667}.data *{vector-effect:\
non-scaling-stroke}.sent{stroke:#0f5f9c;stroke-width:2.5;fill:none}.again{stroke:#c9322d;stroke-width:2.5}.ack{stroke:\
#3a9a4d;stroke-width:1;fill:none}.edge{stroke:#c8a23a;stroke-width:1;fill:none}.other{stroke:#889;stroke-width:1.5}.stall\
{fill:#e8a33d;opacity:.28}.quiet{fill:#9aa7b0;opacity:.2}.name{fill:#7a4a00;font-size:11px}.axis{stroke:#99a}";

/// Renders the legend.
fn key(out: &mut String, plot: &Plot) {
    const KEY: [(&str, &str); 6] = [
        ("sent", "sent"),
        ("again", "retransmitted"),
        ("ack", "acknowledged"),
        ("edge", "end of the window"),
        ("other", "data of the peer"),
        ("stall", "time lost"),
    ];
    let (mut x, y) = (LEFT, HEIGHT - 10.0);
    for (class, meaning) in KEY {
        let mark = match class {
            "stall" => format!(
                "<rect class=\"stall\" x=\"{x:.0}\" y=\"{:.0}\" width=\"14\" height=\"10\"/>",
                y - 9.0
            ),
            "ack" | "edge" => format!("<path class=\"{class}\" d=\"M{x:.0} {:.0}h14\"/>", y - 4.0),
            _ => format!("<path class=\"{class}\" d=\"M{:.0} {y:.0}v-9\"/>", x + 7.0),
        };
        let _ =
            write!(out, "{mark}<text class=\"faint\" x=\"{:.0}\" y=\"{y:.0}\">{meaning}</text>", x + 20.0);
        // Letters of a proportional font are about half as wide as high.
        x += 44.0 + 6.2 * meaning.chars().map(|_| 1.0).sum::<f64>();
    }
    if plot.is_cut {
        let _ = write!(
            out,
            "<text class=\"faint\" x=\"{x:.0}\" y=\"{y:.0}\">Only the first packets are drawn.</text>"
        );
    }
    out.push('\n');
}

/// Returns the side that sent more data.
fn busier(plot: &Plot) -> Option<Side> {
    let bytes =
        |side| plot.points.iter().filter(|point| point.from == side).map(|point| point.length).sum::<u64>();
    let (client, server) = (bytes(Side::Client), bytes(Side::Server));
    (client + server > 0).then_some(if client > server { Side::Client } else { Side::Server })
}

/// Maps times and bytes to drawing coordinates.
struct Scale {
    started: Time,
    span_ms: f64,
    lowest: f64,
    highest: f64,
}

impl Scale {
    fn of(plot: &Plot, sender: Side) -> Option<Self> {
        let last = plot.points.last()?;
        let span_ms = last.at.since(plot.started).as_millis_f64().max(0.001);
        let data = || plot.points.iter().filter(|point| point.from == sender && point.length > 0);
        let lowest = data().map(|point| point.start).min()?;
        let highest = data().map(Self::end).max()?;
        #[expect(clippy::cast_precision_loss)]
        Some(Self {
            started: plot.started,
            span_ms,
            lowest: lowest as f64,
            highest: (highest as f64).max(lowest as f64 + 1.0),
        })
    }

    fn end(point: &Point) -> i64 {
        point.start.saturating_add_unsigned(point.length)
    }

    fn x(&self, at: Time) -> f64 {
        at.since(self.started).as_millis_f64() / self.span_ms * INNER_WIDTH
    }

    /// The space below the bytes is for the ticks of the other side.
    fn y(&self, byte: i64) -> f64 {
        #[expect(clippy::cast_precision_loss)]
        let part = (byte as f64 - self.lowest) / (self.highest - self.lowest);
        INNER_HEIGHT * (0.94 - part.clamp(-0.02, 1.04) * 0.9)
    }

    /// Returns the coordinate in the whole picture.
    fn outer_x(&self, at: Time) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * self.x(at) / INNER_WIDTH
    }
}

/// Shades a stall.
fn shade(out: &mut String, scale: &Scale, finding: &Finding) {
    let (from, to) = (scale.x(finding.at), scale.x(finding.at + finding.lost));
    let class = if finding.cause.about().is_fault { "stall" } else { "quiet" };
    let packets: Vec<String> = finding.packets.iter().map(u64::to_string).collect();
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{from:.2}\" y=\"0\" width=\"{:.2}\" height=\"{INNER_HEIGHT}\"><title>{}: {} (packets \
         {})\n{}</title></rect>",
        (to - from).max(0.5),
        finding.cause.name(),
        shown(finding.lost),
        packets.join(", "),
        escaped(&finding.evidence)
    );
}

/// Draws acknowledged bytes, and the window edge.
fn steps(out: &mut String, scale: &Scale, plot: &Plot, sender: Side) {
    let mut lines = [("edge", String::new(), None), ("ack", String::new(), None)];
    for point in plot.points.iter().filter(|point| point.from != sender) {
        let (x, [(_, edges, edge), (_, acks, ack)]) = (scale.x(point.at), &mut lines);
        for (line, before, value) in [(edges, edge, point.edge), (acks, ack, point.ack)] {
            let Some(value) = value.filter(|value| *before != Some(*value)) else { continue };
            let y = scale.y(value);
            let _ = if before.is_none() {
                write!(line, "M{x:.2} {y:.1}")
            } else {
                write!(line, "H{x:.2}V{y:.1}")
            };
            *before = Some(value);
        }
    }
    for (class, path, _) in lines.iter().filter(|(_, path, _)| !path.is_empty()) {
        let _ = writeln!(out, "<path class=\"{class}\" d=\"{path}\"/>");
    }
}

/// Draws segments, and ticks for the other side's packets.
fn strokes(out: &mut String, scale: &Scale, plot: &Plot, sender: Side) {
    let step = plot.points.len().div_ceil(MAX_STROKES).max(1);
    let mut reached = i64::MIN;
    let (mut place, mut began) = (0, None);
    for point in plot.points.iter().filter(|point| point.length > 0) {
        place += 1;
        let x = scale.x(point.at);
        if point.from != sender {
            let _ = writeln!(
                out,
                "<path class=\"other\" d=\"M{x:.2} {INNER_HEIGHT}v-8\"><title>{}</title></path>",
                title(plot, point)
            );
            continue;
        }
        let is_again = point.start < reached;
        reached = reached.max(Scale::end(point));
        let begin: i64 = *began.get_or_insert(point.start);
        // If there are too many, only every `step`-th segment is drawn.
        if place % step != 0 && !is_again {
            continue;
        }
        let class = if is_again { "again" } else { "sent" };
        let from = if is_again { point.start } else { begin };
        let _ = writeln!(
            out,
            "<path class=\"{class}\" d=\"M{x:.2} {:.1}V{:.1}\"><title>{}</title></path>",
            scale.y(from),
            scale.y(Scale::end(point)),
            title(plot, point)
        );
        began = None;
    }
}

fn title(plot: &Plot, point: &Point) -> String {
    let at = point.at.since(plot.started).as_millis_f64();
    format!(
        "packet {}: {} bytes from {}, by the {}, at {at:.3} ms",
        point.frame, point.length, point.start, point.from
    )
}

fn axes(out: &mut String, scale: &Scale) {
    let bottom = HEIGHT - BOTTOM;
    let _ =
        writeln!(out, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{}\" fill=\"none\"/>", WIDTH - RIGHT);
    for (ms, label) in ticks(scale.span_ms) {
        let x = LEFT + (WIDTH - LEFT - RIGHT) * ms / scale.span_ms;
        let _ = writeln!(
            out,
            "<text class=\"tick\" data-t=\"{:.6}\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            ms / scale.span_ms,
            bottom + 16.0
        );
    }
    let bytes = |value: f64| match value {
        value if value >= 1e6 => format!("{:.1} MB", value / 1e6),
        value if value >= 1e4 => format!("{:.0} kB", value / 1e3),
        value => format!("{value:.0} B"),
    };
    for part in [0.0, 0.5, 1.0] {
        let value = (scale.highest - scale.lowest) * part;
        let y = TOP + (bottom - TOP) * (0.94 - part * 0.9);
        let _ = writeln!(
            out,
            "<text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            y + 4.0,
            bytes(value)
        );
    }
}

/// Returns round values on the time axis.
fn ticks(span_ms: f64) -> Vec<(f64, String)> {
    let step = round_step(span_ms, 8.0);
    let label = |ms: f64| match step {
        step if step >= 1_000.0 => format!("{:.0} s", ms / 1e3),
        step if step >= 1.0 => format!("{ms:.0} ms"),
        _ => format!("{ms:.3} ms"),
    };
    multiples(0.0, span_ms, step).into_iter().map(|ms| (ms, label(ms))).collect()
}

/// Labels a stall above it, unless labels would overlap.
fn name(out: &mut String, scale: &Scale, finding: &Finding, all: &[Finding]) {
    let width = |finding: &Finding| 6.2 * finding.cause.name().chars().map(|_| 1.0).sum::<f64>();
    let middle =
        |finding: &Finding| (scale.outer_x(finding.at) + scale.outer_x(finding.at + finding.lost)) / 2.0;
    let x = middle(finding);
    let is_hidden = all.iter().any(|other| {
        let matters =
            (other.cause.about().is_fault, other.lost) > (finding.cause.about().is_fault, finding.lost);
        matters && (middle(other) - x).abs() < (width(other) + width(finding)) / 2.0
    });
    let hidden = if is_hidden { " display=\"none\"" } else { "" };
    let part = (x - LEFT) / (WIDTH - LEFT - RIGHT);
    let half = width(finding) / 2.0;
    let shifted = x.clamp(LEFT + half, WIDTH - RIGHT - half);
    let _ = writeln!(
        out,
        "<text class=\"name\" data-t=\"{part:.6}\" x=\"{shifted:.1}\" y=\"{}\" text-anchor=\"middle\"{hidden}>{}</text>",
        HEIGHT - BOTTOM + 34.0,
        finding.cause.name()
    );
}
