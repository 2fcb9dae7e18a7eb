//! The last packets of one side, to recognize a second capture of one, and packets that were not captured.

use crate::Segment;

/// Fingerprints of the last packets.
#[derive(Debug, Default)]
pub struct RecentPackets {
    fingerprints: [u32; 16],
    /// When they passed, in milliseconds.
    passed: [u32; 16],
    next_slot: u8,
    identification: Option<u16>,
    /// Number of consecutive different packets with the same IP ID, and whether any two had different ones.
    alike: u32,
    differs: bool,
    /// Whether a packet had an IP ID of 0, as Linux's SYN/ACKs have.
    has_zero: bool,
    /// IP IDs that the last packet used: one for each segment that a network card merged or will split.
    used: u16,
    /// Number of packets that followed their predecessor's IP ID, and that skipped some.
    consecutive: u16,
    skips: u16,
    /// IP IDs skipped before the last packet.
    skipped: u16,
    /// Whether the last packet has the next IP ID.
    is_next: bool,
    /// The step of its IP IDs: the greatest common divisor of all so far, 0 before the first.
    step: u16,
}

impl RecentPackets {
    /// Returns whether this very packet was captured before, sooner than any timer retransmits it. `mss` is the sender's.
    pub fn has(&mut self, segment: &Segment<'_>, mss: u64) -> bool {
        self.skipped = 0;
        let Some(fingerprint) = segment.fingerprint() else {
            self.has_zero = true;
            return false;
        };
        /// Minimum retransmission timeout of most stacks.
        const MIN_RTO_MS: u32 = 200;
        const MAX_PAUSE_MS: u32 = 2_000;
        let now = u32::try_from(segment.at.as_nanos() / 1_000_000 % (1 << 32)).unwrap_or_default();
        let mut recent = self.fingerprints.iter().zip(&self.passed);
        let is_copy = recent.any(|(other, at)| *other == fingerprint && now.wrapping_sub(*at) < MIN_RTO_MS);
        // A sender whose IP IDs are all equal does not set them.
        if is_copy && (self.alike == 0 || self.differs) {
            return true;
        }
        match self.identification {
            Some(before) if before == segment.identification => self.alike += 1,
            Some(_) => self.differs = true,
            None => {}
        }
        let last = self.passed[usize::from(self.next_slot.wrapping_sub(1)) % self.passed.len()];
        self.count(segment, mss);
        // In seconds a host may have sent anything to others.
        if now.wrapping_sub(last) >= MAX_PAUSE_MS {
            self.skipped = 0;
        }
        self.identification = Some(segment.identification);
        let next_slot = usize::from(self.next_slot) % self.fingerprints.len();
        (self.fingerprints[next_slot], self.passed[next_slot]) = (fingerprint, now);
        self.next_slot = self.next_slot.wrapping_add(1);
        false
    }

    /// Returns the number of its packets between the last two that were not captured, as their IP IDs show. Linux numbers
    /// the packets of each connection; some hosts count by a larger step. Zero where IP IDs are not consecutive.
    pub const fn skipped(&self) -> u16 {
        let evidence = self.consecutive.saturating_add(self.has_zero as u16);
        if evidence > self.skips.saturating_sub(1).saturating_mul(3) { self.skipped } else { 0 }
    }

    /// Returns the IP ID of the last packet.
    pub const fn last_identification(&self) -> Option<u16> {
        self.identification
    }

    /// Returns whether its IP IDs were consecutive from the beginning, so that none of its packets is missing.
    pub const fn is_complete(&self) -> bool {
        const ENOUGH: u16 = 3;
        self.consecutive >= ENOUGH && self.skips == 0
    }

    /// Returns whether a copy of a segment would have been recognized by its IP ID: the sender sets it.
    pub const fn shows_copies(&self, segment: &Segment<'_>) -> bool {
        segment.identification != 0 && self.differs
    }

    /// Returns whether IP IDs show that the last packet was sent after all others: a sender that counts its packets gave it the
    /// next number.
    pub const fn is_sent_last(&self) -> bool {
        const ENOUGH: u16 = 3;
        self.is_next && self.consecutive >= ENOUGH && self.skips == 0
    }

    /// Compares the IP ID with that of the packet before.
    fn count(&mut self, segment: &Segment<'_>, mss: u64) {
        /// Maximum number of packets that one loss episode hides.
        const MAX_SKIPPED: u16 = 64;
        /// Weight of an IP ID that no count of one connection explains.
        const ERRATIC: u16 = 100;
        if let Some(before) = self.identification {
            let moved = segment.identification.wrapping_sub(before);
            let is_first = self.step == 0;
            if self.used == 1 && moved <= MAX_SKIPPED {
                let step = common_divisor(self.step, moved);
                // Steps that had looked like a larger one skipped some.
                if self.step > step {
                    self.skips = self.skips.saturating_add(std::mem::take(&mut self.consecutive));
                }
                self.step = step;
            }
            let moved = (moved / self.step.max(1)).wrapping_sub(self.used);
            self.is_next = moved == 0;
            match moved {
                // One number alone shows no step.
                0 if is_first && self.step > 1 => {}
                0 => self.consecutive = self.consecutive.saturating_add(1),
                skipped @ 1..=MAX_SKIPPED => {
                    self.skips = self.skips.saturating_add(1);
                    self.skipped = skipped;
                }
                _ => self.skips = self.skips.saturating_add(ERRATIC),
            }
        }
        self.used = u16::try_from(segment.length().div_ceil(mss).max(1)).unwrap_or(u16::MAX);
    }
}

