//! Estimation of distributions from values, by maximum likelihood: parameters within a family, and choice of the family.
//!
//! The lognormal, the Pareto (Hill)
//! and the inverse Gaussian have a closed form. The Weibull's shape and the truncated normal (Cohen 1959) are
//! roots of monotone functions, found by bisection. The cut between a lognormal body and a Pareto tail is the
//! most likely of two hundred. Between families the Bayesian information criterion (Schwarz 1978) decides:
//! each parameter costs half the logarithm of the number of values. Values are positive; estimates have five
//! significant digits, which is more than any log supports.

use std::f64::consts::TAU;

use crate::distribution::{Distribution, normal_cdf};

/// Minimum number of values for an estimate.
pub(super) const MIN_VALUES: usize = 50;

/// Returns the distribution with the best criterion; `None` if there are too few values.
pub(super) fn most_likely(
    values: &[f64],
    distributions: impl IntoIterator<Item = Option<Distribution>>,
) -> Option<Distribution> {
    if values.len() < MIN_VALUES {
        return None;
    }
    best(distributions.into_iter().flatten(), values.len(), |distribution| {
        values.iter().map(|value| distribution.ln_density(*value)).sum()
    })
}

/// Returns the distribution with the best criterion, by the logarithm of its likelihood.
fn best(
    distributions: impl Iterator<Item = Distribution>,
    count: usize,
    ln_likelihood: impl Fn(&Distribution) -> f64,
) -> Option<Distribution> {
    let cost = libm::log(count as f64) / 2.0;
    let scored = distributions
        .map(|distribution| (ln_likelihood(&distribution) - cost * parameters(&distribution), distribution));
    let finite = scored.filter(|(criterion, _)| criterion.is_finite());
    finite.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, distribution)| round_parameters(distribution))
}

const fn parameters(distribution: &Distribution) -> f64 {
    match distribution {
        Distribution::Lognormal { mu: _, sigma: _ } | Distribution::Weibull { scale: _, shape: _ } => 2.0,
        Distribution::InverseGaussian { mean: _, shape: _ } => 2.0,
        // Its minimum is given.
        Distribution::Pareto { min: _, shape: _ } => 1.0,
        Distribution::Hybrid { mu: _, sigma: _, cut: _, body: _, shape: _ } => 5.0,
    }
}

/// Estimates a lognormal by the mean and the deviation of the logarithms.
pub(super) fn lognormal(values: &[f64]) -> Option<Distribution> {
    let count = values.len() as f64;
    let mu = values.iter().map(|value| libm::log(*value)).sum::<f64>() / count;
    let square = |value: &f64| (libm::log(*value) - mu).powi(2);
    let sigma = libm::sqrt(values.iter().map(square).sum::<f64>() / count);
    (sigma > 1e-9).then_some(Distribution::Lognormal { mu, sigma })
}

/// Estimates a Pareto by Hill's formula, for values of at least `least`.
pub(super) fn pareto(values: &[f64], min: f64) -> Option<Distribution> {
    let logarithms: f64 = values.iter().map(|value| libm::log(value / min)).sum();
    let shape = values.len() as f64 / logarithms;
    (SHAPES.0..SHAPES.1).contains(&shape).then_some(Distribution::Pareto { min, shape })
}

/// Range of tail exponents: an estimate outside it comes from too few values, or from one value many times.
const SHAPES: (f64, f64) = (0.1, 20.0);

/// Estimates a Weibull by the root of its likelihood's derivative.
pub(super) fn weibull(values: &[f64]) -> Option<Distribution> {
    let count = values.len() as f64;
    let logarithms: Vec<f64> = values.iter().map(|value| libm::log(*value)).collect();
    let mean = logarithms.iter().sum::<f64>() / count;
    // Relative to the largest, so that no power overflows.
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers = |shape: f64| {
        logarithms.iter().fold((0.0, 0.0), |(sum, weighted), log| {
            let power = libm::exp(shape * (log - largest));
            (sum + power, weighted + power * log)
        })
    };
    let derivative = |shape: f64| {
        let (sum, weighted) = powers(shape);
        weighted / sum - 1.0 / shape - mean
    };
    let shape = root(derivative, (0.02, 50.0))?;
    let scale = libm::exp(largest + libm::log(powers(shape).0 / count) / shape);
    Some(Distribution::Weibull { scale, shape })
}

