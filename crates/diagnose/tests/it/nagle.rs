//! Segments held by Nagle's algorithm, and their healthy twins.

use diagnose::Cause;
use diagnose::report::VantagePoint;

use super::script::{Script, at_client, opened};

#[test]
fn acknowledgement_later_than_any_timer_leaves_doubt() {
    let confidence = |late: u32| {
        let lines = format!(
            "30 C send=1\n45 S\n60 C send=1\n{} S\n{} C send=2\n{} S",
            75 + late,
            90 + late,
            105 + late
        );
        let report = at_client(&lines);
        let mut held = report.findings.iter().filter(|finding| finding.cause == Cause::NagleDelayedAck);
        held.next().unwrap().confidence.name()
    };
    assert_eq!((confidence(200), confidence(440)), ("high", "medium"));
}

#[test]
fn log_in_of_openssh_is_not_worth_fixing() {
    let is_blamed = |name: &str| {
        let lines = format!(
            "30 C send=1\n45 S text=SSH-2.0-{name}\\r\\n\n60 C send=100\n75 S send=16\n130 C\n145 S send=44\n160 C"
        );
        let report = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.diagnose(VantagePoint::Server);
        let held = report.findings.iter().find(|finding| finding.cause == Cause::NagleDelayedAck).unwrap();
        held.severity.is_worth_fixing()
    };
    assert_eq!(["OpenSSH_9.2", "other_1.0"].map(is_blamed), [false, true]);
}

/// Two points of capture, 4 ms apart: the sender has the acknowledgement after the second copy.
#[test]
fn reaction_counts_from_the_last_copy_of_an_acknowledgement() {
    let held = |copy: &str| {
        let lines = format!("2 C send=198\n70 S number=9\n{copy}75 C send=100\n77 S");
        let report = Script { one_way_ms: 1.0, lines: &opened(1.0, &lines) }.diagnose(VantagePoint::Between);
        report.findings.iter().filter(|finding| finding.cause == Cause::NagleDelayedAck).count()
    };
    assert_eq!((held("74 S number=9\n"), held("")), (1, 0));
}

/// papers/p-http#figure-4, as printed (captured on the client's network, less than a millisecond away).
const FIGURE_4: &str = "
    0.1 C send=58
    0.6 S
    9.3 S send=1460
    10.5 S send=1460
    11.5 S send=1176
    12.3 C ack=2920
    178.7 C ack=4096
    178.9 S send=13";

#[test]
fn paper_the_odd_short_final_segment_of_figure_4_is_named() {
    let lines = opened(0.05, FIGURE_4);
    let found = Script { one_way_ms: 0.05, lines: &lines }.faults_everywhere();
    assert_eq!(found, [(Cause::NagleDelayedAck, 167)]);
}

#[test]
fn two_short_writes_wait_for_a_delayed_acknowledgement_on_any_path() {
    for one_way in [0.5, 20.0, 200.0] {
        let round_trip = 2.0 * one_way;
        let (held, answered) = (2.0 * round_trip + 45.0, 3.0 * round_trip + 46.0);
        let lines = opened(
            one_way,
            &format!(
                "{round_trip} C send=100\n{0} S\n{held} C send=40\n{1} S send=500\n{answered} C\n",
                round_trip + one_way + 44.9,
                held + one_way,
            ),
        );
        let script = Script { one_way_ms: one_way, lines: &lines };
        let cost = (round_trip + 45.0).round();
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            let found = script.faults(vantage_point);
            // With one sample of a long path, 45 ms do not count as a delay.
            let [(Cause::NagleDelayedAck | Cause::Nagle, lost)] = found[..] else {
                panic!("{one_way} {vantage_point:?}: {found:?}")
            };
            assert!((lost as f64 - cost).abs() <= 1.0, "{one_way} {vantage_point:?}: {lost}");
        }
    }
}

/// A server over TLS 1.3 that writes two session tickets, and the response to a request that waits.
fn behind_a_ticket(response: &str) -> Vec<(Cause, u64)> {
    let lines = format!(
        "30 C client-hello\n45 S server-hello\n60 C records=53\n60.1 C records=95\n75.2 S records=250\n130.2 C\n{response}"
    );
    Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.faults(VantagePoint::Server)
}

#[test]
fn a_response_behind_a_session_ticket_is_held_until_a_delayed_acknowledgement() {
    let held = behind_a_ticket("145.3 S records=250,60\n160.4 C");
    assert!(matches!(held[..], [(Cause::NagleDelayedAck, 70)]), "{held:?}");
    let late = behind_a_ticket("165 S records=250,60\n180.1 C");
    assert!(matches!(late[..], [(Cause::ServerThink, _)]), "not on the acknowledgement: {late:?}");
    let lines = opened(15.0, "30 C send=9\n45 S send=9\n130 C send=9\n145.1 S send=9\n160.2 C");
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere();
    assert_eq!(found, [], "the request itself carries it");
}

