//! A SYN that meets an older connection between the same ports.
//!
//! **Rule**: before any SYN/ACK the server responds to the SYN with an acknowledgement of something else (a challenge
//! ACK, RFC 5961, section 4): it still has a connection with these ports, in TIME_WAIT or half-open. The client resets
//! that one and retransmits the SYN on a timeout. **Evidence**: the SYN, the challenge and the SYN that was accepted.
//! **Refuted by**: an acknowledgement of the SYN itself.

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::failure::OpeningFacts;
use crate::finding::{Finding, Severity};
use crate::text::millis;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The client reused a port for which the server still had an older connection (TIME_WAIT or half-open).",
    fixes: &[
        Fix {
            party: Party::ClientApplication,
            change: "keep connections open and reuse them; do not bind a fixed source port",
        },
        Fix {
            party: Party::SendingKernel,
            change: "more ports (sysctl net.ipv4.ip_local_port_range), TCP timestamps on (net.ipv4.tcp_timestamps=1): \
                     they distinguish a new SYN from an old connection",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Detects the challenge ACK that an older connection sends.
pub(crate) fn rule(facts: &OpeningFacts<'_>) -> Option<Finding> {
    let challenge = facts.opening.challenge?;
    let (first, until) = (facts.first, facts.opening.answered.unwrap_or(facts.last));
    let evidence = format!(
        "the reply to the SYN (packet {}) was an acknowledgement of something else (packet {}): the server still had an \
         older connection between these ports; {} later (packet {}) the new one went on",
        first.frame,
        challenge.frame,
        millis(until.at.since(first.at)),
        until.frame,
    );
    let packets = vec![first.frame, challenge.frame, until.frame];
    Some(facts.failure(Cause::SynTimeWait, Severity::most(Cause::SynTimeWait), until, packets, evidence))
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::Script;

    #[test]
    fn a_challenge_instead_of_a_syn_ack_is_an_older_connection() {
        let lines = "0 C syn\n15 S ack=700000\n30 C rst seq=700000\n1000 C reopen\n1015 S syn\n1030 C\n1031 C seq=0 send=9\n1046 S send=9";
        let script = Script { one_way_ms: 15.0, lines };
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            let found = script.faults(vantage_point);
            assert!(
                matches!(found[..], [(Cause::SynTimeWait, 1_000..=1_030)]),
                "{vantage_point:?}: {found:?}"
            );
        }
    }

    #[test]
    fn a_syn_ack_is_no_challenge() {
        let lines = "0 C syn\n15 S syn\n30 C\n31 C send=9\n46 S send=9";
        assert_eq!(Script { one_way_ms: 15.0, lines }.faults_everywhere(), []);
    }
}
