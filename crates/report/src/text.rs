//! The diagnosis as text: the most expensive findings first, with packets and fixes, then the account of the time.

use diagnose::cause::Describe as _;
use diagnose::report::{Protocol, VantagePoint};
use diagnose::{Doubt, FlowReport, Share, Side};
use render::output::grid::{wrap, wrap_lines};
use render::terminal::Terminal;
use trace::text::counted;
use wire::Duration;

use crate::group::{Group, groups};
use crate::span::{has_date, moment, shown};
use crate::watched::view;
use crate::{Capture, advice, headline, in_between, kernel, oddity, serial};

/// Returns the text.
pub fn render(captures: &[Capture], terminal: Terminal) -> String {
    captures.iter().map(|one| capture(one, terminal)).collect::<Vec<_>>().join("\n")
}

fn capture(capture: &Capture, terminal: Terminal) -> String {
    if let Some(report) = &capture.watched {
        let warnings = capture.warnings.iter().map(|warning| format!("{warning}\n")).collect::<String>();
        let text = format!("{}: {}{warnings}", capture.name, view::text(report, usize::MAX));
        return wrap_lines(&text, terminal.prose_width());
    }
    let width = terminal.prose_width();
    let mut text = terminal.bold(&wrap("", &format!("{}: {}", capture.name, facts(capture)), width));
    let (faults, notes) = groups(capture);
    text += &headline::lead(capture, &faults).map_or_else(String::new, |one| wrapped(&one, "", width));
    text += &in_between::sentence(capture).map_or_else(String::new, |one| wrapped(&one, "", width));
    for (number, group) in (1_usize..).zip(&faults) {
        let title = format!("{number}. {}: {}", group.cause.name(), group.cost());
        text += &format!("\n{}\n", terminal.bold(&title));
        text += &example(capture, group, width);
    }
    if !notes.is_empty() {
        text += &format!("\n{}\n", terminal.bold("Good to know"));
        for group in &notes {
            text += &wrapped(&format!("{}: {}", group.cause.name(), note_line(capture, group)), "  ", width);
        }
    }
    text + &account(capture, terminal) + &remarks(capture, width)
}

/// Returns a summary of the capture.
pub fn facts(capture: &Capture) -> String {
    let Capture { packets, flows, connections, .. } = capture;
    let mut facts = vec![counted(*packets, "packet"), counted(*connections, "connection")];
    if flows.len() as u64 != *connections {
        facts.push(format!("{} shown", flows.len()));
    }
    if let [one] = flows.as_slice() {
        let by = if one.protocol == Protocol::Dhttp { " by DHTTP" } else { "" };
        facts.push(format!("{} to {}{by}", one.client, one.server));
        facts.extend(one.round_trip.map(|span| format!("round trip {}", shown(span))));
    }
    facts.extend(vantage_point(flows));
    facts.extend(directions(flows));
    if has_date(capture.started) {
        let since_1970 = capture.started.since(wire::Time::ZERO);
        facts.push(format!("begun {} UTC", wire::calendar::date_time(since_1970)));
    }
    facts.extend(capture.command.map(|ended| format!("the command {ended}")));
    facts.join(", ")
}

/// Returns a warning about connections with one captured direction.
fn directions(flows: &[FlowReport]) -> Option<String> {
    let missing: Vec<Side> = flows.iter().filter_map(|flow| flow.missing_direction).collect();
    match (missing.as_slice(), flows.len()) {
        ([], _) => None,
        ([side], 1) => Some(format!("one direction only: no packet of the {side}")),
        (affected, all) => Some(format!("one direction only of {} of {all} connections", affected.len())),
    }
}

/// Returns the point of capture, if its connections agree.
fn vantage_point(flows: &[FlowReport]) -> Option<String> {
    let mut known = flows
        .iter()
        .map(|flow| flow.vantage_point)
        .filter(|vantage_point| *vantage_point != VantagePoint::Unknown);
    let first = known.next()?;
    known.all(|vantage_point| vantage_point == first).then(|| match first {
        VantagePoint::Client => "captured at the client".to_owned(),
        VantagePoint::Server => "captured at the server".to_owned(),
        VantagePoint::Between => "captured between client and server".to_owned(),
        VantagePoint::Unknown => String::new(),
    })
}

