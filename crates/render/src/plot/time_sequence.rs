//! Packets in time, as in xplot: data sent and acknowledged over time, with the stalls shaded.
//!
//! Packets and stalls flow in, from a simulation or a capture. Sequence numbers are relative (a SYN is 0) and
//! do not wrap; windows are scaled. One direction is drawn, the data of one end, as one end sees it. The caller
//! supplies the causes of stalls. Read in this order: the input here, [`track`] for the derived values, [`picture`] and
//! [`xplot`] for the two output files.

mod key;
pub mod picture;
mod shade;
pub mod track;
pub mod xplot;

use wire::packet::Flags;
use wire::{Duration, Time};

/// One run or one capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Title, in one line.
    pub title: String,
    /// End whose view is drawn.
    pub seen_by: End,
    /// End whose data is drawn.
    pub sender: End,
    /// Packets in the order in which they were seen, at either end or at both.
    pub packets: Vec<Packet>,
    /// Congestion window of the sender, where it is known: each change, sorted by time.
    pub windows: Vec<CongestionWindow>,
    /// Stalls to shade.
    pub stalls: Vec<Stall>,
}

/// Congestion window of a sender, from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionWindow {
    /// Time since the picture's beginning.
    pub at: Time,
    /// Its connection, as in [`Packet::connection`].
    pub connection: u64,
    /// Window, in bytes.
    pub bytes: u64,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// A packet, as seen once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time since the picture's beginning.
    pub at: Time,
    /// Its connection: any number that identifies it.
    pub connection: u64,
    /// Sending end.
    pub sender: End,
    /// Point of observation.
    pub seen: ObservationPoint,
    /// Sequence number of its first byte.
    pub sequence: u64,
    /// Payload, in bytes.
    pub bytes: u64,
    /// Acknowledgement number, if it acknowledges.
    pub acknowledged: Option<u64>,
    /// Receive window of its sender, in bytes; `None` where that is unknown.
    pub window: Option<u64>,
    /// TCP flags.
    pub flags: Flags,
    /// Its number in a capture.
    pub number: Option<u64>,
}

/// Point of observation of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservationPoint {
    /// At the sending end.
    Sent,
    /// At the receiving end.
    Received,
    /// At the point of its loss.
    Lost,
}

/// A stall: a time without useful progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    /// Cause, in kebab-case.
    pub name: String,
    /// Beginning.
    pub at: Time,
    /// Duration.
    pub lost: Duration,
    /// Whether it is no fault, but belongs to the path or to the protocol's start.
    pub is_note: bool,
    /// Evidence, for its tooltip; may be empty.
    pub evidence: String,
}

impl End {
    /// Its name.
    const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    /// Name of its data on the axis.
    const fn data_name(self) -> &'static str {
        match self {
            Self::Client => "request",
            Self::Server => "response",
        }
    }
}

impl Packet {
    /// Whether an end has it in its own capture.
    fn is_seen_by(&self, end: End) -> bool {
        let is_own = self.sender == end;
        match self.seen {
            ObservationPoint::Sent => is_own,
            ObservationPoint::Received => !is_own,
            // Neither end sees a loss; the plot shows it all the same.
            ObservationPoint::Lost => true,
        }
    }
}

/// Milliseconds in a readable form.
fn millis(millis: f64) -> String {
    match millis {
        ..10.0 => format!("{millis:.1} ms"),
        ..10_000.0 => format!("{millis:.0} ms"),
        _ => format!("{:.1} s", millis / 1e3),
    }
}
