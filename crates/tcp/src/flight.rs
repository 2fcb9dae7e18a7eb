//! Segments in flight: each segment that was sent and not acknowledged, and its state.
//!
//! The scoreboard of RFC 6675, used without selective acknowledgements too. It neither decides what to send
//! nor holds the bytes.

use std::collections::VecDeque;

use wire::{Duration, Time};

use crate::config::Counting;

/// Segments outstanding, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    sent: VecDeque<SentSegment>,
    counting: Counting,
    mss: u64,
    /// Weights: of all segments, of the SACKed ones, and of the lost ones awaiting retransmission.
    all: u64,
    sacked: u64,
    lost: u64,
    /// No segment before this index awaits retransmission.
    search_from: usize,
    /// End of the furthest SACKed range.
    furthest_sacked: u64,
    delivered: DeliveredSegments,
}

/// One segment outstanding.
#[derive(Clone, Copy, Debug)]
struct SentSegment {
    start: u64,
    end: u64,
    at: Time,
    fate: Fate,
    resent: bool,
}

/// State of a segment in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// In flight, as far as known.
    Unknown,
    /// Received by the peer (SACK).
    Sacked,
    /// Declared lost, and not yet retransmitted.
    Lost,
}

/// The latest-sent segments among those that arrived since the last call: the send time and the end of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DeliveredSegments {
    /// Of segments sent once.
    pub once: Option<(Time, u64)>,
    /// Of retransmitted segments.
    pub again: Option<(Time, u64)>,
}

/// Result of a cumulative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AckResult {
    /// Send time of the last segment that was sent only once: a round trip may be measured from it.
    pub sent: Option<Time>,
    /// Number of segments.
    pub segments: u64,
}

impl Flight {
    pub(super) const fn new(counting: Counting, mss: u64) -> Self {
        Self {
            sent: VecDeque::new(),
            counting,
            mss,
            all: 0,
            sacked: 0,
            lost: 0,
            search_from: 0,
            furthest_sacked: 0,
            delivered: DeliveredSegments { once: None, again: None },
        }
    }

    /// Sets the negotiated segment size. Data sent with the SYN weighs by it from now on.
    pub(super) fn set_mss(&mut self, mss: u64) {
        let sent = std::mem::take(&mut self.sent);
        self.mss = mss;
        (self.all, self.sacked, self.lost) = (0, 0, 0);
        sent.iter().for_each(|sent| self.weigh_in(sent));
        self.sent = sent;
    }

    /// Whether nothing is outstanding.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Returns the weight of the data in flight: outstanding, and neither SACKed nor lost.
    pub(super) const fn weight(&self) -> u64 {
        self.all - self.sacked - self.lost
    }

    /// Returns the weight of everything outstanding, lost or not.
    pub(super) const fn outstanding(&self) -> u64 {
        self.all
    }

    /// Returns the weight of everything outstanding except the oldest segment.
    pub(super) fn weight_behind_first(&self) -> u64 {
        self.sent.front().map_or(0, |first| self.all - self.weigh(first.start, first.end))
    }

