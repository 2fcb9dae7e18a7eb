//! A capture with only one direction of a connection.
//!
//! **Rule**: no packet of one side was captured, although the other acknowledges it. A note; with it, waits of that
//! connection are `unknown`, because the packets do not show which side waited. **Refuted by**: any packet of the other
//! side; a SYN without an acknowledgement.

use wire::Duration;

use crate::cause::{CauseInfo, Fix, Party};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "Only one direction of the connection was captured.",
    fixes: &[Fix {
        party: Party::Network,
        change: "capture where both directions pass (asymmetric routes, one leg of a bond, a one-way mirror port)",
    }],
    is_fault: false,
    min_duration: Duration::ZERO,
};

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
