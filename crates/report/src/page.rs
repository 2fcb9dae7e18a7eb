//! A self-contained HTML report: causes and their fixes, the account, the connections, and plots of the worst. A
//! plot zooms, pans and shows the packets under the pointer.

use std::fmt::Write;

use diagnose::cause::Describe as _;
use diagnose::{Account, Cause, Finding, FlowReport, Share};
use render::report::html::{Document, escaped};
use trace::text::counted;
use wire::Duration;

use crate::group::{Group, groups};
use crate::span::shown;
use crate::{Capture, advice, headline, kernel, oddity};

use super::{json, sequence, text, waterfall};

/// Maximum number of plots on a page, to limit its size: `--svg` writes all of them.
const MAX_PLOTS: usize = 40;
/// Maximum number of connections in the list.
const MAX_LISTED: usize = 1_000;
/// Number of findings that are expanded for a plotted connection, worst first; the others are collapsed.
const OPEN_FINDINGS: usize = 3;
const MAX_FINDINGS: usize = 100;

/// Returns the page.
pub fn page(captures: &[Capture]) -> String {
    let names: Vec<&str> = captures.iter().map(|capture| capture.name.as_str()).collect();
    let title = names.join(", ");
    let sections: String =
        captures.iter().enumerate().map(|(index, capture)| section(index, capture)).collect();
    let end = format!(
        "<footer>roundtrip {}. Over a plot: Ctrl and scroll, or + and -, to zoom; drag to pan; double-click or 0 to see all of \
         it; rest the pointer on it for its packets.</footer>\n<script>\n{SCRIPT}{ATTACH}</script>\n",
        env!("CARGO_PKG_VERSION")
    );
    let heading = format!("Where the time went in {title}");
    Document { title: &title, heading: &heading, lead: "", main: &sections, end: &end }.text()
}

/// Script of plots: of the reports here, and of the laboratory's page.
const SCRIPT: &str = include_str!("plot.js");
/// Its call for each plot of a report.
const ATTACH: &str =
    "for (const svg of document.querySelectorAll(\"svg.sequence\")) attachPlot(svg, svg.parentNode);\n";

/// Returns what the text says of the whole capture, as the contents of a section: its verdict, the findings by cause with
/// their fixes, notes, and the account.
pub fn overview(capture: &Capture) -> String {
    let notes = capture.warnings.iter().chain(&capture.damage).cloned().chain(oddity::sentences(capture));
    let notes = notes.chain(capture.skipped.sentences());
    let notes: String = notes.map(|note| format!("<p class=\"note\">{}</p>\n", escaped(&note))).collect();
    format!(
        "<h2>{}</h2>\n<p class=\"facts\">{}</p>\n<p class=\"verdict\">{}</p>\n{notes}{}{}{}",
        escaped(&capture.name),
        escaped(&text::facts(capture)),
        escaped(&headline::verdict(capture)),
        causes(capture),
        good_to_know(capture),
        account(&capture.account()),
    ) + &exchanges_in_time(capture)
}

/// Returns the waterfall of a capture, folded.
fn exchanges_in_time(capture: &Capture) -> String {
    waterfall::svg(capture).map_or_else(String::new, |svg| {
        let svg = svg.replacen("<svg ", "<svg class=\"plot\" ", 1);
        format!("<details class=\"exchanges\"><summary>Its exchanges in time</summary>\n{svg}</details>\n")
    })
}

fn section(index: usize, capture: &Capture) -> String {
    let mut worst: Vec<&FlowReport> = capture.flows.iter().filter(|flow| !flow.findings.is_empty()).collect();
    worst.sort_by_key(|flow| std::cmp::Reverse(lost(flow)));
    let plotted = worst.iter().take(MAX_PLOTS).zip(1..);
    let flows: String =
        plotted.map(|(flow, number)| connection(capture, flow, &anchor(index, number))).collect();
    format!("<section>\n{}</section>\n{}{flows}", overview(capture), list(index, capture, &worst))
}

fn anchor(index: usize, number: usize) -> String {
    format!("c{index}-{number}")
}

/// Returns the time that faults cost a connection.
pub fn lost(flow: &FlowReport) -> Duration {
    flow.counts.iter().filter(|count| count.cause.about().is_fault).map(|count| count.lost).sum()
}

