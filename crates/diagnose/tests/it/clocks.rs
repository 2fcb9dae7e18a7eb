//! Clocks of the capture that are set while it lasts.

use diagnose::doubt::Doubt;
use diagnose::{FlowReport, Share};
use wire::Duration;

use crate::report::VantagePoint;
use crate::script::{Script, opened};

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
            let doubts = report.doubts.sorted();
            let jumped = doubts.iter().find(|(doubt, _)| *doubt == Doubt::ClockJumped);
            let (unknown, round_trip) =
                (jumped.map(|(_, time)| *time).unwrap_or_default(), Duration::from_millis(51));
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
