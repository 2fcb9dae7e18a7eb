//! Losses that are none, losses that are signals, and servers that greet or log in late.

use diagnose::finding::Confidence;
use diagnose::{Cause, FlowReport, Severity, Side, weigh_shared_links};
use wire::Duration;

use crate::report::VantagePoint;
use crate::script::{Script, at_client, opened};

/// Whether the server is blamed on a connection over TLS 1.3: its first record has `first` bytes, and the lines of each of the events
/// begin at its time.
fn is_server_blamed(first: u32, times: impl Iterator<Item = f64>, event: impl Fn(f64) -> String) -> bool {
    let opening = format!(
        "30 C client-hello\n45 S server-hello\n60 C records=53\n60.1 C records=300\n75.2 S records={first}\n90.3 C\n"
    );
    let lines = opening + &times.map(event).collect::<String>();
    let report = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.diagnose(VantagePoint::Server);
    report.findings.iter().any(|found| found.cause == Cause::ServerThink && found.severity.is_worth_fixing())
}

/// gRPC measures the path after data: a PING with an update of the window. Events go on regardless.
#[test]
fn pings_of_a_stream_over_tls_do_not_ask_for_its_events() {
    let is_blamed = |pong: u32| {
        let times = (0..8).map(|event| 380.0 + 300.0 * f64::from(event));
        is_server_blamed(44, times, |at| {
            let [ping, response, ack] = [15.1, 30.2, 45.3].map(|after| at + after);
            format!("{at} S records=60\n{ping} C records=47\n{response} S records={pong}\n{ack} C\n")
        })
    };
    assert_eq!([34, 60].map(is_blamed), [false, true]);
}

/// WebSocket over TLS: both sides send when something happens.
#[test]
fn messages_over_tls_that_are_too_short_for_http_have_no_responses() {
    let is_blamed = |(length, pong): (u32, u32)| {
        let times = (0..5).map(|message| 480.0 + 800.0 * f64::from(message));
        is_server_blamed(2_000, times, |at| {
            let [ping, response, ack] = [315.1, 330.2, 345.3].map(|after| at + after);
            format!("{at} C records={length}\n{ping} S records=60\n{response} C records={pong}\n{ack} S\n")
        })
    };
    // A Pong is no step: it responds to what came with the message.
    assert_eq!([(30, 23), (30, 40), (90, 23)].map(is_blamed), [false, true, true]);
}

/// Returns the losses found, with their time in whole milliseconds.
fn faults(one_way_ms: f64, lines: &str, vantage_point: VantagePoint) -> Vec<(Cause, u64)> {
    let losses = [Cause::RetransmissionTimeout, Cause::TailLossProbe, Cause::FastRetransmit];
    let findings = Script { one_way_ms, lines }.diagnose(vantage_point).findings;
    let found = findings.into_iter().filter(|finding| losses.contains(&finding.cause));
    found
        .map(|finding| (finding.cause, (finding.lost + Duration::from_micros(500)).as_nanos() / 1_000_000))
        .collect()
}

/// Twelve segments, and the loss of the ninth; the link passes one every `spacing` milliseconds.
fn loss_behind_a_queue(spacing: f64) -> FlowReport {
    let mut lines = String::from("30 C send=100\n");
    for round in 0..3 {
        let (start, at) = (round * 12, 45.0 + f64::from(round) * (40.0 + 12.0 * spacing));
        let is_last = round == 2;
        for n in 0..12 {
            let lost = if is_last && n == 8 { " lost" } else { "" };
            lines += &format!("{} S send=1460{lost}\n", at + 0.1 * f64::from(n));
        }
        for n in 0..12 {
            let passed = at + 15.2 + spacing * f64::from(n);
            let (whole, missing) = (1_460 * (start + n + 1), 1_460 * (start + 8));
            lines += &match n {
                _ if !is_last || n < 8 => format!("{passed} C ack={whole}\n"),
                8 => String::new(),
                _ => format!("{passed} C ack={missing} sack={}:{whole}\n", missing + 1_460),
            };
        }
        if is_last {
            let repaired = at + 30.4 + 11.0 * spacing;
            lines += &format!(
                "{repaired} S seq={} send=1460\n{} C ack={}",
                1_460 * 32,
                repaired + 15.1,
                1_460 * 36
            );
        }
    }
    Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.diagnose(VantagePoint::Server)
}

