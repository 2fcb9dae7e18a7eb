//! A summary in GitHub's Markdown, for a job or a pull request: the verdict, its cases, the fixes, and a plot.
//!
//! The plot is a diagram in Mermaid's language, because job summaries show no SVG.

use diagnose::plot::Plot;
use diagnose::{FlowReport, Share, Side};
use wire::{Duration, Time};

use super::{capitalised, cost, example, one_line, reason};
use crate::span::shown;
use crate::verdict::{Case, FindingRef, Outcome, Verdict};
use crate::{Capture, advice, headline};

/// Returns the document.
pub fn text(captures: &[Capture], verdict: &Verdict<'_>) -> String {
    let failing = verdict.failing().count();
    let title = match failing {
        0 => "no stall fails".to_owned(),
        1 => "1 stall fails".to_owned(),
        more => format!("{more} stalls fail"),
    };
    let title = verdict.unjudged().map_or(title, |reason| reason.title().to_owned());
    let mut text = format!("## Roundtrip: {title}\n\n");
    if let Some(reason) = verdict.unjudged() {
        text += &format!("{}.\n\n", escaped(&capitalised(&reason.sentence())));
    }
    if verdict.cases.is_empty() && verdict.unjudged().is_none() {
        let sentences: Vec<String> = captures.iter().map(|one| escaped(&headline::of(one))).collect();
        return text + &sentences.join("\n\n") + "\n";
    }
    if verdict.cases.is_empty() {
        return text;
    }
    text += "| | cause | where | cost | |\n| --- | --- | --- | --- | --- |\n";
    for case in &verdict.cases {
        text += &row(case, verdict.captures);
    }
    for case in verdict.cases.iter().filter(|case| case.outcome == Outcome::Fails) {
        text += &section(case);
    }
    text
}

fn row(case: &Case<'_>, captures: usize) -> String {
    let mark = if case.outcome == Outcome::Fails { "❌" } else { "✅" };
    format!(
        "| {mark} | `{}` | {} | {} | {} |\n",
        case.key.cause.name(),
        case.key.location(),
        cost(case, captures),
        reason(case).unwrap_or_default()
    )
}

fn section(case: &Case<'_>) -> String {
    let fixes = advice::fixes_of(case.worst.1);
    let fixes = fixes.iter().map(|fix| format!("- {}\n", escaped(fix))).collect::<String>();
    let seen = match case.worst {
        (capture, FindingRef::Packets(flow, finding)) => {
            let plot = flow.plot.as_ref().and_then(|plot| diagram(flow, plot, finding.side));
            plot.unwrap_or_default() + &account(capture)
        }
        (_, FindingRef::Sockets(_)) => String::new(),
    };
    format!(
        "\n### `{}`, {}\n\n{}\n\n{fixes}\n{seen}",
        case.key.cause.name(),
        case.key.location(),
        escaped(&example(case)),
    )
}

/// Formats the five largest shares of the time.
fn account(capture: &Capture) -> String {
    let account = capture.account();
    let mut shares: Vec<(Share, Duration)> = account.iter().collect();
    shares.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let line = |(share, time): &(Share, Duration)| format!("{} {}", share.name(), shown(*time));
    let lines: Vec<String> = shares.iter().take(5).map(line).collect();
    format!("Where {} went: {}.\n", shown(account.total()), lines.join(", "))
}

/// Plots the bytes sent by one side over time; a stall is a horizontal stretch.
fn diagram(flow: &FlowReport, plot: &Plot, side: Side) -> Option<String> {
    const STEPS: u64 = 60;
    let sent = plot.points.iter().filter(|point| point.from == side);
    let sent: Vec<(Time, i64)> =
        sent.map(|point| (point.at, point.start.saturating_add_unsigned(point.length))).collect();
    let (span, max) = (flow.elapsed, sent.iter().map(|(_, bytes)| *bytes).max()?);
    if span == Duration::ZERO || max <= 0 {
        return None;
    }
    let reached = |step| {
        let until = plot.started + Duration::from_nanos(span.as_nanos() / STEPS * step);
        let before = sent.iter().take_while(|(at, _)| *at <= until);
        before.map(|(_, bytes)| *bytes).max().unwrap_or(0).max(0).to_string()
    };
    let line: Vec<String> = (0..=STEPS).map(reached).collect();
    Some(format!(
        "```mermaid\nxychart-beta\n  title \"Bytes sent by the {side}: level stretches are stalls\"\n  \
         x-axis \"ms\" 0 --> {:.0}\n  y-axis \"bytes\" 0 --> {max}\n  line [{}]\n```\n\n",
        span.as_millis_f64().ceil(),
        line.join(", ")
    ))
}

/// Escapes a text as one paragraph without markup.
fn escaped(text: &str) -> String {
    one_line(text).chars().fold(String::new(), |mut all, letter| {
        if r"\`*_{}[]<>#|~&".contains(letter) {
            all.push('\\');
        }
        all.push(letter);
        all
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{captures, policy};
    use crate::verdict::{Policy, judge};

    #[test]
    fn the_table_is_rectangular_and_the_failing_case_has_its_fix_and_plot() {
        let captures = captures();
        let text = super::text(&captures, &judge(&captures, &policy(&captures)));
        assert!(text.starts_with("## Roundtrip: 1 stall fails\n"), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 2 + 3, "{text}");
        for row in rows {
            let bars = row.matches('|').count() - row.matches("\\|").count();
            assert!(bars == 6 && row.ends_with('|'), "{row}");
        }
        assert!(text.contains("set TCP\\_NODELAY") && !text.contains('\u{1b}'), "{text}");
        assert_eq!(text.matches("### ").count(), 1);
    }

    #[test]
    fn the_diagram_never_falls_and_ends_at_the_last_byte() {
        let captures = captures();
        let text = super::text(&captures, &judge(&captures, &Policy::default()));
        let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  line [")).collect();
        assert_eq!(lines.len(), 3, "{text}");
        for line in lines {
            let values: Vec<u64> =
                line.trim_end_matches(']').split(", ").map(|value| value.parse().unwrap()).collect();
            assert!(values.len() == 61 && values.is_sorted() && values[60] > 0, "{values:?}");
        }
        assert_eq!(text.matches("```").count(), 6);
    }

    #[test]
    fn a_verdict_without_cases_says_so() {
        let captures = captures();
        let quiet = super::text(&captures[..0], &judge(&[], &Policy::default()));
        assert!(quiet.starts_with("## Roundtrip: no stall fails"), "{quiet}");
    }
}
