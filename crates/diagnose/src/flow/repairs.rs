//! Facts about data that came late or twice: whether it was retransmitted at all, and why.

use dissect::sender::Hole;
use dissect::{Mark, Segment, Side};
use wire::{Duration, Time};

use crate::gap::Repair;

use super::Flow;
use super::state::EndState;

/// Fewer segments in flight fill no queue.
const MIN_FLIGHT: u64 = 8;

impl Flow {
    /// Returns the facts about data up to `stop` that came at `now`, and was sent or missing at `earlier`, `since` ago.
    pub(super) fn repair(
        &self,
        from: Side,
        stop: u64,
        earlier: Mark,
        now: Mark,
        since: Duration,
        times: u32,
    ) -> Repair {
        let EndState { sender, recovery, .. } = self.ends.of(from);
        let distance = self.path.to(from).unwrap_or_default();
        // An acknowledgement of new data restarts the timer (RFC 6298).
        let elapsed = |passed| now.at.since(passed).saturating_sub(distance);
        Repair {
            earlier,
            since,
            silence: sender.progressed_at.map_or(since, elapsed).min(since),
            quiet: sender.last_ack_at.map_or(since, elapsed).min(since),
            times,
            was_seen: times > 0,
            duplicates: sender.duplicates,
            is_sacked: sender.is_sacked,
            is_last: stop >= sender.next,
            in_recovery: recovery.filter(|(_, until)| sender.acknowledged < *until).map(|(cause, _)| cause),
            timeout: self.path.retransmission_timeout(),
            latest_probe: self.path.latest_probe(),
            overflow: self.overflow(from),
            message_end: self.message_end(from, stop),
        }
    }

    /// Returns when a message of `from` that continues at `stop` ended: it then sent nothing for longer than its timer would
    /// take, and something new.
    fn message_end(&self, from: Side, stop: u64) -> Option<Time> {
        let sent = &self.ends.of(from).sender.sent;
        let is_pause = |from: Time, to: Time| to.since(from) > self.path.usual_timeout();
        let first = sent.partition_point(|segment| segment.end < stop);
        if !is_pause(sent.get(first)?.at, sent.back()?.at) {
            return None;
        }
        let pairs = sent.range(first..).zip(sent.range(first + 1..));
        pairs
            .map(|(one, next)| (one.at, next.at))
            .find(|(one, next)| is_pause(*one, *next))
            .map(|(one, _)| one)
    }

    /// Returns how long the latest data of `from` waited in a queue on the path, if that was at least half a round trip: a sender
    /// that halves its window then still keeps the link busy. Near the receiver timestamps (TSval) show it, elsewhere
    /// acknowledgements.
    fn overflow(&self, from: Side) -> Option<Duration> {
        const NOTICEABLE: Duration = Duration::from_millis(5);
        let EndState { sender, queued, .. } = self.ends.of(from);
        let queue = if self.is_near(from.other()) { *queued } else { self.path.queueing(from.other()) };
        let is_busy =
            u64::from(sender.largest_flight) >= MIN_FLIGHT * sender.mss.get() || self.is_near(from.other());
        let is_long = queue >= NOTICEABLE.max(self.path.round_trip_at_least() / 2);
        (is_busy && is_long).then_some(queue)
    }

    /// Returns whether data that fills a hole was sent in order and reordered by the network: it arrives sooner than
    /// the sender could have detected the loss, or its IP ID shows it.
    pub(super) fn was_overtaken(
        &self,
        from: Side,
        missed: Duration,
        segment: &Segment<'_>,
        hole: &Hole,
    ) -> bool {
        const SOON: Duration = Duration::from_millis(3);
        let is_numbered = segment.identification != 0 && segment.identification != hole.identification;
        let is_earlier = hole.identification.wrapping_sub(segment.identification) < 1 << 10;
        let is_soon = missed < SOON.max(self.path.to(from).unwrap_or_default() * 4 / 5);
        // What was sent after everything else was not overtaken.
        let is_last = self.ends.of(from).recent.is_sent_last();
        (is_soon && !is_last) || (is_numbered && is_earlier && missed < self.path.retransmission_timeout())
    }
}
