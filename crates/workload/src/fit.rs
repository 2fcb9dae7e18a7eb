//! Goodness of fit of sampled values: the Kolmogorov-Smirnov test.
//!
//! Whole numbers are compared at whole numbers; the test is then conservative.

/// Comparison of values with their distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Name of the quantity.
    pub what: &'static str,
    /// Description of the distribution.
    pub expected: String,
    /// Number of values.
    pub count: usize,
    /// Median, expected and observed.
    pub median: (f64, f64),
    /// 99th percentile, expected and observed.
    pub high: (f64, f64),
    /// Kolmogorov's D: the maximum difference between the cumulative distributions, from 0 to 1.
    pub distance: f64,
    /// P-value: probability of a difference of at least this size by chance; `None` where values depend on one another.
    pub likelihood: Option<f64>,
}

/// Compares independently sampled `values` with a distribution given by its cumulative function and its
/// quantiles; `step` is 1 for whole numbers that were rounded upwards, and 0 for continuous values.
pub fn fit(
    what: &'static str,
    expected: String,
    mut values: Vec<f64>,
    step: f64,
    cdf: impl Fn(f64) -> f64,
    quantile: impl Fn(f64) -> f64,
) -> Fit {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let distance = distance(&values, step, cdf);
    let at = |share: f64| {
        // An index from a share between 0 and 1 of the count.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let index = (share * count as f64) as usize;
        values.get(index).or(values.last()).copied().unwrap_or(0.0)
    };
    Fit {
        what,
        expected,
        count,
        median: (quantile(0.5), at(0.5)),
        high: (quantile(0.99), at(0.99)),
        distance,
        likelihood: Some(likelihood(distance, count)),
    }
}

/// Returns the maximum difference, at both sides of every value.
fn distance(sorted: &[f64], step: f64, cdf: impl Fn(f64) -> f64) -> f64 {
    let count = sorted.len() as f64;
    let (mut largest, mut seen) = (0.0_f64, 0_usize);
    for same in sorted.chunk_by(|a, b| a == b) {
        let value = same.first().copied().unwrap_or(0.0);
        let before = seen as f64 / count;
        seen += same.len();
        let after = seen as f64 / count;
        largest = largest.max((cdf(value - step) - before).abs()).max((cdf(value) - after).abs());
    }
    largest
}

/// Returns the p-value: Kolmogorov's limit, with the correction of Stephens (1970) for few values.
fn likelihood(distance: f64, count: usize) -> f64 {
    if count == 0 {
        return 1.0;
    }
    let root = libm::sqrt(count as f64);
    let x = (root + 0.12 + 0.11 / root) * distance;
    if x < 0.2 {
        // The series needs ever more terms there; the result is 1 to 12 digits.
        return 1.0;
    }
    let term = |k: f64| libm::exp(-2.0 * k * k * x * x);
    let sum: f64 = (1..=50).map(|k| if k % 2 == 1 { term(f64::from(k)) } else { -term(f64::from(k)) }).sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use wire::Seed;

    use super::*;
    use crate::distribution::Distribution;

    #[test]
    fn paper_limit_is_that_of_the_tables() {
        // Smirnov (1948): 5% at 1.3581, 1% at 1.6276.
        for (x, p) in [(1.358_1, 0.05), (1.627_6, 0.01), (0.827_6, 0.5)] {
            let count = 1_000_000;
            assert!((likelihood(x / 1_000.0, count) - p).abs() < 1e-3, "{x}");
        }
    }

    #[test]
    fn samples_fit_their_own_distribution_only() {
        let distribution = Distribution::Pareto { min: 1.0, shape: 1.5 };
        let mut random = Seed::default().stream("fit", 0);
        let values: Vec<f64> = (0..5_000).map(|_| distribution.sample(&mut random)).collect();
        let fit_of = |distribution: Distribution| {
            fit(
                "",
                distribution.to_string(),
                values.clone(),
                0.0,
                |x| distribution.cdf(x),
                |p| distribution.quantile(p),
            )
        };
        assert!(fit_of(distribution).likelihood > Some(0.01), "{:?}", fit_of(distribution));
        assert!(fit_of(Distribution::Pareto { min: 1.0, shape: 1.4 }).likelihood < Some(1e-3));
    }

    #[test]
    fn whole_numbers_are_compared_at_whole_numbers() {
        let distribution = Distribution::Pareto { min: 1.0, shape: 2.43 };
        let mut random = Seed::default().stream("fit", 1);
        let values: Vec<f64> = (0..5_000).map(|_| distribution.sample(&mut random).ceil()).collect();
        let fit_of = |step| {
            fit(
                "",
                String::new(),
                values.clone(),
                step,
                |x| distribution.cdf(x),
                |p| distribution.quantile(p),
            )
        };
        assert!(fit_of(1.0).likelihood > Some(0.01), "{:?}", fit_of(1.0));
        assert!(fit_of(0.0).likelihood < Some(1e-9), "{:?}", fit_of(0.0));
    }

    #[test]
    fn no_values_give_no_fit() {
        let empty = fit("", String::new(), Vec::new(), 0.0, |_| 0.5, |_| 1.0);
        assert_eq!((empty.count, empty.likelihood, empty.distance), (0, Some(1.0), 0.0));
    }
}
