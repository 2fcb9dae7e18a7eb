//! Connections of which one direction was captured: what it shows of the other side's time. The rule is in
//! `causes/one_direction_only.rs`.

use dissect::exchange::Kind;
use dissect::{Mark, Segment, Side};
use wire::Duration;

use crate::cause::Cause;
use crate::causes::one_direction_only::{self, IDLE, LONG, NOTICEABLE};
use crate::causes::think;
use crate::doubt::Doubt;
use crate::finding::{Confidence, Finding};
use crate::gap::{Gap, GapStart, Wait};
use crate::ruling::Ruling;
use crate::text::millis;
use trace::account::Share;

use super::Flow;

impl Flow {
    /// Returns whether nothing of a side was captured.
    pub(super) fn is_hidden(&self, side: Side) -> bool {
        !self.ends.of(side).sender.is_seen && self.reference.of(side).last_packet_at.is_none()
    }

    /// Follows the holes that selective acknowledgements report in what a side sent, of which nothing is captured (RFC 2018).
    pub(super) fn follow_unseen_hole(&mut self, side: Side, is_sacked: bool, mark: Mark) {
        if self.is_hidden(side) {
            let hole = &mut self.ends.of_mut(side).hole;
            *hole = hole.or(Some(mark)).filter(|_| is_sacked);
        }
    }

    /// Finds the loss that a hole shows, which `side` has filled now: its packets did not just overtake each other for most of a round trip.
    /// A hole that lasts a retransmission timeout longer was repaired by that. Returns the cause.
    pub(super) fn fill_unseen_hole(&mut self, side: Side, mark: Mark) -> Option<Cause> {
        let since = self.ends.of_mut(side).hole.take()?;
        let (lasted, round_trip) = (mark.at.since(since.at), self.path.round_trip_at_least());
        if round_trip == Duration::ZERO || lasted * 4 < round_trip * 3 {
            return None;
        }
        let is_late = lasted >= self.path.usual_timeout();
        let cause = if is_late { Cause::RetransmissionTimeout } else { Cause::FastRetransmit };
        let evidence = format!(
            "the {} reported data behind a hole (packet {}), which the {side} filled {} later (packet {}): packets of the {side}, which \
             were not captured, were lost",
            side.other(),
            since.frame,
            millis(lasted),
            mark.frame
        );
        let saving = Some(lasted.saturating_sub(round_trip + round_trip / 4));
        self.add(Finding { saving, ..Wait { from: since, to: mark, side }.finding(cause, evidence) });
        Some(cause)
    }

    /// Handles the client's acknowledgement of a SYN/ACK that was not captured: it shows the round trip.
    pub(super) fn open_unseen(&mut self, segment: &Segment<'_>) {
        let (Some(opened), None) = (self.handshake.opened, self.handshake.answered) else { return };
        // After a retransmission either SYN may be the one acknowledged.
        let is_next = self.before == GapStart::Handshake(Side::Client) && self.opening.is_none();
        if segment.from == Side::Client && is_next && self.is_hidden(Side::Server) {
            self.path.answered(Side::Server, segment.at.since(opened.at));
            self.handshake.answered = Some(Mark { at: segment.at, frame: segment.frame });
            self.time_by_echo(segment);
        }
    }

    /// Returns by how much later than its path needs the client acknowledges: it echoes the server's timestamp (RFC 7323).
    fn time_by_echo(&mut self, segment: &Segment<'_>) -> Option<Duration> {
        self.ends.server.clock.passed(segment.at, segment.options.stamp?.echo)
    }

    /// Attributes the time before a side acknowledges `bytes` of the other, of which nothing is captured. Returns whether it does.
    pub(super) fn time_unseen(&mut self, side: Side, segment: &Segment<'_>, bytes: u64) -> bool {
        let mark = Mark { at: segment.at, frame: segment.frame };
        let took = mark.at.since(self.last.at);
        if !self.is_hidden(side) || took >= crate::options::LEAP {
            return false;
        }
        // A FIN, for which no side waits.
        if bytes == 1 {
            self.spend(Share::Closing, took);
            return true;
        }
        self.conversation.acknowledged_unseen(side, mark);
        match side {
            Side::Client => self.time_unseen_request(mark, took),
            Side::Server => self.time_unseen_response(segment, took),
        }
    }

