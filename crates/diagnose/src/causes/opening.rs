//! Time that a message would have taken with a window limited only by its opening: the basis for the savings of a wider
//! buffer or window, and for the cost of a loss beyond its repair.
//!
//! Not the time the sender waited: without the fault it would have waited, too, a round trip for each doubling of its
//! window, and for the slowest link. The time since the message began is compared with that of a window that doubles
//! from the first flight on, as in slow start, over the same path. Savings already counted for that time are not
//! counted again. Not a simulation: windows are assumed to be sent immediately, without HyStart or pacing. A receiver
//! is assumed to offer no more than it does (Linux's window grows with the data received, a round trip or two later).

use dissect::opening_window::Opening;
use wire::Duration;

use crate::cause::Cause;
use crate::gap::{Gap, GapEnd, MessageProgress};

/// Savings counted so far for a message: a sender limited by its window may go on without a pause long enough for a finding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedSavings {
    /// The cause to which they are attributed.
    pub(crate) cause: Cause,
    pub(crate) opening: Opening,
    /// Time of the message beyond that with the opening window, up to its last pause, however short; and the bytes sent
    /// by then.
    pub(crate) more: Duration,
    pub(crate) sent: u64,
    /// The flight when that was first counted, and the largest without a hole.
    pub(crate) flight: u64,
    pub(crate) largest: u64,
}

impl CountedSavings {
    /// Returns the savings at a pause, or since a pause for which nothing was counted.
    pub(crate) fn at(gap: &Gap, cause: Cause, opening: Opening) -> Self {
        // A retransmission carries bytes that had been sent before: it does not carry the next byte.
        let is_repair = matches!(gap.end, GapEnd::Repair(_));
        let sent = gap.sent_in_burst().saturating_sub(u64::from(is_repair));
        let more = gap.wait.to.at.since(gap.burst.progress.began).saturating_sub(opening.time_to(sent));
        Self { cause, opening, more, sent, flight: gap.in_flight, largest: gap.largest_since_loss }
    }

    /// Returns the savings at the end, when `sent` was all: from then on an opening window would have paused, but the
    /// sender did not.
    pub(crate) fn savings_at_end(&self, sent: u64) -> Duration {
        self.more.saturating_sub(self.opening.waits(self.sent, sent.saturating_sub(1)))
    }
}

/// Waits, up to the last one, that an initial window of ten segments spares a message whose header section was sent
/// alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparedWaits {
    opening: Opening,
    sent: u64,
    preceding: u64,
}

impl SparedWaits {
    /// Returns the waits up to this gap.
    pub(crate) fn at(gap: &Gap) -> Self {
        let opening = Opening { window: INITIAL_WINDOW * gap.mss, ..from(gap, 0) };
        Self { opening, sent: gap.sent_in_burst(), preceding: unused_beside_header_section(gap) }
    }

    /// Returns the time that the opening window itself waits, if `sent` was all.
    pub(crate) fn overcounted(&self, sent: u64) -> Duration {
        let Self { opening, sent: last, preceding } = self;
        opening.waits(last + preceding, (sent + preceding).saturating_sub(1))
    }
}

/// Returns the unused rest of a segment with a header section alone: windows are counted in segments.
pub(crate) fn unused_beside_header_section(gap: &Gap) -> u64 {
    gap.burst.progress.first.map_or(0, |head| gap.mss.saturating_sub(head))
}

/// Linux's initial window (RFC 6928), in segments.
const INITIAL_WINDOW: u64 = 10;

/// Returns the time so far that a wider buffer or window would have saved the sender, without what is already counted. It spares no
/// loss: of a sender that has lost something, no more than the gap.
pub(crate) fn saved_with_room(gap: &Gap) -> Duration {
    let counted = CountedSavings::at(gap, Cause::SendBufferLimited, with_room(gap));
    let most = if gap.has_lost { gap.duration() } else { Duration::MAX };
    counted.more.saturating_sub(gap.burst.progress.reported).min(most)
}

/// Returns the time, until a sender whose window losses had reduced sent more, that would have been saved without the losses.
pub(crate) fn saved_without_loss(gap: &Gap) -> Duration {
    CountedSavings::at(gap, Cause::CongestionWindow, without_loss(gap))
        .more
        .saturating_sub(gap.burst.progress.reported)
}

/// The same for a retransmission.
pub(crate) fn saved_without_repair(gap: &Gap) -> Duration {
    saved_without_loss(gap).min(gap.duration())
}

/// A window without a limit.
pub(crate) fn with_room(gap: &Gap) -> Opening {
    // A sender that was limited from the beginning does not show the size of its window.
    let MessageProgress { first, is_held, .. } = gap.burst.progress;
    let is_unknown = is_held || first.is_none_or(|first| gap.is_level(first));
    let opening = from(gap, if is_unknown { INITIAL_WINDOW * gap.mss } else { 0 });
    // With a larger buffer the sender eventually reaches the receiver's window; that is a cause of its own.
    let has_room = gap.headroom.is_some_and(|headroom| headroom >= gap.length);
    let most = gap.widest.filter(|_| has_room).unwrap_or(u64::MAX);
    Opening { most: most.max(opening.window), ..opening }
}

/// A window that no loss has reduced.
pub(crate) fn without_loss(gap: &Gap) -> Opening {
    from(gap, 0)
}

fn from(gap: &Gap, least: u64) -> Opening {
    let MessageProgress { began: _, before, first, is_held: _, reported: _ } = gap.burst.progress;
    // Current stacks count it in segments, even if it was not filled.
    let segments = first.unwrap_or(gap.flight.bytes).div_ceil(gap.mss).max(1);
    let round_trip = gap.path.round_trip;
    let segment = gap.path.segment.unwrap_or_else(|| {
        round_trip.saturating_sub(gap.duration()) / gap.flight.bytes.div_ceil(gap.mss).max(1)
    });
    // Acknowledgements of a small window are spaced by its sender, not by the link, if none of the data before waited in a queue: the
    // link has idle time, taken for half.
    let is_link_idle = gap.trigger.zip(gap.path.to_receiver).is_some_and(|(ack, least)| {
        u64::from(ack.ahead) >= 2 * gap.mss && ack.after().is_some_and(|after| after <= least + least / 8)
    });
    let segment = if is_link_idle { segment / 2 } else { segment };
    // A window that was filled had opened to twice its size as its acknowledgements arrived.
    let window = (segments * gap.mss).max(least).max(2 * before);
    Opening { window, most: u64::MAX, mss: gap.mss, round_trip, segment }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_the_window_after_the_last_pause_are_subtracted() {
        let [round_trip, segment] = [12, 1].map(Duration::from_millis);
        let opening = Opening { window: 2_000, most: u64::MAX, mss: 1_000, round_trip, segment };
        let more = Duration::from_millis(100);
        let counted = |sent| CountedSavings {
            cause: Cause::SendBufferLimited,
            opening,
            more,
            sent,
            flight: 0,
            largest: 0,
        };
        // No savings, or those of the wait of 9 ms after 6 segments.
        assert_eq!(counted(6_000).savings_at_end(14_000), more);
        assert_eq!(counted(5_000).savings_at_end(7_000), Duration::from_millis(91));
    }
}
