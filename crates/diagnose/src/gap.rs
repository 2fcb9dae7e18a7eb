//! A gap: the time between two events of a connection that moved it on, with all that is known of why the second did
//! not come earlier.
//!
//! The events are segments that carry something (data, SYN, FIN) or end the connection; acknowledgements alone move
//! nothing on, but are what senders wait for. Every gap is judged when it ends, by the rules in `causes/`, and nothing
//! of it is kept: memory does not grow with the packets. Not the judgement: only facts, each as the sender saw it.

use wire::{Duration, Time};

use crate::causes::opening::MessageProgress;
use crate::flight::Flight;
use crate::sender::Ack;
use crate::side::Side;

/// The facts of one gap.
#[derive(Clone, Debug)]
pub(crate) struct Gap {
    /// The event before: when, and its packet.
    pub(crate) from: Mark,
    /// Kind of the event before.
    pub(crate) before: GapStart,
    /// The event that ended it.
    pub(crate) to: Mark,
    /// Side of the segment that ended it: the sender in all that follows; its peer is the receiver.
    pub(crate) side: Side,
    pub(crate) end: GapEnd,
    /// Payload of the segment that ended it.
    pub(crate) length: u64,
    pub(crate) has_fin: bool,
    /// The sender's largest segment.
    pub(crate) mss: u64,

    /// Data in flight before the sender had heard anything new.
    pub(crate) flight: Flight,
    /// Bytes still in flight when it sent.
    pub(crate) in_flight: u64,
    /// Its largest flight so far, and since it last repaired a loss.
    pub(crate) largest_flight: u64,
    pub(crate) largest_since_loss: u64,
    /// Bytes it was allowed to send before it heard anything new; `None` where windows cannot be read.
    pub(crate) headroom: Option<u64>,
    /// Whether that, or the minimum of a window of unknown scale, had room for the segment.
    pub(crate) has_room: bool,
    /// The window it was given then.
    pub(crate) window: Option<u64>,
    /// The widest that it was ever given.
    pub(crate) widest: Option<u64>,
    /// The acknowledgement on which it sent, if it sent on one.
    pub(crate) trigger: Option<Ack>,
    /// By how much the receiver delayed that.
    pub(crate) late: Option<Duration>,
    /// Acknowledgements that reached it in this gap.
    pub(crate) acks: u32,
    /// Bytes for which earlier acknowledgements in this gap had made room that was not used.
    pub(crate) freed: u64,
    /// Whether the sender's acknowledgements were captured at all.
    pub(crate) is_acknowledged: bool,
    /// The first acknowledgement without data that the sender itself sent in the gap, of all it had been sent.
    pub(crate) own_ack: Option<Mark>,
    /// By how much that, and the segment that ended the gap, came later than the path needs, by the sender's timestamps.
    pub(crate) own_ack_late: Option<Duration>,
    pub(crate) late_arrival: Option<Duration>,
    /// When the last acknowledgement reached the sender.
    pub(crate) heard_at: Option<Time>,
    /// Whether the sender has acknowledged all that its peer sent.
    pub(crate) has_all: bool,
    /// Whether its peer has acknowledged all that it sent.
    pub(crate) is_heard: bool,
    /// Bytes of the peer's last message that were in flight together.
    pub(crate) requested: u64,
    /// Whether the sender has sent short segments while another was unacknowledged.
    pub(crate) sends_shorts: bool,
    /// Whether the segment was generated together with what the sender had sent before (TSval).
    pub(crate) is_together: bool,
    /// Whether the segment, or the last acknowledgement before it, echoes a later stamp (TSecr) than any that was captured.
    pub(crate) echoes_unseen: bool,
    /// Whether data is missing before the segment, or of its peer.
    pub(crate) is_behind_hole: bool,
    /// Whether its peer's data was captured at all.
    pub(crate) is_peer_seen: bool,
    /// Whether the segment is as small as a TLS alert or a frame that ends a connection.
    pub(crate) is_control: bool,

    /// Facts about the path.
    pub(crate) path: PathFacts,
    /// The sender's activity since it last paused.
    pub(crate) burst: Burst,
    /// Whether the sender has lost anything yet.
    pub(crate) has_lost: bool,
    /// The first packet that it retransmitted in this gap though the data had arrived.
    pub(crate) needless: Option<Mark>,
    /// For how long it had heard nothing new.
    pub(crate) silence: Option<Duration>,
    /// Retransmission timeout of its timer on Linux.
    pub(crate) usual_timeout: Duration,
    /// The loss that it was still repairing, by how it had noticed.
    pub(crate) recovering: Option<crate::cause::Cause>,
    /// Facts from the messages.
    pub(crate) talk: MessageFacts,
    /// Whether the protocol is one of requests and responses: HTTP, or TLS, which mostly carries it.
    pub(crate) has_turns: bool,
    /// Whether the server has sent something on this connection that no one asked for.
    pub(crate) has_pushed: bool,
    /// Short segments of the peer since the sender spoke last: each was written by itself.
    pub(crate) pieces: u16,
}

/// A moment and the packet that marks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: Time,
    pub(crate) frame: u64,
}

