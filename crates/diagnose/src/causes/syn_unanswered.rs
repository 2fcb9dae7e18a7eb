//! A SYN that nobody answers: it is sent again, each time after twice the time, until the client gives up.
//!
//! **Rule**: a SYN was sent again and nothing answered it until the end; or it was answered at last, and the capture was taken at
//! the server (or on loopback, where nothing is lost): then the server had dropped it. **Evidence**: the SYNs; an ICMP message
//! about them; whether other connections to the same port, or other ports of the host, were answered meanwhile. **Refuted by**: a
//! SYN/ACK that passed; acknowledgements or data of the client (the reply was not captured); a SYN sent only once.
//!
//! A SYN that was sent again and answered elsewhere may have been lost: that is `retransmission-timeout`.

use wire::Duration;

use crate::cause::{CauseInfo, Fix, Party};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    what: "The client's SYN got no reply, and its timer retransmitted it.",
    fixes: &[
        Fix {
            who: Party::ServerApplication,
            change: "where other connections to the port succeed: accept faster, and listen with a longer backlog \
                     (listen(fd, 4096), sysctl net.core.somaxconn; nstat -az TcpExtListenOverflows counts the drops)",
        },
        Fix {
            who: Party::Network,
            change: "where none succeeds: check that the host is up, the address, routes, and firewalls that drop",
        },
        Fix {
            who: Party::ClientApplication,
            change: "a connection timeout of seconds, and another address to try",
        },
    ],
    is_fault: true,
    least: Duration::ZERO,
};

/// Advice for a SYN, or its SYN/ACK, that was lost.
pub(crate) const LOST: [Fix; 2] = [
    Fix {
        who: Party::Network,
        change: "find where packets are lost (a queue too short, a faulty link, a policer)",
    },
    Fix {
        who: Party::ServerApplication,
        change: "rule out a full listen backlog (nstat -az TcpExtListenOverflows): it drops SYNs in the same way",
    },
];

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::Script;

    #[test]
    fn a_ladder_of_syns_without_any_reply_is_one_finding() {
        let lines = "0 C syn lost\n1000 C reopen lost\n3000 C reopen lost\n7000 C reopen lost";
        let script = Script { one_way_ms: 15.0, lines };
        let report = script.diagnose(VantagePoint::Client);
        assert_eq!(script.faults(VantagePoint::Client), [(Cause::SynUnanswered, 7_000)]);
        assert!(report.findings[0].evidence.contains("4 times"), "{}", report.findings[0].evidence);
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
