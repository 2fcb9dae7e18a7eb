//! A client that asks whether it may send the body, and waits for `100 Continue`: a round trip, or its timer.
//!
//! **Rule**: a request with `Expect: 100-continue`; the time until the server answers, or until the client sends its
//! body without an answer. **Refuted by**: an answer that refuses the body (then the question was worth it): only a
//! 1xx answer counts.

use wire::Duration;

use crate::account::Share;
use crate::cause::{About, Cause, Fix, Who};
use crate::gap::{Before, End, Gap, millis};
use crate::judge::Ruling;
use crate::side::Side;

pub(crate) const ABOUT: About = About {
    what: "The client asked leave to send its body (Expect: 100-continue) and waited for the answer.",
    fixes: &[
        Fix {
            who: Who::ClientApplication,
            change: "leave out the header: curl -H 'Expect:', .NET ServicePointManager.Expect100Continue = false, \
                     Java HttpClient expectContinue(false), Apache HttpClient setExpectContinueEnabled(false)",
        },
        Fix {
            who: Who::ClientApplication,
            change: "or wait only briefly: curl --expect100-timeout, Go Transport.ExpectContinueTimeout",
        },
        Fix {
            who: Who::ServerApplication,
            change: "answer 100 as soon as the head is read, before anything else is done",
        },
    ],
    is_fault: true,
    least: Duration::from_millis(5),
};

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    let waits =
        gap.talk.expects_continue && matches!(gap.end, End::Data) && gap.before == Before::Data(Side::Client);
    waits.then(|| {
        let ruling = Ruling::all(gap, Cause::ExpectContinue, evidence);
        Ruling { share: Share::Stall(Cause::ExpectContinue), ..ruling }
    })
}

fn evidence(gap: &Gap) -> String {
    let (head, next) = (gap.from.frame, gap.to.frame);
    match gap.side {
        Side::Server => format!(
            "the client sent a head with Expect: 100-continue (packet {head}) and kept the body back until the \
             server's answer (packet {next}), {} later",
            millis(gap.duration())
        ),
        Side::Client => format!(
            "the client sent a head with Expect: 100-continue (packet {head}), got no answer, and sent the body \
             (packet {next}) only {} later",
            millis(gap.duration())
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::Place;
    use crate::script::{Script, opened};

    const HEAD: &str = "text=PUT / HTTP/1.1\\r\\nExpect: 100-continue\\r\\nContent-Length: 9\\r\\n\\r\\n";

    #[test]
    fn asking_leave_costs_a_round_trip() {
        let lines = opened(
            15.0,
            &format!(
                "30 C {HEAD}\n45.5 S text=HTTP/1.1 100 Continue\\r\\n\\r\\n\n60.6 C send=9\n76 S send=40"
            ),
        );
        assert_eq!(
            Script { one_way_ms: 15.0, lines: &lines }.faults(Place::Client),
            [(Cause::ExpectContinue, 31)]
        );
    }

    #[test]
    fn without_an_answer_it_costs_the_clients_patience() {
        let lines = opened(15.0, &format!("30 C {HEAD}\n45 S\n1030 C send=9\n1046 S send=40"));
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere();
        assert_eq!(found, [(Cause::ExpectContinue, 1_000)]);
    }
}
