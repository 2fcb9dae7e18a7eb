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
use render::output::grid::wrap;
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
fn reason(case: &Case<'_>) -> Option<&'static str> {
    match case.outcome {
        Outcome::Fails => None,
        Outcome::Passes if case.is_own_speed => {
            Some("the speed of the command's own server; --fail-on server-think counts it")
        }
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

/// Returns a sentence with its first letter, which is ASCII, in upper case.
fn capitalised(sentence: &str) -> String {
    let (first, rest) = sentence.split_at(1);
    first.to_uppercase() + rest
}

/// Returns sentences on what is shown but does not fail: without a verdict, and times of the command's own servers.
pub fn remarks(verdict: &verdict::Verdict<'_>, width: usize) -> String {
    if let Some(reason) = verdict.unjudged() {
        return format!("\n{}", wrap("", &format!("{}.", capitalised(&reason.sentence())), width));
    }
    let is_shown = |case: &&Case<'_>| case.is_own_speed && case.severity.is_worth_fixing();
    let own = verdict.cases.iter().filter(is_shown).find_map(reason);
    own.map(|reason| format!("\n{}", wrap("", &format!("server-think passes: {reason}."), width)))
        .unwrap_or_default()
}

/// Formats the verdict and its cases for a terminal.
pub fn text(verdict: &verdict::Verdict<'_>, width: usize) -> String {
    let outcome = match (verdict.fails(), verdict.unjudged()) {
        (true, _) => "fails".to_owned(),
        (false, Some(reason)) => format!("none, as {reason}"),
        (false, None) => "passes".to_owned(),
    };
    let mut text = format!("\n{}", wrap("", &format!("Verdict: {outcome}"), width));
    for case in &verdict.cases {
        let reason = reason(case).map(|reason| format!(" ({reason})")).unwrap_or_default();
        text += &wrap("  ", &format!("{}: {}{reason}", case.key, cost(case, verdict.captures)), width);
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
    fn time_of_a_commands_own_server_passes_with_its_reason() {
        let slow = [crate::tests::stored("pipelined")];
        let verdict = judge(&slow, &Policy { has_own_servers: true, ..Policy::default() });
        let sentence = super::remarks(&verdict, 200);
        assert!(sentence.contains("--fail-on server-think counts it"), "{sentence}");
        assert!(super::text(&verdict, 200).contains("--fail-on server-think counts it"));
        assert_eq!(super::remarks(&judge(&slow, &Policy::default()), 200), "");
    }

    #[test]
    fn a_command_that_failed_has_one_sentence_in_place_of_a_verdict() {
        let mut capture = crate::tests::stored("pipelined");
        capture.command = Some(crate::command::CommandExit::Exited(7));
        capture.flows.iter_mut().for_each(|flow| flow.findings.clear());
        let captures = [capture];
        let verdict = judge(&captures, &Policy::default());
        assert_eq!(super::remarks(&verdict, 200), "\nNo verdict: the command ended with status 7.\n");
        let text = super::text(&verdict, 200);
        assert!(text.starts_with("\nVerdict: none, as the command ended with status 7\n"), "{text}");
    }

    #[test]
    fn the_text_names_every_case_and_why_it_does_not_fail() {
        let captures = captures();
        let text = super::text(&judge(&captures, &policy(&captures)), 100);
        assert_eq!(
            text,
            "\nVerdict: fails\n  nagle-delayed-ack (client, port 80): 75 ms lost, 1 of 3 runs\n  \
             server-think (server, port 80): 154 ms lost, 1 of 3 runs (in the baseline)\n  \
             retransmission-timeout (client, port 80): 600 ms lost in 2 stalls, 1 of 3 runs (an allowed cause)\n"
        );
    }
}
