//! Multipath TCP (RFC 8684): whether a connection is one of several subflows that share one conversation. What the other
//! subflows carry does not show in it.

use crate::{Both, Side};

/// A Multipath TCP option, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultipathOption {
    /// `MP_JOIN`: the SYN adds a subflow to an established connection (RFC 8684, section 3.2).
    Join,
    /// A mapping of this subflow's bytes to the connection's data (RFC 8684, section 3.3.1).
    Mapping {
        /// Data sequence number less subflow sequence number, modulo 2^32: constant while one subflow carries all data.
        offset: u32,
    },
}

impl MultipathOption {
    /// The option's kind (IANA, TCP option kinds).
    pub const KIND: u8 = 30;

    /// Parses the data of an option of [`Self::KIND`]. `None` for other subtypes, and for options without a mapping.
    pub fn read(data: &[u8]) -> Option<Self> {
        const JOIN: u8 = 1;
        const SEQUENCE_SIGNAL: u8 = 2;
        const HAS_ACK: u8 = 1;
        const HAS_LONG_ACK: u8 = 2;
        const HAS_MAPPING: u8 = 4;
        const HAS_LONG_NUMBER: u8 = 8;
        let [first, flags, rest @ ..] = data else { return None };
        match first >> 4 {
            JOIN => return Some(Self::Join),
            SEQUENCE_SIGNAL if flags & HAS_MAPPING != 0 => {}
            _ => return None,
        }
        let ack = match (flags & HAS_ACK != 0, flags & HAS_LONG_ACK != 0) {
            (false, _) => 0,
            (true, false) => 4,
            (true, true) => 8,
        };
        // The upper half of a long number does not matter.
        let upper = if flags & HAS_LONG_NUMBER != 0 { 4 } else { 0 };
        let (number, rest) = rest.get(ack + upper..)?.split_first_chunk::<4>()?;
        let subflow = u32::from_be_bytes(*rest.first_chunk()?);
        // Zero maps the end of the data (DATA_FIN), not bytes.
        (subflow != 0).then(|| Self::Mapping { offset: u32::from_be_bytes(*number).wrapping_sub(subflow) })
    }
}

/// The Multipath TCP of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Multipath {
    /// Whether its SYN joins an established connection.
    pub is_joining: bool,
    /// Whether other subflows carry data of the same connection.
    pub is_split: bool,
    offsets: Both<Option<u32>>,
}

impl Multipath {
    /// Handles an option that `from` sent.
    pub fn observe(&mut self, from: Side, option: MultipathOption) {
        match option {
            MultipathOption::Join => {
                self.is_joining = true;
                self.is_split |= from == Side::Server;
            }
            MultipathOption::Mapping { offset } => {
                let before = self.offsets.of_mut(from).replace(offset);
                self.is_split |= before.is_some_and(|before| before != offset);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a DSS option with a mapping of `number` to `subflow`, with numbers and acknowledgements of 8 bytes or 4.
    fn mapping(number: u32, subflow: u32, is_long: bool) -> Vec<u8> {
        let upper: &[u8] = if is_long { &[9; 4] } else { &[] };
        let flags = if is_long { 0b1111 } else { 0b0101 };
        let length = [0, 100];
        [&[0x20, flags], upper, &[7; 4], upper, &number.to_be_bytes(), &subflow.to_be_bytes(), &length]
            .concat()
    }

    #[test]
    fn mapping_of_any_length_is_read() {
        for is_long in [false, true] {
            let read = MultipathOption::read(&mapping(1_000, 1, is_long));
            assert_eq!(read, Some(MultipathOption::Mapping { offset: 999 }));
        }
        assert_eq!(MultipathOption::read(&mapping(1_000, 0, true)), None);
        assert_eq!(MultipathOption::read(&[0x10, 0, 1, 2, 3, 4]), Some(MultipathOption::Join));
        // MP_CAPABLE; an acknowledgement alone; each option truncated.
        assert_eq!(MultipathOption::read(&[0x00, 0x81]), None);
        assert_eq!(MultipathOption::read(&[0x20, 1, 7, 7, 7, 7]), None);
        let whole = mapping(1_000, 1, true);
        assert!((0..18).all(|length| MultipathOption::read(&whole[..length]).is_none()));
    }

    #[test]
    fn data_numbers_that_skip_show_other_subflows() {
        let is_split = |numbers: [u32; 3]| {
            let mut multipath = Multipath::default();
            for (subflow, number) in (1..).step_by(100).zip(numbers) {
                let option = MultipathOption::read(&mapping(number, subflow, true)).unwrap();
                multipath.observe(Side::Client, option);
                multipath.observe(Side::Server, MultipathOption::Mapping { offset: 5 });
            }
            multipath.is_split
        };
        assert!(!is_split([1_000, 1_100, 1_200]));
        assert!(is_split([1_000, 1_100, 4_200]));
    }

    #[test]
    fn join_that_is_accepted_shares_a_connection() {
        let mut multipath = Multipath::default();
        multipath.observe(Side::Client, MultipathOption::Join);
        assert!(multipath.is_joining && !multipath.is_split);
        multipath.observe(Side::Server, MultipathOption::Join);
        assert!(multipath.is_split);
    }
}
