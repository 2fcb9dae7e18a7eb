//! Exact transmission times: the fraction of a nanosecond after one packet is carried to the next.
//!
//! Rounding each packet up to a tick once limited an emulator configured for a higher rate to 12 Mb/s
//! (dipt-quic-workbench #53). With integers only, a link that is never idle sends exactly at its rate.

use crate::{Bytes, Duration, Rate, Time};

/// A transmitter that sends packets sequentially.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    byte_time: Option<ByteTime>,
    framing: i64,
    /// End of the last transmission, rounded down to nanoseconds.
    free: Time,
    /// Remaining fraction of a nanosecond, in units of `1 / ByteTime::parts`.
    carry: u64,
}

impl Transmitter {
    pub(super) fn new(rate: Option<Rate>, framing: i32) -> Self {
        Self { byte_time: rate.map(ByteTime::new), framing: i64::from(framing), free: Time::ZERO, carry: 0 }
    }

    /// Returns the start of transmission of a packet that arrives at `now`, rounded up to the nanosecond.
    pub(super) fn start_of_transmission(&self, now: Time) -> Time {
        now.max(round_up(self.free, self.carry))
    }

    /// Sends a packet that arrives at `now`. Returns the end of its transmission, rounded up to the
    /// nanosecond.
    pub(super) fn send(&mut self, now: Time, size: Bytes) -> Time {
        if now > self.free {
            (self.free, self.carry) = (now, 0);
        }
        if let Some(byte_time) = &self.byte_time {
            let framed = size.get().saturating_add_signed(self.framing);
            (self.free, self.carry) = byte_time.advance(self.free, self.carry, framed);
        }
        round_up(self.free, self.carry)
    }
}

fn round_up(whole: Time, part: u64) -> Time {
    whole + Duration::from_nanos(u64::from(part > 0))
}

/// Nanoseconds per byte as a fraction in its lowest terms: `per_byte / parts`.
#[derive(Clone, Copy, Debug)]
struct ByteTime {
    per_byte: u64,
    parts: u64,
}

impl ByteTime {
    fn new(rate: Rate) -> Self {
        // A byte takes 8 bits / (rate / 1000) bits per second, here in nanoseconds.
        let (eight_bits, rate) = (8 * 1_000 * 1_000_000_000, rate.millibits_per_second());
        let divisor = greatest_common_divisor(eight_bits, rate);
        Self { per_byte: eight_bits / divisor, parts: rate / divisor }
    }

    /// Returns the end of a transmission of `bytes` bytes that starts `carry` parts after `start`.
    fn advance(self, start: Time, carry: u64, bytes: u64) -> (Time, u64) {
        let short = bytes.checked_mul(self.per_byte).and_then(|parts| parts.checked_add(carry));
        let (nanos, carry) = match short {
            Some(parts) => (parts / self.parts, parts % self.parts),
            None => self.divide_long(u128::from(bytes) * u128::from(self.per_byte) + u128::from(carry)),
        };
        (start + Duration::from_nanos(nanos), carry)
    }

    /// Divides for long packets at rates with large denominators. Saturates at 584 years.
    #[cold]
    fn divide_long(self, parts: u128) -> (u64, u64) {
        let whole = u128::from(self.parts);
        let remainder = u64::try_from(parts % whole).expect("a remainder is below its 64-bit divisor");
        (u64::try_from(parts / whole).unwrap_or(u64::MAX), remainder)
    }
}

/// Euclid's algorithm, for two positive numbers.
fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_packets_take_exactly_their_bits_over_the_rate() {
        // 29,491.2 bit/s, papers/heidemann-model#table-2; and rates that divide nothing evenly.
        for millibits in [29_491_200, 1_064_960_000, 999_999_937_000, 3_333_333_333_333] {
            let mut link = Transmitter::new(Rate::from_millibits_per_second(millibits), 0);
            let mut sent = Time::ZERO;
            for size in (0..1_000_000).map(|n| [1500, 40, 552, 1][n % 4]) {
                sent = link.send(Time::ZERO, Bytes::new(size));
            }
            let bytes: u128 = 250_000 * (1500 + 40 + 552 + 1);
            let exact = (bytes * 8 * 1_000 * 1_000_000_000).div_ceil(u128::from(millibits));
            assert_eq!(u128::from(sent.as_nanos()), exact, "{millibits}");
        }
    }

    #[test]
    fn idle_transmitter_starts_immediately_without_a_carry() {
        // A byte takes 8/3 ns.
        let mut link = Transmitter::new(Rate::from_bits_per_second(3_000_000_000), 0);
        assert_eq!(link.send(Time::ZERO, Bytes::new(1)), Time::from_nanos(3));
        assert_eq!(link.send(Time::ZERO, Bytes::new(1)), Time::from_nanos(6));
        assert_eq!(link.send(Time::ZERO, Bytes::new(1)), Time::from_nanos(8));
        assert_eq!(link.send(Time::from_nanos(9), Bytes::new(1)), Time::from_nanos(12));
        // It transmits until 11 2/3: a packet that arrives at 11 waits.
        assert_eq!(link.start_of_transmission(Time::from_nanos(11)), Time::from_nanos(12));
        assert_eq!(link.send(Time::from_nanos(11), Bytes::new(1)), Time::from_nanos(15));
    }

    #[test]
    fn framing_is_added_and_the_size_is_never_below_zero() {
        let byte_per_ns = Rate::from_bits_per_second(8_000_000_000);
        let sent = |framing, size| Transmitter::new(byte_per_ns, framing).send(Time::ZERO, Bytes::new(size));
        assert_eq!(sent(38, 1500), Time::from_nanos(1538));
        assert_eq!(sent(-40, 1500), Time::from_nanos(1460));
        assert_eq!(sent(-40, 40), Time::ZERO);
        assert_eq!(sent(-40, 20), Time::ZERO);
    }

    #[test]
    fn slowest_link_with_the_largest_packet_saturates() {
        let mut link = Transmitter::new(Rate::from_millibits_per_second(1), i32::MAX);
        assert_eq!(link.send(Time::from_nanos(1), Bytes::new(u64::MAX)), Time::MAX);
        assert_eq!(link.send(Time::MAX, Bytes::new(u64::MAX)), Time::MAX);
    }
}
