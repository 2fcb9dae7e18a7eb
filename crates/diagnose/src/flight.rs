//! What a sender had on its way at one moment, segment by segment, as far as it knew.

use wire::Time;

use crate::sender::Sender;

/// What was on its way at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flight {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) segments: u64,
    pub(crate) short_segments: u64,
    pub(crate) begins_short: bool,
    pub(crate) last_short_end: u64,
    /// The length of the last segment.
    pub(crate) last: u64,
    /// The first and the last packet.
    pub(crate) frames: (u64, u64),
    /// When the first was sent.
    pub(crate) since: Option<Time>,
}

impl Sender {
    /// What was on its way, as far as the sender knew, when it knew only of `known`.
    pub(crate) fn flight(&self, known: u64) -> Flight {
        let mss = self.mss.get();
        let mut flight = Flight { bytes: self.next.saturating_sub(known), ..Flight::default() };
        for (place, sent) in self.sent.iter().filter(|sent| sent.end > known).enumerate() {
            let length = sent.end - sent.start;
            flight.segments += length.div_ceil(mss);
            flight.frames = (if place == 0 { sent.frame } else { flight.frames.0 }, sent.frame);
            if place == 0 {
                (flight.start, flight.since) = (sent.start, Some(sent.at));
            }
            // What a card will cut into segments ends with what is left over.
            if !length.is_multiple_of(mss) {
                flight.short_segments += 1;
                flight.last_short_end = sent.end;
                if place == 0 && length < mss {
                    flight.begins_short = true;
                }
            }
            flight.last = length;
        }
        flight
    }
}
