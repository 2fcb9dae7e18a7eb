//! Loss by time, and probes of the tail (RFC 8985, as Linux has it): RACK and TLP.
//!
//! A segment is lost when one that was sent later has arrived and it has had time enough; the last segments, that
//! none follows, are asked about before the timer runs out. Not what recovery does to the window (`recovery`).
//! Left out: reordering makes no segment wait longer, and a probe that repaired a loss does not shrink the window
//! (both need duplicate selective acknowledgements).

use wire::{Duration, Time};

use crate::config::Recovery;
use crate::connection::Connection;
use crate::flight::Delivered;
use crate::recovery::Phase;
use crate::segment::Segment;

/// What is remembered of arrivals.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// When the segment left that was sent last of those known to have arrived, and its end.
    newest: Option<(Time, u64)>,
    /// Its round trip.
    round_trip: Duration,
    /// The least round trip.
    least: Option<Duration>,
    /// When what may only be late counts as lost.
    late_at: Option<Time>,
    /// When the tail is asked about.
    probe_at: Option<Time>,
    /// The tail has been asked about, up to this number.
    probed: Option<u64>,
}

/// Linux's `TCP_RTO_MIN`: what a receiver may hold back the acknowledgement of a single segment.
const SINGLE: Duration = Duration::from_millis(200);
/// Linux's `TCP_TIMEOUT_MIN`: two jiffies of 4 ms.
const LEAST: Duration = Duration::from_millis(8);

impl Rack {
    /// The earlier of its two timers.
    pub(super) fn deadline(&self) -> Option<Time> {
        [self.late_at, self.probe_at].into_iter().flatten().min()
    }

    /// Nothing is outstanding, or the timer has run out.
    pub(super) const fn stop(&mut self) {
        self.late_at = None;
        self.probe_at = None;
    }

    fn note(&mut self, now: Time, delivered: Delivered) {
        let Delivered { once, again } = delivered;
        if let Some((at, _)) = once {
            let round_trip = now.since(at);
            self.least = Some(self.least.map_or(round_trip, |least| least.min(round_trip)));
        }
        // What was sent twice and is back sooner than anything ever was had arrived the first time.
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
    /// Whether loss is told by time.
    pub(super) fn uses_rack(&self) -> bool {
        self.config.recovery == Recovery::Rack && self.agreed.sack
    }

    /// An acknowledgement has been dealt with.
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

    /// What is late is lost; what may only be late is looked at again.
    pub(super) fn detect_by_time(&mut self, now: Time) {
        self.rack.late_at = None;
        let Some(newest) = self.rack.newest else { return };
        // Where nothing is missing, everything outstanding was sent after what arrived.
        if self.loss.phase == Phase::Open && !self.flight.has_sacked() {
            return;
        }
        let is_sure = self.loss.phase != Phase::Open || self.flight.sacked_segments() >= 3;
        let patience = if is_sure { Duration::ZERO } else { self.rack.least.unwrap_or_default() / 4 };
        let (is_any_lost, late_at) = self.flight.lose_by_time(now, newest, self.rack.round_trip + patience);
        self.rack.late_at = late_at;
        if is_any_lost {
            self.enter_recovery_by_time();
        }
    }

    /// The tail is asked about after two round trips without an answer, if nothing is known to be lost.
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
            let slack = if self.flight.is_single() { SINGLE } else { LEAST };
            self.rack.probe_at = Some(timeout.min(now + round_trip * 2 + slack));
        }
    }

    /// One of the two timers has run out.
    pub(super) fn expire_rack(&mut self, now: Time) {
        if self.rack.late_at.is_some_and(|at| at <= now) {
            self.detect_by_time(now);
        }
        if self.rack.probe_at.is_some_and(|at| at <= now) {
            self.rack.probe_at = None;
            self.wants.tail_probe = true;
            // The probe takes the place of a retransmission that would be due now.
            self.timer.start(now);
        }
    }

    /// The next segment, though the window may be full; or the last one again.
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
