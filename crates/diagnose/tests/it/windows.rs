//! Receive windows in rhythms of their own: readers of blocks, short rounds, queues that fill a window, windows that stay closed.

use diagnose::{Cause, Finding, Severity, Share};

use crate::report::VantagePoint;
use crate::script::{Script, opened};

/// Its acknowledgements wait until it reads, and shrink the window to a part, and to nothing.
#[test]
fn regress_reader_of_a_block_each_ten_milliseconds_has_each_time_once() {
    let mut lines = String::from(
        "0 C syn mss=65495\n0.01 S syn mss=65495\n0.02 C\n0.1 C send=47616\n0.11 S ack=47616 win=60000\n",
    );
    let (mut at, mut sent) = (1.0, 47_616);
    for _ in 0..20 {
        let end = sent + 60_000;
        lines += &format!("{at} C send=30000\n{} C send=30000\n", at + 0.01);
        lines += &format!("{} S ack={end} win=40000\n{} C send=40000\n", at + 10.0, at + 10.03);
        lines += &format!("{} S ack={} win=0\n{} S win=60000\n", at + 20.0, end + 40_000, at + 30.0);
        (at, sent) = (at + 30.03, end + 40_000);
    }
    let report = Script { one_way_ms: 0.005, lines: &lines }.diagnose(VantagePoint::Client);
    let savings = report.counts.iter().map(|count| count.saving.as_millis_f64()).sum::<f64>();
    assert!((570.0..=report.elapsed.as_millis_f64()).contains(&savings), "{:?}", report.counts);
    let way = report.account.of(Share::RoundTrip).as_millis_f64();
    assert!(way < 30.0, "{:?}", report.account);
}

/// Rounds of 4 ms, each too short for a finding.
#[test]
fn many_short_waits_for_the_window_are_a_finding_together() {
    let found = |rounds: u32| {
        let mut lines = String::from("4 C send=100 win=4380\n");
        for round in 0..rounds {
            let at = 6.0 + 4.2 * f64::from(round);
            for n in 0..3 {
                lines += &format!("{} S send=1460\n", at + 0.02 * f64::from(n));
            }
            lines += &format!("{} C win=4380\n", at + 2.1);
        }
        let lines = opened(2.0, &lines);
        let report = Script { one_way_ms: 2.0, lines: &lines }.diagnose(VantagePoint::Server);
        let of_window = |finding: &Finding| finding.cause == Cause::ReceiveWindowLimited;
        let found = report.findings.into_iter().filter(of_window);
        found.map(|finding| (finding.severity, finding.evidence)).collect::<Vec<_>>()
    };
    let [(Severity::High, evidence)] = &found(60)[..] else { panic!("{:?}", found(60)) };
    assert!(evidence.contains("such waits"), "{evidence}");
    assert_eq!(found(4).len(), 0);
}

/// Eight segments of 10 ms on a path of half a second: the last of each burst queues for 70 ms, then the link is
/// idle.
#[test]
fn a_burst_that_queues_for_a_moment_does_not_fill_a_long_path() {
    let mut lines = String::from("500 C send=100 win=11680\n");
    let mut now = 750.0;
    for round in 0..6 {
        (0..8).for_each(|n| lines.push_str(&format!("{} S send=1460\n", now + 0.1 * f64::from(n))));
        for pair in 1..=4 {
            let ack = 11_680 * round + 2_920 * pair;
            lines.push_str(&format!("{} C ack={ack} win=11680\n", now + 250.0 + 20.0 * f64::from(pair)));
        }
        now += 600.0;
    }
    let lines = opened(250.0, &lines);
    let found = Script { one_way_ms: 250.0, lines: &lines }.faults(VantagePoint::Server);
    let waits = found.iter().filter(|(cause, _)| *cause == Cause::ReceiveWindowLimited).count();
    assert_eq!(waits, 5, "{found:?}");
}

#[test]
fn queue_that_doubles_the_round_trip_is_not_the_receive_window() {
    // Twenty segments in flight, four acknowledged every 80 ms: the round trip is 400 ms, of which the path needs
    // 30.
    let mut lines = String::from("30 C send=100 win=29200\n");
    (0..20).for_each(|n| lines.push_str(&format!("{} S send=1460\n", 45.0 + 0.1 * f64::from(n))));
    for n in 1..12 {
        let at = 60 + 80 * n;
        lines.push_str(&format!("{at} C ack={} win=29200\n", 4 * 1_460 * n));
        (1..=4).for_each(|k| lines.push_str(&format!("{}.{k} S send=1460\n", at + 15)));
    }
    let lines = opened(15.0, &lines);
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
    let waits = found.iter().filter(|(cause, _)| *cause == Cause::ReceiveWindowLimited).count();
    assert!(waits <= 4, "{found:?}");
}

