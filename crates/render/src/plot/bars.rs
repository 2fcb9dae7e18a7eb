//! Bar charts: horizontal bars in groups, in panels below one another, as a picture or on a page.
//!
//! Positions along a bar are percentages, so that on a page the chart is as wide as the screen while its text keeps its
//! size. Every bar has its value and its name at its end.

use super::axes::Theme;
use super::scale::{Scale, Spacing};
use super::svg::{Anchor, Font, Heading, Svg};
use crate::output::number;

/// A panel: one quantity.
pub struct Panel<'a> {
    /// Quantity, with its unit; empty for none.
    pub title: &'a str,
    /// Unit after each value, with its space; empty for none.
    pub unit: &'a str,
    /// Scale of the horizontal axis.
    pub scale: Scale,
    /// Ticks with a number; none for no axis.
    pub ticks: Vec<f64>,
    /// Groups, from the top.
    pub groups: Vec<Group<'a>>,
    /// Value of a dashed line across all groups.
    pub reference: Option<f64>,
}

/// Bars with a common name.
pub struct Group<'a> {
    /// Name, above the bars.
    pub name: String,
    /// Bars, from the top.
    pub bars: Vec<Bar<'a>>,
}

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar<'a> {
    /// Name, after the value.
    pub name: &'a str,
    /// Colour.
    pub colour: &'a str,
    /// The value, at the bar's end.
    pub value: f64,
    /// Half of the error bar's length; zero for none.
    pub interval: f64,
    /// Parts of the value by colour, from the bar's end backwards.
    pub parts: Vec<(&'a str, f64)>,
}

const WIDTH: f64 = 980.0;
const SIDE: f64 = 40.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 44.0;
/// Pixels from the top of one bar to the top of the next.
const BAR_PITCH: f64 = 24.0;
/// Height of a bar, in pixels.
const BAR: f64 = 18.0;
/// Height of the line that names a group, or a panel.
const NAME: f64 = 24.0;
/// Gap between one group and the next.
const GAP: f64 = 8.0;
/// Height of an axis with its numbers.
const AXIS: f64 = 36.0;
/// Width of the longest possible bar, in percent of the chart; the rest is for its value.
const MAX_BAR_PERCENT: f64 = 72.0;

