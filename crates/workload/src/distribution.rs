//! SURGE's distributions: cumulative functions, quantiles and samples.
//!
//! Every value is sampled by inverting the distribution at one
//! uniform number, and computed by `libm` in Rust, so that a seed gives the same bytes on every host.

use std::fmt;

use wire::seed::Random;

/// A distribution of positive numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Lognormal: the logarithm is normal, with this mean and this deviation.
    Lognormal {
        /// The mean of the natural logarithm.
        mu: f64,
        /// Its standard deviation.
        sigma: f64,
    },
    /// Pareto: 1 - (min / x)^shape, from `min` on.
    Pareto {
        /// Minimum value.
        min: f64,
        /// Tail exponent; at 1 and below there is no mean.
        shape: f64,
    },
    /// Weibull: 1 - exp(-(x / scale)^shape).
    Weibull {
        /// Value below which 63% lie.
        scale: f64,
        /// The exponent.
        shape: f64,
    },
    /// Inverse Gaussian: the first passage time of a Brownian motion with drift.
    InverseGaussian {
        /// The mean.
        mean: f64,
        /// Shape; the larger, the closer the values to the mean.
        shape: f64,
    },
    /// Lognormal below a value, Pareto from there on.
    Hybrid {
        /// The mean of the body's natural logarithm.
        mu: f64,
        /// Its standard deviation.
        sigma: f64,
        /// Value at which the tail begins.
        cut: f64,
        /// The share of values below `cut`.
        body: f64,
        /// Tail exponent.
        shape: f64,
    },
}

impl Distribution {
    /// Returns the cumulative distribution function at `x`: the share of values of at most `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        if x <= 0.0 {
            return 0.0;
        }
        match *self {
            Self::Lognormal { mu, sigma } => normal_cdf((libm::log(x) - mu) / sigma),
            Self::Pareto { min, shape: _ } if x <= min => 0.0,
            Self::Pareto { min, shape } => 1.0 - libm::pow(min / x, shape),
            Self::Weibull { scale, shape } => -libm::expm1(-libm::pow(x / scale, shape)),
            Self::InverseGaussian { mean, shape } => {
                // Schrödinger's first passage; the second term is a product of something huge and something tiny.
                let root = libm::sqrt(shape / x);
                let late = normal_cdf(-root * (x / mean + 1.0));
                normal_cdf(root * (x / mean - 1.0)) + libm::exp(2.0 * shape / mean) * late
            }
            Self::Hybrid { mu, sigma, cut, body, shape: _ } if x < cut => {
                let lognormal = Self::Lognormal { mu, sigma };
                body * lognormal.cdf(x) / lognormal.cdf(cut)
            }
            Self::Hybrid { mu: _, sigma: _, cut, body, shape } => {
                body + (1.0 - body) * Self::Pareto { min: cut, shape }.cdf(x)
            }
        }
    }

    /// Returns the logarithm of the density at `x`, which is positive; minus infinity where the density is 0.
    pub(super) fn ln_density(&self, x: f64) -> f64 {
        match *self {
            Self::Lognormal { mu, sigma } => {
                let z = (libm::log(x) - mu) / sigma;
                -libm::log(x * sigma) - ROOT_TAU_LN - z * z / 2.0
            }
            Self::Pareto { min, shape: _ } if x < min => f64::NEG_INFINITY,
            Self::Pareto { min, shape } => libm::log(shape / x) - shape * libm::log(x / min),
            Self::Weibull { scale, shape } => {
                libm::log(shape / x) + shape * libm::log(x / scale) - libm::pow(x / scale, shape)
            }
            Self::InverseGaussian { mean, shape } => {
                let deviation = (x - mean) / mean;
                libm::log(shape / (x * x * x)) / 2.0 - ROOT_TAU_LN - shape * deviation * deviation / (2.0 * x)
            }
            Self::Hybrid { mu, sigma, cut, body, shape: _ } if x < cut => {
                let lognormal = Self::Lognormal { mu, sigma };
                libm::log(body / lognormal.cdf(cut)) + lognormal.ln_density(x)
            }
            Self::Hybrid { mu: _, sigma: _, cut, body, shape } => {
                libm::log(1.0 - body) + Self::Pareto { min: cut, shape }.ln_density(x)
            }
        }
    }

    /// Returns the quantile: the value below which a share of `p` lies, from 0 to below 1.
    pub fn quantile(&self, p: f64) -> f64 {
        match *self {
            Self::Lognormal { mu, sigma } => libm::exp(mu + sigma * normal_quantile(p)),
            Self::Pareto { min, shape } => min / libm::pow(1.0 - p, 1.0 / shape),
            Self::Weibull { scale, shape } => scale * libm::pow(-libm::log1p(-p), 1.0 / shape),
            Self::InverseGaussian { mean, shape: _ } => self.bisect(p, mean),
            Self::Hybrid { mu, sigma, cut, body, shape: _ } if p < body => {
                let lognormal = Self::Lognormal { mu, sigma };
                lognormal.quantile(p / body * lognormal.cdf(cut))
            }
            Self::Hybrid { mu: _, sigma: _, cut, body, shape } => {
                Self::Pareto { min: cut, shape }.quantile((p - body) / (1.0 - body))
            }
        }
    }

    /// Samples a value; takes one random number.
    pub fn sample(&self, random: &mut Random) -> f64 {
        // From the middle of a step of 2^-53: neither 0 nor 1.
        self.quantile(random.unit() + HALF_A_STEP)
    }

    /// Computes the quantile by bisection, to a billionth, where there is no formula.
    fn bisect(&self, p: f64, guess: f64) -> f64 {
        let (mut low, mut high) = (0.0, guess);
        while self.cdf(high) < p {
            (low, high) = (high, 2.0 * high);
        }
        while high - low > 1e-9 * high {
            let middle = f64::midpoint(low, high);
            if self.cdf(middle) < p { low = middle } else { high = middle }
        }
        high
    }
}

