//! What the numbers of packets in IP tell: how many of a side's packets never came to the place of the capture.
//!
//! Linux counts the packets of each connection, and the cards that cut large ones up count on. Others count all that they
//! send to anybody, use random numbers or none: those are told by numbers that do not follow one another. IPv6 has none.

/// The numbers of one side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// The number that the next packet should have.
    next: Option<u16>,
    /// How many followed one another, and how many did not though no data was missing.
    in_order: u16,
    otherwise: u16,
    /// How many are missing since the last event.
    missing: u16,
    /// Whether its packets begin with more hops than Linux gives them.
    is_other: bool,
}

impl Numbers {
    /// A packet passed that will be, or was, cut into `segments`.
    pub(super) fn passed(&mut self, identification: u16, hops_left: u8, segments: u64) {
        self.is_other |= hops_left > LINUX_HOPS;
        let segments = u16::try_from(segments.max(1)).unwrap_or(u16::MAX);
        let before = self.next.replace(identification.wrapping_add(segments));
        // What has no number has always the same.
        let Some(expected) = before.filter(|_| identification != 0) else { return };
        match identification.wrapping_sub(expected) {
            0 => self.in_order = self.in_order.saturating_add(1),
            missing => self.missing = self.missing.saturating_add(missing),
        }
    }

    /// Something happened: what is missing from now on is counted.
    pub(super) fn moves_on(&mut self) {
        self.otherwise = self.otherwise.saturating_add(u16::from(self.missing > 0));
        self.missing = 0;
    }

    /// Data of so many `segments` was passed over: they are known to be missing.
    pub(super) fn passed_over(&mut self, segments: u64) {
        self.missing = self.missing.saturating_sub(u16::try_from(segments).unwrap_or(u16::MAX));
    }

    /// What happened was a repair of something else: these are still `missing`.
    pub(super) fn still(&mut self, missing: Option<u16>) {
        self.missing = missing.unwrap_or_default();
    }

    /// How many packets are missing since then; `None` if this side's numbers do not tell.
    pub(super) fn missing(&self) -> Option<u16> {
        const ENOUGH: u16 = 4;
        /// As large a loss leaves no connection usable.
        const MOST: u16 = 64;
        let follows = self.in_order >= ENOUGH && self.in_order / 8 >= self.otherwise;
        (follows && !self.is_other && self.missing < MOST).then_some(self.missing)
    }
}

/// What Linux gives its packets.
const LINUX_HOPS: u8 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(numbers: &[u16]) -> Numbers {
        let mut all = Numbers::default();
        for number in numbers {
            all.moves_on();
            all.passed(*number, 60, 1);
        }
        all
    }

    #[test]
    fn a_number_that_is_left_out_is_a_packet_that_did_not_come() {
        assert_eq!(passed(&[65_534, 65_535, 0, 1, 2, 3, 4]).missing(), Some(0));
        assert_eq!(passed(&[10, 11, 12, 13, 14, 16]).missing(), Some(1));
    }

    #[test]
    fn a_packet_that_is_cut_up_takes_a_number_for_each_piece() {
        let mut numbers = passed(&[10, 11, 12, 13, 14]);
        numbers.passed(15, 60, 12);
        numbers.passed(27, 60, 1);
        assert_eq!(numbers.missing(), Some(0));
    }

    #[test]
    fn random_numbers_and_none_tell_nothing() {
        assert_eq!(passed(&[10, 4_711, 17, 9, 2_026, 1, 5, 6]).missing(), None);
        assert_eq!(passed(&[0; 9]).missing(), None);
    }

    #[test]
    fn numbers_of_many_connections_tell_nothing_nor_do_those_of_other_systems() {
        let mut other = passed(&[10, 11, 12, 13, 14]);
        other.passed(16, 120, 1);
        assert_eq!(other.missing(), None);
        assert_eq!(passed(&[10, 13, 15, 18, 19, 25, 28, 31, 32]).missing(), None);
    }
}
