//! Windows that a receiver closes because its program does not read: when a sender must not send, and what that cost.
//!
//! A window below a segment and below half of the largest window is closed, too, when its edge does not move: a sender
//! holds its data until there is enough window, or its timer expires (RFC 9293, section 3.8.6.2.1). Not windows that
//! are small and move: those are `receive_window_limited`.
//!
//! A closed window is a finding only if its sender was blocked: it probed, or it sent as soon as the window opened.

use dissect::{Both, Mark, Side};
use wire::{Duration, Time};

use crate::cause::Cause;
use crate::causes::{receive_window_limited, zero_window};
use crate::doubt::Doubt;
use crate::failure::ClosedWindow;
use crate::gap::{Gap, GapStart, Wait};
use crate::ruling::Ruling;
use trace::account::Share;

use super::Flow;
use super::state::{EndState, ZeroWindow};

impl Flow {
    /// Handles an acknowledgement for `sender`, up to `to`: its window closes, stays closed, or opens. `window` is
    /// `None` where it cannot be read, although it is not zero.
    pub(super) fn track_window(&mut self, sender: Side, to: u64, window: Option<u32>, mark: Mark) {
        let sent = (self.before == GapStart::Data(sender)).then_some(self.last.at);
        let end = self.ends.of_mut(sender);
        let is_still = window.is_some_and(|window| end.sender.stands_still(to, window));
        let covers_more = to > end.sender.acknowledged;
        end.offered.passed(mark.at, window, end.sender.mss.get(), is_still, covers_more);
        let shrunk_since = end.offered.shrunk_since;
        // Half of the largest window is sufficient, however large a segment may be (a loopback's is 64 kB).
        let headroom = end.sender.mss.get().min(u64::from(end.offered.largest / 2));
        let has_no_room = end.offered.is_still && window.is_some_and(|window| u64::from(window) < headroom);
        // A program with nothing more to send needs no window, but a zero window is deliberate.
        let is_closed = window == Some(0) || (has_no_room && self.has_more_to_send(sender));
        let end = self.ends.of_mut(sender);
        let since = end.closed.as_ref().and_then(|closed| closed.since);
        match (is_closed, since) {
            (true, None) => {
                let closed = end.closed.get_or_insert_default();
                (closed.since, closed.window) = (Some(mark), window.unwrap_or_default());
                (closed.shrunk_since, closed.sent) = (shrunk_since.unwrap_or(mark.at), sent);
                (closed.probes, closed.reopened) = (0, None);
            }
            (true, Some(_)) | (false, None) => {}
            (false, Some(since)) => {
                let closed = end.closed.get_or_insert_default();
                closed.since = None;
                closed.over.push((since, mark));
                closed.reopened = Some((since, mark));
            }
        }
    }

    /// Records that `sender` probes a window, or its peer.
    pub(super) fn record_window_probe(&mut self, sender: Side) {
        if let Some(closed) =
            self.ends.of_mut(sender).closed.as_deref_mut().filter(|closed| closed.since.is_some())
        {
            closed.probes += 1;
        }
    }

    /// Handles data of `sender`, after the gap before it was judged: decides whether a window had blocked it until now.
    pub(super) fn settle_closed_window(&mut self, sender: Side, length: u64, at: Time) {
        /// Minimum persist timeout.
        const TIMER: Duration = Duration::from_millis(200);
        /// Maximum time after the window update's arrival in which a held sender sends.
        const PROMPT: Duration = Duration::from_millis(10);
        let distance = self.path.to(sender).unwrap_or_default();
        let EndState { closed, sender: own, offered, .. } = self.ends.of_mut(sender);
        // A window too small to send into opened nothing.
        let is_useless =
            own.window.is_some_and(|window| u64::from(window) == length && 2 * window < offered.largest)
                && length < own.mss.get();
        let Some(closed) = closed.as_deref_mut() else { return };
        if let Some(since) = closed.since {
            // Data that fits and does not wait for a timer is not blocked.
            if closed.window > 0
                && length <= u64::from(closed.window)
                && at.since(since.at) < distance + TIMER
            {
                closed.since = None;
            } else {
                closed.probes += 1;
            }
        }
        let Some((since, until)) = closed.reopened.take() else { return };
        let is_held =
            closed.probes > 0 || is_useless || at.since(until.at) <= distance + distance / 10 + PROMPT;
        let ZeroWindow { window, shrunk_since, sent, probes, .. } = *closed;
        let lost = until.at.since(since.at);
        if is_held {
            let halted = self.time_blocked(sender, shrunk_since, sent, until);
            let wait = Wait { from: since, to: until, side: sender };
            self.find_closed(&ClosedWindow { window, probes, wait }, halted);
            // No wider window saves it again.
            let progress = &mut self.ends.of_mut(sender).burst.progress;
            if since.at >= progress.began {
                progress.reported += halted.saturating_sub(lost);
            }
        } else {
            self.account.transfer(Share::Stall(Cause::ZeroWindow), Share::Idle, lost);
        }
    }

