//! A capture with only one direction of a connection.
//!
//! **Rule**: no packet of one side was captured, although the other acknowledges it. A note; with it, waits of that
//! connection are `unknown`, because the packets do not show which side waited. **Refuted by**: any packet of the other
//! side; a SYN without an acknowledgement.

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Describe as _, Fix, Party};
use crate::finding::Finding;
use crate::whole::WholeFacts;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "Only one direction of the connection was captured.",
    fixes: &[Fix {
        party: Party::Network,
        change: "capture where both directions pass (asymmetric routes, one leg of a bond, a one-way mirror port)",
    }],
    is_fault: false,
    min_duration: Duration::ZERO,
};

pub(crate) fn note(whole: &WholeFacts<'_>) -> Option<Finding> {
    let missing = whole.missing?;
    let evidence = format!(
        "no packet of the {missing} was captured: what it did, and when, is not known, and no wait is blamed on either side"
    );
    Some(Finding::note(Cause::OneDirectionOnly, whole.started, Duration::ZERO, evidence))
}

/// Returns whether one direction shows a cause: losses, and what blames neither side. Of waits it is unknown which side waited.
pub(crate) fn shows(cause: Cause) -> bool {
    let is_loss = matches!(
        cause,
        Cause::RetransmissionTimeout | Cause::FastRetransmit | Cause::TailLossProbe | Cause::TlsAlert
    );
    is_loss
        || !cause.about().is_fault
            && !matches!(cause, Cause::ClientThink | Cause::SlowStart | Cause::HeadOfLine)
}

#[cfg(test)]
mod tests {
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};
    use crate::{Cause, Side};

    #[test]
    fn missing_direction_is_noted_without_a_cause() {
        let lines =
            opened(15.0, "30 C send=100\n900 S send=1460\n915 C\n950 C send=100\n2000 S send=1460\n2015 C");
        let script = Script { one_way_ms: 15.0, lines: &lines };
        for side in [Side::Client, Side::Server] {
            let report = script.diagnose_only(VantagePoint::Client, side);
            assert_eq!(report.missing_direction, Some(side.other()));
            assert!(!report.is_worth_fixing(), "{:?}", report.findings);
            assert!(report.counts.iter().any(|count| count.cause == Cause::OneDirectionOnly));
        }
        assert_eq!(script.diagnose(crate::report::VantagePoint::Client).missing_direction, None);
    }
}
