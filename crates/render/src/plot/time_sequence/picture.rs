//! The plot as SVG: panels below one another, on one time scale, for print; or a single panel that a page can zoom.

use wire::Time;

use super::key::{self, Key, Meaning, NOTE, REQUEST, STALL, bar, cross, request};
use super::shade::{Label, labels};
use super::track::{Connection, Mark, Segment, SegmentKind, Sign, Track};
use super::{End, Panel, Stall, millis};
use crate::output::number;
use crate::plot::axes::{Axes, Theme};
use crate::plot::palette;
use crate::plot::scale::{Scale, multiples, round_step};
use crate::plot::svg::{Anchor, Font, Heading, Point, Stroke, Svg};

/// Several runs or captures in one picture.
#[derive(Clone, Debug)]
pub struct Picture<'a> {
    /// Title for all panels.
    pub title: &'a str,
    /// Further facts, below the title.
    pub subtitle: &'a str,
    /// Panels, from the top.
    pub panels: &'a [Panel],
    /// Whether all share one time scale.
    pub is_one_time: bool,
    /// Source of the packets.
    pub source: &'a str,
    /// Whether it is for print, or for a page.
    pub form: Form,
}

/// Form of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For print.
    Print,
    /// For a page whose script zooms the first panel. Every packet has a tooltip, and every stall a name, which is hidden
    /// where there is no space. Thousands of segments are merged into fewer strokes.
    Interactive,
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = WIDTH - 28.0;
/// Height of title and subtitle, in pixels, and of a title alone.
const HEAD: f64 = 78.0;
const HEAD_OF_TITLE: f64 = 46.0;
/// Height below the last panel: the axis' title, the key, the source; and without a source.
const FOOT: f64 = 100.0;
const FOOT_WITHOUT_SOURCE: f64 = 66.0;
/// Height of a panel's title, then the maximum number of rows of stall names.
const PANEL_TITLE: f64 = 24.0;
const ROWS: usize = 3;
const ROW: f64 = 15.0;
/// Height below a panel's axis line.
const AXIS: f64 = 34.0;

impl Picture<'_> {
    /// The file.
    pub fn draw(&self) -> String {
        let tracks: Vec<Track> = self.panels.iter().map(Track::of).collect();
        let longest = tracks.iter().map(|track| track.end).max().unwrap_or_default();
        let own = |track: &Track| if self.is_one_time { longest } else { track.end };
        let clocks: Vec<Clock> = tracks.iter().map(|track| Clock::until(own(track))).collect();
        let height = if self.panels.len() > 1 { 250.0 } else { 400.0 };
        let rows = self.panels.iter().zip(&clocks).map(|(panel, clock)| rows(&panel.stalls, *clock));
        let rows = rows.max().unwrap_or_default();
        // The names of short stalls show when a page zooms them.
        let is_named =
            self.form == Form::Interactive && self.panels.iter().any(|panel| !panel.stalls.is_empty());
        let rows = rows.max(usize::from(is_named));
        let above = PANEL_TITLE + rows as f64 * ROW;
        let pitch = above + height + AXIS;
        let head = match self.form {
            Form::Interactive if self.subtitle.is_empty() => HEAD_OF_TITLE,
            Form::Print | Form::Interactive => HEAD,
        };
        let bottom = head + pitch * self.panels.len() as f64;
        let foot = match self.form {
            Form::Interactive if self.source.is_empty() => FOOT_WITHOUT_SOURCE,
            Form::Print | Form::Interactive => FOOT,
        };
        let mut svg = match self.form {
            Form::Print => Svg::new(WIDTH, bottom + foot),
            Form::Interactive => Svg::interactive(WIDTH, bottom + foot),
        };
        svg.heading(LEFT, Heading::MEDIUM, self.title, &[self.subtitle]);
        let mut key = Key::default();
        for (index, ((panel, track), clock)) in self.panels.iter().zip(&tracks).zip(&clocks).enumerate() {
            let top = head + pitch * index as f64;
            let frame = Frame::new(top + above, height, *clock, track);
            let title = Font { bold: true, ..Font::new(14.0, palette::INK, Anchor::Start) };
            let closed = track.closed.map(|at| format!("; closed at {}", millis(at.as_millis_f64())));
            svg.text((LEFT, top + 15.0), &(panel.title.clone() + &closed.unwrap_or_default()), title);
            frame.draw(&mut svg, panel, track, &mut key);
        }
        let title = Font::new(14.0, palette::INK, Anchor::Middle);
        svg.text((f64::midpoint(LEFT, RIGHT), bottom + 8.0), &self.axis_title(), title);
        key.draw(&mut svg, (LEFT, bottom + 40.0));
        svg.text((LEFT, bottom + foot - 16.0), self.source, Font::new(12.0, palette::GREY, Anchor::Start));
        match (self.form, clocks.first()) {
            (Form::Interactive, Some(clock)) => {
                svg.finish_interactive(self.title, (LEFT, RIGHT - LEFT), clock.scale.to)
            }
            (Form::Print, _) | (Form::Interactive, None) => svg.finish(self.title, self.subtitle),
        }
    }

    fn axis_title(&self) -> String {
        // A page says where its packets were captured.
        let all = |end| self.form == Form::Print && self.panels.iter().all(|panel| panel.seen_by == end);
        let who = if all(End::Server) {
            ", as the server sees it"
        } else if all(End::Client) {
            ", as the client sees it"
        } else {
            ""
        };
        format!("time (ms){who}")
    }
}

