//! One end of a connection as a sender: data it has sent, data it knew to have arrived, data it was allowed to send.
//!
//! A capture shows an acknowledgement when it passes, not when the sender receives it. Acknowledgements therefore wait
//! in a queue for the time that they need to the sender and its packets need back ([`Path::to`]). Queries about the
//! sender thus return its own view, for any point of capture. Not a congestion control: windows are inferred from its
//! behaviour.
//!
//! [`Path::to`]: crate::path::Path::to

use std::collections::VecDeque;

use wire::{Duration, Time};

use crate::clock;
use crate::mss::Mss;
use crate::pace::Pace;
use crate::tally::Tally;
use crate::{Mark, Segment};

/// A sender, as shown by its captured packets and its peer's acknowledgements.
///
/// The order of fields is that of memory: those used together are adjacent.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Sender {
    /// The next sequence number to be sent.
    pub next: u64,
    /// The highest acknowledgement that has passed.
    pub acknowledged: u64,
    /// The highest acknowledgement that it had received when it last sent.
    pub known: u64,
    /// Edge of the window that it knew of then; `None` where windows cannot be read.
    pub edge: Option<u64>,
    /// Position up to which it had sent when it last repaired a loss.
    repaired: u64,
    /// The peer's window when it last passed.
    pub window: Option<u32>,
    /// Whether any of its packets was captured; from then on all its sequence numbers are known.
    pub is_seen: bool,
    /// Whether it echoes the timestamps of acknowledgements without data.
    pub echoes_bare: bool,
    /// Whether one of them reported data behind a gap (SACK).
    pub is_sacked: bool,
    /// Number of consecutive duplicate ACKs that it received.
    pub duplicates: u32,
    /// Sent and not known to have arrived, oldest first.
    pub sent: VecDeque<SentSegment>,
    /// Acknowledgements that have passed but not yet reached the sender.
    acks: VecDeque<Ack>,
    /// The largest segment it may send.
    pub mss: Mss,
    /// The largest flight overall, in bytes.
    pub largest_flight: u32,
    /// The largest flight since a repair, in bytes.
    pub largest_since_loss: u32,
    /// The largest flight since a pause, in bytes.
    pub largest_since_pause: u32,
    /// The largest acknowledged segment, in bytes.
    pub largest_arrived: u32,
    /// When it last sent something new, or repaired.
    pub sent_last: Option<Time>,
    /// When an acknowledgement of new data last passed.
    pub progressed_at: Option<Time>,
    /// Time at which its last received acknowledgement passed.
    pub last_ack_at: Option<Time>,
    /// Number of segments in flight.
    pub on_the_way: Tally,
    /// The rate of the path's slowest link, towards its peer.
    pub pace: Pace,
    /// Timestamp of the last acknowledgement that it seems to have received.
    last_ack_stamp: Option<u32>,
    /// Ranges that were not captured, although later data was. Most senders have none.
    #[expect(
        clippy::box_collection,
        reason = "a pointer is less than a vector, and there are two for each connection"
    )]
    holes: Option<Box<Vec<Hole>>>,
    /// A byte sent into a closed window.
    probe: Option<u64>,
    /// Position that a segment without data showed, beyond what was captured.
    shown: u64,
}

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
pub struct SentSegment {
    /// Position of its first byte.
    pub start: u64,
    /// Position after its last byte.
    pub end: u64,
    /// Packet that first carried it.
    pub frame: u64,
    /// When it was first sent.
    pub at: Time,
    /// When it was last sent.
    pub last_sent_at: Time,
    /// Number of times it was sent.
    pub times: u32,
    /// Bytes in flight ahead of it.
    pub ahead: u32,
}

