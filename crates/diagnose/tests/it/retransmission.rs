//! Retransmissions: what detected the loss, what it cost, and those of data that had arrived.

use crate::Cause;
use crate::cause::Describe as _;
use crate::report::VantagePoint;
use crate::script::{Script, at_client, opened};

#[test]
fn retransmission_whose_original_had_arrived_lost_nothing() {
    // The acknowledgement is 300 ms late. It echoes the timestamp of the original, or of the retransmission.
    let lines = |echo: u32| {
        format!(
            "0 C syn ts=1000:0\n15 S syn ts=7000:1000\n30 C ts=1030:7000\n31 C send=100 ts=1031:7000\n46 S \
             ts=7031:1031\n47 S send=100 ts=7032:1031\n62 C ts=1062:7032\n100 C send=500 ts=1100:7032\n340 C seq=100 \
             send=500 ts=1340:7032\n400 S ack=600 ts=7385:{echo}\n401 S send=100 ts=7386:{echo}\n416 C \
             ts=1416:7386"
        )
    };
    let is_loss = |echo, vantage_point| {
        let lines = lines(echo);
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(vantage_point);
        let causes = [Cause::RetransmissionTimeout, Cause::TailLossProbe];
        report.findings.iter().any(|finding| causes.contains(&finding.cause))
    };
    for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
        assert_eq!(
            (is_loss(1_100, vantage_point), is_loss(1_340, vantage_point)),
            (false, true),
            "{vantage_point:?}"
        );
    }
}

#[test]
fn consecutive_timeouts_are_named_one_by_one() {
    let lines = opened(
        15.0,
        "30 C send=100 lost\n230 C seq=0 send=100 lost\n630 C seq=0 send=100\n646 S send=100\n661 C",
    );
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Client);
    assert_eq!(found, [(Cause::RetransmissionTimeout, 200), (Cause::RetransmissionTimeout, 400)]);
}

#[test]
fn a_lost_syn_is_a_retransmission_timeout() {
    let lines = "0 C syn lost\n1000 C reopen\n1015 S syn\n1030 C\n1030.1 C send=9\n1046 S send=9";
    let script = Script { one_way_ms: 15.0, lines };
    assert_eq!(script.faults(VantagePoint::Client), [(Cause::RetransmissionTimeout, 1_000)]);
}

#[test]
fn evidence_of_a_repeated_syn_ack_names_the_first_one() {
    let lines = "0 C syn\n15 S syn\n30 C lost\n1015 S reopen\n1030 C\n1031 C send=9\n1047 S send=9";
    let report = Script { one_way_ms: 15.0, lines }.diagnose(VantagePoint::Server);
    let finding = report.findings.iter().find(|finding| finding.cause == Cause::RetransmissionTimeout);
    let finding = finding.expect("its timer expired");
    assert!(finding.evidence.contains("SYN/ACK (packet 2)"), "{}", finding.evidence);
    assert!(finding.evidence.contains("1.00 s later"), "{}", finding.evidence);
}

/// Found on Linux: the SYN/ACK is lost, and both sides' timers expire within a round trip.
#[test]
fn regress_syn_that_crosses_the_repeated_syn_ack_waited_for_the_path() {
    let lines =
        "0 C syn\n15 S syn lost\n1000 C reopen\n1003 S reopen\n1018 C\n1018.1 C send=9\n1034 S send=9";
    let found = Script { one_way_ms: 15.0, lines }.faults(VantagePoint::Server);
    assert_eq!(found, [(Cause::RetransmissionTimeout, 988)]);
}

/// Returns the evidence of the faults.
fn evidence(lines: &str, vantage_point: VantagePoint) -> Vec<String> {
    let report = Script { one_way_ms: 15.0, lines }.diagnose(vantage_point);
    let faults = report.findings.into_iter().filter(|finding| finding.cause.about().is_fault);
    faults.map(|finding| finding.evidence).collect()
}

#[test]
fn evidence_of_a_retransmitted_syn_names_the_syn_before() {
    // The lost SYN/ACK (packet 2) is between them.
    let lines = "0 C syn\n15 S syn lost\n1000 C reopen\n1015 S reopen\n1030 C\n1031 C send=9\n1046 S send=9";
    let found = evidence(lines, VantagePoint::Server);
    assert!(
        found[0].contains("its SYN (packet 1) and retransmitted it (packet 3) 1.00 s later"),
        "{found:?}"
    );
}

