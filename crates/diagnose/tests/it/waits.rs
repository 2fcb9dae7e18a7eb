//! Waits for a server, and for windows of HTTP/2.

use diagnose::report::VantagePoint;
use diagnose::{Cause, FlowReport, Severity};

use crate::script::{Script, at_client, opened};

const REQUEST: &str = "text=GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n";

fn server_think(report: &FlowReport) -> Vec<(u64, Severity)> {
    let findings = report.findings.iter().filter(|finding| finding.cause == Cause::ServerThink);
    findings.map(|finding| (finding.lost.as_nanos() / 1_000_000_000, finding.severity)).collect()
}

#[test]
fn pauses_within_a_header_section_are_waits_however_long() {
    let typed = "20030 S text=HTTP/1.1 200 OK\\r\\n\n20045 C\n42030 S text=Content-Length: 2\\r\\n\n42045 C\n\
                 50030 S text=X: y\\r\\n\n50045 C\n54030 S text=\\r\\nok\n54045 C";
    let report = at_client(&format!("30 C {REQUEST}\n45 S\n{typed}"));
    let waits: Vec<u64> = server_think(&report).into_iter().map(|(seconds, _)| seconds).collect();
    assert_eq!(waits, [19, 22, 8, 4]);
    assert!(report.is_worth_fixing());
    // The same pauses within a body may be events of a stream.
    let whole = "20030 S text=HTTP/1.1 200 OK\\r\\n\\r\\n\n20045 C\n42030 S text=one\n42045 C\n50030 S text=two\n50045 C";
    assert!(!at_client(&format!("30 C {REQUEST}\n45 S\n{whole}")).is_worth_fixing());
}

/// HTTP/2 with five requests together; each response ends at its time.
fn concurrent(ends: [u64; 5]) -> FlowReport {
    let mut lines =
        "30 C text=PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\\x00\\x00\\x00\\x04\\x00\\x00\\x00\\x00\\x00\n\
                     45.1 S hex=000000040000000000\n60.2 C hex=000000040100000000\n"
            .to_owned();
    for number in 0..5 {
        lines += &format!("{} C hex=0000010105{:08x}82\n", 61 + number, 2 * number + 1);
    }
    lines += "80 S\n";
    for (number, end) in (0..5).zip(ends) {
        lines += &format!("{end} S hex=0000010105{:08x}88\n{}.5 C\n", 2 * number + 1, end + 15);
    }
    Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.diagnose(VantagePoint::Client)
}

#[test]
fn requests_that_a_server_handles_one_at_a_time_wait_for_each_other() {
    let in_turn = concurrent([160, 242, 321, 402, 480]);
    let findings = server_think(&in_turn);
    assert!(findings.contains(&(0, Severity::Medium)), "{findings:?}");
    let sum = in_turn.findings.iter().find(|finding| finding.evidence.contains("1 at a time")).unwrap();
    assert_eq!(sum.lost.as_millis_f64().round(), 320.0);
    assert!(!concurrent([160, 162, 163, 164, 165]).is_worth_fixing());
}

#[test]
fn server_of_http2_that_is_quick_after_its_first_request_has_warmed_up() {
    let is_worth_fixing = |later: u32| {
        let mut lines = "30 C text=PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\\x00\\x00\\x00\\x04\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x01\\x05\\x00\\x00\\x00\\x01\\x82\n\
                         45.1 S\n46 S hex=000000040000000000\n61.1 C hex=000000040100000000\n445 S hex=00000101050000000188\n460.1 C\n".to_owned();
        for number in 1..7 {
            let at = 461 + number * (later + 40);
            lines += &format!("{at} C hex=0000010105{:08x}82\n", 2 * number + 1);
            lines += &format!(
                "{} S hex=0000010105{:08x}88\n{}.2 C\n",
                at + 15 + later,
                2 * number + 1,
                at + 30 + later
            );
        }
        Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }
            .diagnose(VantagePoint::Client)
            .is_worth_fixing()
    };
    assert!(!is_worth_fixing(1));
    assert!(is_worth_fixing(390));
}
