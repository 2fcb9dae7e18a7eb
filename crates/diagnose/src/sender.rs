//! One end of a connection as a sender: what it has sent, what it knew to have arrived, what it was allowed.
//!
//! A capture shows an acknowledgement when it passes, not when the sender has it. So acknowledgements wait in a queue
//! here for as long as they need to the sender and its packets need back ([`Path::to`]): what is asked about the
//! sender is answered as the sender saw it, wherever the capture was taken. Not a congestion control: windows are
//! inferred from what was done.
//!
//! [`Path::to`]: crate::path::Path::to

use std::collections::VecDeque;

use wire::{Duration, Time};

use crate::flight::Tally;
use crate::gap::Mark;
use crate::mss::Mss;
use crate::pace::Pace;

/// A sender, by what was captured of it and of its peer's acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// Whether anything of it was captured, from where on all numbers are known.
    pub(crate) is_seen: bool,
    /// The first sequence number that it has not sent yet.
    pub(crate) next: u64,
    /// The highest acknowledgement that has passed.
    pub(crate) acknowledged: u64,
    /// The highest acknowledgement that it had when it sent last.
    pub(crate) known: u64,
    /// How far the window reached that it knew of then; `None` where windows cannot be read.
    pub(crate) edge: Option<u64>,
    /// The peer's window, when it last passed.
    pub(crate) window: Option<u32>,
    /// The largest segment it may send.
    pub(crate) mss: Mss,
    /// Flights, in bytes: the largest ever, the largest since it last repaired a loss, and since it last paused.
    pub(crate) largest_flight: u32,
    pub(crate) largest_since_loss: u32,
    pub(crate) largest_since_pause: u32,
    pub(crate) sent_last: Option<Time>,
    /// Sent and not known to have arrived, oldest first.
    pub(crate) sent: VecDeque<Sent>,
    /// How many these are.
    pub(crate) on_the_way: Tally,
    /// Passed, and not yet at the sender.
    acks: VecDeque<Ack>,
    /// Never seen, though something behind it was. Most have none.
    #[expect(
        clippy::box_collection,
        reason = "a pointer is less than a vector, and there are two for each connection"
    )]
    holes: Option<Box<Vec<Hole>>>,
    /// Up to where it had sent when it last repaired a loss.
    repaired: u64,
    /// When an acknowledgement of something new passed last.
    pub(crate) progressed_at: Option<Time>,
    /// Acknowledgements in a row that it had and that say the same.
    pub(crate) duplicates: u32,
    /// Whether one of them told of data behind a gap.
    pub(crate) is_sacked: bool,
    /// When the last acknowledgement that it has passed.
    pub(crate) heard_at: Option<Time>,
    pub(crate) pace: Pace,
}

/// A segment on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) frame: u64,
    /// First sent, and last sent.
    pub(crate) at: Time,
    pub(crate) again_at: Time,
    pub(crate) times: u32,
    /// Bytes that were on their way before it.
    pub(crate) ahead: u32,
}

/// An acknowledgement of something new, or a wider window, or one that repeats what was said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    pub(crate) frame: u64,
    pub(crate) at: Time,
    pub(crate) to: u64,
    pub(crate) edge: Option<u64>,
    /// Whether that is further than before.
    pub(crate) widens: bool,
    /// When the newest segment it covers had passed, if that was sent once.
    newest: Option<Time>,
    /// When the oldest segment it does not cover had passed.
    oldest_after: Option<Time>,
    /// Bytes that it newly acknowledges.
    pub(crate) bytes: u32,
    /// Whether it only repeats the one before, and whether it tells of data behind a gap.
    pub(crate) is_duplicate: bool,
    pub(crate) is_sacked: bool,
    /// Bytes that were on their way before its newest segment.
    pub(crate) ahead: u32,
}

impl Ack {
    /// Since the newest segment it covers had passed, if that was sent once.
    pub(crate) fn after(&self) -> Option<Duration> {
        self.newest.map(|passed| self.at.since(passed))
    }

    /// Since the oldest segment it does not cover had passed.
    pub(crate) fn not_covered(&self) -> Option<Duration> {
        self.oldest_after.map(|passed| self.at.since(passed))
    }
}

/// A range that was not captured when what follows it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    start: u64,
    end: u64,
    pub(crate) since: Time,
    pub(crate) frame: u64,
    pub(crate) identification: u16,
}

/// What a range of sequence numbers was to what was known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// It continues (or leaves a gap and then continues).
    New,
    /// It fills a hole.
    Filled(Hole),
    /// It was seen before.
    Again(Option<Sent>),
    /// It was seen a moment ago.
    Twice,
    /// One byte, or none, from before the end: a probe for the peer's life or window.
    Probe,
}

