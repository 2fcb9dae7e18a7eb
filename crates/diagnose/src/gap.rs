//! A gap: the time between two consecutive events of a connection, with all known facts on why the second event did not
//! come earlier.
//!
//! Events are segments that carry something (data, SYN, FIN) or end the connection. Acknowledgements alone are not
//! events, but senders wait for them. Each gap is judged when it ends, by the rules in `causes/`, and then discarded:
//! memory does not grow with the packets. Not the judgement: only facts, each as the sender saw it.

use wire::{Duration, Time};

use dissect::exchange::MessageFacts;
use dissect::flight::{Flight, Rounds};
use dissect::sender::Ack;
use dissect::{Mark, Side};

use crate::cause::Cause;
use crate::finding::{Confidence, Finding, Severity};

/// The part of a wait that is common to all transports: TCP's facts are those of a [`Gap`], those of QUIC and DHTTP what `dissect`
/// read of their datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// Time and packet of the event before.
    pub(crate) from: Mark,
    /// The event that ended it.
    pub(crate) to: Mark,
    /// Side that sent the packet that ended it, or that was held up.
    pub(crate) side: Side,
}

impl Wait {
    /// Returns its duration.
    pub(crate) fn duration(&self) -> Duration {
        self.to.at.since(self.from.at)
    }

    /// Returns the finding that all of it is lost to a cause, as its two packets show, and that a fix saves it.
    pub(crate) fn finding(&self, cause: Cause, evidence: String) -> Finding {
        Finding {
            cause,
            severity: Severity::most(cause),
            confidence: Confidence::High,
            side: self.side,
            at: self.from.at,
            lost: self.duration(),
            saving: Some(self.duration()),
            packets: vec![self.from.frame, self.to.frame],
            evidence,
        }
    }
}

/// The facts of one gap of a TCP connection.
#[derive(Clone, Debug)]
pub(crate) struct Gap {
    /// The two events, and the sender in all that follows; its peer is the receiver.
    pub(crate) wait: Wait,
    /// Kind of the event before.
    pub(crate) before: GapStart,
    pub(crate) end: GapEnd,
    /// Payload of the segment that ended it.
    pub(crate) length: u64,
    pub(crate) has_fin: bool,
    /// The sender's largest segment.
    pub(crate) mss: u64,
    pub(crate) is_mss_agreed: bool,

    /// Data in flight before the sender had received anything new.
    pub(crate) flight: Flight,
    /// Bytes still in flight when it sent.
    pub(crate) in_flight: u64,
    /// Its largest flight so far, and the largest since it last repaired a loss.
    pub(crate) largest_flight: u64,
    pub(crate) largest_since_loss: u64,
    /// Bytes it was allowed to send before it received anything new; `None` where windows cannot be read.
    pub(crate) headroom: Option<u64>,
    /// Whether that, or the minimum reach of a window of unknown scale, allowed the segment.
    pub(crate) has_room: bool,
    /// The window that it had been offered by then.
    pub(crate) window: Option<u64>,
    /// The same, with what it received in the gap.
    pub(crate) window_now: Option<u64>,
    /// The largest window that it was ever offered.
    pub(crate) widest: Option<u64>,
    /// The acknowledgement that triggered its segment, if one did.
    pub(crate) trigger: Option<Ack>,
    /// By how much the receiver delayed that.
    pub(crate) late: Option<Duration>,
    /// Acknowledgements that reached it in this gap.
    pub(crate) acks: u32,
    /// Bytes that earlier acknowledgements in this gap had allowed and that it did not use.
    pub(crate) freed: u64,
    /// The same, if the path had delayed these acknowledgements by as much as it varies.
    pub(crate) surely_freed: u64,
    /// Whether the sender's acknowledgements were captured at all.
    pub(crate) is_acknowledged: bool,
    /// The first acknowledgement without data that the sender itself sent in the gap and that covers everything it had
    /// received.
    pub(crate) own_ack: Option<Mark>,
    /// Delay of that acknowledgement, and of the segment that ended the gap, beyond what the path needs, by the
    /// sender's timestamps.
    pub(crate) own_ack_late: Option<Duration>,
    pub(crate) late_arrival: Option<Duration>,
    /// Whether that acknowledgement and the segment were generated in the same tick of a fast clock (TSval).
    pub(crate) is_with_own_ack: bool,
    /// When the last acknowledgement reached the sender.
    pub(crate) last_ack_at: Option<Time>,
    /// Whether the sender has acknowledged all that its peer sent.
    pub(crate) has_all: bool,
    /// Whether its peer has acknowledged everything that it sent.
    pub(crate) is_heard: bool,
    /// Bytes of the peer's last message that were in flight together.
    pub(crate) requested: u64,
    /// Whether both SYNs scale windows.
    pub(crate) has_scale: bool,
    /// Whether the sender has sent short segments while other data was unacknowledged.
    pub(crate) sends_shorts: bool,
    /// Whether the segment was generated together with the sender's previous segment (TSval).
    pub(crate) is_together: bool,
    /// Whether the segment, or the last acknowledgement before it, echoes a later timestamp (TSecr) than any captured.
    pub(crate) echoes_unseen: bool,
    /// Whether an acknowledgement that seemed to have arrived had not, as an echo (TSecr) shows: the path was slower.
    pub(crate) acks_were_late: bool,
    /// Whether the sender's timestamps advance as no clock does: the times of the capture are not those of its packets.
    pub(crate) is_clock_unlike: bool,
    /// Whether data is missing before the segment, or in its peer's stream.
    pub(crate) is_behind_hole: bool,
    /// Number of its packets in the gap that were not captured, as their IP IDs show.
    pub(crate) skipped: u32,
    /// Whether its IP IDs show that all of its packets were captured.
    pub(crate) is_complete: bool,
    /// Whether its peer's data was captured at all.
    pub(crate) is_peer_seen: bool,
    /// Whether the segment is as small as a TLS alert or a frame that closes a connection.
    pub(crate) is_control: bool,

