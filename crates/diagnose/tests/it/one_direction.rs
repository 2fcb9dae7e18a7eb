//! Captures of one direction: what they show, and what they leave unexplained.

use diagnose::report::VantagePoint;
use diagnose::{Cause, Severity, Side};

use super::script::{Script, opened};

const GET: &str = "hex=474554202f20485454502f312e310d0a486f73743a20680d0a0d0a";
const OK: &str = "hex=485454502f312e3120323030204f4b0d0a436f6e74656e742d4c656e6774683a20320d0a0d0a6f6b";

/// Exchanges whose responses take `wait`, each acknowledged by the client after `delay`; the waits found, and what is not
/// explained, in milliseconds.
fn waits(side: Side, [request, response]: [&str; 2], wait: u32, delay: u32) -> (Vec<u64>, u64) {
    let mut lines = "0 C syn ts=0:0\n15 S syn ts=7015:0\n30 C ts=30:7015\n".to_owned();
    let (mut at, mut echo) = (31, 7_015);
    for _ in 0..4 {
        let (acked, sent) = (at + 15, at + 15 + wait);
        let read = sent + 15 + delay;
        lines += &format!(
            "{at} C {request} ts={at}:{echo}\n{acked} S ts={0}:{at}\n{sent} S {response} ts={1}:{at}\n{read} C ts={read}:{1}\n",
            7_000 + acked,
            7_000 + sent
        );
        (at, echo) = (read + 90, 7_000 + sent);
    }
    let vantage_point = if side == Side::Client { VantagePoint::Client } else { VantagePoint::Server };
    let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose_only(vantage_point, side);
    let found = report.findings.iter().filter(|finding| finding.severity >= Severity::Low);
    let unexplained = report.unexplained.as_nanos() / 1_000_000;
    (found.map(|finding| finding.lost.as_nanos() / 1_000_000).collect(), unexplained)
}

#[test]
fn one_direction_shows_how_long_the_server_took() {
    let http = [GET, OK];
    // The first may be a warm-up.
    assert_eq!(waits(Side::Server, http, 300, 0), (vec![300; 4], 300));
    // Less the longest delay of an acknowledgement, until the server's clock is known.
    assert!(waits(Side::Client, http, 300, 40).0[1..].iter().all(|wait| wait.abs_diff(300) <= 1));
    assert_eq!(waits(Side::Server, http, 3, 40), (vec![], 0));
    assert_eq!(waits(Side::Client, http, 3, 40), (vec![], 0));
}

#[test]
fn wait_in_a_protocol_that_cannot_be_read_is_not_explained() {
    let other = ["send=100", "send=100"];
    for side in [Side::Client, Side::Server] {
        assert!(waits(side, other, 300, 0).1 >= 900, "{side}");
        assert_eq!(waits(side, other, 3, 0), (vec![], 0), "{side}");
    }
}

/// Found in a capture of requests alone.
#[test]
fn requests_alone_do_not_show_when_responses_came() {
    let mut lines = "0 C syn missed\n15 S syn\n30 C missed\n".to_owned();
    for turn in 0..5 {
        let at = 40 + (300 + 3_000 * turn) * turn;
        lines += &format!("{at} C {GET}\n{} S {OK}\n{} C missed\n", at + 16, at + 31);
    }
    let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose_only(VantagePoint::Client, Side::Client);
    assert!(!report.is_worth_fixing(), "{:?}", report.findings);
}

/// A flight of four segments, of which the second is lost and retransmitted `after` the others, or overtaken for that long.
fn repaired(side: Side, after: f64, is_lost: bool) -> Vec<(Cause, u64)> {
    let lost = if is_lost { " lost" } else { " missed" };
    let (again, filled) = (45.4 + after, 60.4 + after);
    let late = if is_lost { "" } else { " number=2" };
    let lines = opened(
        15.0,
        &format!(
            "30 C send=100\n45 S send=1460\n45.1 S send=1460 number=2{lost}\n45.2 S send=1460\n45.3 S send=1460\n60.2 C ack=1460\n60.3 C \
             ack=1460 sack=2920:4380\n60.4 C ack=1460 sack=2920:5840\n{again} S seq=1460 send=1460{late}\n{filled} C ack=5840\n{} S \
             send=1460\n{} C",
            filled + 15.1,
            filled + 30.1
        ),
    );
    let script = Script { one_way_ms: 15.0, lines: &lines };
    let report = script.diagnose_only(VantagePoint::Server, side);
    let faults = report.findings.iter().filter(|finding| finding.severity >= Severity::Low);
    faults.map(|finding| (finding.cause, finding.lost.as_nanos() / 1_000_000)).collect()
}

#[test]
fn retransmission_before_its_timer_shows_a_loss_without_its_acknowledgements() {
    assert_eq!(repaired(Side::Server, 30.0, true), [(Cause::FastRetransmit, 30)]);
}

#[test]
fn hole_in_selective_acknowledgements_shows_a_loss_without_the_data() {
    assert_eq!(repaired(Side::Client, 30.0, true), [(Cause::FastRetransmit, 30)]);
    assert_eq!(repaired(Side::Client, 300.0, true), [(Cause::RetransmissionTimeout, 300)]);
    assert_eq!(repaired(Side::Client, 5.0, false), [], "packets overtook each other");
}
