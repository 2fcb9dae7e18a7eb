//! Synthetic responses: statuses and sizes, by the figures that the DHTTP paper uses.
//!
//! 26% of responses are "not modified" (its section I). The others have a median of 3,450 bytes (the same section);
//! with a deviation of 1.8 (of the logarithm) the mean of all responses comes to the 13 kB of its log
//! (`papers/dhttp#section-vi-a`). The share of small responses in a synthetic log is therefore an assumption.

use wire::Seed;
use wire::seed::Random;

/// Share of responses without a body.
const NOT_MODIFIED: f64 = 0.26;
/// Median size of the others, in bytes.
const MEDIAN: f64 = 3_450.0;
/// Standard deviation of the logarithm of their size.
const DEVIATION: f64 = 1.8;
/// Maximum size, in bytes.
const MAX_SIZE: f64 = 1e9;

/// Generator of responses.
pub struct ResponseGenerator {
    random: Random,
    /// Second number of a pair: normal numbers are generated in pairs.
    second: Option<f64>,
}

impl ResponseGenerator {
    /// Creates a generator.
    pub fn new(seed: Seed) -> Self {
        Self { random: seed.stream("answers", 0), second: None }
    }

    /// Samples status and size of the next response.
    pub fn sample(&mut self) -> (u16, u64) {
        if self.random.unit() < NOT_MODIFIED {
            return (304, 0);
        }
        let size = (MEDIAN.ln() + DEVIATION * self.normal()).exp().clamp(1.0, MAX_SIZE);
        // Within the range of the clamp.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let size = size as u64;
        (200, size)
    }

    /// Samples the standard normal distribution (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        if let Some(second) = self.second.take() {
            return second;
        }
        let radius = (-2.0 * (1.0 - self.random.unit()).ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.random.unit()).sin_cos();
        self.second = Some(radius * sine);
        radius * cosine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paper_responses_have_the_paper_s_median_and_mean() {
        let mut responses = ResponseGenerator::new(Seed::default());
        let sampled: Vec<(u16, u64)> = (0..400_000).map(|_| responses.sample()).collect();
        let mut sizes: Vec<u64> =
            sampled.iter().filter(|(status, _)| *status == 200).map(|(_, size)| *size).collect();
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2] as f64;
        assert!((median / MEDIAN - 1.0).abs() < 0.03, "{median}");
        let mean = sizes.iter().sum::<u64>() as f64 / sampled.len() as f64;
        assert!((11_500.0..14_500.0).contains(&mean), "{mean}");
        let not_modified = 1.0 - sizes.len() as f64 / sampled.len() as f64;
        assert!((not_modified - NOT_MODIFIED).abs() < 0.01, "{not_modified}");
    }
}
