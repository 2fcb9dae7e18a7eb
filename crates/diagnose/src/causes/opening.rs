//! Time that a message would have taken with a window that only had to open: the basis for what a wider buffer or
//! window saves, and for what a loss cost beyond its repair.
//!
//! Not the time the sender waited: without the fault it would have waited, too, a round trip for each doubling of its
//! window, and for the slowest link. So the time since the message began is compared with that of a window that doubles
//! from the first flight on, as in slow start, over the same path. Savings already counted for that time are not
//! counted again. Not a simulation: windows count as sent immediately, HyStart and pacing are left out, and a receiver
//! is taken to offer no more than it has (Linux's window grows with the data received, a round trip or two later).

use wire::{Duration, Time};

use crate::cause::Cause;
use crate::gap::{Gap, GapEnd};

/// A message against time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MessageProgress {
    /// When its first segment passed.
    pub(crate) began: Time,
    /// The largest flight before, if the window may have been retained since.
    pub(crate) before: u64,
    /// The first flight at which the sender stopped.
    pub(crate) first: Option<u64>,
    /// Whether a buffer or the receiver's window was what stopped it there.
    pub(crate) is_held: bool,
    /// Savings of its time that are already counted, and the part of it that no window can save.
    pub(crate) reported: Duration,
}

/// Savings counted so far for a message: a sender limited by its window may go on without a pause long enough for a finding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedSavings {
    /// Of what.
    pub(crate) cause: Cause,
    pub(crate) opening: Opening,
    /// Time of the message beyond that with the opening window, up to its last pause, however short; and the bytes sent
    /// by then.
    pub(crate) more: Duration,
    pub(crate) sent: u64,
}

impl CountedSavings {
    /// At a pause, or since one for which nothing was counted.
    pub(crate) fn at(gap: &Gap, cause: Cause, opening: Opening) -> Self {
        // A retransmission carries bytes that had been sent: it is not the next byte that comes.
        let is_repair = matches!(gap.end, GapEnd::Repair(_));
        let sent = gap.sent_in_burst().saturating_sub(u64::from(is_repair));
        let more = gap.to.at.since(gap.burst.course.began).saturating_sub(opening.time_to(sent));
        Self { cause, opening, more, sent }
    }

    /// In the end, when `sent` was all of it: where it did not pause a window that opens would have, for the last time.
    pub(crate) fn in_the_end(&self, sent: u64) -> Duration {
        self.more.saturating_sub(self.opening.waits(self.sent, sent.saturating_sub(1)))
    }
}

/// A window that opens, over a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) window: u64,
    /// As wide as it may get.
    pub(crate) most: u64,
    pub(crate) mss: u64,
    pub(crate) round_trip: Duration,
    /// Time that the slowest link needs for a segment.
    pub(crate) segment: Duration,
}

/// Waits of a message that begins with a head alone which a window of ten segments spares, up to the last of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparedWaits {
    opening: Opening,
    sent: u64,
    beside: u64,
}

impl SparedWaits {
    /// Up to this one.
    pub(crate) fn at(gap: &Gap) -> Self {
        let opening = Opening { window: INITIAL_WINDOW * gap.mss, ..from(gap, 0) };
        Self { opening, sent: gap.sent_in_burst(), beside: beside_a_head(gap) }
    }

    /// Returns the time that the window itself waits, if `sent` was all.
    pub(crate) fn too_much(&self, sent: u64) -> Duration {
        let Self { opening, sent: last, beside } = self;
        opening.waits(last + beside, (sent + beside).saturating_sub(1))
    }
}

/// Windows are counted in segments: what a head alone leaves of one is of no use.
pub(crate) fn beside_a_head(gap: &Gap) -> u64 {
    gap.burst.course.first.map_or(0, |head| gap.mss.saturating_sub(head))
}

/// The window that Linux begins with (RFC 6928), in segments.
const INITIAL_WINDOW: u64 = 10;

/// Returns the time so far that a wider buffer or window would have saved the sender, without what is already counted.
pub(crate) fn saved_with_room(gap: &Gap) -> Duration {
    CountedSavings::at(gap, Cause::SendBufferLimited, with_room(gap))
        .more
        .saturating_sub(gap.burst.course.reported)
}

/// Returns the time, until a sender whose window losses had reduced sent more, that would have been saved without the losses.
pub(crate) fn saved_without_loss(gap: &Gap) -> Duration {
    CountedSavings::at(gap, Cause::CongestionWindow, without_loss(gap))
        .more
        .saturating_sub(gap.burst.course.reported)
}

