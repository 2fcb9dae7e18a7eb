//! What happened on a link, added up. Not when: that is for whoever watches the packets.

use crate::Bytes;

/// A number of packets and the bytes in them, framing not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many packets.
    pub packets: u64,
    /// Their sizes, added up.
    pub bytes: Bytes,
}

impl Tally {
    /// Counts one more.
    pub(super) fn add(&mut self, size: Bytes) {
        self.packets += 1;
        self.bytes += size;
    }
}

/// Where the packets went. Always: offered + duplicated = dropped + lost + delivered + in transit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Everything given to the link.
    pub offered: Tally,
    /// Refused by the full queue.
    pub dropped: Tally,
    /// Sent, but lost on the way.
    pub lost: Tally,
    /// Copies that the link made.
    pub duplicated: Tally,
    /// Arrived.
    pub delivered: Tally,
    /// The most that ever waited for the transmitter: most packets, and (perhaps at another time) most bytes.
    pub queue_peak: Tally,
}