#[test]
fn held_for_a_round_trip_it_is_nagle_alone() {
    let lines = opened(15.0, "30 C send=100\n45 S\n60.1 C send=40\n76 S send=500\n91 C");
    let script = Script { one_way_ms: 15.0, lines: &lines };
    assert_eq!(script.faults_everywhere(), [(Cause::Nagle, 30)]);
}

/// Six segments before a link that needs 100 ms each, and a short one after the last acknowledgement.
fn behind_a_slow_link(last: f64) -> Vec<(Cause, u64)> {
    let mut lines = String::from("100 C send=100\n");
    (0..6).for_each(|n| lines.push_str(&format!("{} S send=1460\n", 150.0 + 0.1 * f64::from(n))));
    (1..=3).for_each(|pair| {
        let at = if pair == 3 { last } else { 200.0 + 200.0 * f64::from(pair) };
        lines.push_str(&format!("{at} C ack={}\n", 2_920 * pair));
    });
    lines.push_str(&format!("{} S send=200\n{} C", last + 50.1, last + 110.0));
    let lines = opened(50.0, &lines);
    Script { one_way_ms: 50.0, lines: &lines }.faults(VantagePoint::Server)
}

#[test]
fn a_queue_before_the_link_does_not_hide_what_is_held() {
    let found = behind_a_slow_link(800.0);
    assert!(matches!(found[..], [(Cause::Nagle, _)]), "{found:?}");
}

#[test]
fn a_pause_of_the_program_is_not_held() {
    // The acknowledgement arrives at 60 ms; the data at 75 ms was written then.
    let lines = opened(15.0, "30 C send=100\n45 S\n75 C send=40\n91 S send=500\n106 C");
    let script = Script { one_way_ms: 15.0, lines: &lines };
    for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
        let found = script.faults(vantage_point);
        assert!(
            !found.iter().any(|(cause, _)| matches!(cause, Cause::Nagle | Cause::NagleDelayedAck)),
            "{vantage_point:?}"
        );
    }
}

#[test]
fn full_segments_and_a_fin_are_never_held() {
    let full = opened(15.0, "30 C send=1460\n45 S\n60.1 C send=1460\n76 S send=500\n91 C");
    let fin = opened(15.0, "30 C send=1460\n45 S\n60.1 C send=40 fin\n76 S send=500\n91 C");
    for lines in [&full, &fin] {
        assert_eq!(Script { one_way_ms: 15.0, lines }.faults_everywhere(), []);
    }
}

#[test]
fn short_segment_behind_missing_data_was_not_held() {
    let lines = |seq: &str| format!("30 C send=586\n245 S\n260.2 C {seq} send=298\n276 S ack=586\n300 C");
    let is_nagle = |seq: &str| {
        let found =
            Script { one_way_ms: 15.0, lines: &opened(15.0, &lines(seq)) }.faults(VantagePoint::Client);
        found.iter().any(|(cause, _)| *cause == Cause::NagleDelayedAck)
    };
    assert_eq!((is_nagle(""), is_nagle("seq=2046")), (true, false));
}

#[test]
fn a_sender_that_has_sent_short_segments_together_has_no_nagle() {
    // A handler that takes 44 ms: the delayed acknowledgement arrived just before.
    let lines = opened(
        0.01,
        "1 C send=100\n1.1 C send=100\n1.2 S\n100 C send=100\n140 S\n140.2 C send=40\n141 S send=9",
    );
    let found = Script { one_way_ms: 0.01, lines: &lines }.faults(VantagePoint::Client);
    assert!(found.iter().all(|(cause, _)| *cause == Cause::ServerThink), "{found:?}");
}

#[test]
fn probe_with_held_data_shows_no_nodelay() {
    // A delayed acknowledgement of 400 ms: the probe takes the short segment that was held.
    let lines = |first: f64| {
        format!(
            "1 C send=100\n{first} C send=40\n401 S ack=100\n401.1 C seq=100 send=40\n401.2 S\n402 S send=9\n402.1 C\n\
             500 C send=100\n580 S\n580.1 C send=40\n581 S send=9"
        )
    };
    let is_nagle = |first: f64| {
        let lines = opened(0.01, &lines(first));
        let found = Script { one_way_ms: 0.01, lines: &lines }.faults(VantagePoint::Client);
        found.iter().any(|(cause, _)| *cause == Cause::NagleDelayedAck)
    };
    assert_eq!((is_nagle(305.0), is_nagle(40.0)), (true, false));
}

#[test]
fn pauses_of_a_program_show_no_distance() {
    // Keep-alives of the server every 26 s, acknowledged by the client; the capture begins in the middle.
    let mut lines = String::new();
    for n in 0..6 {
        let at = 26_000 * n;
        lines += &format!("{at} S send=53\n{at}.2 C\n");
    }
    let found = Script { one_way_ms: 0.05, lines: &lines }.faults_everywhere();
    assert_eq!(found, []);
}