    /// Facts about the path.
    pub(crate) path: PathFacts,
    /// The sender's activity since it last paused.
    pub(crate) burst: Burst,
    /// Whether the sender has lost anything yet.
    pub(crate) has_lost: bool,
    /// The same of either side.
    pub(crate) has_path_lost: bool,
    /// Whether a silence looked like a timeout, though the lost packet was not captured.
    pub(crate) may_have_lost: bool,
    /// The first packet that it retransmitted in this gap though the data had arrived.
    pub(crate) needless: Option<Mark>,
    /// Whether that was the end of its flight.
    pub(crate) is_needless_of_end: bool,
    /// Duration for which it had received nothing new.
    pub(crate) silence: Option<Duration>,
    /// Retransmission timeout that Linux would use.
    pub(crate) usual_timeout: Duration,
    /// Whether it may probe for the end of a flight: only where both sides permit SACK (RFC 8985, section 7).
    pub(crate) may_probe: bool,
    /// The loss that it was still repairing, by the way in which it was detected: when it sent, and when it stopped.
    pub(crate) recovering: Option<Cause>,
    pub(crate) was_recovering: Option<Cause>,
    /// Facts from the messages of the connection.
    pub(crate) messages: MessageFacts,
    /// Whether the server has sent unsolicited data on this connection.
    pub(crate) has_pushed: bool,
    /// Whether the segment responds to the client's last message, as its first bytes or the handshake of TLS show.
    pub(crate) is_response: bool,
    /// Whether the client is due within a TLS handshake.
    pub(crate) is_within_handshake: bool,
    /// Whether it is the first data of the server, after the client's.
    pub(crate) is_first_response: bool,
    /// Number of short segments of the peer since the sender last sent: each was a separate write.
    pub(crate) pieces: u16,
}

/// Event that began a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GapStart {
    /// The first packet of the capture, of whatever kind.
    Nothing,
    /// A segment of the handshake, or the acknowledgement that completes it.
    Handshake(Side),
    /// Data.
    Data(Side),
    /// Data that was not captured, known by its acknowledgement.
    Unseen(Side),
    /// A FIN or a reset.
    Ending,
}

/// Event that ended a gap.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GapEnd {
    /// Data that continues the stream.
    Data,
    /// A segment of the handshake.
    Handshake {
        /// The transmission before, if it is a retransmission.
        previous: Option<Mark>,
    },
    /// Retransmitted data, or data that fills a hole.
    Repair(Repair),
    /// A FIN.
    Fin,
    /// A reset.
    Reset,
}