/// Estimates an inverse Gaussian by the mean, and by the distance of the mean inverse from the inverse mean.
pub(super) fn inverse_gaussian(values: &[f64]) -> Option<Distribution> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let shape = 1.0 / (values.iter().map(|value| 1.0 / value - 1.0 / mean).sum::<f64>() / count);
    (shape.is_finite() && (1e-6..1e9).contains(&shape))
        .then_some(Distribution::InverseGaussian { mean, shape })
}

/// Returns the distribution with the best criterion for values that were rounded to the nearest whole number, at least
/// 1: the likelihood is that of the interval rounded to each number.
pub(super) fn most_likely_rounded(
    values: &[f64],
    distributions: impl IntoIterator<Item = Option<Distribution>>,
) -> Option<Distribution> {
    if values.len() < MIN_VALUES {
        return None;
    }
    let counts = count_distinct(values);
    best(distributions.into_iter().flatten(), values.len(), |distribution| {
        rounded_likelihood(&counts, distribution)
    })
}

/// Estimates a Pareto from 1 on, for values that were rounded to the nearest whole number, at least 1.
pub(super) fn rounded_pareto(values: &[f64]) -> Option<Distribution> {
    let counts = count_distinct(values);
    let pareto_of = |shape: f64| Distribution::Pareto { min: 1.0, shape };
    Some(pareto_of(maximize(|shape| rounded_likelihood(&counts, &pareto_of(shape)), SHAPES)))
}

/// Returns each distinct value, and its count.
fn count_distinct(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as f64)).collect()
}

fn rounded_likelihood(counts: &[(f64, f64)], distribution: &Distribution) -> f64 {
    let share = |value: f64| {
        let from = if value <= 1.0 { 0.0 } else { distribution.cdf(value - 0.5) };
        libm::log((distribution.cdf(value + 0.5) - from).max(f64::MIN_POSITIVE))
    };
    counts.iter().map(|(value, count)| count * share(*value)).sum()
}

/// Estimates a lognormal below the most likely cut, and a Pareto above.
pub(super) fn hybrid(sorted: &[f64]) -> Option<Distribution> {
    // With prefix sums, the likelihood of a cut takes few steps.
    let sums: Vec<(f64, f64)> = std::iter::once((0.0, 0.0))
        .chain(sorted.iter().scan((0.0, 0.0), |(sum, squares), value| {
            let log = libm::log(*value);
            (*sum, *squares) = (*sum + log, *squares + log * log);
            Some((*sum, *squares))
        }))
        .collect();
    let (first, last) = (sorted.len() / 2, sorted.len().checked_sub(MIN_TAIL)?);
    let at = |range: (usize, usize)| {
        let step = (range.1.saturating_sub(range.0) / CUTS).max(1);
        let cuts = (range.0..=range.1).step_by(step).filter_map(|index| cut_at(sorted, &sums, index));
        cuts.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, index, distribution)| (step, index, distribution))
    };
    let (step, index, _) = at((first, last))?;
    at((index.saturating_sub(step).max(first), (index + step).min(last)))
        .map(|(_, _, distribution)| distribution)
}

/// Minimum number of values in a tail.
const MIN_TAIL: usize = 20;
/// Number of cuts tried over the whole range, and again around the most likely one.
const CUTS: usize = 100;

/// Returns the most likely distribution with its cut at this index of the sorted values, and the logarithm of its
/// likelihood.
fn cut_at(sorted: &[f64], sums: &[(f64, f64)], index: usize) -> Option<(f64, usize, Distribution)> {
    let cut = *sorted.get(index)?;
    let index = sorted.partition_point(|value| *value < cut);
    let ((below, squares), (all, _)) = (*sums.get(index)?, *sums.last()?);
    let (count, tail) = (index as f64, (sorted.len() - index) as f64);
    let body = count / (count + tail);
    let log_cut = libm::log(cut);
    let (mu, sigma) = truncated(below / count, squares / count - (below / count).powi(2), log_cut)?;
    let beyond = all - below - tail * log_cut;
    let shape = Some(tail / beyond).filter(|shape| (SHAPES.0..SHAPES.1).contains(shape))?;
    let within = (squares - 2.0 * mu * below + count * mu * mu) / (2.0 * sigma * sigma);
    let scale = libm::log(sigma * libm::sqrt(TAU) * normal_cdf((log_cut - mu) / sigma));
    let of_body = count * (libm::log(body) - scale) - below - within;
    let of_tail = tail * (libm::log(1.0 - body) + libm::log(shape)) - (all - below) - shape * beyond;
    Some((of_body + of_tail, index, Distribution::Hybrid { mu, sigma, cut, body, shape }))
}

