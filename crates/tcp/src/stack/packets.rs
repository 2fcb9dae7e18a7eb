//! What only packets show: the knobs of a stack that an engine with segments of its own honours.
//!
//! Formulas cannot honour them and the kernel has its own; those engines leave the whole value alone, and what
//! they cannot do otherwise they refuse at the knobs of [`super::Stack`].

use wire::{Bytes, Duration};

use quantity::names::{self, Unknown};

/// What only packets show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packets {
    /// What the application may write before it waits.
    pub send_buffer: Bytes,
    /// What is held against that.
    pub holding: Holding,
    /// Which rule holds a short segment back where Nagle's algorithm is on.
    pub nagle: NagleRule,
    /// How long the odd segment waits for its acknowledgement. Linux of today has rules of its own.
    pub ack_delay: AckDelay,
    /// What is counted against the window.
    pub counting: Counting,
    /// Whether the last of the initial window's segments is the one by which the acknowledgement of a server's
    /// SYN opens it: a client then starts with one segment less.
    pub handshake_opens: bool,
    /// Where slow start ends at first; `None`: nowhere.
    pub initial_threshold: Option<Bytes>,
    /// What is done about loss before the timer runs out; with selective acknowledgements, RFC 6675 unless it is RACK.
    pub recovery: Recovery,
    /// How a window that restarts does so.
    pub restart: Restart,
    /// Whether the window grows only while it is what limits.
    pub validated: bool,
    /// What connections between the same hosts learn from one another.
    pub sharing: Sharing,
    /// The retransmission timer.
    pub rto: Rto,
    /// How long the end that closed first remembers.
    pub time_wait: Duration,
    /// Whether closing a connection on which something is unread resets it.
    pub unread_resets: bool,
    /// Whether a reset throws away what has arrived and was not yet read.
    pub reset_discards: bool,
    /// From an arrival to the run of the process that sleeps until it; the process finds all that arrives meanwhile.
    pub wake_up: Duration,
}

/// What is held against the send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// What is not acknowledged.
    Unacknowledged,
    /// What is not sent: the buffer limits no window.
    Unsent,
}

/// How long the odd segment waits for its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDelay {
    /// So long: the heartbeat's period, or the timer's time.
    Fixed(Duration),
    /// As long as the time between arrivals suggests, half a second at most (Linux 2.0's `ato`).
    Estimated,
}

/// Which rule holds a short segment back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NagleRule {
    /// Anything unacknowledged when the application wrote, or when an acknowledgement came (BSD).
    OnEntry,
    /// Anything unacknowledged when the segment would leave.
    PerSegment,
    /// A short segment unacknowledged (Minshall).
    Minshall,
}

/// What is counted against the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Bytes.
    Bytes,
    /// Segments, long or short.
    Segments,
}

/// What is done about loss before the timer runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Fast retransmit, then slow start.
    Tahoe,
    /// Fast recovery (RFC 2001).
    Reno,
    /// Fast recovery until all of it has arrived (RFC 6582).
    NewReno,
    /// Time tells what is lost, and the tail is probed, where there are selective acknowledgements (RFC 8985); else
    /// as NewReno.
    Rack,
}

/// How a window restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// To one segment, when nothing was sent for a time-out.
    AfterSending,
    /// To one segment, when nothing arrived for a time-out: the request hides it from the answer.
    AfterReceiving,
    /// Halved for every time-out, down to the initial window (RFC 2861).
    Decaying,
}

/// What connections between the same two hosts learn from one another (RFC 2140).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Nothing: each finds out for itself.
    None,
    /// A new one begins with the window and the round trip that an earlier one left (section 3).
    Temporal,
    /// Those that are open at once also have one window together: a new one takes its share of it from the others,
    /// and leaves it to them (section 4, as Eggert, Heidemann and Touch built it: "Effects of Ensemble-TCP", 2000).
    Ensemble,
}

impl Sharing {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::None, Self::Temporal, Self::Ensemble];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Temporal => "temporal",
            Self::Ensemble => "ensemble",
        }
    }

    /// The one of that name.
    ///
    /// # Errors
    /// [`Unknown`] when there is none.
    pub fn named(name: &str) -> Result<Self, Unknown> {
        names::find("kind of sharing", name, &Self::ALL, Self::name)
    }
}

/// The retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rto {
    /// How it is computed.
    pub estimator: Estimator,
    /// Before anything has been measured.
    pub initial: Duration,
    /// At least.
    pub least: Duration,
    /// At most.
    pub most: Duration,
    /// How often a SYN is sent again.
    pub syn_retries: u8,
    /// How often data is sent again.
    pub data_retries: u8,
}

/// How the time-out is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// In ticks of 500 ms (BSD).
    Coarse,
    /// RFC 6298.
    Fine,
    /// RFC 6298, with the least for the variation alone (Linux).
    FineVariation,
}