/// Number of rows of stall names of a panel.
fn rows(stalls: &[Stall], time: Clock) -> usize {
    let labels = labels(stalls, |millis| time.position(millis), (LEFT, RIGHT), ROWS);
    labels.iter().filter_map(|label| label.row).map(|row| row + 1).max().unwrap_or_default()
}

/// The time axis.
#[derive(Clone, Copy)]
struct Clock {
    scale: Scale,
    step: f64,
}

impl Clock {
    fn until(end: Time) -> Self {
        let end = end.as_millis_f64().max(0.001);
        Self { scale: Scale::linear(0.0, end * 1.015), step: round_step(end, 9.0) }
    }

    fn position(&self, millis: f64) -> f64 {
        LEFT + self.scale.position(millis) * (RIGHT - LEFT)
    }
}

/// Plot area of a panel.
struct Frame {
    top: f64,
    bottom: f64,
    time: Clock,
    bytes: Scale,
    /// Whether the packets are few enough for labels on each.
    is_sparse: bool,
}

impl Frame {
    fn new(top: f64, height: f64, time: Clock, track: &Track) -> Self {
        let sent = track.height.max(1) as f64;
        // The window is shown where it does not dwarf the data.
        let allowed =
            track.connections.iter().flat_map(|line| &line.allowed).map(|(_, allowed)| *allowed).max();
        let allowed = allowed.map_or(0.0, |allowed| allowed as f64);
        let is_near = (sent..=1.6 * sent).contains(&allowed);
        let max_bytes = if is_near { allowed } else { 1.12 * sent };
        // Below the first byte there is space for the symbol of its request.
        let bytes = Scale::linear(-12.0 / height * max_bytes, max_bytes * 1.04);
        Self { top, bottom: top + height, time, bytes, is_sparse: track.segments.len() <= SPARSE }
    }

    fn point(&self, at: Time, bytes: u64) -> Point {
        (self.time.position(at.as_millis_f64()), self.y(bytes as f64))
    }

    fn y(&self, bytes: f64) -> f64 {
        self.bottom - self.bytes.position(bytes) * (self.bottom - self.top)
    }

