//! Counts of segments in flight, kept as they are sent and arrive.

/// Number of segments in flight, and of the short ones among them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// The MSS by which they were counted.
    pub(crate) mss: u64,
    pub(crate) segments: u64,
    pub(crate) shorts: u64,
    pub(crate) last_short_end: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        let (segments, is_short) = self.cut(end - start);
        self.segments += segments;
        self.shorts += u64::from(is_short);
        if is_short {
            self.last_short_end = self.last_short_end.max(end);
        }
    }

    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        let (segments, is_short) = self.cut(end - start);
        self.segments = self.segments.saturating_sub(segments);
        self.shorts = self.shorts.saturating_sub(u64::from(is_short));
        if self.shorts == 0 {
            self.last_short_end = 0;
        }
    }

    /// Number of segments into which a network card splits `length` bytes, and whether the last is shorter.
    const fn cut(&self, length: u64) -> (u64, bool) {
        if length <= self.mss {
            ((length > 0) as u64, length != self.mss && length > 0)
        } else {
            (length.div_ceil(self.mss), !length.is_multiple_of(self.mss))
        }
    }
}
