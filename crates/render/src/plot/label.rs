//! Placement of contour labels: near a guide line, away from everything else, along the contour.
//!
//! Labels are placed sequentially and never moved again.

use super::svg::Point;

/// Occupied positions on a picture, and the guide line for labels.
#[derive(Clone, Debug)]
pub struct Labels {
    guide: (Point, Point),
    occupied: Vec<Point>,
}

/// Position of a label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelPosition {
    /// Its centre.
    pub at: Point,
    /// Rotation in degrees, so that the label is never upside down.
    pub turned: f64,
}

/// Minimum distance between labels and marks, in pixels.
const APART: f64 = 26.0;
/// Distance to both sides, in pixels, along which a label follows its contour.
const FOLLOWED_PIXELS: f64 = 14.0;

impl Labels {
    /// An empty set of labels, with a guide line from one point to another.
    pub fn near(guide: (Point, Point)) -> Self {
        Self { guide, occupied: Vec::new() }
    }

    /// Reserves the surroundings of a point.
    pub fn reserve(&mut self, at: Point) {
        self.occupied.push(at);
    }

    /// A position on the line for a label, which is then occupied; `None` if there is no space.
    pub fn position(&mut self, line: &[Point]) -> Option<LabelPosition> {
        let free = |at: &Point| self.occupied.iter().all(|occupied| distance(*occupied, *at) >= APART);
        let candidates = (0..line.len()).filter_map(|index| Some((along(line, index)?, line[index])));
        let (turned, at) = candidates.filter(|(_, at)| free(at)).min_by(|(_, first), (_, second)| {
            self.distance_from_guide(*first).total_cmp(&self.distance_from_guide(*second))
        })?;
        self.occupied.push(at);
        Some(LabelPosition { at, turned })
    }

    /// Distance of a point from the guide line.
    fn distance_from_guide(&self, at: Point) -> f64 {
        let (from, to) = self.guide;
        let (along_x, along_y) = (to.0 - from.0, to.1 - from.1);
        let length = along_x.hypot(along_y).max(1e-9);
        let part = ((at.0 - from.0) * along_x + (at.1 - from.1) * along_y) / (length * length);
        let part = part.clamp(0.0, 1.0);
        distance(at, (from.0 + part * along_x, from.1 + part * along_y))
    }
}

/// The direction of a line at one of its points, in degrees from -90 to 90; `None` too near its ends.
fn along(line: &[Point], index: usize) -> Option<f64> {
    let point = line[index];
    let is_far = |at: &&Point| distance(**at, point) >= FOLLOWED_PIXELS;
    let before = line[..index].iter().rev().find(is_far)?;
    let after = line[index..].iter().find(is_far)?;
    let degrees = (after.1 - before.1).atan2(after.0 - before.0).to_degrees();
    Some(if degrees > 90.0 {
        degrees - 180.0
    } else if degrees < -90.0 {
        degrees + 180.0
    } else {
        degrees
    })
}

fn distance(first: Point, second: Point) -> f64 {
    (first.0 - second.0).hypot(first.1 - second.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level_line(y: f64) -> Vec<Point> {
        (0..100).map(|index| (f64::from(index) * 5.0, y)).collect()
    }

    #[test]
    fn a_label_is_on_its_line_next_to_the_guide() {
        let mut labels = Labels::near(((250.0, 0.0), (250.0, 300.0)));
        let position = labels.position(&level_line(100.0)).unwrap();
        assert_eq!(position, LabelPosition { at: (250.0, 100.0), turned: 0.0 });
    }

    #[test]
    fn labels_keep_their_distance_and_are_omitted_without_space() {
        let mut labels = Labels::near(((250.0, 0.0), (250.0, 300.0)));
        let first = labels.position(&level_line(100.0)).unwrap();
        let second = labels.position(&level_line(104.0)).unwrap();
        assert!(distance(first.at, second.at) >= APART);
        assert_eq!(labels.position(&[(0.0, 0.0), (5.0, 0.0)]), None);
    }

    #[test]
    fn no_label_is_upside_down() {
        let line: Vec<Point> = (0..50).map(|index| (-f64::from(index) * 5.0, f64::from(index))).collect();
        let position = Labels::near(((-100.0, 0.0), (-100.0, 1.0))).position(&line).unwrap();
        assert!((-90.0..=90.0).contains(&position.turned));
    }
}
