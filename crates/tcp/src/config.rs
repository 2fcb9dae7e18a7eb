//! Configuration of an endpoint: every knob in one value.
//!
//! The values of real systems, with their sources, are in [`crate::stack`]; valid values are in `check`. An enum knob is
//! matched exhaustively wherever it is read.

mod check;

use quantity::names::{self, UnknownName};
use wire::{Duration, Time};

use crate::segment::Framing;

pub use check::ConfigError;

/// Configuration of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Maximum payload of a segment, in both directions; at least 1. Options reduce it (RFC 6691), so with
    /// timestamps a segment carries 12 bytes less.
    pub mss: u16,
    /// Send buffer in bytes, beyond which a write blocks; at least one segment.
    pub send_buffer: u32,
    /// Bytes that occupy the send buffer.
    pub occupancy: BufferOccupancy,
    /// Unsent bytes in the send buffer from which on a write blocks (`TCP_NOTSENT_LOWAT`); `None`: any number.
    pub unsent_limit: Option<u32>,
    /// Receive buffer, which is the advertised window.
    pub receive_buffer: ReceiveBuffer,
    /// Timestamps (RFC 7323), if both ends enable them.
    pub timestamps: bool,
    /// Window scaling (RFC 7323), if both ends enable it; the shift follows from the receive buffer.
    pub window_scaling: bool,
    /// Acknowledgement policy.
    pub acks: Acks,
    /// Nagle's algorithm; `None`: off.
    pub nagle: Option<Nagle>,
    /// Congestion control.
    pub congestion: Congestion,
    /// Loss recovery before the timer expires.
    pub recovery: Recovery,
    /// Congestion window after idle.
    pub idle: Idle,
    /// Idle time after which `idle` applies; `None`: the retransmission timeout (`papers/p-http#section-2-4` proposes a
    /// longer one).
    pub idle_after: Option<Duration>,
    /// Retransmission timer.
    pub rto: Rto,
    /// Connection termination.
    pub termination: Termination,
    /// Handshake with a known peer.
    pub handshake: Handshake,
    /// State that connections between the same hosts share.
    pub sharing: Sharing,
}

/// State that connections between the same two hosts share (RFC 2140).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// No sharing.
    None,
    /// A new connection starts with the window and the round trip of the last (section 3).
    Temporal,
    /// Concurrent connections also share one window: a new one takes its share from the others, and returns it to them
    /// (section 4, as built by Eggert, Heidemann and Touch: "Effects of Ensemble-TCP", 2000). Only their host knows
    /// the group.
    Ensemble,
}

impl Sharing {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::None, Self::Temporal, Self::Ensemble];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Temporal => "temporal",
            Self::Ensemble => "ensemble",
        }
    }

    /// Returns the value of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("kind of sharing", name, &Self::ALL, Self::name)
    }
}

/// Bytes that occupy the send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferOccupancy {
    /// Unacknowledged bytes (BSD; Linux with SO_SNDBUF).
    Unacknowledged,
    /// Unsent bytes (Mentat's TCP: Solaris).
    Unsent,
    /// Unacknowledged bytes, in a buffer that grows with the congestion window up to its size (Linux, `tcp_sndbuf_expand`).
    Tuned,
}

/// The receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveBuffer {
    /// Fixed size in bytes.
    Fixed(u32),
    /// Starts small and grows by two bytes for every byte that arrives in order (Linux's `rcv_ssthresh`).
    Growing {
        /// Initial size in bytes.
        initial: u32,
        /// Maximum size in bytes.
        max: u32,
    },
}

/// Acknowledgement policy. Out-of-order data, and data that fills a gap, is always acknowledged immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Immediately.
    EverySegment,
    /// Every `segments` segments immediately, counted as they arrive; the odd one according to `odd` (RFC 1122,
    /// 4.2.3.2).
    Counted {
        /// Usually 2.
        segments: u8,
        /// Policy for the odd segment.
        odd: OddSegmentAck,
    },
    /// BSD's: when reading has freed two segments' worth of *bytes* (or half the buffer), so that a short and a full
    /// segment are not enough; the odd one according to `odd`. (`tcp_output`'s window update, Stevens vol. 2, section
    /// 26.3.)
    ReadBytes {
        /// Policy for the odd segment.
        odd: OddSegmentAck,
    },
    /// Linux's: immediately while the connection is young, then after more than one segment's worth, or when the
    /// application has read pushed data; otherwise after 40 to 200 ms, adapted to the time between arrivals.
    Linux,
}