/// Event that began a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GapStart {
    /// The first packet of the capture: no matter which.
    Nothing,
    /// A segment of the handshake, or the acknowledgement that ends it.
    Handshake(Side),
    /// Data.
    Data(Side),
    /// Data that was not captured, by its acknowledgement.
    Unseen(Side),
    /// The end of a side's data, or of everything.
    Ending,
}

/// Event that ended a gap.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GapEnd {
    /// Data that continues what was sent.
    Data,
    /// A segment of the handshake; `again` if it was sent before.
    Handshake {
        /// Since then.
        again: Option<Duration>,
    },
    /// Data that was sent before, or whose place was passed over.
    Repair(Repair),
    /// No more data from the sender.
    Fin,
    /// No more of anything.
    Reset,
}

/// Facts about data that came late or twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repair {
    /// The packet that carried it before, or showed that it was missing.
    pub(crate) earlier: Mark,
    /// Since it was last sent, or since it was missed.
    pub(crate) since: Duration,
    /// For how long the sender's timer had run: since then, or since the sender last heard something new.
    pub(crate) silence: Duration,
    /// For how long the sender had heard nothing at all.
    pub(crate) quiet: Duration,
    /// Number of times it was sent before, as far as was seen.
    pub(crate) times: u32,
    /// Whether the data was captured before.
    pub(crate) was_seen: bool,
    /// Duplicate ACKs for it in a row.
    pub(crate) duplicates: u32,
    /// Whether one of them reported data behind it (SACK).
    pub(crate) is_sacked: bool,
    /// Whether nothing behind it was sent.
    pub(crate) is_last: bool,
    /// Whether the sender was already repairing.
    pub(crate) in_recovery: Option<crate::cause::Cause>,
    /// Minimum retransmission timeout of the sender.
    pub(crate) timeout: Duration,
}

/// The path, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathFacts {
    /// From the place of the capture to the sender and back.
    pub(crate) to_sender: Option<Duration>,
    /// By how much that varies.
    pub(crate) noise: Duration,
    /// Whether the capture was taken at the sender.
    pub(crate) is_at_sender: bool,
    /// Whether acknowledgements of what the sender sent show a standing queue.
    pub(crate) has_queue: bool,
    /// And to the receiver and back.
    pub(crate) to_receiver: Option<Duration>,
    /// The round trip to a server whose acknowledgements a proxy sends.
    pub(crate) beyond_proxy: Option<Duration>,
    /// There and back, as far as it is known.
    pub(crate) round_trip: Duration,
    /// Time that the slowest link needs for the segment that ended the gap.
    pub(crate) pace: Duration,
    /// Time it needs for a full segment, if that is known.
    pub(crate) segment: Option<Duration>,
    /// Time it needs for all data still in flight to the sender, and for that segment; zero where the capture was taken
    /// at the sender.
    pub(crate) queue: Duration,
    /// Whether the acknowledgement on which it was sent shows a queue on the path: enough was sent to fill it.
    pub(crate) is_full: bool,
    /// Whether that queue takes as long as the path without it: the link is never idle.
    pub(crate) is_saturated: bool,
}

/// A sender's activity since it had nothing in flight for a while.
#[derive(Clone, Debug, Default)]
pub(crate) struct Burst {
    /// Duration of the silence before it.
    pub(crate) silence: Duration,
    /// The timer that it would have been measured by.
    pub(crate) timeout: Duration,
    /// The largest flight before.
    pub(crate) largest_before: u64,
    /// Where it began.
    pub(crate) start: u64,
    /// The flights at which it had to wait for an acknowledgement, the latest last.
    pub(crate) rounds: Rounds,
    /// The smallest flight of them since the last repair, and when.
    pub(crate) since_loss: Option<(Time, u64)>,
    /// Its time, against that of an opening window.
    pub(crate) course: MessageProgress,
    /// Whether a head alone filled the window that it began with.
    pub(crate) began_narrow: bool,
}

/// The last few flights at which a sender stopped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    flights: [u32; 8],
    pub(crate) count: usize,
}

impl Rounds {
    /// Another stop.
    pub(crate) fn push(&mut self, flight: u64) {
        self.flights.rotate_right(1);
        self.flights[0] = u32::try_from(flight).unwrap_or(u32::MAX);
        self.count += 1;
    }

    /// The latest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = u64> {
        self.flights.into_iter().map(u64::from).take(self.count)
    }
}

/// Facts from the messages of the connection, as far as they can be read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MessageFacts {
    /// Whether the sender was within a message; `None` if that cannot be known.
    pub(crate) is_within: Option<bool>,
    /// Whether only the end of the connection will end that message.
    pub(crate) is_until_close: bool,
    /// Whether the server sends when it likes.
    pub(crate) is_pushed: bool,
    /// Requests without a complete response; `None` if that cannot be known.
    pub(crate) unanswered: Option<usize>,
    /// Whether the last request expects `100 Continue` before it sends its body.
    pub(crate) expects_continue: bool,
    /// When it sent that, if it has the interim response now and its body has not begun.
    pub(crate) permitted: Option<Mark>,
}

