//! Headline of a capture: the largest share of the time, where nothing is worth fixing or the server is slow.

use diagnose::{Cause, Share};
use wire::Duration;

use crate::Capture;
use crate::group::{Group, groups};
use crate::in_between;
use crate::span::shown;
use crate::watched::view;

/// Returns the first sentence on a capture: the headline, or the most expensive cause.
pub fn verdict(capture: &Capture) -> String {
    let (faults, _) = groups(capture);
    let first = || faults.first().map(|group| format!("{}: {}.", group.cause.name(), group.cost()));
    lead(capture, &faults).or_else(first).unwrap_or_default()
}

/// Returns the sentence above the causes worth fixing, if any.
pub fn lead(capture: &Capture, faults: &[Group<'_>]) -> Option<String> {
    match (capture.connections, capture.flows.len(), faults.len()) {
        (0, _, _) => Some(no_connection(capture)),
        (_, 0, _) => Some("No connection matches --flow, --cause or --since.".to_owned()),
        (_, _, 0) => Some(of(capture)),
        (_, _, _) => of_server(capture, faults),
    }
}

/// Returns the sentence on a capture without connections.
fn no_connection(capture: &Capture) -> String {
    let listed = capture.skipped.listed();
    match capture.packets {
        0 => "No connections: there are no packets.".to_owned(),
        _ if listed.is_empty() => "No connections: none of the packets could be read.".to_owned(),
        _ => format!("No connections found: {listed}."),
    }
}

/// Returns the headline as a sentence.
pub fn of(capture: &Capture) -> String {
    if let Some(report) = &capture.watched {
        return format!("No stalls were found: {}.", view::facts(report));
    }
    let account = capture.account();
    let waited = account.waited();
    let largest = account.iter().filter(|(share, _)| !matches!(share, Share::Idle | Share::Closing));
    let Some((share, time)) = largest.max_by_key(|(_, time)| *time) else {
        return "Nothing worth fixing was found.".to_owned();
    };
    if time * 2 < waited {
        return "Nothing worth fixing was found.".to_owned();
    }
    match share {
        Share::Stall(Cause::ServerThink) => thinking(capture, Cause::ServerThink, "server"),
        Share::Stall(Cause::ClientThink) => thinking(capture, Cause::ClientThink, "client"),
        Share::RoundTrip | Share::Stall(Cause::ConnectionSetup | Cause::SlowStart) => {
            format!(
                "Nothing worth fixing was found: {} of {} went on round trips.",
                shown(time),
                shown(waited)
            )
        }
        Share::Transfer => {
            format!("Nothing worth fixing was found: for {} of {} data flowed.", shown(time), shown(waited))
        }
        Share::Unknown => {
            let why = capture.doubts().sorted().first().map(|(doubt, _)| format!(": {}", doubt.reason()));
            format!(
                "Nothing worth fixing was found; for {} of {} the capture does not show the cause{}.",
                shown(time),
                shown(waited),
                why.unwrap_or_default()
            )
        }
        Share::Stall(_) | Share::Idle | Share::Closing => "Nothing worth fixing was found.".to_owned(),
    }
}

/// Returns a sentence for a capture with these causes worth fixing, if the server itself takes most of the time.
pub fn of_server(capture: &Capture, faults: &[Group<'_>]) -> Option<String> {
    let account = capture.account();
    let waited = account.waited();
    if account.of(Share::Stall(Cause::ServerThink)) * 2 < waited {
        return None;
    }
    let is_all = faults.iter().all(|group| group.cause == Cause::ServerThink);
    let sentence = thinking(capture, Cause::ServerThink, "server");
    match is_all {
        true => Some(sentence),
        false => Some(sentence.replace("The network is fine", "Most of the time is the server's own")),
    }
}

/// Formats the average time that a side took: only times long enough for a finding are counted. The network is fine only if no
/// captured connection stalled.
fn thinking(capture: &Capture, cause: Cause, side: &str) -> String {
    let own = capture.flows.iter().filter(|flow| !capture.others.has(flow));
    let counts = own.flat_map(|flow| &flow.counts).filter(|count| count.cause == cause);
    let (times, lost) =
        counts.fold((0, Duration::ZERO), |(times, lost), count| (times + count.times, lost + count.lost));
    let start = match in_between::has_stall(capture) {
        true => "Seen from the command",
        false => "The network is fine",
    };
    if times == 0 {
        return format!("{start}: most of the time is the {side}'s.");
    }
    let each = shown(Duration::from_nanos(lost.as_nanos() / times));
    match (cause, times) {
        (Cause::ClientThink, 1) => format!("{start}: the client paused for {each}."),
        (Cause::ClientThink, _) => {
            format!("{start}: the client paused {times} times, for {each} on average.")
        }
        (_, 1) => format!("{start}: the server takes {each} for a request."),
        (_, _) => format!("{start}: the server takes {each} per request."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::groups;
    use crate::tests::stored;

    #[test]
    fn a_server_that_takes_most_of_the_time_is_the_headline() {
        let headline = |name: &str| {
            let capture = stored(name);
            of_server(&capture, &groups(&capture).0)
        };
        let expected = "The network is fine: the server takes 154 ms for a request.";
        assert_eq!(headline("pipelined").as_deref(), Some(expected));
        assert_eq!(headline("nagle"), None);
    }
}
