//! Loss detection by time, and tail loss probes (RFC 8985, as in Linux): RACK and TLP.
//!
//! A segment is lost when one that was sent later has arrived and the segment has been outstanding for long enough. The
//! last segments, which no other follows, are probed before the timer expires. Recovery's effect on the window is in
//! `recovery`. Not implemented: reordering does not extend the wait, and a probe that repaired a loss does not reduce
//! the window (both need duplicate selective acknowledgements).

use wire::{Duration, Time};

use crate::config::Recovery;
use crate::connection::Connection;
use crate::flight::DeliveredSegments;
use crate::recovery::Phase;
use crate::segment::Segment;

/// State of RACK and TLP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// Send time and end of the latest-sent segment that has arrived.
    newest: Option<(Time, u64)>,
    /// Its round trip.
    round_trip: Duration,
    /// Minimum round trip.
    min_round_trip: Option<Duration>,
    /// Reordering timer: when segments that may only be delayed count as lost.
    reordering_deadline: Option<Time>,
    /// Probe timeout (PTO): when the tail is probed.
    probe_deadline: Option<Time>,
    /// Number up to which the tail has been probed.
    probe_end: Option<u64>,
}

/// Linux's `TCP_RTO_MIN`: the time for which a receiver may delay the acknowledgement of a single segment.
const SINGLE_SEGMENT_SLACK: Duration = Duration::from_millis(200);
/// Linux's `TCP_TIMEOUT_MIN`: two jiffies of 4 ms.
const MIN_TIMEOUT: Duration = Duration::from_millis(8);

impl Rack {
    /// Returns the earlier deadline of its two timers.
    pub(super) fn deadline(&self) -> Option<Time> {
        [self.reordering_deadline, self.probe_deadline].into_iter().flatten().min()
    }

    /// Stops both timers: nothing is outstanding, or the retransmission timer has expired.
    pub(super) const fn stop(&mut self) {
        self.reordering_deadline = None;
        self.probe_deadline = None;
    }

    fn record(&mut self, now: Time, delivered: DeliveredSegments) {
        let DeliveredSegments { original, retransmitted } = delivered;
        if let Some((at, _)) = original {
            let round_trip = now.since(at);
            self.min_round_trip =
                Some(self.min_round_trip.map_or(round_trip, |minimum| minimum.min(round_trip)));
        }
        // An acknowledgement sooner than the minimum round trip is for the original, not for the retransmission.
        let retransmitted = retransmitted
            .filter(|(at, _)| self.min_round_trip.is_none_or(|minimum| now.since(*at) >= minimum));
        for sent in [original, retransmitted].into_iter().flatten() {
            if self.newest.is_none_or(|newest| sent > newest) {
                self.newest = Some(sent);
                self.round_trip = now.since(sent.0);
            }
        }
    }
}

impl Connection {
    /// Returns whether loss is detected by time.
    pub(super) fn uses_rack(&self) -> bool {
        self.config.recovery == Recovery::Rack && self.negotiated.sack
    }

    /// Updates the timers after an acknowledgement was processed.
    pub(super) fn update_rack(&mut self, now: Time) {
        let delivered = self.flight.take_delivered();
        if !self.uses_rack() {
            return;
        }
        self.rack.record(now, delivered);
        self.detect_losses_by_time(now);
        if self.rack.probe_end.is_some_and(|probe_end| self.unacknowledged >= probe_end) {
            self.rack.probe_end = None;
        }
        self.schedule_tail_probe(now);
    }

    /// Declares late segments lost; schedules a check of those that may only be delayed.
    pub(super) fn detect_losses_by_time(&mut self, now: Time) {
        self.rack.reordering_deadline = None;
        let Some(newest) = self.rack.newest else { return };
        // If no range is missing, everything outstanding was sent after the data that arrived.
        if self.loss.phase == Phase::Open && !self.flight.has_sacked() {
            return;
        }
        let is_certain = self.loss.phase != Phase::Open || self.flight.sacked_segments() >= 3;
        let reordering_window =
            if is_certain { Duration::ZERO } else { self.rack.min_round_trip.unwrap_or_default() / 4 };
        let (any_lost, reordering_deadline) =
            self.flight.mark_lost_by_time(now, newest, self.rack.round_trip + reordering_window);
        self.rack.reordering_deadline = reordering_deadline;
        if any_lost {
            self.enter_recovery_by_time();
        }
    }

    /// Schedules a tail loss probe after two round trips without an acknowledgement, if no loss is known.
    pub(super) fn schedule_tail_probe(&mut self, now: Time) {
        let may_probe = self.uses_rack()
            && self.loss.phase == Phase::Open
            && self.rack.probe_end.is_none()
            && !self.flight.is_empty()
            && !self.flight.has_sacked();
        self.rack.probe_deadline = None;
        if let (true, Some(round_trip), Some(timeout)) =
            (may_probe, self.timer.smoothed(), self.timer.deadline())
        {
            let slack = if self.flight.is_single() { SINGLE_SEGMENT_SLACK } else { MIN_TIMEOUT };
            self.rack.probe_deadline = Some(timeout.min(now + round_trip * 2 + slack));
        }
    }

    /// Handles the expiry of one of the two timers.
    pub(super) fn expire_rack(&mut self, now: Time) {
        if self.rack.reordering_deadline.is_some_and(|at| at <= now) {
            self.detect_losses_by_time(now);
        }
        if self.rack.probe_deadline.is_some_and(|at| at <= now) {
            self.rack.probe_deadline = None;
            self.pending.tail_probe = true;
            // The probe replaces a retransmission that is due now.
            self.timer.start(now);
        }
    }

    /// Returns the tail loss probe: the next segment, even if the window is full, or the last one retransmitted.
    pub(super) fn tail_probe(&mut self, now: Time) -> Option<Segment> {
        self.pending.tail_probe = false;
        let unsent = self.send.end().saturating_sub(self.next);
        let open = self.peer.edge.saturating_sub(self.next);
        let bytes = unsent.min(self.negotiated.mss).min(open);
        let segment = if bytes > 0 && (bytes == self.negotiated.mss || bytes == unsent) {
            let (start, end) = (self.next, self.next + bytes);
            let segment = self.data(now, start, end);
            self.flight.push(start, end, now);
            self.account_for(now, end, bytes);
            segment
        } else {
            let (start, end) = self.flight.retransmit_last(now)?;
            self.timed_segment = None;
            self.data(now, start, end)
        };
        self.rack.probe_end = Some(self.next);
        self.rack.probe_deadline = None;
        Some(segment)
    }
}
