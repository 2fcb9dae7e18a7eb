//! Findings grouped by cause, most expensive first, each with its worst example: the beginning of text and page.

use core::net::SocketAddr;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use diagnose::cause::Describe as _;
use diagnose::finding::Confidence;
use diagnose::{Cause, Finding, FlowReport, Share};
use trace::text::counted;
use wire::{Duration, Time};

use crate::span::{moment, shown};
use crate::{Capture, request};

/// Findings of one cause.
pub struct Group<'a> {
    /// The cause.
    pub cause: Cause,
    /// Number of occurrences.
    pub times: u64,
    /// Total time lost.
    pub lost: Duration,
    /// The worst finding, and its connection.
    pub worst: (&'a FlowReport, &'a Finding),
    /// Whether no other took as long.
    pub is_longest: bool,
    /// Number of connections with such findings.
    pub connections: usize,
    /// Time that a fix would save; `None` if unknown.
    pub saving: Option<Duration>,
    /// Number of findings of low confidence beside others, and what a fix saves without them.
    doubted: Option<(usize, Duration)>,
    /// The part of the elapsed time in which at least one connection waited.
    pub wall_clock: Duration,
    /// Whether these are the faults among occurrences that are none: a client's stalls in a handshake, not its pauses.
    is_part: bool,
}

/// Returns the causes worth fixing, and the others: failures that no time makes good first, then by the saving of a fix,
/// then by the time lost. A change of a server saves its time only as far as its own connections do not show for what it waited.
pub fn groups(capture: &Capture) -> (Vec<Group<'_>>, Vec<Group<'_>>) {
    let mut groups: Vec<Group<'_>> =
        Cause::ALL.into_iter().filter_map(|cause| group(capture, cause)).collect();
    if let Some(group) = groups.iter_mut().find(|group| group.cause == Cause::ServerThink) {
        let explained = explained(capture);
        group.saving = group.saving.map(|saving| saving.saturating_sub(explained));
    }
    groups.sort_by_key(|group| {
        let is_final = group.cause.is_failure() && group.saving.is_none();
        Reverse((is_final, group.saving.unwrap_or_default(), group.lost))
    });
    groups.into_iter().partition(|group| group.worst.1.severity.is_worth_fixing())
}

fn group(capture: &Capture, cause: Cause) -> Option<Group<'_>> {
    let of_cause = |flow: &FlowReport| flow.counts.iter().find(|count| count.cause == cause).copied();
    let found: Vec<_> = capture.flows.iter().filter_map(|flow| Some((flow, of_cause(flow)?))).collect();
    let findings =
        capture.flows.iter().flat_map(|flow| flow.findings.iter().map(move |finding| (flow, finding)));
    let mut listed: Vec<_> = findings.filter(|(_, finding)| finding.cause == cause).collect();
    let is_worth_fixing = |(_, finding): &(&FlowReport, &Finding)| finding.severity.is_worth_fixing();
    let is_part = !cause.about().is_fault && listed.iter().any(is_worth_fixing);
    listed.retain(|(_, finding)| !is_part || finding.saving.is_some());
    let savings = listed.iter().filter_map(|(_, finding)| finding.saving);
    let saving = savings.reduce(|sum, saving| sum + saving);
    // Concurrent connections wait at the same time: no fix saves more than the elapsed time.
    let spans = listed
        .iter()
        .map(|(_, finding)| (finding.at, finding.at + finding.lost.max(finding.saving.unwrap_or_default())));
    let (times, lost, counted) =
        found.iter().fold((0, Duration::ZERO, Duration::ZERO), |(times, lost, saving), (_, count)| {
            (times + count.times, lost + count.lost, saving + count.saving)
        });
    let united = united(spans.collect());
    let (times, lost) = if is_part {
        (listed.len() as u64, listed.iter().map(|(_, finding)| finding.lost).sum())
    } else {
        (times, lost)
    };
    // Those that are not listed may have been at any time.
    let is_complete = listed.len() as u64 == times;
    let wall_clock = if is_complete { united } else { lost.min(elapsed(capture)) };
    let worst = listed
        .iter()
        .copied()
        .max_by_key(|(_, finding)| (finding.severity, finding.lost, Reverse(finding.at)))?;
    let is_mixed = worst.1.severity.is_worth_fixing();
    let mut connections: Vec<_> =
        listed.iter().map(|(flow, _)| (flow.client, flow.server, flow.started)).collect();
    connections.sort_unstable();
    connections.dedup();
    Some(Group {
        cause,
        times,
        lost,
        worst,
        is_longest: listed.iter().all(|(_, finding)| finding.lost <= worst.1.lost),
        connections: if is_part { connections.len() } else { found.len() },
        saving: saving.map(|listed| extrapolated(listed, united, counted).min(elapsed(capture))),
        doubted: doubted(&listed).filter(|_| is_mixed),
        wall_clock,
        is_part,
    })
}

