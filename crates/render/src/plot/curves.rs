//! Line plots in panels, side by side and below one another: the same series in each, distinguished by colour and dashes.
//!
//! For a chart on a page that follows the reader's light or dark theme: [`crate::report::lines`].

use super::axes::{Axes, Theme};
use super::palette;
use super::scale::{Scale, round_step};
use super::svg::{Anchor, Font, Heading, Point, Stroke, Svg};

/// A picture of line plots.
pub struct Curves<'a> {
    /// Title.
    pub title: &'a str,
    /// Scenario and provenance, in a line or two.
    pub subtitle: [&'a str; 2],
    /// Legend of the line styles.
    pub key: Vec<(&'a str, Stroke<'a>)>,
    /// Title of the horizontal axis of every panel, from 0 to the last tick.
    pub bottom: &'a str,
    /// Values of its ticks.
    pub ticks: Vec<f64>,
    /// Rows of panels, from the top.
    pub rows: Vec<Vec<Panel<'a>>>,
    /// Source of the values.
    pub source: &'a str,
}

/// A panel: one quantity.
pub struct Panel<'a> {
    /// Quantity, with its unit.
    pub title: String,
    /// Curves, in drawing order.
    pub curves: Vec<Curve<'a>>,
}

/// One curve.
pub struct Curve<'a> {
    /// Text shown under the pointer.
    pub name: &'a str,
    /// Line style.
    pub stroke: Stroke<'a>,
    /// Whether points are joined, because values between them are close to a straight line; otherwise they are rings.
    pub is_joined: bool,
    /// Points as (horizontal, vertical) values.
    pub points: Vec<Point>,
}

const WIDTH: f64 = 980.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 140.0;
const PANEL: f64 = 210.0;
/// Distance between panels, for titles and ticks.
const ACROSS: f64 = 76.0;
const DOWN: f64 = 78.0;
const BOTTOM: f64 = 78.0;

impl Curves<'_> {
    /// The picture.
    pub fn draw(&self) -> String {
        let rows = self.rows.len() as f64;
        let height = TOP + rows * PANEL + (rows - 1.0).max(0.0) * DOWN + BOTTOM;
        let mut svg = Svg::new(WIDTH, height);
        svg.heading(LEFT, Heading::SMALL, self.title, &self.subtitle);
        self.key(&mut svg);
        for (row, panels) in self.rows.iter().enumerate() {
            let count = panels.len().max(1) as f64;
            let width = (WIDTH - LEFT - RIGHT - (count - 1.0) * ACROSS) / count;
            for (position, panel) in panels.iter().enumerate() {
                let corner = (LEFT + position as f64 * (width + ACROSS), TOP + row as f64 * (PANEL + DOWN));
                self.panel(&mut svg, panel, corner, width);
            }
        }
        svg.text((LEFT, height - 14.0), self.source, Font::new(11.0, palette::GREY, Anchor::Start));
        let key = self.key.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let panels = self.rows.iter().flatten().map(|panel| panel.title.as_str());
        let panels = panels.collect::<Vec<_>>().join("; ");
        svg.finish(self.title, &format!("{panels}: curves of {key} over {}", self.bottom))
    }

    fn key(&self, svg: &mut Svg) {
        let mut x = LEFT;
        for (name, stroke) in &self.key {
            svg.line(&[(x, 92.0), (x + 26.0, 92.0)], *stroke);
            svg.text((x + 32.0, 96.5), name, Font::new(12.5, palette::INK, Anchor::Start));
            x += 32.0 + 6.6 * name.chars().count() as f64 + 22.0;
        }
    }

    fn panel(&self, svg: &mut Svg, panel: &Panel<'_>, (left, top): Point, width: f64) {
        let values = panel.curves.iter().flat_map(|curve| &curve.points).map(|(_, value)| *value);
        let highest = values.fold(0.0, f64::max);
        let step = round_step(highest, 8.0);
        let up = Scale::linear(0.0, (highest / step - 1e-9).ceil().max(1.0) * step);
        let along = Scale::linear(0.0, self.ticks.last().copied().unwrap_or(1.0));
        let (right, bottom) = (left + width, top + PANEL);
        let axes = Axes { left, right, top, bottom, along, up, theme: Theme::PRINT };
        let bold = Font { bold: true, ..Font::new(12.5, palette::INK, Anchor::Start) };
        svg.text((left, top - 10.0), &panel.title, bold);
        axes.side(svg, up.ticks(step).into_iter().map(|tick| (tick, number(tick, step))));
        axes.foot(svg, self.ticks.iter().map(|tick| (*tick, number(*tick, 1.0))), self.bottom);
        if panel.curves.iter().all(|curve| curve.points.is_empty()) {
            let middle = (left + width / 2.0, bottom - PANEL / 2.0);
            svg.text(middle, "no value that counts", Theme::PRINT.font(Anchor::Middle));
        }
        for Curve { name, stroke, is_joined, points } in &panel.curves {
            let positions = axes.points(points);
            let (radius, fill, edge) = match is_joined {
                true => (2.2, stroke.colour, 0.0),
                false => (3.6, "none", 1.4),
            };
            svg.with_tooltip(name, |svg| {
                if *is_joined {
                    svg.line(&positions, *stroke);
                }
                for position in &positions {
                    svg.dot(*position, radius, fill, Stroke::solid(stroke.colour, edge));
                }
            });
        }
    }
}

/// A number in thousands or millions where ticks are far apart, with as many decimals as needed.
fn number(value: f64, step: f64) -> String {
    match step {
        _ if value == 0.0 => "0".to_owned(),
        100_000.0.. => format!("{:.1} M", value / 1e6),
        5_000.0.. => format!("{} k", value / 1e3),
        1.0.. => format!("{value:.0}"),
        _ => format!("{value:.*}", decimals(step)),
    }
}

/// Decimals that distinguish two ticks.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a step below 1 has a few")]
fn decimals(step: f64) -> usize {
    (-step.log10() - 1e-9).ceil().clamp(1.0, 9.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_shows_its_curves_and_an_empty_one_only_its_axes() {
        let stroke = Stroke::solid("#000000", 1.0);
        let curve = Curve { name: "one", stroke, is_joined: true, points: vec![(1.0, 2.0), (60.0, 8.0)] };
        let panel = |curves| Panel { title: "a < b".to_owned(), curves };
        let svg = Curves {
            title: "t",
            subtitle: ["", ""],
            key: vec![("one", stroke)],
            bottom: "s",
            ticks: vec![0.0, 30.0, 60.0],
            rows: vec![vec![panel(vec![curve]), panel(Vec::new())]],
            source: "",
        }
        .draw();
        assert_eq!(svg.matches("<g><title>").count(), 1);
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN"));
        assert_eq!(svg.matches("no value that counts").count(), 1);
    }

    #[test]
    fn ticks_have_enough_decimals_to_be_distinct() {
        let ticks = [(0.05, 0.05), (0.15, 0.05), (0.5, 0.5), (0.02, 0.01), (0.3, 0.1), (40.0, 20.0)];
        let numbers = ticks.map(|(value, step)| number(value, step));
        assert_eq!(numbers, ["0.05", "0.15", "0.5", "0.02", "0.3", "40"]);
    }
}