#[test]
fn evidence_of_a_second_timeout_counts_from_the_transmission_before() {
    let lines = opened(
        15.0,
        "30 C send=100 lost\n230 C seq=0 send=100 lost\n630 C seq=0 send=100\n646 S send=100\n661 C",
    );
    let found = evidence(&lines, VantagePoint::Client);
    assert!(found[0].contains("data of packet 4 (packet 5, 100 bytes), 200 ms later,"), "{found:?}");
    let previous = "data of packet 4 (packet 6, 100 bytes), 400 ms after the last of 2 transmissions,";
    assert!(found[1].contains(previous), "{found:?}");
}

#[test]
fn evidence_of_data_that_was_never_captured_names_what_showed_the_hole() {
    // The probe repeats the end of the flight (packet 6); the data repaired last was not captured before.
    let lines = opened(
        15.0,
        "30 C send=100\n45 S send=1460 lost\n45.1 S send=1460 lost missed\n45.2 S send=700 lost\n110 S seq=2920 \
         send=700\n125 C ack=0\n140.5 S seq=0 send=1460\n155.6 C ack=1460\n170.7 S seq=1460 send=1460\n186 C ack=3620",
    );
    let found = evidence(&lines, VantagePoint::Server);
    assert!(
        found[0].contains("end of its flight (packet 6) by retransmitting it (packet 7), 65 ms later"),
        "{found:?}"
    );
    let last = found.last().unwrap();
    assert!(last.contains("data that was missing since packet 6 (packet 11)"), "{found:?}");
}

/// Ten segments of which the third is lost, and the reaction to the acknowledgements.
const THIRD_LOST: &str = "
    30 C send=100
    45 S send=1460
    45.1 S send=1460
    45.2 S send=1460 lost
    45.3 S send=1460
    45.4 S send=1460
    45.5 S send=1460
    60.2 C ack=2920
    60.3 C ack=2920
    60.4 C ack=2920
    60.5 C ack=2920
    75.6 S seq=2920 send=1460
    90.7 C";

#[test]
fn duplicate_acks_make_it_a_fast_retransmit() {
    let lines = opened(15.0, THIRD_LOST);
    let script = Script { one_way_ms: 15.0, lines: &lines };
    for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
        let found = script.faults(vantage_point);
        let [(Cause::FastRetransmit, lost)] = found[..] else { panic!("{vantage_point:?}: {found:?}") };
        assert!((30..=31).contains(&lost), "{vantage_point:?}: {lost}");
    }
}

/// Two segments of which the first is lost, and its repair at `at`, with a duplicate ACK at 75.2 ms.
fn after_one_duplicate(at: f64) -> Vec<(Cause, u64)> {
    let lines = format!(
        "30 C send=100\n45 S send=1460 lost\n45.1 S send=1460\n60.2 C ack=0\n{at} S seq=0 send=1460\n{} C ack=2920",
        at + 15.0
    );
    Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.faults(VantagePoint::Server)
}

#[test]
fn one_duplicate_ack_counts_only_if_the_sender_reacts_to_it() {
    assert!(matches!(after_one_duplicate(80.0)[..], [(Cause::FastRetransmit, _)]));
    assert!(matches!(after_one_duplicate(220.0)[..], [(Cause::RetransmissionTimeout, _)]));
}

/// Found in the corpus on Linux: on a short path RACK's timer, of at least two ticks, takes longer than half a
/// round trip, and was mistaken for the retransmission timer.
#[test]
fn regress_repair_by_racks_timer_is_a_fast_retransmit() {
    let lines = opened(
        15.0,
        "
        30 C send=100
        45 S send=1460
        45.1 S send=1460 lost
        45.2 S send=1460
        60.2 C ack=1460 sack=2920:4380
        93 S seq=1460 send=1460
        108.1 C",
    );
    let script = Script { one_way_ms: 15.0, lines: &lines };
    for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
        let found = script.faults(vantage_point);
        assert!(matches!(found[..], [(Cause::FastRetransmit, _)]), "{vantage_point:?}: {found:?}");
    }
}

#[test]
fn reordered_data_is_not_lost() {
    let lines = opened(
        15.0,
        "
        30 C send=100
        45 S send=1460
        45.2 S seq=2920 send=1460 number=4
        45.3 S seq=1460 send=1460 number=3
        60.3 C",
    );
    let out_of_order = |lines: &str| {
        let report = Script { one_way_ms: 15.0, lines }.diagnose(VantagePoint::Client);
        assert!(!report.is_worth_fixing());
        report.oddities.out_of_order
    };
    assert_eq!(out_of_order(&lines), 1);
    // The number of a packet that was sent after all others.
    let lines = lines
        .replace("number=4", "number=3")
        .replace("send=1460 number=3\n        60", "send=1460 number=4\n        60");
    assert_eq!(out_of_order(&lines), 0);
}

