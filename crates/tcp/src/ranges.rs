//! Sets of byte numbers as ranges: data received beyond a gap, data SACKed by the peer.

use std::collections::BTreeMap;

/// Ordered ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    by_start: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds `start..end` and returns the range that it became part of.
    pub(super) fn insert(&mut self, mut start: u64, mut end: u64) -> (u64, u64) {
        // Every range that begins no later than the end of this one, and ends no earlier than its beginning.
        while let Some((&before, &to)) = self.by_start.range(..=end).next_back()
            && to >= start
        {
            self.by_start.remove(&before);
            (start, end) = (start.min(before), end.max(to));
        }
        self.by_start.insert(start, end);
        (start, end)
    }

    /// Removes everything below `number`.
    pub(super) fn remove_below(&mut self, number: u64) {
        while let Some((&start, &end)) = self.by_start.first_key_value()
            && start < number
        {
            self.by_start.remove(&start);
            if end > number {
                self.by_start.insert(number, end);
            }
        }
    }

    /// Returns the range that contains `number`.
    pub(super) fn containing(&self, number: u64) -> Option<(u64, u64)> {
        let (&start, &end) = self.by_start.range(..=number).next_back()?;
        (number < end).then_some((start, end))
    }

    /// Whether it is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.insert(10, 20), (10, 20));
        assert_eq!(ranges.insert(30, 40), (30, 40));
        assert_eq!(ranges.insert(20, 30), (10, 40));
        assert_eq!(ranges.insert(0, 5), (0, 5));
        assert_eq!(ranges.containing(39), Some((10, 40)));
        assert_eq!(ranges.containing(40), None);
        ranges.remove_below(15);
        assert_eq!(ranges.containing(15), Some((15, 40)));
        ranges.remove_below(40);
        assert!(ranges.is_empty());
    }
}
