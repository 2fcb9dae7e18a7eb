//! A queue on the path that fills: the round trip grows with the data in flight, and the rate does not.
//!
//! **Rule**: of at least eight acknowledgements that no receiver delays (of two full segments or more), half took at
//! least three times as long as the fastest, and 50 ms more. A sender that waits for such an acknowledgement waits for
//! the path, whatever its windows (`path_is_full`, checked before the receiver's window). **Evidence**: the fastest and
//! the slowest. **Refuted by**: constant round trips; a flight for which the slowest link needs less than a round trip
//! (a burst that queues briefly, such as a window's on a satellite path, followed by an idle link); data that an
//! earlier acknowledgement allowed and that was not sent (Nagle); a capture at the receiver, where acknowledgement
//! times show no queue.

use dissect::Side;
use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Finding;
use crate::gap::Gap;
use crate::ruling::Ruling;
use crate::text::millis;
use crate::whole::WholeFacts;
use trace::account::Share;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "Data waited in a queue on the path: the round trip grew, and the rate did not.",
    fixes: &[
        Fix {
            party: Party::Network,
            change: "a short queue before the slow link (tc qdisc: fq_codel or cake, shaped to just below its rate)",
        },
        Fix {
            party: Party::SendingKernel,
            change: "a congestion control that keeps queues short (bbr); no larger buffers or windows: they lengthen the queue",
        },
    ],
    is_fault: false,
    min_duration: Duration::ZERO,
};

/// Detects a sender that waits for an acknowledgement which itself waited in a queue for longer than the path takes.
pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    const NOTICEABLE: Duration = Duration::from_millis(20);
    let after = gap.awaited()?.after()?;
    let least = gap.path.to_receiver?;
    let has_waited = after >= least * 2 + NOTICEABLE && !gap.freed_early();
    let is_queue = gap.path.has_queue || gap.path.is_full && gap.fills_path();
    (has_waited && is_queue).then(|| Ruling::plain(gap, Share::Transfer))
}

/// Notes a queue that the connection's own or competing data fills on the way to `receiver`.
pub(crate) fn standing(whole: &WholeFacts<'_>, receiver: Side) -> Option<Finding> {
    let queue = whole.path.standing_queue(receiver)?;
    let lost = queue.worst.saturating_sub(queue.least).min(whole.ended.since(whole.started));
    let evidence = format!(
        "acknowledgements of what the {} sent took {} at first and up to {} later, in {} of {} cases at least three times \
         as long: the data waits in a queue on the path; a larger window would only lengthen it",
        receiver.other(),
        millis(queue.least),
        millis(queue.worst),
        queue.inflated,
        queue.samples,
    );
    Some(Finding::note(Cause::BottleneckQueue, whole.started, lost, evidence))
}

/// Notes round trips that took most of the time and far longer on average than at best, where no queue was found otherwise.
pub(crate) fn on_average(whole: &WholeFacts<'_>) -> Option<Finding> {
    let (path_time, round_trip) = whole.path_time()?;
    let inflated = whole.path.inflated_round_trip().filter(|_| !whole.has_queue)?;
    let evidence = format!(
        "{} of {} went on round trips that took {} at best and {} on average: packets waited in a queue on the path",
        millis(path_time),
        millis(whole.account.waited()),
        millis(round_trip),
        millis(inflated)
    );
    Some(Finding::note(Cause::BottleneckQueue, whole.started, path_time, evidence))
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};

    /// A link that needs 40 ms per segment, and a window of eight segments on a path of 20 ms.
    #[test]
    fn full_window_at_a_slow_link_is_a_queue() {
        let mut lines = "20 C send=100 win=11680\n".to_owned();
        for number in 0..8 {
            lines += &format!("{} S send=1460\n", 30.0 + 0.1 * f64::from(number));
        }
        for number in 0..24 {
            let arrives = 70.0 + 80.0 * f64::from(number);
            lines += &format!("{arrives} C ack={} win=11680\n", 2_920 * (number + 1));
            lines += &format!("{} S send=1460\n{} S send=1460\n", arrives + 10.1, arrives + 10.2);
        }
        let lines = opened(10.0, &lines);
        let script = Script { one_way_ms: 10.0, lines: &lines };
        let report = script.diagnose(VantagePoint::Server);
        assert!(
            report.counts.iter().any(|count| count.cause == Cause::BottleneckQueue),
            "{:?}",
            report.counts
        );
        // Until the queue has filled, the window limits the sender.
        let held = report.counts.iter().find(|count| count.cause == Cause::ReceiveWindowLimited);
        assert!(held.is_none_or(|held| held.times == 1), "{:?}", report.counts);
    }

    #[test]
    fn a_small_window_on_a_fast_path_fills_no_queue() {
        let lines = opened(
            15.0,
            "30 C send=100 win=4380\n45 S send=1460\n45.1 S send=1460\n45.2 S send=1460\n60.3 C win=4380\n75.4 S send=1460",
        );
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server);
        assert!(
            report.counts.iter().all(|count| count.cause != Cause::BottleneckQueue),
            "{:?}",
            report.counts
        );
        assert!(report.counts.iter().any(|count| count.cause == Cause::ReceiveWindowLimited));
    }
}