/// The same for a retransmission.
pub(crate) fn saved_without_repair(gap: &Gap) -> Duration {
    saved_without_loss(gap).min(gap.duration())
}

/// A window that nothing held down.
pub(crate) fn with_room(gap: &Gap) -> Opening {
    // Who was held from the beginning on does not show how wide the window was.
    let MessageProgress { first, is_held, .. } = gap.burst.course;
    let is_unknown = is_held || first.is_none_or(|first| gap.is_level(first));
    let opening = from(gap, if is_unknown { INITIAL_WINDOW * gap.mss } else { 0 });
    // With a larger buffer the sender meets the receiver's window in the end; fixing that is a cause of its own.
    let has_room = gap.headroom.is_some_and(|headroom| headroom >= gap.length);
    let most = gap.widest.filter(|_| has_room).unwrap_or(u64::MAX);
    Opening { most: most.max(opening.window), ..opening }
}

/// A window that was never made small.
pub(crate) fn without_loss(gap: &Gap) -> Opening {
    from(gap, 0)
}

fn from(gap: &Gap, least: u64) -> Opening {
    let MessageProgress { began: _, before, first, is_held: _, reported: _ } = gap.burst.course;
    // Stacks of today count it in segments, also in one that was not filled.
    let segments = first.unwrap_or(gap.flight.bytes).div_ceil(gap.mss).max(1);
    let round_trip = gap.path.round_trip;
    let segment = gap.path.segment.unwrap_or_else(|| {
        round_trip.saturating_sub(gap.duration()) / gap.flight.bytes.div_ceil(gap.mss).max(1)
    });
    // A window that was filled had opened to twice of that, as its acknowledgements came.
    let window = (segments * gap.mss).max(least).max(2 * before);
    Opening { window, most: u64::MAX, mss: gap.mss, round_trip, segment }
}

impl Opening {
    /// From the first segment on until the byte after `sent` leaves the slowest link.
    pub(crate) fn time_to(&self, sent: u64) -> Duration {
        let (mut window, mut begun, mut time) = (self.window.max(1), 0, Duration::ZERO);
        // What acknowledges a window's first segment needs a round trip and that segment's time.
        let round = |window| (self.round_trip + self.segment).max(self.sending(window));
        while sent - begun >= window && window < self.most {
            time += round(window);
            begun += window;
            window = window.saturating_mul(2).min(self.most);
        }
        let (rounds, rest) = ((sent - begun) / window, (sent - begun) % window);
        time + Duration::from_nanos(round(window).as_nanos().saturating_mul(rounds)) + self.sending(rest)
    }

    /// Returns the time that the window waits between the bytes after `from` and after `to`.
    pub(crate) fn waits(&self, from: u64, to: u64) -> Duration {
        self.time_to(to)
            .saturating_sub(self.time_to(from))
            .saturating_sub(self.sending(to.saturating_sub(from)))
    }

    fn sending(&self, bytes: u64) -> Duration {
        let nanos = u128::from(self.segment.as_nanos()) * u128::from(bytes) / u128::from(self.mss.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_doubles_each_round_trip_until_the_link_is_never_idle() {
        let [round_trip, segment] = [12, 1].map(Duration::from_millis);
        let opening = Opening { window: 2_000, most: 32_000, mss: 1_000, round_trip, segment };
        let after = |sent: u64| opening.time_to(sent).as_nanos() / 1_000_000;
        assert_eq!([0, 1_999, 2_000, 5_000, 6_000, 13_000, 14_000].map(after), [0, 1, 13, 16, 26, 33, 39]);
        // From 16 segments on the link is what takes the time.
        assert_eq!([30_000, 62_000, 100_000].map(after), [55, 87, 125]);
        assert_eq!(opening.waits(13_000, 100_000), Duration::from_millis(5));
    }

    #[test]
    fn waits_of_the_window_after_the_last_pause_are_subtracted() {
        let [round_trip, segment] = [12, 1].map(Duration::from_millis);
        let opening = Opening { window: 2_000, most: u64::MAX, mss: 1_000, round_trip, segment };
        let more = Duration::from_millis(100);
        let counted = |sent| CountedSavings { cause: Cause::SendBufferLimited, opening, more, sent };
        // Nothing, or the wait of 9 ms after 6 segments.
        assert_eq!(counted(6_000).in_the_end(14_000), more);
        assert_eq!(counted(5_000).in_the_end(7_000), Duration::from_millis(91));
    }
}
