//! A field from above: colour bands, numbered contours, named points, a key.
//!
//! Not the values: those come as a [`Field`] whose coordinates are the decimal logarithms of the axes' values. A grid
//! can thus be evenly spaced by ratio on any axes.

use super::field::{Contour, Field};
use super::label::Labels;
use super::palette;
use super::scale::Scale;
use super::svg::{Anchor, Font, Heading, Point, Stroke, Svg};

/// A contour map. Labels keep clear of marks and of each other.
pub struct ContourMap<'a> {
    /// Title.
    pub title: &'a str,
    /// Scenario, in two lines.
    pub subtitle: [&'a str; 2],
    /// Horizontal axis.
    pub x: Axis<'a>,
    /// Vertical axis.
    pub y: Axis<'a>,
    /// Values to draw; coordinates are decimal logarithms.
    pub field: &'a Field,
    /// Name of the values, above the colour key.
    pub value: &'a str,
    /// Contours, by ascending value.
    pub levels: Vec<Level<'a>>,
    /// Named points.
    pub marks: Vec<Mark<'a>>,
    /// Legend: each kind of line with its meaning.
    pub key: Vec<(Stroke<'a>, &'a str)>,
    /// Line near which labels are placed: from and to, in axes' values.
    pub guide: (Point, Point),
    /// Source of the values.
    pub source: &'a str,
}

/// An axis of a map.
pub struct Axis<'a> {
    /// Title, with the unit.
    pub title: &'a str,
    /// Scale.
    pub scale: Scale,
    /// Values of the ticks.
    pub ticks: Vec<f64>,
}

/// A contour to draw.
pub struct Level<'a> {
    /// Value of the contour.
    pub value: f64,
    /// Style of the line.
    pub stroke: Stroke<'a>,
    /// Number on the line, if it fits.
    pub label: Option<String>,
}

/// A named point.
pub struct Mark<'a> {
    /// Its name.
    pub name: &'a str,
    /// Position, in the axes' values.
    pub at: Point,
    /// Offset of the name from the point, in pixels.
    pub offset: Point,
    /// End of the name that `offset` refers to.
    pub anchor: Anchor,
}

const SIZE: (f64, f64) = (960.0, 700.0);
/// Left edge of the map area.
const LEFT: f64 = 84.0;
const TOP: f64 = 104.0;
const RIGHT: f64 = SIZE.0 - 128.0;
const BOTTOM: f64 = SIZE.1 - 120.0;

