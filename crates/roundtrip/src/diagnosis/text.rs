//! What a tired person can read: what costs most, on which packets that rests, what to change, and where the rest of
//! the time went.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ::diagnose::report::Place;
use ::diagnose::{Cause, Finding, FlowReport, Share};
use wire::Duration;

use super::{Capture, advice, oddity};
use crate::terminal::Terminal;

/// The text.
pub fn render(captures: &[Capture], terminal: Terminal) -> String {
    captures.iter().map(|one| capture(one, terminal)).collect::<Vec<_>>().join("\n")
}

fn capture(capture: &Capture, terminal: Terminal) -> String {
    let width = terminal.width.unwrap_or(WIDTH).clamp(40, WIDTH);
    let mut text = format!("{}\n", terminal.bold(&heading(capture)));
    let (faults, notes) = groups(capture);
    text += match (capture.connections, capture.flows.len(), faults.len()) {
        (0, _, _) => "There is no TCP connection in it.\n",
        (_, 0, _) => "No connection has what was asked for.\n",
        (_, _, 0) => "Nothing worth fixing was found.\n",
        (_, _, _) => "",
    };
    for (place, group) in (1..).zip(&faults) {
        text += &format!("\n{}\n", terminal.bold(&title(place, group)));
        text += &example(capture, group, width);
    }
    if !notes.is_empty() {
        text += &format!("\n{}\n", terminal.bold("Good to know"));
        for group in &notes {
            text += &wrapped(&format!("{}: {}", group.name(), seen(capture, group)), "  ", width);
        }
    }
    text + &account(capture, terminal) + &remarks(capture, width)
}

const WIDTH: usize = 100;

fn heading(capture: &Capture) -> String {
    let Capture { name, packets, flows, connections, .. } = capture;
    let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut facts = vec![counted(*packets, "packet"), counted(*connections, "connection")];
    if flows.len() as u64 != *connections {
        facts.push(format!("{} shown", flows.len()));
    }
    if let [one] = flows.as_slice() {
        facts.push(format!("{} to {}", one.client, one.server));
        facts.extend(one.round_trip.map(|span| format!("round trip {}", shown(span))));
    }
    facts.extend(place(flows));
    facts.extend(capture.command.map(|ended| format!("the command {ended}")));
    format!("{name}: {}", facts.join(", "))
}

/// Where the capture was taken, if its connections agree.
fn place(flows: &[FlowReport]) -> Option<String> {
    let mut known = flows.iter().map(|flow| flow.place).filter(|place| *place != Place::Unknown);
    let first = known.next()?;
    known.all(|place| place == first).then(|| match first {
        Place::Client => "captured at the client".to_owned(),
        Place::Server => "captured at the server".to_owned(),
        Place::Between => "captured between client and server".to_owned(),
        Place::Unknown => String::new(),
    })
}

/// What was found of one cause.
struct Group<'a> {
    cause: Cause,
    times: u64,
    lost: Duration,
    worst: (&'a FlowReport, &'a Finding),
    connections: usize,
}

impl Group<'_> {
    const fn name(&self) -> &'static str {
        self.cause.name()
    }
}

/// Causes with something worth fixing, and the others; what cost most first.
fn groups(capture: &Capture) -> (Vec<Group<'_>>, Vec<Group<'_>>) {
    let mut groups: Vec<Group<'_>> =
        Cause::ALL.into_iter().filter_map(|cause| group(capture, cause)).collect();
    groups.sort_by_key(|group| std::cmp::Reverse((group.worst.1.severity, group.lost)));
    groups.into_iter().partition(|group| group.worst.1.severity.is_worth_fixing())
}

fn group(capture: &Capture, cause: Cause) -> Option<Group<'_>> {
    let of_cause = |flow: &FlowReport| flow.counts.iter().find(|count| count.cause == cause).copied();
    let found: Vec<_> = capture.flows.iter().filter_map(|flow| Some((flow, of_cause(flow)?))).collect();
    let worst = capture
        .flows
        .iter()
        .flat_map(|flow| flow.findings.iter().map(move |finding| (flow, finding)))
        .filter(|(_, finding)| finding.cause == cause)
        .max_by_key(|(_, finding)| (finding.severity, finding.lost, std::cmp::Reverse(finding.at)))?;
    Some(Group {
        cause,
        times: found.iter().map(|(_, count)| count.times).sum(),
        lost: found.iter().map(|(_, count)| count.lost).sum(),
        worst,
        connections: found.len(),
    })
}

fn title(place: usize, group: &Group<'_>) -> String {
    let times = match (group.times, group.connections) {
        (1, _) => String::new(),
        (times, 1) => format!(", {times} times"),
        (times, connections) => format!(", {times} times in {connections} connections"),
    };
    format!("{place}. {}: {} lost{times}", group.name(), shown(group.lost))
}

