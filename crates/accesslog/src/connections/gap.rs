//! Index of a gap among the timeouts: the number of timeouts shorter than it.
//!
//! By table, not by search: the index is needed for every request, limit and threshold.

use wire::Duration;

/// Table of the timeouts.
#[derive(Clone, Debug)]
pub struct Gaps {
    timeouts_ms: Vec<u64>,
    /// Index of the first gap of each interval of 2^`shift` ms.
    first: Vec<u8>,
    shift: u32,
}

/// Maximum number of intervals that the longest timeout is cut into. Up to 65 s, each is a millisecond, and
/// no search follows. Logs with timestamps in seconds touch a thousandth of it.
const STRETCHES: u64 = 65_536;

impl Gaps {
    /// Table for ascending timeouts, at most 200.
    pub fn new(timeouts: &[Duration]) -> Self {
        let timeouts_ms: Vec<u64> = timeouts.iter().map(|timeout| timeout.as_nanos() / 1_000_000).collect();
        let longest = timeouts_ms.last().copied().unwrap_or(0);
        let shift = (0..64).find(|shift| longest >> shift < STRETCHES).unwrap_or(63);
        let mut index = 0;
        let first = (0..=(longest >> shift) + 1)
            .map(|stretch| {
                while timeouts_ms.get(index).is_some_and(|timeout| *timeout < stretch << shift) {
                    index += 1;
                }
                u8::try_from(index).expect("at most 200 timeouts")
            })
            .collect();
        Self { timeouts_ms, first, shift }
    }

    /// Number of timeouts shorter than a gap: a connection idle for that time is closed under these.
    #[inline]
    pub fn shorter_timeouts(&self, gap_ms: u64) -> u8 {
        // The last entry is for all gaps longer than the longest timeout.
        let last = self.first.len() - 1;
        let stretch = usize::try_from(gap_ms >> self.shift).unwrap_or(usize::MAX);
        let mut index = self.first[stretch.min(last)];
        // In an interval of a millisecond no search is needed.
        while self.shift > 0
            && self.timeouts_ms.get(usize::from(index)).is_some_and(|timeout| *timeout < gap_ms)
        {
            index += 1;
        }
        index
    }

    /// Timeouts in milliseconds, ascending.
    #[inline]
    pub fn timeouts_ms(&self) -> &[u64] {
        &self.timeouts_ms
    }

    /// Longest timeout, in milliseconds.
    #[inline]
    pub fn longest_ms(&self) -> u64 {
        self.timeouts_ms.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_is_the_number_of_shorter_timeouts() {
        for timeouts_ms in [&[0, 1, 5, 1_000, 1_001, 60_000][..], &[7], &[0], &[604_800_000]] {
            let timeouts: Vec<Duration> = timeouts_ms.iter().copied().map(Duration::from_millis).collect();
            let gaps = Gaps::new(&timeouts);
            for near in timeouts_ms.iter().chain(&[70_000, 10_000_000_000, u64::MAX - 9]) {
                for gap in near.saturating_sub(3)..near + 3 {
                    let shorter = timeouts_ms.iter().filter(|timeout| **timeout < gap).count();
                    assert_eq!(
                        usize::from(gaps.shorter_timeouts(gap)),
                        shorter,
                        "{gap} ms among {timeouts_ms:?}"
                    );
                }
            }
        }
    }
}
