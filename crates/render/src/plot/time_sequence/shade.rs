//! Placement of the names of stalls: in rows above the picture, without overlaps.

use super::{Stall, millis};

/// Label of a part of the picture.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    /// Text.
    pub text: String,
    /// Its centre, in pixels from the left.
    pub x: f64,
    /// Row, counted from the picture upwards; `None` where it does not fit.
    pub row: Option<usize>,
    /// Centre of the stall.
    pub points_to: f64,
}

/// Labels of the stalls. Those that are long enough have a row, as far as they fit between `left` and `right`.
pub(super) fn labels(
    stalls: &[Stall],
    position: impl Fn(f64) -> f64,
    (left, right): (f64, f64),
    rows: usize,
) -> Vec<Label> {
    let stretch = |stall: &Stall| {
        let from = stall.at.as_millis_f64();
        (position(from), position(from + stall.lost.as_millis_f64()))
    };
    let mut longest: Vec<&Stall> = stalls.iter().collect();
    // Where not all fit, the longest are labelled.
    longest.sort_by(|first, second| second.lost.cmp(&first.lost).then(first.at.cmp(&second.at)));
    let mut occupied: Vec<Vec<(f64, f64)>> = vec![Vec::new(); rows];
    let mut labels = Vec::new();
    for stall in longest {
        let text = format!("{} {}", stall.name, millis(stall.lost.as_millis_f64()));
        let half = text.chars().count() as f64 * LETTER / 2.0;
        let (from, to) = stretch(stall);
        let points_to = f64::midpoint(from, to);
        let x = points_to.min(right - half).max(left + half);
        let span = (x - half - GAP, x + half + GAP);
        let is_free =
            |row: &Vec<(f64, f64)>| row.iter().all(|second| span.1 <= second.0 || second.1 <= span.0);
        let is_long = to - from >= MIN_SHARE * (right - left);
        let row = if is_long { occupied.iter().position(is_free) } else { None };
        if let Some(line) = row.and_then(|row| occupied.get_mut(row)) {
            line.push(span);
        }
        labels.push(Label { text, x, row, points_to });
    }
    labels
}

/// Minimum share of the picture's width for a label.
const MIN_SHARE: f64 = 0.012;
/// Approximate width of a letter, then the space on either side of a label, in pixels.
const LETTER: f64 = 5.9;
const GAP: f64 = 5.0;

#[cfg(test)]
mod tests {
    use wire::{Duration, Time};

    use super::*;

    #[test]
    fn neighbours_get_different_rows_and_the_shortest_lose_their_labels_first() {
        let stall = |at: u64, lost: u64| Stall {
            name: "slow-start".to_owned(),
            at: Time::from_nanos(at * 1_000_000),
            lost: Duration::from_millis(lost),
            is_note: false,
            evidence: String::new(),
        };
        let stalls = [stall(0, 20), stall(30, 25), stall(60, 15), stall(900, 20), stall(950, 1)];
        let labels = labels(&stalls, |ms| ms, (0.0, 1000.0), 2);
        let shown = labels.iter().filter_map(|label| Some((label.row?, label.points_to)));
        let seen: Vec<(usize, f64)> = shown.collect();
        assert_eq!(labels.len(), stalls.len());
        assert_eq!(seen, [(0, 42.5), (1, 10.0), (0, 910.0)]);
        assert!(labels.iter().all(|label| label.x > 0.0 && label.x < 1000.0));
    }
}
