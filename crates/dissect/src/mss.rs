//! The largest segment that a sender may send, as far as a capture shows it.

/// The MSS of one direction: as negotiated, or else as observed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mss {
    /// The MSS option of the peer.
    pub offered: Option<u16>,
    /// The MSS option of this end.
    pub accepted: Option<u16>,
    /// Whether segments carry timestamps (RFC 7323), which take part of the MSS.
    pub has_timestamps: bool,
    largest: u32,
    largest_twice: u32,
}

impl Mss {
    /// Records a segment of `length` payload bytes.
    pub fn observe(&mut self, length: u64) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        if length >= self.largest {
            if length == self.largest {
                self.largest_twice = length;
            }
            self.largest = length;
        }
    }

    /// Returns the length of the largest segment so far.
    pub const fn largest(&self) -> u32 {
        self.largest
    }

    /// Returns whether an option of a SYN shows the MSS: the largest segment so far may have been short.
    pub const fn is_agreed(&self) -> bool {
        self.offered.is_some() || self.accepted.is_some()
    }

    /// Returns the MSS in payload bytes; at least 1.
    pub fn get(&self) -> u64 {
        const TIMESTAMPS: u64 = 12;
        /// The MSS on Ethernet (RFC 9293's default is `MIN_MSS`).
        const USUAL: u64 = 1_460;
        const MIN_MSS: u64 = 536;
        let options = if self.has_timestamps { TIMESTAMPS } else { 0 };
        let agreed = match (self.offered, self.accepted) {
            (Some(offered), Some(accepted)) => Some(offered.min(accepted)),
            (one, other) => one.or(other),
        };
        let full = match agreed {
            Some(agreed) => u64::from(agreed).saturating_sub(options),
            // A segment larger than Ethernet carries was merged by a network card.
            None if u64::from(self.largest) > USUAL => USUAL - options,
            None => u64::from(self.largest_twice).max(MIN_MSS),
        };
        full.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_segment_is_the_agreed_or_the_largest_seen() {
        let agreed =
            Mss { offered: Some(1_460), accepted: Some(1_380), has_timestamps: true, ..Mss::default() };
        assert_eq!(agreed.get(), 1_368);
        let mut seen = Mss::default();
        [100, 1_024, 1_024, 200].into_iter().for_each(|length| seen.observe(length));
        assert_eq!(seen.get(), 1_024);
        seen.observe(7_000);
        assert_eq!(seen.get(), 1_460);
    }
}
