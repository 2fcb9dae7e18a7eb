//! Rate of a path's slowest link, as the time it needs per byte, estimated from the spacing of acknowledgements.
//!
//! Near the receiver, data itself arrives at that pace. Elsewhere only acknowledgements of data that was in flight
//! together count: their spacing is that of the slowest link, while between two flights it is the sender's. Samples are
//! stored as a histogram of quarter octaves, so that a few outliers do not matter, such as a pause or compressed
//! acknowledgements.

use wire::{Duration, Time};

/// An estimate of the rate of a path's slowest link.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    count: u16,
    /// The usual bucket, and that of the link alone. Recomputed only occasionally: with thousands of connections the
    /// samples are in no CPU cache.
    usual: Option<u8>,
    link: Option<u8>,
    /// The last acknowledgement: its time, and the position sent by then.
    before: Option<(Time, u64)>,
    /// Histogram of samples by the time per byte, in sixteenths of a nanosecond, by [`bucket`].
    samples: Option<Box<[u16; BUCKETS]>>,
}

/// Buckets up to a millisecond per byte.
const BUCKETS: usize = 100;
/// Number of samples after which the usual pace is recomputed.
const OFTEN: u16 = 16;
/// Minimum number of samples for an estimate.
const ENOUGH: u16 = 3;

impl Pace {
    /// Handles an acknowledgement of `bytes` more, up to `to`, when everything below `sent` was sent. A delayed one is
    /// no evidence about the path.
    pub fn acknowledged(&mut self, at: Time, bytes: u64, to: u64, sent: u64, is_delayed: bool) {
        if let Some((before, sent_then)) = self.before
            && to <= sent_then
            && !is_delayed
        {
            self.took(at.since(before), bytes);
        }
        self.before = Some((at, sent));
    }

    /// Records that `bytes` took `time`.
    pub fn took(&mut self, time: Duration, bytes: u64) {
        let needed = time.as_nanos().saturating_mul(16) / bytes.max(1);
        let samples = self.samples.get_or_insert_with(|| Box::new([0; BUCKETS]));
        if let Some(samples) = samples.get_mut(bucket(needed)) {
            *samples += 1;
            self.count += 1;
            if self.count == u16::MAX {
                self.halve();
            }
            if self.count <= OFTEN || self.count.is_multiple_of(OFTEN) {
                // Buckets of the first third and of the first eighth of the samples, fastest first. Most segments of a
                // sender clocked by a small window are spaced by the sender; only occasionally two leave together:
                // hence an eighth for the link.
                (self.usual, self.link) = (self.bucket_of(3), self.bucket_of(8));
            }
        }
    }

    /// Halves all counts, so that old samples weigh less and counters never overflow.
    fn halve(&mut self) {
        let samples = self.samples.iter_mut().flat_map(|samples| samples.iter_mut());
        self.count = samples.map(|samples| std::mem::replace(samples, *samples / 2) / 2).sum();
    }

    /// Returns the time `bytes` need at the usual pace, rounded up to the next power of two; zero with too few samples.
    pub fn needed(&self, bytes: u64) -> Duration {
        let nanos_16 = self.usual.map_or(0, |bucket| 2_u64 << (bucket / 4));
        Duration::from_nanos(bytes.saturating_mul(nanos_16) / 16)
    }

    /// Returns the time `bytes` need at the pace of the link, to a tenth; `None` with too few samples.
    pub fn of_link(&self, bytes: u64) -> Option<Duration> {
        let bucket = u64::from(self.link?);
        let (octave, quarter) = (bucket / 4, bucket % 4);
        // The middle of the bucket, in eighths of its octave.
        let nanos_128 = (9 + 2 * quarter) << octave;
        Some(Duration::from_nanos(bytes.saturating_mul(nanos_128) / 128))
    }

    /// Returns the bucket of the sample at 1/`part` of all, fastest first.
    fn bucket_of(&self, part: u16) -> Option<u8> {
        let mut below = 0;
        let is_enough = self.count >= ENOUGH;
        let bucket_index =
            self.samples.iter().take_while(|_| is_enough).flat_map(|samples| samples.iter()).position(
                |samples| {
                    below += samples;
                    below > (self.count - 1) / part
                },
            )?;
        u8::try_from(bucket_index).ok()
    }
}

/// Returns the bucket of a value: four for each power of two.
fn bucket(value: u64) -> usize {
    let octave = value.max(1).ilog2();
    let quarter = if octave >= 2 { value >> (octave - 2) } else { value << (2 - octave) } & 3;
    (octave * 4) as usize + quarter as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_acknowledgements_of_one_flight() {
        let mut pace = Pace::default();
        let mut now = Time::ZERO;
        let mut to = 0;
        for _ in 0..4 {
            // A pause of 90 ms, then a flight of 10 segments acknowledged 1 ms apart.
            now += Duration::from_millis(90);
            let sent = to + 10_000;
            for _ in 0..10 {
                now += Duration::from_millis(1);
                to += 1_000;
                pace.acknowledged(now, 1_000, to, sent, false);
            }
        }
        let usual = pace.of_link(1_000).unwrap();
        assert!((Duration::from_micros(900)..=Duration::from_micros(1_100)).contains(&usual), "{usual}");
        let needed = pace.needed(1_000);
        assert!((Duration::from_millis(1)..=Duration::from_millis(2)).contains(&needed), "{needed}");
    }

    #[test]
    fn few_samples_give_no_estimate() {
        let mut pace = Pace::default();
        (1..4).for_each(|n| pace.acknowledged(Time::from_nanos(n * 1_000), 1, n, 100, false));
        assert_eq!(pace.needed(1_000_000), Duration::ZERO);
    }
}
