//! Progress of a message: where its sender stopped, the savings already counted for that, and those still to be counted
//! when the next message begins. `causes/opening.rs` computes the time that the message would have taken.

use dissect::Side;
use wire::Duration;

use crate::cause::Cause;
use crate::causes::opening::{self, CountedSavings};
use crate::gap::{Gap, GapEnd};

use super::Flow;

impl Flow {
    /// Records a stop of the sender, due to this cause.
    pub(super) fn record_stop(&mut self, gap: &Gap, cause: Option<Cause>) {
        let burst = &mut self.ends.of_mut(gap.wait.side).burst;
        let is_repair = matches!(gap.end, GapEnd::Repair(_));
        let is_stop = gap.awaited().is_some() && !gap.is_flowing();
        if is_repair || is_stop {
            // Before its first repair it had not stopped.
            let flight = if is_repair { gap.sent_in_burst() } else { gap.flight.bytes };
            if burst.progress.first.is_none() {
                let is_held = matches!(
                    cause,
                    Some(Cause::Http2FlowControl | Cause::SendBufferLimited | Cause::ReceiveWindowLimited)
                );
                (burst.progress.first, burst.progress.is_held) = (Some(flight), is_held);
            }
        }
        if is_repair {
            burst.since_loss = None;
        } else if is_stop {
            burst.rounds.push(gap.flight.bytes, gap.wait.to.at);
            let is_least = burst.since_loss.is_none_or(|(_, least)| gap.flight.bytes < least);
            burst.since_loss =
                if is_least { Some((gap.wait.to.at, gap.flight.bytes)) } else { burst.since_loss };
        }
    }

    /// Records that `time` of the gap is accounted for: a fix saves it, or no window could.
    pub(super) fn count_as_explained(&mut self, gap: &Gap, time: Duration) {
        let progress = &mut self.ends.of_mut(gap.wait.side).burst.progress;
        if gap.wait.from.at >= progress.began {
            // What a repair saves of a message that had ended before is no time of this one.
            let is_repair = matches!(gap.end, GapEnd::Repair(_));
            progress.reported += if is_repair { time.min(gap.duration()) } else { time };
        }
    }

    /// Attributes the message's savings by a wider window to `cause` from here on, or to none if that is no window or buffer. Of a sender that has lost something,
    /// only the congestion window shows how much that was.
    pub(super) fn attribute_savings(&mut self, gap: &Gap, cause: Option<Cause>) {
        let limits = [
            Cause::SendBufferLimited,
            Cause::ReceiveWindowLimited,
            Cause::Http2FlowControl,
            Cause::CongestionWindow,
        ];
        let cause = cause.filter(|cause| limits.contains(cause));
        if gap.has_lost && cause.is_some_and(|cause| cause != Cause::CongestionWindow) {
            self.ends.of_mut(gap.wait.side).counted = None;
            return;
        }
        let counted = &mut self.ends.of_mut(gap.wait.side).counted;
        let now = match (cause, counted.as_deref()) {
            (Some(Cause::CongestionWindow), _) => {
                CountedSavings::at(gap, Cause::CongestionWindow, opening::without_loss(gap))
            }
            (Some(cause), _) => CountedSavings::at(gap, cause, opening::with_room(gap)),
            (None, Some(counted)) if gap.awaited().is_some() || matches!(gap.end, GapEnd::Repair(_)) => {
                CountedSavings::at(gap, counted.cause, counted.opening)
            }
            (None, Some(_) | None) => return,
        };
        match counted {
            Some(before) => **before = now,
            None => *counted = Some(Box::new(now)),
        }
    }

    /// Settles a finished message: counts savings not counted yet, and retracts those of waits that it did not have.
    pub(super) fn settle_progress(&mut self, side: Side) {
        let end = self.ends.of_mut(side);
        let sent = end.sender.next.saturating_sub(end.burst.start);
        if let Some(spared) = end.spared.take() {
            self.findings.correct(Cause::ShortInitialSegment, Duration::ZERO, spared.overcounted(sent));
        }
        let end = self.ends.of_mut(side);
        let Some(counted) = end.counted.take() else { return };
        let (saved, reported) = (counted.savings_at_end(sent), end.burst.progress.reported);
        // HTTP/2's frames show each wait for its windows (RFC 9113, section 5.2): no other time of the message is lost to them.
        let is_shown = counted.cause == Cause::Http2FlowControl;
        let most = if is_shown { self.findings.unsaved(counted.cause) } else { Duration::MAX };
        let more = saved.saturating_sub(reported).min(most);
        self.findings.correct(counted.cause, more, reported.saturating_sub(saved));
    }
}
