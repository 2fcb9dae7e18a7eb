//! The TLS handshake: one or two round trips before anything can be requested.
//!
//! **Rule**: from the Client Hello to the client's first record of application data, or its last handshake record. Not
//! a fault. **Refuted by**: data that is not TLS from its first byte on. A server whose first flight needs more than a
//! round trip is `tls-certificate-flight`, a client whose key share the server refuses `tls-hello-retry`: those can be fixed.

use dissect::Side;
use dissect::tls::Tls;
use wire::Duration;

use crate::cause::{Cause, CauseInfo, Describe as _, Fix, Party};
use crate::finding::Finding;
use crate::gap::Wait;
use crate::text::{counted, millis};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The TLS handshake took its round trips before the first request could leave.",
    fixes: &[
        Fix {
            party: Party::ClientApplication,
            change: "keep connections open, and resume sessions on new ones",
        },
        Fix {
            party: Party::ServerApplication,
            change: "TLS 1.3 (one round trip instead of two) and session tickets",
        },
    ],
    is_fault: false,
    min_duration: Duration::from_millis(5),
};

/// Returns the note of a handshake that was completed.
pub(crate) fn rule(tls: &Tls) -> Option<Finding> {
    let (began, ended) = (tls.began, tls.ended?);
    let wait = Wait { from: began, to: ended, side: Side::Client };
    if wait.duration() < Cause::TlsHandshake.about().min_duration {
        return None;
    }
    let evidence = format!(
        "the TLS handshake{} began in packet {}, and the client's first data left in packet {}, {} later",
        agreed(tls),
        began.frame,
        ended.frame,
        millis(wait.duration())
    );
    Some(Finding { saving: None, ..wait.finding(Cause::TlsHandshake, evidence) })
}

/// Returns what the hellos agreed on, in parentheses.
fn agreed(tls: &Tls) -> String {
    let Some(server) = &tls.server else { return String::new() };
    let name = tls.server_name().map_or_else(String::new, |name| format!("{name}, "));
    let resumed = if tls.is_resumed { "resumed, " } else { "" };
    let trips = counted(tls.round_trips().into(), "round trip");
    format!(" ({name}{}, {resumed}{trips})", server.version.name())
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::script::at_client;

    /// A Server Hello of this many segments, in flights of ten separated by a round trip.
    fn handshake(segments: usize) -> Vec<Cause> {
        let mut lines = "30 C hex=160301000501000001aa\n45 S hex=16030302000200\n".to_owned();
        for number in 0..segments {
            let at = 45.0 + 30.0 * (number / 10) as f64 + 0.1 * (number % 10) as f64;
            lines += &format!("{at} S send=1460\n");
            if number % 10 == 9 {
                lines += &format!("{} C\n", at + 15.0);
            }
        }
        let end = 65.0 + 30.0 * (segments / 10) as f64;
        lines += &format!("{end} C hex=16030300020214\n{} C hex=170303000101\n", end + 0.1);
        let report = at_client(&lines);
        let of_tls = |cause: &Cause| matches!(cause, Cause::TlsHandshake | Cause::TlsCertificateFlight);
        report.findings.iter().map(|finding| finding.cause).filter(of_tls).collect()
    }

    #[test]
    fn certificates_in_one_flight_are_the_usual_handshake() {
        assert_eq!(handshake(3), [Cause::TlsHandshake]);
    }

    #[test]
    fn certificates_in_several_flights_cost_round_trips() {
        let found = handshake(24);
        assert!(found.contains(&Cause::TlsCertificateFlight), "{found:?}");
    }
}