/// Draws panels as a picture with a heading.
pub fn picture(panels: &[Panel<'_>], title: &str, subtitle: [&str; 2], source: &str) -> String {
    let inner: f64 = panels.iter().map(Panel::height).sum();
    let height = TOP + inner + BOTTOM;
    let mut svg = Svg::new(WIDTH, height);
    svg.heading(SIDE, Heading::SMALL, title, &subtitle);
    svg.inset((SIDE, TOP), (WIDTH - 2.0 * SIDE, inner), |svg| draw(svg, panels, Theme::PRINT));
    svg.text((SIDE, height - 16.0), source, Font { size: 11.0, ..Theme::PRINT.font(Anchor::Start) });
    let titles = panels.iter().map(|panel| panel.title).collect::<Vec<_>>().join("; ");
    svg.finish(title, &titles)
}

/// Draws panels for a page, as wide as its column. `title` is for screen readers.
pub fn element(panels: &[Panel<'_>], title: &str) -> String {
    let mut svg = Svg::in_page(WIDTH, panels.iter().map(Panel::height).sum());
    draw(&mut svg, panels, Theme::PAGE);
    svg.fluid_element(title)
}

fn draw(svg: &mut Svg, panels: &[Panel<'_>], theme: Theme) {
    let mut y = 0.0;
    for panel in panels {
        panel.draw(svg, y, theme);
        y += panel.height();
    }
}

impl Panel<'_> {
    /// Height in pixels.
    fn height(&self) -> f64 {
        let title = if self.title.is_empty() { 0.0 } else { NAME };
        let axis = if self.ticks.is_empty() { 0.0 } else { AXIS };
        title + self.groups.iter().map(Group::height).sum::<f64>() + axis
    }

    fn draw(&self, svg: &mut Svg, top: f64, theme: Theme) {
        let mut y = top;
        let name = Font { bold: true, ..theme.ink(Anchor::Start) };
        if !self.title.is_empty() {
            svg.text((0.0, y + NAME - 7.0), self.title, Font { size: name.size + 1.0, ..name });
            y += NAME;
        }
        let (first, last) = (y + NAME, y + self.groups.iter().map(Group::height).sum::<f64>());
        for tick in &self.ticks {
            let x = self.percent(*tick);
            svg.vertical_line_at_percent(x, (y, last), theme.grid, "");
            let font = theme.font(Anchor::Middle);
            svg.text_at_percent((x, 0.0), last + 16.0, (&number::count(*tick), font), ("", font));
        }
        if let Some(reference) = self.reference {
            svg.vertical_line_at_percent(self.percent(reference), (first, last), theme.tick, "3 3");
        }
        for group in &self.groups {
            svg.text((0.0, y + NAME - 7.0), &group.name, name);
            let mut bar_y = y + NAME;
            for bar in &group.bars {
                self.bar(svg, bar, bar_y, theme);
                bar_y += BAR_PITCH;
            }
            y += group.height();
        }
    }

    fn bar(&self, svg: &mut Svg, bar: &Bar<'_>, y: f64, theme: Theme) {
        let Bar { name, colour, value, interval, parts } = bar;
        let floor = match self.scale.kind {
            Spacing::Linear => 0.0_f64.max(self.scale.from),
            Spacing::Logarithmic => self.scale.from,
        };
        let mut rectangle = |from: f64, to: f64, colour: &str| {
            let (x, end) = (self.percent(from), self.percent(to));
            svg.rectangle_at_percent((x, end - x), (y, BAR), colour);
        };
        rectangle(floor, *value, colour);
        let mut end = *value;
        for (colour, part) in parts {
            rectangle((end - part).max(floor), end, colour);
            end -= part;
        }
        let high = value + interval;
        if *interval > 0.0 {
            let ends = (self.percent((value - interval).max(floor)), self.percent(high));
            svg.horizontal_line_at_percent(ends, y + BAR / 2.0, theme.ink(Anchor::Start).colour);
        }
        // Whole numbers without a unit are counts.
        let is_count = self.unit.is_empty() && value.fract() == 0.0;
        let figure = if is_count { number::count(*value) } else { number::significant(*value) };
        let label = figure + self.unit;
        let (ink, faint) = (theme.ink(Anchor::Start), theme.font(Anchor::Start));
        svg.text_at_percent((self.percent(high), 8.0), y + BAR / 2.0 + 4.5, (&label, ink), (name, faint));
    }

    /// Position of a value, in percent of the chart's width.
    fn percent(&self, value: f64) -> f64 {
        self.scale.position(value).clamp(0.0, 1.0) * MAX_BAR_PERCENT
    }
}

impl Group<'_> {
    /// Height in pixels.
    fn height(&self) -> f64 {
        NAME + self.bars.len() as f64 * BAR_PITCH + GAP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(reference: Option<f64>) -> Panel<'static> {
        let bar = |name, value, interval, parts| Bar { name, colour: "#123456", value, interval, parts };
        let group = |name: &str| Group {
            name: name.to_owned(),
            bars: vec![bar("one", 5.0, 0.5, vec![("#abcdef", 2.0)]), bar("two", 10.0, 0.0, Vec::new())],
        };
        Panel {
            title: "time (ms)",
            unit: " ms",
            scale: Scale::linear(0.0, 10.0),
            ticks: vec![0.0, 5.0, 10.0],
            groups: vec![group("a < b"), group("c")],
            reference,
        }
    }

    #[test]
    fn every_bar_has_its_value_and_its_name() {
        let svg = picture(&[panel(None)], "t", ["", ""], "s");
        assert_eq!(svg.matches(">5.00 ms <").count(), 2);
        assert_eq!(svg.matches(">two</tspan>").count(), 2);
        assert!(svg.contains("a &lt; b"));
    }

    #[test]
    fn parts_end_where_their_bar_ends() {
        let svg = element(&[panel(None)], "t");
        assert!(
            svg.contains(r##"<rect x="21.600%" y="48.00" width="14.400%" height="18" fill="#abcdef"/>"##),
            "{svg}"
        );
        assert!(
            svg.contains(r##"<rect x="0.000%" y="48.00" width="36.000%" height="18" fill="#123456"/>"##),
            "{svg}"
        );
    }

    #[test]
    fn a_reference_and_an_error_bar_are_lines() {
        let lines = |reference| element(&[panel(reference)], "t").matches("<line ").count();
        assert_eq!((lines(None), lines(Some(3.0))), (3 + 2, 3 + 2 + 1));
    }
}
