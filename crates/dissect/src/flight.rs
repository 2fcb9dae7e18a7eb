//! A sender's data in flight at one moment, as far as the sender knew.
//!
//! Segments are counted as they are sent and arrive, not one by one at each query. There may be thousands, and a
//! hostile capture forces a query at every packet.

use wire::Time;

use crate::sender::{Sender, SentSegment};
use crate::tally::Tally;

/// Data in flight at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flight {
    /// Position of its first byte.
    pub start: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Number of its segments.
    pub segments: u64,
    /// Number of segments shorter than the MSS.
    pub short_segments: u64,
    /// Whether its first segment is short.
    pub begins_short: bool,
    /// Position after its last short segment; zero if there is none.
    pub last_short_end: u64,
    /// Length of the last segment.
    pub last: u64,
    /// The first and the last packet.
    pub frames: (u64, u64),
    /// When the first was sent.
    pub since: Option<Time>,
}

impl Sender {
    /// Returns the data in flight as the sender saw it when it knew only of `known`.
    pub fn flight(&self, known: u64) -> Flight {
        let arrived = self.sent.partition_point(|sent| sent.end <= known);
        let bytes = self.next.saturating_sub(known);
        let (Some(first), Some(last)) = (self.sent.get(arrived), self.sent.back()) else {
            return Flight { bytes, ..Flight::default() };
        };
        let mut tally = self.on_the_way;
        if tally.mss == self.mss.get() {
            self.sent.iter().take(arrived).for_each(|sent| tally.remove(sent.start, sent.end));
        } else {
            tally = self.counted(arrived);
        }
        let length = first.end - first.start;
        Flight {
            start: first.start,
            bytes,
            segments: tally.segments,
            short_segments: tally.shorts,
            begins_short: length < tally.mss,
            last_short_end: tally.last_short_end,
            last: last.end - last.start,
            frames: (first.frame, last.frame),
            since: Some(first.at),
        }
    }

    /// Counts a segment as in flight, at this index among those in flight.
    pub(crate) fn add_in_flight(&mut self, index: usize, sent: SentSegment) {
        if self.on_the_way.mss != self.mss.get() {
            self.on_the_way = self.counted(0);
        }
        self.on_the_way.add(sent.start, sent.end);
        if self.sent.capacity() == 0 {
            self.sent.reserve_exact(1);
        }
        self.sent.insert(index, sent);
    }

    /// Counts the oldest segment as arrived.
    pub fn arrived(&mut self) {
        if let Some(SentSegment { start, end, .. }) = self.sent.pop_front() {
            self.on_the_way.remove(start, end);
        }
    }

    /// Recounts all but the oldest `arrived`: the size of a full segment is known better than before.
    fn counted(&self, arrived: usize) -> Tally {
        let mut tally = Tally { mss: self.mss.get(), ..Tally::default() };
        self.sent.iter().skip(arrived).for_each(|sent| tally.add(sent.start, sent.end));
        tally
    }
}

/// The last few flights at which a sender stopped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    flights: [u32; 8],
    /// When the last two ended, newest first.
    ended: [Time; 2],
    /// Number of all of them.
    pub count: usize,
}

impl Rounds {
    /// Adds a flight at which the sender stopped until `end`.
    pub fn push(&mut self, flight: u64, end: Time) {
        self.ended = [end, self.ended[0]];
        self.flights.rotate_right(1);
        self.flights[0] = u32::try_from(flight).unwrap_or(u32::MAX);
        self.count += 1;
    }

    /// Returns when the last stop but one ended.
    pub fn last_but_one(&self) -> Option<Time> {
        (self.count >= 2).then_some(self.ended[1])
    }

    /// Iterates over the flights, newest first.
    pub fn latest(&self) -> impl Iterator<Item = u64> {
        self.flights.into_iter().map(u64::from).take(self.count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wire::Duration;

    use super::*;
    use crate::Mark;

    const FIRST: u64 = 1 << 40;

    /// Counts the segments one by one.
    fn count_segments(sender: &Sender, known: u64) -> (u64, u64, u64) {
        let mss = sender.mss.get();
        let on_the_way = sender.sent.iter().filter(|sent| sent.end > known);
        let lengths = on_the_way.map(|sent| (sent.end, sent.end - sent.start));
        lengths.fold((0, 0, 0), |(segments, shorts, last), (end, length)| {
            let is_short = !length.is_multiple_of(mss);
            let last = if is_short { end } else { last };
            (segments + length.div_ceil(mss), shorts + u64::from(is_short), last)
        })
    }

    proptest! {
        #[test]
        fn segments_in_flight_agree_with_brute_force(
            steps in prop::collection::vec((0_u64..4_000, 1_u64..6_000, 0_u64..8_000), 1..60),
        ) {
            let mut sender = Sender::default();
            let mut edge = FIRST;
            for (frame, (skipped, length, arrives)) in (1..).zip(steps) {
                // Every third segment fills a range that was skipped, if there is one.
                let start = if frame % 3 == 0 { edge.saturating_sub(skipped).max(FIRST) } else { edge + skipped / 1_000 * 500 };
                sender.mss.observe(length / 4);
                let mark = Mark { at: Time::from_nanos(frame * 1_000_000), frame };
                sender.send(start, start + length, mark, 0, Duration::from_micros(1));
                edge = edge.max(start + length);
                let to = (sender.acknowledged + arrives).min(edge);
                sender.acknowledge(to, None, mark, None);
                let learned = sender.receive_acks(mark.at, Duration::ZERO, [Duration::ZERO; 2], None, (0, 0));
                for known in [learned.known, sender.known] {
                    let Flight { segments, short_segments, last_short_end, .. } = sender.flight(known);
                    prop_assert_eq!((segments, short_segments, last_short_end), count_segments(&sender, known));
                }
                sender.forget(8);
            }
        }
    }
}