#[test]
fn loss_behind_a_queue_that_its_sender_had_filled_is_a_signal() {
    let confidence = |spacing| {
        let report = loss_behind_a_queue(spacing);
        let found = report.findings.iter().find(|finding| finding.cause == Cause::FastRetransmit);
        found.map(|finding| (finding.confidence.name(), finding.evidence.contains("in a full queue")))
    };
    assert_eq!(confidence(6.0), Some(("medium", true)));
    assert_eq!(confidence(0.1), Some(("high", false)));
}

/// A client that greets nobody waits for the server; one that goes on by itself does not.
#[test]
fn late_greeting_after_the_handshake_of_tls_is_the_servers_time() {
    let found = |hello: &str, next: f64| {
        let lines = format!(
            "30 C {hello}\n45 S server-hello\n60 C records=53\n75.1 S\n560 S records=80\n575.1 C\n{next} C records=60\n\
             {} S records=90\n{} C",
            next + 15.1,
            next + 30.2
        );
        let report = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.diagnose(VantagePoint::Client);
        let found = report.findings.iter().find(|finding| finding.cause == Cause::ServerThink);
        found.map(|finding| (finding.lost.as_nanos() / 1_000_000, finding.severity.is_worth_fixing()))
    };
    assert_eq!(found("mail-hello", 576.0), Some((484, true)));
    assert_eq!(found("mail-hello", 900.0), Some((484, false)));
    // Clients of HTTP request first.
    assert!(found("client-hello", 576.0).is_none_or(|(_, is_worth_fixing)| !is_worth_fixing));
}

#[test]
fn syn_ack_that_echoes_the_clients_reply_was_not_lost() {
    // TCP_DEFER_ACCEPT: the server retransmits its SYN/ACK until data comes.
    let lines = |echo: u32| {
        format!(
            "0 C syn ts=500:0\n15 S syn ts=900:500\n30 C ts=530:900\n1030 S reopen ts=1915:{echo}\n1045 C ts=1545:1915\n\
             2000 C send=9 ts=2500:1915\n2016 S send=9 ts=2901:2500"
        )
    };
    let found = |echo| faults(15.0, &lines(echo), VantagePoint::Client);
    assert_eq!(found(530), []);
    assert!(matches!(found(500)[..], [(Cause::RetransmissionTimeout, _)]), "{:?}", found(500));
}

/// A port scan: the client sends one SYN, and nothing more.
#[test]
fn syn_ack_to_a_client_that_has_left_was_not_lost() {
    let lines = "0 C syn\n15 S syn\n3015 S reopen\n9015 S reopen";
    assert_eq!(faults(15.0, lines, VantagePoint::Between), []);
    let waits = "0 C syn\n15 S syn lost\n3015 S reopen\n3030 C\n3031 C send=9\n3046 S send=9";
    let found = faults(15.0, waits, VantagePoint::Server);
    assert_eq!(found, [(Cause::RetransmissionTimeout, 3_000)]);
}

#[test]
fn sender_without_sack_sends_no_loss_probe() {
    let found = |client: &str, server: &str| {
        let lines = format!(
            "0 C syn {client}\n15 S syn {server}\n30 C\n31 C send=100\n46 S\n100 C send=500 lost\n\
             165 C seq=100 send=500\n180 S"
        );
        faults(15.0, &lines, VantagePoint::Client)
    };
    assert_eq!(found("", ""), [(Cause::TailLossProbe, 65)]);
    assert_eq!(found("no-sack", ""), [(Cause::RetransmissionTimeout, 65)]);
    assert_eq!(found("", "no-sack"), [(Cause::RetransmissionTimeout, 65)]);
}

#[test]
fn duplicate_sack_of_data_retransmitted_once_shows_that_nothing_was_lost() {
    let found = |last: &str| {
        let lines = format!("30 C send=100\n45 S\n100 C send=500\n340 C seq=100 send=500\n{last}");
        let found = faults(15.0, &opened(15.0, &lines), VantagePoint::Client);
        found.into_iter().map(|(cause, _)| cause).collect::<Vec<_>>()
    };
    assert_eq!(found("355 S ack=600"), [Cause::RetransmissionTimeout]);
    assert_eq!(found("355 S ack=600 sack=100:600"), []);
    // The acknowledgement of the original was late.
    assert_eq!(found("341 S ack=600\n355 S ack=600 sack=100:600"), []);
    // The duplicate may be one of the retransmissions.
    let twice = found("740 C seq=100 send=500\n755 S ack=600 sack=100:600");
    assert_eq!(twice, [Cause::RetransmissionTimeout; 2]);
}

