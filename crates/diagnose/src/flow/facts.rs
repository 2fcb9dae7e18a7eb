//! The facts of a gap when it ends: the state of the sender, of the path and of the messages, collected before the
//! segment that ended it changes them.

use dissect::exchange::MessageFacts;
use dissect::flight::{Flight, Rounds};
use dissect::sender::{Ack, AckFacts};
use dissect::turns::Turns;
use dissect::{Mark, Segment, Side, record};
use wire::packet::Flags;
use wire::{Duration, Time};

use crate::cause::Cause;
use crate::gap::{Burst, Gap, GapEnd, GapStart, MessageProgress, PathFacts, Wait};

use super::Flow;
use super::state::{EndState, ScaleOffer};

/// A sender's knowledge before it sent.
pub(super) struct Facts {
    flight: Flight,
    in_flight: u64,
    largest_flight: u64,
    largest_since_loss: u64,
    headroom: Option<u64>,
    has_room: bool,
    window: Option<u64>,
    learned: AckFacts,
    trigger: Option<Ack>,
    messages: MessageFacts,
    burst: Burst,
    is_heard: bool,
}

impl Flow {
    /// Collects the facts; must be called before the segment is counted as sent.
    pub(super) fn before_sending(&mut self, segment: &Segment<'_>) -> Facts {
        let Segment { from, at, .. } = *segment;
        let distance = self.path.to(from).unwrap_or_default();
        // Segments that follow immediately make no gap: their flight is not computed, except after a pause.
        let is_judged =
            at.since(self.last.at) > Duration::from_micros(500) || self.ends.of(from).resumed.is_some();
        let mut messages = self.conversation.message_facts(from, segment.tcp.payload);
        let timeout = self.timeout(from);
        let echo = segment.options.stamp.map(|stamp| stamp.echo).filter(|_| segment.has(Flags::ACK));
        // A gap shorter than the tolerance needs no acknowledgement within it.
        let slack =
            Some(self.path.slack(from)).filter(|slack| at.since(self.last.at) > *slack).unwrap_or_default();
        let (noise, span) = (self.path.noise(from), (segment.tcp.seq, segment.length()));
        if is_judged {
            let until = Time::ZERO + at.since(Time::ZERO + distance) + noise.min(timeout);
            messages.updated = self.conversation.update_until(from, until);
        }
        let learned = self.ends.of_mut(from).sender.receive_acks(at, distance, [slack, noise], echo, span);
        self.update_burst(segment);
        let sender = &self.ends.of(from).sender;
        let flight = if is_judged { sender.flight(learned.known) } else { Flight::default() };
        // A segment so soon after the acknowledgement, relative to the gap, is no coincidence.
        let share = (at.since(self.last.at) / 20).min(Duration::from_millis(20));
        let is_soon = |ack: &Ack| at.since(ack.at) <= distance + timeout.max(share);
        let trigger = learned.last.filter(is_soon).or(learned.duplicate.filter(is_soon));
        Facts {
            flight,
            in_flight: sender.in_flight(),
            largest_flight: u64::from(sender.largest_flight),
            largest_since_loss: u64::from(sender.largest_since_loss),
            headroom: learned.edge.map(|edge| edge.saturating_sub(sender.next)),
            has_room: learned.edge.is_some_and(|edge| edge >= sender.next + segment.length())
                || self.ends.of(from).edges[0] >= sender.next + segment.length(),
            window: learned.edge.map(|edge| edge.saturating_sub(learned.known)),
            learned,
            trigger,
            messages,
            is_heard: sender.has_arrived(),
            burst: self.burst(from, is_judged),
        }
    }

    /// Returns the sender's burst since its pause: complete only where something stopped.
    fn burst(&self, from: Side, is_judged: bool) -> Burst {
        let burst = &self.ends.of(from).burst;
        if is_judged {
            burst.clone()
        } else {
            Burst { start: burst.start, progress: burst.progress, ..Burst::default() }
        }
    }

    /// Maximum time after an acknowledgement in which a sender may have sent because of it.
    fn timeout(&self, side: Side) -> Duration {
        let quarter = self.path.round_trip_at_least() / 4;
        let most = if self.is_near(side) { 5 } else { 20 };
        quarter.clamp(Duration::from_millis(2), Duration::from_millis(most))
    }

