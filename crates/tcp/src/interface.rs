//! Inputs and outputs of an endpoint: the calls of a socket and their results, as values.

use std::fmt;

use wire::{Duration, Time};

use crate::{Payload, Segment};

/// Input of an endpoint.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// The application connects.
    Open,
    /// A segment has arrived.
    Segment(&'a Segment),
    /// The application writes. The part that does not fit into the send buffer is blocked, and the application should
    /// then wait for [`Event::Written`].
    Write(Payload),
    /// The application writes and then closes its side: [`Input::Write`] and [`Input::Shutdown`] in one call (T/TCP's `MSG_EOF`).
    WriteLast(Payload),
    /// The application has written everything.
    Shutdown,
    /// The application has written everything, and will read nothing more.
    Close,
    /// The application aborts the connection: reset.
    Abort,
}

/// Output of an endpoint.
#[derive(Clone, Debug)]
pub enum Output {
    /// A segment to be sent.
    Transmit(Segment),
    /// A notification for the application.
    Event(Event),
    /// No further output; poll again at this time at the latest. `None`: no timer runs.
    Timeout(Option<Time>),
}

/// A notification for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is open.
    Connected,
    /// Data can be read.
    Readable,
    /// A blocked write is in the buffer.
    Written,
    /// The peer has written everything, and all of it has arrived.
    PeerFinished,
    /// Both sides have finished and no state is needed any more.
    Closed,
    /// The connection failed.
    Failed(Failure),
}

/// Failure that ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No listener at the peer.
    Refused,
    /// Reset by the peer.
    Reset,
    /// No response from the peer after all retransmissions.
    TimedOut,
}

/// State of a connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not open.
    Closed,
    /// A server before its first segment.
    Listen,
    /// The SYN is in flight.
    SynSent,
    /// The peer's SYN has arrived; our SYN-ACK is in flight.
    SynReceived,
    /// Open.
    Established,
    /// We have finished; our FIN is not acknowledged.
    FinWait1,
    /// We have finished; our FIN is acknowledged.
    FinWait2,
    /// The peer has finished.
    CloseWait,
    /// Both have finished; our FIN is not acknowledged.
    Closing,
    /// Both have finished, the peer first; our FIN is not acknowledged.
    LastAck,
    /// Both have finished, we first; the state is retained for twice the maximum segment lifetime.
    TimeWait,
}

/// Limit that prevents an endpoint from sending more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// None: all that was written has been sent.
    #[default]
    Nothing,
    /// The congestion window is full.
    CongestionWindow,
    /// The peer's window is full.
    ReceiveWindow,
    /// The application is blocked until the send buffer has space.
    SendBuffer,
    /// A short segment waits for an acknowledgement (RFC 896).
    Nagle,
    /// Segments are sent at intervals until the first acknowledgement arrives (`papers/p-http`, section 2.4).
    Pacing,
}

/// Statistics of an endpoint, as a probe reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionStats {
    /// State of the connection.
    pub state: State,
    /// Limit at the last attempt to send data.
    pub limit: Limit,
    /// The congestion window, in bytes.
    pub cwnd: u64,
    /// Slow start threshold, in bytes; `u64::MAX` if unlimited.
    pub ssthresh: u64,
    /// Data in flight in bytes, or whole segments' worth if segments are counted.
    pub in_flight: u64,
    /// Window that the peer last advertised, in bytes.
    pub peer_window: u64,
    /// The smoothed round trip, if one was measured.
    pub round_trip: Option<Duration>,
    /// Retransmission timeout, not backed off.
    pub rto: Duration,
    /// Deadline of the retransmission timer.
    pub retransmits_at: Option<Time>,
    /// Deadline of a delayed acknowledgement.
    pub acknowledges_at: Option<Time>,
}

/// RFC 9293's name in kebab-case.
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

/// The variant's name in kebab-case.
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
            Self::Refused => "connection refused",
            Self::Reset => "reset by the peer",
            Self::TimedOut => "timed out: no acknowledgement from the peer",
        })
    }
}
