//! Values to positions on an axis, and its ticks.

/// A range of values and its spacing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The first value; above zero on a logarithmic scale.
    pub from: f64,
    /// The last value, above the first.
    pub to: f64,
    /// Spacing of the values.
    pub kind: Spacing,
}

/// Spacing of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Evenly.
    Linear,
    /// By ratio.
    Logarithmic,
}

impl Scale {
    /// Even spacing.
    pub const fn linear(from: f64, to: f64) -> Self {
        Self { from, to, kind: Spacing::Linear }
    }

    /// Spacing by ratio.
    pub const fn logarithmic(from: f64, to: f64) -> Self {
        Self { from, to, kind: Spacing::Logarithmic }
    }

    /// Position of a value: 0 at the first value, 1 at the last.
    pub fn position(&self, value: f64) -> f64 {
        match self.kind {
            Spacing::Linear => (value - self.from) / (self.to - self.from),
            Spacing::Logarithmic => (value / self.from).ln() / (self.to / self.from).ln(),
        }
    }

    /// The value at a position between 0 and 1.
    pub fn value(&self, position: f64) -> f64 {
        match self.kind {
            Spacing::Linear => self.from + position * (self.to - self.from),
            Spacing::Logarithmic => self.from * (self.to / self.from).powf(position),
        }
    }

    /// Ticks with a number: `step` apart on a linear scale, at the powers of ten on a logarithmic one.
    pub fn ticks(&self, step: f64) -> Vec<f64> {
        match self.kind {
            Spacing::Linear => multiples(self.from, self.to, step),
            Spacing::Logarithmic => decades(self.from, self.to).filter(|tick| self.contains(*tick)).collect(),
        }
    }

    /// Ticks without a number: 2 to 9 times the powers of ten; none on a linear scale.
    pub fn minor_ticks(&self) -> Vec<f64> {
        match self.kind {
            Spacing::Linear => Vec::new(),
            Spacing::Logarithmic => decades(self.from, self.to)
                .flat_map(|decade| (2..10).map(move |times| decade * f64::from(times)))
                .filter(|tick| self.contains(*tick))
                .collect(),
        }
    }

    /// Whether the value is between both ends, with a tolerance for rounding.
    fn contains(&self, value: f64) -> bool {
        (-1e-9..=1.0 + 1e-9).contains(&self.position(value))
    }
}

/// Whole multiples of `step` from `from` to `to`, which must be few.
pub fn multiples(from: f64, to: f64, step: f64) -> Vec<f64> {
    let first = (from / step - 1e-9).ceil();
    let count = ((to / step + 1e-9).floor() - first).max(-1.0);
    // A picture has few ticks and few contours: the count is small.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let count = (count + 1.0) as usize;
    (0..count).map(|index| (first + index as f64) * step).collect()
}

/// The powers of ten from the one at or below `from` to the one at or below `to`.
fn decades(from: f64, to: f64) -> impl Iterator<Item = f64> {
    multiples((from.log10() + 1e-9).floor(), (to.log10() + 1e-9).floor(), 1.0)
        .into_iter()
        .map(|exponent| 10_f64.powf(exponent))
}

/// The smallest round number (1, 2 or 5 times a power of ten) of which `range` has at most `most` steps; 1 for no range.
pub fn round_step(range: f64, max_steps: f64) -> f64 {
    if range <= 0.0 {
        return 1.0;
    }
    let min_step = range / max_steps;
    let decade = 10_f64.powf(min_step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|times| times * decade)
        .into_iter()
        .find(|step| *step >= min_step)
        .unwrap_or(min_step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        assert_eq!(
            [0.0, 1.0, 7.0, 400.0, 3_910.0].map(|range| round_step(range, 8.0)),
            [1.0, 0.2, 1.0, 50.0, 500.0]
        );
        assert_eq!([0.003, 900.0].map(|range| round_step(range, 9.0)), [0.0005, 100.0]);
    }

    #[test]
    fn positions_and_values_are_inverse() {
        for scale in [Scale::linear(0.0, 500.0), Scale::logarithmic(0.01, 100.0)] {
            for position in [0.0, 0.25, 1.0] {
                assert!((scale.position(scale.value(position)) - position).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn ticks_are_round_numbers_within_the_scale() {
        assert_eq!(Scale::linear(0.0, 300.0).ticks(100.0), [0.0, 100.0, 200.0, 300.0]);
        assert_eq!(Scale::logarithmic(0.02, 100.0).ticks(1.0).len(), 4);
        let minor = Scale::logarithmic(0.02, 0.1).minor_ticks();
        assert_eq!(minor.len(), 8);
        assert_eq!(multiples(1.25, 3.1, 0.5), [1.5, 2.0, 2.5, 3.0]);
        assert_eq!(multiples(2.0, 1.0, 0.5), [] as [f64; 0]);
    }
}