    /// Settles, at the end, windows that blocked their sender until then.
    pub(super) fn settle_closed_windows(&mut self, sender: Side) {
        let until = Mark { at: self.last_at, frame: self.last_frame };
        let Some(closed) = self.ends.of_mut(sender).closed.take().filter(|closed| closed.probes > 0) else {
            return;
        };
        let ZeroWindow { window, probes, .. } = *closed;
        if let Some((since, until)) = closed.reopened {
            let halted = self.time_blocked(sender, closed.shrunk_since, closed.sent, until);
            let wait = Wait { from: since, to: until, side: sender };
            self.find_closed(&ClosedWindow { window, probes, wait }, halted);
        }
        if let Some(since) = closed.since {
            self.add(zero_window::to_the_end(&ClosedWindow {
                window,
                probes,
                wait: Wait { from: since, to: until, side: sender },
            }));
        }
    }

    /// Returns whether `sender` has more to send, as far as its messages show.
    fn has_more_to_send(&self, sender: Side) -> bool {
        self.conversation.message_facts(sender, &[]).is_within != Some(false)
    }

    fn find_closed(&mut self, closed: &ClosedWindow, halted: Duration) {
        if let Some(finding) = zero_window::rule(closed, halted) {
            let share = Share::Stall(finding.cause);
            self.account.transfer(Share::Stall(Cause::ZeroWindow), share, finding.lost);
            self.add(finding);
        }
    }

    /// Returns the time for which a sender was blocked: from the first acknowledgement that would have allowed more
    /// data, had the window moved with it, to the one that did.
    fn time_blocked(&self, sender: Side, shrunk_since: Time, sent: Option<Time>, until: Mark) -> Duration {
        let distance = self.path.to(sender).unwrap_or_default();
        // Data sent on either passes this much later.
        let could = shrunk_since + distance;
        (until.at + distance).since(sent.map_or(could, |sent| sent.max(could)))
    }

    /// Returns the part of the gap that ends at `to` in which some side was forbidden to send.
    pub(super) fn time_forbidden(&mut self, to: Mark) -> Duration {
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

    /// Attributes a gap in which the window was closed: the rest of it is the path's, as far as that explains it.
    pub(super) fn spend_around(&mut self, gap: &Gap, closed: Duration) {
        let rest = gap.duration() - closed;
        self.spend(Share::Stall(Cause::ZeroWindow), closed);
        if let Some(ruling) = receive_window_limited::too_small(gap) {
            self.spend(ruling.share, rest);
            let ruling = Ruling { since: gap.wait.from.at + closed, ..ruling };
            self.find(gap, Cause::ReceiveWindowLimited, &ruling);
            return;
        }
        let round_trip = self.path.round_trip_at_least();
        // Linux delays an acknowledgement that would shrink the window, for 40 ms or until the program reads.
        let (share, most) = match gap.headroom {
            Some(headroom) if headroom < gap.mss => (Share::Stall(Cause::ReceiveWindowLimited), 50),
            Some(_) | None => (Share::RoundTrip, 10),
        };
        let late = rest.saturating_sub(round_trip).min(Duration::from_millis(most));
        self.spend(share, late);
        self.spend(Share::RoundTrip, rest.min(round_trip));
        self.spend_unknown(Doubt::of(gap), rest.saturating_sub(round_trip + late));
    }
}
