//! Line chart for a page: one colour for each protocol, its name at the line's end, and on a narrow page above the plot.
//!
//! The page's style sheet has the colours, so that the chart follows the reader's light or dark theme. For print:
//! [`crate::plot::curves`].

use crate::output::grid::wrap;
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

/// Layouts of a drawing; the style sheet shows the one that fits the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// For a desktop.
    Wide,
    /// For a telephone: scaled to its width, a wide drawing would be illegible.
    Narrow,
}

impl Layout {
    /// Both layouts.
    pub const ALL: [Self; 2] = [Self::Wide, Self::Narrow];

    /// Width of the drawing, in its units.
    pub const fn width(self) -> f64 {
        match self {
            Self::Wide => 720.0,
            Self::Narrow => 360.0,
        }
    }

    /// Classes of the element.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Wide => "lines wide",
            Self::Narrow => "lines narrow",
        }
    }
}

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
/// Maximum letters of a line of the title on a narrow page.
const MAX_TITLE_CHARS: usize = 40;
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
    /// The drawing in both layouts, as SVG for embedding in HTML.
    pub fn draw(&self) -> String {
        Layout::ALL.map(|layout| self.drawn(layout)).concat()
    }

    fn drawn(&self, layout: Layout) -> String {
        let Self { title, bottom, side, lines, dots } = self;
        let values = lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
        let highest = values.fold(0.0, f64::max);
        let step = round_step(highest, 8.0);
        let up = Scale::linear(0.0, (highest / step).ceil().max(1.0) * step);
        let axes = Axes { up, ..bottom.axes(layout, lines.iter().map(|line| line.name.as_str())) };
        let faint = |anchor| Theme::PAGE.font(anchor);
        let heading: Vec<(String, Font<'_>)> = match layout {
            Layout::Wide => vec![((*title).to_owned(), NAME)],
            Layout::Narrow => {
                let title = wrap("", title, MAX_TITLE_CHARS);
                let title: Vec<_> = title.lines().map(|line| (line.to_owned(), NAME)).collect();
                let names = lines.iter().zip(COLOURS.iter().cycle());
                let names = names.map(|(line, colour)| (label(&line.name), Font { colour, ..NAME }));
                let side = (!side.is_empty()).then(|| ((*side).to_owned(), faint(Anchor::Start)));
                title.into_iter().chain(names).chain(side).collect()
            }
        };
        // Space for all lines of the heading but the first.
        let more = APART * (heading.len() - 1) as f64;
        let axes = Axes { top: axes.top + more, bottom: axes.bottom + more, ..axes };
        let mut svg = Svg::in_page(layout.width(), HEIGHT + more);
        for ((text, font), row) in heading.iter().zip(0_u32..) {
            svg.text((0.0, 14.0 + APART * f64::from(row)), text, *font);
        }
        axes.side(&mut svg, up.ticks(step).into_iter().map(|tick| (tick, short(tick, step))));
        axes.foot(&mut svg, bottom.ticks(layout), bottom.title);
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
            if layout == Layout::Wide {
                svg.text((axes.right + 8.0, name_at + 4.5), &label(&line.name), Font { colour, ..NAME });
            }
        }
        if layout == Layout::Wide {
            svg.text((axes.right, 14.0), side, faint(Anchor::End));
        }
        svg.element(title, layout.class())
    }
}

impl Axis<'_> {
    /// The axis over a page's width, with space on the right for the longest of these names.
    pub fn axes<'a>(&self, layout: Layout, names: impl Iterator<Item = &'a str>) -> Axes {
        let longest = names.map(|name| name.chars().count()).max().unwrap_or(0).min(MAX_NAME_CHARS);
        let along = Scale::linear(self.range.0, self.range.1.max(self.range.0 + 1e-9));
        let right = match layout {
            Layout::Wide => (layout.width() - 8.0 - LETTER * longest as f64).min(RIGHT),
            Layout::Narrow => layout.width() - 12.0,
        };
        let up = Scale::linear(0.0, 1.0);
        Axes { left: LEFT, right, top: TOP, bottom: BOTTOM, along, up, theme: Theme::PAGE }
    }

    /// The ticks; on a narrow page every second or third, so that their labels do not overlap.
    pub fn ticks(&self, layout: Layout) -> impl Iterator<Item = (f64, String)> {
        let longest = self.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        let space = layout.width() - LEFT;
        let fitting = (space / (LETTER * (longest as f64 + 1.0))).max(1.0);
        let every = (self.ticks.len() as f64 / fitting).ceil().max(1.0);
        let every = match layout {
            Layout::Wide => 1,
            // A quotient of small numbers above zero.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Layout::Narrow => every as usize,
        };
        self.ticks.iter().step_by(every).cloned()
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
    fn a_narrow_chart_has_the_names_above_the_plot_and_ticks_that_do_not_overlap() {
        let ticks = (0..13).map(|hour| (f64::from(hour), format!("{hour:02}:00"))).collect();
        let bottom = Axis { title: "UTC", range: (0.0, 12.0), ticks };
        let series = Series { name: "responses".to_owned(), points: vec![(0.0, 1.0), (12.0, 2.0)] };
        let drawn =
            Chart { title: "Title", bottom, side: "a second", lines: vec![series], dots: true }.draw();
        let (wide, narrow) = drawn.split_once("lines narrow").unwrap();
        assert!(narrow.contains("viewBox=\"0 0 360 "), "{narrow}");
        assert_eq!(wide.matches(":00<").count(), 13);
        assert!((3..=6).contains(&narrow.matches(":00<").count()), "{narrow}");
        let (name, plot) = narrow.split_once(">responses<").unwrap();
        assert!(plot.contains("polyline") || plot.contains("<path") || plot.contains("<line"), "{plot}");
        assert!(!name.contains("00:00"), "{name}");
    }

    #[test]
    fn a_chart_without_lines_is_an_empty_plot() {
        let bottom = Axis { title: "s", range: (1.0, 1.0), ticks: Vec::new() };
        let svg = Chart { title: "a < b", bottom, side: "", lines: Vec::new(), dots: true }.draw();
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN"));
    }
}