impl ContourMap<'_> {
    /// The picture.
    pub fn draw(&self) -> String {
        let mut svg = Svg::new(SIZE.0, SIZE.1);
        svg.within((LEFT, TOP), (RIGHT - LEFT, BOTTOM - TOP), |svg| {
            self.bands(svg);
            self.grid(svg);
            self.contours(svg);
        });
        self.marks(&mut svg);
        self.frame(&mut svg);
        self.colour_key(&mut svg);
        self.text_lines(&mut svg);
        let description = format!("{} {}", self.subtitle[0], self.subtitle[1]);
        svg.finish(self.title, &description)
    }

    /// The pixel position of a pair of axes' values.
    fn point(&self, (x, y): Point) -> Point {
        let x = LEFT + self.x.scale.position(x) * (RIGHT - LEFT);
        let y = BOTTOM - self.y.scale.position(y) * (BOTTOM - TOP);
        (x, y)
    }

    fn line(&self, contour: &Contour) -> Vec<Point> {
        let value = |exponent: f64| 10_f64.powf(exponent);
        contour.points.iter().map(|(x, y)| self.point((value(*x), value(*y)))).collect()
    }

    fn colour(&self, band: usize) -> String {
        palette::sequential(band as f64 / self.levels.len().max(1) as f64, WHITE)
    }

    fn bands(&self, svg: &mut Svg) {
        svg.rectangle((LEFT, TOP), (RIGHT - LEFT, BOTTOM - TOP), &self.colour(0));
        for (index, level) in self.levels.iter().enumerate() {
            let outlines: Vec<_> =
                self.field.at_least(level.value).iter().map(|contour| self.line(contour)).collect();
            svg.area(&outlines, &self.colour(index + 1));
        }
    }

    fn grid(&self, svg: &mut Svg) {
        let stroke = Stroke { colour: "#ffffff", width: 0.8, dashes: "" };
        for tick in &self.x.ticks {
            let (x, _) = self.point((*tick, self.y.scale.from));
            svg.line(&[(x, TOP), (x, BOTTOM)], stroke);
        }
        for tick in &self.y.ticks {
            let (_, y) = self.point((self.x.scale.from, *tick));
            svg.line(&[(LEFT, y), (RIGHT, y)], stroke);
        }
    }

    fn contours(&self, svg: &mut Svg) {
        let mut labels = Labels::near((self.point(self.guide.0), self.point(self.guide.1)));
        for mark in &self.marks {
            labels.reserve(self.point(mark.at));
            self.letters(mark).for_each(|letter| labels.reserve(letter));
        }
        let mut written = Vec::new();
        for level in &self.levels {
            for line in self.field.contours(level.value).iter().map(|contour| self.line(contour)) {
                svg.line(&line, level.stroke);
                let position = level.label.as_ref().and_then(|_| labels.position(&line));
                written.extend(level.label.as_ref().zip(position));
            }
        }
        for (label, position) in written {
            let font = Font::new(12.0, palette::INK, Anchor::Middle);
            // The baseline is below the middle of the digits.
            let (sine, cosine) = position.turned.to_radians().sin_cos();
            let at = (position.at.0 - sine * 4.0, position.at.1 + cosine * 4.0);
            svg.text(at, label, Font { turned: position.turned, halo: true, ..font });
        }
    }

    /// Points along a mark's name.
    fn letters(&self, mark: &Mark<'_>) -> impl Iterator<Item = Point> {
        let (x, y) = self.point(mark.at);
        let count = mark.name.chars().count();
        let start = match mark.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -(count as f64) / 2.0,
            Anchor::End => -(count as f64),
        };
        let (left, middle) = (x + mark.offset.0 + start * LETTER, y + mark.offset.1 - 4.5);
        (0..=count).map(move |letter| (left + letter as f64 * LETTER, middle))
    }

    fn marks(&self, svg: &mut Svg) {
        for mark in &self.marks {
            let (x, y) = self.point(mark.at);
            svg.dot((x, y), 4.2, palette::ACCENT, Stroke::solid("#ffffff", 1.4));
            let font = Font::new(13.0, palette::INK, mark.anchor);
            svg.text(
                (x + mark.offset.0, y + mark.offset.1),
                mark.name,
                Font { bold: true, halo: true, ..font },
            );
        }
    }

    fn frame(&self, svg: &mut Svg) {
        let ink = Stroke::solid(palette::INK, 1.2);
        let corners = [(LEFT, TOP), (RIGHT, TOP), (RIGHT, BOTTOM), (LEFT, BOTTOM), (LEFT, TOP)];
        svg.line(&corners, ink);
        for tick in &self.x.ticks {
            let (x, _) = self.point((*tick, self.y.scale.from));
            svg.line(&[(x, BOTTOM), (x, BOTTOM + 6.0)], ink);
            svg.text((x, BOTTOM + 22.0), &tick.to_string(), Font::new(13.0, palette::INK, Anchor::Middle));
        }
        for tick in self.x.scale.minor_ticks() {
            let (x, _) = self.point((tick, self.y.scale.from));
            svg.line(&[(x, BOTTOM), (x, BOTTOM + 3.0)], ink);
        }
        for tick in &self.y.ticks {
            let (_, y) = self.point((self.x.scale.from, *tick));
            svg.line(&[(LEFT - 6.0, y), (LEFT, y)], ink);
            svg.text((LEFT - 10.0, y + 4.5), &tick.to_string(), Font::new(13.0, palette::INK, Anchor::End));
        }
        let title = Font::new(15.0, palette::INK, Anchor::Middle);
        svg.text((f64::midpoint(LEFT, RIGHT), BOTTOM + 46.0), self.x.title, title);
        let position = (LEFT - 56.0, f64::midpoint(TOP, BOTTOM));
        svg.text(position, self.y.title, Font { turned: -90.0, ..title });
    }

    /// The colour key, with the numbers of the labelled levels.
    fn colour_key(&self, svg: &mut Svg) {
        let (left, width) = (RIGHT + 30.0, 18.0);
        let height = (BOTTOM - TOP) / (self.levels.len() + 1) as f64;
        let top = |band: usize| BOTTOM - (band + 1) as f64 * height;
        for band in 0..=self.levels.len() {
            // Slightly taller, so that no seam shows.
            svg.rectangle((left, top(band)), (width, height + 0.3), &self.colour(band));
        }
        for (index, level) in self.levels.iter().enumerate() {
            let y = top(index);
            svg.line(&[(left, y), (left + width, y)], level.stroke);
            if let Some(label) = &level.label {
                svg.text((left + width + 7.0, y + 4.5), label, Font::new(12.0, palette::INK, Anchor::Start));
            }
        }
        svg.text((left, TOP - 12.0), self.value, Font::new(12.0, palette::GREY, Anchor::Start));
    }

    fn text_lines(&self, svg: &mut Svg) {
        svg.heading(LEFT, Heading::LARGE, self.title, &self.subtitle);
        let mut x = LEFT;
        for (stroke, meaning) in &self.key {
            let y = BOTTOM + 77.0;
            svg.line(&[(x, y), (x + 40.0, y)], *stroke);
            svg.text((x + 48.0, y + 4.5), meaning, Font::new(13.0, palette::INK, Anchor::Start));
            x += 48.0 + meaning.chars().count() as f64 * LETTER + 24.0;
        }
        svg.text((LEFT, SIZE.1 - 16.0), self.source, Font::new(12.0, palette::GREY, Anchor::Start));
    }
}

/// Share of white in the bands' colours, so that text on them stays legible.
const WHITE: f64 = 0.45;
/// Approximate width of a letter of a name, in pixels.
const LETTER: f64 = 7.2;
