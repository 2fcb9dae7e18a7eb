//! Histogram of durations in fixed memory, from nanoseconds to hours.
//!
//! Log-linear: every power of two is divided into 64 equal steps. A quantile is accurate to 1.6%; recording a
//! duration is a shift and an increment. It stores neither order nor times.

use std::fmt;

use wire::Duration;

/// Durations counted by size.
#[derive(Clone, PartialEq, Eq)]
pub struct Lateness {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    max: Duration,
}

const STEP_BITS: u32 = 6;
const STEPS: usize = 1 << STEP_BITS;
/// Durations below 64 ns have a bucket each; each of the 58 powers of two above has 64.
const BUCKETS: usize = STEPS * (1 + (u64::BITS - STEP_BITS) as usize);

impl Lateness {
    /// An empty histogram; 30 KiB.
    pub fn new() -> Self {
        Self { counts: Box::new([0; BUCKETS]), count: 0, max: Duration::ZERO }
    }

    /// Counts one duration.
    pub fn record(&mut self, span: Duration) {
        self.counts[bucket(span.as_nanos())] += 1;
        self.count += 1;
        self.max = self.max.max(span);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (own, added) in self.counts.iter_mut().zip(other.counts.iter()) {
            *own += added;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// Number of durations recorded.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Exact maximum; zero if there is none.
    pub const fn max(&self) -> Duration {
        self.max
    }

    /// The duration that `per_mille` thousandths of all do not exceed (500 is the median, 999 the p99.9). It is
    /// rounded up by at most 1.6% and never above the maximum; zero if there is none. Above 1000 it is the
    /// maximum.
    pub fn per_mille(&self, per_mille: u16) -> Duration {
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1_000).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank {
                return Duration::from_nanos(bucket_end(index)).min(self.max);
            }
        }
        self.max
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Lateness {
    /// `p50 0.6 us, p99 7.4 us, p99.9 12.1 us, max 15.0 us of 1000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |span: Duration| span.as_nanos() as f64 / 1e3;
        let [p50, p99, p999] = [500, 990, 999].map(|per_mille| micros(self.per_mille(per_mille)));
        let max = micros(self.max);
        write!(f, "p50 {p50:.1} us, p99 {p99:.1} us, p99.9 {p999:.1} us, max {max:.1} us of {}", self.count)
    }
}

impl fmt::Debug for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lateness({self})")
    }
}

/// Bucket of durations of this many nanoseconds.
fn bucket(nanos: u64) -> usize {
    let octave = (u64::BITS - nanos.leading_zeros()).saturating_sub(STEP_BITS + 1);
    #[expect(clippy::cast_possible_truncation, reason = "the value after the shift is below two times 64")]
    let step = (nanos >> octave) as usize;
    octave as usize * STEPS + step
}

/// Longest duration of this bucket, in nanoseconds.
fn bucket_end(bucket: usize) -> u64 {
    let octave = (bucket / STEPS).saturating_sub(1);
    let step = (bucket - octave * STEPS) as u64;
    (step << octave) | ((1 << octave) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram_of(spans: impl IntoIterator<Item = u64>) -> Lateness {
        let mut lateness = Lateness::new();
        spans.into_iter().for_each(|nanos| lateness.record(Duration::from_nanos(nanos)));
        lateness
    }

    #[test]
    fn every_span_has_a_bucket_whose_end_is_within_one_part_in_64() {
        let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]).chain([u64::MAX]);
        for nanos in edges.chain((0..1_000).map(|n| n * 7_919)) {
            let end = bucket_end(bucket(nanos));
            assert!(
                bucket(nanos) < BUCKETS && end >= nanos && end - nanos <= nanos / 64,
                "{nanos} ends at {end}"
            );
        }
    }

    #[test]
    fn quantiles_are_accurate_to_a_64th() {
        let lateness = histogram_of(1..=100_000);
        for (per_mille, exact) in [(500, 50_000_u64), (990, 99_000), (999, 99_900), (1_000, 100_000)] {
            let quantile = lateness.per_mille(per_mille).as_nanos();
            assert!(quantile >= exact && quantile - exact <= exact / 64, "{per_mille}: {quantile}");
        }
        assert_eq!((lateness.count(), lateness.max()), (100_000, Duration::from_nanos(100_000)));
    }

    #[test]
    fn p999_of_a_few_is_the_maximum() {
        assert_eq!(histogram_of([5, 1_000_000]).per_mille(999), Duration::from_nanos(1_000_000));
        assert_eq!(histogram_of([]).per_mille(999), Duration::ZERO);
    }

    #[test]
    fn merging_equals_recording_in_one_histogram() {
        let mut merged = histogram_of([1, 1_000]);
        merged.merge(&histogram_of([50, 2_000_000]));
        assert_eq!(merged, histogram_of([1, 50, 1_000, 2_000_000]));
    }

    #[test]
    fn display_lists_quantiles_and_maximum() {
        assert_eq!(histogram_of([600]).to_string(), "p50 0.6 us, p99 0.6 us, p99.9 0.6 us, max 0.6 us of 1");
    }
}