impl Gap {
    /// All of it.
    pub(crate) fn duration(&self) -> Duration {
        self.to.at.since(self.from.at)
    }

    /// Whether the sender went on with what it was sending itself.
    pub(crate) fn continues(&self) -> bool {
        self.before == GapStart::Data(self.side)
    }

    /// Whether an earlier acknowledgement had made room that was not used.
    pub(crate) const fn freed_early(&self) -> bool {
        self.freed > 0
    }

    /// Whether the segment is a FIN without data: the application has nothing to wait for.
    pub(crate) const fn is_bare_fin(&self) -> bool {
        self.has_fin && self.length == 0
    }

    /// Whether the segment is smaller than it may be.
    pub(crate) const fn is_short(&self) -> bool {
        self.length < self.mss
    }

    /// Returns the bytes sent since the sender's burst began.
    pub(crate) const fn sent_in_burst(&self) -> u64 {
        (self.flight.start + self.flight.bytes).saturating_sub(self.burst.start)
    }

    /// The acknowledgement that the sender, in the middle of sending, waited for.
    pub(crate) fn awaited(&self) -> Option<&Ack> {
        let waited = matches!(self.end, GapEnd::Data) && self.continues() && self.flight.bytes > 0;
        self.trigger.as_ref().filter(|_| waited && !self.was_free())
    }

    /// Returns whether neither Nagle's algorithm nor a window can have held the segment, short as it is: the sender has
    /// sent short ones before, with others unacknowledged (TCP_NODELAY), and had as much in flight.
    fn was_free(&self) -> bool {
        let has_window = self.flight.bytes + self.length <= self.largest_since_loss.max(2 * self.mss);
        self.sends_shorts && self.is_short() && has_window
    }

    /// Whether a sender that waited went on as soon as the acknowledgement had come: kernels need no more than some
    /// hundred microseconds, and the rest is the path's jitter.
    pub(crate) fn is_prompt(&self) -> bool {
        const MAX_JITTER: Duration = Duration::from_millis(5);
        let least = Duration::from_micros(if self.path.is_at_sender { 300 } else { 1_000 });
        let bound = (self.path.round_trip / 4).clamp(least, MAX_JITTER);
        self.trigger.is_some() && self.reaction() <= bound
    }

    /// From when the acknowledgement that it waited for had come to the sender until it sent.
    pub(crate) fn reaction(&self) -> Duration {
        let away = self.path.to_sender.unwrap_or_default();
        self.trigger.map(|ack| self.to.at.since(ack.at).saturating_sub(away)).unwrap_or_default()
    }

    /// Returns the part of the gap in which the path was idle: near its sender a flight is seen before the slowest link
    /// has sent it.
    pub(crate) fn idle(&self) -> Duration {
        let sending = self.path.segment.unwrap_or_default() * self.flight.segments;
        let sent_in = self.flight.since.map_or(sending, |since| self.from.at.since(since));
        self.duration().saturating_sub(sending.saturating_sub(sent_in))
    }

    /// Whether the slowest link needs at least a round trip for the flight: then it is never idle, and no window held the sender.
    pub(crate) fn fills_path(&self) -> bool {
        let of_flight = |time: Duration, bytes: u64| {
            let nanos =
                u128::from(time.as_nanos()) * u128::from(self.flight.bytes) / u128::from(bytes.max(1));
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        };
        let by_pace = self.path.segment.map(|segment| of_flight(segment, self.mss));
        // Before the pace is known: what was ahead of an acknowledged segment had to be sent first.
        let by_queue = || {
            let (ack, least) = self.trigger.as_ref().zip(self.path.to_receiver)?;
            let queued = ack.after()?.saturating_sub(least);
            (ack.ahead > 0).then(|| of_flight(queued, ack.ahead.into()))
        };
        by_pace.or_else(by_queue).is_some_and(|sending| sending >= self.path.round_trip)
    }

    /// Whether it stopped at the same flight as `before`, to within half a segment.
    pub(crate) const fn is_level(&self, before: u64) -> bool {
        2 * before.abs_diff(self.flight.bytes) <= self.mss
    }

    /// Whether data flowed, with no more of a pause than the path itself makes.
    pub(crate) fn is_flowing(&self) -> bool {
        // A quarter of a round trip is no stall, and below a millisecond it is imperceptible.
        let quarter = (self.path.round_trip / 4).min(Duration::from_millis(10));
        let still = quarter.max(Duration::from_millis(1)).max(self.path.pace * 2);
        self.duration() <= still
    }
}

/// A count for people: `1 segment`, `2 segments`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A span for people: `9.3 ms`, `93 ms`, `12.4 s`, `4.5 min`.
pub(crate) fn millis(span: Duration) -> String {
    match span.as_millis_f64() {
        millis if millis < 10.0 => format!("{millis:.1} ms"),
        millis if millis < 10_000.0 => format!("{millis:.0} ms"),
        millis if millis < 120_000.0 => format!("{:.1} s", millis / 1e3),
        millis => format!("{:.1} min", millis / 60e3),
    }
}
