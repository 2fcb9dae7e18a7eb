//! How an endpoint behaves: every knob of the machine, in one value.
//!
//! Not a profile: which system had which value, and the source for it, is in [`crate::stack`]; this is what the
//! machine understands. Which values are possible: `check`. A knob that is an enum is exhaustive wherever it is read.

mod check;

use wire::{Duration, Time};

use crate::segment::Framing;

pub use check::ConfigError;

/// Every knob.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The largest payload of a segment, in both directions; at least 1. Options come out of it (RFC 6691), so
    /// with timestamps a segment carries 12 bytes less.
    pub mss: u16,
    /// How much the application may write before it waits; at least one segment.
    pub send_buffer: u32,
    /// What of that counts.
    pub holding: Holding,
    /// How much may wait for the application to read it; the window advertised.
    pub receive_buffer: ReceiveBuffer,
    /// Timestamps (RFC 7323), if both ends want them.
    pub timestamps: bool,
    /// Window scaling (RFC 7323), if both ends want it: by as much as the receive buffer needs.
    pub window_scaling: bool,
    /// When data is acknowledged.
    pub acks: Acks,
    /// When a short segment must wait.
    pub nagle: Nagle,
    /// How the window starts, grows and shrinks.
    pub congestion: Congestion,
    /// What is done about loss before the timer runs out.
    pub recovery: Recovery,
    /// What becomes of the window after idle.
    pub idle: Idle,
    /// When the timer runs out.
    pub rto: Rto,
    /// How a connection ends.
    pub ending: Ending,
    /// How a handshake is cut short for a peer that is known.
    pub shortcut: Shortcut,
    /// What connections between the same hosts learn from one another.
    pub sharing: Sharing,
}

/// What connections between the same hosts learn from one another (RFC 2140).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Nothing.
    None,
    /// The next begins with the window and the round trip of the last.
    Temporal,
    /// Those that are open at once also have one window together. Which they are, only their host knows.
    Ensemble,
}

/// What is held against the send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// What is not acknowledged (BSD, Linux).
    Unacknowledged,
    /// What is not sent (Mentat's TCP: Solaris).
    Unsent,
}

/// The receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveBuffer {
    /// Always this many bytes.
    Fixed(u32),
    /// Starts small and grows by two bytes for every byte that arrives in order (Linux's `rcv_ssthresh`).
    Growing {
        /// At first.
        initial: u32,
        /// In the end.
        most: u32,
    },
}

/// When data is acknowledged. What arrives out of order, and what fills a gap, is always acknowledged at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// At once.
    EverySegment,
    /// Every so many segments at once, counted as they come; the odd one as `odd` says (RFC 1122, 4.2.3.2).
    Counted {
        /// 2, mostly.
        segments: u8,
        /// The odd one.
        odd: Odd,
    },
    /// BSD's: when reading has freed two segments' worth of *bytes* (or half the buffer), so that a short and a
    /// full segment are not enough; the odd one as `odd` says. (`tcp_output`'s window update, Stevens vol. 2,
    /// section 26.3.)
    ReadBytes {
        /// The odd one.
        odd: Odd,
    },
    /// Linux's: at once while the connection is young, then beyond one segment's worth, or when the application
    /// has read what was pushed; else after 40 to 200 ms, as the rhythm of arrivals suggests.
    Linux,
}

/// When a segment is acknowledged that no other follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odd {
    /// Never by itself: the lower bound of `papers/heidemann-model#table-5`.
    Never,
    /// After this long: a timer per connection.
    After(Duration),
    /// After a time that follows the time between arrivals (Linux 2.0).
    Estimated,
    /// On the next tick of a clock that runs freely for the whole host.
    OnTick(Ticks),
}

/// A free-running clock that ticks every `period`, first at `phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Between ticks; above zero.
    pub period: Duration,
    /// Of the first tick after time zero.
    pub phase: Duration,
}

impl Ticks {
    /// The first tick after `now`.
    pub fn after(self, now: Time) -> Time {
        Time::ZERO + self.phase + self.period * self.count(now)
    }

    /// How many ticks there have been up to and with `now`.
    pub fn count(self, now: Time) -> u64 {
        let since = now.as_nanos().checked_sub(self.phase.as_nanos());
        since.map_or(0, |since| since / self.period.as_nanos().max(1) + 1)
    }
}

/// When a segment shorter than the largest must wait for an acknowledgement (RFC 896).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// Never.
    Off,
    /// While anything is unacknowledged, decided once for each write or arrival: the short end of a write that
    /// found nothing outstanding goes out with it (BSD's `idle`, Stevens vol. 2, section 26.3).
    OnEntry,
    /// While anything is unacknowledged, decided for each segment.
    PerSegment,
    /// While a *short* segment is unacknowledged (Minshall's variant; Linux since 2.1).
    Minshall,
}