    /// Returns whether a segment is lost and awaits retransmission.
    pub(super) const fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.counting, self.mss);
    }

    /// Records that a segment was sent.
    pub(super) fn push(&mut self, start: u64, end: u64, at: Time) {
        self.all += self.weigh(start, end);
        self.sent.push_back(SentSegment { start, end, at, fate: Fate::Unknown, resent: false });
    }

    /// Removes everything before `number`, which has arrived.
    pub(super) fn acknowledge(&mut self, number: u64) -> AckResult {
        let mut taken = AckResult { sent: None, segments: 0 };
        while let Some(first) = self.sent.front().copied()
            && first.start < number
        {
            self.unweigh(&first);
            if first.end > number {
                let rest = SentSegment { start: number, ..first };
                self.weigh_in(&rest);
                if let Some(front) = self.sent.front_mut() {
                    *front = rest;
                }
                break;
            }
            if first.fate != Fate::Sacked {
                self.delivered.note(&first);
            }
            // A segment that was SACKed earlier gives no round trip sample now.
            if !first.resent && first.fate != Fate::Sacked {
                taken.sent = Some(first.at);
            }
            taken.segments += 1;
            self.sent.pop_front();
            self.search_from = self.search_from.saturating_sub(1);
        }
        taken
    }

    /// Marks `start..end` as SACKed. Returns whether that was new.
    pub(super) fn sack(&mut self, start: u64, end: u64) -> bool {
        let mut is_news = false;
        let from = self.sent.partition_point(|sent| sent.start < start);
        for place in from..self.sent.len() {
            let sent = self.sent[place];
            if sent.end > end {
                break;
            }
            if sent.fate != Fate::Sacked {
                self.delivered.note(&sent);
                self.set_fate(place, Fate::Sacked);
                is_news = true;
            }
        }
        self.furthest_sacked = self.furthest_sacked.max(end);
        is_news
    }

    /// Declares lost the segments after which more than two segments' worth of bytes, or three segments, are SACKed
    /// (RFC 6675, `IsLost`). Returns whether any of them had not been retransmitted.
    pub(super) fn lose_by_sack(&mut self) -> bool {
        let (mut segments, mut bytes, mut any) = (0_u32, 0, false);
        let end = self.sent.partition_point(|sent| sent.start < self.furthest_sacked);
        for place in (0..end).rev() {
            let sent = self.sent[place];
            match sent.fate {
                Fate::Sacked => {
                    segments += 1;
                    bytes += sent.end - sent.start;
                }
                Fate::Unknown if !sent.resent && (segments >= 3 || bytes > 2 * self.mss) => {
                    self.set_fate(place, Fate::Lost);
                    any = true;
                }
                Fate::Unknown | Fate::Lost => {}
            }
        }
        any
    }

    /// Declares lost what was sent before `newest` and has been unacknowledged for `patience`. Returns
    /// whether there was any, and the time at which the last of the others reaches that age.
    pub(super) fn lose_by_time(
        &mut self,
        now: Time,
        newest: (Time, u64),
        timeout: Duration,
    ) -> (bool, Option<Time>) {
        let (mut any, mut later) = (false, None);
        for place in 0..self.sent.len() {
            let sent = self.sent[place];
            if sent.fate != Fate::Unknown || (sent.at, sent.end) >= newest {
                continue;
            }
            let due = sent.at + timeout;
            if due <= now {
                self.set_fate(place, Fate::Lost);
                any = true;
            } else {
                later = later.max(Some(due));
            }
        }
        (any, later)
    }

    /// Takes the segments that arrived since the last call.
    pub(super) fn take_delivered(&mut self) -> DeliveredSegments {
        std::mem::take(&mut self.delivered)
    }

    /// Whether any segment is SACKed.
    pub(super) const fn has_sacked(&self) -> bool {
        self.sacked > 0
    }

    /// Number of SACKed segments.
    pub(super) fn sacked_segments(&self) -> usize {
        self.sent.iter().filter(|sent| sent.fate == Fate::Sacked).count()
    }

    /// Whether exactly one segment is outstanding.
    pub(super) fn is_single(&self) -> bool {
        self.sent.len() == 1
    }

    /// Returns the sequence range of the last segment, which counts as retransmitted from now on.
    pub(super) fn resend_last(&mut self, now: Time) -> Option<(u64, u64)> {
        let last = self.sent.back_mut()?;
        (last.resent, last.at) = (true, now);
        Some((last.start, last.end))
    }

    /// Declares the oldest segment lost, although it may have been retransmitted.
    pub(super) fn lose_first(&mut self) {
        if self.sent.front().is_some_and(|first| first.fate != Fate::Sacked) {
            self.set_fate(0, Fate::Lost);
        }
    }

    /// Declares everything lost that is not SACKed.
    pub(super) fn lose_all(&mut self) {
        for place in 0..self.sent.len() {
            if self.sent[place].fate == Fate::Unknown {
                self.set_fate(place, Fate::Lost);
            }
        }
    }

    /// Returns the sequence range of the first lost segment, which counts as retransmitted from now on.
    pub(super) fn resend(&mut self, now: Time) -> Option<(u64, u64)> {
        if self.lost == 0 {
            return None;
        }
        let mut later = self.sent.range(self.search_from..);
        let place = self.search_from + later.position(|sent| sent.fate == Fate::Lost)?;
        self.set_fate(place, Fate::Unknown);
        self.search_from = place;
        let sent = self.sent.get_mut(place)?;
        (sent.resent, sent.at) = (true, now);
        Some((sent.start, sent.end))
    }

    fn set_fate(&mut self, place: usize, fate: Fate) {
        let before = self.sent[place];
        self.unweigh(&before);
        let after = SentSegment { fate, ..before };
        self.weigh_in(&after);
        self.sent[place] = after;
        if fate == Fate::Lost {
            self.search_from = self.search_from.min(place);
        }
    }

    fn weigh(&self, start: u64, end: u64) -> u64 {
        match self.counting {
            Counting::Bytes => end - start,
            Counting::Segments => self.mss,
        }
    }

    fn weigh_in(&mut self, sent: &SentSegment) {
        let weight = self.weigh(sent.start, sent.end);
        self.all += weight;
        match sent.fate {
            Fate::Unknown => {}
            Fate::Sacked => self.sacked += weight,
            Fate::Lost => self.lost += weight,
        }
    }

    fn unweigh(&mut self, sent: &SentSegment) {
        let weight = self.weigh(sent.start, sent.end);
        self.all -= weight;
        match sent.fate {
            Fate::Unknown => {}
            Fate::Sacked => self.sacked -= weight,
            Fate::Lost => self.lost -= weight,
        }
    }
}