const fn common_divisor(one: u16, other: u16) -> u16 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use wire::Time;
    use wire::packet::{Flags, Packet, TcpBuilder};

    use super::*;
    use crate::Side;

    /// Returns the number of skipped packets before each packet with these IP IDs and lengths; the MSS is 100.
    fn skipped(packets: &[(u16, usize)]) -> Vec<u16> {
        let mut recent = RecentPackets::default();
        let mut seq = 0;
        let mut skipped = Vec::new();
        for (number, length) in packets {
            let (source, destination) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
            let (ack, flags, window, options) = (0, Flags::ACK, 9, [].as_slice());
            let mut bytes = Vec::new();
            TcpBuilder { source, destination, seq, ack, flags, window, options }
                .write(&vec![0; *length], &mut bytes)
                .unwrap();
            bytes[4..6].copy_from_slice(&number.to_be_bytes());
            let packet = Packet::read(&bytes).unwrap();
            let tcp = packet.tcp().unwrap();
            seq += u32::try_from(*length).unwrap();
            assert!(!recent.has(&Segment::new(1, Time::ZERO, Side::Client, &packet, tcp), 100));
            skipped.push(recent.skipped());
        }
        skipped
    }

    #[test]
    fn skipped_numbers_are_packets_that_were_not_captured() {
        assert_eq!(skipped(&[(7, 0), (8, 50), (9, 50), (12, 50), (13, 50)]), [0, 0, 0, 2, 0]);
        // Linux's SYN/ACK has no number.
        assert_eq!(skipped(&[(0, 0), (8, 50), (9, 50), (11, 50)]), [0, 0, 0, 1]);
        // A network card merged or will split a segment of 250 bytes.
        assert_eq!(skipped(&[(7, 0), (8, 250), (11, 50)]), [0, 0, 0]);
    }

    #[test]
    fn packet_with_the_next_number_was_sent_after_all_others() {
        let is_last = |numbers: &[u16]| {
            let mut recent = RecentPackets::default();
            for (at, number) in numbers.iter().enumerate() {
                let source = "10.0.0.1:1".parse().unwrap();
                let destination = "10.0.0.2:2".parse().unwrap();
                let seq = u32::try_from(at).unwrap();
                let (ack, flags, window, options) = (0, Flags::ACK, 9, [].as_slice());
                let mut bytes = Vec::new();
                TcpBuilder { source, destination, seq, ack, flags, window, options }
                    .write(&[], &mut bytes)
                    .unwrap();
                bytes[4..6].copy_from_slice(&number.to_be_bytes());
                let packet = Packet::read(&bytes).unwrap();
                let tcp = packet.tcp().unwrap();
                recent.has(&Segment::new(1, Time::ZERO, Side::Server, &packet, tcp), 100);
            }
            recent.is_sent_last()
        };
        assert!(is_last(&[5, 6, 7, 8]));
        assert!(!is_last(&[5, 6, 8, 7]) && !is_last(&[5, 6]));
    }

    #[test]
    fn step_is_learned_from_the_numbers_themselves() {
        assert_eq!(skipped(&[(0, 0), (8, 50), (10, 50)]), [0, 0, 0]);
        assert_eq!(skipped(&[(8, 50), (10, 50), (12, 50), (14, 50), (20, 50)]), [0, 0, 0, 0, 2]);
    }

    #[test]
    fn copy_later_than_a_timer_is_a_retransmission() {
        let is_copy = |after_ms: u64| {
            let mut recent = RecentPackets::default();
            let (source, destination) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
            let (seq, ack, flags, window, options) = (1, 0, Flags::SYN, 9, [].as_slice());
            let mut bytes = Vec::new();
            TcpBuilder { source, destination, seq, ack, flags, window, options }
                .write(&[], &mut bytes)
                .unwrap();
            bytes[4..6].copy_from_slice(&7_u16.to_be_bytes());
            let packet = Packet::read(&bytes).unwrap();
            let tcp = packet.tcp().unwrap();
            let at = |ms| Segment::new(1, Time::from_nanos(ms * 1_000_000), Side::Client, &packet, tcp);
            assert!(!recent.has(&at(5_000), 100));
            recent.has(&at(5_000 + after_ms), 100)
        };
        assert_eq!([5, 199, 1_002].map(is_copy), [true, true, false]);
    }

    #[test]
    fn first_number_alone_shows_no_step() {
        assert_eq!(skipped(&[(8, 50), (19, 50), (201, 50)]), [0, 0, 0]);
        assert_eq!(skipped(&[(8, 50), (10, 50), (12, 50), (16, 50)]), [0, 0, 0, 1]);
    }

    #[test]
    fn numbers_that_count_other_packets_too_show_nothing() {
        assert_eq!(skipped(&[(7, 0), (9, 50), (12, 50), (14, 50)]), [0, 0, 0, 0]);
        assert_eq!(skipped(&[(7, 0), (8, 0), (900, 50), (903, 50)]), [0, 0, 0, 0]);
    }
}