/// So much the clocks of captures err.
const CLOCK: Duration = Duration::from_micros(50);
/// A sender so near to the place of the capture has acknowledgements when they pass.
const NEAR: Duration = Duration::from_millis(2);
const MOST_ACKS: usize = 1_024;
const MOST_HOLES: usize = 64;

impl Sender {
    /// The sequence number nearest to what was sent so far; the first one is anywhere.
    pub(crate) fn place(&self, seq: u32) -> u64 {
        // Far from zero, so that what comes before the first number seen has a place, too.
        const FIRST: u64 = 1 << 40;
        if !self.is_seen && self.next == 0 {
            return FIRST | u64::from(seq);
        }
        let [.., a, b, c, d] = self.next.to_be_bytes();
        let away = seq.wrapping_sub(u32::from_be_bytes([a, b, c, d])).cast_signed();
        self.next.saturating_add_signed(i64::from(away))
    }

    /// It sent from `start` up to `end` (exclusive). What comes a second time before `soon` has passed was not sent
    /// again: it was captured, or arrived, twice.
    pub(crate) fn send(
        &mut self,
        start: u64,
        end: u64,
        mark: Mark,
        identification: u16,
        soon: Duration,
    ) -> Order {
        let Mark { at, frame } = mark;
        if !self.is_seen {
            self.is_seen = true;
            if self.next == 0 {
                (self.next, self.acknowledged, self.known) = (start, start, start);
            }
        }
        if end <= self.next {
            return self.send_again(start, end, mark, soon);
        }
        if start > self.next {
            let holes = self.holes.get_or_insert_default();
            if holes.len() >= MOST_HOLES {
                holes.remove(0);
            }
            holes.push(Hole { start: self.next, end: start, since: at, frame, identification });
        }
        let ahead = bounded(self.next.saturating_sub(self.acknowledged));
        let first = start.max(self.next);
        let sent = Sent { start: first, end, frame, at, again_at: at, times: 1, ahead };
        self.set_out(self.sent.len(), sent);
        self.next = end;
        self.sent_last = Some(at);
        Order::New
    }

    fn send_again(&mut self, start: u64, end: u64, mark: Mark, soon: Duration) -> Order {
        let order = self.place_again(start, end, mark, soon);
        // What had arrived needs no repair: its acknowledgement crossed it on the way.
        if !matches!(order, Order::Probe | Order::Twice) && end > self.acknowledged {
            self.sent_last = Some(mark.at);
            self.repaired = self.next;
            self.largest_since_loss = 0;
        }
        order
    }

    fn place_again(&mut self, start: u64, end: u64, mark: Mark, soon: Duration) -> Order {
        let Mark { at, frame } = mark;
        if end <= start + 1
            && start + 1 == self.next
            && (self.acknowledged >= start || self.window == Some(0))
        {
            // A lone byte that is still on its way is data sent again.
            let is_on_its_way = end == start + 1 && self.acknowledged <= start && self.window != Some(0);
            if !is_on_its_way {
                return Order::Probe;
            }
        }
        let filled = |hole: &Hole| hole.start < end && start < hole.end;
        if let Some(holes) = &mut self.holes
            && let Some(place) = holes.iter().position(filled)
        {
            let hole = holes.remove(place);
            for (first, last) in [(hole.start, start), (end, hole.end)] {
                if first < last && holes.len() < MOST_HOLES {
                    holes.push(Hole { start: first, end: last, ..hole });
                }
            }
            // What lies beside the hole was there before: of each byte there is one.
            let (start, end) = (start.max(hole.start), end.min(hole.end));
            let place = self.sent.partition_point(|sent| sent.end <= start);
            let ahead = bounded(start.saturating_sub(self.acknowledged));
            self.set_out(place, Sent { start, end, frame, at, again_at: at, times: 1, ahead });
            return Order::Filled(hole);
        }
        let first = self.sent.partition_point(|sent| sent.end <= start);
        let before = self.sent.get(first).copied().filter(|sent| sent.start < end);
        if before.is_some_and(|before| before.start == start && at.since(before.again_at) < soon) {
            return Order::Twice;
        }
        for sent in self.sent.iter_mut().skip(first).take_while(|sent| sent.start < end) {
            (sent.again_at, sent.times) = (at, sent.times + 1);
        }
        Order::Again(before)
    }