/// Facts about data that came late or twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repair {
    /// The packet that carried it before, or showed that it was missing.
    pub(crate) earlier: Mark,
    /// Time since it was last sent, or since it was found missing.
    pub(crate) since: Duration,
    /// Duration for which the sender's timer had run: since then, or since the sender last received something new.
    pub(crate) silence: Duration,
    /// Duration for which the sender had received nothing at all.
    pub(crate) quiet: Duration,
    /// Number of times it was sent before, as far as captured.
    pub(crate) times: u32,
    /// Whether the data was captured before.
    pub(crate) was_seen: bool,
    /// Duplicate ACKs for it in a row.
    pub(crate) duplicates: u32,
    /// Whether one of them reported data behind it (SACK).
    pub(crate) is_sacked: bool,
    /// Whether nothing after it was sent.
    pub(crate) is_last: bool,
    /// The cause of the loss that the sender was already repairing.
    pub(crate) in_recovery: Option<Cause>,
    /// Minimum retransmission timeout of the sender.
    pub(crate) timeout: Duration,
    /// Latest time of a probe for the end of its flight.
    pub(crate) latest_probe: Duration,
    /// Time that data waited in a full queue before the slowest link, which its sender kept busy.
    pub(crate) overflow: Option<Duration>,
    /// When the message behind it ended, if its sender has paused since then and sent more.
    pub(crate) message_end: Option<Time>,
}

/// Facts about the path for a gap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathFacts {
    /// Round trip from the point of capture to the sender.
    pub(crate) to_sender: Option<Duration>,
    /// Variation of that round trip.
    pub(crate) noise: Duration,
    /// Whether the capture was taken at the sender.
    pub(crate) is_at_sender: bool,
    /// Whether acknowledgements of what the sender sent show a standing queue.
    pub(crate) has_queue: bool,
    /// Round trip from the point of capture to the receiver.
    pub(crate) to_receiver: Option<Duration>,
    /// The round trip to a server whose acknowledgements a proxy sends.
    pub(crate) beyond_proxy: Option<Duration>,
    /// Round trip between sender and receiver, as far as known.
    pub(crate) round_trip: Duration,
    /// Time that the slowest link needs for the segment that ended the gap.
    pub(crate) pace: Duration,
    /// Time it needs for a full segment, if known.
    pub(crate) segment: Option<Duration>,
    /// Time it needs for all data still in flight to the sender, and for that segment; zero where the capture was taken
    /// at the sender.
    pub(crate) queue: Duration,
    /// Whether the acknowledgement on which it was sent shows a queue on the path: enough was sent to fill it.
    pub(crate) is_full: bool,
    /// Whether that queue adds as much as the round trip without it: the link is never idle.
    pub(crate) is_saturated: bool,
}

/// A sender's activity since it last had nothing in flight for a while.
#[derive(Clone, Debug, Default)]
pub(crate) struct Burst {
    /// Duration of the silence before it.
    pub(crate) silence: Duration,
    /// Retransmission timeout with which that silence is compared.
    pub(crate) timeout: Duration,
    /// The largest flight before.
    pub(crate) largest_before: u64,
    /// Position in the stream at which it began.
    pub(crate) start: u64,
    /// The flights at which it had to wait for an acknowledgement, newest last.
    pub(crate) rounds: Rounds,
    /// The smallest of these flights since the last repair, and its time.
    pub(crate) since_loss: Option<(Time, u64)>,
    /// Its progress, compared with an opening window.
    pub(crate) progress: MessageProgress,
    /// Whether a header section alone filled the initial window.
    pub(crate) began_narrow: bool,
}

/// Progress of a message over time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MessageProgress {
    /// When its first segment passed.
    pub(crate) began: Time,
    /// The largest flight before the message, if the window may have been retained since.
    pub(crate) before: u64,
    /// The first flight at which the sender stopped.
    pub(crate) first: Option<u64>,
    /// Whether a buffer or the receiver's window limited that flight.
    pub(crate) is_held: bool,
    /// Savings already counted for its time, and the part of it that no window can save.
    pub(crate) reported: Duration,
}

impl Gap {
    /// Returns the duration of the gap.
    pub(crate) fn duration(&self) -> Duration {
        self.wait.duration()
    }

    /// Returns whether the sender continued its own data.
    pub(crate) fn continues(&self) -> bool {
        self.before == GapStart::Data(self.wait.side)
    }

    /// Returns whether an earlier acknowledgement allowed data that was not sent.
    pub(crate) const fn freed_early(&self) -> bool {
        self.freed > 0
    }

    /// Returns whether the segment is a FIN without data: the application waits for nothing.
    pub(crate) const fn is_bare_fin(&self) -> bool {
        self.has_fin && self.length == 0
    }

    /// Returns whether the segment is shorter than the MSS.
    pub(crate) const fn is_short(&self) -> bool {
        self.length < self.mss
    }

    /// Returns whether its flight ended with a short segment: nothing more was written.
    pub(crate) fn ends_short(&self) -> bool {
        !self.flight.last.is_multiple_of(self.mss.max(1))
    }

