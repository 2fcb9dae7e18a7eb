//! Knobs of a stack that take effect only on packets, honoured by an engine that has its own segments.
//!
//! Formulas cannot honour them, and the kernel has its own values. Those engines ignore this value as a whole, and
//! reject unsupported behaviour at the knobs of [`super::Stack`].

use wire::{Bytes, Duration};

use quantity::names::{self, UnknownName};

/// Knobs that take effect only on packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packets {
    /// Size of the send buffer, beyond which a write blocks.
    pub send_buffer: Bytes,
    /// Bytes that occupy the send buffer.
    pub holding: Holding,
    /// Variant of Nagle's algorithm, where it is on.
    pub nagle: NagleRule,
    /// Delay of the odd segment's acknowledgement. Current Linux has rules of its own.
    pub ack_delay: AckDelay,
    /// Unit in which the congestion window is counted.
    pub counting: Counting,
    /// Whether one of the initial window's segments is due to the acknowledgement of a server's SYN: a client
    /// then starts with one segment less.
    pub handshake_opens: bool,
    /// Initial slow start threshold; `None`: unlimited.
    pub initial_threshold: Option<Bytes>,
    /// Loss recovery before the timer expires; with selective acknowledgements, RFC 6675 unless it is RACK.
    pub recovery: Recovery,
    /// Reduction of a window that restarts after idle.
    pub restart: Restart,
    /// Whether the window grows only while it limits sending.
    pub validated: bool,
    /// State that connections between the same hosts share.
    pub sharing: Sharing,
    /// The retransmission timer.
    pub rto: Rto,
    /// Duration of TIME_WAIT.
    pub time_wait: Duration,
    /// Whether closing a connection with unread data resets it.
    pub unread_resets: bool,
    /// Whether a reset discards data that has arrived and was not yet read.
    pub reset_discards: bool,
    /// Time from an arrival to the run of the process that sleeps until it; the process reads everything that
    /// has arrived by then.
    pub wake_up: Duration,
}

/// Bytes that occupy the send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// Unacknowledged bytes.
    Unacknowledged,
    /// Unsent bytes: the buffer limits no window.
    Unsent,
}

/// Delay of the odd segment's acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDelay {
    /// Fixed: the heartbeat's period, or the timer's delay.
    Fixed(Duration),
    /// Adapted to the time between arrivals, half a second at most (Linux 2.0's `ato`).
    Estimated,
}

/// Condition under which a short segment is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NagleRule {
    /// Unacknowledged data when the application wrote, or when an acknowledgement arrived (BSD).
    OnEntry,
    /// Unacknowledged data when the segment would be sent.
    PerSegment,
    /// An unacknowledged short segment (Minshall).
    Minshall,
}

/// Unit in which the congestion window is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Bytes.
    Bytes,
    /// Segments, long or short.
    Segments,
}

/// Loss recovery before the timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Fast retransmit, then slow start.
    Tahoe,
    /// Fast recovery (RFC 2001).
    Reno,
    /// Fast recovery until everything outstanding has arrived (RFC 6582).
    NewReno,
    /// Loss detection by time, and tail loss probes, with selective acknowledgements (RFC 8985); else as
    /// NewReno.
    Rack,
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

/// State that connections between the same two hosts share (RFC 2140).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// None: each connection starts without shared state.
    None,
    /// A new connection begins with the window and the round trip that an earlier one left (section 3).
    Temporal,
    /// Concurrent connections also share one window: a new one takes its share from the others, and returns it to them
    /// (section 4, as built by Eggert, Heidemann and Touch: "Effects of Ensemble-TCP", 2000).
    Ensemble,
}

impl Sharing {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::None, Self::Temporal, Self::Ensemble];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Temporal => "temporal",
            Self::Ensemble => "ensemble",
        }
    }

    /// The value of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("kind of sharing", name, &Self::ALL, Self::name)
    }
}

/// The retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rto {
    /// Estimator.
    pub estimator: Estimator,
    /// Initial timeout, before any measurement.
    pub initial: Duration,
    /// Minimum timeout.
    pub least: Duration,
    /// Maximum timeout.
    pub most: Duration,
    /// Maximum number of SYN retransmissions.
    pub syn_retries: u8,
    /// Maximum number of data retransmissions.
    pub data_retries: u8,
}

/// Estimator of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// In ticks of 500 ms (BSD).
    Coarse,
    /// RFC 6298.
    Fine,
    /// RFC 6298, with the minimum applied to the variation alone (Linux).
    FineVariation,
}