fn example(capture: &Capture, group: &Group<'_>, width: usize) -> String {
    let (flow, finding) = group.worst;
    let mut text = wrapped(group.cause.about().what, "   ", width);
    let worst =
        if group.times > 1 { format!("The worst took {}: at", shown(finding.lost)) } else { "At".to_owned() };
    let connection = match capture.flows.as_slice() {
        [_] => String::new(),
        _ => format!(" ({} to {})", flow.client, flow.server),
    };
    let at = capture.millis(finding.at);
    text += &wrapped(&format!("{worst} {at:.0} ms{connection}, {}.", finding.evidence), "   ", width);
    if let Some(server) = worst_server(capture, group.cause).filter(|_| group.connections > 1) {
        text += &wrapped(&server, "   ", width);
    }
    if let Some(saving) = finding.saving.filter(|saving| *saving > Duration::ZERO) {
        let each = if group.times > 1 { " there" } else { "" };
        let sure = finding.confidence.name();
        text += &wrapped(
            &format!("A fix would save about {}{each} (confidence: {sure}).", shown(saving)),
            "   ",
            width,
        );
    }
    for fix in group.cause.about().fixes {
        text += &wrapped(&format!("- {}: {}", advice::who(finding, fix.who), fix.change), "   ", width);
    }
    text
}

/// With which server the cause costs most; nothing to say where there is only one.
fn worst_server(capture: &Capture, cause: Cause) -> Option<String> {
    let mut servers: BTreeMap<SocketAddr, (Duration, usize)> = BTreeMap::new();
    for flow in &capture.flows {
        for count in flow.counts.iter().filter(|count| count.cause == cause) {
            let (lost, connections) = servers.entry(flow.server).or_default();
            (*lost, *connections) = (*lost + count.lost, *connections + 1);
        }
    }
    let (server, (lost, connections)) = servers.iter().max_by_key(|(_, (lost, _))| *lost)?;
    let others = servers.len() - 1;
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    (others > 0).then(|| {
        format!(
            "Most of it, {}, in {} to {server}; the rest with {}.",
            shown(*lost),
            counted(*connections, "connection"),
            counted(others, "other server")
        )
    })
}

/// A line for what is no fault.
fn seen(capture: &Capture, group: &Group<'_>) -> String {
    let (_, finding) = group.worst;
    let times = if group.times == 1 { "once".to_owned() } else { format!("{} times", group.times) };
    let at = capture.millis(finding.at);
    format!(
        "{} in all, {times}; the longest {} at {at:.0} ms: {}",
        shown(group.lost),
        shown(finding.lost),
        finding.evidence
    )
}

/// Where all the time went, as bars.
fn account(capture: &Capture, terminal: Terminal) -> String {
    let account = capture.account();
    let total = account.total();
    if total == Duration::ZERO {
        return String::new();
    }
    let mut shares: Vec<(Share, Duration)> = account.iter().collect();
    shares.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let title = match capture.connections {
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
    text
}

/// What to know of the capture itself.
fn remarks(capture: &Capture, width: usize) -> String {
    let notes = capture.warnings.iter().chain(&capture.damage).cloned().chain(oddity::sentences(capture));
    let notes: String = notes.map(|note| wrapped(&format!("- {note}"), "  ", width)).collect();
    if notes.is_empty() { notes } else { format!("\nOf the capture itself\n{notes}") }
}

/// `93 ms`, `1.2 s`.
pub fn shown(span: Duration) -> String {
    match span.as_millis_f64() {
        millis if millis < 10.0 => format!("{millis:.1} ms"),
        millis if millis < 1_000.0 => format!("{millis:.0} ms"),
        millis => format!("{:.2} s", millis / 1_000.0),
    }
}

/// Lines of at most `width` columns, each indented; a list's lines hang.
fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let hanging = if text.starts_with("- ") { "  " } else { "" };
    let mut lines = vec![indent.to_owned()];
    for word in text.split_whitespace() {
        let is_new = lines.last().is_some_and(|line| line.trim().is_empty());
        let fits = lines.last().is_some_and(|line| line.chars().count() + 1 + word.chars().count() <= width);
        match lines.last_mut() {
            Some(line) if is_new => line.push_str(word),
            Some(line) if fits => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(format!("{indent}{hanging}{word}")),
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words_and_lists_hang() {
        assert_eq!(wrapped("one two three", " ", 9), " one two\n three\n");
        assert_eq!(wrapped("- one two three", " ", 9), " - one\n   two\n   three\n");
    }

    #[test]
    fn spans_are_shown_in_the_unit_that_fits() {
        let spans = [93_191_000, 1_345_023_000, 412_000].map(Duration::from_nanos);
        assert_eq!(spans.map(shown), ["93 ms", "1.35 s", "0.4 ms"]);
    }
}