#[test]
fn data_written_a_millisecond_after_the_acknowledgement_was_not_held() {
    let lines = opened(0.01, "1 C send=100\n41 S\n42 C send=40\n43 S send=9");
    let found = Script { one_way_ms: 0.01, lines: &lines }.faults(VantagePoint::Client);
    assert_eq!(found, []);
}

#[test]
fn a_segment_that_echoes_an_older_stamp_did_not_wait_for_the_acknowledgement() {
    let script = |echo: u32| {
        opened(
            15.0,
            &format!(
                "30 C send=100 ts=1000:500\n45 S send=20 ts=515:1000\n60 C ts=1030:515\n200 S ts=670:1030\n\
                 215 C send=100 ts=1185:670\n290 S ts=760:1185\n305.2 C send=40 ts=1275:{echo}\n321 S send=500"
            ),
        )
    };
    let is_nagle = |echo: u32| {
        let found = Script { one_way_ms: 15.0, lines: &script(echo) }.faults(VantagePoint::Client);
        found.iter().any(|(cause, _)| *cause == Cause::NagleDelayedAck)
    };
    assert_eq!((is_nagle(760), is_nagle(670)), (true, false));
}

#[test]
fn a_segment_of_the_same_tick_as_the_one_before_was_not_held() {
    // Its timestamp is that of the first piece, or that of the acknowledgement's arrival.
    let lines = |stamp: u32| {
        format!(
            "0 C syn ts=0:0\n15 S syn ts=500:0\n30 C ts=30:500\n300 C send=100 ts=300:500\n315 S send=100 ts=800:300\n\
             330 C ts=330:800\n345.2 S send=40 ts={stamp}:300\n361 C ts=361:800"
        )
    };
    let found = |stamp| Script { one_way_ms: 15.0, lines: &lines(stamp) }.faults_everywhere();
    assert_eq!((found(830), found(800)), (vec![(Cause::Nagle, 30)], vec![]));
}

#[test]
fn header_section_and_one_full_segment_are_no_initial_window_where_windows_scale() {
    // The window scale option is younger than initial windows of a single segment.
    let found = |scale: &str| {
        let lines = format!(
            "0 C syn{scale}\n15 S syn{scale}\n30 C\n31 C send=100\n46 S send=226\n46.1 S send=1460\n61.2 C\n\
             76.3 S send=700\n91.4 C"
        );
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere();
        found.iter().any(|(cause, _)| *cause == Cause::Nagle)
    };
    assert_eq!((found(" scale=0"), found("")), (true, false));
}

#[test]
fn short_segment_with_data_in_flight_after_a_loss_may_have_waited_for_the_window() {
    let found = |lost: &str| {
        let repair = if lost.is_empty() { "" } else { "75.4 S seq=700 send=1460\n90.5 C" };
        let lines = format!(
            "30 C send=100\n45 S send=700\n45.1 S send=1460{lost}\n45.2 S send=1460\n45.3 S send=1460\n45.4 S send=1460\n\
             60.1 C ack=700\n60.2 C ack=700\n60.3 C ack=700\n60.4 C ack=700\n{repair}\n500 C send=100\n515 S send=700\n\
             515.1 S send=1460\n515.2 S send=1460\n530.1 C ack=7240\n545.2 S send=300\n560 C"
        );
        let lines = opened(15.0, &lines);
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
        found.iter().any(|(cause, _)| *cause == Cause::Nagle)
    };
    assert_eq!((found(""), found(" lost")), (true, false));
}

#[test]
fn paced_segment_after_a_later_acknowledgement_was_not_held() {
    // The short segment was acknowledged by the acknowledgement before the one that seems to trigger the next.
    let found = |first: u32| {
        let lines = format!(
            "30 C send=100\n45 S send=974\n45.1 S send=1460\n45.2 S send=1460\n60.2 C ack={first}\n60.3 C ack=2434\n\
             75.4 S send=545\n91 C"
        );
        let lines = opened(15.0, &lines);
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
        found.iter().any(|(cause, _)| *cause == Cause::Nagle)
    };
    assert_eq!((found(974), found(500)), (false, true));
}

/// A reader on loopback, with segments of 64 kB: the first acknowledgement leaves 8 kB of window.
#[test]
fn segment_larger_than_the_window_was_held_by_the_window() {
    let found = |left: u32| {
        let lines = format!(
            "0 C syn mss=65495\n0.01 S syn mss=65495\n0.02 C\n1 C send=20000\n1.01 S win=40000\n1.1 C send=20000\n1.2 C \
             send=20000\n8 S ack=60000 win={left}\n29 S ack=60000 win=60000\n29.03 C send=40000\n29.1 S win=60000"
        );
        let found = Script { one_way_ms: 0.005, lines: &lines }.faults(VantagePoint::Client);
        found.into_iter().map(|(cause, _)| cause).collect::<Vec<_>>()
    };
    assert_eq!(found(8_000), [Cause::ReceiveWindowLimited]);
    assert!(!found(45_000).contains(&Cause::ReceiveWindowLimited), "the window had room");
}
