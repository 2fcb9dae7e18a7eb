//! Fixes, by who can make them in the case at hand: a sender is a client here and a server there.

use diagnose::cause::{Fix, Who};
use diagnose::{Finding, FlowReport, Side};

/// Party that can act on a finding.
pub fn who(finding: &Finding, who: Who) -> &'static str {
    party(finding.side, who)
}

/// Party that can act where this side was held up.
pub fn party(sender: Side, who: Who) -> &'static str {
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
        Who::SendingApplication => application(sender),
        Who::ReceivingApplication => application(receiver),
        Who::SendingKernel => kernel(sender),
        Who::ReceivingKernel => kernel(receiver),
        Who::ClientApplication => application(Side::Client),
        Who::ServerApplication => application(Side::Server),
        Who::Network => "network",
    }
}

/// All fixes in one line.
pub fn line(flow: &FlowReport, finding: &Finding) -> String {
    let fix = |Fix { who: able, change }: &Fix| format!("{}: {change}", who(finding, *able));
    flow.fixes(finding.cause).iter().map(fix).collect::<Vec<_>>().join("; ")
}
