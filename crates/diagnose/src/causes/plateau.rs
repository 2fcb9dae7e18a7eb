//! What a wider buffer or window saves where a sender stopped at the same flight again and again: not all of the waits, for
//! its congestion window would have had to open first, a round trip for each doubling.
//!
//! Not a simulation: the window is taken to double from where it was when the plateau was reached, as in slow start.

use wire::Duration;

use crate::gap::{Gap, Stop};

/// What of this stop, and of those there before it of which nothing was said yet, would not have been.
pub(crate) fn saved(gap: &Gap, stop: Stop) -> Duration {
    let (flight, wait) = (gap.flight.bytes.max(1), gap.duration());
    let last = gap.burst.rounds.latest().next();
    let level = gap.burst.rounds.level_of(gap, stop);
    let before = level.map_or(last, |level| level.before);
    // The flight before was a window that doubled in this round; without one, this is the first of the message.
    let opened = before.map_or(2 * flight, |before| 2 * before).clamp(flight, 2 * flight);
    let end = gap.flight.start + gap.flight.bytes;
    let (first_end, longest) = level.map_or((end, wait), |level| (level.first_end, level.longest.max(wait)));
    let round_trip = gap.path.round_trip.max(longest);
    let segment = gap.path.segment.unwrap_or((round_trip - longest) / flight.div_ceil(gap.mss));
    // A wider window would have stopped, too, but later: as often as windows have to be sent, but for the last.
    let would_wait = |end: u64| -> Duration {
        let windows = windows(opened, flight + end.saturating_sub(first_end) + gap.length);
        let sending = |doublings: u32| {
            let segments = (opened << doublings.min(20)) / gap.mss;
            Duration::from_nanos(segment.as_nanos().saturating_mul(segments))
        };
        (1..windows).map(|window| round_trip.saturating_sub(sending(window - 1))).sum()
    };
    let (waits, saved) = level.map_or((wait, Duration::ZERO), |level| (level.waits + wait, level.saved));
    waits.saturating_sub(would_wait(end)).saturating_sub(saved)
}

/// How many windows, each twice as wide as the one before, `bytes` need.
fn windows(first: u64, bytes: u64) -> u32 {
    const MOST: u32 = 40;
    (0..MOST).find(|count| first.saturating_mul((1 << count) - 1) >= bytes).unwrap_or(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_counted_until_all_is_sent() {
        assert_eq!(windows(10, 0), 0);
        assert_eq!(windows(10, 10), 1);
        assert_eq!(windows(10, 11), 2);
        assert_eq!(windows(10, 71), 4);
    }
}
