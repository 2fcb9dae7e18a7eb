//! Packets that were captured twice.
//!
//! **Rule**: two consecutive packets with the same IP ID, sequence number, acknowledgement, window and length, from a
//! sender whose IP IDs differ. A note: they count once, and are not retransmissions. **Refuted by**: a new IP ID (it is
//! a retransmission).

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Finding;
use crate::whole::WholeFacts;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "Packets were captured twice.",
    fixes: &[Fix {
        party: Party::Network,
        change: "capture on one interface (not on `any` with a bridge), or one side of a mirror port; editcap -d removes copies",
    }],
    is_fault: false,
    min_duration: Duration::ZERO,
};

pub(crate) fn note(whole: &WholeFacts<'_>) -> Option<Finding> {
    let times = whole.oddities.captured_twice;
    let evidence = format!(
        "{times} packets were captured twice (on two interfaces, or on both sides of a bridge): none is a retransmission"
    );
    (times > 1).then(|| Finding::note(Cause::DuplicateCapture, whole.started, Duration::ZERO, evidence))
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, at_client, opened};

    #[test]
    fn copies_are_a_note_and_nothing_else() {
        let counted = |lines: &str| {
            let report = at_client(lines);
            assert!(!report.is_worth_fixing(), "{:?}", report.findings);
            report.counts.iter().any(|count| count.cause == Cause::DuplicateCapture)
        };
        assert!(counted("30 C send=100 twice\n46 S send=100 twice\n61 C twice"));
        assert!(!counted("30 C send=100\n46 S send=100\n61 C"));
    }

    #[test]
    fn smaller_segment_from_the_same_position_is_no_copy() {
        // A router reported a smaller MTU at once.
        let lines = opened(
            15.0,
            "30 C send=100\n45 S send=1460 lost\n48 S seq=0 send=700\n48.1 S seq=700 send=760\n63.2 C",
        );
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server);
        assert_eq!(report.oddities.captured_twice, 0);
    }
}