/// Returns the number of findings of low confidence beside others, and the elapsed time that a fix of the others saves.
fn doubted(listed: &[(&FlowReport, &Finding)]) -> Option<(usize, Duration)> {
    let sure = listed.iter().filter(|(_, finding)| finding.confidence > Confidence::Low);
    let spans: Vec<_> =
        sure.map(|(_, finding)| (finding.at, finding.at + finding.saving.unwrap_or_default())).collect();
    let doubted = listed.len() - spans.len();
    (1..listed.len()).contains(&doubted).then(|| (doubted, united(spans)))
}

/// Returns the time for which servers that are clients elsewhere waited there, for distance or a stall, not for another
/// program: no change of theirs saves it.
fn explained(capture: &Capture) -> Duration {
    let mut servers: BTreeMap<SocketAddr, Vec<(Time, Time)>> = BTreeMap::new();
    for flow in &capture.flows {
        let thinks = flow.findings.iter().filter(|finding| finding.cause == Cause::ServerThink);
        let spans: Vec<_> = thinks.map(|finding| (finding.at, finding.at + finding.lost)).collect();
        if !spans.is_empty() {
            servers.entry(flow.server).or_default().extend(spans);
        }
    }
    let of_server = |(server, thinks): (SocketAddr, Vec<(Time, Time)>)| -> Duration {
        let thinks = merged(thinks);
        let while_it_thought = |flow: &FlowReport| {
            let (began, ended) = (flow.started, flow.started + flow.elapsed);
            let first = thinks.partition_point(|(_, until)| *until <= began);
            let common = thinks[first..].iter().take_while(|(from, _)| *from < ended);
            let common = common.map(|(from, until)| (*until).min(ended).since((*from).max(began)));
            common.sum::<Duration>().min(on_the_way(flow))
        };
        let behind =
            capture.flows.iter().filter(|flow| flow.client.ip() == server.ip() && flow.server != server);
        behind.map(while_it_thought).sum::<Duration>().min(length(&thinks))
    };
    servers.into_iter().map(of_server).sum()
}

/// Returns a connection's time in which neither program was waited for.
fn on_the_way(flow: &FlowReport) -> Duration {
    let of_a_program = |share: &Share| {
        let thinks = [Cause::ClientThink, Cause::ServerThink].map(Share::Stall);
        thinks.contains(share) || matches!(share, Share::Idle | Share::Closing | Share::Unknown)
    };
    flow.account.iter().filter(|(share, _)| !of_a_program(share)).map(|(_, time)| time).sum()
}

/// Returns the time from the first packet of any connection to the last.
fn elapsed(capture: &Capture) -> Duration {
    let began = capture.flows.iter().map(|flow| flow.started).min().unwrap_or_default();
    let ended = capture.flows.iter().map(|flow| flow.started + flow.elapsed).max().unwrap_or_default();
    ended.since(began.min(ended))
}

/// Returns the elapsed time that a fix of all occurrences saves: `counted` if each is counted, of which `listed` falls
/// within the `united` spans of the findings. Those that are not listed may have been at any time, and overlap as these do.
fn extrapolated(listed: Duration, united: Duration, counted: Duration) -> Duration {
    let all = counted.max(listed);
    if listed <= united {
        return all;
    }
    let [all, united, listed] = [all, united, listed].map(|time| u128::from(time.as_nanos()));
    Duration::from_nanos(u64::try_from(all * united / listed).unwrap_or(u64::MAX))
}

/// Returns the time covered by at least one of the spans.
fn united(spans: Vec<(Time, Time)>) -> Duration {
    length(&merged(spans))
}

/// Returns the spans in order, those that touch as one.
fn merged(mut spans: Vec<(Time, Time)>) -> Vec<(Time, Time)> {
    spans.sort_unstable();
    spans.dedup_by(|next, (_, until)| {
        let touches = next.0 <= *until;
        if touches {
            *until = next.1.max(*until);
        }
        touches
    });
    spans
}

/// Returns the sum of disjoint spans.
fn length(spans: &[(Time, Time)]) -> Duration {
    spans.iter().map(|(from, until)| until.since(*from)).sum()
}

