//! A field in perspective: a surface over two axes, seen from above and to one side.
//!
//! Parallel projection and the painter's algorithm: the back is drawn first. [`super::contour_map`] is for reading off
//! numbers.

use super::field::Field;
use super::palette;
use super::scale::Scale;
use super::svg::{Anchor, Font, Heading, Point, Stroke, Svg};

/// A surface plot.
pub struct Surface<'a> {
    /// Title.
    pub title: &'a str,
    /// Scenario, in two lines.
    pub subtitle: [&'a str; 2],
    /// Axis along the front, to the right.
    pub x: Edge<'a>,
    /// Axis along the side, from front to back.
    pub y: Edge<'a>,
    /// Vertical axis.
    pub z: Edge<'a>,
    /// Values to draw; coordinates are positions on `x` and `y`, from 0 to 1.
    pub field: &'a Field,
    /// Named points on the surface.
    pub marks: Vec<Flag<'a>>,
    /// Source of the values.
    pub source: &'a str,
}

/// An axis along an edge of the box.
pub struct Edge<'a> {
    /// Title, with the unit.
    pub title: &'a str,
    /// Scale.
    pub scale: Scale,
    /// Values of the ticks.
    pub ticks: Vec<f64>,
}

/// A named point on the surface.
pub struct Flag<'a> {
    /// Its name.
    pub name: &'a str,
    /// Position, in the axes' values.
    pub at: Point,
    /// Height of the name above the point, in pixels.
    pub pole: f64,
}

const SIZE: (f64, f64) = (960.0, 740.0);
/// Centre of the box's floor, then the lengths of its edges, in pixels.
const CENTRE: Point = (490.0, 490.0);
const ACROSS: f64 = 520.0;
const HEIGHT: f64 = 265.0;
/// Rotation of the box about the vertical, then the elevation of the view, both in degrees.
const TURNED: f64 = -38.0;
const RAISED: f64 = 25.0;