/// An acknowledgement of new data, a wider window, or a duplicate ACK.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Its packet.
    pub frame: u64,
    /// When it passed.
    pub at: Time,
    /// Position up to which it acknowledges.
    pub to: u64,
    /// Window edge that it offers; `None` where windows cannot be read.
    pub edge: Option<u64>,
    /// Whether its window edge is beyond the previous one.
    pub widens: bool,
    /// When the newest segment that it covers passed, if that was sent once.
    newest: Option<Time>,
    /// When the oldest segment that it does not cover passed.
    oldest_after: Option<Time>,
    /// Bytes that it newly acknowledges.
    pub bytes: u32,
    /// Whether it only repeats the previous one.
    pub(crate) is_duplicate: bool,
    /// Whether it reports data behind a gap (SACK).
    pub is_sacked: bool,
    /// Whether it echoes a later timestamp than any captured.
    pub is_of_unseen: bool,
    /// Bytes in flight ahead of its newest segment.
    pub ahead: u32,
    /// Time since the previous acknowledgement of new data.
    pub since_before: Option<Duration>,
    /// Its timestamp, if its receiver may echo that from then on (RFC 7323, section 4.3).
    stamp: Option<AckStamp>,
}

/// The timestamp of an acknowledgement, in order.
#[derive(Clone, Copy, Debug)]
pub struct AckStamp {
    /// The value (TSval).
    pub value: u32,
    /// Whether the acknowledgement carries no data: stacks of RFC 1323 do not echo such a timestamp.
    pub is_bare: bool,
}

/// Retransmission timeout of a sender that has measured nothing (RFC 1122, section 4.2.3.1).
const FIRST_TIMEOUT: Duration = Duration::from_secs(3);

impl Ack {
    /// Returns the time since the newest covered segment passed, if that was sent once.
    pub fn after(&self) -> Option<Duration> {
        self.newest.map(|passed| self.at.since(passed))
    }

    /// Returns the time since the newest covered segment passed, if it can be a round trip. With data an acknowledgement comes when
    /// the program writes, and after that long it is not the first one: the receiver had to send one within half a second (RFC
    /// 9293, section 3.8.6.3), and without it the sender would have retransmitted. The first was not captured.
    pub fn round_trip(&self, comes_with_data: bool) -> Option<Duration> {
        self.after().filter(|after| !comes_with_data || *after < FIRST_TIMEOUT)
    }

    /// Returns the time since the oldest segment that it does not cover passed.
    pub fn not_covered(&self) -> Option<Duration> {
        self.oldest_after.map(|passed| self.at.since(passed))
    }
}

/// A range that was not captured by the time later data was.
#[derive(Clone, Copy, Debug)]
pub struct Hole {
    start: u64,
    end: u64,
    /// When it showed.
    pub since: Time,
    /// Packet that showed it.
    pub frame: u64,
    /// The IP ID of that packet.
    pub identification: u16,
}

impl Hole {
    /// Returns its position and its length in bytes.
    pub const fn span(&self) -> (u64, u64) {
        (self.start, self.end - self.start)
    }
}

/// Relation of a range of sequence numbers to those known.
#[derive(Clone, Copy, Debug)]
pub enum SequenceRelation {
    /// It continues the stream (possibly after a gap).
    New,
    /// It fills a hole.
    Filled(Hole),
    /// It was captured before.
    Retransmission(Option<SentSegment>),
    /// It was captured a moment ago.
    Twice,
    /// One byte, or none, from before the end: a keep-alive or window probe.
    Probe,
}

/// Maximum error of capture clocks.
const CLOCK: Duration = Duration::from_micros(50);
/// A sender within this round trip of the point of capture receives acknowledgements as they pass.
const NEAR: Duration = Duration::from_millis(2);
const MAX_ACKS: usize = 1_024;
const MAX_HOLES: usize = 64;

impl Sender {
    /// Returns the 64-bit position of the sequence number, nearest to what was sent so far; the first one is arbitrary.
    pub fn position(&self, seq: u32) -> u64 {
        // Far from zero, so that data before the first number captured has a position, too.
        const FIRST: u64 = 1 << 40;
        if !self.is_seen && self.next == 0 {
            return FIRST | u64::from(seq);
        }
        let [.., a, b, c, d] = self.next.to_be_bytes();
        let away = seq.wrapping_sub(u32::from_be_bytes([a, b, c, d])).cast_signed();
        self.next.saturating_add_signed(i64::from(away))
    }

