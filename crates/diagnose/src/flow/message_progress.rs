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

    /// Attributes the message's savings by a wider window to `cause` from here on, or to none if that is no window, buffer or loss
    /// without a queue, which stops a window that opens (RFC 5681, section 3.2). Of a sender that has lost something, only that and the
    /// congestion window show how much it was.
    pub(super) fn attribute_savings(&mut self, gap: &Gap, cause: Option<Cause>) {
        let limits = [
            Cause::SendBufferLimited,
            Cause::ReceiveWindowLimited,
            Cause::Http2FlowControl,
            Cause::CongestionWindow,
        ];
        let is_chance = matches!(&gap.end, GapEnd::Repair(repair) if repair.overflow.is_none());
        let of_loss = [Cause::CongestionWindow, Cause::FastRetransmit];
        let cause =
            cause.filter(|cause| limits.contains(cause) || is_chance && *cause == Cause::FastRetransmit);
        if gap.has_lost && cause.is_some_and(|cause| !of_loss.contains(&cause)) {
            self.ends.of_mut(gap.wait.side).counted = None;
            return;
        }
        let counted = &mut self.ends.of_mut(gap.wait.side).counted;
        let now = match (cause, counted.as_deref()) {
            (Some(cause), _) if of_loss.contains(&cause) => {
                CountedSavings::at(gap, cause, opening::without_loss(gap))
            }
            (Some(cause), _) => CountedSavings::at(gap, cause, opening::with_room(gap)),
            (None, Some(counted)) if gap.awaited().is_some() || matches!(gap.end, GapEnd::Repair(_)) => {
                // A window that opens shows the pace of the link only as it goes on.
                let is_opening = counted.cause == Cause::FastRetransmit;
                let opening = if is_opening { opening::without_loss(gap) } else { counted.opening };
                CountedSavings::at(gap, counted.cause, opening)
            }
            (None, Some(_) | None) => return,
        };
        match counted {
            Some(before) => {
                let largest = before.largest.max(now.largest);
                **before = CountedSavings { flight: before.flight, largest, ..now };
            }
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
        // Only a window that went on to open shows that the path takes more. Each repair stops it for a round trip.
        let largest = counted.largest.max(end.sender.largest_since_loss.into());
        let has_opened = largest >= 2 * counted.flight;
        let repairs = if has_opened { self.findings.times(Cause::FastRetransmit) } else { 0 };
        let most = match counted.cause {
            _ if is_shown => self.findings.unsaved(counted.cause),
            Cause::FastRetransmit => counted.opening.round_trip * repairs,
            _ => Duration::MAX,
        };
        let more = saved.saturating_sub(reported).min(most);
        self.findings.correct(counted.cause, more, reported.saturating_sub(saved));
    }
}
