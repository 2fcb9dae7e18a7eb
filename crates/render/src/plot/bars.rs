//! Grouped bar charts in panels below one another: each group has the same series, distinguished by colour.
//!
//! Not a table: a bar's number appears only under the pointer.

use super::axes::{Axes, Theme};
use super::palette;
use super::scale::{Scale, Spacing};
use super::svg::{Anchor, Font, Heading, Stroke, Svg};

/// A bar chart.
pub struct Bars<'a> {
    /// Title.
    pub title: &'a str,
    /// Scenario and provenance, in a line or two.
    pub subtitle: [&'a str; 2],
    /// The series, with their colours.
    pub series: Vec<(&'a str, &'a str)>,
    /// The groups, from left to right.
    pub groups: Vec<&'a str>,
    /// Panels, from the top.
    pub panels: Vec<Panel<'a>>,
    /// Source of the values.
    pub source: &'a str,
}

/// A panel: one quantity.
pub struct Panel<'a> {
    /// Quantity, with its unit.
    pub title: &'a str,
    /// Scale of the vertical axis.
    pub scale: Scale,
    /// Ticks with a number.
    pub ticks: Vec<f64>,
    /// Bars by group, then by series.
    pub bars: Vec<Vec<Bar>>,
}

/// A bar.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// The value, at the bar's end.
    pub value: f64,
    /// Half of the error bar's length; zero for none.
    pub interval: f64,
}

const WIDTH: f64 = 980.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 128.0;
const PANEL: f64 = 190.0;
const GAP: f64 = 44.0;
const BOTTOM: f64 = 62.0;
/// Share of a group's width that its bars take.
const FILL: f64 = 0.8;

impl Bars<'_> {
    /// The picture.
    pub fn draw(&self) -> String {
        let panels = self.panels.len() as f64;
        let height = TOP + panels * PANEL + (panels - 1.0).max(0.0) * GAP + BOTTOM;
        let mut svg = Svg::new(WIDTH, height);
        svg.heading(LEFT, Heading::SMALL, self.title, &self.subtitle);
        self.key(&mut svg);
        let mut top = TOP;
        for panel in &self.panels {
            self.panel(&mut svg, panel, top);
            top += PANEL + GAP;
        }
        for (group, name) in self.groups.iter().enumerate() {
            let at = (LEFT + self.group_width() * (group as f64 + 0.5), height - BOTTOM + 20.0);
            svg.text(at, name, Font::new(12.5, palette::INK, Anchor::Middle));
        }
        svg.text((LEFT, height - 16.0), self.source, Font::new(11.0, palette::GREY, Anchor::Start));
        let series = self.series.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let panels = self.panels.iter().map(|panel| panel.title).collect::<Vec<_>>().join("; ");
        svg.finish(self.title, &format!("{panels}: bars for {series} over {}", self.groups.join(", ")))
    }

    fn key(&self, svg: &mut Svg) {
        let mut x = LEFT;
        for (name, colour) in &self.series {
            svg.rectangle((x, 78.0), (12.0, 12.0), colour);
            svg.text((x + 17.0, 88.5), name, Font::new(12.5, palette::INK, Anchor::Start));
            x += 17.0 + 7.2 * name.chars().count() as f64 + 18.0;
        }
    }

    fn group_width(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64
    }

    fn panel(&self, svg: &mut Svg, panel: &Panel<'_>, top: f64) {
        let bottom = top + PANEL;
        let (along, up, theme) = (Scale::linear(0.0, 1.0), panel.scale, Theme::PRINT);
        let axes = Axes { left: LEFT, right: WIDTH - RIGHT, top, bottom, along, up, theme };
        let y = |value: f64| axes.y(value);
        svg.text(
            (LEFT, top - 8.0),
            panel.title,
            Font { bold: true, ..Font::new(12.5, palette::INK, Anchor::Start) },
        );
        axes.side(svg, panel.ticks.iter().map(|tick| (*tick, number(*tick))));
        let group_width = self.group_width();
        let bar_width = group_width * FILL / self.series.len().max(1) as f64;
        let floor = match panel.scale.kind {
            Spacing::Linear => y(0.0_f64.max(panel.scale.from)),
            Spacing::Logarithmic => bottom,
        };
        for (group, bars) in panel.bars.iter().enumerate() {
            let left = LEFT + group_width * (group as f64 + (1.0 - FILL) / 2.0);
            for (place, (bar, (name, colour))) in bars.iter().zip(&self.series).enumerate() {
                let x = left + bar_width * place as f64;
                let end = y(bar.value);
                let words = format!("{name}: {}", number(bar.value));
                svg.named(&words, |svg| {
                    let height = (floor - end).max(1.0);
                    svg.rectangle((x + 1.0, floor - height), (bar_width - 2.0, height), colour);
                });
                if bar.interval > 0.0 {
                    let middle = x + bar_width / 2.0;
                    let ends = [bar.value - bar.interval, bar.value + bar.interval]
                        .map(|value| (middle, y(value.max(panel.scale.from))));
                    svg.line(&ends, Stroke::solid(palette::INK, 1.2));
                }
            }
        }
        svg.line(&[(LEFT, bottom), (WIDTH - RIGHT, bottom)], Stroke::solid(palette::INK, 1.0));
    }
}

/// A number with three significant digits.
fn number(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 100.0 || size.fract() == 0.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_a_bar_for_each_of_the_series() {
        let bar = |value| Bar { value, interval: 0.5 };
        let bars = Bars {
            title: "t",
            subtitle: ["", ""],
            series: vec![("one", palette::BLUE), ("two", palette::GREEN)],
            groups: vec!["a", "b", "c"],
            panels: vec![Panel {
                title: "p",
                scale: Scale::linear(0.0, 10.0),
                ticks: vec![0.0, 5.0, 10.0],
                bars: vec![vec![bar(1.0), bar(2.0)]; 3],
            }],
            source: "s",
        };
        let svg = bars.draw();
        assert_eq!(svg.matches("<title>one: 1</title>").count(), 3);
        assert_eq!(svg.matches("<title>two: 2</title>").count(), 3);
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([0.126, 3.0, 12.34, 1234.5].map(number), ["0.13", "3", "12.3", "1234"]);
    }
}
