//! Packets in time, as xplot drew them: what is sent and how far it is acknowledged, over time, with the stalls shaded.
//!
//! In flow packets and stalls, wherever they come from: a simulation, a capture. Numbers are relative (a SYN is 0) and
//! do not wrap; windows are scaled. Drawn is one direction, what one end sends, as one end sees it. Why something
//! stalled is the caller's. Read in this order: the input here, [`track`] for what follows from it, [`picture`] and
//! [`xplot`] for the two files it becomes.

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
    /// What it shows, in a line.
    pub title: String,
    /// Whose sightings are drawn.
    pub seen_by: End,
    /// Whose bytes are drawn.
    pub sender: End,
    /// In the order in which they were seen, at either end or at both.
    pub packets: Vec<Packet>,
    /// The congestion window of the one whose bytes are drawn, where it is known: each change, in order of time.
    pub windows: Vec<CongestionWindow>,
    /// What is shaded.
    pub stalls: Vec<Stall>,
}

/// How much a sender allows itself to have on its way, from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionWindow {
    /// Since the picture's beginning.
    pub at: Time,
    /// Whose it is, as in [`Packet::connection`].
    pub connection: u64,
    /// How large it is.
    pub bytes: u64,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It asks.
    Client,
    /// It answers.
    Server,
}

/// A packet, seen once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When, since the picture's beginning.
    pub at: Time,
    /// Whose it is: any number that all packets of a connection share, and no others.
    pub connection: u64,
    /// Who sent it.
    pub sender: End,
    /// Where it was seen.
    pub seen: Seen,
    /// The number of its first byte.
    pub sequence: u64,
    /// How many bytes it carries.
    pub bytes: u64,
    /// The number of the next byte expected, where it acknowledges.
    pub acknowledged: Option<u64>,
    /// How many bytes more its sender is ready to take; `None` where that cannot be known.
    pub window: Option<u64>,
    /// SYN, FIN and the like.
    pub flags: Flags,
}

/// Where a packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// At the end that sent it.
    Sent,
    /// At the end that it was for.
    Received,
    /// For the last time.
    Lost,
}

/// A time in which nothing useful happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    /// As a reader knows it, in kebab-case.
    pub name: String,
    /// When it began.
    pub at: Time,
    /// How long it was.
    pub lost: Duration,
}

impl End {
    /// What its bytes are.
    const fn says(self) -> &'static str {
        match self {
            Self::Client => "bytes of requests",
            Self::Server => "bytes of answers",
        }
    }
}

impl Packet {
    /// Whether one end has it in its own capture.
    fn is_seen_by(&self, end: End) -> bool {
        let is_own = self.sender == end;
        match self.seen {
            Seen::Sent => is_own,
            Seen::Received => !is_own,
            // What becomes of it is known to nobody, and worth knowing.
            Seen::Lost => true,
        }
    }
}
