//! Resets in the middle of a transfer, and those that cut nothing.

use diagnose::{Cause, Severity};

use crate::report::VantagePoint;
use crate::script::{Script, at_client, opened};

fn found(lines: &str, vantage_point: VantagePoint) -> Vec<Cause> {
    let lines = opened(15.0, lines);
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults(vantage_point);
    found.into_iter().map(|(cause, _)| cause).filter(|cause| *cause == Cause::ResetMidTransfer).collect()
}

#[test]
fn a_reset_with_data_unacknowledged_cuts_the_transfer() {
    let lines =
        "30 C send=100\n45 S send=1460\n45 S send=1460\n60 C\n75 S send=1460\n75 S send=1460\n91 C rst";
    for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
        assert_eq!(found(lines, vantage_point), [Cause::ResetMidTransfer], "{vantage_point:?}");
    }
}

#[test]
fn a_program_that_closes_with_data_unread_is_low() {
    let lines = "30 C send=100\n45 S send=1460\n60 C\n75 S send=1460\n75 S send=1460\n91 C rst";
    let lines = opened(15.0, lines);
    let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server);
    assert!(!report.is_worth_fixing(), "{:?}", report.findings);
    let cut = report.findings.iter().find(|finding| finding.cause == Cause::ResetMidTransfer);
    assert_eq!(cut.map(|cut| cut.confidence.name()), Some("low"));
    let denied = lines.replace("C rst", "C rst bare");
    assert!(Script { one_way_ms: 15.0, lines: &denied }.diagnose(VantagePoint::Server).is_worth_fixing());
}

#[test]
fn a_tls_server_that_resets_while_it_responds_truncates_the_response() {
    let reset = |after: &str, at: u32| {
        let lines = format!(
            "30 C client-hello\n45 S server-hello\n60 C records=53\n60.1 C records=300\n76 S records=9000{after}\n91 C\n{at} S rst"
        );
        found(&lines, VantagePoint::Client)
    };
    assert_eq!(reset("", 140), [Cause::ResetMidTransfer]);
    assert_eq!(reset(",19", 140), [], "close_notify");
    assert_eq!(reset("", 60_000), [], "an idle connection");
}

#[test]
fn a_reset_upload_is_named_whatever_was_acknowledged() {
    let request = "text=PUT / HTTP/1.1\\r\\nContent-Length: 9000\\r\\n\\r\\n";
    let reply = "text=HTTP/1.1 413 Too Large\\r\\nContent-Length: 0\\r\\n\\r\\n";
    let lines = format!("30 C {request}\n30.1 C send=1460\n45.2 S {reply}\n45.3 S fin\n45.4 S rst");
    assert_eq!(found(&lines, VantagePoint::Client), [Cause::ResetMidTransfer]);
}

#[test]
fn a_server_that_closes_within_its_response_cuts_it() {
    let reply = |length: u32| format!("text=HTTP/1.1 200 OK\\r\\nContent-Length: {length}\\r\\n\\r\\nok");
    let clear =
        |reply: &str| format!("30 C text=GET / HTTP/1.1\\r\\n\\r\\n\n45 S {reply}\n60 C\n75 S fin\n90 C fin");
    let tls = |rest: &str| {
        format!(
            "30 C client-hello\n45 S server-hello\n60 C records=53,300\n76 S records=2000\n77 S hex=1703030008{rest}\n92 C\n93 S fin"
        )
    };
    for (lines, is_cut) in [
        (clear(&reply(9_000)), true),
        (clear(&reply(2)), false),
        (clear("text=HTTP/1.1 200 OK\\r\\n\\r\\nok"), false),
        (tls("aaaaaa"), true),
        (tls("aaaaaaaaaaaaaaaa"), false),
    ] {
        let found = found(&lines, VantagePoint::Client);
        assert_eq!(found.len(), usize::from(is_cut), "{lines}");
    }
}

#[test]
fn a_reset_of_a_complete_or_closed_connection_cuts_nothing() {
    let complete = "30 C send=100\n45 S send=1460\n60 C\n500 C rst";
    let closed = "30 C send=100\n45 S send=1460\n45 S fin\n60 C send=31\n75 S rst";
    for lines in [complete, closed] {
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            assert_eq!(found(lines, vantage_point), [], "{vantage_point:?}");
        }
    }
}

