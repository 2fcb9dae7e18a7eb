//! Line chart for a page: one colour for each protocol, its name at the line's end.
//!
//! The page's style sheet has the colours, so that the chart follows the reader's light or dark theme. For print:
//! [`crate::plot::curves`].

use crate::plot::axes::{Axes, Theme};
use crate::plot::scale::{Scale, round_step};
use crate::plot::svg::{Anchor, Font, Stroke, Svg};

/// A chart.
pub struct Chart<'a> {
    /// Title above the chart.
    pub title: &'a str,
    /// Horizontal axis.
    pub bottom: Axis<'a>,
    /// Title of the vertical axis, which starts at zero.
    pub side: &'a str,
    /// The lines, in drawing order.
    pub lines: Vec<Series>,
    /// Whether points are marked: for few points, with unknown values between them.
    pub dots: bool,
}

/// The horizontal axis.
pub struct Axis<'a> {
    /// Its unit or meaning.
    pub title: &'a str,
    /// From the first value to the last.
    pub range: (f64, f64),
    /// Values, with their labels.
    pub ticks: Vec<(f64, String)>,
}

/// A line of the chart.
pub struct Series {
    /// Label at the line's end.
    pub name: String,
    /// Points as (horizontal, vertical) values.
    pub points: Vec<(f64, f64)>,
}

/// Width of the drawing, in its units.
pub const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
/// Left edge of the plot area.
pub const LEFT: f64 = 64.0;
const RIGHT: f64 = 612.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 248.0;
/// Minimum vertical distance of labels at the ends of lines.
const APART: f64 = 17.0;

/// Width of a letter of a label, in the widest of usual fonts.
const LETTER: f64 = 8.7;
/// Maximum letters of a label: a longer one would leave no space for its line.
const MAX_NAME_CHARS: usize = 26;

/// Font of titles and of names of lines.
pub const NAME: Font<'static> = Font { bold: true, ..Font::new(14.0, "var(--ink)", Anchor::Start) };

/// A name as the label of its line, truncated if it is too long.
pub fn label(name: &str) -> String {
    if name.chars().count() <= MAX_NAME_CHARS {
        return name.to_owned();
    }
    let start: String = name.chars().take(MAX_NAME_CHARS - 1).collect();
    start + "…"
}

/// The style sheet's colours, in the order of the lines.
const COLOURS: [&str; 5] =
    ["var(--faint)", "var(--measured)", "var(--setup)", "var(--otherwise)", "var(--simulated)"];

impl Chart<'_> {
    /// The drawing, as SVG for embedding in HTML.
    pub fn draw(&self) -> String {
        let Self { title, bottom, side, lines, dots } = self;
        let values = lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
        let highest = values.fold(0.0, f64::max);
        let step = round_step(highest, 8.0);
        let up = Scale::linear(0.0, (highest / step).ceil().max(1.0) * step);
        let axes = Axes { up, ..bottom.axes(lines.iter().map(|line| line.name.as_str())) };
        let mut svg = Svg::in_page(WIDTH, HEIGHT);
        svg.text((0.0, 14.0), title, NAME);
        axes.side(&mut svg, up.ticks(step).into_iter().map(|tick| (tick, short(tick, step))));
        axes.foot(&mut svg, bottom.ticks.iter().cloned(), bottom.title);
        svg.text((axes.right, 14.0), side, Theme::PAGE.font(Anchor::End));
        let ends = lines.iter().map(|line| line.points.last().map_or(BOTTOM, |(_, value)| axes.y(*value)));
        let ends = apart(&ends.collect::<Vec<f64>>());
        // With many points, a thin line shows more of them.
        let width = if *dots { 2.0 } else { 1.2 };
        for ((line, colour), name_at) in lines.iter().zip(COLOURS.iter().cycle()).zip(ends) {
            let points = axes.points(&line.points);
            svg.line(&points, Stroke::solid(colour, width));
            for point in points.iter().filter(|_| *dots) {
                svg.dot(*point, 2.6, colour, Stroke::solid("none", 0.0));
            }
            svg.text((axes.right + 8.0, name_at + 4.5), &label(&line.name), Font { colour, ..NAME });
        }
        svg.element(title)
    }
}

impl Axis<'_> {
    /// The axis over a page's width, with space on the right for the longest of these names.
    pub fn axes<'a>(&self, names: impl Iterator<Item = &'a str>) -> Axes {
        let longest = names.map(|name| name.chars().count()).max().unwrap_or(0).min(MAX_NAME_CHARS);
        let along = Scale::linear(self.range.0, self.range.1.max(self.range.0 + 1e-9));
        Axes {
            left: LEFT,
            right: (WIDTH - 8.0 - LETTER * longest as f64).min(RIGHT),
            top: TOP,
            bottom: BOTTOM,
            along,
            up: Scale::linear(0.0, 1.0),
            theme: Theme::PAGE,
        }
    }
}

/// `1500` as `1,500`, `2500000` as `2.5 M`.
fn short(value: f64, step: f64) -> String {
    if step >= 1e6 {
        return format!("{} M", value / 1e6);
    }
    if step >= 1e4 {
        return format!("{} k", value / 1e3);
    }
    if step < 1.0 { format!("{value:.1}") } else { crate::output::number::count(value) }
}

/// Heights in the same order, moved so that labels do not overlap.
fn apart(heights: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|first, second| heights[*first].total_cmp(&heights[*second]));
    let mut moved = heights.to_vec();
    // Down from the top, then up again from the bottom of the field.
    for pair in 1..order.len() {
        let min_height = moved[order[pair - 1]] + APART;
        moved[order[pair]] = moved[order[pair]].max(min_height);
    }
    let mut max_height = BOTTOM + 8.0;
    for index in order.iter().rev() {
        moved[*index] = moved[*index].min(max_height);
        max_height = moved[*index] - APART;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_labels_are_moved_apart() {
        let moved = apart(&[100.0, 101.0, 99.0]);
        assert_eq!(moved, [116.0, 133.0, 99.0]);
        let at_the_bottom = apart(&[BOTTOM, BOTTOM]);
        assert!((at_the_bottom[0] - at_the_bottom[1]).abs() >= APART);
    }

    #[test]
    fn a_chart_without_lines_is_an_empty_plot() {
        let bottom = Axis { title: "s", range: (1.0, 1.0), ticks: Vec::new() };
        let svg = Chart { title: "a < b", bottom, side: "", lines: Vec::new(), dots: true }.draw();
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN"));
    }
}