    fn draw(&self, svg: &mut Svg, panel: &Panel, track: &Track, key: &mut Key) {
        let corner = (LEFT, self.top);
        svg.rectangle(corner, (RIGHT - LEFT, self.bottom - self.top), "#fbfbfc");
        self.axes(svg, panel.sender);
        if !svg.is_interactive() {
            self.shades(svg, &panel.stalls, key);
        }
        self.names(svg, &panel.stalls);
        svg.within(corner, (RIGHT - LEFT, self.bottom - self.top), |svg| {
            if svg.is_interactive() {
                self.shades(svg, &panel.stalls, key);
            }
            let mut name_y = f64::MAX;
            for (number, connection) in (1..).zip(&track.connections) {
                // Names that would overlap are left out.
                let y = self.y(connection.base as f64);
                let is_named = name_y - y >= NAME_HEIGHT;
                name_y = if is_named { y } else { name_y };
                self.lines(svg, is_named.then_some(number), connection, key);
            }
            if svg.is_interactive() {
                self.strokes(svg, panel.sender, track, key);
                return;
            }
            for segment in &track.segments {
                self.segment(svg, segment, key);
            }
            self.repeats(svg, &track.segments);
            for mark in &track.marks {
                self.mark(svg, mark, key);
            }
        });
        // Letters would be stretched.
        if svg.is_interactive() {
            self.repeats(svg, &track.segments);
            track
                .marks
                .iter()
                .filter(|mark| mark.sign != Sign::Request)
                .for_each(|mark| self.mark(svg, mark, key));
        }
        let corners = [corner, (RIGHT, self.top), (RIGHT, self.bottom), (LEFT, self.bottom), corner];
        svg.line(&corners, Stroke::solid(palette::INK, 1.0));
    }

    fn axes(&self, svg: &mut Svg, sender: End) {
        let axes = Axes {
            left: LEFT,
            right: RIGHT,
            top: self.top,
            bottom: self.bottom,
            along: self.time.scale,
            up: self.bytes,
            theme: Theme::PACKETS,
        };
        let labelled = |tick| (tick, grouped(tick));
        axes.foot(svg, self.time.scale.ticks(self.time.step).into_iter().map(labelled), "");
        let max_bytes = self.bytes.to;
        // Longer numbers would reach the title.
        let (unit, name) = match max_bytes {
            ..1e6 => (1.0, "bytes"),
            ..1e9 => (1e3, "kB"),
            _ => (1e6, "MB"),
        };
        let ticks = multiples(0.0, max_bytes, round_step(max_bytes, 6.0)).into_iter();
        axes.side(svg, ticks.map(|tick| (tick, grouped(tick / unit))));
        let position = (LEFT - 60.0, f64::midpoint(self.top, self.bottom));
        let title = Font::new(13.0, palette::INK, Anchor::Middle);
        svg.text(position, &format!("{} {name}", sender.data_name()), Font { turned: -90.0, ..title });
    }

    fn shades(&self, svg: &mut Svg, stalls: &[Stall], key: &mut Key) {
        // Faults are drawn above notes.
        let (notes, faults): (Vec<&Stall>, Vec<&Stall>) = stalls.iter().partition(|stall| stall.is_note);
        for Stall { name, at, lost, is_note, evidence } in notes.into_iter().chain(faults) {
            let (shade, meaning) = if *is_note { (NOTE, Meaning::Note) } else { (STALL, Meaning::Stall) };
            let from = self.time.position(at.as_millis_f64());
            let width = (self.time.position(at.as_millis_f64() + lost.as_millis_f64()) - from).max(0.6);
            let mut tooltip =
                format!("{name}: {} from {}", millis(lost.as_millis_f64()), millis(at.as_millis_f64()));
            if !evidence.is_empty() {
                tooltip = tooltip + "\n" + evidence;
            }
            svg.with_tooltip(&tooltip, |svg| {
                svg.rectangle((from, self.top), (width, self.bottom - self.top), shade);
            });
            svg.line(&[(from, self.top), (from, self.bottom)], Stroke::solid(LEADER, 0.5));
            key.shows(meaning);
        }
    }

