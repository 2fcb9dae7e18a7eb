//! Counters of a link's packets and bytes.

use crate::Bytes;

/// A number of packets and their bytes, without framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of packets.
    pub packets: u64,
    /// Sum of their sizes.
    pub bytes: Bytes,
}

impl Tally {
    /// Counts one packet.
    pub(super) fn add(&mut self, size: Bytes) {
        self.packets += 1;
        self.bytes += size;
    }
}

/// Packets by outcome. Invariant: offered + duplicated = dropped + lost + delivered + in transit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets offered to the link.
    pub offered: Tally,
    /// Dropped by the full queue.
    pub dropped: Tally,
    /// Packets sent, and lost on the link.
    pub lost: Tally,
    /// Packets duplicated by the link.
    pub duplicated: Tally,
    /// Packets that arrived.
    pub delivered: Tally,
    /// Maximum queue length: maximum packets, and maximum bytes, possibly at different times.
    pub queue_peak: Tally,
}