/// Estimates mean and deviation of a normal truncated above `end`, from those of the remaining values (Cohen 1959).
fn truncated(mean: f64, variance: f64, end: f64) -> Option<(f64, f64)> {
    let distance = end - mean;
    let hazard = |a: f64| libm::exp(-a * a / 2.0) / libm::sqrt(TAU) / normal_cdf(a);
    // Falls from nearly 1, where only the steep side is left, to 0.
    let ratio = |a: f64| (1.0 - a * hazard(a) - hazard(a).powi(2)) / (a + hazard(a)).powi(2);
    // A body with its mean far above the cut is a power law; still further, its parameters are undetermined.
    let a = root(|a| variance / (distance * distance) - ratio(a), (-4.0, 40.0))?;
    let sigma = distance / (a + hazard(a));
    (sigma > 0.0 && sigma.is_finite()).then_some((end - a * sigma, sigma))
}

/// Estimates Zipf's exponent from the number of requests for each rank, the most popular first.
pub(super) fn zipf(counts: &[u64]) -> f64 {
    let total: f64 = counts.iter().map(|count| *count as f64).sum();
    let logarithm = |(rank, count): (u32, &u64)| *count as f64 * libm::log(f64::from(rank));
    let mean = (1..).zip(counts).map(logarithm).sum::<f64>() / total;
    let expected = |exponent: f64| {
        let (mut weight, mut weighted, mut rank) = (0.0, 0.0, 1_usize);
        while rank <= counts.len() {
            // Far down the ranks, a thousandth of the way per step.
            let step = (rank / 1_000).max(1).min(counts.len() - rank + 1);
            let log = libm::log(rank as f64 + (step - 1) as f64 / 2.0);
            let share = step as f64 * libm::exp(-exponent * log);
            (weight, weighted) = (weight + share, weighted + share * log);
            rank += step;
        }
        weighted / weight
    };
    let beyond = if mean < expected(1.0) { EXPONENT } else { 0.0 };
    let estimate = root(|exponent| mean - expected(exponent), (0.0, EXPONENT)).unwrap_or(beyond);
    (estimate * 1e4).round() / 1e4
}

/// Maximum exponent of Zipf's law.
const EXPONENT: f64 = 5.0;

/// Finds the root of an increasing function by bisection; `None` if it is not within the bounds.
fn root(function: impl Fn(f64) -> f64, (mut low, mut high): (f64, f64)) -> Option<f64> {
    if function(low) > 0.0 || function(high) < 0.0 {
        return None;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if function(middle) < 0.0 { low = middle } else { high = middle }
    }
    let estimate = f64::midpoint(low, high);
    estimate.is_finite().then_some(estimate)
}

/// Finds the maximum of a unimodal function by ternary search.
fn maximize(function: impl Fn(f64) -> f64, (mut low, mut high): (f64, f64)) -> f64 {
    for _ in 0..60 {
        let third = (high - low) / 3.0;
        if function(low + third) < function(high - third) { low += third } else { high -= third }
    }
    f64::midpoint(low, high)
}

fn round_parameters(distribution: Distribution) -> Distribution {
    match distribution {
        Distribution::Lognormal { mu, sigma } => {
            Distribution::Lognormal { mu: round_digits(mu), sigma: round_digits(sigma) }
        }
        Distribution::Pareto { min, shape } => {
            Distribution::Pareto { min: round_digits(min), shape: round_digits(shape) }
        }
        Distribution::Weibull { scale, shape } => {
            Distribution::Weibull { scale: round_digits(scale), shape: round_digits(shape) }
        }
        Distribution::InverseGaussian { mean, shape } => {
            Distribution::InverseGaussian { mean: round_digits(mean), shape: round_digits(shape) }
        }
        Distribution::Hybrid { mu, sigma, cut, body, shape } => Distribution::Hybrid {
            mu: round_digits(mu),
            sigma: round_digits(sigma),
            // An existing size.
            cut,
            body: round_digits(body),
            shape: round_digits(shape),
        },
    }
}

