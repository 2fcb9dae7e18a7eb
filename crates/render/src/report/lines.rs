//! Line chart for a page: one colour for each protocol, its name at the line's end.
//!
//! Not a general plotting library: the page's style sheet has the colours, so that the chart follows the reader's
//! light or dark.

use crate::plot::scale::{Scale, round_step};
use crate::report::html::escaped;

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
const LONGEST: usize = 26;

/// Right edge of the plot area, so that the longest label fits beside it.
pub fn right<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0).min(LONGEST);
    (WIDTH - 8.0 - LETTER * longest as f64).min(RIGHT)
}

/// A name as the label of its line, truncated if it is too long.
pub fn label(name: &str) -> String {
    if name.chars().count() <= LONGEST {
        return escaped(name);
    }
    let begins: String = name.chars().take(LONGEST - 1).collect();
    escaped(&(begins + "…"))
}

/// The style sheet's colours, in the order of the lines.
const COLOURS: [&str; 5] = ["--faint", "--measured", "--setup", "--otherwise", "--simulated"];

impl Chart<'_> {
    /// The drawing, as SVG for embedding in HTML.
    pub fn draw(&self) -> String {
        let Self { title, bottom, side, lines, dots } = self;
        let values = lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
        let highest = values.fold(0.0, f64::max);
        let step = round_step(highest);
        let up = Scale::linear(0.0, (highest / step).ceil().max(1.0) * step);
        let along = Scale::linear(bottom.range.0, bottom.range.1.max(bottom.range.0 + 1e-9));
        let right = right(lines.iter().map(|line| line.name.as_str()));
        let x = |value: f64| LEFT + along.place(value) * (right - LEFT);
        let y = |value: f64| BOTTOM - up.place(value) * (BOTTOM - TOP);
        let mut svg = format!(
            "<div class=\"scroll\">\n<svg class=\"lines\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"100%\" role=\"img\" aria-label=\"{title}\">\n\
             <text class=\"name\" x=\"0\" y=\"14\">{title}</text>\n",
            title = escaped(title)
        );
        for tick in up.ticks(step) {
            let (height, number) = (y(tick), short(tick, step));
            svg += &format!(
                "<line style=\"stroke:var(--line)\" x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{height:.1}\" y2=\"{height:.1}\"/>\n\
                 <text class=\"engine\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{number}</text>\n",
                LEFT - 8.0,
                height + 4.5,
            );
        }
        for (value, text) in &bottom.ticks {
            let place = x(*value);
            svg += &format!(
                "<line style=\"stroke:var(--faint)\" x1=\"{place:.1}\" x2=\"{place:.1}\" y1=\"{BOTTOM}\" y2=\"{:.1}\"/>\n\
                 <text class=\"engine\" x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
                BOTTOM + 5.0,
                BOTTOM + 20.0,
                escaped(text),
            );
        }
        svg += &format!(
            "<text class=\"engine\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
             <text class=\"engine\" x=\"{:.1}\" y=\"14\" text-anchor=\"end\">{}</text>\n",
            (LEFT + right) / 2.0,
            BOTTOM + 42.0,
            escaped(bottom.title),
            right,
            escaped(side),
        );
        let ends: Vec<f64> =
            lines.iter().map(|line| line.points.last().map_or(BOTTOM, |(_, value)| y(*value))).collect();
        for ((line, colour), name_at) in lines.iter().zip(COLOURS.iter().cycle()).zip(apart(&ends)) {
            let points: Vec<(f64, f64)> = line.points.iter().map(|(at, value)| (x(*at), y(*value))).collect();
            svg += &drawn(&points, colour, *dots);
            svg += &format!(
                "<text style=\"fill:var({colour})\" class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                right + 8.0,
                name_at + 4.5,
                label(&line.name),
            );
        }
        svg + "</svg>\n</div>\n"
    }
}

/// A line, with a dot at each point if there are few.
fn drawn(points: &[(f64, f64)], colour: &str, dots: bool) -> String {
    let path: String = points.iter().map(|(x, y)| format!("{x:.1},{y:.1} ")).collect();
    // With many points, a thin line shows more of them.
    let width = if dots { 2.0 } else { 1.2 };
    let mut svg = format!(
        "<polyline style=\"fill:none;stroke:var({colour});stroke-width:{width};stroke-linejoin:round\" points=\"{}\"/>\n",
        path.trim_end()
    );
    if dots {
        for (x, y) in points {
            svg += &format!("<circle style=\"fill:var({colour})\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"/>\n");
        }
    }
    svg
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
    order.sort_by(|one, other| heights[*one].total_cmp(&heights[*other]));
    let mut moved = heights.to_vec();
    // Down from the top, then up again from the bottom of the field.
    for pair in 1..order.len() {
        let least = moved[order[pair - 1]] + APART;
        moved[order[pair]] = moved[order[pair]].max(least);
    }
    let mut most = BOTTOM + 8.0;
    for place in order.iter().rev() {
        moved[*place] = moved[*place].min(most);
        most = moved[*place] - APART;
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
