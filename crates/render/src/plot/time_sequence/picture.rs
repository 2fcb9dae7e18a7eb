//! The plot as SVG: panels below one another, on one time scale.

use wire::Time;

use super::key::{self, Key, Meaning, STALL, bar, cross, triangle};
use super::shade::{Label, labels};
use super::track::{Connection, Mark, Segment, SegmentKind, Sign, Track};
use super::{End, Panel, Stall};
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
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = WIDTH - 28.0;
/// Height of title and subtitle, in pixels.
const HEAD: f64 = 78.0;
/// Height below the last panel: the axis' title, the key, the source.
const FOOT: f64 = 100.0;
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
        let above = PANEL_TITLE + rows as f64 * ROW;
        let pitch = above + height + AXIS;
        let bottom = HEAD + pitch * self.panels.len() as f64;
        let mut svg = Svg::new(WIDTH, bottom + FOOT);
        svg.heading(LEFT, Heading::MEDIUM, self.title, &[self.subtitle]);
        let mut key = Key::default();
        for (index, ((panel, track), clock)) in self.panels.iter().zip(&tracks).zip(&clocks).enumerate() {
            let top = HEAD + pitch * index as f64;
            let frame = Frame::new(top + above, height, *clock, track);
            let title = Font { bold: true, ..Font::new(14.0, palette::INK, Anchor::Start) };
            let closed = track.closed.map(|at| format!("; closed at {}", millis(at.as_millis_f64())));
            svg.text((LEFT, top + 15.0), &(panel.title.clone() + &closed.unwrap_or_default()), title);
            frame.draw(&mut svg, panel, track, &mut key);
        }
        let title = Font::new(14.0, palette::INK, Anchor::Middle);
        svg.text((f64::midpoint(LEFT, RIGHT), bottom + 8.0), &self.axis_title(), title);
        key.draw(&mut svg, (LEFT, bottom + 40.0));
        svg.text((LEFT, bottom + FOOT - 16.0), self.source, Font::new(12.0, palette::GREY, Anchor::Start));
        svg.finish(self.title, self.subtitle)
    }

    fn axis_title(&self) -> String {
        let all = |end| self.panels.iter().all(|panel| panel.seen_by == end);
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
    let labels = labels(stalls, |millis| time.place(millis), (LEFT, RIGHT), ROWS);
    labels.iter().map(|label| label.row + 1).max().unwrap_or_default()
}