    /// Records that it sent from `start` up to `end` (exclusive). Data repeated before `soon` has passed is not a
    /// retransmission: it was captured, or arrived, twice.
    pub fn send(
        &mut self,
        start: u64,
        end: u64,
        mark: Mark,
        identification: u16,
        soon: Duration,
    ) -> SequenceRelation {
        let Mark { at, frame } = mark;
        if !self.is_seen {
            self.is_seen = true;
            if self.next == 0 {
                (self.next, self.acknowledged, self.known) = (start, start, start);
            }
        }
        if end <= self.next {
            return self.retransmit(start, end, mark, soon);
        }
        // New data may be sent along with retransmitted data (RFC 9293, section 3.7.4, and Nagle's algorithm), starting
        // where that began.
        let is_repeated = |sender: &Self| {
            let is_missing = |hole: &Hole| hole.start <= start && start < hole.end;
            sender.sent.iter().rev().any(|sent| sent.start == start)
                || sender.holes.as_ref().is_some_and(|holes| holes.iter().any(is_missing))
        };
        let order = match start < self.next && self.acknowledged <= start && is_repeated(self) {
            true => self.retransmit(start, self.next, mark, soon),
            false => SequenceRelation::New,
        };
        if start > self.next {
            let holes = self.holes.get_or_insert_default();
            if holes.len() >= MAX_HOLES {
                holes.remove(0);
            }
            holes.push(Hole { start: self.next, end: start, since: at, frame, identification });
        }
        if self.window == Some(0) && end == start + 1 {
            self.probe = Some(start);
        }
        let ahead = bounded(self.next.saturating_sub(self.acknowledged));
        let first = start.max(self.next);
        let sent = SentSegment { start: first, end, frame, at, last_sent_at: at, times: 1, ahead };
        self.add_in_flight(self.sent.len(), sent);
        self.next = end;
        self.sent_last = Some(at);
        let is_repair =
            matches!(order, SequenceRelation::Retransmission(Some(_)) | SequenceRelation::Filled(_));
        if is_repair { order } else { SequenceRelation::New }
    }

    /// Records a segment without data at `seq`: all before it was sent, and what was not captured is missing from then on.
    pub fn show_sent(&mut self, seq: u32, mark: Mark, identification: u16) {
        /// A number further away is invalid.
        const MAX_MISSED: u64 = 1 << 16;
        let position = self.position(seq);
        if !self.is_seen || position <= self.next || position - self.next > MAX_MISSED {
            return;
        }
        let holes = self.holes.get_or_insert_default();
        if holes.len() < MAX_HOLES {
            let Mark { at: since, frame } = mark;
            holes.push(Hole { start: self.next, end: position, since, frame, identification });
            self.shown = position;
            self.next = position;
        }
    }

    /// Returns whether `to` acknowledges data that only a segment without data had shown: it was not captured.
    pub fn covers_shown(&mut self, to: u64) -> bool {
        let is_missing = |hole: &Hole| hole.end == self.shown && hole.end <= to;
        let covers = self.shown > 0 && self.holes.as_ref().is_some_and(|holes| holes.iter().any(is_missing));
        if covers {
            self.shown = 0;
        }
        covers
    }

    /// Returns the bytes that only a segment without data showed, if neither they nor their acknowledgement passed since; with that
    /// segment.
    pub fn shown_alone(&self) -> Option<(u64, Mark)> {
        let is_missing = |hole: &&Hole| hole.end == self.shown && self.acknowledged <= hole.start;
        let hole = self.holes.as_ref()?.iter().find(is_missing)?;
        Some((hole.end - hole.start, Mark { at: hole.since, frame: hole.frame }))
    }