#[test]
fn no_side_waits_for_the_close_of_an_idle_connection() {
    let alert = "\\x17\\x03\\x03\\x00\\x13close it, it is end";
    for repeat in [300, 235_000] {
        let lines = format!(
            "30 C send=100\n45 S send=50\n60 C\n500 S lost text={alert}\n{} S seq=50 text={alert}\n{} C",
            500 + repeat,
            515 + repeat
        );
        let found = faults(15.0, &opened(15.0, &lines), VantagePoint::Server);
        assert_eq!(found, [], "{repeat}");
    }
}

#[test]
fn message_behind_a_hole_waits_from_its_own_end_on() {
    // A message of two segments of which the first is lost; the next message follows two seconds later.
    let lines = opened(
        15.0,
        "30 C send=1460 lost\n30.1 C send=500\n45.1 S ack=0\n2000 C send=1460\n2000.1 C send=600\n2015 S ack=0\n\
         2015.1 S ack=0\n2500 C seq=0 send=1460\n2515.1 S ack=4020\n2516 S send=100",
    );
    let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Client);
    let repair = report.findings.iter().find(|finding| finding.packets.contains(&11)).unwrap();
    let saving = repair.saving.unwrap().as_millis_f64();
    assert!((2_469.0..2_470.0).contains(&saving), "{saving}");
    let total: f64 = report.findings.iter().filter_map(|finding| Some(finding.saving?.as_millis_f64())).sum();
    assert!(total < 2_520.0, "{total}");
}

#[test]
fn repeated_byte_without_its_receiver_may_be_a_window_probe() {
    let found = |length: u32| {
        let lines = format!(
            "30 C send=100\n45 S send=1460\n46 S send={length} lost\n446 S seq=1460 send={length} lost\n\
             1246 S seq=1460 send={length}\n1262 C"
        );
        let lines = opened(15.0, &lines);
        let report =
            Script { one_way_ms: 15.0, lines: &lines }.diagnose_only(VantagePoint::Server, Side::Server);
        report.findings.iter().any(|finding| finding.cause == Cause::RetransmissionTimeout)
    };
    assert_eq!((found(1), found(2)), (false, true));
}

/// Found in captures of virtual machines, whose NAT acknowledges at once, and of Windows.
#[test]
fn numbers_of_other_connections_are_no_losses() {
    let found = |answered: u32, responded: u32, ttl: u8| {
        let lines = format!(
            "0 C syn\n{answered} S syn\n{answered}.2 C\n301 C send=300\n301.2 S\n{responded} S number=7 send=900 ttl={ttl}\n
            {responded}.2 C\n1840 C send=300\n1840.2 S number=8\n1850 S number=9 send=900"
        );
        let report = Script { one_way_ms: 0.1, lines: &lines }.diagnose(VantagePoint::Client);
        let faults = report.findings.iter().filter(|finding| finding.severity >= Severity::Low);
        faults.map(|finding| finding.cause).collect::<Vec<_>>()
    };
    assert_eq!(found(300, 1_331, 64), [Cause::ServerThink], "a proxy");
    assert_eq!(found(1, 701, 128), [Cause::ServerThink], "Windows");
    assert_eq!(found(1, 701, 64), [Cause::RetransmissionTimeout]);
}

#[test]
fn log_in_is_no_warm_up_for_other_commands() {
    let later = |command: &str| {
        let mut lines =
            format!("30 C text=USER a\\r\\n\n145 S text=331 go\\r\\n\n161 C text={command} b\\r\\n\n176 S\n");
        lines += "2176 S text=230 ok\\r\\n\n";
        for turn in 0..7 {
            let at = 2_192 + 32 * turn;
            lines += &format!("{at} C text=PASS c\\r\\n\n{} S text=200 ok\\r\\n\n", at + 16);
        }
        let report = at_client(&lines);
        report
            .findings
            .iter()
            .filter(|finding| finding.cause == Cause::ServerThink && finding.severity >= Severity::Medium)
            .count()
    };
    assert_eq!(later("PASS"), 0, "alike commands are quick later");
    assert_eq!(later("AUTH"), 2, "the user, too");
}

