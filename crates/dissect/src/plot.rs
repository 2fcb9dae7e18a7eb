//! Points of a time-sequence plot: data sent and acknowledged over time (papers/p-http#figure-1). Not a renderer.

use wire::Time;
use wire::packet::Flags;

use crate::sender::Sender;
use crate::{Segment, Side};

/// A connection's packets as points.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Time of the first packet.
    pub started: Time,
    /// Points in the order of the capture.
    pub points: Vec<Point>,
    /// Whether packets beyond the limit were left out.
    pub is_cut: bool,
    first: [Option<u64>; 2],
}

/// A packet on a plot. Sequence numbers are relative to the first byte captured in their direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its number in the capture.
    pub frame: u64,
    /// When it was captured.
    pub at: Time,
    /// Side that sent it.
    pub from: Side,
    /// Its first byte in the stream of its sender.
    pub start: i64,
    /// Bytes it carries.
    pub length: u64,
    /// Position that it acknowledges in the stream of its receiver.
    pub ack: Option<i64>,
    /// Window edge: position up to which it allows that side to send, where windows can be read.
    pub edge: Option<i64>,
    /// Its flags.
    pub flags: Flags,
}

/// Maximum number of points: several times what a screen can resolve.
const MAX_POINTS: usize = 20_000;

impl Plot {
    /// Creates a plot without points.
    pub const fn new(started: Time) -> Self {
        Self { started, points: Vec::new(), is_cut: false, first: [None; 2] }
    }

    /// Adds a packet. `sent` is the position up to which its sender had sent with it, and `peer` the receiver.
    pub fn add(&mut self, segment: &Segment<'_>, sent: u64, peer: &Sender) {
        if self.points.len() >= MAX_POINTS {
            self.is_cut = true;
            return;
        }
        let [client, server] = &mut self.first;
        let (own, other) = match segment.from {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        // The low halves of large numbers far from both ends of the range: their difference is exact.
        let low = |number: u64| u32::try_from(number & 0xffff_ffff).unwrap_or_default();
        let first = *own.get_or_insert(sent.saturating_sub(segment.length()));
        let start = i64::from(segment.tcp.seq.wrapping_sub(low(first)).cast_signed());
        // Before any packet of the other direction is known, the acknowledgement has no reference.
        let has_ack = segment.has(Flags::ACK) && peer.acknowledged > 0;
        let base = if has_ack { *other.get_or_insert(peer.acknowledged) } else { 0 };
        let relative = |number: u64| i64::try_from(number).ok()?.checked_sub(i64::try_from(base).ok()?);
        self.points.push(Point {
            frame: segment.frame,
            at: segment.at,
            from: segment.from,
            start,
            length: segment.length(),
            ack: has_ack.then(|| i64::from(segment.tcp.ack.wrapping_sub(low(base)).cast_signed())),
            edge: peer
                .window
                .filter(|_| has_ack)
                .and_then(|window| relative(peer.acknowledged + u64::from(window))),
            flags: segment.tcp.flags,
        });
    }
}