    /// Returns the number of bytes for which its peer waits, if they were missing when later ones came, and have not come since; with
    /// the packet that showed it.
    pub fn never_filled(&self) -> Option<(u64, Mark)> {
        let is_awaited = |hole: &&Hole| hole.start == self.acknowledged && hole.end != self.shown;
        let hole = self.holes.as_ref()?.iter().find(is_awaited)?;
        Some((hole.end - hole.start, Mark { at: hole.since, frame: hole.frame }))
    }

    fn retransmit(&mut self, start: u64, end: u64, mark: Mark, soon: Duration) -> SequenceRelation {
        let order = self.position_retransmission(start, end, mark, soon);
        // Data that had arrived needs no repair: its acknowledgement was in flight at the time.
        if !matches!(order, SequenceRelation::Probe | SequenceRelation::Twice) && end > self.acknowledged {
            self.sent_last = Some(mark.at);
            self.repaired = self.next;
            self.largest_since_loss = 0;
        }
        order
    }

    fn position_retransmission(
        &mut self,
        start: u64,
        end: u64,
        mark: Mark,
        soon: Duration,
    ) -> SequenceRelation {
        let Mark { at, frame } = mark;
        // The byte with which it probed a closed window, while that was not accepted.
        if end == start + 1 && self.probe == Some(start) && self.acknowledged <= start {
            return SequenceRelation::Probe;
        }
        // A single byte that is still in flight is retransmitted data, unless it is the last one of a longer segment.
        let is_whole = self.sent.back().is_none_or(|newest| newest.start >= start);
        if end <= start + 1
            && start + 1 == self.next
            && (self.acknowledged >= start || self.window == Some(0) || (end > start && !is_whole))
        {
            let is_on_its_way =
                end == start + 1 && self.acknowledged <= start && self.window != Some(0) && is_whole;
            if !is_on_its_way {
                // The reply acknowledges the probe: it is no round-trip sample of older data (Karn).
                if let Some(newest) = self.sent.back_mut() {
                    newest.times += 1;
                }
                return SequenceRelation::Probe;
            }
        }
        let filled = |hole: &Hole| hole.start < end && start < hole.end;
        if let Some(holes) = &mut self.holes
            && let Some(position) = holes.iter().position(filled)
        {
            let hole = holes.remove(position);
            for (first, last) in [(hole.start, start), (end, hole.end)] {
                if first < last && holes.len() < MAX_HOLES {
                    holes.push(Hole { start: first, end: last, ..hole });
                }
            }
            // Bytes adjacent to the hole were captured before: each byte is counted once.
            let (start, end) = (start.max(hole.start), end.min(hole.end));
            let position = self.sent.partition_point(|sent| sent.end <= start);
            let ahead = bounded(start.saturating_sub(self.acknowledged));
            self.add_in_flight(
                position,
                SentSegment { start, end, frame, at, last_sent_at: at, times: 1, ahead },
            );
            return SequenceRelation::Filled(hole);
        }
        let first = self.sent.partition_point(|sent| sent.end <= start);
        let before = self.sent.get(first).copied().filter(|sent| sent.start < end);
        // A copy has the same range; a smaller segment may answer a router's report of its MTU.
        let is_copy = |before: SentSegment| (before.start, before.end) == (start, end);
        if before.is_some_and(|before| is_copy(before) && at.since(before.last_sent_at) < soon) {
            return SequenceRelation::Twice;
        }
        for sent in self.sent.iter_mut().skip(first).take_while(|sent| sent.start < end) {
            (sent.last_sent_at, sent.times) = (at, sent.times + 1);
        }
        SequenceRelation::Retransmission(before)
    }