    /// Returns whether the capture was taken at a side, or so near that the distance does not matter.
    pub(super) fn is_near(&self, side: Side) -> bool {
        self.path.to(side).is_some_and(|to| to <= Duration::from_millis(2))
    }

    /// By how much `receiver` delayed an acknowledgement; `None` if it did not.
    pub(super) fn lateness(&self, receiver: Side, ack: &Ack) -> Option<Duration> {
        /// Above what a busy host needs, below the shortest delayed-ACK timers of 40 ms.
        const LATE: Duration = Duration::from_millis(20);
        /// Maximum delay of an acknowledgement (RFC 1122, section 4.2.3.2).
        const LONGEST: Duration = Duration::from_millis(500);
        // A minimum of few samples exceeds the true minimum: data later than it may not be late.
        let unsure = self.path.slack(receiver);
        const TO_BE_ON_ITS_WAY: Duration = Duration::from_millis(5);
        let distance = self.path.to(receiver)?;
        let sender = &self.ends.of(receiver.other()).sender;
        let bytes = u64::from(ack.bytes);
        let took = ack.after()?.saturating_sub(self.path.prompt(receiver)?);
        // The data that it acknowledges came after the previous acknowledgement, at the pace of the link. An
        // acknowledgement later than that was delayed, and time beyond it was spent in a queue.
        let spaced =
            |before: Duration| before.saturating_sub(sender.pace.of_link(bytes).unwrap_or(before / 4));
        let is_queued = !self.is_near(receiver);
        let late = ack.since_before.filter(|_| is_queued).map_or(took, |before| took.min(spaced(before)));
        let is_late = late >= LATE.max(distance / 10).max(unsure) && took <= LONGEST + unsure;
        // A timer's acknowledgement covers all received data.
        let covers_all = ack.not_covered().is_none_or(|since| since < distance + TO_BE_ON_ITS_WAY);
        // Two full segments are acknowledged immediately, unless the receiver is observed to delay that.
        let is_odd = bytes < 2 * sender.mss.get() || self.is_near(receiver);
        (is_late && covers_all && is_odd).then_some(late)
    }