#[test]
fn reset_of_a_half_open_connection_cuts_nothing() {
    let script = Script { one_way_ms: 15.0, lines: "0 C syn\n15 S syn\n30 C rst" };
    assert_eq!(script.faults_everywhere(), []);
}

#[test]
fn client_that_had_closed_gave_up() {
    let lines = |fin: &str| {
        format!("30 C send=100\n45 S send=1460\n{fin}\n75 S send=1460\n75 S send=1460\n90 C rst bare")
    };
    for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
        assert_eq!(found(&lines("61 C fin"), vantage_point), [], "{vantage_point:?}");
        assert_eq!(found(&lines("61 C"), vantage_point), [Cause::ResetMidTransfer], "{vantage_point:?}");
    }
}

#[test]
fn reset_with_another_ttl_is_a_firewalls() {
    let evidence = |ttl: &str| {
        let lines = format!(
            "30 C send=100\n45 S send=1460\n45 S send=1460\n60 C\n75 S send=1460\n75 S send=1460\n91 C rst {ttl}"
        );
        let lines = opened(15.0, &lines);
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server);
        let cut = report.findings.into_iter().find(|finding| finding.cause == Cause::ResetMidTransfer);
        cut.unwrap().evidence
    };
    assert!(evidence("ttl=127").contains("a firewall or NAT"), "{}", evidence("ttl=127"));
    assert!(!evidence("").contains("a firewall or NAT"), "{}", evidence(""));
}

#[test]
fn stream_that_ends_with_an_error_names_its_code() {
    let preface =
        "30 C text=PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\\x00\\x00\\x00\\x04\\x00\\x00\\x00\\x00\\x00";
    let evidence = |code: u32| {
        let report = at_client(&format!(
            "{preface}\n30.1 C hex=0000020105000000018286\n90 S hex=000004030000000001{code:08x}\n105 C"
        ));
        let found = report.findings.iter().find(|finding| finding.cause == Cause::ResetMidTransfer);
        found.map(|finding| finding.evidence.clone())
    };
    assert!(evidence(11).is_some_and(|text| text.contains("ENHANCE_YOUR_CALM")));
    assert_eq!(evidence(8), None, "CANCEL");
}

/// A firewall refuses what the client acknowledges, in the server's name; a program that aborts sets ACK.
#[test]
fn reset_without_acknowledgement_within_a_response_is_not_a_close_with_unread_requests() {
    let found = |flags: &str| {
        let head = "text=HTTP/1.1 200 OK\\r\\nContent-Length: 90000\\r\\n\\r\\n";
        let lines = format!(
            "30 C text=GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n\n45 S {head}\n45.1 S send=1460\n60.2 C\n75.3 S {flags}"
        );
        let found = at_client(&lines).findings.into_iter().find(|finding| finding.severity == Severity::High);
        found.map(|finding| (finding.cause, finding.evidence.contains("firewall")))
    };
    assert_eq!(found("rst bare"), Some((Cause::ResetMidTransfer, true)));
    assert_eq!(found("rst"), Some((Cause::ResetLostData, false)));
}

/// A server that aborts with SO_LINGER, in a protocol that cannot be read.
#[test]
fn reset_right_after_full_segments_cuts_what_the_server_was_sending() {
    let cuts = |last: &str| {
        let lines = format!(
            "30 C send=6\n45 S send=1460\n45.1 S send=1460\n60.2 C\n75.3 S send=1460\n75.4 S send=1460\n75.5 S {last}\n90.6 C\n"
        );
        [76, 9_000].map(|at| found(&format!("{lines}{at} S rst"), VantagePoint::Client).len())
    };
    assert_eq!(cuts("send=1460"), [1, 0], "an idle connection is closed");
    assert_eq!(cuts("send=700"), [0, 0], "a message ends with a short segment");
}

#[test]
fn reset_of_a_websocket_without_a_close_frame_cuts_it() {
    let cuts = |frame: &str| {
        let lines = format!(
            "30 C text=GET /ws HTTP/1.1\\r\\nHost: h\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n\n45 S text=HTTP/1.1 101 \
             Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n\n60 C hex={frame}\n76 S rst"
        );
        found(&lines, VantagePoint::Client).len()
    };
    assert_eq!(cuts("818400000000aabbccdd"), 1);
    assert_eq!(cuts("88820000000003e8"), 0, "Close");
}