fn example(capture: &Capture, group: &Group<'_>, width: usize) -> String {
    let (flow, finding) = group.worst;
    let mut text = wrapped(group.cause.about().description, "   ", width);
    let sentences = [Some(group.example(capture)), group.server(capture), group.saving()];
    text.extend(sentences.into_iter().flatten().map(|sentence| wrapped(&sentence, "   ", width)));
    for (party, change) in flow.fixes_of(finding) {
        text += &wrapped(&format!("- {}: {change}", advice::party_of(finding, party)), "   ", width);
    }
    text
}

/// Formats a line for a note. The evidence itself states the time of a single one.
pub fn note_line(capture: &Capture, group: &Group<'_>) -> String {
    let (_, finding) = group.worst;
    let is_of_connection = finding.packets.is_empty();
    let at = moment(finding.at, capture.started);
    match (group.lost == Duration::ZERO, group.times) {
        (true, _) if group.connections > 1 => {
            format!("{} ({} connections)", finding.evidence, group.connections)
        }
        (true, _) => finding.evidence.clone(),
        (false, 1) if is_of_connection => finding.evidence.clone(),
        (false, 1) => format!("at {at}, {}", finding.evidence),
        (false, times) => {
            let which = if group.is_longest { "the longest" } else { "one of them" };
            format!(
                "{} in all, {times} times; {which} {} at {at}: {}",
                shown(group.lost),
                shown(finding.lost),
                finding.evidence
            )
        }
    }
}

/// Formats the account of the time as bars.
fn account(capture: &Capture, terminal: Terminal) -> String {
    let account = capture.account();
    let total = account.total();
    if total == Duration::ZERO {
        return String::new();
    }
    let mut shares: Vec<(Share, Duration)> = account.iter().collect();
    shares.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let title = match capture.flows.len() {
        1 => format!("Where its {} went", shown(total)),
        _ => format!("Where {} went, all connections together", shown(total)),
    };
    let mut text = format!("\n{}\n", terminal.bold(&title));
    for (share, time) in shares {
        let part = time.as_secs_f64() / total.as_secs_f64();
        // At most 20 marks: the cast is exact.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let bar = "#".repeat((part * 20.0).round() as usize);
        text += format!("  {:22} {:>9}  {:>5.1}%  {bar}", share.name(), shown(time), part * 100.0).trim_end();
        text.push('\n');
    }
    text + &unknown(capture, terminal.prose_width())
}

/// Formats the reasons for unknown time.
fn unknown(capture: &Capture, width: usize) -> String {
    const SHOWN: usize = 3;
    let doubts = capture.doubts();
    let reason = |(doubt, time): &(Doubt, Duration)| format!("{} ({})", doubt.reason(), shown(*time));
    let reasons: Vec<String> = doubts.sorted().iter().take(SHOWN).map(reason).collect();
    if reasons.is_empty() {
        String::new()
    } else {
        wrapped(&format!("unknown: {}", reasons.join("; ")), "  ", width)
    }
}

/// Maximum number of sentences on requests one after another.
const MAX_SERIAL: usize = 3;

/// Formats notes on the capture itself.
fn remarks(capture: &Capture, width: usize) -> String {
    let kernel = match capture.flows.as_slice() {
        [one] => capture.kernel.of(one).iter().filter_map(|end| kernel::sentence(end, one.elapsed)).collect(),
        _ => Vec::new(),
    };
    let notes = capture.warnings.iter().chain(&capture.damage).cloned();
    let serial = capture.flows.iter().filter_map(serial::Row::of).map(serial::Row::sentence).take(MAX_SERIAL);
    let notes = notes.chain(serial).chain(oddity::sentences(capture));
    let notes = notes.chain(capture.skipped.sentences()).chain(kernel);
    let notes: String = notes.map(|note| wrapped(&format!("- {note}"), "  ", width)).collect();
    if notes.is_empty() { notes } else { format!("\nBesides\n{notes}") }
}

/// A sentence or an item of a list, indented, in lines of `width` columns.
fn wrapped(text: &str, indent: &str, width: usize) -> String {
    wrap_lines(&format!("{indent}{}", text.replace('\n', " ")), width)
}
