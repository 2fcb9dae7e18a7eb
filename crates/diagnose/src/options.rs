//! Data that a diagnosis retains, and the limit beyond which time is not judged.

use wire::{Duration, Time};

/// Data to retain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Retain every connection's packets as points of a plot. Memory then grows with the connections.
    pub is_plotted: bool,
    /// Count only events at or after this time: findings, exchanges and accounts. Connections are still followed from
    /// the beginning, because later facts depend on earlier ones.
    pub since: Time,
}

/// A longer pause means that the clock was set: no program or network causes such a wait. Time across it is not judged.
pub(crate) const LEAP: Duration = Duration::from_secs(86_400);