/// How the window starts, grows and shrinks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Congestion {
    /// Segments, at first; at least 1.
    pub initial_window: u16,
    /// Whether the acknowledgement of a server's SYN opens its window by a segment (BSD).
    pub handshake_opens: bool,
    /// Where slow start ends at first; `None`: nowhere.
    pub initial_threshold: Option<u32>,
    /// What is counted against the window.
    pub counting: Counting,
    /// What an acknowledgement is worth in slow start.
    pub growth: Growth,
    /// What happens beyond slow start, and at a loss.
    pub avoidance: Avoidance,
    /// Whether the window grows only while it is the window that limits (RFC 7661; Linux).
    pub validated: bool,
}

/// What is counted against the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Bytes: a short segment takes what it is (BSD).
    Bytes,
    /// Segments: a short one counts as much as a long one (Linux).
    Segments,
}

/// What an acknowledgement is worth in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// A segment, whatever it acknowledges (`papers/heidemann-model`, appendix).
    PerAck,
    /// What it acknowledges, at most this many segments (RFC 3465's L).
    PerByte {
        /// 2 in RFC 3465; more where bursts do not matter.
        most: u8,
    },
}

/// What happens beyond slow start, and at a loss.
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

/// What is done about loss before the timer runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The third duplicate sends one segment again and starts slowly (4.3BSD-Tahoe, SunOS 4.1).
    Tahoe,
    /// Fast recovery, until the first acknowledgement of something new (RFC 2001).
    Reno,
    /// Fast recovery, until all that was outstanding has arrived (RFC 6582).
    NewReno,
    /// Selective acknowledgements, if both ends want them (RFC 6675); else NewReno.
    Sack,
    /// The same, but time tells what is lost, and the tail is probed (RFC 8985; Linux); else NewReno.
    Rack,
}

/// What becomes of the window when nothing was outstanding for a retransmission time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It is kept (SunOS).
    Kept,
    /// Back to `segments`.
    Restarted {
        /// 1 in BSD, the initial window in RFC 5681.
        segments: u16,
        /// What is idle.
        since: IdleSince,
    },
    /// Halved for every time-out that passed, not below the initial window (RFC 2861; Linux).
    Decayed,
    /// Kept, and what it lets out is spread over a round trip at the rate last measured until the first
    /// acknowledgement (`papers/p-http`, section 2.4).
    Paced,
}

/// Since when a connection is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleSince {
    /// Since it sent data.
    Sent,
    /// Since anything arrived, as BSD counts it: the request that ends the idling hides it, so that a server
    /// never restarts (RFC 5681, section 4.1).
    Received,
}

/// When the retransmission timer runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rto {
    /// How it is computed.
    pub estimator: Estimator,
    /// Before anything has been measured.
    pub initial: Duration,
    /// At least.
    pub least: Duration,
    /// At most, backed off.
    pub most: Duration,
    /// How often a SYN is sent again before giving up.
    pub syn_retries: u8,
    /// How often data is sent again before giving up.
    pub data_retries: u8,
}

/// How the retransmission time-out is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// In ticks of a slow clock, one segment at a time (BSD: 500 ms).
    Coarse(Ticks),
    /// RFC 6298, from every acknowledgement that allows it.
    Fine,
    /// The same, but `least` holds for the variance, not for the sum (Linux).
    FineVariance,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// How long the end that closed first remembers (twice the maximum segment lifetime).
    pub time_wait: Duration,
    /// Whether closing with something unread resets (RFC 2525, section 2.17; Linux).
    pub unread_resets: bool,
    /// Whether a reset throws away what has arrived and was not yet read.
    pub reset_discards: bool,
}

/// How a handshake is cut short for a peer that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortcut {
    /// It is not.
    None,
    /// Transaction TCP (RFC 1644): connection counts; data and FIN with the SYN.
    Ttcp,
    /// TCP Fast Open (RFC 7413): cookies; data with the SYN.
    FastOpen,
    /// No handshake at all, nor proof of anything: ARDP's requests and answers in UDP datagrams, which have TCP's
    /// windows and timers (`papers/heidemann-model`, section II-C).
    Ardp,
}

impl Shortcut {
    /// What segments look like on the link.
    pub const fn framing(self) -> Framing {
        match self {
            Self::None | Self::Ttcp | Self::FastOpen => Framing::Tcp,
            Self::Ardp => Framing::Ardp,
        }
    }
}

impl ReceiveBuffer {
    /// The shift that its largest window needs to fit into 16 bits; at most 14 (RFC 7323, section 2.3).
    pub(super) fn scale(self) -> u8 {
        let most = match self {
            Self::Fixed(bytes) => bytes,
            Self::Growing { initial, most } => most.max(initial),
        };
        (0..14).find(|shift| u64::from(u16::MAX) << shift >= u64::from(most)).unwrap_or(14)
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
