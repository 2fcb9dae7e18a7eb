//! Peers that vanish: data is retransmitted in vain.

use crate::Cause;
use crate::report::VantagePoint;
use crate::script::{Script, at_client, opened};

const LADDER: &str =
    "30 C send=100\n45 S send=1460 lost\n300 S seq=0 send=1460 lost\n800 S seq=0 send=1460 lost
    1800 S seq=0 send=1460 lost";

#[test]
fn unanswered_retransmissions_to_the_end_are_one_finding() {
    let lines = opened(15.0, LADDER);
    let script = Script { one_way_ms: 15.0, lines: &lines };
    assert_eq!(script.faults(VantagePoint::Server), [(Cause::PeerVanished, 1_755)]);
    // The rule applies whether or not the sender aborts the connection.
    let lines = format!("{lines}\n5000 S rst lost");
    let script = Script { one_way_ms: 15.0, lines: &lines };
    assert_eq!(script.faults(VantagePoint::Server), [(Cause::PeerVanished, 4_955)]);
    let report = script.diagnose(VantagePoint::Server);
    let vanished = report.findings.iter().find(|finding| finding.cause == Cause::PeerVanished);
    let evidence = &vanished.unwrap().evidence;
    assert!(evidence.ends_with("; the server then reset the connection (packet 9)"), "{evidence}");
}

/// Found in a capture: two segments are retransmitted each time, and the second is newer than the first.
#[test]
fn regress_retransmissions_of_later_data_are_no_progress() {
    let mut lines = "30 C send=100\n45 S send=1460 lost\n45.1 S send=1460 lost\n".to_owned();
    for at in [300, 800, 1_800, 3_800] {
        lines += &format!("{at} S seq=0 send=1460 lost\n{at}.1 S seq=1460 send=1460 lost\n");
    }
    let lines = opened(15.0, &lines);
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
    assert_eq!(found, [(Cause::PeerVanished, 3_755)]);
}

/// Found in a capture with segmentation offload: the first packet has three segments, and only the first is repeated.
#[test]
fn regress_first_segment_of_a_merged_packet_counts_like_a_whole_one() {
    let lines = LADDER.replacen("send=1460", "send=4380", 1);
    let found = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.faults(VantagePoint::Server);
    assert_eq!(found, [(Cause::PeerVanished, 1_755)]);
}

/// Found in a capture: the first segment had been acknowledged in part.
#[test]
fn regress_remainder_of_a_segment_counts_like_a_whole_one() {
    let mut lines = "30 C send=100\n45 S send=1460\n60 C ack=1000\n".to_owned();
    for at in [300, 800, 1_800, 3_800] {
        lines += &format!("{at} S seq=1000 send=460 lost\n");
    }
    let lines = opened(15.0, &lines);
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
    assert_eq!(found.last(), Some(&(Cause::PeerVanished, 3_500)), "{found:?}");
}

#[test]
fn server_silent_since_its_syn_ack_may_have_a_full_listen_backlog() {
    let ladder = |before: &str| {
        format!(
            "{before}300 C send=90 lost\n500 C seq=0 send=90 lost\n900 C seq=0 send=90 lost\n1700 C seq=0 send=90 lost"
        )
    };
    let evidence = |lines: &str| {
        let report = at_client(lines);
        let vanished = report.findings.into_iter().find(|finding| finding.cause == Cause::PeerVanished);
        vanished.unwrap().evidence
    };
    let silent = evidence(&ladder(""));
    assert!(silent.ends_with("since its SYN/ACK (packet 2): its listen backlog may be full"), "{silent}");
    let greeted = ladder("45 S send=20\n60 C\n");
    assert!(!evidence(&greeted).contains("backlog"));
}

#[test]
fn a_peer_that_resets_in_the_end_has_not_vanished() {
    let lines = opened(15.0, &format!("{LADDER}\n1814 C rst"));
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
    let causes: Vec<Cause> = found.iter().map(|(cause, _)| *cause).collect();
    assert!(!causes.contains(&Cause::PeerVanished), "{found:?}");
    assert!(causes.contains(&Cause::ResetMidTransfer), "{found:?}");
}

#[test]
fn late_reply_makes_it_losses() {
    let lines = opened(15.0, &format!("{LADDER}\n4000 S seq=0 send=1460\n4015 C"));
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
    assert!(found.iter().all(|(cause, _)| *cause == Cause::RetransmissionTimeout), "{found:?}");
    assert_eq!(found.len(), 4);
}

#[test]
fn retransmitted_fin_is_no_finding() {
    let lines =
        "30 C send=100\n45 S send=100\n60 C\n100 S fin lost\n400 S seq=100 fin lost\n1000 S seq=100 fin lost
        2200 S seq=100 fin lost\n4600 S seq=100 fin lost";
    let lines = opened(15.0, lines);
    let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
    assert!(found.iter().all(|(cause, _)| *cause != Cause::PeerVanished), "{found:?}");
}
