//! How TCP behaves at both ends: profiles that are data, each value with its source.
//!
//! Not an implementation: every engine destructures a profile without `..`, so that a new knob does not compile
//! until each honours it or refuses it.

mod catalogue;
pub mod packets;

use wire::Bytes;

pub use packets::Packets;
use quantity::names::{self, Unknown};

/// How TCP behaves; the same at both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Lower-case with hyphens.
    pub name: &'static str,
    /// Segments the sender may have in flight when its first data leaves.
    pub initial_window: u16,
    /// When the receiver acknowledges.
    pub acks: Acks,
    /// How far an acknowledgement opens the window in slow start.
    pub growth: Growth,
    /// How the window grows once slow start is over.
    pub congestion: Congestion,
    /// What becomes of the window when the connection has been idle for a retransmission time-out.
    pub idle: Idle,
    /// Whether a short segment waits until everything before it is acknowledged (RFC 896).
    pub nagle: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Timestamps (RFC 7323): 12 bytes of every segment.
    pub timestamps: bool,
    /// Window scaling (RFC 7323).
    pub window_scaling: bool,
    /// The receive buffer, and so the largest window, where it is fixed; `None` if it grows by itself.
    pub receive_buffer: Option<Bytes>,
    /// What only packets show.
    pub packets: Packets,
}

/// When a receiver acknowledges (`papers/heidemann-model`, appendix).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Acks {
    /// Every segment at once.
    EverySegment,
    /// Every second full segment, and the odd one at the end of a flight at once: the upper bound.
    Delayed,
    /// Every second full segment, and the odd one never by itself: the lower bound.
    NoDelayed,
    /// Every second full segment, the odd one on the next tick of a 200 ms clock that the whole host shares (BSD).
    Heartbeat,
    /// Every second segment, the odd one after a time of its own (Solaris, Windows).
    Timer,
    /// Every second full segment, the odd one after 40 ms, and every segment while a connection is young (Linux).
    QuickThenDelayed,
}

impl Acks {
    /// The three that the model can be told to assume instead of the stack's own; `--acks`.
    pub const ASSUMED: [Self; 3] = [Self::EverySegment, Self::Delayed, Self::NoDelayed];

    /// The name on the command line.
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

    /// The one of [`Acks::ASSUMED`] of that name.
    ///
    /// # Errors
    /// [`Unknown`] when there is none.
    pub fn assumed(name: &str) -> Result<Self, Unknown> {
        names::find("acknowledgement policy", name, &Self::ASSUMED, Self::name)
    }
}

/// How far an acknowledgement opens the window in slow start. With a receiver that acknowledges every second
/// segment, flights of 2, 3, 3, 6 or of 2, 4, 8 (`papers/heidemann-model#figure-3`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Growth {
    /// By one segment for each acknowledgement (4.3BSD).
    PerAcknowledgement,
    /// By as many segments as were acknowledged (RFC 3465, Linux).
    PerSegment,
}

/// How the window grows once slow start is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Congestion {
    /// One segment per round trip (RFC 5681).
    Reno,
    /// RFC 9438.
    Cubic,
}

/// What becomes of the congestion window after idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Idle {
    /// Kept as it was.
    Kept,
    /// Back to the initial window.
    Restarted,
    /// Kept, and what it lets out is paced until the first acknowledgement (`papers/p-http`, section 2.4).
    Paced,
}
