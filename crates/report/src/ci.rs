//! A verdict in the formats that continuous integration reads.
//!
//! | module | what it writes |
//! | --- | --- |
//! | [`markdown`] | a summary for a pull request or a job, GitHub's dialect |
//! | [`github`] | workflow commands: annotations |
//! | [`junit`] | XML test results |
//! | [`sarif`] | SARIF 2.1.0 |
//! | [`tap`] | the Test Anything Protocol, version 14 |
//! | (here) | what they share: a case in words |
//!
//! Each shows cases, not connections; `diagnose --format json` has everything.

pub mod github;
pub mod junit;
pub mod markdown;
pub mod sarif;
pub mod tap;

use diagnose::cause::Describe as _;
use trace::text::counted;
use wire::Duration;

use crate::span::{moment, shown};
use crate::verdict::{Case, FindingRef, Outcome};
use crate::watched::view::program;
use crate::{advice, request, verdict};

/// Formats the cost: `75 ms lost`, `230 ms lost in 3 stalls`, with the share of runs where there are several.
fn cost(case: &Case<'_>, captures: usize) -> String {
    let lost = match (case.key.cause.is_failure(), case.times) {
        (true, times) => counted(times, "time"),
        (false, 1) => format!("{} lost", shown(case.lost)),
        (false, times) => format!("{} lost in {times} stalls", shown(case.lost)),
    };
    if captures > 1 { format!("{lost}, {} of {captures} runs", case.seen) } else { lost }
}

/// Returns a sentence on the worst finding of a case.
fn example(case: &Case<'_>) -> String {
    let what = case.key.cause.about().description;
    match case.worst {
        (capture, FindingRef::Packets(flow, finding)) => {
            let (at, request) = (moment(finding.at, capture.started), request::phrase(flow, finding));
            format!("{what} At {at}{request}, {}.", finding.evidence)
        }
        (_, FindingRef::Sockets(row)) => format!("{what} In {}, {}.", program(row), row.evidence),
    }
}

/// Returns the fixes of a case in one line.
fn fix(case: &Case<'_>) -> String {
    advice::fixes_of(case.worst.1).join("; ")
}

/// Returns the reason why a case does not fail; `None` if it does.
fn reason(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Fails => None,
        Outcome::Passes => Some("below the threshold"),
        Outcome::Known => Some("in the baseline"),
        Outcome::Allowed => Some("an allowed cause"),
    }
}

/// Returns a duration in milliseconds, as a number.
fn millis(span: Duration) -> f64 {
    (span.as_millis_f64() * 1_000.0).round() / 1_000.0
}

/// Returns a text without control characters, in one line.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// Returns a sentence on why there is no verdict; empty if there is one.
pub fn unjudged(verdict: &verdict::Verdict<'_>) -> String {
    verdict.unjudged().map(|reason| format!("\nNothing could be judged: {reason}.\n")).unwrap_or_default()
}

/// Formats the verdict and its cases for a terminal.
pub fn text(verdict: &verdict::Verdict<'_>) -> String {
    let outcome = match (verdict.fails(), verdict.unjudged()) {
        (true, _) => "fails",
        (false, Some(_)) => "nothing could be judged",
        (false, None) => "passes",
    };
    let mut text = format!("\nVerdict: {outcome}\n");
    for case in &verdict.cases {
        let reason = reason(case.outcome).map(|reason| format!(" ({reason})")).unwrap_or_default();
        text += &format!("  {}: {}{reason}\n", case.key, cost(case, verdict.captures));
    }
    text
}

#[cfg(test)]
mod tests {
    //! A verdict with every outcome, for the tests of the formats.

    use diagnose::Cause;

    use crate::Capture;
    use crate::verdict::{Baseline, Policy, judge};

    /// Three captures: one fails, one is known and one is allowed.
    pub(super) fn captures() -> Vec<Capture> {
        let read = |name: &str| {
            let mut capture = crate::tests::stored(name);
            // Characters that formats must escape.
            capture.name = format!("{name} <&\"'|#%\u{1b}\n>");
            capture
        };
        ["nagle", "timeouts", "pipelined"].map(read).into()
    }

    /// A capture without a packet.
    pub(super) fn unseen() -> [Capture; 1] {
        let mut capture = crate::tests::stored("nagle");
        (capture.flows, capture.packets, capture.selected) = (Vec::new(), 0, 0);
        [capture]
    }

    pub(super) fn policy(captures: &[Capture]) -> Policy {
        let known = judge(&captures[2..], &Policy::default()).baseline();
        assert!(known != Baseline::default());
        Policy { known, allowed: vec![Cause::RetransmissionTimeout], ..Policy::default() }
    }

    #[test]
    fn the_text_names_every_case_and_why_it_does_not_fail() {
        let captures = captures();
        let text = super::text(&judge(&captures, &policy(&captures)));
        assert_eq!(
            text,
            "\nVerdict: fails\n  nagle-delayed-ack (client, port 80): 75 ms lost, 1 of 3 runs\n  \
             server-think (server, port 80): 154 ms lost, 1 of 3 runs (in the baseline)\n  \
             retransmission-timeout (client, port 80): 600 ms lost in 2 stalls, 1 of 3 runs (an allowed cause)\n"
        );
    }
}
