//! A message against time, as it goes on: where its sender stopped, the savings already counted for that, and those
//! left to count when the next begins. `causes/opening.rs` computes the time it would have taken.

use wire::Duration;

use crate::cause::Cause;
use crate::causes::opening::{self, Said};
use crate::gap::{End, Gap};
use crate::side::Side;

use super::Flow;

impl Flow {
    /// Counts a stop of the sender's, for this cause.
    pub(super) fn stops(&mut self, gap: &Gap, cause: Option<Cause>) {
        let burst = &mut self.ends.of_mut(gap.side).burst;
        let is_repair = matches!(gap.end, End::Repair(_));
        let is_stop = gap.awaited().is_some() && !gap.is_flowing();
        if is_repair || is_stop {
            // Up to its first repair it had not stopped.
            let flight = if is_repair { gap.sent_in_burst() } else { gap.flight.bytes };
            if burst.course.first.is_none() {
                let is_held = matches!(cause, Some(Cause::SendBufferLimited | Cause::ReceiveWindowLimited));
                (burst.course.first, burst.course.is_held) = (Some(flight), is_held);
            }
        }
        if is_repair {
            burst.since_loss = None;
        } else if is_stop {
            burst.rounds.push(gap.flight.bytes);
            let is_least = burst.since_loss.is_none_or(|(_, least)| gap.flight.bytes < least);
            burst.since_loss = if is_least { Some((gap.to.at, gap.flight.bytes)) } else { burst.since_loss };
        }
    }

    /// So much of the gap is accounted for: some fix saves it, or no window could.
    pub(super) fn tells(&mut self, gap: &Gap, time: Duration) {
        let course = &mut self.ends.of_mut(gap.side).burst.course;
        if gap.from.at >= course.began {
            course.told += time;
        }
    }

    /// Attributes the message's savings by a wider window to `cause` from here on; without one, as it is.
    pub(super) fn says(&mut self, gap: &Gap, cause: Option<Cause>) {
        let said = &mut self.ends.of_mut(gap.side).said;
        let now = match (cause, said.as_deref()) {
            (Some(Cause::CongestionWindow), _) => {
                Said::at(gap, Cause::CongestionWindow, opening::without_loss(gap))
            }
            (Some(cause), _) => Said::at(gap, cause, opening::with_room(gap)),
            (None, Some(said)) if gap.awaited().is_some() || matches!(gap.end, End::Repair(_)) => {
                Said::at(gap, said.cause, said.opening)
            }
            (None, Some(_) | None) => return,
        };
        *said = Some(Box::new(now));
    }

    /// Settles a message that is over: counts savings not counted yet, and takes back those of waits that it did not have.
    pub(super) fn settle_course(&mut self, side: Side) {
        let end = self.ends.of_mut(side);
        let sent = end.sender.next.saturating_sub(end.burst.start);
        if let Some(spared) = end.spared.take() {
            self.findings.correct(Cause::ShortInitialSegment, Duration::ZERO, spared.too_much(sent));
        }
        let end = self.ends.of_mut(side);
        let Some(said) = end.said.take() else { return };
        let (saved, told) = (said.in_the_end(sent), end.burst.course.told);
        self.findings.correct(said.cause, saved.saturating_sub(told), told.saturating_sub(saved));
    }
}
