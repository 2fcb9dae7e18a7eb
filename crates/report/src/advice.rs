//! Fixes by the party that can apply them in a given case: a sender may be the client or the server.

use diagnose::cause::Describe as _;
use diagnose::cause::{Fix, Party};
use diagnose::{Finding, FlowReport, Side};

use crate::verdict::FindingRef;

/// Returns the party that can act on a finding.
pub fn party_of(finding: &Finding, party: Party) -> &'static str {
    party_name(finding.side, party)
}

/// Returns the party that can act where this side was held up.
pub fn party_name(sender: Side, party: Party) -> &'static str {
    let receiver = sender.other();
    let application = |side| match side {
        Side::Client => "client application",
        Side::Server => "server application",
    };
    let kernel = |side| match side {
        Side::Client => "client system",
        Side::Server => "server system",
    };
    match party {
        Party::SendingApplication => application(sender),
        Party::ReceivingApplication => application(receiver),
        Party::SendingKernel => kernel(sender),
        Party::ReceivingKernel => kernel(receiver),
        Party::ClientApplication => application(Side::Client),
        Party::ServerApplication => application(Side::Server),
        Party::Network => "network",
    }
}

/// Returns all fixes in one line.
pub fn line(flow: &FlowReport, finding: &Finding) -> String {
    fixes_of(FindingRef::Packets(flow, finding)).join("; ")
}

/// Returns the fixes of a verdict's finding, each with its party.
pub fn fixes_of(finding_ref: FindingRef<'_>) -> Vec<String> {
    match finding_ref {
        FindingRef::Packets(flow, finding) => {
            let fix = |(party, change)| format!("{}: {change}", party_of(finding, party));
            flow.fixes_of(finding).into_iter().map(fix).collect()
        }
        FindingRef::Sockets(row) => {
            let fix = |Fix { party, change }: &Fix| format!("{}: {change}", party_name(row.side, *party));
            row.cause.about().fixes.iter().map(fix).collect()
        }
    }
}