    /// Its peer acknowledged up to `to`, and offered `window` bytes more. `None` if that lets it send no more.
    pub(crate) fn acknowledge(&mut self, to: u64, window: Option<u32>, frame: u64, at: Time) -> Option<Ack> {
        let edge = window.map(|window| to + u64::from(window));
        let widens = edge > self.acknowledged_edge();
        let differs = edge != self.acknowledged_edge();
        self.window = window;
        // What was overtaken on its way says nothing new.
        if to < self.acknowledged || (to == self.acknowledged && !differs) {
            return None;
        }
        let covered = self.sent.partition_point(|sent| sent.end <= to);
        let newest = covered.checked_sub(1).and_then(|newest| self.sent.get(newest)).copied();
        let bytes = to.saturating_sub(self.acknowledged);
        // What waits behind a loss is acknowledged when that is repaired (as Karn saw).
        let is_clear = bytes > 0 && self.acknowledged >= self.repaired;
        let fresh = newest.filter(|sent| is_clear && sent.end > self.acknowledged && sent.times == 1);
        let ack = Ack {
            frame,
            at,
            to,
            edge,
            widens,
            newest: fresh.map(|sent| sent.at),
            oldest_after: self.sent.get(covered).map(|sent| sent.again_at),
            bytes: bounded(bytes),
            is_duplicate: false,
            is_sacked: false,
            ahead: fresh.map_or(0, |sent| sent.ahead),
        };
        if bytes > 0 {
            self.progressed_at = Some(at);
            self.acknowledged = to;
            if let Some(holes) = &mut self.holes {
                holes.retain(|hole| hole.end > to);
            }
        }
        self.will_hear(ack);
        (bytes > 0 || widens).then_some(ack)
    }

    /// What its peer acknowledged last told of data behind a gap, too.
    pub(crate) fn tells_of_a_gap(&mut self) {
        if let Some(ack) = self.acks.back_mut() {
            ack.is_sacked = true;
        }
    }

    /// Whether an acknowledgement moves the window's edge no further.
    pub(crate) fn stands_still(&self, to: u64, window: u32) -> bool {
        self.acknowledged_edge().is_some_and(|edge| to + u64::from(window) <= edge)
    }

    /// Its peer said again what it had said, and told of data behind a gap if `is_sacked`.
    pub(crate) fn acknowledge_again(&mut self, is_sacked: bool, frame: u64, at: Time) {
        self.will_hear(Ack {
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
            ahead: 0,
        });
    }

    fn will_hear(&mut self, ack: Ack) {
        if self.acks.len() >= MOST_ACKS {
            self.acks.pop_front();
        }
        if self.acks.capacity() == 0 {
            // Most wait alone.
            self.acks.reserve_exact(1);
        }
        self.acks.push_back(ack);
    }

    /// The furthest edge that has passed.
    fn acknowledged_edge(&self) -> Option<u64> {
        self.acks.back().map_or(self.edge, |ack| ack.edge)
    }

    /// Data that was not captured was acknowledged: the sender has sent it all the same.
    pub(crate) fn jump(&mut self, to: u64) {
        self.next = self.next.max(to);
        self.sent.clear();
        self.on_the_way = Tally::default();
        self.holes = None;
    }

    /// The acknowledgements that the sender has by `now`, `away` being what they need to it and its packets back.
    /// What it knew before stays to be asked until [`Sender::forget`].
    pub(crate) fn learn(&mut self, now: Time, away: Duration) -> Learned {
        // None is faster than the fastest, but for what the slowest link spares an acknowledgement that is shorter than
        // what that was measured by; and a little less forgives the clock.
        let least = away.saturating_sub(CLOCK.max(away / 20));
        // What a path adds at times: an acknowledgement that came so much earlier did not make it send.
        let most = away + (away / 20).max(if away < NEAR { CLOCK } else { NEAR / 2 });
        let mut learned =
            Learned { known: self.known, edge: self.edge, acks: 0, last: None, again: None, freed: 0 };
        while let Some(ack) = self.acks.front().copied().filter(|ack| ack.at + least <= now) {
            self.acks.pop_front();
            self.edge = ack.edge;
            self.heard_at = Some(ack.at);
            if ack.is_duplicate {
                self.duplicates += 1;
                self.is_sacked |= ack.is_sacked;
                learned.again = Some(ack);
            } else if ack.bytes > 0 {
                (self.duplicates, self.is_sacked) = (0, ack.is_sacked);
            }
            if ack.bytes == 0 && !ack.widens {
                continue;
            }
            let early = learned.last.filter(|last: &Ack| last.at + most < now);
            learned.freed += early.map_or(0, |early| u64::from(early.bytes));
            learned.acks += 1;
            learned.last = Some(ack);
            self.known = self.known.max(ack.to);
        }
        learned
    }

