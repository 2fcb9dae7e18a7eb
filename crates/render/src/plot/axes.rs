//! Field of a chart: two scales on a rectangle, with grid lines, ticks and numbers.

use super::palette;
use super::scale::Scale;
use super::svg::{Anchor, Font, Point, Stroke, Svg};

/// A rectangle with a scale along its bottom and one up its left side.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// Left edge, in pixels.
    pub left: f64,
    /// Right edge.
    pub right: f64,
    /// Top edge.
    pub top: f64,
    /// Bottom edge.
    pub bottom: f64,
    /// Scale of the bottom.
    pub along: Scale,
    /// Scale of the left side.
    pub up: Scale,
    /// Colours and distances.
    pub theme: Theme,
}

/// Colours, letters and distances of axes.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    /// Colour of text other than numbers.
    ink: &'static str,
    /// Colour of grid lines.
    pub(super) grid: &'static str,
    /// Colour of ticks.
    pub(super) tick: &'static str,
    /// Font of numbers and titles, and the distance of their baseline from their middle.
    font: (Font<'static>, f64),
    /// Baseline of numbers below the bottom, and of the title.
    below: (f64, f64),
    /// Whether both axes have grid lines and ticks.
    is_full_grid: bool,
}

impl Theme {
    /// For print.
    pub const PRINT: Self = Self {
        ink: palette::INK,
        grid: palette::FAINT,
        tick: palette::GREY,
        font: (Font::new(11.5, palette::GREY, Anchor::Middle), 4.0),
        below: (18.0, 36.0),
        is_full_grid: false,
    };
    /// For packets in time.
    pub const PACKETS: Self = Self {
        grid: "#e8eaed",
        tick: palette::INK,
        font: (Font::new(12.0, palette::INK, Anchor::Middle), 4.0),
        below: (19.0, 36.0),
        is_full_grid: true,
        ..Self::PRINT
    };
    /// For a page, whose style sheet has the colours.
    pub const PAGE: Self = Self {
        ink: "var(--ink)",
        grid: "var(--line)",
        tick: "var(--faint)",
        font: (Font::new(14.0, "var(--faint)", Anchor::Middle), 4.5),
        below: (20.0, 42.0),
        is_full_grid: false,
    };

    /// Font of numbers and titles.
    pub const fn font(self, anchor: Anchor) -> Font<'static> {
        Font { anchor, ..self.font.0 }
    }

    /// Font of names.
    pub const fn ink(self, anchor: Anchor) -> Font<'static> {
        Font { anchor, colour: self.ink, ..self.font.0 }
    }
}

impl Axes {
    /// Horizontal position of a value.
    pub fn x(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.along.position(value)
    }

    /// Vertical position of a value; beyond the scale, the edge.
    pub fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.up.position(value).clamp(0.0, 1.0)
    }

    /// Positions of pairs of values.
    pub fn points(&self, values: &[(f64, f64)]) -> Vec<Point> {
        values.iter().map(|(along, up)| (self.x(*along), self.y(*up))).collect()
    }

    /// Draws grid lines, with their numbers on the left.
    pub fn side(&self, svg: &mut Svg, ticks: impl IntoIterator<Item = (f64, String)>) {
        for (tick, number) in ticks {
            let y = self.y(tick);
            svg.line(&[(self.left, y), (self.right, y)], Stroke::solid(self.theme.grid, 1.0));
            if self.theme.is_full_grid {
                svg.line(&[(self.left - 5.0, y), (self.left, y)], Stroke::solid(self.theme.tick, 1.0));
            }
            svg.text((self.left - 8.0, y + self.theme.font.1), &number, self.theme.font(Anchor::End));
        }
    }

    /// Draws ticks below the bottom, with their numbers and a title, if it is not empty.
    pub fn foot(&self, svg: &mut Svg, ticks: impl IntoIterator<Item = (f64, String)>, title: &str) {
        let (font, (number_at, title_at)) = (self.theme.font(Anchor::Middle), self.theme.below);
        for (tick, number) in ticks {
            let x = self.x(tick);
            svg.at_zoomed_x("tick", self.along.position(tick), |svg| {
                if self.theme.is_full_grid {
                    svg.line(&[(x, self.top), (x, self.bottom)], Stroke::solid(self.theme.grid, 1.0));
                }
                svg.line(&[(x, self.bottom), (x, self.bottom + 5.0)], Stroke::solid(self.theme.tick, 1.0));
                svg.text((x, self.bottom + number_at), &number, font);
            });
        }
        if !title.is_empty() {
            svg.text((f64::midpoint(self.left, self.right), self.bottom + title_at), title, font);
        }
    }
}