/// Returns the cause that cost a connection most: of faults, if it has any.
pub fn main_cause(flow: &FlowReport) -> Option<Cause> {
    let counts = flow.counts.iter().max_by_key(|count| (count.cause.about().is_fault, count.lost));
    counts.map(|count| count.cause)
}

/// Lists the findings worth fixing, most expensive first.
fn causes(capture: &Capture) -> String {
    let (faults, _) = groups(capture);
    if faults.is_empty() {
        return String::new();
    }
    let item = |group: &Group<'_>| {
        let sentences = [Some(group.example(capture)), group.server(capture), group.saving()];
        let sentences: Vec<String> = sentences.into_iter().flatten().collect();
        let fixes = group.worst.0.fixes_of(group.worst.1).into_iter();
        let fixes = fixes.map(|(party, change)| (advice::party_of(group.worst.1, party), change));
        let fixes: String =
            fixes.map(|(who, change)| format!("<li>{who}: {}</li>", escaped(&change))).collect();
        format!(
            "<li class=\"finding {}\"><b>{}</b>: {}\n<p>{}</p>\n<p>{}</p>\n<ul>{fixes}</ul></li>\n",
            group.worst.1.severity.name(),
            group.cause.name(),
            group.cost(),
            escaped(group.cause.about().description),
            escaped(&sentences.join(" ")),
        )
    };
    format!("<ol class=\"causes\">\n{}</ol>\n", faults.iter().map(item).collect::<String>())
}

/// Lists the notes, as the text does.
fn good_to_know(capture: &Capture) -> String {
    let (_, notes) = groups(capture);
    if notes.is_empty() {
        return String::new();
    }
    let item = |group: &Group<'_>| {
        format!("<li><b>{}</b>: {}</li>\n", group.cause.name(), escaped(&text::note_line(capture, group)))
    };
    format!("<h3>Good to know</h3>\n<ul>\n{}</ul>\n", notes.iter().map(item).collect::<String>())
}

fn account(account: &Account) -> String {
    let total = account.total();
    if total == Duration::ZERO {
        return String::new();
    }
    let mut shares: Vec<(Share, Duration)> = account.iter().collect();
    shares.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let row = |(share, time): &(Share, Duration)| {
        let percent = 100.0 * time.as_secs_f64() / total.as_secs_f64();
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
            "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{percent:.1}%</td><td class=\"bar\"><svg \
             aria-hidden=\"true\"><rect class=\"{class}\" width=\"{percent:.1}%\"/></svg></td></tr>\n",
            share.name(),
            shown(*time)
        )
    };
    let rows: String = shares.iter().map(row).collect();
    format!("<table><caption>Where {} went</caption>\n{rows}</table>\n", shown(total))
}

/// Lists the connections with findings, the worst first, where there are several.
fn list(index: usize, capture: &Capture, worst: &[&FlowReport]) -> String {
    if worst.len() < 2 {
        return String::new();
    }
    let row = |(number, flow): (usize, &&FlowReport)| {
        let name = format!("{} to {}", flow.client, flow.server);
        let name = if number <= MAX_PLOTS {
            format!("<a href=\"#{}\">{name}</a>", anchor(index, number))
        } else {
            name
        };
        let main = main_cause(flow);
        format!(
            "<tr><td>{name}</td><td class=\"number\">{:.0} ms</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td>{}</td></tr>\n",
            capture.millis(flow.started),
            shown(flow.elapsed),
            shown(lost(flow)),
            main.map(Cause::name).unwrap_or_default(),
        )
    };
    let rows: String = (1..).zip(worst.iter().take(MAX_LISTED)).map(row).collect();
    let left = match worst.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        left => format!("<p class=\"note\">{left} more have findings; the JSON lists them.</p>\n"),
    };
    let plots = match worst.len() > MAX_PLOTS {
        true => {
            format!("<p class=\"note\">The worst {MAX_PLOTS} are drawn below; --svg draws all of them.</p>\n")
        }
        false => String::new(),
    };
    format!(
        "<section>\n<h2>{} with findings</h2>\n{plots}<div class=\"long\"><table>\n<tr><th>connection</th>\
         <th class=\"number\">began at</th><th class=\"number\">took</th><th class=\"number\">lost</th><th>mostly by</th>\
         </tr>\n{rows}</table></div>\n{left}</section>\n",
        counted(worst.len() as u64, "connection")
    )
}

