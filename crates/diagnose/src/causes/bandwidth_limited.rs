//! Bandwidth: most of the time data flowed, as fast as the path carried it.
//!
//! **Rule**: `transfer` took at least half of the time in which either side waited, and at least 200 ms. A note, with
//! the rate. **Refuted by**: any other cause that took more.

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Finding;
use crate::text::{counted, millis};
use crate::whole::WholeFacts;
use trace::account::Share;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "Most of the time data flowed as fast as the path takes it.",
    fixes: &[
        Fix { party: Party::ServerApplication, change: "send less: compression, smaller images, caching" },
        Fix { party: Party::Network, change: "a faster link, or less competing traffic" },
    ],
    is_fault: false,
    min_duration: Duration::ZERO,
};

pub(crate) fn note(whole: &WholeFacts<'_>) -> Option<Finding> {
    const LONG: Duration = Duration::from_millis(200);
    let (transfer, waited) = (whole.account.of(Share::Transfer), whole.account.waited());
    if transfer * 2 < waited || transfer < LONG {
        return None;
    }
    #[expect(clippy::cast_precision_loss)]
    let rate = whole.bytes.get() as f64 * 8.0 / transfer.as_secs_f64();
    let evidence = format!(
        "{} of {} went on the transfer of {}, {:.1} Mbit/s on average",
        millis(transfer),
        millis(waited),
        counted(whole.bytes.get(), "byte"),
        rate / 1e6,
    );
    Some(Finding::note(Cause::BandwidthLimited, whole.started, transfer, evidence))
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::script::at_client;

    #[test]
    fn continuous_data_is_bandwidth_limited() {
        let counted = |pause_ms: u32| {
            let mut lines = "30 C send=100 win=65535\n".to_owned();
            for number in 0..120 {
                let at = 45 + 3 * number + if number >= 60 { pause_ms } else { 0 };
                lines += &format!("{at} S send=1460\n{} C\n", at + 15);
            }
            let report = at_client(&lines);
            report.counts.iter().any(|count| count.cause == Cause::BandwidthLimited)
        };
        assert!(counted(0));
        assert!(!counted(900));
    }
}
