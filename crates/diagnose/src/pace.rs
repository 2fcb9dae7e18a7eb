//! How fast a path takes data, by the spacing of acknowledgements: what the slowest link needs for a byte.
//!
//! Only acknowledgements of data that was on its way together count: their spacing is that of the slowest link, while
//! between two flights it is the sender's. Kept as a histogram of powers of two, so that a few odd ones (a pause, two
//! acknowledgements that a queue pushed together) do not matter.

use wire::{Duration, Time};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// How many samples needed less than 2^n / 16 nanoseconds for a byte.
    samples: [u16; BUCKETS],
    count: u16,
    /// The last acknowledgement: when, and what had been sent by then.
    before: Option<(Time, u64)>,
}

const BUCKETS: usize = 40;
/// With fewer, nothing is known.
const ENOUGH: u16 = 3;

impl Default for Pace {
    fn default() -> Self {
        Self { samples: [0; BUCKETS], count: 0, before: None }
    }
}

impl Pace {
    /// An acknowledgement of `bytes` more, up to `to`, when everything below `sent` was sent. One that was delayed
    /// says nothing of the path.
    pub(crate) fn acknowledged(&mut self, at: Time, bytes: u64, to: u64, sent: u64, is_delayed: bool) {
        if let Some((before, sent_then)) = self.before
            && to <= sent_then
            && !is_delayed
        {
            let needed = at.since(before).as_nanos().saturating_mul(16) / bytes.max(1);
            let bucket = (u64::BITS - needed.leading_zeros()) as usize;
            if let Some(samples) = self.samples.get_mut(bucket) {
                *samples += 1;
                self.count += 1;
                if self.count == u16::MAX {
                    self.halve();
                }
            }
        }
        self.before = Some((at, sent));
    }

    /// Lets the old count for less, so that there is always room for more.
    fn halve(&mut self) {
        self.samples.iter_mut().for_each(|samples| *samples /= 2);
        self.count = self.samples.iter().sum();
    }

    /// How much is known.
    pub(crate) fn known(&self) -> u64 {
        let [first, .., last] = self.samples;
        u64::from(self.count ^ first ^ last)
    }

    /// What `bytes` need at the usual pace (that of the first third of the samples, fastest first), rounded up to
    /// the next power of two; nothing as long as little is known.
    pub(crate) fn needed(&self, bytes: u64) -> Duration {
        if self.count < ENOUGH {
            return Duration::ZERO;
        }
        let mut below = 0;
        let bucket = self.samples.iter().position(|samples| {
            below += samples;
            below > self.count / 3
        });
        let nanos_16 = bucket.map_or(0, |bucket| 1_u64 << bucket);
        Duration::from_nanos(bytes.saturating_mul(nanos_16) / 16)
    }
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
        let needed = pace.needed(1_000);
        assert!((Duration::from_millis(1)..=Duration::from_millis(2)).contains(&needed), "{needed}");
    }

    #[test]
    fn little_is_nothing() {
        let mut pace = Pace::default();
        (1..4).for_each(|n| pace.acknowledged(Time::from_nanos(n * 1_000), 1, n, 100, false));
        assert_eq!(pace.needed(1_000_000), Duration::ZERO);
    }
}