/// Acknowledgement of an odd segment, which is not followed by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OddSegmentAck {
    /// Never by itself: the lower bound of `papers/heidemann-model#table-5`.
    Never,
    /// After this delay: a timer per connection.
    After(Duration),
    /// After a time that follows the time between arrivals (Linux 2.0).
    Estimated,
    /// On the next tick of a free-running clock shared by the whole host.
    OnTick(Ticks),
}

/// A free-running clock that ticks every `period`, first at `phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Period between ticks; above zero.
    pub period: Duration,
    /// Time of the first tick after time zero.
    pub phase: Duration,
}

impl Ticks {
    /// BSD's slow timer, which retransmits (Stevens vol. 2, section 25.5), with phase zero.
    pub const BSD_SLOW: Self = Self { period: Duration::from_millis(500), phase: Duration::ZERO };

    /// Returns the first tick after `now`.
    pub fn after(self, now: Time) -> Time {
        Time::ZERO + self.phase + self.period * self.count(now)
    }

    /// Returns the number of ticks up to and including `now`.
    pub fn count(self, now: Time) -> u64 {
        let since = now.as_nanos().checked_sub(self.phase.as_nanos());
        since.map_or(0, |since| since / self.period.as_nanos().max(1) + 1)
    }
}

/// Condition under which a segment shorter than the maximum waits for an acknowledgement (RFC 896).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// While anything is unacknowledged, decided once for each write or arrival: the short end of a write that found
    /// nothing outstanding is sent with it (BSD's `idle`, Stevens vol. 2, section 26.3).
    OnEntry,
    /// While anything is unacknowledged, decided for each segment.
    PerSegment,
    /// While a *short* segment is unacknowledged (Minshall's variant; Linux since 2.1).
    Minshall,
}

/// Congestion control: the window's start, growth and reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Congestion {
    /// Initial window in segments; at least 1.
    pub initial_window: u16,
    /// Whether the acknowledgement of a server's SYN opens its window by a segment (BSD).
    pub handshake_opens: bool,
    /// Timeouts of the SYN or SYN-ACK after which the connection starts with a window of one segment; `None`: it always
    /// starts with the initial window.
    pub handshake_timeouts: Option<u8>,
    /// Initial slow start threshold in bytes; `None`: unlimited.
    pub initial_threshold: Option<u32>,
    /// Unit in which the window is counted.
    pub counting: Counting,
    /// Growth per acknowledgement in slow start.
    pub growth: Growth,
    /// Congestion avoidance, and the reduction at a loss.
    pub avoidance: Avoidance,
    /// Whether the window grows only while it limits sending (RFC 7661; Linux).
    pub cwnd_validation: bool,
}

/// Unit in which the window is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Bytes: a short segment counts its own size (BSD).
    Bytes,
    /// Segments: a short one counts as much as a long one (Linux).
    Segments,
}

/// Growth per acknowledgement in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// One segment, whatever it acknowledges (`papers/heidemann-model`, appendix).
    PerAck,
    /// The bytes it acknowledges, at most this many segments (RFC 3465's L).
    PerByte {
        /// 2 in RFC 3465; more where bursts do not matter.
        max_segments: u8,
    },
}

/// Congestion avoidance, and the reduction at a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Avoidance {
    /// A segment each round trip; half at a loss (RFC 5681).
    Reno,
    /// RFC 9438, with HyStart's first test for the end of slow start if `hystart`.
    Cubic {
        /// Linux's default.
        hystart: bool,
    },
}

/// Loss recovery before the timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The third duplicate retransmits one segment and enters slow start (4.3BSD-Tahoe, SunOS 4.1).
    Tahoe,
    /// Fast recovery, until the first new acknowledgement (RFC 2001).
    Reno,
    /// Fast recovery, until all that was outstanding has arrived (RFC 6582).
    NewReno,
    /// Selective acknowledgements, if both ends enable them (RFC 6675); otherwise NewReno.
    Sack,
    /// Selective acknowledgements, with loss detection by time and tail loss probes (RFC 8985; Linux); otherwise
    /// NewReno.
    Rack,
}

