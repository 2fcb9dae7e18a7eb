//! Transport parameters that decide what frames mean (RFC 9000, section 18).

use wire::varint::take;

/// Parameters of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Its window of the connection.
    pub max_data: u64,
    /// Its windows of bidirectional streams that it opens itself, and that its peer opens.
    pub max_stream_data: [u64; 2],
    /// Its window of unidirectional streams.
    pub max_unidirectional: u64,
    /// Exponent of the unit of its acknowledgements' delays: microseconds, shifted.
    pub ack_delay_exponent: u32,
    /// Maximum delay of its acknowledgements, in milliseconds.
    pub max_ack_delay_ms: u64,
}

impl Default for Parameters {
    /// RFC 9000, section 18.2.
    fn default() -> Self {
        Self {
            max_data: 0,
            max_stream_data: [0; 2],
            max_unidirectional: 0,
            ack_delay_exponent: 3,
            max_ack_delay_ms: 25,
        }
    }
}

/// Maximum exponent, and maximum delay (RFC 9000, section 18.2).
const MAX_EXPONENT: u64 = 20;
const MAX_DELAY_MS: u64 = 1 << 14;

impl Parameters {
    /// Reads parameters; unknown ones are left out.
    pub fn read(extension: &[u8]) -> Self {
        let (mut rest, mut parameters) = (extension, Self::default());
        while !rest.is_empty() && parameters.next(&mut rest).is_some() {}
        parameters
    }

    fn next(&mut self, rest: &mut &[u8]) -> Option<()> {
        let (id, length) = (take(rest)?, usize::try_from(take(rest)?).ok()?);
        let (mut content, after) = rest.split_at_checked(length)?;
        *rest = after;
        let number = take(&mut content);
        let place = match id {
            0x04 => &mut self.max_data,
            0x05 => &mut self.max_stream_data[0],
            0x06 => &mut self.max_stream_data[1],
            0x07 => &mut self.max_unidirectional,
            0x0a => {
                self.ack_delay_exponent = u32::try_from(number?.min(MAX_EXPONENT)).ok()?;
                return Some(());
            }
            0x0b => {
                self.max_ack_delay_ms = number?.min(MAX_DELAY_MS);
                return Some(());
            }
            _ => return Some(()),
        };
        *place = number?;
        Some(())
    }

    /// Returns its window of a stream that `is_own` (opened by itself) and bidirectional, or its peer's.
    pub const fn stream_window(&self, is_bidirectional: bool, is_own: bool) -> u64 {
        match (is_bidirectional, is_own) {
            (true, true) => self.max_stream_data[0],
            (true, false) => self.max_stream_data[1],
            (false, _) => self.max_unidirectional,
        }
    }

    /// Returns the delay of an acknowledgement in microseconds.
    pub fn ack_delay_us(&self, delay: u64) -> u64 {
        delay.saturating_mul(1 << self.ack_delay_exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_up_to_a_cut_and_others_are_skipped() {
        let bytes =
            [4, 4, 0x80, 1, 0, 0, 0x0f, 2, 9, 9, 5, 1, 7, 6, 2, 0x40, 80, 10, 1, 5, 11, 1, 30, 7, 2, 0];
        let read = Parameters::read(&bytes);
        assert_eq!((read.max_data, read.max_stream_data), (65_536, [7, 80]));
        assert_eq!((read.ack_delay_exponent, read.max_ack_delay_ms, read.max_unidirectional), (5, 30, 0));
        assert_eq!([read.stream_window(true, true), read.stream_window(true, false)], [7, 80]);
        assert_eq!((read.ack_delay_us(10), Parameters::read(&[]).ack_delay_us(10)), (320, 80));
        assert_eq!(Parameters::read(&[10, 1, 63]).ack_delay_us(u64::MAX >> 2), u64::MAX);
    }
}
