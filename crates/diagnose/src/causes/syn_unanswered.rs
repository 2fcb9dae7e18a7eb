//! A SYN without a response: it is retransmitted with exponential backoff until the client times out.
//!
//! **Rule**: a SYN was retransmitted and had no response until the end. Or the response came late, and the capture was
//! taken at the server (or on loopback, where nothing is lost): then the server had dropped the SYN. **Evidence**: the
//! SYNs; an ICMP message about them; whether other connections to the same port, or other ports of the host, had
//! responses meanwhile. **Refuted by**: a SYN/ACK that passed; acknowledgements or data of the client (the reply was
//! not captured); a SYN sent only once, unless its client then tried another address (`alternative.rs`). The SYN of a further subflow of Multipath TCP (MP_JOIN) is of severity low: the
//! connection goes on without it.
//!
//! A retransmitted SYN with a late response captured elsewhere may have been lost: that is `retransmission-timeout`.

use dissect::{Mark, Side};
use wire::Duration;
use wire::packet::icmp::{Reason, Unreachable};

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::failure::OpeningFacts;
use crate::finding::{Confidence, Finding, Severity};
use crate::gap::Wait;
use crate::text::{millis, packets};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The client's SYN got no reply: its timer retransmitted it, or the client used another address.",
    fixes: &[
        Fix {
            party: Party::ServerApplication,
            change: "where other connections to the port succeed: accept faster, and listen with a longer backlog \
                     (listen(fd, 4096), sysctl net.core.somaxconn; nstat -az TcpExtListenOverflows counts the drops)",
        },
        Fix {
            party: Party::Network,
            change: "where none succeeds: check that the host is up, the address, routes, and firewalls that drop",
        },
        Fix {
            party: Party::ClientApplication,
            change: "a connection timeout of seconds, and another address to try",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Fixes for a lost SYN or SYN/ACK.
pub(crate) const LOST: [Fix; 2] = [
    Fix {
        party: Party::Network,
        change: "find where packets are lost (a queue too short, a faulty link, a policer)",
    },
    Fix {
        party: Party::ServerApplication,
        change: "rule out a full listen backlog (nstat -az TcpExtListenOverflows): it drops SYNs in the same way",
    },
];

/// Detects SYNs to which nothing replied, or only a router.
pub(crate) fn rule(facts: &OpeningFacts<'_>) -> Option<Finding> {
    let opening = facts.opening;
    let is_answered = opening.answered.is_some() || facts.is_heard;
    if is_answered || (opening.repeats.is_empty() && opening.unreachable.is_none()) {
        return None;
    }
    let (first, last, times) = (facts.first, facts.last, opening.repeats.len() + 1);
    let sent = if times == 1 { "was sent".to_owned() } else { format!("was sent {times} times") };
    let evidence = format!(
        "the SYN to {} {sent} ({}) and got no reply; {}{}",
        facts.server,
        packets(first.frame, last.frame),
        reason(facts),
        facts.join_kind()
    );
    let until = Mark { at: facts.ended, frame: last.frame };
    let severity = if facts.is_joining { Severity::Low } else { Severity::High };
    let packets = vec![first.frame, last.frame];
    Some(facts.failure(Cause::SynUnanswered, severity, until, packets, evidence))
}

/// Returns why a SYN may have had no reply.
fn reason(facts: &OpeningFacts<'_>) -> String {
    let (server, since) = (facts.server, facts.first.at);
    match facts.opening.unreachable {
        Some((mark, Unreachable { reporter, reason: Reason::Prohibited, .. })) => {
            format!("{reporter} reports that a filter forbids it (ICMP, packet {})", mark.frame)
        }
        Some((mark, Unreachable { reporter, .. })) => {
            format!("{reporter} reports that the host cannot be reached (ICMP, packet {})", mark.frame)
        }
        None if facts.hosts.accepts(server, since) => {
            "other connections to this port were accepted: its listen backlog was full, or packets were lost".to_owned()
        }
        None if facts.is_local() => {
            "on loopback nothing is lost: the listen backlog was full, or a filter on the host drops it".to_owned()
        }
        None if facts.hosts.is_alive(server.ip(), since) => {
            "the host replied on other ports: a firewall drops packets to this one".to_owned()
        }
        None => "nothing was heard from this host: it is down, the address is wrong, or a firewall drops packets to it".to_owned(),
    }
}

/// Returns whether a SYN that was retransmitted before the SYN/ACK was dropped by the server: it had reached it.
pub(crate) fn is_dropped(facts: &OpeningFacts<'_>) -> bool {
    facts.is_local() || facts.is_at_server
}

/// Returns the finding of a SYN that was lost, or that the server dropped, before it `answered`.
pub(crate) fn late(facts: &OpeningFacts<'_>, (before, repeated): (Mark, Mark), answered: Mark) -> Finding {
    let wait = Wait { from: before, to: repeated, side: Side::Client };
    let (cause, confidence, why) = if is_dropped(facts) {
        let why = format!(
            "; it had reached the server, which replied in packet {}: its listen backlog was full, or a filter on \
             the host dropped it",
            answered.frame
        );
        (Cause::SynUnanswered, Confidence::Medium, why)
    } else {
        (Cause::RetransmissionTimeout, Confidence::High, String::new())
    };
    let evidence = format!(
        "the client's SYN (packet {}) got no reply and was retransmitted (packet {}) {} later{why}",
        before.frame,
        repeated.frame,
        millis(wait.duration())
    );
    let severity = Severity::most(Cause::RetransmissionTimeout);
    Finding { severity, confidence, ..wait.finding(cause, evidence) }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::Script;

    #[test]
    fn syns_retransmitted_without_any_reply_are_one_finding() {
        let lines = "0 C syn lost\n1000 C reopen lost\n3000 C reopen lost\n7000 C reopen lost";
        let script = Script { one_way_ms: 15.0, lines };
        let report = script.diagnose(VantagePoint::Client);
        assert_eq!(script.faults(VantagePoint::Client), [(Cause::SynUnanswered, 7_000)]);
        assert!(report.findings[0].evidence.contains("4 times"), "{}", report.findings[0].evidence);
    }

    #[test]
    fn subflow_that_is_never_opened_delays_no_side() {
        let report = |option: &str| {
            let lines = format!("0 C syn lost {option}\n1000 C reopen lost\n3000 C reopen lost");
            Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Client)
        };
        // MP_CAPABLE opens the connection itself; MP_JOIN adds a path to it.
        assert!(report("mptcp=0081").is_worth_fixing());
        let joining = report("mptcp=1001a1b2c3d4a1b2c3d4");
        assert!(!joining.is_worth_fixing());
        assert_eq!(joining.findings[0].cause, Cause::SynUnanswered);
        assert!(joining.findings[0].evidence.contains("MP_JOIN"), "{}", joining.findings[0].evidence);
    }

    #[test]
    fn a_lone_syn_cannot_be_judged() {
        let script = Script { one_way_ms: 15.0, lines: "0 C syn lost" };
        assert_eq!(script.faults(VantagePoint::Client), []);
    }

    #[test]
    fn a_server_that_responds_at_last_had_dropped_the_syn_where_it_was_captured() {
        let lines = "0 C syn\n1000 C reopen\n1015 S syn\n1030 C\n1031 C send=9\n1046 S send=9";
        let script = Script { one_way_ms: 15.0, lines };
        assert_eq!(script.faults(VantagePoint::Server), [(Cause::SynUnanswered, 1_000)]);
        assert_eq!(script.faults(VantagePoint::Client), [(Cause::RetransmissionTimeout, 1_000)]);
    }
}
