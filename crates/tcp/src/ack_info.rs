//! What the congestion window and HyStart learn from an acknowledgement.

use wire::Duration;

/// Acknowledgement, as far as the window depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckInfo {
    /// Bytes newly acknowledged.
    pub bytes: u64,
    /// Segments newly acknowledged.
    pub segments: u64,
    /// First unacknowledged number.
    pub number: u64,
    /// Number of the next byte to send.
    pub next: u64,
    /// Round trip measured with it.
    pub round_trip: Option<Duration>,
}
