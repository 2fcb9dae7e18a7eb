//! Histogram over connections: the number of connections that carry a given amount.
//!
//! Whole numbers in buckets: exact below 64, then 32 per doubling. Quantiles are off by at most 1.6%; the
//! maximum is exact. Means come from sums, which are stored elsewhere, exactly.

/// Histogram of an amount per connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AmountHistogram {
    /// By bucket, up to the highest one used.
    buckets: Vec<u64>,
    max: u64,
}

/// Requests and bytes per connection, under one threshold, limit and timeout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests served over it.
    pub requests: AmountHistogram,
    /// Bytes sent over it.
    pub bytes: AmountHistogram,
}

/// Values below this have a bucket each.
const EXACT: u64 = 64;
/// Buckets per doubling, from there on.
const FINE: usize = 32;

impl AmountHistogram {
    /// Counts one connection.
    pub fn add(&mut self, value: u64) {
        self.add_many(bucket(value), 1);
        self.max = self.max.max(value);
    }

    /// Counts connections of a bucket.
    pub(super) fn add_many(&mut self, bucket: usize, connections: u64) {
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += connections;
    }

    /// Raises the maximum to that of one of the connections counted.
    pub(super) fn raise(&mut self, max: u64) {
        self.max = self.max.max(max);
    }

    /// Number of connections counted.
    pub fn connections(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Exact maximum that any of them carries; 0 without connections.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Maximum carried by `per_mille` in a thousand of them; `None` without connections. 500 is the median.
    pub fn quantile(&self, per_mille: u64) -> Option<u64> {
        let wanted = (self.connections() * per_mille).div_ceil(1_000).max(1);
        self.up_to().find(|(_, below)| *below >= wanted).map(|(value, _)| value)
    }

    /// Cumulative distribution: values, ascending, and the number of connections that carry at most that.
    pub fn up_to(&self) -> impl Iterator<Item = (u64, u64)> {
        let used = self.buckets.iter().enumerate().filter(|(_, connections)| **connections > 0);
        used.scan(0, |sum, (bucket, connections)| {
            *sum += connections;
            Some((middle(bucket).min(self.max), *sum))
        })
    }
}

impl Load {
    /// Counts one connection.
    pub fn add(&mut self, requests: u64, bytes: u64) {
        self.requests.add(requests);
        self.bytes.add(bytes);
    }
}

/// Bucket of a value.
#[inline]
pub(super) fn bucket(value: u64) -> usize {
    // Below the number of buckets, which is small.
    #[expect(clippy::cast_possible_truncation)]
    if value < EXACT {
        value as usize
    } else {
        let doublings = value.ilog2() - EXACT.ilog2();
        let index = value >> (doublings + EXACT.ilog2() - FINE.ilog2());
        EXACT as usize + doublings as usize * FINE + (index as usize - FINE)
    }
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let exact = usize::try_from(EXACT).unwrap_or(usize::MAX);
    let Some(above) = bucket.checked_sub(exact) else { return bucket as u64 };
    let width = 1_u64 << (above / FINE + 1);
    let from = (FINE + above % FINE) as u64 * width;
    from + (width - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_s_middle_is_near_every_value_in_it() {
        let is_near =
            (0..64).flat_map(|bits: u32| (0..200_u64).map(move |step| (1 << bits) + (step << bits) / 200));
        for value in (0..5_000).chain(is_near).chain([u64::MAX]) {
            let middle = middle(bucket(value));
            let off = middle.abs_diff(value) as f64;
            assert!(
                if value < EXACT { off == 0.0 } else { off / value as f64 <= 1.0 / 63.0 },
                "{value} {middle}"
            );
        }
        assert!((1..100_000).all(|value| bucket(value) - bucket(value - 1) <= 1));
    }

    #[test]
    fn quantiles_are_upper_bounds() {
        let mut spread = AmountHistogram::default();
        assert_eq!((spread.quantile(500), spread.max()), (None, 0));
        (1..=10).for_each(|value| spread.add(value));
        assert_eq!([1, 500, 501, 900, 1_000].map(|part| spread.quantile(part)), [1, 5, 6, 9, 10].map(Some));
        spread.add(1_000_000);
        assert_eq!((spread.quantile(1_000), spread.max()), (Some(1_000_000), 1_000_000));
    }
}