/// A person types the log-in long after the greeting, for which the client waited all the same.
#[test]
fn greeting_of_a_server_of_files_was_awaited() {
    let is_blamed = |greeting: &str| {
        let lines = format!(
            "1445 S text={greeting}\\r\\n\n1460 C\n9000 C text=USER a\\r\\n\n9016 S text=331 go\\r\\n"
        );
        let report = at_client(&lines);
        let mut thinks = report.findings.iter().filter(|finding| finding.cause == Cause::ServerThink);
        thinks.any(|finding| finding.severity.is_worth_fixing())
    };
    assert_eq!(["220 ready", "welcome"].map(is_blamed), [true, false]);
}

/// Captured at the client: the server's acknowledgement of the FIN has a sequence number 14,600 bytes ahead.
#[test]
fn response_that_was_sent_and_never_came_is_not_the_servers_time() {
    let found = |sent: &str, waits: u32| {
        let lines = format!(
            "30 C text=GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n\n45 S\n50 S {sent}lost\n{waits} C fin\n{}.1 S",
            waits + 15
        );
        let report = at_client(&lines);
        let worth = report.findings.into_iter().filter(|finding| finding.severity.is_worth_fixing());
        worth.map(|finding| finding.cause).collect::<Vec<_>>()
    };
    assert_eq!(found("send=14600 ", 6_000), [Cause::PathMtu]);
    assert_eq!(found("send=0 ", 6_000), [Cause::ServerThink], "nothing was sent");
    assert_eq!(found("send=900 ", 6_000), [Cause::ServerThink], "it would have fitted");
}

#[test]
fn end_of_a_stream_of_events_is_no_late_response() {
    let is_slow = |kind: &str| {
        let head = format!("text=HTTP/1.1 200 OK\\r\\nContent-Type: {kind}\\r\\n\\r\\n");
        let lines = format!(
            "30 C text=GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n\n45 S {head}\n60 C\n61 S send=40\n76 C\n861 S fin"
        );
        at_client(&lines).findings.iter().any(|finding| finding.cause == Cause::ServerThink)
    };
    assert_eq!(["text/event-stream", "text/html"].map(is_slow), [false, true]);
}

/// A subscription of gRPC: the head of its response comes with the first event, 12 s after the request.
#[test]
fn first_event_of_a_stream_is_as_late_as_the_others() {
    let is_slow = |next: &str| {
        let preface =
            "30 C text=PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\\x00\\x00\\x00\\x04\\x00\\x00\\x00\\x00\\x00";
        let event = "00000400000000000100000000";
        let lines = format!(
            "{preface}\n30.1 C hex=0000020105000000018286\n45.2 S hex=000000040000000000\n60.3 C\n12045 S \
             hex=00000101040000000188{event}\n12060 C\n{next}"
        );
        at_client(&lines).is_worth_fixing()
    };
    assert!(!is_slow("24045 S hex=00000400000000000100000000\n24060 C"));
    assert!(is_slow("12061 C fin\n12076 S fin"), "a single response");
}

#[test]
fn loss_while_a_connection_beside_it_shows_a_full_queue_is_chance() {
    let lines = "30 C send=100\n45 S send=1460\n45.1 S send=1460 lost\n45.2 S send=1460\n60.2 C ack=1460\n60.4 C ack=1460\n\
                 300 S seq=1460 send=1460\n315.1 C ack=4380";
    let is_worth_fixing = |confidence, change: fn(&mut FlowReport)| {
        let mut flows = [at_client(lines), at_client(lines)];
        let [one, beside] = &mut flows;
        assert!(one.is_worth_fixing(), "{one:?}");
        let loss =
            beside.findings.iter_mut().find(|loss| loss.cause == Cause::RetransmissionTimeout).unwrap();
        (loss.cause, loss.confidence) = (Cause::FastRetransmit, confidence);
        change(beside);
        weigh_shared_links(&mut flows);
        flows[0].is_worth_fixing()
    };
    assert!(!is_worth_fixing(Confidence::Medium, |_| {}));
    assert!(is_worth_fixing(Confidence::High, |_| {}), "nothing shows a queue");
    assert!(
        is_worth_fixing(Confidence::Medium, |beside| beside.server.set_ip([10, 9, 8, 7].into())),
        "another path"
    );
    let later = |beside: &mut FlowReport| {
        beside.findings.iter_mut().for_each(|loss| loss.at += Duration::from_secs(9));
    };
    assert!(is_worth_fixing(Confidence::Medium, later), "the queue was full later");
}