/// Milliseconds in a readable form.
pub fn millis(millis: f64) -> String {
    match millis {
        ..10.0 => format!("{millis:.1} ms"),
        ..10_000.0 => format!("{millis:.0} ms"),
        _ => format!("{:.1} s", millis / 1e3),
    }
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

    fn place(&self, millis: f64) -> f64 {
        LEFT + self.scale.place(millis) * (RIGHT - LEFT)
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
        let most = if is_near { allowed } else { 1.12 * sent };
        // Below the first byte there is space for the symbol of its request.
        let bytes = Scale::linear(-12.0 / height * most, most * 1.04);
        Self { top, bottom: top + height, time, bytes, is_sparse: track.segments.len() <= SPARSE }
    }

    fn point(&self, at: Time, bytes: u64) -> Point {
        (self.time.place(at.as_millis_f64()), self.y(bytes as f64))
    }

    fn y(&self, bytes: f64) -> f64 {
        self.bottom - self.bytes.place(bytes) * (self.bottom - self.top)
    }

    fn draw(&self, svg: &mut Svg, panel: &Panel, track: &Track, key: &mut Key) {
        let corner = (LEFT, self.top);
        svg.rectangle(corner, (RIGHT - LEFT, self.bottom - self.top), "#fbfbfc");
        self.axes(svg, panel.sender);
        self.stalls(svg, &panel.stalls, key);
        svg.within(corner, (RIGHT - LEFT, self.bottom - self.top), |svg| {
            let mut name_y = f64::MAX;
            for (number, connection) in (1..).zip(&track.connections) {
                // Names that would overlap are left out.
                let y = self.y(connection.base as f64);
                let is_named = name_y - y >= NAME_HEIGHT;
                name_y = if is_named { y } else { name_y };
                self.lines(svg, is_named.then_some(number), connection, key);
            }
            for segment in &track.segments {
                self.segment(svg, segment, key);
            }
            self.repeats(svg, &track.segments);
            for mark in &track.marks {
                self.mark(svg, mark, key);
            }
        });
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
        let most = self.bytes.to;
        axes.side(svg, multiples(0.0, most, round_step(most, 6.0)).into_iter().map(labelled));
        let place = (LEFT - 60.0, f64::midpoint(self.top, self.bottom));
        let title = Font::new(13.0, palette::INK, Anchor::Middle);
        svg.text(place, sender.says(), Font { turned: -90.0, ..title });
    }

    fn stalls(&self, svg: &mut Svg, stalls: &[Stall], key: &mut Key) {
        for Stall { name, at, lost } in stalls {
            let from = self.time.place(at.as_millis_f64());
            let width = (self.time.place(at.as_millis_f64() + lost.as_millis_f64()) - from).max(0.6);
            let words =
                format!("{name}: {} from {}", millis(lost.as_millis_f64()), millis(at.as_millis_f64()));
            svg.named(&words, |svg| {
                svg.rectangle((from, self.top), (width, self.bottom - self.top), STALL);
            });
            svg.line(&[(from, self.top), (from, self.bottom)], Stroke::solid(LEADER, 0.5));
            key.shows(Meaning::Stall);
        }
        let labels = labels(stalls, |millis| self.time.place(millis), (LEFT, RIGHT), ROWS);
        let base = |row: usize| self.top - 6.0 - row as f64 * ROW;
        // All leader lines are below all names.
        for Label { text: _, x: _, row, points_to } in &labels {
            svg.line(&[(*points_to, self.top), (*points_to, base(*row) + 3.0)], Stroke::solid(LEADER, 0.8));
        }
        let font = Font { halo: true, ..Font::new(11.5, palette::ACCENT, Anchor::Middle) };
        for Label { text, x, row, points_to: _ } in &labels {
            svg.text((*x, base(*row)), text, font);
        }
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
        if self.is_sparse {
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

    fn segment(&self, svg: &mut Svg, segment: &Segment, key: &mut Key) {
        let Segment { at, from, to, kind, sequence } = *segment;
        let (colour, meaning, words) = match kind {
            SegmentKind::First => (palette::BLUE, Meaning::Segment, ""),
            SegmentKind::Again => (palette::ACCENT, Meaning::Again, ", again"),
            SegmentKind::Lost => (palette::ACCENT, Meaning::Lost, ", lost"),
        };
        key.shows(meaning);
        let ((x, low), (_, high)) = (self.point(at, from), self.point(at, to));
        let bytes = to - from;
        let words = format!("{} {sequence}:{} ({bytes} bytes){words}", millis_exact(at), sequence + bytes);
        let draw = |svg: &mut Svg| match kind {
            SegmentKind::First | SegmentKind::Again => bar(svg, x, (low, high), colour),
            SegmentKind::Lost => cross(svg, (x, f64::midpoint(low, high)), colour),
        };
        if self.is_sparse { svg.named(&words, draw) } else { draw(svg) }
    }

    /// A letter above each retransmission, where there is space.
    fn repeats(&self, svg: &mut Svg, segments: &[Segment]) {
        let mut free_from = f64::NEG_INFINITY;
        for segment in segments.iter().filter(|segment| segment.kind == SegmentKind::Again) {
            let (x, high) = self.point(segment.at, segment.to);
            if x >= free_from {
                let font = Font::new(10.0, palette::ACCENT, Anchor::Middle);
                svg.text((x, high - 4.0), "R", Font { bold: true, ..font });
                free_from = x + 9.0;
            }
        }
    }

    fn mark(&self, svg: &mut Svg, mark: &Mark, key: &mut Key) {
        let Mark { at, height, sign } = *mark;
        let (x, y) = self.point(at, height);
        let (meaning, letter) = match sign {
            Sign::Request => (Meaning::Request, None),
            Sign::Syn => (Meaning::Syn, Some("S")),
            Sign::Fin => (Meaning::Fin, Some("F")),
            Sign::Reset => (Meaning::Reset, Some("X")),
        };
        key.shows(meaning);
        match letter {
            None => triangle(svg, (x, y)),
            Some(letter) => {
                let font = Font::new(11.0, palette::PURPLE, Anchor::Middle);
                svg.text((x.max(LEFT + 5.0), y - 4.0), letter, Font { bold: true, halo: true, ..font });
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
