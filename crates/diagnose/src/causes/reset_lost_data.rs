//! A close that discards responses: a server that closes with unread requests, or receives more after it closed, sends
//! a reset, and the reset discards what the client has not read yet.
//!
//! **Rule**: the server resets the connection while requests have no response, or after the client sent more to a
//! server that had already closed its side. **Evidence**: the reset and the requests without a response. **Refuted
//! by**: a client that reset the connection itself, or that had all its responses; data and FINs that were acknowledged
//! on both sides; a TLS alert, which closes and requests nothing.

use dissect::Side;
use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::failure::LostResponses;
use crate::finding::{Confidence, Finding};
use crate::gap::Wait;
use crate::text::counted;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The server reset the connection with requests unread or pending; a reset also discards responses that \
           had arrived and were not read yet.",
    fixes: &[
        Fix {
            party: Party::ServerApplication,
            change: "close in two steps: shutdown(SHUT_WR), then read to the end (or for some seconds), then close \
                     (nginx lingering_close always; Apache does so)",
        },
        Fix {
            party: Party::ServerApplication,
            change: "allow more requests on a connection (nginx keepalive_requests 10000, Apache MaxKeepAliveRequests 0) \
                     and announce the last one with Connection: close",
        },
        Fix {
            party: Party::ClientApplication,
            change: "retry idempotent requests without a response on a new connection (RFC 9112, section 9.6)",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Detects requests that a server's reset left without a response.
pub(crate) fn rule(facts: &LostResponses) -> Option<Finding> {
    let LostResponses { reset, requests, unanswered, unread, .. } = *facts;
    // Both sides have closed, and everything has arrived: the cause of the reset no longer matters.
    if facts.is_settled || facts.has_client_ended && unanswered.unwrap_or(0) == 0 {
        return None;
    }
    let frame = reset.frame;
    let evidence = match unanswered {
        Some(0) => return None,
        Some(count) if facts.is_heard => format!(
            "the server reset the connection (packet {frame}) with {count} of {} not answered in full",
            counted(requests, "request")
        ),
        None if facts.is_late => format!(
            "the server closed its side, and reset the connection (packet {frame}) without having acknowledged the \
             client's data (packet {})",
            unread.frame
        ),
        Some(_) | None => return None,
    };
    let since = facts.first_unanswered.unwrap_or(unread);
    let confidence = if unanswered.is_some() { Confidence::High } else { Confidence::Medium };
    let wait = Wait { from: since, to: reset, side: Side::Server };
    let finding = wait.finding(Cause::ResetLostData, evidence);
    Some(Finding { at: reset.at, confidence, saving: None, ..finding })
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};

    const REQUEST: &str = "text=GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n";
    const RESPONSE: &str = "text=HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok";

    #[test]
    fn requests_that_a_reset_leaves_unanswered_are_counted() {
        let lines = opened(
            15.0,
            &format!(
                "30 C {REQUEST}\n30.1 C {REQUEST}\n30.2 C {REQUEST}\n46 S {RESPONSE}\n46.1 S fin\n46.2 S rst"
            ),
        );
        let script = Script { one_way_ms: 15.0, lines: &lines };
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            let report = script.diagnose(vantage_point);
            let lost = report.findings.iter().find(|finding| finding.cause == Cause::ResetLostData).unwrap();
            assert!(lost.evidence.contains("2 of 3 requests"), "{}", lost.evidence);
        }
    }

    #[test]
    fn reset_after_all_responses_or_by_the_client_loses_nothing() {
        let after = opened(15.0, &format!("30 C {REQUEST}\n46 S {RESPONSE}\n62 C fin\n78 S rst"));
        let by_client = opened(15.0, &format!("30 C {REQUEST}\n30.1 C {REQUEST}\n46 S {RESPONSE}\n62 C rst"));
        for lines in [&after, &by_client] {
            assert_eq!(Script { one_way_ms: 15.0, lines }.faults_everywhere(), []);
        }
    }

    #[test]
    fn without_http_data_after_the_servers_fin_is_evidence() {
        let lines = opened(15.0, "30 C send=100\n46 S send=300\n46.1 S fin\n60 C send=100\n75.1 S rst");
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Client);
        assert!(found.iter().any(|(cause, _)| *cause == Cause::ResetLostData), "{found:?}");
    }

    #[test]
    fn tls_close_answered_by_reset_loses_nothing() {
        let alert = "text=\\x15\\x03\\x03\\x00\\x02\\x01\\x00";
        let lines =
            opened(15.0, &format!("30 C send=100\n46 S send=300\n46.1 S fin\n62 C {alert}\n77.1 S rst"));
        assert_eq!(Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere(), []);
    }

    #[test]
    fn finding_is_dated_by_the_reset() {
        let lines = opened(15.0, "30 C send=100\n46 S send=300\n46.1 S fin\n60 C send=100\n75.1 S rst");
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server);
        let lost = report.findings.iter().find(|finding| finding.cause == Cause::ResetLostData).unwrap();
        assert!((lost.at.since(report.started).as_millis_f64() - 60.1).abs() < 0.5, "{lost:?}");
    }

    #[test]
    fn evidence_names_the_unacknowledged_data_and_the_reset() {
        let lines = opened(15.0, "30 C send=100\n46 S send=300\n46.1 S fin\n60 C send=100\n75.1 S rst");
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server);
        let lost = report.findings.iter().find(|finding| finding.cause == Cause::ResetLostData).unwrap();
        assert_eq!(lost.packets, [7, 8]);
        assert!(lost.evidence.contains("(packet 8) without having acknowledged"), "{}", lost.evidence);
        assert!(lost.evidence.ends_with("the client's data (packet 7)"), "{}", lost.evidence);
    }
}
