//! Answers that wait behind a slow one: HTTP/1.1 answers in the order it was asked.
//!
//! **Rule**: while a server computes, more than one request of the connection is unanswered. **Evidence**: how many.
//! The time itself is the server's (`think`); this says who else paid for it. **Refuted by**: a single request.

use wire::Duration;

use crate::cause::{About, Fix, Who};

pub(crate) const ABOUT: About = About {
    what: "Several requests were on their way, and the first took so long that the others had to wait behind it.",
    fixes: &[
        Fix {
            who: Who::ClientApplication,
            change: "ask for slow things on a connection of their own, or last",
        },
        Fix { who: Who::ServerApplication, change: "speak HTTP/2, where answers may overtake one another" },
    ],
    is_fault: false,
    least: Duration::from_millis(30),
};

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::Place;
    use crate::script::{Script, opened};

    const ASK: &str = "text=GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n";
    const ANSWER: &str = "text=HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok";

    #[test]
    fn those_who_wait_behind_a_slow_answer_are_counted() {
        let lines = opened(
            15.0,
            &format!(
                "30 C {ASK}\n30.1 C {ASK}\n30.2 C {ASK}\n300 S {ANSWER}\n300.1 S {ANSWER}\n300.2 S {ANSWER}"
            ),
        );
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(Place::Client);
        let behind = report.findings.iter().find(|finding| finding.cause == Cause::HeadOfLine).unwrap();
        assert!(behind.evidence.starts_with("2 more requests"), "{}", behind.evidence);
    }
}
