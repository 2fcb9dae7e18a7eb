//! A fatal TLS alert: the handshake failed.
//!
//! **Rule**: a TLS record of type alert and level fatal in the unencrypted part of the handshake. In TLS 1.3 also a record of an
//! alert's size where only that fits: in place of the client's Finished message, or of all that the server would send next.
//! **Evidence**: the alert's name, and the handshake's first packet. **Refuted by**: `close_notify` and `user_canceled`.

use dissect::tls::{Alert, Tls};
use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Finding;
use crate::gap::Wait;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The TLS handshake failed: one side ended it with a fatal alert.",
    fixes: &[
        Fix {
            party: Party::ServerApplication,
            change: "protocol_version, handshake_failure, insufficient_security: offer TLS 1.2 and 1.3 with current ciphers; \
                     unrecognized_name: a certificate for that name",
        },
        Fix {
            party: Party::ClientApplication,
            change: "unknown_ca, bad_certificate, certificate_expired: renew the certificate, send the whole chain, or trust \
                     its issuer",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Returns the finding of a handshake that failed.
pub(crate) fn rule(tls: &Tls) -> Option<Finding> {
    let Alert { from, mark, alert } = tls.alert?;
    let began = tls.began;
    let (kind, why) = match alert {
        Some(alert) => (format!("the fatal alert {} ({}", alert.name(), alert.description), ""),
        None => (
            "an encrypted alert (by its size".to_owned(),
            ": it rejects the other's certificate, or has none of its own",
        ),
    };
    let name = tls.server_name().map_or_else(String::new, |name| format!(" with {name}"));
    let evidence = format!(
        "the {from} ended the TLS handshake{name} that began in packet {} with {kind}, packet {}){why}",
        began.frame, mark.frame
    );
    let wait = Wait { from: began, to: mark, side: from };
    Some(Finding { saving: None, ..wait.finding(Cause::TlsAlert, evidence) })
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, at_client, opened};

    const HELLO: &str = "30 C hex=160301000501000001aa\n";

    fn found(lines: &str) -> Vec<(Cause, String)> {
        let report = at_client(&format!("{HELLO}{lines}"));
        let faults = report.findings.into_iter().filter(|finding| finding.cause == Cause::TlsAlert);
        faults.map(|finding| (finding.cause, finding.evidence)).collect()
    }

    #[test]
    fn a_fatal_alert_is_named() {
        let found = found("46 S hex=15030100020228");
        assert!(
            matches!(&found[..], [(Cause::TlsAlert, text)] if text.contains("handshake_failure")),
            "{found:?}"
        );
    }

    #[test]
    fn warnings_and_encrypted_alerts_are_no_failure() {
        assert_eq!(found("46 S hex=15030100020100"), []);
        assert_eq!(found("46 S hex=1503030012022800000000000000000000000000000000"), []);
        assert_eq!(found("46 S send=200"), []);
    }

    #[test]
    fn alert_in_place_of_finished_or_of_a_response_rejects_the_handshake() {
        let found = |lines: &str| {
            let lines =
                opened(15.0, &format!("30 C client-hello\n45 S server-hello\n45.1 S records=900\n{lines}"));
            let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Client);
            report.findings.iter().any(|finding| finding.cause == Cause::TlsAlert)
        };
        let [client, server] = ["61 C records=19", "61 C records=53,300\n76 S records=19"];
        assert!(found(client) && found(server));
        // A side that closes.
        assert!(!found("61 C records=53,19") && !found("61 C records=53,300\n76 S records=400,19"));
    }

    #[test]
    fn short_message_before_tls13_is_no_alert() {
        // ChaCha20-Poly1305. DNS writes the two bytes of a length into a record of their own.
        let hello = format!("160303002a020000260303{}00cca800", "02".repeat(32));
        let handshake = format!("30 C client-hello\n45 S hex={hello}\n45.1 S hex=16030300040e000000\n");
        let report = at_client(&format!(
            "{handshake}61 C hex=160303000410000000140303000101\n61.1 C records=18\n61.2 C records=57\n92 S records=107"
        ));
        assert!(
            report.findings.iter().all(|finding| finding.cause != Cause::TlsAlert),
            "{:?}",
            report.findings
        );
    }
}
