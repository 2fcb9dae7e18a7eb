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

#[cfg(test)]
mod tests {
    use wire::Duration;

    use crate::doubt::Doubt;
    use crate::report::{FlowReport, VantagePoint};
    use crate::script::{Script, opened};
    use trace::account::Share;

    /// Twelve prompt exchanges on a path of 30 ms, with timestamps in milliseconds or without.
    fn exchanges(has_stamps: bool) -> String {
        let stamps = |own: u32, peer: u32| {
            if has_stamps { format!(" ts={own}:{peer}") } else { String::new() }
        };
        let mut lines = String::new();
        for n in 0..12 {
            let at = 30 + 50 * n;
            lines += &format!("{at} C send=100{}\n", stamps(1_000 + at, 6_985 + at));
            lines += &format!("{}.5 S send=900{}\n", at + 15, stamps(7_015 + at, 1_000 + at));
            lines += &format!("{} C{}\n", at + 31, stamps(1_031 + at, 7_015 + at));
        }
        opened(15.0, &lines)
    }

    /// Returns the diagnosis of a capture at the client whose clock is set back by 900 ms before the packet at this index.
    fn stepped(script: Script<'_>, first: usize) -> FlowReport {
        let mut capture = script.capture(VantagePoint::Client);
        for (index, (at, _)) in capture.iter_mut().enumerate() {
            let ahead = Duration::from_millis(if index < first { 900 } else { 0 });
            *at += ahead;
        }
        Script::diagnosed(capture)
    }

    #[test]
    fn clock_that_steps_back_leaves_the_time_across_it_unknown() {
        for has_stamps in [true, false] {
            let lines = exchanges(has_stamps);
            let script = Script { one_way_ms: 15.0, lines: &lines };
            for first in 4..30 {
                let report = stepped(script, first);
                assert!(report.findings.iter().all(|finding| !finding.severity.is_worth_fixing()));
                assert_eq!(report.oddities.backwards, 1);
                let (unknown, round_trip) = (report.doubts.of(Doubt::ClockJumped), Duration::from_millis(51));
                assert!(unknown <= round_trip, "{unknown} from packet {first} on");
                // The clock of the timestamps restores what the capture's has lost.
                let elapsed = Duration::from_millis(if has_stamps { 590 } else { 560 });
                assert!(report.elapsed >= elapsed, "{} from packet {first} on", report.elapsed);
                let distance = report.round_trip.expect("it is known");
                assert!(distance >= Duration::from_millis(29), "{distance} from packet {first} on");
                assert!(report.account.of(Share::Idle) <= Duration::from_millis(300));
            }
        }
    }
}