    fn names(&self, svg: &mut Svg, stalls: &[Stall]) {
        let mut labels = labels(stalls, |millis| self.time.position(millis), (LEFT, RIGHT), ROWS);
        labels.retain(|label| label.row.is_some() || svg.is_interactive());
        let base = |row: usize| self.top - 6.0 - row as f64 * ROW;
        // All leader lines are below all names.
        for Label { text: _, x: _, row, points_to } in &labels {
            svg.at_zoomed_x(&format!("leader{}", hidden(*row)), self.part(*points_to), |svg| {
                let ends = [(*points_to, self.top), (*points_to, base(row.unwrap_or_default()) + 3.0)];
                svg.line(&ends, Stroke::solid(LEADER, 0.8));
            });
        }
        let font = Font { halo: true, ..Font::new(11.5, palette::ACCENT, Anchor::Middle) };
        for Label { text, x, row, points_to } in &labels {
            svg.at_zoomed_x(&format!("name{}", hidden(*row)), self.part(*points_to), |svg| {
                svg.text((*x, base(row.unwrap_or_default())), text, font);
            });
        }
    }

    /// Position on the time axis: 0 at its left end, 1 at its right.
    fn part(&self, x: f64) -> f64 {
        (x - LEFT) / (RIGHT - LEFT)
    }

    fn lines(&self, svg: &mut Svg, number: Option<usize>, connection: &Connection, key: &mut Key) {
        let Connection { base, began, acknowledged, allowed, congestion } = connection;
        if *base > 0 {
            let y = self.y(*base as f64);
            let stroke = Stroke { colour: palette::GREY, width: 0.7, dashes: "2 4" };
            svg.line(&[(self.point(*began, *base).0, y), (RIGHT, y)], stroke);
            if let Some(number) = number {
                let name = format!("connection {number}");
                svg.text((RIGHT - 6.0, y - 4.0), &name, Font::new(10.5, palette::GREY, Anchor::End));
            }
        }
        svg.line(&self.steps(allowed), Stroke { colour: palette::ORANGE, width: 1.2, dashes: "5 3" });
        svg.line(&self.steps(congestion), key::CONGESTION);
        svg.line(&self.steps(acknowledged), Stroke::solid(palette::GREEN, 1.5));
        if self.is_sparse && !svg.is_interactive() {
            for (at, bytes) in acknowledged.iter().skip(1) {
                let (x, y) = self.point(*at, *bytes);
                svg.line(&[(x - 3.0, y), (x, y)], Stroke::solid(palette::GREEN, 2.6));
            }
        }
        if acknowledged.len() > 1 {
            key.shows(Meaning::Acknowledged);
        }
        if !congestion.is_empty() {
            key.shows(Meaning::Congestion);
        }
        if !allowed.is_empty() {
            let is_in_sight = allowed.iter().any(|(_, bytes)| self.y(*bytes as f64) >= self.top);
            key.shows(if is_in_sight { Meaning::Allowed } else { Meaning::AllowedAbove });
        }
    }

