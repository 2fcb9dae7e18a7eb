//! State of loss detection and congestion control (RFC 9002) of a connection, each change.

use core::net::SocketAddr;

use wire::{Duration, Time};

/// State of a connection from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Time of the change.
    pub at: Time,
    /// The other end.
    pub peer: SocketAddr,
    /// Congestion window, in bytes.
    pub window: u64,
    /// Smoothed round trip.
    pub round_trip: Duration,
    /// The shortest one.
    pub min_round_trip: Duration,
    /// Number of packets that were found to be lost so far.
    pub lost: u64,
}