#[test]
fn regress_window_update_behind_a_standing_queue_is_not_awaited() {
    // As above; later the receiver acknowledges with a smaller window, and widens it 40 ms later.
    let mut lines = String::from("30 C send=100 win=29200\n");
    (0..20).for_each(|n| lines.push_str(&format!("{} S send=1460\n", 45.0 + 0.1 * f64::from(n))));
    for n in 1..40 {
        let (at, ack) = (60 + 80 * n, 4 * 1_460 * n);
        let update = if n < 20 { at } else { at + 40 };
        if update > at {
            lines.push_str(&format!("{at} C ack={ack} win=23360\n"));
        }
        lines.push_str(&format!("{update} C ack={ack} win=29200\n"));
        (1..=4).for_each(|k| lines.push_str(&format!("{}.{k} S send=1460\n", update + 15)));
    }
    let lines = opened(15.0, &lines);
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
    assert_eq!(found, []);
}

#[test]
fn a_window_that_is_never_opened_again_is_named_at_the_end() {
    let lines = opened(
        15.0,
        "
        30 C send=100 win=2920
        45 S send=1460
        45.1 S send=1460
        60.2 C win=0
        300 S seq=2919
        315.1 C win=0
        700 S seq=2919
        715.1 C win=0",
    );
    for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(vantage_point);
        let [(Cause::ZeroWindow, lost)] = found[..] else { panic!("{vantage_point:?}: {found:?}") };
        assert!((654..=656).contains(&lost), "{vantage_point:?}: {lost}");
    }
}

#[test]
fn window_below_a_loopback_segment_is_open() {
    let lines = "0 C syn mss=65483\n0.01 S syn mss=65483\n0.02 C\n1 C send=20000\n1.02 S win=45535\n\
                 400 C send=100\n400.02 S win=65535\n500 C send=100\n500.02 S";
    let found = Script { one_way_ms: 0.01, lines }.faults(VantagePoint::Client);
    assert_eq!(found, []);
}

#[test]
fn closed_window_does_not_hold_a_sender_with_nothing_to_send() {
    let lines =
        "30 C send=100 win=1460\n45 S send=1460\n60 C win=0\n500 C win=1460\n900 C send=100\n915 S send=100";
    let lines = opened(15.0, lines);
    for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(vantage_point);
        assert!(found.iter().all(|(cause, _)| *cause != Cause::ZeroWindow), "{vantage_point:?}: {found:?}");
    }
}

/// Flights of six segments, which fill an unscaled window; the handshake was not captured.
#[test]
fn small_window_costs_as_much_where_the_capture_begins_in_the_middle() {
    let window = 6 * 1_460;
    let mut lines = format!("0 C send=100 win={window}\n15 S send=1460\n30.1 C win={window}\n");
    for round in 0..40 {
        let at = f64::from(46 + 31 * round);
        (0..6).for_each(|n| lines += &format!("{} S send=1460\n", at + 0.04 * f64::from(n)));
        lines += &format!("{} C win={window}\n", at + 15.5);
    }
    let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server);
    let limited = report.counts.iter().find(|count| count.cause == Cause::ReceiveWindowLimited).unwrap();
    assert!(limited.saving.as_millis_f64() > 500.0, "{limited:?}");
}

/// Segments whose timestamps echo those of acknowledgements 30 ms before, captured at their receiver, which never sends data.
#[test]
fn timestamps_show_the_distance_of_a_server_where_the_capture_begins_in_the_middle() {
    let distance = |is_stamped: bool| {
        let mut lines = String::new();
        for round in 0..20 {
            let at = 31 * round;
            let stamp = |value: i32, echo: i32| {
                if is_stamped { format!(" ts={value}:{echo}") } else { String::new() }
            };
            lines += &format!("{at} S send=1460{}\n", stamp(7_000 + at, 1_000 + at - 16));
            lines += &format!("{} C{}\n", at + 15, stamp(1_000 + at + 15, 7_000 + at));
        }
        Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Client).round_trip
    };
    let shown = distance(true).unwrap().as_millis_f64();
    assert!((29.0..33.0).contains(&shown), "{shown}");
    assert_eq!(distance(false), None);
}

/// A link of 500 kB/s behind a queue: the first segments find it empty, and a flight of twelve takes 36 ms from then on.
#[test]
fn flight_that_waits_in_a_queue_beyond_a_near_path_is_no_send_buffer() {
    let limited = |late_ms: f64| {
        let mut lines = String::from("0.2 C send=1460\n0.4 S ack=1460\n1 C send=1460\n1.2 S ack=2920\n");
        let (mut sent, mut acked) = (2_920, 2_920);
        for _ in 0..6 {
            lines += "2 C send=2920\n";
            sent += 2_920;
        }
        for round in 0..80 {
            let at = 2.0 + late_ms + 6.0 * f64::from(round);
            acked += 2_920;
            lines += &format!("{at} S ack={acked}\n");
            // Two acknowledgements release four segments.
            if round % 2 == 1 {
                lines += &format!("{} C send=5840\n", at + 0.15);
                sent += 5_840;
            }
        }
        let report = Script { one_way_ms: 0.1, lines: &opened(0.1, &lines) }.diagnose(VantagePoint::Client);
        let limited = report.counts.iter().find(|count| count.cause == Cause::SendBufferLimited);
        (limited.map_or(0, |count| count.times), sent)
    };
    assert_eq!(limited(36.0).0, 0);
}
