//! A connection refused by the server, or by a firewall on its behalf.
//!
//! **Rule**: the response to the SYN is a reset that acknowledges it, or an ICMP message that the port is unreachable,
//! before any SYN/ACK. **Evidence**: both packets. **Refuted by**: a SYN/ACK before the reset (the connection was
//! open); a client that was accepted at another address of the same port within a second (it tries IPv6 and IPv4, and
//! lost nothing), or at the other port of SMB: that is `low`.

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
    let is_accepted = |port: &u16| facts.hosts.accepts((facts.server.ip(), *port).into(), facts.first.at);
    let other = raced_with(facts.server.port()).filter(is_accepted);
    let has_alternative = facts.opening.has_alternative || other.is_some();
    let severity = if has_alternative || facts.is_joining { Severity::Low } else { Severity::High };
    let alternative = match (other, has_alternative) {
        (Some(port), _) => format!("; clients of SMB use the port that accepts, which was {port}"),
        (None, true) => "; the client was accepted at another address of the same port".to_owned(),
        (None, false) => String::new(),
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

/// Returns the port that a client tries at the same time: SMB runs directly over TCP, and over NetBIOS (MS-SMB2, section 2.1).
const fn raced_with(port: u16) -> Option<u16> {
    match port {
        139 => Some(445),
        445 => Some(139),
        _ => None,
    }
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