/// Returns the section of one connection: its plot, findings, requests and account.
pub fn connection(capture: &Capture, flow: &FlowReport, anchor: &str) -> String {
    let mut text = format!(
        "<section id=\"{anchor}\">\n<h2>{} to {}</h2>\n<p class=\"facts\">{}, {} in all{}{}</p>\n",
        flow.client,
        flow.server,
        counted(flow.packets, "packet"),
        shown(flow.elapsed),
        match json::vantage_point_name(flow.vantage_point) {
            "unknown" => String::new(),
            vantage_point => format!(", captured at: {vantage_point}"),
        },
        flow.round_trip.map(|span| format!(", round trip {}", shown(span))).unwrap_or_default()
    );
    text += &sequence::svg(flow).unwrap_or_default();
    let mut findings: Vec<&Finding> = flow.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.lost)));
    findings.truncate(MAX_FINDINGS);
    let (open, folded) = findings.split_at(findings.len().min(OPEN_FINDINGS));
    text.extend(open.iter().map(|finding| self::finding(capture, flow, finding)));
    if !folded.is_empty() {
        let _ = writeln!(text, "<details><summary>{} more</summary>", folded.len());
        text.extend(folded.iter().map(|finding| self::finding(capture, flow, finding)));
        text += "</details>\n";
    }
    let sentences = capture.kernel.of(flow).iter().filter_map(|end| kernel::sentence(end, flow.elapsed));
    for sentence in sentences {
        let _ = writeln!(text, "<p class=\"note\">{sentence}</p>");
    }
    text += &exchanges(capture, flow);
    text += &format!("<details><summary>All of its time</summary>\n{}</details>\n", account(&flow.account));
    text + "</section>\n"
}

/// Formats a finding; a click on its name shows it in the plot.
fn finding(capture: &Capture, flow: &FlowReport, finding: &Finding) -> String {
    let packets: Vec<String> = finding.packets.iter().map(u64::to_string).collect();
    let saving = finding.saving.filter(|saving| *saving > Duration::ZERO);
    let saving =
        saving.map(|saving| format!(" A fix would save about {}.", shown(saving))).unwrap_or_default();
    let from = finding.at.since(flow.started).as_millis_f64();
    format!(
        "<div class=\"finding {}\"><button data-from=\"{from:.3}\" data-to=\"{:.3}\">{}</button> {} at {:.1} ms, packets \
         {}: {}.{saving}</div>\n",
        finding.severity.name(),
        from + finding.lost.as_millis_f64(),
        finding.cause.name(),
        shown(finding.lost),
        capture.millis(finding.at),
        packets.join(", "),
        escaped(&finding.evidence),
    )
}

/// Lists the longest requests, if it is HTTP.
fn exchanges(capture: &Capture, flow: &FlowReport) -> String {
    if flow.exchanges.is_empty() {
        return String::new();
    }
    let mut longest: Vec<_> = flow.exchanges.iter().collect();
    longest.sort_by_key(|exchange| std::cmp::Reverse(exchange.elapsed));
    let row = |exchange: &&diagnose::report::ExchangeReport| {
        let status = exchange.status.map(|status| status.to_string()).unwrap_or_default();
        let from = exchange.at.since(flow.started).as_millis_f64();
        let (first, last) = exchange.packets;
        format!(
            "<tr><td class=\"number\">{:.0} ms</td><td class=\"number\">{}</td><td>{status}</td><td>{first}-{last}</td>\
             <td class=\"url\"><button data-from=\"{from:.3}\" data-to=\"{:.3}\">{}</button></td></tr>\n",
            capture.millis(exchange.at),
            shown(exchange.elapsed),
            from + exchange.elapsed.as_millis_f64(),
            escaped(&exchange.request)
        )
    };
    let rows: String = longest.iter().map(row).collect();
    format!(
        "<details><summary>Its longest requests</summary>\n<table>\n<tr><th class=\"number\">at</th><th \
         class=\"number\">took</th><th>status</th><th>packets</th><th>request</th></tr>\n{rows}</table></details>\n"
    )
}
