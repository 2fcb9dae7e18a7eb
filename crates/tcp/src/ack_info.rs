//! Acknowledgement as far as the congestion window and HyStart depend on it.

use wire::Duration;

/// Acknowledgement of new data.
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