impl Group<'_> {
    /// Formats the cost: `233 ms lost, 4 times in 2 connections`. Connections that wait at the same time count once.
    pub fn cost(&self) -> String {
        let times = match (self.times, self.connections) {
            (1, _) => "once".to_owned(),
            (times, 1) => format!("{times} times"),
            (times, connections) => format!("{times} times in {connections} connections"),
        };
        let times = match self.doubted {
            None => times,
            Some((doubted, _)) => format!("{times} ({doubted} of them with low confidence)"),
        };
        match (self.cause.is_failure(), self.times) {
            (true, _) => times,
            (false, 1) => format!("{} lost", shown(self.lost)),
            (false, _) if self.connections > 1 && self.wall_clock < self.lost => {
                format!("{} lost, {times}; {} if each is counted", shown(self.wall_clock), shown(self.lost))
            }
            (false, _) => format!("{} lost, {times}", shown(self.lost)),
        }
    }

    /// Returns a sentence on the worst finding.
    pub fn example(&self, capture: &Capture) -> String {
        let (flow, finding) = self.worst;
        let worst = match (self.times, self.cause.is_failure()) {
            (1, _) => "At".to_owned(),
            (_, true) => "One of them: at".to_owned(),
            (_, false) => format!("The worst took {}: at", shown(finding.lost)),
        };
        let connection = match capture.flows.as_slice() {
            [_] => String::new(),
            _ => format!(" ({} to {})", flow.client, flow.server),
        };
        let request = request::phrase(flow, finding);
        format!("{worst} {}{connection}{request}, {}.", moment(finding.at, capture.started), finding.evidence)
    }

    /// Returns a sentence on the time that a fix would save over all occurrences; `None` if that is unknown.
    pub fn saving(&self) -> Option<String> {
        let saving = self.saving.filter(|saving| *saving > Duration::ZERO)?;
        let all = match (self.times, self.connections) {
            (1, _) => String::new(),
            (times, 1) => format!(" in all {times} cases"),
            (_, connections) => format!(" of the elapsed time, in {connections} connections"),
        };
        let (saving, confidence) = (shown(saving), self.worst.1.confidence.name());
        Some(match self.doubted.filter(|(_, sure)| *sure > Duration::ZERO) {
            None => format!("A fix would save about {saving}{all} (confidence: {confidence})."),
            Some((_, sure)) => format!(
                "A fix would save about {} (confidence: {confidence}), and up to {saving}{all} (confidence: low).",
                shown(sure)
            ),
        })
    }

    /// Returns the server with the highest cost; `None` if there is only one server.
    pub fn server(&self, capture: &Capture) -> Option<String> {
        if self.is_part {
            return None;
        }
        let mut servers: BTreeMap<SocketAddr, (Duration, u64)> = BTreeMap::new();
        for flow in &capture.flows {
            for count in flow.counts.iter().filter(|count| count.cause == self.cause) {
                let (lost, connections) = servers.entry(flow.server).or_default();
                (*lost, *connections) = (*lost + count.lost, *connections + 1);
            }
        }
        let (server, (lost, connections)) = servers.iter().max_by_key(|(_, (lost, _))| *lost)?;
        let others = servers.len() as u64 - 1;
        (others > 0).then(|| {
            let time = if self.cause.is_failure() { String::new() } else { format!("{}, ", shown(*lost)) };
            format!(
                "Most of it, {time}in {} to {server}; the rest with {}.",
                counted(*connections, "connection"),
                counted(others, "other server")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use diagnose::finding::{Count, Severity};

    use super::*;

    #[test]
    fn waits_at_the_same_time_count_once() {
        let span = |from, until| (Time::from_nanos(from), Time::from_nanos(until));
        assert_eq!(
            united(vec![span(10, 30), span(0, 20), span(12, 14), span(40, 50)]),
            Duration::from_nanos(40)
        );
        assert_eq!(united(Vec::new()), Duration::ZERO);
    }

    /// The stored capture of two timeouts, `count` times at the same time, from as many ports.
    fn concurrent(count: u16) -> Capture {
        const HEADER: usize = 24;
        const RECORD: usize = 16;
        let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/capture/timeouts");
        let bytes = std::fs::read(stored).unwrap();
        let mut copy = bytes[..HEADER].to_vec();
        let mut rest = &bytes[HEADER..];
        while let Some(length) = rest.get(8..12) {
            let end = RECORD + u32::from_be_bytes(length.try_into().unwrap()) as usize;
            for number in 0..count {
                let mut record = rest[..end].to_vec();
                // IPv4 without options: the client's port is the source's or the destination's.
                let [source, destination] = [RECORD + 20, RECORD + 22];
                let is_up = record[source..destination] != 80_u16.to_be_bytes();
                let port = if is_up { source } else { destination };
                record[port..port + 2].copy_from_slice(&(50_000 + number).to_be_bytes());
                copy.extend(record);
            }
            rest = &rest[end..];
        }
        crate::tests::diagnosed("concurrent", &copy)
    }

    #[test]
    fn saving_over_concurrent_connections_is_wall_clock_time() {
        let [one, many] = [1, 20].map(concurrent);
        let timeouts = |capture: &Capture| {
            let groups = groups(capture).0;
            let group = groups.iter().find(|group| group.cause == Cause::RetransmissionTimeout).unwrap();
            (group.connections, group.lost, group.saving)
        };
        let ((_, lost, saving), (connections, all_lost, most_saved)) = (timeouts(&one), timeouts(&many));
        assert_eq!((connections, all_lost), (20, lost * 20));
        assert_eq!(most_saved, saving);
        let groups = groups(&many).0;
        let cost = groups.iter().find(|group| group.cause == Cause::RetransmissionTimeout).unwrap().cost();
        assert!(cost.starts_with(&format!("{} lost, 40 times in 20 connections; ", shown(lost))), "{cost}");
    }

    #[test]
    fn findings_of_low_confidence_are_counted_apart_from_the_others() {
        let mut capture = concurrent(2);
        let kinds = [(Confidence::High, Severity::High), (Confidence::Low, Severity::Low)];
        for (flow, (confidence, severity)) in capture.flows.iter_mut().zip(kinds) {
            flow.findings.retain(|finding| finding.cause == Cause::RetransmissionTimeout);
            flow.findings.truncate(1);
            (flow.findings[0].confidence, flow.findings[0].severity) = (confidence, severity);
            flow.counts.retain(|count| count.cause == Cause::RetransmissionTimeout);
            flow.counts[0].times = 1;
        }
        let found = groups(&capture).0;
        let group = found.iter().find(|group| group.cause == Cause::RetransmissionTimeout).unwrap();
        assert!(
            group.cost().contains("2 times in 2 connections (1 of them with low confidence)"),
            "{}",
            group.cost()
        );
        let saving = group.saving().unwrap();
        assert!(
            saving.contains("(confidence: high), and up to ") && saving.ends_with("(confidence: low)."),
            "{saving}"
        );
    }

    #[test]
    fn stalls_of_a_client_in_a_handshake_are_counted_without_its_pauses() {
        let mut capture = concurrent(2);
        let cause = Cause::ClientThink;
        let [short, long] = [120, 3_000].map(Duration::from_millis);
        let [one, two] = &mut capture.flows[..] else { panic!("two connections") };
        for (flow, lost, saving, severity) in
            [(one, short, Some(short), Severity::Medium), (two, long, None, Severity::Note)]
        {
            let pause = Finding { cause, lost, saving, severity, ..flow.findings[0].clone() };
            flow.counts = vec![Count { cause, times: 1, lost, saving: saving.unwrap_or_default() }];
            flow.findings = vec![pause];
        }
        let (worth, _) = groups(&capture);
        let group = worth.iter().find(|group| group.cause == cause).unwrap();
        assert_eq!((group.times, group.lost, group.connections, group.is_longest), (1, short, 1, true));
        // Without a stall worth fixing all are pauses, and another one is the longest.
        capture.flows[0].findings[0].severity = Severity::Low;
        let (_, others) = groups(&capture);
        let group = others.iter().find(|group| group.cause == cause).unwrap();
        assert_eq!((group.times, group.lost, group.is_longest), (2, short + long, false));
        assert!(crate::text::note_line(&capture, group).contains("; one of them 120 ms at"));
    }

    #[test]
    fn a_change_of_a_server_saves_nothing_of_its_own_connections_way() {
        let mut capture = concurrent(2);
        let [front, behind] = &mut capture.flows[..] else { panic!("two connections") };
        // It thinks as long as the second connection lasts, and is the client of that one.
        front.server = SocketAddr::new(behind.client.ip(), 81);
        let lost = behind.elapsed;
        let (cause, saving) = (Cause::ServerThink, Some(lost));
        let think = Finding { cause, at: behind.started, lost, saving, ..front.findings[0].clone() };
        let count = Count { cause, times: 1, lost, saving: lost };
        (front.findings, front.counts) = (vec![think], vec![count]);
        let way = on_the_way(behind);
        let saving = |capture: &Capture| {
            let (worth, others) = groups(capture);
            let group = worth.iter().chain(&others).find(|group| group.cause == cause);
            group.and_then(|group| group.saving).unwrap()
        };
        assert!(way > Duration::from_millis(200), "{way:?}");
        assert_eq!(saving(&capture), lost.saturating_sub(way));
        // Elsewhere it explains nothing.
        capture.flows[0].server = SocketAddr::from(([10, 9, 9, 9], 81));
        assert_eq!(saving(&capture), lost);
    }
}