    /// Returns all facts of the gap.
    pub(super) fn gap(&mut self, facts: Facts, end: GapEnd, segment: &Segment<'_>) -> Gap {
        let Facts {
            flight,
            in_flight,
            largest_flight,
            largest_since_loss,
            headroom,
            has_room,
            window,
            learned,
            trigger,
            messages,
            burst,
            is_heard,
        } = facts;
        let Segment { from, at, frame, .. } = *segment;
        let known = self.ends.of(from).sender.known;
        let late = trigger.and_then(|ack| self.lateness(from.other(), &ack));
        let is_full = trigger.is_some_and(|ack| self.is_full(from, &ack)) && late.is_none();
        Gap {
            wait: Wait { from: self.last, to: Mark { at, frame }, side: from },
            before: self.before,
            end,
            length: segment.length(),
            has_fin: segment.has(Flags::FIN),
            mss: self.ends.of(from).sender.mss.get(),
            is_mss_agreed: self.ends.of(from).sender.mss.is_agreed(),
            flight,
            in_flight,
            largest_flight,
            largest_since_loss,
            headroom,
            has_room,
            window,
            window_now: self.ends.of(from).sender.edge.map(|edge| edge.saturating_sub(known)),
            widest: Some(u64::from(self.ends.of(from).offered.largest)).filter(|widest| *widest > 0),
            trigger,
            late,
            acks: learned.acks,
            freed: learned.freed,
            surely_freed: learned.surely_freed,
            is_acknowledged: self.ends.of(from.other()).sender.is_seen
                || self.handshake.answered.is_some()
                || learned.acks > 0,
            own_ack: self.reference.of(from).own_ack.map(|(mark, _)| mark),
            own_ack_late: self.reference.of(from).own_ack.and_then(|(_, late)| late),
            is_with_own_ack: self.is_with_own_ack(segment),
            late_arrival: self.ends.of(from).late.filter(|_| segment.options.stamp.is_some()),
            last_ack_at: self
                .ends
                .of(from)
                .sender
                .last_ack_at
                .map(|at| at + self.path.to(from).unwrap_or_default()),
            is_heard,
            has_scale: [Side::Client, Side::Server]
                .map(|side| self.ends.of(side).scale_offer)
                .into_iter()
                .all(|offer| matches!(offer, ScaleOffer::Bits(_))),
            sends_shorts: self.ends.of(from).sends_shorts,
            requested: self.last_flight,
            echoes_unseen: self.echoes_unseen(segment) || learned.last.is_some_and(|ack| ack.is_of_unseen),
            acks_were_late: learned.was_late,
            is_clock_unlike: segment.options.stamp.is_some() && self.ends.of(from).clock.is_unlike,
            is_together: self.ends.of(from).is_together && segment.options.stamp.is_some(),
            has_all: self.has_messages(from),
            is_behind_hole: self.ends.of(from).sender.has_hole(segment.tcp.seq)
                || self.ends.of(from.other()).sender.is_missing(),
            skipped: self.reference.of(from).skipped,
            is_complete: self.ends.of(from).recent.is_complete(),
            is_peer_seen: self.ends.of(from.other()).sender.is_seen,
            is_control: record::is_short(segment),
            path: PathFacts {
                to_sender: self.path.to(from),
                noise: self.path.noise(from),
                is_at_sender: self.is_near(from),
                has_queue: self.path.standing_queue(from.other()).is_some(),
                to_receiver: self.path.to(from.other()),
                beyond_proxy: self.path.beyond_proxy(from).filter(|_| from == Side::Server),
                round_trip: self.path.round_trip_at_least(),
                pace: self.ends.of(from).sender.pace.needed(segment.length()),
                segment: self.ends.of(from).sender.pace.of_link(self.ends.of(from).sender.mss.get()),
                queue: self.queue(from, segment.length()),
                is_full,
                is_saturated: is_full && trigger.is_some_and(|ack| self.is_queue_long(from, &ack)),
            },
            burst,
            has_lost: self.ends.of(from).has_lost,
            has_path_lost: self.ends.client.has_lost || self.ends.server.has_lost,
            may_have_lost: self.ends.of(from).may_have_lost,
            needless: self.reference.of(from).needless,
            is_needless_of_end: self.reference.of(from).is_needless_of_end,
            silence: self
                .ends
                .of(from)
                .sender
                .progressed_at
                .map(|passed| at.since(passed).saturating_sub(self.path.to(from).unwrap_or_default())),
            usual_timeout: self.reference.of(from).timeout.unwrap_or_else(|| self.path.usual_timeout()),
            may_probe: !self.ends.client.refuses_sack && !self.ends.server.refuses_sack,
            recovering: self.recovering(from, known),
            was_recovering: self.recovering(from, flight.start),
            messages,
            has_pushed: self.has_pushed,
            is_response: self.is_response(segment),
            is_within_handshake: from == Side::Client && self.is_client_due_in_handshake(),
            is_first_response: !self.turns.has_server_sent && self.handshake.opened.is_some(),
            pieces: self.ends.of(from.other()).pieces,
        }
    }

    /// Returns the loss that a side was repairing when it knew of `known`.
    fn recovering(&self, side: Side, known: u64) -> Option<Cause> {
        self.ends.of(side).recovery.filter(|(_, until)| known < *until).map(|(cause, _)| cause)
    }

    /// Returns whether a segment has the timestamp of its sender's last acknowledgement without data, by a clock of at
    /// most 10 ms.
    fn is_with_own_ack(&self, segment: &Segment<'_>) -> bool {
        let reference = self.reference.of(segment.from);
        let stamp = reference.own_ack.and(reference.own_ack_stamp);
        // The next tick may begin between the two.
        const IMMEDIATE: Duration = Duration::from_millis(5);
        let is_next = reference.own_ack.is_some_and(|(ack, _)| segment.at.since(ack.at) <= IMMEDIATE);
        let is_same = segment
            .options
            .stamp
            .zip(stamp)
            .is_some_and(|(own, ack)| own.value == ack || (is_next && own.value == ack.wrapping_add(1)));
        let clock = &self.ends.of(segment.from).clock;
        is_same && segment.options.stamp.is_some_and(|own| clock.has_ticked_fast(segment.at, own.value))
    }

