//! Fixes by the party that can apply them in a given case: a sender may be the client or the server.

use diagnose::cause::{Fix, Party};
use diagnose::{Finding, FlowReport, Side};

/// Returns the party that can act on a finding.
pub fn who(finding: &Finding, who: Party) -> &'static str {
    party(finding.side, who)
}

/// Returns the party that can act where this side was held up.
pub fn party(sender: Side, who: Party) -> &'static str {
    let receiver = sender.other();
    let application = |side| match side {
        Side::Client => "client application",
        Side::Server => "server application",
    };
    let kernel = |side| match side {
        Side::Client => "client system",
        Side::Server => "server system",
    };
    match who {
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
    let fix = |Fix { who: able, change }: &Fix| format!("{}: {change}", who(finding, *able));
    flow.fixes(finding.cause).iter().map(fix).collect::<Vec<_>>().join("; ")
}
