//! A client that sends `Expect: 100-continue` and waits for `100 Continue`: a round trip, or its timer.
//!
//! **Rule**: a request with `Expect: 100-continue`; the time until its body starts, with or without an interim
//! response. That is a round trip for any point of capture. **Saved** is that round trip: what the server verifies before it
//! responds remains without the header. **Refuted by**: a response that rejects the body (then the
//! expectation was useful): only a 1xx response counts.

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::gap::{Gap, GapEnd, GapStart};
use crate::ruling::Ruling;
use crate::side::Side;
use crate::text::millis;
use trace::account::Share;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The client sent Expect: 100-continue and waited for 100 (Continue) before its body.",
    fixes: &[
        Fix {
            party: Party::ClientApplication,
            change: "leave out the header: curl -H 'Expect:', .NET ServicePointManager.Expect100Continue = false, \
                     Java HttpClient expectContinue(false), Apache HttpClient setExpectContinueEnabled(false)",
        },
        Fix {
            party: Party::ClientApplication,
            change: "or set a short timeout: curl --expect100-timeout, Go Transport.ExpectContinueTimeout",
        },
        Fix {
            party: Party::ServerApplication,
            change: "send 100 (Continue) as soon as the headers are read",
        },
    ],
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    if !matches!(gap.end, GapEnd::Data) {
        return None;
    }
    let all = || Ruling::all(gap, Cause::ExpectContinue, evidence);
    match (gap.before, gap.wait.side) {
        (GapStart::Data(Side::Client), Side::Client) => gap.messages.expects_continue.then(all),
        // The cost is known once the body arrives.
        (GapStart::Data(Side::Client), Side::Server) => {
            gap.messages.expects_continue.then(|| Ruling::plain(gap, Share::Stall(Cause::ExpectContinue)))
        }
        (GapStart::Data(Side::Server), Side::Client) => gap.messages.permitted.map(|requested| Ruling {
            lost_since: Some(requested),
            saving: Some(saved(gap, gap.wait.to.at.since(requested.at))),
            ..all()
        }),
        (
            GapStart::Data(Side::Server)
            | GapStart::Nothing
            | GapStart::Handshake(_)
            | GapStart::Unseen(_)
            | GapStart::Ending,
            _,
        ) => None,
    }
}

/// Returns the part of a wait for the interim response that ends without the header: the round trip, with what programs need.
fn saved(gap: &Gap, waited: Duration) -> Duration {
    const PROGRAMS: Duration = Duration::from_millis(5);
    let round_trip = gap.path.round_trip;
    let is_verified = waited > round_trip * 5 / 4 + PROGRAMS;
    if is_verified { waited.min(round_trip + PROGRAMS) } else { waited }
}

fn evidence(gap: &Gap) -> String {
    let (response, body) = (gap.wait.from.frame, gap.wait.to.frame);
    match gap.messages.permitted {
        Some(requested) => format!(
            "the client sent headers with Expect: 100-continue (packet {}) and kept the body back (packet {body}) until it \
             had the server's response (packet {response}), {} later",
            requested.frame,
            millis(gap.wait.to.at.since(requested.at))
        ),
        None => format!(
            "the client sent headers with Expect: 100-continue (packet {response}), got no response, and sent the body \
             (packet {body}) only {} later",
            millis(gap.duration())
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};

    const HEAD: &str = "text=PUT / HTTP/1.1\\r\\nExpect: 100-continue\\r\\nContent-Length: 9\\r\\n\\r\\n";

    #[test]
    fn expectation_costs_a_round_trip() {
        let lines = opened(
            15.0,
            &format!(
                "30 C {HEAD}\n45.5 S text=HTTP/1.1 100 Continue\\r\\n\\r\\n\n60.6 C send=9\n76 S send=40"
            ),
        );
        let script = Script { one_way_ms: 15.0, lines: &lines };
        assert_eq!(script.faults_everywhere(), [(Cause::ExpectContinue, 31)]);
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            let findings = script.diagnose(vantage_point).findings;
            let requested = findings.iter().find(|finding| finding.cause == Cause::ExpectContinue).unwrap();
            assert_eq!(requested.saving, Some(requested.lost), "{vantage_point:?}");
        }
    }

    #[test]
    fn time_in_which_a_server_verifies_the_headers_is_not_saved() {
        let lines = opened(
            15.0,
            &format!(
                "30 C {HEAD}\n45.1 S\n165.5 S text=HTTP/1.1 100 Continue\\r\\n\\r\\n\n180.6 C send=9\n196 S send=40"
            ),
        );
        let script = Script { one_way_ms: 15.0, lines: &lines };
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            let findings = script.diagnose(vantage_point).findings;
            let waited = findings.iter().find(|finding| finding.cause == Cause::ExpectContinue).unwrap();
            let saved = waited.saving.unwrap().as_millis_f64();
            assert!((30.0..36.0).contains(&saved) && waited.lost.as_millis_f64() > 150.0, "{waited:?}");
        }
    }

    #[test]
    fn expectation_without_response_costs_the_clients_timeout() {
        let lines = opened(15.0, &format!("30 C {HEAD}\n45 S\n1030 C send=9\n1046 S send=40"));
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere();
        assert_eq!(found, [(Cause::ExpectContinue, 1_000)]);
    }
}