    /// The server's first acknowledgement after its SYN/ACK shows the round trip, if the client sends at once.
    fn time_unseen_request(&mut self, mark: Mark, took: Duration) -> bool {
        let is_first = self.before == GapStart::Handshake(Side::Server) && self.handshake.opened.is_none();
        if is_first && took < one_direction_only::LONGEST_PATH {
            self.handshake.opened = self.handshake.answered;
            self.handshake.is_done = true;
            self.path.answered(Side::Client, took);
            self.spend(Share::Stall(Cause::ConnectionSetup), took);
            self.set_up(mark);
        }
        self.handshake.is_done && is_first
    }

    fn time_unseen_response(&mut self, segment: &Segment<'_>, took: Duration) -> bool {
        let (path, from) = (self.path.to(Side::Server), self.last);
        let delayed = self.ends.server.late.take();
        if self.before != GapStart::Data(Side::Client) {
            // What the delayed acknowledgement had held up comes a round trip after it.
            let is_held = path.is_some_and(|path| took <= path + NOTICEABLE);
            let is_response = matches!(self.before, GapStart::Unseen(Side::Server) | GapStart::Handshake(_));
            let (time, least) =
                if is_held { (delayed.unwrap_or_default(), NOTICEABLE) } else { (took, LONG) };
            self.add_unexplained(time, least, is_response);
            return false;
        }
        let late = self.time_by_echo(segment);
        self.ends.server.late = late.filter(|late| *late >= NOTICEABLE);
        let waited = took.saturating_sub(path.unwrap_or_default());
        // A capture of data alone shows the next request, not when the response came.
        let is_shown = segment.length() == 0 || self.handshake.answered.is_some();
        // After a loss, one of the other direction, which does not show, is as likely.
        let is_timed = path.is_some() && !self.ends.client.has_lost && is_shown;
        let shown = if is_timed { one_direction_only::shown(waited, late) } else { Duration::ZERO };
        if path.is_none() && is_shown {
            self.path.answered(Side::Server, took);
        }
        // HTTP/2's acknowledged data may be control traffic, the response to a poll comes when its timer has ended, and a server may
        // warm up for the first one.
        let is_http1 = self.conversation.kind() == Kind::Http1
            && self.conversation.unanswered().is_some_and(|requests| requests > 0);
        let is_readable = is_http1 && !think::is_timer(waited) && self.conversation.count() > 1;
        let to = Mark { at: segment.at, frame: segment.frame };
        if let Some(finding) = one_direction_only::response(from, to, shown, is_readable) {
            self.add_unexplained(shown, NOTICEABLE, !is_readable);
            self.spend(Share::RoundTrip, took - shown);
            self.spend(Share::Stall(finding.cause), shown);
            self.add(finding);
        } else if late.is_none() && waited >= NOTICEABLE {
            self.add_unexplained(waited, NOTICEABLE, true);
            self.spend_unknown(Doubt::OneDirection, took);
        } else {
            self.spend(Share::RoundTrip, took);
        }
        true
    }

    /// Counts a pause in what one side sends: why it waited, only its peer's acknowledgements would show.
    pub(super) fn count_unexplained(&mut self, gap: &Gap, ruling: Option<&Ruling>) {
        let is_low = |ruling: &Ruling| ruling.confidence == Confidence::Low && ruling.share != Share::Unknown;
        let is_doubtful = ruling.is_some_and(is_low);
        let is_alone = self.is_hidden(gap.wait.side.other());
        // A small flight waits for no window.
        let least = if is_doubtful || gap.flight.bytes <= 2 * gap.mss { NOTICEABLE } else { LONG };
        let is_greeting = gap.wait.side == Side::Server && matches!(gap.before, GapStart::Handshake(_));
        let is_wait = (gap.continues() || is_greeting || is_doubtful) && !gap.is_bare_fin();
        self.add_unexplained(gap.duration(), if is_greeting { LONG } else { least }, is_alone && is_wait);
    }

    /// Counts a wait of `least` or more.
    pub(super) fn add_unexplained(&mut self, time: Duration, least: Duration, is_wait: bool) {
        if is_wait && (least..IDLE).contains(&time) {
            self.unexplained += time;
        }
    }
}
