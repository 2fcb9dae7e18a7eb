//! Summary of N runs: mean, deviation, 95% interval, median.
//!
//! For a handful of runs, with every value in memory.

/// A summary of values in one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of values.
    pub count: usize,
    /// The arithmetic mean.
    pub mean: f64,
    /// The median: the middle value, or the mean of the two middle ones.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// The sample's standard deviation; `None` for fewer than two values.
    pub deviation: Option<f64>,
    /// Half the width of the 95% confidence interval of the mean (Student's t); `None` for fewer than two.
    pub interval95: Option<f64>,
}

impl Summary {
    /// `None` for no values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        let upper = *sorted.get(count / 2)?;
        let lower = *sorted.get((count - 1) / 2)?;
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (count > 1).then(|| (squares / (count - 1) as f64).sqrt());
        let interval95 = deviation.map(|deviation| interval95(deviation, count));
        Some(Self { count, mean, median: f64::midpoint(lower, upper), min, max, deviation, interval95 })
    }
}

/// Half the width of the 95% confidence interval of a mean: of at least two values with this deviation.
pub fn interval95(deviation: f64, count: usize) -> f64 {
    student_t_975(count.saturating_sub(1).max(1)) * deviation / (count.max(2) as f64).sqrt()
}

/// The 97.5% point of Student's t: printed tables up to 10 degrees of freedom, and beyond the first four
/// terms of its expansion about the normal distribution (Abramowitz and Stegun, 26.7.5), accurate to 0.0005.
fn student_t_975(degrees: usize) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    const Z: f64 = 1.959_964;
    match degrees.checked_sub(1).and_then(|row| TABLE.get(row)) {
        Some(printed) => *printed,
        None => {
            let n = degrees as f64;
            let first = (Z.powi(3) + Z) / 4.0;
            let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
            let third = (3.0 * Z.powi(7) + 19.0 * Z.powi(5) + 17.0 * Z.powi(3) - 15.0 * Z) / 384.0;
            Z + first / n + second / n.powi(2) + third / n.powi(3)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_known_values() {
        let summary = Summary::of(&[4.0, 2.0, 9.0, 5.0]).unwrap();
        assert_eq!((summary.mean, summary.median, summary.min, summary.max), (5.0, 4.5, 2.0, 9.0));
        let deviation = summary.deviation.unwrap();
        assert!((deviation - (26.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((summary.interval95.unwrap() - 3.182 * deviation / 2.0).abs() < 1e-12);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[7.0]).unwrap().interval95, None);
    }

    #[test]
    fn paper_student_t_as_printed_in_abramowitz_and_stegun_table_26_10() {
        for (degrees, printed) in
            [(1, 12.706), (10, 2.228), (11, 2.201), (20, 2.086), (30, 2.042), (99, 1.984)]
        {
            assert!(
                (student_t_975(degrees) - printed).abs() < 0.001,
                "{degrees}: {}",
                student_t_975(degrees)
            );
        }
    }

    #[test]
    fn paper_table_7_intervals_follow_from_its_deviations() {
        // papers/heidemann-model#table-7: 100 trials, deviation 101 ms, interval 20.1 ms; and 48, 9.5.
        for (deviation, interval) in [(101.0_f64, 20.1), (48.0, 9.5)] {
            let computed = interval95(deviation, 100);
            assert!((computed - interval).abs() < 0.1, "{computed}");
        }
    }
}