impl Recovery {
    /// Recovery of a stack with selective acknowledgements: RFC 6675, unless it is RACK.
    pub const fn with_sack(self) -> Self {
        match self {
            Self::Rack => Self::Rack,
            Self::Tahoe | Self::Reno | Self::NewReno | Self::Sack => Self::Sack,
        }
    }

    /// Recovery of a stack without selective acknowledgements: NewReno instead of RFC 6675 and RACK.
    pub const fn without_sack(self) -> Self {
        match self {
            Self::Tahoe => Self::Tahoe,
            Self::Reno => Self::Reno,
            Self::NewReno | Self::Sack | Self::Rack => Self::NewReno,
        }
    }
}

/// Congestion window after nothing was outstanding for a retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// The window is unchanged (SunOS).
    Unchanged,
    /// The window is reduced to `segments`.
    Restarted {
        /// 1 in BSD, the initial window in RFC 5681.
        segments: u16,
        /// Start of the idle time.
        since: IdleSince,
    },
    /// Halved for every timeout that elapsed, not below the initial window (RFC 2861; Linux).
    Decayed,
    /// Limited to the segments last sent in a round trip, and paced over a round trip until the first acknowledgement
    /// (`papers/p-http`, section 2.4).
    Paced,
}

/// Event since which a connection counts as idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleSince {
    /// The last data sent.
    Sent,
    /// The last segment received, as in BSD: the request that ends the idle time resets it, so that a server never
    /// restarts (RFC 5681, section 4.1).
    Received,
}

/// Retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rto {
    /// Estimator of the timeout.
    pub estimator: Estimator,
    /// Initial timeout, before any measurement.
    pub initial: Duration,
    /// Minimum timeout.
    pub min: Duration,
    /// Maximum timeout, backed off.
    pub max: Duration,
    /// Maximum number of SYN retransmissions.
    pub syn_retries: u8,
    /// Maximum number of data retransmissions.
    pub data_retries: u8,
}

/// Estimator of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// In ticks of a slow clock, one segment at a time (BSD: 500 ms).
    Coarse(Ticks),
    /// RFC 6298, from every acknowledgement that allows it.
    Fine,
    /// The same, but the minimum applies to the variation (`RTTVAR`), not to the sum (Linux).
    FineVariation,
}

/// Connection termination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Termination {
    /// Duration of TIME_WAIT (twice the maximum segment lifetime).
    pub time_wait: Duration,
    /// Whether closing with unread data sends a reset (RFC 2525, section 2.17; Linux).
    pub unread_resets: bool,
    /// Whether a reset discards data that has arrived and was not yet read.
    pub reset_discards: bool,
}

/// Handshake with a known peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// TCP's three-way handshake.
    ThreeWay,
    /// Transaction TCP (RFC 1644): connection counts; data and FIN with the SYN.
    Ttcp,
    /// TCP Fast Open (RFC 7413): cookies; data with the SYN.
    FastOpen,
    /// No handshake and no authentication: ARDP's requests and responses in UDP datagrams, with TCP's windows and
    /// timers (`papers/heidemann-model`, section II-C).
    Ardp,
}

impl Handshake {
    /// Returns the framing of segments on the link.
    pub const fn framing(self) -> Framing {
        match self {
            Self::ThreeWay | Self::Ttcp | Self::FastOpen => Framing::Tcp,
            Self::Ardp => Framing::Ardp,
        }
    }
}

impl ReceiveBuffer {
    /// Returns the window scale shift for its maximum window; at most 14 (RFC 7323, section 2.3).
    pub(super) fn scale(self) -> u8 {
        let max = match self {
            Self::Fixed(bytes) => bytes,
            Self::Growing { initial, max } => max.max(initial),
        };
        (0..14).find(|shift| u64::from(u16::MAX) << shift >= u64::from(max)).unwrap_or(14)
    }
}

/// The timestamp option with its padding (RFC 7323, appendix A).
pub(super) const TIMESTAMP_BYTES: u16 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_ticks_at_its_phase_and_every_period_after() {
        let ticks = Ticks { period: Duration::from_millis(200), phase: Duration::from_millis(50) };
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        assert_eq!(ticks.after(at(0)), at(50));
        assert_eq!(ticks.after(at(49)), at(50));
        assert_eq!(ticks.after(at(50)), at(250));
        assert_eq!(ticks.after(at(449)), at(450));
        assert_eq!([0, 50, 249, 250].map(|millis| ticks.count(at(millis))), [0, 1, 1, 2]);
    }
}