/// Rounds to five significant digits.
fn round_digits(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use wire::Seed;

    use super::*;

    fn samples(distribution: Distribution, count: usize) -> Vec<f64> {
        let mut random = Seed::default().stream("estimate", 0);
        let mut values: Vec<f64> = (0..count).map(|_| distribution.sample(&mut random)).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn near(got: f64, expected: f64, within: f64) {
        assert!((got / expected - 1.0).abs() < within, "{got} for {expected}");
    }

    #[test]
    fn estimates_recover_the_sampled_distribution() {
        let count = 20_000;
        match lognormal(&samples(Distribution::Lognormal { mu: 1.5, sigma: 0.8 }, count)) {
            Some(Distribution::Lognormal { mu, sigma }) => {
                near(mu, 1.5, 0.02);
                near(sigma, 0.8, 0.02);
            }
            other => panic!("{other:?}"),
        }
        match pareto(&samples(Distribution::Pareto { min: 1.0, shape: 1.5 }, count), 1.0) {
            Some(Distribution::Pareto { min: _, shape }) => near(shape, 1.5, 0.03),
            other => panic!("{other:?}"),
        }
        match weibull(&samples(Distribution::Weibull { scale: 0.382, shape: 1.46 }, count)) {
            Some(Distribution::Weibull { scale, shape }) => {
                near(scale, 0.382, 0.02);
                near(shape, 1.46, 0.02);
            }
            other => panic!("{other:?}"),
        }
        match inverse_gaussian(&samples(Distribution::InverseGaussian { mean: 3.86, shape: 9.46 }, count)) {
            Some(Distribution::InverseGaussian { mean, shape }) => {
                near(mean, 3.86, 0.02);
                near(shape, 9.46, 0.03);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn body_with_a_tail_is_distinguished_from_a_body_alone() {
        let distribution =
            Distribution::Hybrid { mu: 9.357, sigma: 1.318, cut: 133_000.0, body: 0.93, shape: 1.1 };
        let values = samples(distribution, 20_000);
        let estimate = most_likely(&values, [lognormal(&values), hybrid(&values)]).unwrap();
        let Distribution::Hybrid { mu, sigma, cut, body, shape } = estimate else { panic!("{estimate:?}") };
        near(mu, 9.357, 0.02);
        near(sigma, 1.318, 0.05);
        near(cut, 133_000.0, 0.1);
        near(body, 0.93, 0.02);
        near(shape, 1.1, 0.1);
        let values = samples(Distribution::Lognormal { mu: 9.0, sigma: 1.0 }, 5_000);
        let estimate = most_likely(&values, [lognormal(&values), hybrid(&values)]);
        assert!(matches!(estimate, Some(Distribution::Lognormal { .. })), "{estimate:?}");
    }

    #[test]
    fn families_are_distinguished() {
        for distribution in [
            Distribution::Pareto { min: 1.0, shape: 1.5 },
            Distribution::Lognormal { mu: 2.0, sigma: 1.0 },
            Distribution::Weibull { scale: 3.0, shape: 1.46 },
        ] {
            let values = samples(distribution, 3_000);
            let estimate =
                most_likely(&values, [pareto(&values, 1.0), lognormal(&values), weibull(&values)]).unwrap();
            assert_eq!(
                std::mem::discriminant(&estimate),
                std::mem::discriminant(&distribution),
                "{estimate:?}"
            );
        }
    }

    #[test]
    fn estimates_recover_the_distribution_of_rounded_values() {
        let distribution = Distribution::Pareto { min: 1.0, shape: 2.43 };
        let values: Vec<f64> = samples(distribution, 20_000).into_iter().map(f64::round).collect();
        match most_likely_rounded(&values, [rounded_pareto(&values), lognormal(&values)]) {
            Some(Distribution::Pareto { min: 1.0, shape }) => near(shape, 2.43, 0.03),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn zipf_s_exponent_is_that_of_the_counts() {
        for exponent in [0.0, 0.6, 1.0, 1.4] {
            let counts: Vec<u64> = (1..=3_000)
                .map(|rank| {
                    // Large enough that truncation loses little.
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    let count = (1e7 * libm::pow(f64::from(rank), -exponent)) as u64;
                    count
                })
                .collect();
            assert!((zipf(&counts) - exponent).abs() < 0.01, "{} for {exponent}", zipf(&counts));
        }
    }

    #[test]
    fn too_few_or_degenerate_values_give_no_estimate() {
        assert_eq!(most_likely(&[1.0; 49], [lognormal(&[1.0, 2.0])]), None, "too few");
        assert_eq!(
            most_likely(&[3.0; 60], [lognormal(&[3.0; 60]), weibull(&[3.0; 60]), hybrid(&[3.0; 60])]),
            None
        );
        assert_eq!(inverse_gaussian(&[2.0; 60]), None);
        assert_eq!(pareto(&[2.0; 60], 2.0), None);
        assert_eq!(zipf(&[5]), 0.0);
    }
}