impl Surface<'_> {
    /// The picture.
    pub fn draw(&self) -> String {
        let mut svg = Svg::new(SIZE.0, SIZE.1);
        self.walls(&mut svg);
        self.sheet(&mut svg);
        self.named(&mut svg);
        self.edges(&mut svg);
        self.text_lines(&mut svg);
        svg.finish(self.title, &format!("{} {}", self.subtitle[0], self.subtitle[1]))
    }

    /// Floor and the two walls behind, with lines at the ticks.
    fn walls(&self, svg: &mut Svg) {
        let faint = Stroke::solid(palette::FAINT, 1.0);
        let planes = [
            [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.0, 1.0, 0.0)],
            [(0.0, 1.0, 0.0), (1.0, 1.0, 0.0), (1.0, 1.0, 1.0), (0.0, 1.0, 1.0)],
            [(0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 1.0, 1.0), (0.0, 0.0, 1.0)],
        ];
        for (plane, fill) in planes.iter().zip(["#eef0f3", "#f7f8fa", "#f2f4f6"]) {
            svg.polygon(&plane.map(project), fill, faint);
        }
        for x in self.x.positions() {
            svg.line(&[(x, 0.0, 0.0), (x, 1.0, 0.0), (x, 1.0, 1.0)].map(project), faint);
        }
        for y in self.y.positions() {
            svg.line(&[(1.0, y, 0.0), (0.0, y, 0.0), (0.0, y, 1.0)].map(project), faint);
        }
        for z in self.z.positions() {
            svg.line(&[(0.0, 0.0, z), (0.0, 1.0, z), (1.0, 1.0, z)].map(project), faint);
        }
    }

    /// The surface, its squares from back to front.
    fn sheet(&self, svg: &mut Svg) {
        let (xs, ys) = self.field.grid();
        let mut squares: Vec<(f64, [Space; 4])> = Vec::new();
        for row in 0..ys.len().saturating_sub(1) {
            for column in 0..xs.len().saturating_sub(1) {
                let corners = [(0, 0), (1, 0), (1, 1), (0, 1)].map(|(right, up)| {
                    let (column, row) = (column + right, row + up);
                    (xs[column], ys[row], self.z.scale.position(self.field.at(column, row)))
                });
                let depth = corners.iter().map(|corner| depth(*corner)).sum();
                squares.push((depth, corners));
            }
        }
        squares.sort_by(|(first, _), (second, _)| second.total_cmp(first));
        for (_, corners) in squares {
            let height = corners.iter().map(|(_, _, z)| z).sum::<f64>() / 4.0;
            let fill = palette::sequential(height, 0.12);
            svg.polygon(&corners.map(project), &fill, Stroke::solid("#ffffff", 0.45));
        }
    }

    fn named(&self, svg: &mut Svg) {
        for Flag { name, at, pole } in &self.marks {
            let (x, y) = (self.x.scale.position(at.0), self.y.scale.position(at.1));
            let Some(z) = self.nearest(x, y) else { continue };
            let (left, top) = project((x, y, self.z.scale.position(z)));
            svg.line(&[(left, top), (left, top - pole)], Stroke::solid(palette::INK, 1.0));
            svg.dot((left, top), 4.2, palette::ACCENT, Stroke::solid("#ffffff", 1.4));
            let font = Font::new(13.0, palette::INK, Anchor::Middle);
            svg.text((left, top - pole - 5.0), name, Font { bold: true, halo: true, ..font });
        }
    }

    /// The value at the grid point nearest to a position.
    fn nearest(&self, x: f64, y: f64) -> Option<f64> {
        let next = |line: &[f64], to: f64| {
            let distance = |index: &usize| (line[*index] - to).abs();
            (0..line.len()).min_by(|first, second| distance(first).total_cmp(&distance(second)))
        };
        let (xs, ys) = self.field.grid();
        Some(self.field.at(next(xs, x)?, next(ys, y)?))
    }

    fn edges(&self, svg: &mut Svg) {
        let number = Font::new(13.0, palette::INK, Anchor::Middle);
        let ink = Stroke::solid(palette::INK, 1.2);
        svg.line(&[(0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, 0.0)].map(project), ink);
        for (position, tick) in self.x.positions().zip(&self.x.ticks) {
            svg.line(&[(position, 0.0, 0.0), (position, -0.02, 0.0)].map(project), ink);
            let (x, y) = project((position, -0.05, 0.0));
            svg.text((x, y + 8.0), &tick.to_string(), Font { anchor: Anchor::End, ..number });
        }
        for (position, tick) in self.y.positions().zip(&self.y.ticks) {
            svg.line(&[(1.0, position, 0.0), (1.02, position, 0.0)].map(project), ink);
            let (x, y) = project((1.05, position, 0.0));
            svg.text((x, y + 8.0), &tick.to_string(), Font { anchor: Anchor::Start, ..number });
        }
        for (position, tick) in self.z.positions().zip(&self.z.ticks) {
            let (x, y) = project((0.0, 0.0, position));
            svg.line(&[(x - 6.0, y), (x, y)], ink);
            svg.text((x - 10.0, y + 4.5), &tick.to_string(), Font { anchor: Anchor::End, ..number });
        }
        self.titles(svg);
    }

    fn titles(&self, svg: &mut Svg) {
        let title = Font::new(15.0, palette::INK, Anchor::Middle);
        let slope = |from: Space, to: Space| {
            let ((x, y), (u, v)) = (project(from), project(to));
            (v - y).atan2(u - x).to_degrees()
        };
        let turned = slope((0.0, 0.0, 0.0), (1.0, 0.0, 0.0));
        svg.text(project((0.45, -0.19, 0.0)), self.x.title, Font { turned, ..title });
        let turned = slope((1.0, 0.0, 0.0), (1.0, 1.0, 0.0));
        svg.text(project((1.19, 0.55, 0.0)), self.y.title, Font { turned, ..title });
        let (x, y) = project((0.0, 0.0, 0.5));
        svg.text((x - 40.0, y), self.z.title, Font { turned: -90.0, ..title });
    }

    fn text_lines(&self, svg: &mut Svg) {
        svg.heading(LEFT, Heading::LARGE, self.title, &self.subtitle);
        svg.text((LEFT, SIZE.1 - 16.0), self.source, Font::new(12.0, palette::GREY, Anchor::Start));
    }
}

/// Left edge of the text.
const LEFT: f64 = 60.0;

impl Edge<'_> {
    fn positions(&self) -> impl Iterator<Item = f64> {
        self.ticks.iter().map(|tick| self.scale.position(*tick))
    }
}

/// A point in the box, each coordinate from 0 to 1.
type Space = (f64, f64, f64);

/// Rotated about the vertical: the components to the right and away from the viewer.
fn turned((x, y, _): Space) -> Point {
    let (sine, cosine) = TURNED.to_radians().sin_cos();
    let (x, y) = (x - 0.5, y - 0.5);
    (x * cosine - y * sine, x * sine + y * cosine)
}

fn project(at: Space) -> Point {
    let (right, away) = turned(at);
    let (sine, cosine) = RAISED.to_radians().sin_cos();
    (CENTRE.0 + right * ACROSS, CENTRE.1 - away * ACROSS * sine - at.2 * HEIGHT * cosine)
}

/// Distance from the viewer.
fn depth(at: Space) -> f64 {
    turned(at).1
}
