//! Connections of other programs on which a command's time depends, such as a proxy's second hop, and of all others.
//!
//! They are diagnosed like the command's own, but their time is not counted again: it passes while the command waits.

use core::net::SocketAddr;
use std::collections::BTreeSet;

use diagnose::FlowReport;
use diagnose::cause::Describe as _;
use trace::text::counted;

use crate::Capture;

/// Connections of other programs in a live capture.
#[derive(Clone, Debug, Default)]
pub struct OtherPrograms {
    /// Those that the command's connections depend on, by client and server: they are listed with its own.
    pub between: BTreeSet<(SocketAddr, SocketAddr)>,
    /// Number of the others, which are not listed.
    pub hidden: usize,
    /// The worst of the others that stalled, described.
    pub hidden_stall: Option<String>,
}

impl OtherPrograms {
    /// Returns whether a connection is another program's.
    pub fn has(&self, flow: &FlowReport) -> bool {
        self.between.contains(&(flow.client, flow.server))
    }

    /// Adds a connection that is not listed.
    pub fn hide(&mut self, flow: &FlowReport) {
        self.hidden += 1;
        if self.hidden_stall.is_none() {
            self.hidden_stall = stall(flow);
        }
    }

    /// Returns a sentence on the connections that are not listed; `None` if there are none.
    pub fn hidden_sentence(&self) -> Option<String> {
        let stalled = |stall: &String| format!("; {stall}; --for 2s shows all connections");
        let stalled = self.hidden_stall.as_ref().map(stalled).unwrap_or_default();
        (self.hidden > 0)
            .then(|| format!("connections of other programs that are not shown: {}{stalled}", self.hidden))
    }
}

/// Returns a sentence on the stalled connections of other programs between the command and its data.
pub fn sentence(capture: &Capture) -> Option<String> {
    let between = capture.flows.iter().filter(|flow| capture.others.has(flow));
    let mut stalls = between.filter_map(stall);
    let first = stalls.next()?;
    let more = stalls.count();
    let more =
        if more > 0 { format!(", and {} more", counted(more as u64, "connection")) } else { String::new() };
    Some(format!("1 connection of another program, {first}{more}."))
}

/// Returns whether a connection of another program stalled.
pub fn has_stall(capture: &Capture) -> bool {
    let mut between = capture.flows.iter().filter(|flow| capture.others.has(flow));
    capture.others.hidden_stall.is_some() || between.any(|flow| stall(flow).is_some())
}

/// Describes the worst fault of a connection: `127.0.0.1:4000 to 127.0.0.1:8101, stalled: nagle-delayed-ack`.
fn stall(flow: &FlowReport) -> Option<String> {
    let faults = flow
        .findings
        .iter()
        .filter(|finding| finding.severity.is_worth_fixing() && finding.cause.about().is_fault);
    let worst = faults.max_by_key(|finding| (finding.severity, finding.lost))?;
    Some(format!("{} to {}, stalled: {}", flow.client, flow.server, worst.cause.name()))
}
