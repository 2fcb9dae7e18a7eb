//! Moments of a capture.

use wire::Time;

/// A moment and the packet that marks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When the packet was captured.
    pub at: Time,
    /// The packet's number in the capture, from 1 on.
    pub frame: u64,
}
