//! Segments in flight: each segment that was sent and not acknowledged, and its state.
//!
//! The scoreboard of RFC 6675, used without selective acknowledgements too. The bytes are in `send`.

use std::collections::VecDeque;

use wire::{Duration, Time};

use crate::config::Counting;

/// Scoreboard of the outstanding segments, oldest first.
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
    sent_at: Time,
    state: SegmentState,
    retransmitted: bool,
}

/// State of a segment in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentState {
    /// Neither acknowledged nor declared lost.
    InFlight,
    /// Received by the peer (SACK).
    Sacked,
    /// Declared lost, and not yet retransmitted.
    Lost,
}

/// Latest-sent segments among those that arrived since the last call: the send time and the end of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DeliveredSegments {
    /// Of segments sent only once.
    pub original: Option<(Time, u64)>,
    /// Of retransmitted segments.
    pub retransmitted: Option<(Time, u64)>,
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
            delivered: DeliveredSegments { original: None, retransmitted: None },
        }
    }

    /// Sets the negotiated segment size. Data sent with the SYN weighs by it from now on.
    pub(super) fn set_mss(&mut self, mss: u64) {
        let sent = std::mem::take(&mut self.sent);
        self.mss = mss;
        (self.all, self.sacked, self.lost) = (0, 0, 0);
        sent.iter().for_each(|sent| self.add_weight(sent));
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
        self.sent.front().map_or(0, |first| self.all - self.weight_of(first.start, first.end))
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
    pub(super) fn push(&mut self, start: u64, end: u64, sent_at: Time) {
        self.all += self.weight_of(start, end);
        self.sent.push_back(SentSegment {
            start,
            end,
            sent_at,
            state: SegmentState::InFlight,
            retransmitted: false,
        });
    }

    /// Removes everything before `number`, which has arrived.
    pub(super) fn acknowledge(&mut self, number: u64) -> AckResult {
        let mut result = AckResult { sent: None, segments: 0 };
        while let Some(first) = self.sent.front().copied()
            && first.start < number
        {
            self.remove_weight(&first);
            if first.end > number {
                let remainder = SentSegment { start: number, ..first };
                self.add_weight(&remainder);
                if let Some(front) = self.sent.front_mut() {
                    *front = remainder;
                }
                break;
            }
            if first.state != SegmentState::Sacked {
                self.delivered.record(&first);
            }
            // A segment that was SACKed earlier gives no round trip sample now.
            if !first.retransmitted && first.state != SegmentState::Sacked {
                result.sent = Some(first.sent_at);
            }
            result.segments += 1;
            self.sent.pop_front();
            self.search_from = self.search_from.saturating_sub(1);
        }
        result
    }

    /// Marks `start..end` as SACKed. Returns whether any of it was new.
    pub(super) fn sack(&mut self, start: u64, end: u64) -> bool {
        let mut is_new = false;
        let from = self.sent.partition_point(|sent| sent.start < start);
        for index in from..self.sent.len() {
            let sent = self.sent[index];
            if sent.end > end {
                break;
            }
            if sent.state != SegmentState::Sacked {
                self.delivered.record(&sent);
                self.set_state(index, SegmentState::Sacked);
                is_new = true;
            }
        }
        self.furthest_sacked = self.furthest_sacked.max(end);
        is_new
    }

    /// Declares lost the segments after which more than two segments' worth of bytes, or three segments, are SACKed
    /// (RFC 6675, `IsLost`). Returns whether any of them had not been retransmitted.
    pub(super) fn mark_lost_by_sack(&mut self) -> bool {
        let (mut segments, mut bytes, mut any_lost) = (0_u32, 0, false);
        let end = self.sent.partition_point(|sent| sent.start < self.furthest_sacked);
        for index in (0..end).rev() {
            let sent = self.sent[index];
            match sent.state {
                SegmentState::Sacked => {
                    segments += 1;
                    bytes += sent.end - sent.start;
                }
                SegmentState::InFlight if !sent.retransmitted && (segments >= 3 || bytes > 2 * self.mss) => {
                    self.set_state(index, SegmentState::Lost);
                    any_lost = true;
                }
                SegmentState::InFlight | SegmentState::Lost => {}
            }
        }
        any_lost
    }

    /// Declares lost the segments sent before `newest` and unacknowledged for `timeout`. Returns whether there was any,
    /// and the latest deadline of the others.
    pub(super) fn mark_lost_by_time(
        &mut self,
        now: Time,
        newest: (Time, u64),
        timeout: Duration,
    ) -> (bool, Option<Time>) {
        let (mut any_lost, mut latest_deadline) = (false, None);
        for index in 0..self.sent.len() {
            let sent = self.sent[index];
            if sent.state != SegmentState::InFlight || (sent.sent_at, sent.end) >= newest {
                continue;
            }
            let deadline = sent.sent_at + timeout;
            if deadline <= now {
                self.set_state(index, SegmentState::Lost);
                any_lost = true;
            } else {
                latest_deadline = latest_deadline.max(Some(deadline));
            }
        }
        (any_lost, latest_deadline)
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
        self.sent.iter().filter(|sent| sent.state == SegmentState::Sacked).count()
    }

    /// Whether exactly one segment is outstanding.
    pub(super) fn is_single(&self) -> bool {
        self.sent.len() == 1
    }

    /// Returns the sequence range of the last segment, which counts as retransmitted from now on.
    pub(super) fn retransmit_last(&mut self, now: Time) -> Option<(u64, u64)> {
        let last = self.sent.back_mut()?;
        (last.retransmitted, last.sent_at) = (true, now);
        Some((last.start, last.end))
    }

    /// Declares the oldest segment lost, although it may have been retransmitted.
    pub(super) fn mark_first_lost(&mut self) {
        if self.sent.front().is_some_and(|first| first.state != SegmentState::Sacked) {
            self.set_state(0, SegmentState::Lost);
        }
    }

    /// Declares everything lost that is not SACKed.
    pub(super) fn mark_all_lost(&mut self) {
        for index in 0..self.sent.len() {
            if self.sent[index].state == SegmentState::InFlight {
                self.set_state(index, SegmentState::Lost);
            }
        }
    }

    /// Returns the sequence range of the first lost segment, which counts as retransmitted from now on.
    pub(super) fn retransmit_first_lost(&mut self, now: Time) -> Option<(u64, u64)> {
        if self.lost == 0 {
            return None;
        }
        let mut later = self.sent.range(self.search_from..);
        let index = self.search_from + later.position(|sent| sent.state == SegmentState::Lost)?;
        self.set_state(index, SegmentState::InFlight);
        self.search_from = index;
        let sent = self.sent.get_mut(index)?;
        (sent.retransmitted, sent.sent_at) = (true, now);
        Some((sent.start, sent.end))
    }

    fn set_state(&mut self, index: usize, state: SegmentState) {
        let before = self.sent[index];
        self.remove_weight(&before);
        let after = SentSegment { state, ..before };
        self.add_weight(&after);
        self.sent[index] = after;
        if state == SegmentState::Lost {
            self.search_from = self.search_from.min(index);
        }
    }

    fn weight_of(&self, start: u64, end: u64) -> u64 {
        match self.counting {
            Counting::Bytes => end - start,
            Counting::Segments => self.mss,
        }
    }

    fn add_weight(&mut self, sent: &SentSegment) {
        let weight = self.weight_of(sent.start, sent.end);
        self.all += weight;
        match sent.state {
            SegmentState::InFlight => {}
            SegmentState::Sacked => self.sacked += weight,
            SegmentState::Lost => self.lost += weight,
        }
    }

    fn remove_weight(&mut self, sent: &SentSegment) {
        let weight = self.weight_of(sent.start, sent.end);
        self.all -= weight;
        match sent.state {
            SegmentState::InFlight => {}
            SegmentState::Sacked => self.sacked -= weight,
            SegmentState::Lost => self.lost -= weight,
        }
    }
}

impl DeliveredSegments {
    fn record(&mut self, sent: &SentSegment) {
        let newest = if sent.retransmitted { &mut self.retransmitted } else { &mut self.original };
        *newest = (*newest).max(Some((sent.sent_at, sent.end)));
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
        assert!(!flight.mark_lost_by_sack());
        assert!(!flight.sack(20, 40));
        flight.sack(20, 50);
        assert!(flight.mark_lost_by_sack());
        // Two lost, three SACKed, one in flight.
        assert_eq!(flight.weight(), 10);
        assert_eq!(flight.retransmit_first_lost(Time::ZERO), Some((0, 10)));
        assert_eq!(flight.retransmit_first_lost(Time::ZERO), Some((10, 20)));
        assert_eq!(flight.retransmit_first_lost(Time::ZERO), None);
        assert_eq!(flight.weight(), 30);
        assert!(!flight.mark_lost_by_sack(), "a retransmitted segment is not lost twice");
    }

    #[test]
    fn retransmitted_segments_give_no_round_trip() {
        let mut flight = flight_of(2);
        flight.mark_all_lost();
        assert_eq!(flight.weight(), 0);
        assert_eq!(flight.retransmit_first_lost(Time::from_nanos(9)), Some((0, 10)));
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