/// Requests beside a transfer that fills the queue before their connection opens: it never sees the empty path.
#[test]
fn round_trips_longer_than_the_distance_that_another_connection_shows_are_a_queue() {
    let requests = |one_way_ms: f64| {
        let trip = 2.0 * one_way_ms;
        let lines = opened(
            one_way_ms,
            &format!("{trip} C send=100\n{} S send=900\n{} C", trip + one_way_ms + 1.0, trip * 2.0 + 2.0),
        );
        Script { one_way_ms, lines: &lines }.diagnose(VantagePoint::Client)
    };
    let causes = |beside_ms: f64, change: fn(&mut FlowReport)| {
        let mut flows = [requests(180.0), requests(beside_ms)];
        change(&mut flows[1]);
        weigh_shared_links(&mut flows);
        let is_named = |cause| flows[0].counts.iter().any(|count| count.cause == cause);
        (is_named(Cause::BottleneckQueue), is_named(Cause::PathLatency))
    };
    assert_eq!(causes(15.0, |_| {}), (true, false));
    assert_eq!(causes(150.0, |_| {}), (false, true), "the distance");
    assert_eq!(
        causes(15.0, |beside| beside.server.set_ip([10, 9, 8, 7].into())),
        (false, true),
        "another host"
    );
}

/// A response whose first copy is lost, and both timers: the request's original had arrived, as the echoed timestamp shows.
#[test]
fn lost_response_is_no_time_of_the_server_though_its_request_had_arrived() {
    let found = |first: &str| {
        let lines = format!(
            "0 C syn ts=1000:0\n15 S syn ts=7000:1000\n30 C ts=1030:7000\n31 C send=100 ts=1031:7000\n46 S ts=7031:1031\n\
             47 S send=500 ts=7032:1031\n62 C ts=1062:7032\n100 C send=90 ts=1100:7032\n{first}345 C seq=100 send=90 \
             ts=1345:7032\n345.5 S seq=500 ack=190 send=500 ts=7330:1100\n360.6 S ack=190 sack=100:190 ts=7345:1345\n361 C ts=1361:7330"
        );
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Client);
        let found = report.findings.iter().find(|finding| finding.cause == Cause::RetransmissionTimeout);
        found.map(|finding| (finding.severity, finding.evidence.contains("the response with it, was lost")))
    };
    assert_eq!(found("116 S send=500 ts=7101:1100 lost\n"), Some((Severity::High, true)));
    assert_eq!(found(""), None, "the acknowledgement was only late");
}

/// Twelve segments of a response that go on after two seconds: by one, or by two together.
#[test]
fn pause_after_which_the_window_is_one_segment_was_a_timeout() {
    let found = |second: f64, vantage_point: VantagePoint| {
        let mut lines = "30 C text=GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n\n\
                         45 S text=HTTP/1.1 200 OK\\r\\nContent-Length: 90000\\r\\n\\r\\n\n60 C\n"
            .to_owned();
        for round in 0..3 {
            let at = 75.1 + 30.0 * f64::from(round);
            for segment in 0..4 {
                lines += &format!("{} S send=1460\n", at + 0.1 * f64::from(segment));
            }
            lines += &format!("{} C\n", at + 15.4);
        }
        lines += &format!("2100 S send=1460\n2115 C\n{second} S send=1460\n2130.2 S send=1460\n2145.3 C");
        let report = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.diagnose(vantage_point);
        let is_pause = |finding: &&diagnose::Finding| finding.lost > Duration::from_secs(1);
        report.findings.iter().filter(is_pause).map(|found| (found.cause, found.severity)).collect::<Vec<_>>()
    };
    for vantage_point in [VantagePoint::Client, VantagePoint::Between] {
        assert_eq!(
            found(2130.1, vantage_point),
            [(Cause::RetransmissionTimeout, Severity::High)],
            "{vantage_point:?}"
        );
        assert_eq!(found(2100.1, vantage_point), [(Cause::ServerThink, Severity::High)], "{vantage_point:?}");
    }
}