    /// Returns the bytes sent since the sender's burst began.
    pub(crate) const fn sent_in_burst(&self) -> u64 {
        (self.flight.start + self.flight.bytes).saturating_sub(self.burst.start)
    }

    /// Returns the acknowledgement for which the sender waited in the middle of sending.
    pub(crate) fn awaited(&self) -> Option<&Ack> {
        self.released().filter(|_| self.continues())
    }

    /// Returns the acknowledgement of earlier data of the sender on which it sent.
    pub(crate) fn released(&self) -> Option<&Ack> {
        let had_sent = matches!(self.end, GapEnd::Data) && self.flight.bytes > 0;
        self.trigger.as_ref().filter(|_| had_sent && !self.was_free())
    }

    /// Returns whether neither Nagle's algorithm nor a window can have held the segment. Either it is short, and the sender
    /// has sent short ones before while others were unacknowledged (TCP_NODELAY), and had as much in flight. Or it fits
    /// into any initial window, and Nagle's algorithm would have released it with the acknowledgement.
    fn was_free(&self) -> bool {
        /// Initial window of every stack since RFC 3390, in segments and bytes; those that scale windows are as new.
        const INITIAL_WINDOW: (u64, u64) = (3, 4_380);
        let bytes = self.flight.bytes + self.length;
        let has_window = bytes <= self.largest_since_loss.max(2 * self.mss);
        let is_initial = self.has_scale
            && !self.has_lost
            && self.flight.segments < INITIAL_WINDOW.0
            && bytes <= INITIAL_WINDOW.1;
        let is_offered = self.headroom.is_none_or(|headroom| headroom >= self.length);
        let is_undelayed = self.sends_shorts && self.is_short() && has_window;
        is_offered && (is_undelayed || (is_initial && !self.is_prompt()))
    }

    /// Returns whether the sender continued as soon as the awaited acknowledgement arrived. Kernels need at most some
    /// hundred microseconds; the rest is the path's jitter.
    pub(crate) fn is_prompt(&self) -> bool {
        const MAX_JITTER: Duration = Duration::from_millis(5);
        let least = Duration::from_micros(if self.path.is_at_sender { 300 } else { 1_000 });
        let bound = (self.path.round_trip / 4).clamp(least, MAX_JITTER);
        self.trigger.is_some() && self.reaction() <= bound
    }

    /// Returns the time from the arrival of the awaited acknowledgement at the sender until it sent.
    pub(crate) fn reaction(&self) -> Duration {
        let distance = self.path.to_sender.unwrap_or_default();
        self.trigger.map(|ack| self.wait.to.at.since(ack.at).saturating_sub(distance)).unwrap_or_default()
    }

    /// Returns the part of the gap in which the path was idle: near its sender, a flight passes the capture before the
    /// slowest link has sent it.
    pub(crate) fn idle(&self) -> Duration {
        let sending = self.path.segment.unwrap_or_default() * self.flight.segments;
        let sent_in = self.flight.since.map_or(sending, |since| self.wait.from.at.since(since));
        self.duration().saturating_sub(sending.saturating_sub(sent_in))
    }

    /// Returns whether the slowest link needs at least a round trip for the flight: then it is never idle, and no
    /// window held the sender.
    pub(crate) fn fills_path(&self) -> bool {
        let of_flight = |time: Duration, bytes: u64| {
            let nanos =
                u128::from(time.as_nanos()) * u128::from(self.flight.bytes) / u128::from(bytes.max(1));
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        };
        let by_pace = self.path.segment.map(|segment| of_flight(segment, self.mss));
        // While the pace is unknown: data ahead of an acknowledged segment had to be sent first.
        let by_queue = || {
            let (ack, least) = self.trigger.as_ref().zip(self.path.to_receiver)?;
            let queued = ack.after()?.saturating_sub(least);
            (ack.ahead > 0).then(|| of_flight(queued, ack.ahead.into()))
        };
        by_pace.or_else(by_queue).is_some_and(|sending| sending >= self.path.round_trip)
    }

    /// Returns whether it stopped at the same flight as `before`, to within half a segment.
    pub(crate) const fn is_level(&self, before: u64) -> bool {
        2 * before.abs_diff(self.flight.bytes) <= self.mss
    }

    /// Returns whether data flowed, with no longer pause than the path itself causes.
    pub(crate) fn is_flowing(&self) -> bool {
        // A quarter of a round trip is no stall, and below a millisecond it is imperceptible.
        let quarter = (self.path.round_trip / 4).min(Duration::from_millis(10));
        let still = quarter.max(Duration::from_millis(1)).max(self.path.pace * 2);
        self.duration() <= still
    }
}
