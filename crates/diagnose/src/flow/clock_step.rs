//! Clocks of the capture that were set while a connection was captured: forwards, by more than its packets can have been quiet, or
//! back. The time across it is unknown.

use dissect::clock::Stamp;
use dissect::{Mark, Segment};
use wire::Duration;

use crate::doubt::Doubt;
use crate::gap::GapStart;

use super::Flow;

impl Flow {
    /// Moves the time of a segment by as much as the clock has stepped back since the connection began.
    pub(super) fn follow_clock(&mut self, segment: &mut Segment<'_>) {
        let own = &self.ends.of(segment.from).clock;
        let due = || own.due(segment.options.stamp?.value);
        let round_trip = self.path.round_trip_at_least();
        let (at, is_step) = self.capture_clock.follow(segment.at, self.last_at, round_trip, due);
        segment.at = at;
        if is_step {
            self.oddities.backwards += 1;
            self.skip_to(segment);
        }
    }

    /// Skips the time of a jump of the capture's clock: no path delays a segment for a minute, and the sender's own clock
    /// (TSval) shows that it was generated sooner, however slowly that ticks.
    pub(super) fn skip_jump(&mut self, segment: &Segment<'_>, stamp: Stamp) {
        const LONGEST_LIFETIME: Duration = Duration::from_secs(60);
        /// The slowest clock ticks twice a second.
        const SLOWEST: Duration = Duration::from_millis(500);
        let Some(before) = self.reference.of(segment.from).last_packet_at else { return };
        let quiet = segment.at.since(before);
        let newest = self.ends.of(segment.from.other()).newest_stamp;
        let ticks = newest.map(|newest| u64::from(stamp.value.wrapping_sub(newest)));
        let is_sooner = |ticks| SLOWEST * ticks <= quiet / 2;
        if quiet >= LONGEST_LIFETIME && ticks.is_some_and(is_sooner) {
            self.skip_to(segment);
        }
    }

    /// Begins anew at a segment: the time before it is unknown.
    fn skip_to(&mut self, segment: &Segment<'_>) {
        self.spend_unknown(Doubt::ClockJumped, segment.at.since(self.last.at));
        self.begin_gap(Mark { at: segment.at, frame: segment.frame });
        self.before = GapStart::Nothing;
    }
}