#[test]
fn a_packet_captured_twice_is_not_sent_twice() {
    let report = at_client("30 C send=100 twice\n46 S send=100 twice\n61 C twice");
    assert!(!report.is_worth_fixing());
    assert_eq!(report.oddities.captured_twice, 3);
}

#[test]
fn tail_loss_probe_comes_before_the_timer() {
    let lines = opened(15.0, "30 C send=100\n45 S send=700 lost\n110 S seq=0 send=700\n125 C");
    assert_eq!(
        Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server),
        [(Cause::TailLossProbe, 65)]
    );
}

/// Found in captures of stacks without probes. One response after 1.4 s is the only measurement of the path, and the
/// initial timer is 3 s; or an acknowledgement that is 4 s late raises the timeout, but not a probe's time.
#[test]
fn regress_timer_of_seconds_is_no_probe() {
    let slow = "0 C syn\n15 S syn\n1415 C send=100\n1431 S send=4\n4400 S seq=0 send=4\n6000 C send=9\n6016 S send=9";
    let found = Script { one_way_ms: 15.0, lines: slow }.faults(VantagePoint::Server);
    assert_eq!(found.first(), Some(&(Cause::RetransmissionTimeout, 2_969)));
    let late = opened(
        15.0,
        "30 C send=100\n46 S send=700\n4061 C\n4100 C send=100\n4116 S send=700\n6600 S seq=700 send=700\n6615 C",
    );
    let faults = Script { one_way_ms: 15.0, lines: &late }.faults(VantagePoint::Server);
    assert_eq!(faults.last(), Some(&(Cause::RetransmissionTimeout, 2_484)));
}

#[test]
fn retransmission_of_delivered_data_costs_no_time() {
    let lines = opened(15.0, "30 C send=100\n45 S send=700\n60 C\n76 S seq=0 send=700\n91 C");
    let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server);
    assert!(!report.is_worth_fixing());
    assert_eq!(report.oddities.needless, 1);
}

#[test]
fn repair_that_waited_in_a_queue_behind_other_data_is_no_timeout() {
    // Captured beyond a slow link: the repair passes 80 ms after the hole showed, and other data until then.
    let mut lines = "30 C send=100\n45 S send=1460\n45 S send=1460 lost missed\n".to_owned();
    for n in 0..20 {
        let at = 49 + 4 * n;
        lines += &format!(
            "{at} S seq={} send=1460\n{at}.5 C ack=1460 sack=2920:{}\n",
            2_920 + 1_460 * n,
            4_380 + 1_460 * n
        );
    }
    lines += "129 S seq=1460 send=1460\n144.2 C ack=32120";
    let found = Script { one_way_ms: 0.1, lines: &opened(0.1, &lines) }.faults(VantagePoint::Client);
    let causes: Vec<Cause> = found.iter().map(|(cause, _)| *cause).collect();
    assert!(causes.contains(&Cause::FastRetransmit), "{found:?}");
    assert!(!causes.contains(&Cause::RetransmissionTimeout), "{found:?}");
}

#[test]
fn no_side_waits_for_what_is_retransmitted_after_a_reset() {
    let found = |reset: &str| {
        let lines = format!("30 C send=100\n45 S send=100 lost\n{reset}\n300 S seq=0 send=100\n315 C");
        let script = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) };
        let found = script.faults(VantagePoint::Server);
        found.iter().any(|(cause, _)| *cause == Cause::RetransmissionTimeout)
    };
    assert_eq!((found(""), found("60 C rst")), (true, false));
}

#[test]
fn no_side_waits_for_a_hole_that_is_filled_after_a_reset() {
    let found = |reset: &str| {
        let lines = format!(
            "30 C send=100\n45 S send=1460\n45.1 S send=1460 lost\n45.2 S send=1460\n60.2 C ack=1460\n60.3 C \
             ack=1460 sack=2920:4380\n60.4 C ack=1460 sack=2920:4380\n{reset}\n75.5 S seq=1460 send=1460\n91 C ack=4380"
        );
        let script = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) };
        script.faults(VantagePoint::Client).iter().any(|(cause, _)| *cause == Cause::FastRetransmit)
    };
    assert_eq!((found(""), found("61 C rst")), (true, false));
}

