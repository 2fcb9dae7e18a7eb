//! Findings that a coarse capture clock cannot have measured (`dissect::tick`).

use wire::Duration;

use crate::account::{Account, Share};
use crate::cause::{Cause, Describe as _};
use crate::finding::{Count, Finding};

/// Retracts findings that a clock of this tick cannot have measured: their time becomes unknown.
pub(crate) fn blur(
    tick: Duration,
    findings: &mut Vec<Finding>,
    counts: &mut Vec<Count>,
    account: &mut Account,
) {
    /// Number of ticks from which on a wait is known to a third.
    const MEASURABLE: u64 = 3;
    let least = tick * MEASURABLE;
    findings.retain(|finding| is_fact(finding.cause) || finding.lost >= least);
    counts.retain(|count| {
        let is_measured = is_fact(count.cause) || count.lost >= least * count.times;
        if !is_measured {
            account.transfer(Share::Stall(count.cause), Share::Unknown, count.lost);
        }
        is_measured
    });
}

/// Returns whether a cause is shown by the packets themselves, independent of their times.
fn is_fact(cause: Cause) -> bool {
    cause.is_failure()
        || matches!(
            cause,
            Cause::PathMtu | Cause::OneDirectionOnly | Cause::CaptureLoss | Cause::DuplicateCapture
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_clock_withdraws_times_but_not_facts() {
        let count = |cause| Count { cause, times: 1, lost: Duration::ZERO };
        let mut counts = [Cause::Nagle, Cause::ConnectionRefused, Cause::PathMtu].map(count).to_vec();
        blur(Duration::from_millis(500), &mut Vec::new(), &mut counts, &mut Account::default());
        let causes: Vec<_> = counts.iter().map(|count| count.cause).collect();
        assert_eq!(causes, [Cause::ConnectionRefused, Cause::PathMtu]);
    }
}