    /// Records that its peer acknowledged up to `to` and offered `window` bytes more. `None` if that allows no further
    /// data.
    pub fn acknowledge(
        &mut self,
        to: u64,
        window: Option<u32>,
        mark: Mark,
        stamp: Option<AckStamp>,
    ) -> Option<Ack> {
        let Mark { at, frame } = mark;
        let edge = window.map(|window| to + u64::from(window));
        let widens = edge > self.acknowledged_edge();
        let differs = edge != self.acknowledged_edge();
        self.window = window;
        // Reordered acknowledgements add nothing new.
        if to < self.acknowledged || (to == self.acknowledged && !differs) {
            return None;
        }
        let covered = self.sent.partition_point(|sent| sent.end <= to);
        let newest = covered.checked_sub(1).and_then(|newest| self.sent.get(newest)).copied();
        let bytes = to.saturating_sub(self.acknowledged);
        // Data queued behind a loss is acknowledged when the loss is repaired (Karn's problem): such a time is no
        // sample.
        let is_clear = bytes > 0 && self.acknowledged >= self.repaired;
        let fresh = newest.filter(|sent| is_clear && sent.end > self.acknowledged && sent.times == 1);
        let arrived = |sent: SentSegment| bounded(sent.end - sent.start);
        self.largest_arrived = self.largest_arrived.max(fresh.map_or(0, arrived));
        let ack = Ack {
            frame,
            at,
            to,
            edge,
            widens,
            newest: fresh.map(|sent| sent.at),
            oldest_after: self.sent.get(covered).map(|sent| sent.last_sent_at),
            bytes: bounded(bytes),
            is_duplicate: false,
            is_sacked: false,
            is_of_unseen: false,
            ahead: fresh.map_or(0, |sent| sent.ahead),
            since_before: self.progressed_at.map(|before| at.since(before)),
            stamp,
        };
        if bytes > 0 {
            self.progressed_at = Some(at);
            self.acknowledged = to;
            if let Some(holes) = &mut self.holes {
                holes.retain(|hole| hole.end > to);
            }
        }
        self.queue_ack(ack);
        (bytes > 0 || widens).then_some(ack)
    }

    /// Marks its peer's last acknowledgement as reporting data behind a gap (SACK).
    pub fn mark_sacked(&mut self) {
        if let Some(ack) = self.acks.back_mut() {
            ack.is_sacked = true;
        }
    }

    /// Marks its peer's last acknowledgement as that of a packet that was not captured: its time is no evidence.
    pub fn is_of_unseen(&mut self) -> Option<Ack> {
        let ack = self.acks.back_mut()?;
        (ack.newest, ack.is_of_unseen) = (None, true);
        Some(*ack)
    }

    /// Returns whether an acknowledgement does not advance the window's edge.
    pub fn stands_still(&self, to: u64, window: u32) -> bool {
        self.acknowledged_edge().is_some_and(|edge| to + u64::from(window) <= edge)
    }

    /// Handles a duplicate ACK, which reports data behind a gap if `is_sacked`.
    pub fn acknowledge_duplicate(&mut self, is_sacked: bool, mark: Mark, stamp: Option<AckStamp>) {
        let Mark { at, frame } = mark;
        self.queue_ack(Ack {
            frame,
            at,
            to: self.acknowledged,
            edge: self.acknowledged_edge(),
            widens: false,
            newest: None,
            oldest_after: None,
            bytes: 0,
            is_duplicate: true,
            is_sacked,
            is_of_unseen: false,
            ahead: 0,
            since_before: None,
            stamp,
        });
    }

    fn queue_ack(&mut self, ack: Ack) {
        if self.acks.len() >= MAX_ACKS {
            self.acks.pop_front();
        }
        if self.acks.capacity() == 0 {
            self.acks.reserve_exact(1);
        }
        self.acks.push_back(ack);
    }

    /// Returns the furthest window edge that has passed.
    fn acknowledged_edge(&self) -> Option<u64> {
        self.acks.back().map_or(self.edge, |ack| ack.edge)
    }

    /// Skips to `to`: data that was not captured was acknowledged, so the sender has sent it. Returns its bytes.
    pub fn jump(&mut self, to: u64) -> u64 {
        let bytes = to.saturating_sub(self.next);
        self.next += bytes;
        self.sent.clear();
        self.on_the_way = Tally::default();
        self.holes = None;
        bytes
    }