    /// A step line: each value holds until the next.
    fn steps(&self, values: &[(Time, u64)]) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::with_capacity(2 * values.len());
        for (at, bytes) in values {
            let next = self.point(*at, *bytes);
            points.extend(points.last().map(|(_, y)| (next.0, *y)));
            points.push(next);
        }
        points
    }

    /// All segments and requests, as upright lines with tooltips.
    fn strokes(&self, svg: &mut Svg, sender: End, track: &Track, key: &mut Key) {
        for (kind, colour) in [
            (SegmentKind::First, palette::BLUE),
            (SegmentKind::Retransmission, palette::ACCENT),
            (SegmentKind::Lost, palette::ACCENT),
        ] {
            let mut strokes = merged(&track.segments, kind).peekable();
            if strokes.peek().is_none() {
                continue;
            }
            key.shows(meaning(kind));
            svg.vertical_lines(
                Stroke::solid(colour, 2.5),
                strokes.map(|segment| {
                    let ((x, low), (_, high)) =
                        (self.point(segment.at, segment.from), self.point(segment.at, segment.to));
                    (x, (low, high.min(low - 1.2)), tooltip(&segment))
                }),
            );
        }
        let requests = || track.marks.iter().filter(|mark| mark.sign == Sign::Request);
        if requests().next().is_none() {
            return;
        }
        key.shows(Meaning::Request);
        let peer = if sender == End::Client { End::Server } else { End::Client }.name();
        let step = requests().count().div_ceil(MAX_STROKES);
        svg.vertical_lines(
            REQUEST,
            requests().step_by(step).map(|mark| {
                let (x, y) = self.point(mark.at, mark.height);
                let tooltip = format!(
                    "{}{} {} bytes of the {peer}",
                    numbered(mark.number),
                    millis_exact(mark.at),
                    mark.bytes
                );
                (x, (y + 10.5, y + 2.5), tooltip)
            }),
        );
    }

    fn segment(&self, svg: &mut Svg, segment: &Segment, key: &mut Key) {
        let Segment { at, from, to, kind, sequence: _, number: _ } = *segment;
        let colour = match kind {
            SegmentKind::First => palette::BLUE,
            SegmentKind::Retransmission | SegmentKind::Lost => palette::ACCENT,
        };
        key.shows(meaning(kind));
        let ((x, low), (_, high)) = (self.point(at, from), self.point(at, to));
        let tooltip = tooltip(segment);
        let draw = |svg: &mut Svg| match kind {
            SegmentKind::First | SegmentKind::Retransmission => bar(svg, x, (low, high), colour),
            SegmentKind::Lost => cross(svg, (x, f64::midpoint(low, high)), colour),
        };
        if self.is_sparse { svg.with_tooltip(&tooltip, draw) } else { draw(svg) }
    }

    /// A letter above each retransmission, where there is space.
    fn repeats(&self, svg: &mut Svg, segments: &[Segment]) {
        let mut free_from = f64::NEG_INFINITY;
        for segment in segments.iter().filter(|segment| segment.kind == SegmentKind::Retransmission) {
            let (x, high) = self.point(segment.at, segment.to);
            if x >= free_from {
                let font = Font::new(10.0, palette::ACCENT, Anchor::Middle);
                svg.at_zoomed_x("letter", self.part(x), |svg| {
                    svg.text((x, high - 4.0), "R", Font { bold: true, ..font });
                });
                free_from = x + 9.0;
            }
        }
    }

    fn mark(&self, svg: &mut Svg, mark: &Mark, key: &mut Key) {
        let Mark { at, height, sign, bytes: _, number: _ } = *mark;
        let (x, y) = self.point(at, height);
        let (meaning, letter) = match sign {
            Sign::Request => (Meaning::Request, None),
            Sign::Syn => (Meaning::Syn, Some("S")),
            Sign::Fin => (Meaning::Fin, Some("F")),
            Sign::Reset => (Meaning::Reset, Some("X")),
        };
        key.shows(meaning);
        match letter {
            None => request(svg, (x, y)),
            Some(letter) => {
                let font = Font::new(11.0, palette::PURPLE, Anchor::Middle);
                svg.at_zoomed_x("letter", self.part(x), |svg| {
                    svg.text((x.max(LEFT + 5.0), y - 4.0), letter, Font { bold: true, halo: true, ..font });
                });
            }
        }
    }
}

/// Maximum number of segments with labels and caps; with more they would cover each other.
const SPARSE: usize = 1_500;
/// Height of a connection's name, in pixels.
const NAME_HEIGHT: f64 = 12.0;
/// Colour of the leader line to a stall's name.
const LEADER: &str = "#e9b995";

/// Maximum number of strokes of one kind; more cannot be distinguished.
const MAX_STROKES: usize = 4_000;

/// The segments of a kind; where there are too many, as many neighbours as necessary in one.
fn merged(segments: &[Segment], kind: SegmentKind) -> impl Iterator<Item = Segment> {
    let of_kind: Vec<&Segment> = segments.iter().filter(|segment| segment.kind == kind).collect();
    // Retransmissions are not neighbours.
    let step = if kind == SegmentKind::First { of_kind.len().div_ceil(MAX_STROKES).max(1) } else { 1 };
    let parts: Vec<Segment> = of_kind
        .chunks(step)
        .filter_map(|part| {
            let (first, last) = (part.first()?, part.last()?);
            Some(Segment { at: last.at, to: last.to, ..**first })
        })
        .collect();
    parts.into_iter()
}

