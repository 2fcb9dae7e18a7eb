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
    least: Option<Duration>,
    /// When segments that may only be delayed count as lost.
    late_at: Option<Time>,
    /// When the tail is probed.
    probe_at: Option<Time>,
    /// Number up to which the tail has been probed.
    probed: Option<u64>,
}

/// Linux's `TCP_RTO_MIN`: the time for which a receiver may delay the acknowledgement of a single segment.
const SINGLE: Duration = Duration::from_millis(200);
/// Linux's `TCP_TIMEOUT_MIN`: two jiffies of 4 ms.
const MIN_TIMEOUT: Duration = Duration::from_millis(8);

impl Rack {
    /// Returns the earlier deadline of its two timers.
    pub(super) fn deadline(&self) -> Option<Time> {
        [self.late_at, self.probe_at].into_iter().flatten().min()
    }

    /// Stops both timers: nothing is outstanding, or the retransmission timer has expired.
    pub(super) const fn stop(&mut self) {
        self.late_at = None;
        self.probe_at = None;
    }

    fn note(&mut self, now: Time, delivered: DeliveredSegments) {
        let DeliveredSegments { once, again } = delivered;
        if let Some((at, _)) = once {
            let round_trip = now.since(at);
            self.least = Some(self.least.map_or(round_trip, |least| least.min(round_trip)));
        }
        // A retransmission acknowledged sooner than any round trip had arrived the first time.
        let again = again.filter(|(at, _)| self.least.is_none_or(|least| now.since(*at) >= least));
        for sent in [once, again].into_iter().flatten() {
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
        self.config.recovery == Recovery::Rack && self.agreed.sack
    }

    /// Updates the timers after an acknowledgement was processed.
    pub(super) fn track_time(&mut self, now: Time) {
        let delivered = self.flight.take_delivered();
        if !self.uses_rack() {
            return;
        }
        self.rack.note(now, delivered);
        self.detect_by_time(now);
        if self.rack.probed.is_some_and(|probed| self.unacknowledged >= probed) {
            self.rack.probed = None;
        }
        self.schedule_tail_probe(now);
    }

    /// Declares late segments lost; schedules a check of those that may only be delayed.
    pub(super) fn detect_by_time(&mut self, now: Time) {
        self.rack.late_at = None;
        let Some(newest) = self.rack.newest else { return };
        // If no range is missing, everything outstanding was sent after the data that arrived.
        if self.loss.phase == Phase::Open && !self.flight.has_sacked() {
            return;
        }
        let is_sure = self.loss.phase != Phase::Open || self.flight.sacked_segments() >= 3;
        let timeout = if is_sure { Duration::ZERO } else { self.rack.least.unwrap_or_default() / 4 };
        let (is_any_lost, late_at) = self.flight.lose_by_time(now, newest, self.rack.round_trip + timeout);
        self.rack.late_at = late_at;
        if is_any_lost {
            self.enter_recovery_by_time();
        }
    }

    /// Schedules a tail loss probe after two round trips without an acknowledgement, if no loss is known.
    pub(super) fn schedule_tail_probe(&mut self, now: Time) {
        let may_probe = self.uses_rack()
            && self.loss.phase == Phase::Open
            && self.rack.probed.is_none()
            && !self.flight.is_empty()
            && !self.flight.has_sacked();
        self.rack.probe_at = None;
        if let (true, Some(round_trip), Some(timeout)) =
            (may_probe, self.timer.smoothed(), self.timer.deadline())
        {
            let slack = if self.flight.is_single() { SINGLE } else { MIN_TIMEOUT };
            self.rack.probe_at = Some(timeout.min(now + round_trip * 2 + slack));
        }
    }

    /// Handles the expiry of one of the two timers.
    pub(super) fn expire_rack(&mut self, now: Time) {
        if self.rack.late_at.is_some_and(|at| at <= now) {
            self.detect_by_time(now);
        }
        if self.rack.probe_at.is_some_and(|at| at <= now) {
            self.rack.probe_at = None;
            self.wants.tail_probe = true;
            // The probe replaces a retransmission that is due now.
            self.timer.start(now);
        }
    }

    /// Returns the next segment, even if the window is full; or retransmits the last one.
    pub(super) fn tail_probe(&mut self, now: Time) -> Option<Segment> {
        self.wants.tail_probe = false;
        let waiting = self.send.end().saturating_sub(self.next);
        let open = self.peer.edge.saturating_sub(self.next);
        let bytes = waiting.min(self.agreed.mss).min(open);
        let segment = if bytes > 0 && (bytes == self.agreed.mss || bytes == waiting) {
            let (start, end) = (self.next, self.next + bytes);
            let segment = self.data(now, start, end);
            self.flight.push(start, end, now);
            self.account_for(now, end, bytes);
            segment
        } else {
            let (start, end) = self.flight.resend_last(now)?;
            self.timed = None;
            self.data(now, start, end)
        };
        self.rack.probed = Some(self.next);
        self.rack.probe_at = None;
        Some(segment)
    }
}
