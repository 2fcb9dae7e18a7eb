//! Packets that the capture lost.
//!
//! **Rule**: data that is not in the capture is acknowledged. A note: it costs no time, but findings around it are less
//! certain. **Refuted by**: a retransmission of that data (the network lost or delayed it); a missing direction.

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Finding;
use crate::text::counted;
use crate::whole::WholeFacts;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The capture lost packets that the network delivered.",
    fixes: &[Fix {
        party: Party::Network,
        change: "capture less of each packet (tcpdump -s 160), with a larger buffer (-B 65536), or by hardware",
    }],
    is_fault: false,
    min_duration: Duration::ZERO,
};

pub(crate) fn note(whole: &WholeFacts<'_>) -> Option<Finding> {
    let times = whole.oddities.not_captured;
    let evidence = format!(
        "{} of data that is not in the capture: the capture lost packets, the network did not",
        counted(times, "acknowledgement")
    );
    let is_missing = times > 0 && whole.missing.is_none();
    is_missing.then(|| Finding::note(Cause::CaptureLoss, whole.started, Duration::ZERO, evidence))
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::script::at_client;

    fn is_said(lines: &str) -> bool {
        let report = at_client(lines);
        report.counts.iter().any(|count| count.cause == Cause::CaptureLoss)
    }

    #[test]
    fn acknowledged_data_missing_from_the_capture_was_lost_by_it() {
        assert!(is_said("30 C send=100\n45 S send=1000\n60 C ack=3000\n75 S seq=3000 send=500\n90 C"));
        assert!(!is_said("30 C send=100\n45 S send=1000\n45 S send=1000\n60 C"));
    }
}