const fn meaning(kind: SegmentKind) -> Meaning {
    match kind {
        SegmentKind::First => Meaning::Segment,
        SegmentKind::Retransmission => Meaning::Retransmission,
        SegmentKind::Lost => Meaning::Lost,
    }
}

/// Tooltip of a segment.
fn tooltip(segment: &Segment) -> String {
    let Segment { at, from, to, kind, sequence, number } = *segment;
    let suffix = match kind {
        SegmentKind::First => "",
        SegmentKind::Retransmission => ", again",
        SegmentKind::Lost => ", lost",
    };
    let bytes = to - from;
    let number = numbered(number);
    format!("{number}{} {sequence}:{} ({bytes} bytes){suffix}", millis_exact(at), sequence + bytes)
}

fn numbered(number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| format!("packet {number}, "))
}

/// Class of a label that has no row: the script of a page shows it where there is space.
const fn hidden(row: Option<usize>) -> &'static str {
    if row.is_some() { "" } else { " hidden" }
}

fn millis_exact(at: Time) -> String {
    format!("{:.3} ms:", at.as_millis_f64())
}

/// A tick's number, without rounding noise.
fn grouped(value: f64) -> String {
    match value.fract().abs() < 1e-9 {
        true => number::count(value),
        false => ((value * 1e6).round() / 1e6).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use wire::Duration;
    use wire::packet::Flags;

    use super::super::{ObservationPoint, Packet};
    use super::*;

    fn drawn(segments: u64, form: Form) -> String {
        let packet = |number: u64| Packet {
            at: Time::from_nanos(number * 1_000_000),
            connection: 0,
            sender: End::Server,
            seen: ObservationPoint::Sent,
            sequence: 1 + number * 100,
            bytes: 100,
            acknowledged: Some(1),
            window: None,
            flags: Flags::ACK,
            number: Some(number + 7),
        };
        let stall = |lost: u64, is_note: bool| Stall {
            name: if is_note { "path-latency" } else { "nagle" }.to_owned(),
            at: Time::ZERO,
            lost: Duration::from_micros(lost),
            is_note,
            evidence: "a < b".to_owned(),
        };
        let panel = Panel {
            title: "one".to_owned(),
            seen_by: End::Server,
            sender: End::Server,
            packets: (0..segments).map(packet).collect(),
            windows: Vec::new(),
            stalls: vec![stall(1, false), stall(segments * 900, true)],
        };
        Picture { title: "t", subtitle: "", panels: &[panel], is_one_time: true, source: "", form }.draw()
    }

    #[test]
    fn interactive_picture_names_every_packet_and_every_stall() {
        let text = drawn(9, Form::Interactive);
        assert_eq!(text.matches("<title>packet ").count(), 9);
        assert!(text.contains("<title>packet 7, 0.000 ms: 1:101 (100 bytes)</title>"));
        assert!(text.contains("class=\"name hidden\"") && text.contains("class=\"name\" data-t="));
        assert!(text.contains("nagle: 0.0 ms from 0.0 ms\na &lt; b</title>"));
        let (note, fault) = (text.find(NOTE).unwrap(), text.find(STALL).unwrap());
        assert!(note < fault, "the note covers the fault");
    }

    #[test]
    fn thousands_of_segments_are_merged_and_none_is_left_out() {
        let text = drawn(9_000, Form::Interactive);
        assert_eq!(text.matches("<title>packet ").count(), 3_000);
        assert!(text.contains("1:301 (300 bytes)") && text.contains(":900001 (300 bytes)"));
    }

    #[test]
    fn print_has_nothing_for_a_script() {
        let text = drawn(9, Form::Print);
        assert!(!text.contains("class=") && !text.contains("data-"));
    }
}
