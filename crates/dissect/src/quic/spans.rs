//! Ranges of a stream that were sent: which bytes are new, and whether all are there.

use std::collections::BTreeMap;

/// Ranges that neither overlap nor touch, by their beginning.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans(BTreeMap<u64, u64>);

/// Maximum number of ranges; beyond it holes count as filled.
const MAX_SPANS: usize = 256;

impl Spans {
    /// Adds a range; returns the number of its bytes that are new.
    pub(super) fn add(&mut self, from: u64, to: u64) -> u64 {
        let (mut start, mut end, mut known) = (from, to, 0);
        while let Some((before, until)) =
            self.0.range(..=end).next_back().map(|(before, until)| (*before, *until))
            && until >= start
        {
            known += until.min(to).saturating_sub(before.max(from));
            (start, end) = (start.min(before), end.max(until));
            self.0.remove(&before);
        }
        if end > start {
            self.0.insert(start, end);
        }
        if self.0.len() > MAX_SPANS
            && let (Some((first, _)), Some((second, until))) = (self.0.pop_first(), self.0.pop_first())
        {
            self.0.insert(first.min(second), until);
        }
        (to - from).saturating_sub(known)
    }

    /// Returns whether everything up to a position was added.
    pub(super) fn reaches(&self, end: u64) -> bool {
        end == 0 || self.0.first_key_value().is_some_and(|(start, until)| *start == 0 && *until >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_that_were_not_there_are_new() {
        let mut spans = Spans::default();
        assert_eq!([spans.add(10, 20), spans.add(30, 40), spans.add(15, 35)], [10, 10, 10]);
        assert!(!spans.reaches(40));
        assert_eq!([spans.add(0, 10), spans.add(0, 40), spans.add(5, 41)], [10, 0, 1]);
        assert!(spans.reaches(41) && !spans.reaches(42) && Spans::default().reaches(0));
    }

    #[test]
    fn memory_does_not_grow_with_holes() {
        let mut spans = Spans::default();
        (0..10_000).for_each(|index| assert_eq!(spans.add(3 * index, 3 * index + 1), 1));
        assert!(spans.0.len() <= MAX_SPANS);
    }
}
