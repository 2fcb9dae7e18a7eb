//! A connection refused by the server, or by a firewall on its behalf.
//!
//! **Rule**: the response to the SYN is a reset that acknowledges it, or an ICMP message that the port is unreachable,
//! before any SYN/ACK. **Evidence**: both packets. **Refuted by**: a SYN/ACK before the reset (the connection was
//! open); a client that was accepted at another address of the same port within a second (it tries IPv6 and IPv4, and
//! lost nothing): that is `low`.

use wire::Duration;
use wire::packet::icmp::{Reason, Unreachable};

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::failure::OpeningFacts;
use crate::finding::{Finding, Severity};
use dissect::Mark;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The server refused the connection: nothing listens on the port, or a firewall rejects it.",
    fixes: &[
        Fix {
            party: Party::ServerApplication,
            change: "start the server before its clients; check the address and the port it listens on (ss -ltn): one \
                     that listens on 127.0.0.1 or on [::] alone is not reached by the other addresses",
        },
        Fix { party: Party::ClientApplication, change: "check the address and the port; retry with a pause" },
        Fix {
            party: Party::Network,
            change: "check firewalls that reject (iptables -j REJECT, security groups)",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Detects a reset that acknowledges the SYN.
pub(crate) fn by_reset(facts: &OpeningFacts<'_>) -> Option<Finding> {
    let refusal = facts.opening.refusal?;
    let has_alternative = facts.opening.has_alternative;
    let severity = if has_alternative || facts.is_joining { Severity::Low } else { Severity::High };
    let alternative = match has_alternative {
        true => "; the client was accepted at another address of the same port",
        false => "",
    };
    let evidence = format!(
        "{} replied to the SYN (packet {}) with a reset (packet {}){alternative}{}",
        facts.server,
        facts.first.frame,
        refusal.frame,
        facts.join_kind()
    );
    let packets = vec![facts.first.frame, refusal.frame];
    Some(facts.failure(Cause::ConnectionRefused, severity, refusal, packets, evidence))
}

/// Detects the ICMP message that takes the place of that reset.
pub(crate) fn by_icmp(facts: &OpeningFacts<'_>) -> Option<Finding> {
    let (mark, Unreachable { reporter, reason, .. }) = facts.opening.unreachable?;
    if facts.opening.answered.is_some() || !matches!(reason, Reason::Port) {
        return None;
    }
    let evidence = format!(
        "{reporter} replied to the SYN to {} (packet {}) with ICMP \"port unreachable\" (packet {})",
        facts.server, facts.first.frame, mark.frame
    );
    // The message is not one of this connection's packets, with which the account ends.
    let until = Mark { at: mark.at.min(facts.ended), frame: mark.frame };
    let packets = vec![facts.first.frame, mark.frame];
    Some(facts.failure(Cause::ConnectionRefused, Severity::High, until, packets, evidence))
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::Script;

    #[test]
    fn reset_instead_of_syn_ack_is_a_refusal() {
        let script = Script { one_way_ms: 15.0, lines: "0 C syn\n15 S rst" };
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            let report = script.diagnose(vantage_point);
            let found: Vec<Cause> = report.findings.iter().map(|finding| finding.cause).collect();
            assert_eq!(found, [Cause::ConnectionRefused], "{vantage_point:?}");
            assert!(report.is_worth_fixing());
        }
    }

    #[test]
    fn reset_after_the_handshake_is_no_refusal() {
        let script = Script { one_way_ms: 15.0, lines: "0 C syn\n15 S syn\n30 C\n31 C fin\n46 S rst" };
        assert_eq!(script.faults_everywhere(), []);
    }
}