    /// Returns whether a segment is known to respond to the client's last message: by its first bytes, or as the
    /// server's turn in a TLS handshake. So is a greeting for which clients wait.
    fn is_response(&self, segment: &Segment<'_>) -> bool {
        let payload = segment.tcp.payload;
        let text = self.conversation.text(segment.from, payload);
        let is_of_handshake = || {
            matches!(payload, [20 | 22, 3, ..])
                && self.conversation.tls().is_some_and(|tls| tls.is_read() && !tls.is_over())
        };
        let responds = || is_of_handshake() || self.turns.is_response(text);
        let is_unseen = || self.before == GapStart::Unseen(Side::Client) && text.starts_with(b"HTTP/1.");
        segment.from == Side::Server
            && match self.before {
                GapStart::Handshake(_) => Turns::is_greeting(text),
                before => before == GapStart::Data(Side::Client) && responds() || is_unseen(),
            }
    }

    /// Returns the time that the slowest link needs for the data in flight to `from`, and for its response. Both
    /// directions are assumed to be alike where only one is known.
    fn queue(&self, from: Side, response: u64) -> Duration {
        if self.is_near(from) {
            return Duration::ZERO;
        }
        let (own, peer) = (self.ends.of(from), self.ends.of(from.other()));
        let bytes = self.last_flight + response;
        peer.sender.pace.needed(bytes).max(own.sender.pace.needed(bytes))
    }

    /// Returns whether an acknowledgement took twice as long as the path needs.
    fn is_queue_long(&self, sender: Side, ack: &Ack) -> bool {
        let least =
            self.path.to(sender).unwrap_or_default() + self.path.to(sender.other()).unwrap_or_default();
        ack.after().is_some_and(|after| after >= least * 2)
    }

    /// Returns whether an acknowledgement took so much longer than the path needs that the data before its segment must
    /// have waited in a queue: more than a segment and a half of it (as TCP Vegas reckons).
    fn is_full(&self, sender: Side, ack: &Ack) -> bool {
        let (Some(after), Some(least)) = (ack.after(), self.path.to(sender.other())) else { return false };
        let mss = self.ends.of(sender).sender.mss.get();
        if after <= least + Duration::from_millis(1) || u64::from(ack.ahead) < 2 * mss {
            return false;
        }
        let waited = after.saturating_sub(least).as_secs_f64() / after.as_secs_f64();
        #[expect(clippy::cast_precision_loss)]
        let queued = (u64::from(ack.ahead) + mss) as f64 * waited;
        #[expect(clippy::cast_precision_loss)]
        let is_queue = queued > 1.5 * mss as f64;
        // Data passes a capture near its receiver after the queue: the acknowledgement's round trip there shows none.
        is_queue && !self.is_near(sender.other())
    }

    /// Updates the sender's burst; a new one begins when it may send, or after a silence.
    fn update_burst(&mut self, segment: &Segment<'_>) {
        let Segment { from: side, at, .. } = *segment;
        let timeout = self.path.retransmission_timeout();
        let continues = self.before == GapStart::Data(side);
        let sender = &self.ends.of(side).sender;
        let silence = sender.sent_last.map_or(Duration::ZERO, |last| at.since(last));
        // A SYN of which the acknowledgement is not known to have arrived is no data, and there is none before the capture.
        let is_first = sender.largest_flight <= 1;
        let start = if sender.next == 0 { sender.position(segment.tcp.seq) } else { sender.next };
        // In the middle of a message a round trip is no pause, even if round trips are constant.
        if !is_first && (sender.in_flight() > 0 || (continues && silence <= self.path.usual_timeout())) {
            return;
        }
        self.settle_progress(side);
        let EndState { sender, burst, .. } = self.ends.of_mut(side);
        if silence > timeout {
            burst.largest_before = u64::from(sender.largest_flight);
            sender.largest_since_pause = 0;
            (burst.silence, burst.timeout) = (silence, timeout);
        } else if u64::from(sender.largest_since_pause) >= burst.largest_before {
            // A short message after the pause would not have opened the window again.
            (burst.silence, burst.timeout, burst.largest_before) = Default::default();
        }
        let before = u64::from(sender.largest_since_pause);
        burst.progress = MessageProgress { began: at, before, ..MessageProgress::default() };
        (burst.start, burst.rounds, burst.began_narrow) = (start, Rounds::default(), false);
        burst.since_loss = None;
    }
}