impl DeliveredSegments {
    fn note(&mut self, sent: &SentSegment) {
        let newest = if sent.resent { &mut self.again } else { &mut self.once };
        *newest = (*newest).max(Some((sent.at, sent.end)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight_of(segments: u64) -> Flight {
        let mut flight = Flight::new(Counting::Bytes, 10);
        (0..segments).for_each(|n| flight.push(10 * n, 10 * n + 10, Time::from_nanos(n)));
        flight
    }

    #[test]
    fn acknowledgement_removes_whole_segments_and_parts() {
        let mut flight = flight_of(4);
        assert_eq!(flight.acknowledge(25), AckResult { sent: Some(Time::from_nanos(1)), segments: 2 });
        assert_eq!(flight.weight(), 15);
        assert_eq!(flight.acknowledge(40), AckResult { sent: Some(Time::from_nanos(3)), segments: 2 });
        assert!(flight.is_empty());
    }

    #[test]
    fn three_later_sacked_segments_declare_one_lost() {
        let mut flight = flight_of(6);
        assert!(flight.sack(20, 40));
        assert!(!flight.lose_by_sack());
        assert!(!flight.sack(20, 40));
        flight.sack(20, 50);
        assert!(flight.lose_by_sack());
        // Two lost, three SACKed, one in flight.
        assert_eq!(flight.weight(), 10);
        assert_eq!(flight.resend(Time::ZERO), Some((0, 10)));
        assert_eq!(flight.resend(Time::ZERO), Some((10, 20)));
        assert_eq!(flight.resend(Time::ZERO), None);
        assert_eq!(flight.weight(), 30);
        assert!(!flight.lose_by_sack(), "what was sent again is not lost twice");
    }

    #[test]
    fn retransmitted_segments_give_no_round_trip() {
        let mut flight = flight_of(2);
        flight.lose_all();
        assert_eq!(flight.weight(), 0);
        assert_eq!(flight.resend(Time::from_nanos(9)), Some((0, 10)));
        assert_eq!(flight.acknowledge(10), AckResult { sent: None, segments: 1 });
        assert!(flight.has_lost());
    }

    #[test]
    fn short_segment_weighs_a_full_one_if_segments_are_counted() {
        let mut flight = Flight::new(Counting::Segments, 10);
        flight.push(0, 1, Time::ZERO);
        flight.push(1, 11, Time::ZERO);
        assert_eq!(flight.weight(), 20);
        assert_eq!(flight.weight_behind_first(), 10);
    }
}
