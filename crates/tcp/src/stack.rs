//! Profiles of TCP stacks as data, each value with its source.
//!
//! Every engine destructures a profile without `..`, so that a new knob does not compile until each engine honours or
//! rejects it.

mod catalogue;
pub mod packets;

use wire::Bytes;

pub use packets::Packets;
use quantity::names::{self, UnknownName};

/// Profile of a TCP stack; the same at both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Name, in lower case with hyphens.
    pub name: &'static str,
    /// Number of segments that the sender may have in flight when it sends its first data.
    pub initial_window: u16,
    /// Acknowledgement policy of the receiver.
    pub acks: Acks,
    /// Growth of the window per acknowledgement in slow start.
    pub growth: Growth,
    /// Growth of the window in congestion avoidance.
    pub congestion: Congestion,
    /// Window after the connection has been idle for a retransmission timeout.
    pub idle: Idle,
    /// Nagle's algorithm: whether a short segment waits until everything before it is acknowledged (RFC 896).
    pub nagle: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Timestamps (RFC 7323), which take 12 bytes of every segment.
    pub timestamps: bool,
    /// Window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Size of the receive buffer, and so the maximum window, where it is fixed; `None` if it grows
    /// automatically.
    pub receive_buffer: Option<Bytes>,
    /// Knobs that take effect only on packets.
    pub packets: Packets,
}

/// Acknowledgement policy of a receiver (`papers/heidemann-model`, appendix).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Acks {
    /// Every segment immediately.
    EverySegment,
    /// Every second full segment, and the odd one at the end of a flight immediately: the upper bound.
    Delayed,
    /// Every second full segment, and the odd one never by itself: the lower bound.
    NoDelayed,
    /// Every second full segment, the odd one on the next tick of a 200 ms clock shared by the whole host (BSD).
    Heartbeat,
    /// Every second segment, the odd one after its own delay (Solaris, Windows).
    Timer,
    /// Every second full segment, the odd one after 40 ms, and every segment while a connection is young (Linux).
    QuickThenDelayed,
}

impl Acks {
    /// The three policies that the model can assume instead of the stack's own; `--acks`.
    pub const ASSUMED: [Self; 3] = [Self::EverySegment, Self::Delayed, Self::NoDelayed];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EverySegment => "every-segment",
            Self::Delayed => "delayed",
            Self::NoDelayed => "no-delayed",
            Self::Heartbeat => "heartbeat",
            Self::Timer => "timer",
            Self::QuickThenDelayed => "quick-then-delayed",
        }
    }

    /// Returns the policy among [`Acks::ASSUMED`] of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name.
    pub fn assumed(name: &str) -> Result<Self, UnknownName> {
        names::find("acknowledgement policy", name, &Self::ASSUMED, Self::name)
    }
}

/// Growth of the window per acknowledgement in slow start.
///
/// With a receiver that acknowledges every second segment, flights have 2, 3, 3, 6 or 2, 4, 8 segments
/// (`papers/heidemann-model#figure-3`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Growth {
    /// By one segment per acknowledgement (4.3BSD).
    PerAcknowledgement,
    /// By the number of segments acknowledged (RFC 3465, Linux).
    PerSegment,
}

/// Growth of the window in congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Congestion {
    /// One segment per round trip (RFC 5681).
    Reno,
    /// RFC 9438.
    Cubic,
}

/// Congestion window after idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Idle {
    /// The window is unchanged.
    Unchanged,
    /// Reduced to the initial window.
    Restarted,
    /// Limited to the segments last sent in a round trip, and paced until the first acknowledgement
    /// (`papers/p-http`, section 2.4).
    Paced,
}