    /// Forgets segments that the sender knows to have arrived, and all but the newest `most`.
    pub(crate) fn forget(&mut self, most: usize) {
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

    /// Where its newest segment and acknowledgement begin and end.
    pub(crate) fn newest(&self) -> u64 {
        self.sent.back().map_or(0, |sent| sent.start) ^ self.acks.back().map_or(0, |ack| ack.to)
    }

    /// Bytes on their way, as far as the sender knew.
    pub(crate) fn in_flight(&self) -> u64 {
        self.next.saturating_sub(self.known)
    }
}

/// A count of bytes in half the room: no window is larger. More than that is on its way only where nothing is
/// acknowledged, and is as much as it can hold.
fn bounded(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// What a sender learned since it last sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Learned {
    /// What it knew before: acknowledged up to here, allowed up to there.
    pub(crate) known: u64,
    pub(crate) edge: Option<u64>,
    pub(crate) acks: u32,
    pub(crate) last: Option<Ack>,
    /// The last that only repeated what had been said.
    pub(crate) again: Option<Ack>,
    /// Bytes of which it had heard long enough before the last acknowledgement.
    pub(crate) freed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1 << 40;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn send(sender: &mut Sender, start: u64, end: u64, frame: u64, millis: u64) -> Order {
        sender.send(start, end, Mark { at: at(millis), frame }, 0, Duration::from_millis(5))
    }

    fn sender() -> Sender {
        let mut sender = Sender::default();
        sender.mss.offered = Some(1_000);
        for (frame, millis) in [(1, 0), (2, 1)] {
            let start = START + 1_000 * (frame - 1);
            assert!(matches!(send(&mut sender, start, start + 1_000, frame, millis), Order::New));
        }
        sender
    }

    #[test]
    fn numbers_are_placed_nearest_to_what_was_sent() {
        let mut sender = Sender::default();
        let first = sender.place(u32::MAX);
        send(&mut sender, first, first + 1, 1, 0);
        assert_eq!(sender.place(0), first + 1);
        assert_eq!(sender.place(u32::MAX - 9), first - 9);
    }

    #[test]
    fn a_sender_learns_of_an_acknowledgement_when_it_has_come() {
        let mut sender = sender();
        sender.acknowledge(START + 1_000, Some(4_000), 3, at(20)).unwrap();
        assert_eq!(sender.learn(at(40), Duration::from_millis(30)).acks, 0);
        assert_eq!(sender.in_flight(), 2_000);
        let learned = sender.learn(at(50), Duration::from_millis(30));
        assert_eq!((learned.known, learned.acks), (START, 1));
        assert_eq!(sender.flight(learned.known).segments, 2);
        sender.forget(64);
        assert_eq!((sender.in_flight(), sender.edge), (1_000, Some(START + 5_000)));
    }

    #[test]
    fn an_acknowledgement_tells_what_it_covers_and_what_not() {
        let mut sender = sender();
        let ack = sender.acknowledge(START + 1_000, None, 3, at(20)).unwrap();
        assert_eq!(ack.after(), Some(Duration::from_millis(20)));
        assert_eq!(ack.not_covered(), Some(Duration::from_millis(19)));
        assert!(sender.acknowledge(START + 1_000, None, 4, at(21)).is_none());
    }

    #[test]
    fn a_hole_is_filled_and_what_is_sent_again_is_found() {
        let mut sender = sender();
        send(&mut sender, START + 3_000, START + 4_000, 3, 2);
        assert!(matches!(send(&mut sender, START + 2_000, START + 2_500, 4, 3), Order::Filled(_)));
        assert!(matches!(send(&mut sender, START + 2_500, START + 3_000, 5, 3), Order::Filled(_)));
        let Order::Again(Some(before)) = send(&mut sender, START, START + 1_000, 6, 200) else { panic!() };
        assert_eq!((before.frame, before.times), (1, 1));
        let Order::Again(Some(before)) = send(&mut sender, START, START + 1_000, 7, 600) else { panic!() };
        assert_eq!((before.times, before.again_at), (2, at(200)));
    }

    #[test]
    fn what_comes_again_at_once_was_captured_twice() {
        let mut sender = sender();
        assert!(matches!(send(&mut sender, START + 1_000, START + 2_000, 3, 2), Order::Twice));
    }

    #[test]
    fn a_probe_is_no_data_sent_again() {
        let mut sender = sender();
        sender.acknowledge(START + 2_000, Some(0), 3, at(20));
        for length in [0, 1] {
            let probe = send(&mut sender, START + 1_999, START + 1_999 + length, 4, 300);
            assert!(matches!(probe, Order::Probe));
        }
    }
}
