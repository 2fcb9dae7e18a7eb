//! Values on a grid, and their contours by marching squares.
//!
//! Each square of the grid is examined alone. A contour enters and leaves it where the value crosses the level on its
//! sides, by linear interpolation as in the paper (`papers/heidemann-model#section-vi`). Pieces that share a side are
//! then joined, without smoothing: a steep step in the values is a bundle of lines.

use std::collections::BTreeMap;

/// Values on a grid. Coordinates are the caller's: a logarithm, where the axis is logarithmic.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Ascending.
    xs: Vec<f64>,
    /// Ascending.
    ys: Vec<f64>,
    /// Row by row: the value at `xs[i]`, `ys[j]` is at `j * xs.len() + i`.
    values: Vec<f64>,
}

/// A contour: neighbouring points, in the grid's coordinates.
#[derive(Clone, Debug, PartialEq)]
pub struct Contour {
    /// At least two.
    pub points: Vec<(f64, f64)>,
    /// Whether the last point leads back to the first.
    pub closed: bool,
}

impl Field {
    /// `value` at every point of the grid.
    pub fn sample(xs: Vec<f64>, ys: Vec<f64>, mut value: impl FnMut(f64, f64) -> f64) -> Self {
        let values =
            ys.iter().flat_map(|y| xs.iter().map(move |x| (*x, *y))).map(|(x, y)| value(x, y)).collect();
        Self { xs, ys, values }
    }

    /// The value at a point of the grid.
    pub fn at(&self, column: usize, row: usize) -> f64 {
        self.values[row * self.xs.len() + column]
    }

    /// The grid's coordinates.
    pub fn grid(&self) -> (&[f64], &[f64]) {
        (&self.xs, &self.ys)
    }

    /// The minimum and the maximum value.
    pub fn range(&self) -> (f64, f64) {
        let lowest = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (lowest, highest)
    }

    /// Lines where the values cross `level`: first open ones from edge to edge, then closed ones.
    pub fn contours(&self, level: f64) -> Vec<Contour> {
        let mut links: BTreeMap<Side, Vec<Side>> = BTreeMap::new();
        for row in 0..self.ys.len().saturating_sub(1) {
            for column in 0..self.xs.len().saturating_sub(1) {
                for (from, to) in self.crossings(column, row, level).into_iter().flatten() {
                    links.entry(from).or_default().push(to);
                    links.entry(to).or_default().push(from);
                }
            }
        }
        let position = |sides: Vec<Side>| sides.into_iter().map(|side| self.crossing(side, level)).collect();
        joined(links).into_iter().map(|(sides, closed)| Contour { points: position(sides), closed }).collect()
    }

    /// Regions with values at or above `level`, as closed outlines that run along the edge of the grid.
    pub fn at_least(&self, level: f64) -> Vec<Contour> {
        self.with_low_rim().contours(level)
    }

    /// The same field with a rim of very low values around it, at the coordinates of its edge.
    fn with_low_rim(&self) -> Self {
        let with_edges = |line: &[f64]| -> Vec<f64> {
            line.first().into_iter().chain(line).chain(line.last()).copied().collect()
        };
        let (xs, ys) = (with_edges(&self.xs), with_edges(&self.ys));
        let mut values = Vec::with_capacity(xs.len() * ys.len());
        for row in 0..ys.len() {
            for column in 0..xs.len() {
                let inside = (1..=self.xs.len()).contains(&column) && (1..=self.ys.len()).contains(&row);
                values.push(if inside { self.at(column - 1, row - 1) } else { DEPTH });
            }
        }
        Self { xs, ys, values }
    }

    /// The contour segments in one square: none, one, or at a saddle two.
    fn crossings(&self, column: usize, row: usize, level: f64) -> [Option<(Side, Side)>; 2] {
        let above = |column, row| self.at(column, row) >= level;
        let [bottom_left, bottom_right] = [above(column, row), above(column + 1, row)];
        let [top_left, top_right] = [above(column, row + 1), above(column + 1, row + 1)];
        let (bottom, top) = (Side::Across { column, row }, Side::Across { column, row: row + 1 });
        let (left, right) = (Side::Up { column, row }, Side::Up { column: column + 1, row });
        let saddle = bottom_left == top_right && bottom_right == top_left && bottom_left != bottom_right;
        if saddle {
            // Two opposite corners are high; the value in the middle decides whether they are joined.
            let joined = self.middle(column, row) >= level;
            return if joined == bottom_left {
                [Some((bottom, right)), Some((left, top))]
            } else {
                [Some((bottom, left)), Some((right, top))]
            };
        }
        let mut passed = [
            (bottom_left != bottom_right, bottom),
            (bottom_right != top_right, right),
            (top_left != top_right, top),
            (bottom_left != top_left, left),
        ]
        .into_iter()
        .filter_map(|(passed, side)| passed.then_some(side));
        [passed.next().zip(passed.next()), None]
    }

