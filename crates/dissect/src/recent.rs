//! The last packets of one side, to recognize a second capture of one.

use crate::Segment;

/// Fingerprints of the last packets.
#[derive(Debug, Default)]
pub struct RecentPackets {
    fingerprints: [u32; 16],
    next_slot: u8,
    identification: Option<u16>,
    /// Number of consecutive different packets with the same IP ID, and whether any two had different ones.
    alike: u32,
    differs: bool,
}

impl RecentPackets {
    /// Returns whether this very packet was captured before.
    pub fn has(&mut self, segment: &Segment<'_>) -> bool {
        let Some(fingerprint) = segment.fingerprint() else { return false };
        // A sender whose IP IDs are all equal does not set them.
        if self.fingerprints.contains(&fingerprint) && (self.alike == 0 || self.differs) {
            return true;
        }
        match self.identification {
            Some(before) if before == segment.identification => self.alike += 1,
            Some(_) => self.differs = true,
            None => {}
        }
        self.identification = Some(segment.identification);
        let next_slot = usize::from(self.next_slot) % self.fingerprints.len();
        self.fingerprints[next_slot] = fingerprint;
        self.next_slot = self.next_slot.wrapping_add(1);
        false
    }
}
