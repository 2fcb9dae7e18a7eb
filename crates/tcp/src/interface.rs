//! What is told to an endpoint, and what it says: the calls of a socket and their answers, as values.
//!
//! Not what it does with them (`connection`, `input`, `output`).

use std::fmt;

use wire::{Duration, Time};

use crate::{Payload, Segment};

/// What is told to an endpoint.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// The application connects.
    Open,
    /// A segment has arrived.
    Segment(&'a Segment),
    /// The application writes. What does not fit into the send buffer waits, and the application should wait with it
    /// for [`Event::Written`].
    Write(Payload),
    /// The application writes its last: [`Input::Write`] and [`Input::Shutdown`] in one call (T/TCP's `MSG_EOF`).
    WriteLast(Payload),
    /// The application has written everything.
    Shutdown,
    /// The application has written everything, and will not read any more.
    Close,
    /// The application gives up: reset.
    Abort,
}

/// What an endpoint says.
#[derive(Clone, Debug)]
pub enum Output {
    /// This segment leaves.
    Transmit(Segment),
    /// Something the application should know.
    Event(Event),
    /// Nothing more. Poll again at this time at the latest.
    Timeout(Option<Time>),
}

/// Something the application should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is open.
    Connected,
    /// Something can be read.
    Readable,
    /// A write that waited is in the buffer.
    Written,
    /// The peer has written everything, and all of it has arrived.
    PeerFinished,
    /// Both sides have finished and nothing needs to be remembered any more.
    Closed,
    /// It ended otherwise.
    Failed(Failure),
}

/// How a connection ends that does not close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody listens there.
    Refused,
    /// The peer reset it.
    Reset,
    /// The peer has not answered, however often it was asked.
    TimedOut,
}

/// Where a connection stands (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not yet, or no longer.
    Closed,
    /// A server's, before its first segment.
    Listen,
    /// The SYN is on its way.
    SynSent,
    /// The SYN has come, ours is on its way.
    SynReceived,
    /// Open.
    Established,
    /// We have finished; not acknowledged.
    FinWait1,
    /// We have finished; acknowledged.
    FinWait2,
    /// The peer has finished.
    CloseWait,
    /// Both have finished; ours is not acknowledged.
    Closing,
    /// Both have finished, the peer first; ours is not acknowledged.
    LastAck,
    /// Both have finished, we first: we remember for a while.
    TimeWait,
}

/// What keeps an endpoint from sending more than it has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Nothing: all that was written has been sent.
    #[default]
    Nothing,
    /// The congestion window is full.
    CongestionWindow,
    /// The peer's window is full.
    ReceiveWindow,
    /// The application waits with the rest until the send buffer has room.
    SendBuffer,
    /// A short segment waits for an acknowledgement (RFC 896).
    Nagle,
    /// Segments leave at intervals until the first acknowledgement comes (`papers/p-http`, section 2.4).
    Pacing,
}

/// What a probe of an endpoint shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vitals {
    /// Where it stands.
    pub state: State,
    /// What keeps it from sending more, when it last tried to send data.
    pub limit: Limit,
    /// The congestion window, in bytes.
    pub cwnd: u64,
    /// Where slow start ends, in bytes; `u64::MAX` if nowhere.
    pub ssthresh: u64,
    /// What counts against the window: bytes, or whole segments' worth if segments are counted.
    pub in_flight: u64,
    /// The window that the peer advertised last, in bytes.
    pub peer_window: u64,
    /// The smoothed round trip, if one was measured.
    pub round_trip: Option<Duration>,
    /// The retransmission time-out, not backed off.
    pub rto: Duration,
    /// When the retransmission timer runs out.
    pub retransmits_at: Option<Time>,
    /// When a delayed acknowledgement leaves.
    pub acknowledges_at: Option<Time>,
}

/// As RFC 9293 writes it, in kebab-case.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::Listen => "listen",
            Self::SynSent => "syn-sent",
            Self::SynReceived => "syn-received",
            Self::Established => "established",
            Self::FinWait1 => "fin-wait-1",
            Self::FinWait2 => "fin-wait-2",
            Self::CloseWait => "close-wait",
            Self::Closing => "closing",
            Self::LastAck => "last-ack",
            Self::TimeWait => "time-wait",
        })
    }
}

/// In kebab-case.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing",
            Self::CongestionWindow => "congestion-window",
            Self::ReceiveWindow => "receive-window",
            Self::SendBuffer => "send-buffer",
            Self::Nagle => "nagle",
            Self::Pacing => "pacing",
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "refused: nobody listens there",
            Self::Reset => "reset by the peer",
            Self::TimedOut => "timed out: the peer has not answered",
        })
    }
}
