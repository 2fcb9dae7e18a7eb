//! One HTML file that needs no network: the findings, the account, and a plot of each of the worst connections that
//! zooms and pans.

use std::fmt::Write;

use ::diagnose::{Account, Finding, FlowReport, Share};
use wire::Duration;

use super::text::shown;
use super::{Capture, advice, json, oddity, sequence};
use crate::report::html::escaped;

/// Plots of more connections are a heavy page: `--svg` writes them all.
const MOST_PLOTS: usize = 40;
const MOST_FINDINGS: usize = 100;

/// The page.
pub fn page(captures: &[Capture]) -> String {
    let names: Vec<&str> = captures.iter().map(|capture| capture.name.as_str()).collect();
    let title = escaped(&names.join(", "));
    let sections: String = captures.iter().map(section).collect();
    format!(
        "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>{title} - Roundtrip</title>
<style>
{STYLE}</style>
</head>
<body>
<header>
<p class=\"brand\">Roundtrip</p>
<h1>Where the time went in {title}</h1>
</header>
<main>
{sections}</main>
<footer>roundtrip {version}. Scroll over a plot to zoom, drag to pan, double-click to see all of it.</footer>
<script>
{SCRIPT}</script>
</body>
</html>
",
        version = env!("CARGO_PKG_VERSION")
    )
}

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

fn section(capture: &Capture) -> String {
    let notes = capture.warnings.iter().chain(&capture.damage).cloned().chain(oddity::sentences(capture));
    let notes: String = notes.map(|note| format!("<p class=\"note\">{}</p>\n", escaped(&note))).collect();
    let mut worst: Vec<&FlowReport> = capture.flows.iter().filter(|flow| !flow.findings.is_empty()).collect();
    worst.sort_by_key(|flow| std::cmp::Reverse(lost(flow)));
    let left = worst.len().saturating_sub(MOST_PLOTS);
    let flows: String = worst.iter().take(MOST_PLOTS).map(|flow| self::flow(capture, flow)).collect();
    let left = match left {
        0 => String::new(),
        left => format!(
            "<p class=\"note\">{left} more connections have findings; --svg writes plots of all.</p>\n"
        ),
    };
    format!(
        "<section>\n<h2>{}</h2>\n<p>{} packets, {} connections</p>\n{notes}{}</section>\n{flows}{left}",
        escaped(&capture.name),
        capture.packets,
        capture.connections,
        account(&capture.account())
    )
}

/// What faults cost a connection.
fn lost(flow: &FlowReport) -> Duration {
    flow.counts.iter().filter(|count| count.cause.about().is_fault).map(|count| count.lost).sum()
}

fn account(account: &Account) -> String {
    let total = account.total().as_secs_f64();
    let mut shares: Vec<(Share, Duration)> = account.iter().collect();
    shares.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let row = |(share, time): &(Share, Duration)| {
        let percent = 100.0 * time.as_secs_f64() / total;
        let class = match share {
            Share::Stall(cause) if cause.about().is_fault => "fault",
            Share::Stall(_)
            | Share::Transfer
            | Share::RoundTrip
            | Share::Idle
            | Share::Closing
            | Share::Unknown => "plain",
        };
        format!(
            "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{percent:.1}%</td><td class=\"bar\"><i \
             class=\"{class}\" style=\"width:{percent:.1}%\"></i></td></tr>\n",
            share.name(),
            shown(*time)
        )
    };
    format!("<table>\n{}</table>\n", shares.iter().map(row).collect::<String>())
}

fn flow(capture: &Capture, flow: &FlowReport) -> String {
    let mut text = format!(
        "<section>\n<h2>{} to {}</h2>\n<p>{} packets, {} in all, captured at: {}{}</p>\n",
        flow.client,
        flow.server,
        flow.packets,
        shown(flow.elapsed),
        json::place_name(flow.place),
        flow.round_trip.map(|span| format!(", round trip {}", shown(span))).unwrap_or_default()
    );
    text += &sequence::svg(flow).unwrap_or_default();
    let mut findings: Vec<&Finding> = flow.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.lost)));
    for (place, finding) in findings.iter().take(MOST_FINDINGS).enumerate() {
        let is_first = findings.iter().position(|other| other.cause == finding.cause) == Some(place);
        text += &self::finding(capture, finding, is_first);
    }
    text += &format!("<details><summary>All of its time</summary>\n{}</details>\n", account(&flow.account));
    text + "</section>\n"
}

/// A finding; with what is known of its cause if it is the first of it.
fn finding(capture: &Capture, finding: &Finding, is_first: bool) -> String {
    let packets: Vec<String> = finding.packets.iter().map(u64::to_string).collect();
    let saving = finding.saving.filter(|saving| *saving > Duration::ZERO);
    let saving =
        saving.map(|saving| format!(" A fix would save about {}.", shown(saving))).unwrap_or_default();
    let mut text = format!(
        "<div class=\"finding {}\"><b>{}</b> {} at {:.1} ms, packets {}: {}.{saving}",
        finding.severity.name(),
        finding.cause.name(),
        shown(finding.lost),
        capture.millis(finding.at),
        packets.join(", "),
        escaped(&finding.evidence),
    );
    if is_first {
        let _ = write!(text, "<p>{}</p><ul>", escaped(finding.cause.about().what));
        for fix in finding.cause.about().fixes {
            let _ = write!(text, "<li>{}: {}</li>", advice::who(finding, fix.who), escaped(fix.change));
        }
        text += "</ul>";
    }
    text + "</div>\n"
}
