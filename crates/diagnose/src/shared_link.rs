//! Losses in a queue that several connections between the same hosts fill together.

use core::net::IpAddr;
use std::collections::BTreeMap;

use dissect::Side;

use crate::cause::Cause;
use crate::finding::{Confidence, Finding, Severity};
use crate::report::FlowReport;

/// Maximum number of losses by which a full queue is known.
const MAX_SIGNALS: usize = 1_024;
const SHARED: &str =
    "; its queue was full then, as a connection beside it shows: the link was busy all the while";

/// Lowers losses that overlap with one of another connection in the same direction that showed a full queue. Which connection such
/// a queue drops is chance, and the loss tells its sender to leave the link to the others (RFC 2914, section 3).
pub fn weigh_shared_links(flows: &mut [FlowReport]) {
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
