//! Paths whose MTU is smaller than their ends assume.

use diagnose::{Cause, Severity, Side};

use crate::report::VantagePoint;
use crate::script::{Script, opened};

const DIES: &str =
    "30 C send=100\n45 S send=1460 lost\n300 S seq=0 send=1460 lost\n900 S seq=0 send=1460 lost";

#[test]
fn lost_full_segments_and_delivered_small_ones_show_the_path_mtu() {
    let lines =
        opened(15.0, &format!("{DIES}\n2100 S seq=0 send=536\n2115 C\n2131 S seq=536 send=924\n2146 C"));
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
    assert_eq!(found[0], (Cause::PathMtu, 2_085), "{found:?}");
    assert!(found.iter().all(|(cause, lost)| *cause == Cause::PathMtu || *lost < 100), "{found:?}");
}

#[test]
fn full_segments_that_passed_before_make_it_a_loss() {
    let before =
        "30 C send=100\n45 S send=1460\n60 C\n61 C send=9\n76 S send=1460 lost\n300 S seq=1460 send=1460 lost
        900 S seq=1460 send=1460 lost\n2100 S seq=1460 send=536\n2115 C";
    let lines = opened(15.0, before);
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
    assert!(found.iter().all(|(cause, _)| *cause == Cause::RetransmissionTimeout), "{found:?}");
}

#[test]
fn a_clamped_mss_is_a_note() {
    let lines = "0 C syn mss=1360\n15 S syn mss=1460\n30 C\n31 C send=9\n46 S send=9";
    let report = Script { one_way_ms: 15.0, lines }.diagnose(VantagePoint::Client);
    let note = report.findings.iter().find(|finding| finding.cause == Cause::PathMtu).unwrap();
    assert_eq!(note.severity, Severity::Note);
    assert!(note.evidence.contains("1360"), "{}", note.evidence);
}

/// An upload whose header section and nine full segments leave together; only the former arrives.
#[test]
fn small_data_that_arrives_beside_full_segments_shows_the_size() {
    let found = |head: &str| {
        let mut lines = format!("30 C send=54{head}\n");
        (0..3).for_each(|n| lines += &format!("30.{n} C send=1460 lost\n"));
        lines += if head.is_empty() { "45.1 S ack=54\n" } else { "" };
        for at in [330, 930, 2_130, 4_530] {
            lines += &format!("{at} C seq=54 send=1460 lost\n");
        }
        let lines = opened(15.0, &lines);
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Client);
        found.into_iter().map(|(cause, _)| cause).collect::<Vec<_>>()
    };
    assert_eq!(found(""), [Cause::PathMtu]);
    assert!(!found(" lost").contains(&Cause::PathMtu), "{:?}", found(" lost"));
}

#[test]
fn upload_of_which_nothing_arrives_is_too_large_unless_a_small_segment_is_lost_too() {
    let found = |last: &str| {
        let mut lines = format!("30 C send=1460 lost\n30.1 C send=1460 lost\n30.2 C send={last} lost\n");
        for at in [330, 930, 2_130, 4_530] {
            lines += &format!("{at} C seq=0 send=1460 lost\n");
        }
        let lines = opened(15.0, &lines);
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Client);
        let worth = report.findings.iter().filter(|finding| finding.severity.is_worth_fixing());
        worth.map(|finding| finding.cause).collect::<Vec<_>>()
    };
    assert_eq!(found("1460"), [Cause::PathMtu]);
    assert_eq!(found("300"), [Cause::PeerVanished]);
}

/// Captured at the receiver, where the full segments never come.
#[test]
fn fall_to_smaller_segments_for_good_is_named_at_the_receiver() {
    let found = |later: &str| {
        let lines = format!(
            "0 C syn\n15 S syn\n30 C\n31 C send=100\n46 S send=1460 lost\n46.1 S send=400\n61.2 C ack=0\n\
             3046 S seq=0 send=536\n3046.1 S seq=536 send=536\n3046.2 S seq=1072 send=388\n3061.3 C\n\
             3076.4 S send=536\n3076.5 S send={later}\n3091.6 C"
        );
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Client);
        found.into_iter().map(|(cause, _)| cause).next()
    };
    assert_eq!(found("563"), Some(Cause::PathMtu));
    assert_eq!(found("1460"), Some(Cause::RetransmissionTimeout));
}

/// The beginning of a certificate chain: two full segments are lost each time, the shorter ones behind them arrive.
#[test]
fn full_segments_that_never_come_while_shorter_ones_behind_them_do_show_the_path_mtu() {
    let found = |first: &str, end: u32| {
        let lines = format!(
            "30 C send=517\n45 S {first}\n45.1 S send=1460 lost\n45.2 S send=1240\n60.3 C ack=0\n45.3 S send=593\n60.4 C ack=0\n\
             300 S seq=0 send=1460 lost\n{end} C fin ack=0\n{}.1 S ack=518",
            end + 15
        );
        let script = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) };
        let report = script.diagnose(VantagePoint::Client);
        let found = report.findings.iter().find(|finding| finding.cause == Cause::PathMtu);
        found.map(|finding| (finding.severity, finding.side))
    };
    assert_eq!(found("send=1460 lost", 5_000), Some((Severity::High, Side::Server)));
    assert_eq!(found("send=1460", 5_000), None, "a segment as large came");
    assert_eq!(found("send=1460 lost", 400), None, "it may still come");
}
