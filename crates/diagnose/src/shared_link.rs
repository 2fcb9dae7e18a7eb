//! Queues that several connections between the same hosts share: their losses, and round trips that take longer than the distance.

use core::net::IpAddr;
use std::collections::BTreeMap;

use dissect::Side;
use wire::Duration;

use crate::cause::Cause;
use crate::finding::{Confidence, Finding, Severity};
use crate::report::FlowReport;
use crate::text::millis;

/// Maximum number of losses by which a full queue is known.
const MAX_SIGNALS: usize = 1_024;
const SHARED: &str =
    "; its queue was full then, as a connection beside it shows: the link was busy all the while";

/// Weighs what connections show of the path that they share with others.
pub fn weigh_shared_links(flows: &mut [FlowReport]) {
    weigh_losses(flows);
    name_queues(flows);
}

/// Names the queue where all round trips of a connection took far longer than those of another one between the same hosts: the
/// distance is the same for both. A connection that opens while the queue is full never sees the empty path.
fn name_queues(flows: &mut [FlowReport]) {
    const NOTICEABLE: Duration = Duration::from_millis(20);
    let hosts = |flow: &FlowReport| (flow.client.ip(), flow.server.ip());
    let mut shortest = BTreeMap::new();
    for flow in flows.iter() {
        let least = shortest.entry(hosts(flow)).or_insert(Duration::MAX);
        *least = flow.round_trip.map_or(*least, |round_trip| round_trip.min(*least));
    }
    for flow in flows.iter_mut() {
        let (Some(round_trip), Some(least)) = (flow.round_trip, shortest.get(&hosts(flow))) else { continue };
        if round_trip < *least * 3 + NOTICEABLE {
            continue;
        }
        for note in flow.findings.iter_mut().filter(|note| note.cause == Cause::PathLatency) {
            note.cause = Cause::BottleneckQueue;
            note.evidence = format!(
                "{} went on round trips of {} at best, and {} in another connection between the same hosts: packets waited in a \
                 queue on the path",
                millis(note.lost),
                millis(round_trip),
                millis(*least)
            );
        }
        for count in flow.counts.iter_mut().filter(|count| count.cause == Cause::PathLatency) {
            count.cause = Cause::BottleneckQueue;
        }
    }
}

/// Lowers losses that overlap with one of another connection in the same direction that showed a full queue. Which connection such
/// a queue drops is chance, and the loss tells its sender to leave the link to the others (RFC 2914, section 3).
fn weigh_losses(flows: &mut [FlowReport]) {
    let path = |flow: &FlowReport, side: Side| (flow.client.ip(), flow.server.ip(), side);
    let mut full: BTreeMap<(IpAddr, IpAddr, Side), Vec<_>> = BTreeMap::new();
    for (index, flow) in flows.iter().enumerate() {
        let is_signal =
            |loss: &&Finding| loss.cause == Cause::FastRetransmit && loss.confidence == Confidence::Medium;
        for loss in flow.findings.iter().filter(is_signal) {
            let signals = full.entry(path(flow, loss.side)).or_default();
            if signals.len() < MAX_SIGNALS {
                signals.push((index, loss.at, loss.at + loss.lost));
            }
        }
    }
    for (index, flow) in flows.iter_mut().enumerate() {
        let paths = [Side::Client, Side::Server].map(|side| full.get(&path(flow, side)));
        for loss in flow.findings.iter_mut().filter(|loss| loss.is_of_loss()) {
            let end = loss.at + loss.lost;
            let mut signals = paths[loss.side as usize].into_iter().flatten();
            let is_shared = signals.any(|(other, from, to)| *other != index && *from < end && loss.at < *to);
            if is_shared && loss.confidence == Confidence::High {
                loss.severity = loss.severity.min(Severity::Low);
                loss.doubt(SHARED);
            }
        }
    }
}
