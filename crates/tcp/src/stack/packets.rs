//! Knobs of a stack that only the packet simulator honours.
//!
//! Formulas cannot honour them, and the kernel has its own values: those engines ignore [`Packets`] as a whole. A knob
//! that an endpoint has as well is of the type in [`crate::config`].

use wire::{Bytes, Duration};

pub use crate::config::{
    BufferOccupancy, Counting, Estimator, Nagle, Recovery, Rto, Sharing, Termination, Ticks,
};

/// Knobs that take effect only on packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packets {
    /// Size of the send buffer, beyond which a write blocks.
    pub send_buffer: Bytes,
    /// Bytes that occupy the send buffer.
    pub occupancy: BufferOccupancy,
    /// Unsent bytes in the send buffer from which on a write blocks (`TCP_NOTSENT_LOWAT`); `None`: any number.
    pub unsent_limit: Option<Bytes>,
    /// Variant of Nagle's algorithm, where it is on.
    pub nagle: Nagle,
    /// Delay of the odd segment's acknowledgement. Current Linux has rules of its own.
    pub ack_delay: AckDelay,
    /// Unit in which the congestion window is counted.
    pub counting: Counting,
    /// Whether one of the initial window's segments is due to the acknowledgement of a server's SYN: a client
    /// then starts with one segment less.
    pub handshake_opens: bool,
    /// Timeouts of the SYN or SYN-ACK after which a connection starts with one segment; `None`: never.
    pub handshake_timeouts: Option<u8>,
    /// Initial slow start threshold; `None`: unlimited.
    pub initial_threshold: Option<Bytes>,
    /// Loss recovery before the timer expires. [`super::Stack::sack`] decides whether it uses selective
    /// acknowledgements ([`Recovery::with_sack`], [`Recovery::without_sack`]).
    pub recovery: Recovery,
    /// Reduction of a window that restarts after idle.
    pub restart: Restart,
    /// Whether the window grows only while it limits sending.
    pub cwnd_validation: bool,
    /// State that connections between the same hosts share.
    pub sharing: Sharing,
    /// The retransmission timer; the phase of a coarse clock is the host's.
    pub rto: Rto,
    /// Connection termination.
    pub termination: Termination,
    /// Time from an arrival to the run of the process that sleeps until it; the process reads everything that
    /// has arrived by then.
    pub wake_up: Duration,
}

/// Delay of the odd segment's acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDelay {
    /// Fixed: the heartbeat's period, or the timer's delay.
    Fixed(Duration),
    /// Adapted to the time between arrivals, half a second at most (Linux 2.0's `ato`).
    Estimated,
}

/// Reduction of a window that restarts after idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// To one segment, when nothing was sent for a timeout.
    AfterSending,
    /// To one segment, when nothing arrived for a timeout: the request hides the idle time from the response.
    AfterReceiving,
    /// Halved for every timeout, down to the initial window (RFC 2861).
    Decaying,
}
