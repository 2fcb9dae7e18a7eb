//! Windows that a receiver closes because its program does not read: from when to when a sender may not send, and what of
//! that would not have been.
//!
//! A window without room for a segment is closed, too, when its edge stands still: a sender keeps what it has until there is
//! room, or its timer runs out (RFC 9293, section 3.8.6.2.1). Not windows that are small and move: those are
//! `receive_window_limited`.

use wire::{Duration, Time};

use crate::account::Share;
use crate::cause::Cause;
use crate::finding::{Confidence, Finding, Severity};
use crate::gap::{Before, Gap, Mark, millis};
use crate::side::{Both, Side};

use super::Flow;

impl Flow {
    /// An acknowledgement for `sender` passes, up to `to`: its window closes, stays closed, or opens. `None` where the window
    /// cannot be read, though it is not zero.
    pub(super) fn closes_window(&mut self, sender: Side, to: u64, window: Option<u32>, mark: Mark) {
        let sent = (self.before == Before::Data(sender)).then_some(self.last.at);
        let end = self.ends.of_mut(sender);
        let is_still = window.is_some_and(|window| end.sender.stands_still(to, window));
        let covers_more = to > end.sender.acknowledged;
        end.offered.passed(mark.at, window, end.sender.mss.get(), is_still, covers_more);
        let shrunk_since = end.offered.shrunk_since;
        let has_no_room =
            end.offered.is_still && window.is_some_and(|window| u64::from(window) < end.sender.mss.get());
        // A program that has nothing more to send needs no room, but none at all is said on purpose.
        let is_closed = window == Some(0) || (has_no_room && self.has_more_to_send(sender));
        let end = self.ends.of_mut(sender);
        let since = end.closed.as_ref().and_then(|closed| closed.since);
        match (is_closed, since) {
            (true, None) => {
                let closed = end.closed.get_or_insert_default();
                (closed.since, closed.window) = (Some(mark), window.unwrap_or_default());
                (closed.shrunk_since, closed.sent) = (shrunk_since.unwrap_or(mark.at), sent);
            }
            (true, Some(_)) | (false, None) => {}
            (false, Some(since)) => {
                let closed = end.closed.get_or_insert_default();
                closed.since = None;
                closed.over.push((since, mark));
                let (window, shrunk_since, sent) = (closed.window, closed.shrunk_since, closed.sent);
                let halted = self.halted(sender, shrunk_since, sent, mark);
                self.find_closed(sender, window, since, mark, halted);
            }
        }
    }

    /// As far as its messages tell.
    fn has_more_to_send(&self, sender: Side) -> bool {
        self.conversation.talk(sender, &[]).is_within != Some(false)
    }

    fn find_closed(&mut self, sender: Side, window: u32, since: Mark, until: Mark, halted: Duration) {
        let lost = until.at.since(since.at);
        if lost < Cause::ZeroWindow.about().least || !self.has_more_to_send(sender) {
            return;
        }
        self.add(Finding {
            cause: Cause::ZeroWindow,
            severity: Severity::of(Cause::ZeroWindow, lost),
            confidence: Confidence::High,
            side: sender,
            at: since.at,
            lost,
            saving: Some(halted),
            packets: vec![since.frame, until.frame],
            evidence: format!(
                "the {} offered a window of {window} (packet {}) and opened it again (packet {}) {} later",
                sender.other(),
                since.frame,
                until.frame,
                millis(lost)
            ),
        });
    }

    /// For how long a sender could not go on: from the first acknowledgement that would have let it go on behind what it sent
    /// last, had the window moved with it, to the one that did.
    fn halted(&self, sender: Side, shrunk_since: Time, sent: Option<Time>, until: Mark) -> Duration {
        let away = self.path.to(sender).unwrap_or_default();
        // What it would have sent on either passes so much later.
        let could = shrunk_since + away;
        (until.at + away).since(sent.map_or(could, |sent| sent.max(could)))
    }

    /// How much of the gap that ends at `to` some side was forbidden to send.
    pub(super) fn forbidden(&mut self, to: Mark) -> Duration {
        let from = self.last.at;
        let mut all: Vec<(Time, Time)> = Vec::new();
        let Both { client, server } = &mut self.ends;
        for closed in [&mut client.closed, &mut server.closed].into_iter().flatten() {
            let open = closed.since.map(|since| (since.at, to.at));
            all.extend(closed.over.drain(..).map(|(since, until)| (since.at, until.at)).chain(open));
        }
        if all.is_empty() {
            return Duration::ZERO;
        }
        all.sort_unstable();
        let mut reached = from;
        let mut total = Duration::ZERO;
        for (since, until) in all {
            let since = since.max(reached);
            let until = until.min(to.at);
            if until > since {
                total += until.since(since);
                reached = until;
            }
        }
        total
    }

    /// A gap in which the window was closed: the rest of it is the path's, as far as that explains it.
    pub(super) fn spend_around(&mut self, gap: &Gap, closed: Duration) {
        let rest = gap.duration() - closed;
        let way = self.path.round_trip_at_least() + Duration::from_millis(10);
        self.spend(Share::Stall(Cause::ZeroWindow), closed);
        self.spend(Share::RoundTrip, rest.min(way));
        self.spend(Share::Unknown, rest - way);
    }
}