/// ln(2 pi) / 2.
const ROOT_TAU_LN: f64 = 0.918_938_533_204_672_7;
const HALF_A_STEP: f64 = 1.0 / (1_u64 << 54) as f64;

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lognormal { mu, sigma } => write!(f, "lognormal({mu}, {sigma})"),
            Self::Pareto { min, shape } => write!(f, "Pareto({min}, {shape})"),
            Self::Weibull { scale, shape } => write!(f, "Weibull(shape {shape}, scale {scale})"),
            Self::InverseGaussian { mean, shape } => write!(f, "inverse Gaussian({mean}, {shape})"),
            Self::Hybrid { mu, sigma, cut, body, shape } => {
                let percent = (body * 1_000.0).round() / 10.0;
                write!(f, "lognormal({mu}, {sigma}) for {percent}% below {cut}, Pareto({shape}) beyond")
            }
        }
    }
}

/// Returns the cumulative distribution function of the standard normal distribution.
pub(super) fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// Returns the quantile of the standard normal distribution: a rational approximation (Abramowitz and Stegun 26.2.23, to 4.5e-4), then three steps of
/// Halley's method, each of which triples the number of correct digits.
fn normal_quantile(p: f64) -> f64 {
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    let t = libm::sqrt(-2.0 * libm::log(p.max(f64::MIN_POSITIVE)));
    let over = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let under = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let mut x = over / under - t;
    for _ in 0..3 {
        let density = libm::exp(-x * x / 2.0) / libm::sqrt(std::f64::consts::TAU);
        let step = (normal_cdf(x) - p) / density;
        x -= step / (1.0 + x * step / 2.0);
    }
    x
}

#[cfg(test)]
mod tests {
    use wire::Seed;

    use super::*;

    const ALL: [Distribution; 5] = [
        Distribution::Lognormal { mu: 1.5, sigma: 0.8 },
        Distribution::Pareto { min: 1.0, shape: 2.43 },
        Distribution::Weibull { scale: 0.382, shape: 1.46 },
        Distribution::InverseGaussian { mean: 3.86, shape: 9.46 },
        Distribution::Hybrid { mu: 9.357, sigma: 1.318, cut: 133_000.0, body: 0.93, shape: 1.1 },
    ];

    #[test]
    fn paper_normal_quantiles_are_those_of_the_tables() {
        for (p, x) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.001, -3.090_232_306_167_813),
            (1e-9, -5.997_807_015),
        ] {
            assert!((normal_quantile(p) - x).abs() < 1e-8, "{p}: {}", normal_quantile(p));
        }
    }

    #[test]
    fn quantile_inverts_the_cumulative_distribution() {
        for distribution in ALL {
            for p in [1e-6, 0.01, 0.3, 0.5, 0.92, 0.95, 0.999, 0.999_999] {
                let back = distribution.cdf(distribution.quantile(p));
                assert!((back - p).abs() < 1e-8, "{distribution}: {p} came back as {back}");
            }
        }
    }

    #[test]
    fn density_is_the_derivative_of_the_cumulative_distribution() {
        for distribution in ALL {
            for p in [0.05, 0.3, 0.6, 0.97] {
                let x = distribution.quantile(p);
                let step = x * 1e-5;
                let slope = (distribution.cdf(x + step) - distribution.cdf(x - step)) / (2.0 * step);
                let density = libm::exp(distribution.ln_density(x));
                assert!((slope / density - 1.0).abs() < 1e-4, "{distribution} at {x}: {slope} and {density}");
            }
        }
        assert_eq!(ALL[1].ln_density(0.5), f64::NEG_INFINITY);
    }

    #[test]
    fn sample_means_are_those_of_the_distributions() {
        let mean = |distribution: Distribution| {
            let mut random = Seed::default().stream("distribution", 0);
            (0..20_000).map(|_| distribution.sample(&mut random)).sum::<f64>() / 20_000.0
        };
        // exp(mu + sigma^2 / 2); shape * least / (shape - 1); scale * gamma(1 + 1 / shape); the mean itself.
        for (distribution, expected) in ALL.into_iter().zip([6.172, 1.699, 0.346, 3.86]) {
            let mean_of_samples = mean(distribution);
            assert!(
                (mean_of_samples / expected - 1.0).abs() < 0.03,
                "{distribution}: {mean_of_samples} for {expected}"
            );
        }
    }

    #[test]
    fn no_value_is_below_zero_and_a_pareto_begins_at_its_minimum() {
        assert!(ALL.iter().all(|distribution| distribution.cdf(0.0) == 0.0 && distribution.cdf(-1.0) == 0.0));
        assert_eq!(Distribution::Pareto { min: 1.0, shape: 2.43 }.cdf(1.0), 0.0);
        let hybrid = ALL[4];
        assert!((hybrid.cdf(133_000.0) - 0.93).abs() < 1e-12);
    }
}
