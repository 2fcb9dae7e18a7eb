//! Addresses without a response, after which the client used another one of the same server.
//!
//! A client with several addresses tries the next one when the first has had no response for a while, 250 ms as recommended, 100 ms to
//! 2 s in any case (RFC 8305, section 5). It waits that long for each new connection, and then no SYN is retransmitted.

use wire::Duration;

use crate::cause::Cause;
use crate::finding::{Count, Finding, Severity};
use crate::gap::Wait;
use crate::report::{FlowReport, Protocol};
use crate::text::millis;
use dissect::{Mark, Side};

/// Connection Attempt Delay: its minimum and maximum.
const DELAY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// Finds SYNs without a response whose client then connected to another address, on the same port.
pub fn find_alternatives(flows: &mut [FlowReport]) {
    /// Maximum number of SYNs without a response: a scan has more.
    const MAX_LONE: usize = 256;
    let is_lone = |flow: &FlowReport| flow.protocol == Protocol::Tcp && flow.is_whole && flow.packets == 1;
    for index in (0..flows.len()).filter(|index| is_lone(&flows[*index])).take(MAX_LONE).collect::<Vec<_>>() {
        let flow = &flows[index];
        let is_attempt = |other: &&FlowReport| is_near(flow, other) && is_of_one_client(flow, other, flows);
        let attempts: Vec<&FlowReport> = flows.iter().filter(is_attempt).collect();
        // A client that tries several addresses at once, as a scanner does, waits for none of them.
        if attempts.iter().any(|other| are_within(DELAY[0], flow, other)) {
            continue;
        }
        let later = attempts.into_iter().filter(|other| other.started > flow.started);
        let replied = later.filter(|other| other.round_trip.is_some());
        let Some(other) = replied.min_by_key(|other| other.started) else { continue };
        let (first, next, delay) = (flow.first_packet, other.first_packet, other.started.since(flow.started));
        let evidence = format!(
            "the SYN to {} (packet {first}) got no reply, and the client waited {} before it tried {} (packet {next}), which replied",
            flow.server,
            millis(delay),
            other.server
        );
        let [from, to] = [flow, other].map(|flow| Mark { at: flow.started, frame: flow.first_packet });
        let cause = Cause::SynUnanswered;
        let finding = Wait { from, to, side: Side::Client }.finding(cause, evidence);
        let severity = Severity::of(cause, delay, delay + other.account.waited());
        flows[index].findings.push(Finding { severity, ..finding });
        flows[index].counts.push(Count { cause, times: 1, lost: delay, saving: delay });
    }
}

fn is_near(flow: &FlowReport, other: &FlowReport) -> bool {
    other.protocol == Protocol::Tcp
        && other.server.port() == flow.server.port()
        && other.server.ip() != flow.server.ip()
        && are_within(DELAY[1], flow, other)
}

fn are_within(delay: Duration, one: &FlowReport, other: &FlowReport) -> bool {
    one.started.max(other.started) < one.started.min(other.started) + delay
}

/// Returns whether two connections are of one client: by its address, or because no other client has addresses of these families.
fn is_of_one_client(flow: &FlowReport, other: &FlowReport, flows: &[FlowReport]) -> bool {
    let is_alone = |one: &FlowReport| {
        let mut alike = flows.iter().filter(|flow| flow.client.is_ipv6() == one.client.is_ipv6());
        alike.all(|flow| flow.client.ip() == one.client.ip())
    };
    flow.client.ip() == other.client.ip()
        || flow.client.is_ipv6() != other.client.is_ipv6() && is_alone(flow) && is_alone(other)
}