    fn middle(&self, column: usize, row: usize) -> f64 {
        let corners = [(0, 0), (1, 0), (0, 1), (1, 1)];
        corners.iter().map(|(right, up)| self.at(column + right, row + up)).sum::<f64>() / 4.0
    }

    /// The point on a side where the value is `level`.
    fn crossing(&self, side: Side, level: f64) -> (f64, f64) {
        let (column, row, right, up) = match side {
            Side::Across { column, row } => (column, row, 1, 0),
            Side::Up { column, row } => (column, row, 0, 1),
        };
        let (low, high) = (self.at(column, row), self.at(column + right, row + up));
        let part = (level - low) / (high - low);
        let between = |from: f64, to: f64| from + part * (to - from);
        (between(self.xs[column], self.xs[column + right]), between(self.ys[row], self.ys[row + up]))
    }
}

/// Below any value that is drawn, and finite, for interpolation.
const DEPTH: f64 = -1e12;

/// A side of a square, by its lower left end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    /// From left to right.
    Across { column: usize, row: usize },
    /// From below to above.
    Up { column: usize, row: usize },
}

/// Segments joined into lines: first those with two ends, then rings.
fn joined(mut links: BTreeMap<Side, Vec<Side>>) -> Vec<(Vec<Side>, bool)> {
    let mut lines = Vec::new();
    let ends: Vec<Side> = links.iter().filter(|(_, next)| next.len() == 1).map(|(side, _)| *side).collect();
    for end in ends {
        let line = walk(&mut links, end);
        if line.len() > 1 {
            lines.push((line, false));
        }
    }
    while let Some((&start, _)) = links.iter().find(|(_, next)| !next.is_empty()) {
        let mut ring = walk(&mut links, start);
        // A ring has its starting point once.
        ring.pop();
        lines.push((ring, true));
    }
    lines
}

/// Follows links from `start` to the end, and removes them.
fn walk(links: &mut BTreeMap<Side, Vec<Side>>, start: Side) -> Vec<Side> {
    let mut line = vec![start];
    let mut current = start;
    while let Some(next) = links.get_mut(&current).and_then(Vec::pop) {
        if let Some(links_of_next) = links.get_mut(&next)
            && let Some(position) = links_of_next.iter().position(|side| *side == current)
        {
            links_of_next.swap_remove(position);
        }
        line.push(next);
        current = next;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(count: u32, step: f64) -> Vec<f64> {
        (0..count).map(|index| f64::from(index) * step).collect()
    }

    #[test]
    fn a_slope_has_one_straight_contour_where_the_level_is() {
        let field = Field::sample(steps(5, 1.0), steps(4, 1.0), |x, _| x);
        let contours = field.contours(2.25);
        assert_eq!(contours.len(), 1);
        assert!(!contours[0].closed && contours[0].points.len() == 4);
        assert!(contours[0].points.iter().all(|(x, _)| (x - 2.25).abs() < 1e-12));
        assert_eq!(field.contours(9.0), []);
    }

    #[test]
    fn a_hill_has_a_ring_of_the_right_radius() {
        let centred = |index: f64| index - 5.0;
        let field = Field::sample(steps(101, 0.1), steps(101, 0.1), |x, y| -centred(x).hypot(centred(y)));
        let rings = field.contours(-3.0);
        assert_eq!(rings.len(), 1);
        assert!(rings[0].closed);
        for (x, y) in &rings[0].points {
            assert!((centred(*x).hypot(centred(*y)) - 3.0).abs() < 0.01, "{x} {y}");
        }
    }

    #[test]
    fn a_saddle_is_two_lines_that_do_not_meet() {
        let corners = |x: f64, y: f64| if x == y { 1.0 } else { 0.0 };
        let field = Field::sample(steps(2, 1.0), steps(2, 1.0), corners);
        for level in [0.25, 0.75] {
            let lines = field.contours(level);
            assert_eq!(lines.len(), 2, "{level}");
            assert!(lines.iter().all(|line| line.points.len() == 2 && !line.closed));
        }
    }

    #[test]
    fn the_region_above_a_level_is_closed_along_the_grids_edge() {
        let field = Field::sample(steps(5, 1.0), steps(4, 1.0), |x, _| x);
        let regions = field.at_least(2.0);
        assert_eq!(regions.len(), 1);
        assert!(regions[0].closed);
        let area = area(&regions[0].points);
        assert!((area - 2.0 * 3.0).abs() < 1e-6, "{area}");
        assert_eq!(field.at_least(-1.0).len(), 1);
    }

    /// The shoelace formula.
    fn area(points: &[(f64, f64)]) -> f64 {
        let next = points.iter().cycle().skip(1);
        points.iter().zip(next).map(|((x, y), (u, v))| x * v - u * y).sum::<f64>().abs() / 2.0
    }
}