    /// Returns the acknowledgements that the sender has received by `now`. `away` is the round trip between it and the
    /// point of capture, which may be `slack` too long. Its earlier knowledge remains available until
    /// [`Sender::forget`]. `noise` is the variation of that round trip, and `echo` the timestamp that its segment echoes:
    /// an acknowledgement with a later one had not arrived. Neither had one of data that the segment sends again, from
    /// `repeated` on: nothing is retransmitted that is known to have arrived (RFC 9293, section 3.8.1).
    pub fn receive_acks(
        &mut self,
        now: Time,
        away: Duration,
        [slack, noise]: [Duration; 2],
        echo: Option<u32>,
        segment: (u32, u64),
    ) -> AckFacts {
        // No acknowledgement is faster than the fastest, except by the transmission time that a shorter one saves on
        // the slowest link. A small tolerance allows for the clock.
        let learned = self.learn_within(now, away, [CLOCK.max(away / 20), noise], echo, segment);
        // If that leaves none that can have triggered the segment, the minimum so far may have been too long.
        if learned.acks > 0 || learned.duplicate.is_some() || slack <= away / 20 {
            return learned;
        }
        self.learn_within(now, away, [slack, noise], echo, segment)
    }

    /// Handles a further copy of an acknowledgement, as from a second point of capture: if it is that of the last one, the sender had it no
    /// sooner.
    pub fn receive_copy(&mut self, copy: &Segment<'_>) {
        let to = self.position(copy.tcp.ack);
        if let Some(last) = self.acks.back_mut().filter(|last| last.to == to) {
            last.at = copy.at;
        }
    }

    fn learn_within(
        &mut self,
        now: Time,
        away: Duration,
        [slack, noise]: [Duration; 2],
        echo: Option<u32>,
        (seq, length): (u32, u64),
    ) -> AckFacts {
        let repeated = self.repeats(seq, length);
        // A window that offers less than a segment and than the rest of the data stays unused (RFC 9293, section 3.8.6.2.1).
        let needed = self.position(seq) + length.min(self.mss.get());
        let least = away.saturating_sub(slack);
        let echoes_bare = self.echoes_bare;
        let received_stamp = self.last_ack_stamp.filter(|_| echoes_bare).zip(echo);
        let was_late =
            received_stamp.is_some_and(|(received_stamp, echo)| clock::is_later(received_stamp, echo));
        // Of several with the echoed timestamp, only the first has arrived for certain.
        let mut before = None;
        let mut has_come = |ack: &Ack| {
            let stamp = ack.stamp.filter(|stamp| echoes_bare || !stamp.is_bare).map(|stamp| stamp.value);
            let is_first = stamp != std::mem::replace(&mut before, stamp);
            match stamp.zip(echo) {
                _ if repeated.is_some_and(|start| ack.to > start) => false,
                Some((stamp, echo)) if clock::is_later(stamp, echo) => false,
                Some((stamp, echo)) if clock::is_later(echo, stamp) || is_first => true,
                Some(_) | None => ack.at + least <= now,
            }
        };
        // Delay that a path adds occasionally: an acknowledgement that arrived this much earlier was not the trigger.
        let most = away + (away / 20).max(if away < NEAR { CLOCK } else { NEAR / 2 });
        let (known, edge) = (self.known, self.edge);
        let mut learned = AckFacts {
            known,
            edge,
            acks: 0,
            last: None,
            duplicate: None,
            freed: 0,
            surely_freed: 0,
            was_late,
        };
        while let Some(ack) = self.acks.front().copied().filter(&mut has_come) {
            self.acks.pop_front();
            self.edge = ack.edge;
            self.last_ack_at = Some(ack.at);
            self.last_ack_stamp = ack.stamp.map(|stamp| stamp.value).or(self.last_ack_stamp);
            if ack.is_duplicate {
                self.duplicates += 1;
                self.is_sacked |= ack.is_sacked;
                learned.duplicate = Some(ack);
            } else if ack.bytes > 0 {
                (self.duplicates, self.is_sacked) = (0, ack.is_sacked);
            }
            if ack.bytes == 0 && !ack.widens {
                continue;
            }
            let has_window = |last: &Ack| last.edge.is_none_or(|edge| edge >= needed);
            let early = learned.last.filter(|last| last.at + most < now && has_window(last));
            let bytes_of = |early: Option<Ack>| early.map_or(0, |early| u64::from(early.bytes));
            learned.freed += bytes_of(early);
            learned.surely_freed += bytes_of(early.filter(|early| early.at + away + noise < now));
            learned.acks += 1;
            learned.last = Some(ack);
            self.known = self.known.max(ack.to);
        }
        learned
    }