/// The same on a path of 40 us, where the echo of the acknowledgement (TSecr) tells which segment waited for it.
#[test]
fn window_after_a_timeout_shows_on_a_short_path_by_timestamps() {
    let found = |echo: u32| {
        let mut lines =
            "0 C syn ts=1000:0\n0.02 S syn ts=7000:1000\n0.04 C ts=1000:7000\n1 C send=100 ts=1001:7000\n\
                         1.02 S ts=7001:1001\n"
                .to_owned();
        for round in 1..8 {
            let (at, stamp) = (30 * round, 7_000 + 30 * round);
            for segment in 0..4 {
                lines += &format!("{at}.{segment} S send=1448 ts={stamp}:{}\n", 971 + 30 * round);
            }
            lines += &format!("{at}.4 C ts={}:{stamp}\n", 1_000 + 30 * round);
        }
        lines += &format!(
            "860 S send=1448 ts=7860:1210\n860.02 C ts=1860:7860\n860.06 S send=1448 ts=7860:{echo}\n860.08 C ts=1860:7860"
        );
        let report = Script { one_way_ms: 0.02, lines: &lines }.diagnose(VantagePoint::Client);
        report.findings.iter().any(|finding| finding.cause == Cause::RetransmissionTimeout)
    };
    assert_eq!([1_860, 1_210].map(found), [true, false]);
}

/// The second response that comes after a timer's time and a skipped IP ID, on a path that loses packets.
#[test]
fn response_behind_a_skipped_number_and_a_timer_was_lost_where_the_path_loses_others() {
    let confidence = |before: &str| {
        let lines = format!(
            "30 C send=100\n45 S\n46 S send=60\n61 C\n{before}700 C send=90\n716 S send=500 lost\n920 S seq=60 send=500\n936 C"
        );
        let report = at_client(&lines);
        let found = report.findings.iter().rfind(|finding| finding.cause == Cause::RetransmissionTimeout);
        found.map(|finding| finding.confidence)
    };
    assert_eq!(confidence(""), Some(Confidence::Low));
    assert_eq!(confidence("100 C send=20 lost\n330 C seq=100 send=20\n345 S\n"), Some(Confidence::High));
}

/// Four segments and a short one that is lost on the path to the client.
const TAIL_LOST: &str = "
    30 C send=100
    45 S send=1460
    45.1 S send=1460
    45.2 S send=1460
    45.3 S send=1460
    45.4 S send=500 lost
    60.2 C ack=2920
    60.4 C ack=5840
    306 S seq=5840 send=500
    321.1 C
    400 C send=100
    415 S send=100";

#[test]
fn tail_lost_before_the_capture_is_of_low_confidence_there() {
    let lines = opened(15.0, TAIL_LOST);
    let script = Script { one_way_ms: 15.0, lines: &lines };
    assert_eq!(script.faults(VantagePoint::Server), [(Cause::RetransmissionTimeout, 261)]);
    let report = script.diagnose(VantagePoint::Client);
    assert!(!report.is_worth_fixing(), "{:?}", report.findings);
    let loss = report.findings.iter().find(|finding| finding.cause == Cause::RetransmissionTimeout);
    // The lost copy has an IP ID of its own.
    assert!(loss.unwrap().evidence.contains("sent 1 packet that did not pass here"), "{loss:?}");
}

#[test]
fn first_copy_of_a_response_that_was_lost_before_the_capture_is_no_server_time() {
    let found = |first: &str| {
        let lines = format!(
            "30 C send=100\n45 S\n46 C\n60 S\n100 C send=90\n115 S\n116 S {first}\n346 S seq=0 send=500\n361 C"
        );
        let report = at_client(&lines);
        let causes = [Cause::ServerThink, Cause::RetransmissionTimeout];
        let faults = report.findings.into_iter().filter(|finding| causes.contains(&finding.cause));
        faults.map(|finding| (finding.cause, finding.confidence)).collect::<Vec<_>>()
    };
    assert_eq!(found("send=500 lost"), [(Cause::RetransmissionTimeout, Confidence::Low)]);
    let thinks = found("");
    assert!(thinks.iter().all(|(cause, _)| *cause == Cause::ServerThink), "{thinks:?}");
}

#[test]
fn a_program_that_stops_for_longer_than_a_timer_is_no_loss() {
    let lines =
        TAIL_LOST.replace("45.4 S send=500 lost", "").replace("306 S", "356 S").replace("321.1 C", "371.1 C");
    let lines = opened(15.0, &lines);
    let script = Script { one_way_ms: 15.0, lines: &lines };
    assert_eq!(script.faults(VantagePoint::Client), [(Cause::ServerThink, 281)]);
}

