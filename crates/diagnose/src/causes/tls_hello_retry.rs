//! A Hello Retry Request: the client's key share is of a group that the server does not accept, and the handshake begins again.
//!
//! **Rule**: a Server Hello with the random value of a Hello Retry Request (RFC 8446, section 4.1.4), and the client's next
//! Client Hello. It costs a round trip on each connection. **Evidence**: both packets, and the groups. **Refuted by**:
//! nothing: the value is fixed.

use dissect::Side;
use dissect::tls::{Retry, Tls};
use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Finding;
use crate::gap::Wait;
use crate::text::millis;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The server refused the client's key share and requested another: one more round trip.",
    fixes: &[
        Fix {
            party: Party::ClientApplication,
            change: "offer the server's group first (OpenSSL Groups, Go CurvePreferences, Java jdk.tls.namedGroups)",
        },
        Fix {
            party: Party::ServerApplication,
            change: "accept the groups for which clients send shares: X25519 and P-256 (OpenSSL Groups)",
        },
    ],
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

/// Returns the finding, for this round trip.
pub(crate) fn rule(tls: &Tls, round_trip: Duration) -> Option<Finding> {
    let Retry { mark, again, group, offered } = tls.retry.as_deref()?;
    let again = again.as_ref().copied().unwrap_or(*mark);
    let lost = again.at.since(tls.began.at).max(round_trip);
    if lost < ABOUT.min_duration {
        return None;
    }
    let names: Vec<String> = offered.iter().map(|group| Retry::name(*group)).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let requested = group.map_or_else(|| "a cookie".to_owned(), Retry::name);
    let evidence = format!(
        "the client sent key shares of {names} (packet {}); the server requested {requested} (packet {}), and the \
         handshake began again (packet {}) {} later",
        tls.began.frame,
        mark.frame,
        again.frame,
        millis(lost)
    );
    let wait = Wait { from: tls.began, to: again, side: Side::Client };
    let packets = vec![tls.began.frame, mark.frame, again.frame];
    Some(Finding { lost, saving: Some(lost), packets, ..wait.finding(Cause::TlsHelloRetry, evidence) })
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, at_client, opened};

    #[test]
    fn retry_costs_a_round_trip_and_names_the_group() {
        let lines = opened(
            15.0,
            "30 C client-hello\n45 S hello-retry\n60 C client-hello\n75 S server-hello\n90 C records=53",
        );
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Client);
        let found = report.findings.iter().find(|finding| finding.cause == Cause::TlsHelloRetry);
        let evidence = found.map(|finding| finding.evidence.as_str()).unwrap_or_default();
        assert!(evidence.contains("X25519") && evidence.contains("P-384"), "{evidence}");
        assert_eq!(
            found.and_then(|finding| finding.saving).map(|saving| saving.as_nanos() / 1_000_000),
            Some(30)
        );
    }

    #[test]
    fn accepted_share_needs_no_retry() {
        let report = at_client("30 C client-hello\n45 S server-hello\n60 C records=53");
        assert!(report.findings.iter().all(|finding| finding.cause != Cause::TlsHelloRetry));
    }
}