/// Two losses of one flight are missing at the same time: the receiver waits once.
#[test]
fn losses_that_are_missing_together_cost_their_time_once() {
    let lines = opened(
        15.0,
        "30 C send=100\n45 S send=1460\n45.1 S send=1460 missed\n45.2 S send=1460\n45.3 S send=1460 missed\n45.4 S \
         send=1460\n60.2 C ack=1460\n60.3 C ack=1460 sack=2920:4380\n60.5 C ack=1460 sack=5840:7300\n60.6 C \
         ack=1460 sack=5840:7300\n200 S seq=1460 send=1460\n215.1 C ack=4380 sack=5840:7300\n260 S seq=4380 \
         send=1460\n275.1 C ack=7300",
    );
    let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Client);
    let repairs = report.findings.iter().filter(|finding| finding.cause.about().is_fault);
    let lost: f64 = repairs.map(|finding| finding.lost.as_millis_f64()).sum();
    assert!((195.0..=215.0).contains(&lost), "{report:#?}");
}

#[test]
fn retransmitted_fin_without_data_is_no_finding() {
    let lines = opened(15.0, "30 C send=100\n45 S send=100\n60 C fin lost\n300 C seq=100 fin\n315 S fin");
    assert_eq!(Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Client), []);
}

/// A capture that begins in the middle of a message counts no saving before its start.
#[test]
fn regress_no_saving_reaches_back_beyond_the_capture() {
    let lines = "
        0 S send=1460\n0.1 S send=1460 lost\n0.2 S send=1460\n15.2 C ack=1460\n15.4 C ack=1460
        300 S seq=1460 send=1460\n315.1 C ack=4380\n330.2 S send=1460\n330.3 S send=1460\n345.4 C
        360.5 S send=1460\n360.6 S send=1460\n360.7 S send=1460\n375.8 C ack=8760
        390.85 S send=1460\n391 S seq=8760 send=1460\n406.1 C";
    let report = Script { one_way_ms: 15.0, lines }.diagnose(VantagePoint::Server);
    let saved: f64 =
        report.findings.iter().filter_map(|found| found.saving).map(|saving| saving.as_millis_f64()).sum();
    assert!(!report.findings.is_empty() && saved <= report.elapsed.as_millis_f64(), "{saved}");
}

#[test]
fn retransmission_that_carries_new_data_too_is_one() {
    let lines = opened(
        15.0,
        "30 C send=137 lost\n230 C seq=0 send=580 lost\n630 C seq=0 send=696\n646 S send=9\n661 C",
    );
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Client);
    assert_eq!(found, [(Cause::RetransmissionTimeout, 200), (Cause::RetransmissionTimeout, 400)]);
}

/// During recovery, a duplicate ACK releases new data 25 ms after the repair, or nothing does.
fn in_recovery(released: &str) -> Vec<(Cause, u64)> {
    let lines = THIRD_LOST.replace("90.7 C", &format!("{released}\n100.2 S seq=8760 send=1460\n115.3 C"));
    Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.faults(VantagePoint::Server)
}

#[test]
fn new_data_while_a_loss_is_repaired_waits_for_the_congestion_window() {
    let found = in_recovery("85 C ack=2920 sack=4380:8760");
    assert!(matches!(found[..], [(Cause::FastRetransmit, _), (Cause::CongestionWindow, 25)]), "{found:?}");
    let found = in_recovery("");
    assert!(matches!(found[..], [(Cause::FastRetransmit, _)]), "{found:?}");
}

#[test]
fn needless_retransmission_before_the_peers_data_came_delayed_nothing() {
    let cause = |previous: u32, peer: &str| {
        let lines = format!(
            "30 C send=100\n45 S ack=100\n{previous} C seq=0 send=100\n{peer}\n450 C send=100\n465 S send=9\n480 C"
        );
        let script = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) };
        script.faults(VantagePoint::Server).first().map(|(cause, _)| *cause)
    };
    assert_eq!(cause(270, ""), Some(Cause::RetransmissionTimeout));
    // Too soon for the timer.
    assert_eq!(cause(130, ""), Some(Cause::TailLossProbe));
    assert_eq!(cause(270, "46 S send=500"), None);
}

#[test]
fn timeout_counts_from_the_loss_though_newer_data_was_sent_meanwhile() {
    let mut lines = String::from("30 C send=100\n45 S\n100 C send=500 lost\n");
    // The receiver's duplicate ACKs report no SACK, and the sender ignores them.
    for at in [400, 700, 1_000] {
        lines.push_str(&format!("{at} C send=50\n{} S ack=100\n", at + 15));
    }
    let found = |end: &str| {
        let lines = opened(15.0, &format!("{lines}1600 C seq=100 send=500\n{end}"));
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Client);
        found.into_iter().filter(|(cause, _)| *cause == Cause::RetransmissionTimeout).collect::<Vec<_>>()
    };
    assert_eq!(found("1615 S"), [(Cause::RetransmissionTimeout, 1_500)]);
    assert_eq!(found("1615 S ack=750 sack=100:600"), []);
}
