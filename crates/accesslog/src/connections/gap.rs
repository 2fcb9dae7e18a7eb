//! A gap's place among the time-outs: how many of them are shorter than it.
//!
//! Looked up, not searched: the place is needed for every request, limit and threshold.

use wire::Duration;

/// The time-outs, ready for looking up.
#[derive(Clone, Debug)]
pub struct Gaps {
    timeouts_ms: Vec<u64>,
    /// For each stretch of 2^`shift` ms, the place of its first gap.
    first: Vec<u8>,
    shift: u32,
}

/// Stretches that the longest time-out is cut into, at most: up to 65 s, each is a millisecond, and the table has the
/// answer. Logs that count in seconds touch a thousandth of it.
const STRETCHES: u64 = 65_536;

impl Gaps {
    /// For time-outs in order, of which there are at most 200.
    pub fn new(timeouts: &[Duration]) -> Self {
        let timeouts_ms: Vec<u64> = timeouts.iter().map(|timeout| timeout.as_nanos() / 1_000_000).collect();
        let longest = timeouts_ms.last().copied().unwrap_or(0);
        let shift = (0..64).find(|shift| longest >> shift < STRETCHES).unwrap_or(63);
        let mut place = 0;
        let first = (0..=(longest >> shift) + 1)
            .map(|stretch| {
                while timeouts_ms.get(place).is_some_and(|timeout| *timeout < stretch << shift) {
                    place += 1;
                }
                u8::try_from(place).expect("at most 200 time-outs")
            })
            .collect();
        Self { timeouts_ms, first, shift }
    }

    /// How many time-outs are shorter than a gap: a connection that was left alone for so long is closed under these.
    #[inline]
    pub fn place(&self, gap_ms: u64) -> u8 {
        // The last entry is for all that is longer than the longest.
        let last = self.first.len() - 1;
        let stretch = usize::try_from(gap_ms >> self.shift).unwrap_or(usize::MAX);
        let mut place = self.first[stretch.min(last)];
        // A stretch of a millisecond needs no looking further.
        while self.shift > 0
            && self.timeouts_ms.get(usize::from(place)).is_some_and(|timeout| *timeout < gap_ms)
        {
            place += 1;
        }
        place
    }

    /// In milliseconds, from the shortest.
    #[inline]
    pub fn timeouts_ms(&self) -> &[u64] {
        &self.timeouts_ms
    }

    /// The longest, in milliseconds.
    #[inline]
    pub fn longest_ms(&self) -> u64 {
        self.timeouts_ms.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_how_many_time_outs_are_shorter() {
        for timeouts_ms in [&[0, 1, 5, 1_000, 1_001, 60_000][..], &[7], &[0], &[604_800_000]] {
            let timeouts: Vec<Duration> = timeouts_ms.iter().copied().map(Duration::from_millis).collect();
            let gaps = Gaps::new(&timeouts);
            for near in timeouts_ms.iter().chain(&[70_000, 10_000_000_000, u64::MAX - 9]) {
                for gap in near.saturating_sub(3)..near + 3 {
                    let shorter = timeouts_ms.iter().filter(|timeout| **timeout < gap).count();
                    assert_eq!(usize::from(gaps.place(gap)), shorter, "{gap} ms among {timeouts_ms:?}");
                }
            }
        }
    }
}