    /// Returns the position from which a segment repeats acknowledged data; `None` for new data and probes.
    pub fn repeats(&self, seq: u32, length: u64) -> Option<u64> {
        let start = self.position(seq);
        (length > 0 && start < self.acknowledged && start + 1 < self.next).then_some(start)
    }

    /// Drops segments that the sender knows to have arrived, and all but the newest `most`.
    pub fn forget(&mut self, most: usize) {
        while self.sent.front().is_some_and(|sent| sent.end <= self.known) || self.sent.len() > most {
            self.arrived();
        }
        let flight = bounded(self.in_flight());
        self.largest_flight = self.largest_flight.max(flight);
        self.largest_since_pause = self.largest_since_pause.max(flight);
        if self.known >= self.repaired {
            self.largest_since_loss = self.largest_since_loss.max(flight);
        }
    }

    /// Returns whether a segment without data at `seq` is a keep-alive or window probe: one byte back (RFC 9293,
    /// section 3.8.4). The reply is no round-trip sample of older data.
    pub fn is_probed_by(&mut self, seq: u32) -> bool {
        let is_probe = self.is_seen && self.position(seq) + 1 == self.next;
        if let Some(newest) = self.sent.back_mut().filter(|_| is_probe) {
            newest.times += 1;
        }
        is_probe
    }

    /// Returns whether `length` new bytes at `start` are a short segment while another is unacknowledged. Unknown where
    /// the handshake was not captured: then the full size is unknown.
    pub fn sends_short(&self, start: u64, length: u64) -> bool {
        let is_short = |length: u64| length > 0 && length < self.mss.get();
        let known = self.mss.offered.is_some() && self.window != Some(0) && start == self.next;
        known && is_short(length) && self.flight(self.acknowledged).last_short_end > self.acknowledged
    }

    /// Returns whether everything that it sent was acknowledged, as far as captured.
    pub const fn has_arrived(&self) -> bool {
        self.acknowledged >= self.next
    }

    /// Returns whether data that was not captured is still missing.
    pub fn is_missing(&self) -> bool {
        self.holes.as_ref().is_some_and(|holes| !holes.is_empty())
    }

    /// Returns whether data is missing before `seq`.
    pub fn has_hole(&self, seq: u32) -> bool {
        self.is_seen && (self.position(seq) > self.next || self.is_missing())
    }

    /// Returns the bytes in flight, as far as the sender knew.
    pub fn in_flight(&self) -> u64 {
        self.next.saturating_sub(self.known)
    }
}

/// Converts a count of bytes to half the width: no window is larger. The count saturates; more is in flight only where
/// nothing is acknowledged.
fn bounded(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Facts that a sender learned since it last sent.
#[derive(Clone, Copy, Debug)]
pub struct AckFacts {
    /// Position that it knew to be acknowledged before.
    pub known: u64,
    /// Window edge that it knew of before.
    pub edge: Option<u64>,
    /// Number of acknowledgements that it has received since.
    pub acks: u32,
    /// The last of them.
    pub last: Option<Ack>,
    /// The last duplicate ACK.
    pub duplicate: Option<Ack>,
    /// Bytes whose acknowledgement it had received long enough before the last one.
    pub freed: u64,
    /// The same, if the path had delayed it by as much as it varies.
    pub surely_freed: u64,
    /// Whether its segment echoes an earlier timestamp than one that it seemed to have received: that came later.
    pub was_late: bool,
}

#[cfg(test)]
mod tests;
