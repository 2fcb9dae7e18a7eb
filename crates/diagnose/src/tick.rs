//! Findings that a coarse capture clock cannot have measured (`dissect::tick`).

use wire::Duration;

use crate::cause::{Cause, Describe as _};
use crate::finding::{Count, Finding};
use trace::account::{Account, Share};

/// Retracts findings that a clock of this tick cannot have measured: their time becomes unknown.
pub(crate) fn retract_unmeasurable(
    tick: Duration,
    findings: &mut Vec<Finding>,
    counts: &mut Vec<Count>,
    account: &mut Account,
) {
    /// Number of ticks from which on a wait is known to a third.
    const MEASURABLE: u64 = 3;
    let least = |cause| tick * if is_difference(cause) { 2 * MEASURABLE } else { MEASURABLE };
    findings.retain(|finding| is_fact(finding.cause) || finding.lost >= least(finding.cause));
    counts.retain(|count| {
        let is_measured = is_fact(count.cause) || count.lost >= least(count.cause) * count.times;
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

/// Returns whether a round trip was subtracted from the time, or decided that a proxy acknowledges: two measured times,
/// each wrong by up to a tick.
fn is_difference(cause: Cause) -> bool {
    matches!(cause, Cause::ServerThink | Cause::DelayedAck | Cause::NagleDelayedAck)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::VantagePoint;
    use crate::script::Script;

    #[test]
    fn coarse_clock_withdraws_times_but_not_facts() {
        let count = |cause| Count { cause, times: 1, lost: Duration::ZERO, saving: Duration::ZERO };
        let mut counts = [Cause::Nagle, Cause::ConnectionRefused, Cause::PathMtu].map(count).to_vec();
        retract_unmeasurable(
            Duration::from_millis(500),
            &mut Vec::new(),
            &mut counts,
            &mut Account::default(),
        );
        let causes: Vec<_> = counts.iter().map(|count| count.cause).collect();
        assert_eq!(causes, [Cause::ConnectionRefused, Cause::PathMtu]);
    }

    /// A proxy 0.2 ms away, on a path of 1.4 s beyond it; one of its acknowledgements crosses a tick, so that it looks
    /// like a slow one, and the proxy like none.
    #[test]
    fn near_proxy_seen_by_a_coarse_clock_is_no_server_time() {
        let turns = |path: f64| {
            let mut lines = format!("0 C syn\n{path} S syn\n{} C\n", path + 0.3);
            for n in 1..4 {
                let at = 2_000.0 * f64::from(n) - 0.2;
                lines += &format!("{at} C send=40\n{} S\n{} S send=90\n", at + 0.25, at + path);
                lines += &format!("{} C\n", at + path + 0.25);
            }
            lines
        };
        let found = |lines: &str, tick| {
            let script = Script { one_way_ms: 0.1, lines };
            let report = script.diagnose_ticks(VantagePoint::Client, Duration::from_millis(tick));
            report.findings.iter().any(|finding| finding.cause == Cause::ServerThink)
        };
        let near = turns(1_400.0);
        assert_eq!((found(&near, 1), found(&near, 500)), (false, false));
        // What a clock can measure is still found: six of its ticks.
        let slow = "0 C syn\n0.1 S syn\n0.3 C\n400 C send=40\n400.2 S\n3900 S send=90\n3900.2 C\n4400 C send=40\n\
                    4400.2 S\n4400.4 S send=90\n4400.6 C\n6000 C send=40\n6000.2 S\n6000.3 S send=90\n6000.4 C fin";
        assert!(found(slow, 500));
    }
}
