//! A reset in the middle of a transfer.
//!
//! **Rule**: a reset while an HTTP message is incomplete, or, where messages cannot be read, while data is
//! unacknowledged and neither side had closed. In the latter case a reset that acknowledges the received data is `low`,
//! unless a TLS server sends it: a program that closes with unread data may not want the rest. **Evidence**: the reset,
//! and the missing data. **Or**: a TLS server resets within a second of its data, without `close_notify`; a server closes while its
//! message, or its TLS record, is incomplete. **Refuted by**: everything acknowledged except a SYN (a half-open connection carries nothing);
//! an earlier close (TLS: the peer's close_notify reaches a closed socket); a sender that had retransmitted its data in
//! vain (`peer-vanished`); a reset that leaves requests without a response (`reset-lost-data`); a client that had sent a
//! FIN before (it gave up). A reset with another TTL than its host's packets, or with the IP ID of the packet that it
//! rejects, is a firewall's, and the evidence names it.

use dissect::http2::StreamError;
use dissect::{Mark, Side};
use http2::settings::error_name;
use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::failure::ResetFacts;
use crate::finding::{Confidence, Finding, Severity};
use crate::gap::Wait;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "A reset or an early close ended the connection in the middle of a transfer.",
    fixes: &[
        Fix {
            party: Party::ReceivingApplication,
            change: "find out why it aborts: a crash, a timeout, a limit on the size of a body (nginx \
                     client_max_body_size); read a request to its end before closing",
        },
        Fix {
            party: Party::Network,
            change: "check firewalls, NAT and load balancers with limits on connections or idle time",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Returns the finding of a stream of HTTP/2 that one side ended with an error, or of a connection (GOAWAY): its peer's transfer was
/// cut. `NO_ERROR` and `CANCEL` are no errors (RFC 9113, section 7; 8.7 on retries).
pub(crate) fn of_stream(error: &StreamError) -> Finding {
    const REFUSED_STREAM: u32 = 7;
    let StreamError { from, stream, code, requested, mark } = *error;
    let since = requested.unwrap_or(mark);
    let (what, frame) = match stream {
        0 => ("the connection".to_owned(), "GOAWAY"),
        stream => (format!("stream {stream}"), "RST_STREAM"),
    };
    let request =
        requested.map_or_else(String::new, |request| format!("; its request is packet {}", request.frame));
    let refusal = "; it was not processed: a limit (SETTINGS_MAX_CONCURRENT_STREAMS) or a shutdown";
    let refusal = if code == REFUSED_STREAM { refusal } else { "" };
    let evidence = format!(
        "the {from} ended {what} of HTTP/2 with {} ({code}, {frame}, packet {}){request}{refusal}",
        error_name(code),
        mark.frame,
    );
    let wait = Wait { from: since, to: mark, side: from.other() };
    Finding { saving: None, ..wait.finding(Cause::ResetMidTransfer, evidence) }
}

/// Returns the finding of a server that closed the connection within its response.
pub(crate) fn closed_early(since: Mark, closed: Mark) -> Finding {
    let evidence = format!(
        "the server closed the connection (packet {}) within its response: the message, or its last TLS record, was incomplete",
        closed.frame
    );
    let wait = Wait { from: since, to: closed, side: Side::Server };
    Finding { saving: None, ..wait.finding(Cause::ResetMidTransfer, evidence) }
}

/// Detects a reset that cuts a transfer. It counts at the end of the connection only: unless the sender had retransmitted its
/// data in vain, or the reset left requests without a response.
pub(crate) fn rule(facts: &ResetFacts) -> Option<Finding> {
    let (by, reset) = (facts.from, facts.mark);
    let Cut { of, severity, what } = cut(facts)?;
    let since = *facts.sending.of(of);
    let sign = sign_of_a_firewall(facts);
    let confidence = if severity == Severity::Low { Confidence::Low } else { Confidence::Medium };
    let evidence = format!(
        "the {by} reset the connection (packet {}) while the {of} was sending (packet {}): {what}{sign}",
        reset.frame, since.frame
    );
    let wait = Wait { from: since, to: reset, side: of };
    let finding = wait.finding(Cause::ResetMidTransfer, evidence);
    Some(Finding { severity, confidence, saving: None, ..finding })
}

/// The side whose transfer was cut, and how that shows.
struct Cut {
    of: Side,
    severity: Severity,
    what: String,
}

fn cut(facts: &ResetFacts) -> Option<Cut> {
    let (from, peer) = (facts.from, facts.from.other());
    // A client that had closed before had given up: what comes then meets a closed socket.
    if from == Side::Client && facts.has_ended.client {
        return None;
    }
    let has_closed = facts.has_ended.client || facts.has_ended.server;
    let high = |of, what: &str| Some(Cut { of, severity: Severity::High, what: what.to_owned() });
    if from == Side::Server && !has_closed && facts.is_truncation {
        return high(from, "its data had just come, and TLS ends with a close_notify, which it did not send");
    }
    // A message that ends with the connection, and not by a FIN, is cut.
    if *facts.is_within.of(peer) {
        return high(peer, "its message was incomplete");
    }
    if *facts.is_within.of(from) && !*facts.has_ended.of(from) {
        return high(from, "its message was incomplete");
    }
    let are_seen = facts.is_seen.client && facts.is_seen.server;
    if facts.is_read && !facts.is_bare || has_closed || !are_seen || facts.unacknowledged == 0 {
        return None;
    }
    // A program that closes with unread data also resets, but acknowledges the received data: it may not want
    // the rest. A reset without ACK denies that the connection exists.
    let is_refused = facts.is_tls && from == Side::Server;
    let severity = if facts.is_bare || is_refused { Severity::High } else { Severity::Low };
    let bytes = facts.unacknowledged;
    let what = match facts.is_bare {
        true => format!("{bytes} of its bytes were not acknowledged"),
        false => format!("{bytes} of its bytes were acknowledged by the reset alone"),
    };
    Some(Cut { of: peer, severity, what })
}

/// Returns a clause on a reset that the host itself did not send: a firewall copies the IP ID of the packet that it
/// rejects, and its own packets have passed fewer or more routers than those of the host.
fn sign_of_a_firewall(facts: &ResetFacts) -> String {
    /// Routes may differ by this many routers.
    const ROUTES: u8 = 2;
    let (from, hop_limit) = (facts.from, facts.hop_limit);
    let other = facts.usual_hop_limit.filter(|usual| usual.abs_diff(hop_limit) > ROUTES);
    match (other, facts.is_copied) {
        (_, true) => format!(
            "; the reset has the IP ID of the {}'s last packet: a firewall or NAT sent it, not the {from}",
            from.other()
        ),
        (Some(usual), false) => format!(
            "; the reset has a TTL of {hop_limit}, the {from}'s other packets one of {usual}: a firewall or NAT probably \
             sent it, not the {from}"
        ),
        (None, false) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
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
        assert_eq!(cut.map(|cut| cut.confidence), Some(crate::finding::Confidence::Low));
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
        let clear = |reply: &str| {
            format!("30 C text=GET / HTTP/1.1\\r\\n\\r\\n\n45 S {reply}\n60 C\n75 S fin\n90 C fin")
        };
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
}