#[test]
fn acknowledgement_beyond_the_captured_data_shows_a_loss_before_the_capture() {
    let found = |early: &str| {
        let lines = format!(
            "30 C send=100\n45 S send=50\n{early}\n75 S send=50 ack=100\n90 C seq=294\n5990 C seq=100 send=234\n6005 S"
        );
        let script = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) };
        let found = script.faults(VantagePoint::Server);
        found.into_iter().find(|(cause, _)| *cause == Cause::RetransmissionTimeout)
    };
    assert_eq!(found(""), Some((Cause::RetransmissionTimeout, 5_930)));
}

#[test]
fn needless_retransmission_of_the_first_segment_of_a_flight_is_no_probe() {
    let found = |seq: u32, length: u32| {
        let lines = format!(
            "100 C send=100\n150 S send=1460\n150.1 S send=1460\n150.2 S send=500\n200.3 C ack=3420\n\
             290 S seq={seq} send={length}\n340.1 S send=1460\n340.2 S send=1460\n390.5 C"
        );
        let found = Script { one_way_ms: 50.0, lines: &opened(50.0, &lines) }.faults(VantagePoint::Client);
        found.into_iter().filter(|(cause, _)| *cause == Cause::TailLossProbe).count()
    };
    assert_eq!((found(2_920, 500), found(0, 1_460)), (1, 0));
}

/// A receiver without a CPU acknowledges late, and the sender's probes are needless, as duplicate SACKs show each time.
#[test]
fn short_probes_are_no_finding_together() {
    let mut lines = "2 C send=100\n".to_owned();
    for round in 0..8 {
        let (at, sent) = (3.0 + 20.0 * f64::from(round), 700 * round);
        lines += &format!(
            "{at} S send=700\n{} S seq={sent} send=700\n{} C ack={} sack={sent}:{}\n",
            at + 4.6,
            at + 5.7,
            sent + 700,
            sent + 700
        );
    }
    let report = Script { one_way_ms: 1.0, lines: &opened(1.0, &lines) }.diagnose(VantagePoint::Server);
    let probes = report.findings.iter().filter(|finding| finding.cause == Cause::TailLossProbe);
    assert!(!report.is_worth_fixing(), "{:?}", probes.collect::<Vec<_>>());
}

/// A message in these numbers of segments every 3 ms, ten times in each round trip. The eleventh time one is lost. Returns what a repair
/// saves, in milliseconds, and whether that is worth it.
fn saved_by_repair(rounds: &[u32]) -> (u64, bool) {
    const LOST_AT: u32 = 15;
    let (mut lines, mut sent, mut lost) = (String::from("30 C send=100\n"), 0, None);
    for (slot, segments) in (0..).zip(rounds.iter().flat_map(|segments| [*segments; 10])) {
        let at = 45.0 + 30.3 * f64::from(slot / 10) + 3.0 * f64::from(slot % 10);
        if slot == LOST_AT + 10 {
            lines += &format!("{at} S seq={} send=1460\n", lost.take().unwrap());
        }
        for segment in 0..segments {
            let is_lost = slot == LOST_AT && segment == 0;
            lost = if is_lost { Some(sent) } else { lost };
            lines += &format!("{at} S seq={sent} send=1460{}\n", if is_lost { " lost" } else { "" });
            sent += 1_460;
        }
        let ack =
            lost.map_or(format!("ack={sent}"), |lost| format!("ack={lost} sack={}:{sent}", lost + 1_460));
        lines += &format!("{} C {ack}\n", at + 15.1);
    }
    let report = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.diagnose(VantagePoint::Server);
    let loss = report.counts.iter().find(|count| count.cause == Cause::FastRetransmit).unwrap();
    (loss.saving.as_nanos() / 1_000_000, report.is_worth_fixing())
}

/// In the round trip of its repair a window does not double: what follows is that much later.
#[test]
fn loss_while_a_window_opens_costs_the_growth_of_a_round_trip() {
    let (saved, is_worth_fixing) = saved_by_repair(&[1, 2, 2, 4, 8, 8]);
    assert!((20..=45).contains(&saved) && is_worth_fixing, "{saved}");
    assert_eq!(saved_by_repair(&[2; 6]), (0, false), "the window did not open");
}
