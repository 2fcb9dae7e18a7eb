//! Judged gaps: their time in the account, and findings where enough of it was lost.

use dissect::sender::Sender;
use dissect::{Mark, Segment, Side};
use wire::Duration;
use wire::packet::Flags;

use crate::cause::{Cause, Describe as _};
use crate::causes::connection_per_request::PreviousConnection;
use crate::causes::one_direction_only::{LONG, NOTICEABLE};
use crate::causes::{self, connection_per_request, reset_lost_data};
use crate::doubt::Doubt;
use crate::failure::LostResponses;
use crate::finding::{Confidence, Finding, Severity};
use crate::gap::{Gap, GapEnd, GapStart, Wait};
use crate::judge;
use crate::options::LEAP;
use crate::ruling::Ruling;
use crate::text::{counted, millis};
use trace::account::Share;

use super::Flow;
use super::facts::Facts;
use super::state::HeldGap;

impl Flow {
    /// Closes a gap that ends with something other than data.
    pub(super) fn close(&mut self, segment: &Segment<'_>, end: GapEnd) {
        let facts = self.before_sending(segment);
        self.close_with(facts, end, segment);
    }

    /// Judges the gap, and starts the next.
    pub(super) fn close_with(&mut self, facts: Facts, end: GapEnd, segment: &Segment<'_>) {
        let gap = self.gap(facts, end, segment);
        self.infer_scale_by_stops(&gap);
        let is_step = matches!(gap.end, GapEnd::Data | GapEnd::Fin | GapEnd::Reset);
        let is_turn = gap.wait.side == Side::Server && gap.before == GapStart::Data(Side::Client);
        self.has_prompt_data |= is_turn && gap.length > 0 && gap.duration() < NEARBY;
        let waited = gap.duration().saturating_sub(gap.path.to_sender.unwrap_or_default());
        if is_turn && waited < PROMPT {
            self.turns.is_prompt();
        }
        let is_within_setup = gap.messages.is_greeting || self.conversation.is_within_handshake();
        if is_turn && gap.length > 0 && !is_within_setup {
            let request = self.conversation.pending_shape(gap.requested, self.turns.command());
            self.warm_up.responds(gap.wait.to.at, waited, request);
            self.serial.turn(self.conversation.requests(), gap.wait.from.at, [gap.duration(), waited]);
        }
        if is_step && gap.wait.side == Side::Client {
            let is_on_data = gap.before == GapStart::Data(Side::Server);
            self.handle_client_step(Some(waited).filter(|_| is_on_data));
        }
        if gap.before == GapStart::Nothing || gap.duration() >= LEAP {
            // Time before the first event: acknowledgements of data sent before the capture began.
            let is_first = gap.before == GapStart::Nothing;
            self.spend_unknown(
                if is_first { Doubt::CaptureBegan } else { Doubt::ClockJumped },
                gap.duration(),
            );
        } else {
            let closed = self.time_forbidden(gap.wait.to);
            if closed > Duration::ZERO {
                self.spend_around(&gap, closed);
                self.count_as_explained(&gap, closed);
            } else {
                let ruling = judge::judge(&gap);
                self.count_unexplained(&gap, ruling.as_ref());
                self.judge(&gap, ruling);
                self.follow_resumption(&gap, ruling);
            }
        }
        let is_discarded = || causes::receive_window_limited::too_small(&gap).is_some();
        if let GapEnd::Repair(repair) = &gap.end
            && !gap.is_bare_fin()
            && !is_discarded()
        {
            let cause = causes::retransmission::cause(&gap, repair);
            let end = self.ends.of_mut(gap.wait.side);
            end.has_lost = true;
            end.recovery = cause.map(|cause| (cause, end.sender.next)).or(end.recovery);
        }
        self.begin_gap(gap.wait.to);
    }

    /// Judges a pause again by how its sender went on: after a timeout its window is one segment.
    fn follow_resumption(&mut self, gap: &Gap, ruling: Option<Ruling>) {
        let side = gap.wait.side;
        if let Some(pause) = self.ends.of_mut(side).resumed.take()
            && causes::retransmission::has_loss_window(&pause.gap, gap)
        {
            let HeldGap { gap: pause, ruling } = *pause;
            let (cause, share) =
                (Cause::RetransmissionTimeout, ruling.map_or(Share::Unknown, |ruling| ruling.share));
            let lost = match share {
                Share::Stall(cause) => self.findings.retract_shown_by(cause, pause.wait.to.frame),
                _another => pause.duration(),
            };
            if share == Share::Unknown {
                self.doubts.take(Doubt::of(&pause), lost);
            }
            self.account.transfer(share, Share::Stall(cause), lost);
            let ruling = Ruling::all(&pause, cause, causes::retransmission::of_loss_window);
            self.find(&pause, cause, &ruling);
            self.ends.of_mut(side).has_lost = true;
        }
        if causes::retransmission::may_be_after_timeout(gap) {
            self.ends.of_mut(side).resumed = Some(Box::new(HeldGap { gap: gap.clone(), ruling }));
        }
    }

    /// Handles the client's next step, `reaction` after it had the server's data. Waits for data on which it did not act
    /// may have been no waits.
    pub(super) fn handle_client_step(&mut self, reaction: Option<Duration>) {
        if let Some(since) = self.turns.handle_client_step(reaction) {
            self.findings.doubt_since(Cause::ServerThink, since, UNREADABLE);
        }
    }

    /// Handles an acknowledgement of data that was not captured: an event without known details.
    pub(super) fn unseen(&mut self, side: Side, segment: &Segment<'_>, bytes: u64) {
        let mark = Mark { at: segment.at, frame: segment.frame };
        let time = mark.at.since(self.last.at);
        let was_moving = time <= self.path.round_trip_at_least().max(Duration::from_millis(10));
        let closed = self.time_forbidden(mark);
        self.spend(Share::Stall(Cause::ZeroWindow), closed);
        self.add_unexplained(closed, Duration::ZERO, true);
        if let Some(cause) = self.fill_unseen_hole(side, mark) {
            self.spend(Share::Stall(cause), time - closed);
        } else if closed == Duration::ZERO && self.time_unseen(side, segment, bytes) {
            // Attributed.
        } else if was_moving {
            self.spend(Share::Transfer, time - closed);
        } else {
            self.spend_unknown(Doubt::NotCaptured, time - closed);
        }
        self.before = GapStart::Unseen(side);
        self.begin_gap(mark);
    }

    pub(super) fn begin_gap(&mut self, to: Mark) {
        self.last = to;
        for reference in [&mut self.reference.client, &mut self.reference.server] {
            (reference.own_ack, reference.needless) = (None, None);
            (reference.timeout, reference.skipped) = (None, 0);
        }
    }

    /// Handles a pause of the server before a message, or in the middle of one: a stream, if that is repeated.
    fn handle_pause(&mut self, gap: &Gap, since: wire::Time) {
        let pause = gap.wait.to.at.since(since);
        if !gap.continues() {
            self.turns.begins(since, pause);
        } else if pause >= causes::think::SERVER.min_duration
            && !gap.messages.is_within_head
            && let Some(first) = self.turns.pauses(since, pause)
        {
            self.findings.doubt_if(Cause::ServerThink, STREAMED, |finding| finding.at >= first);
        }
    }

    /// Handles data of the server for which no side waited: a push, an event of a stream, or the end of a poll.
    fn handle_idle(&mut self, gap: &Gap) {
        if gap.continues()
            && let Some(opened) = self.turns.idles(gap.duration())
        {
            self.findings.doubt_if(Cause::ServerThink, STREAMED, |finding| finding.at >= opened);
        }
        self.has_pushed |= gap.continues() && !gap.is_control;
        if gap.before == GapStart::Data(Side::Client) && !gap.is_control {
            self.turns.is_held();
        }
    }

    fn judge(&mut self, gap: &Gap, ruling: Option<Ruling>) {
        let Some(ruling) = ruling else {
            self.spend_unknown(Doubt::of(gap), gap.duration());
            if gap.wait.side == Side::Server && gap.duration() > gap.path.round_trip * 2 {
                self.handle_pause(gap, gap.wait.from.at);
            }
            if causes::send_buffer_limited::may_be(gap) {
                self.record_stop(gap, None);
                self.hold(gap, None);
            } else {
                self.count_as_explained(gap, gap.duration());
            }
            return;
        };
        if ruling.share == Share::Idle && gap.wait.side == Side::Server && matches!(gap.end, GapEnd::Data) {
            self.handle_idle(gap);
        }
        self.spend(Share::RoundTrip, ruling.since.since(gap.wait.from.at));
        let spent = gap.wait.to.at.since(ruling.since);
        if ruling.share == Share::Unknown {
            self.spend_unknown(Doubt::of(gap), spent);
        } else {
            self.spend(ruling.share, spent);
        }
        let Share::Stall(cause) = ruling.share else {
            self.attribute_savings(gap, None);
            return;
        };
        // After a lost packet of the handshake the initial window may be one segment (RFC 5681, section 3.1): it opens
        // from there like any other.
        let is_of_data = !matches!(gap.end, GapEnd::Handshake { previous: _ });
        if is_of_data && matches!(cause, Cause::RetransmissionTimeout | Cause::TailLossProbe) {
            let end = self.ends.of_mut(gap.wait.side);
            end.may_have_lost = true;
            end.has_lost |= ruling.confidence > Confidence::Low;
        }
        let claimed =
            if cause == Cause::SendBufferLimited { self.claim(gap, &ruling) } else { Duration::ZERO };
        let saving = ruling.saving.map(|saving| saving.saturating_sub(claimed));
        let ruling = Ruling { saving, ..ruling };
        self.record_stop(gap, Some(cause));
        if !matches!(cause, Cause::SlowStart | Cause::DelayedAck) {
            self.count_as_explained(gap, claimed + saving.unwrap_or(gap.duration()));
        }
        self.attribute_savings(gap, Some(cause));
        if cause == Cause::ShortInitialSegment && gap.flight.segments == 1 {
            self.ends.of_mut(gap.wait.side).burst.began_narrow = true;
        }
        if cause == Cause::SlowStart && causes::short_initial_segment::is_spared_too(gap) {
            self.findings.add_short(Cause::ShortInitialSegment, gap.idle());
            self.ends.of_mut(gap.wait.side).spared = Some(Box::new(causes::opening::SparedWaits::at(gap)));
        }
        let was_open =
            |follows: &PreviousConnection| gap.wait.side == Side::Server && gap.flight.bytes < follows.window;
        if cause == Cause::SlowStart && self.follows.as_deref().is_some_and(was_open) {
            self.reopened += gap.idle();
        }
        if cause == Cause::SlowStart && causes::send_buffer_limited::may_be(gap) {
            self.hold(gap, Some(ruling));
            return;
        }
        let is_same = |held: &Gap| gap.awaited().is_some() && gap.is_level(held.flight.bytes);
        if !self.ends.of(gap.wait.side).held.iter().map(|held| &held.gap).all(is_same) {
            self.release(gap.wait.side);
        }
        self.find(gap, cause, &ruling);
        let is_long = cause == Cause::ServerThink && spent >= cause.about().min_duration;
        if is_long {
            self.handle_pause(gap, ruling.since);
        }
        if is_long && causes::think::is_unproven(gap) {
            self.turns.waits(ruling.since, spent, gap.length);
        }
        let others = gap.messages.unanswered.unwrap_or_default().saturating_sub(1);
        if cause == Cause::ServerThink && others > 0 && !gap.continues() {
            let evidence = move |gap: &Gap| {
                format!(
                    "{} waited while the server took {}",
                    counted(others as u64, "more request"),
                    millis(gap.wait.to.at.since(ruling.since))
                )
            };
            self.find_as(gap, Cause::HeadOfLine, &Ruling { saving: None, ..ruling }, evidence);
        }
    }

    /// Delays a finding: an apparently opening window may be the first stop at a plateau.
    fn hold(&mut self, gap: &Gap, ruling: Option<Ruling>) {
        /// Maximum number of gaps until a plateau is recognized.
        const MAX_HELD_GAPS: usize = 4;
        let held = &self.ends.of(gap.wait.side).held;
        if held.len() >= MAX_HELD_GAPS || held.iter().any(|held| !gap.is_level(held.gap.flight.bytes)) {
            self.release(gap.wait.side);
        }
        let held = &mut self.ends.of_mut(gap.wait.side).held;
        held.reserve_exact(1);
        held.push(Box::new(HeldGap { gap: gap.clone(), ruling }));
    }

    /// Releases the held gaps: each counts as what it appeared to be.
    pub(super) fn release(&mut self, side: Side) {
        for held in std::mem::take(&mut self.ends.of_mut(side).held) {
            let HeldGap { gap, ruling } = *held;
            if let Some(ruling) = ruling {
                self.find(&gap, Cause::SlowStart, &ruling);
            }
        }
    }

    /// Claims the held gaps of the plateau at which the sender has now stopped, and returns the time saved on them.
    fn claim(&mut self, gap: &Gap, ruling: &Ruling) -> Duration {
        let (held, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.ends.of_mut(gap.wait.side).held)
            .into_iter()
            .partition(|held| gap.is_level(held.gap.flight.bytes));
        self.ends.of_mut(gap.wait.side).held = others;
        let mut claimed = Duration::ZERO;
        for held in held {
            let HeldGap { gap: earlier, ruling: looked_like } = *held;
            let share = looked_like.map_or(Share::Unknown, |ruling| ruling.share);
            self.account.transfer(share, ruling.share, earlier.duration());
            if share == Share::Unknown {
                self.doubts.take(Doubt::of(&earlier), earlier.duration());
            }
            let saved = causes::opening::saved_with_room(&earlier).saturating_sub(claimed);
            claimed += saved;
            let ruling = Ruling { since: earlier.wait.from.at, saving: Some(saved), ..*ruling };
            self.find(&earlier, Cause::SendBufferLimited, &ruling);
        }
        claimed
    }

    pub(super) fn find(&mut self, gap: &Gap, cause: Cause, ruling: &Ruling) {
        if let Some(evidence) = ruling.evidence {
            self.find_as(gap, cause, ruling, evidence);
        }
    }

    fn find_as(&mut self, gap: &Gap, cause: Cause, ruling: &Ruling, evidence: impl Fn(&Gap) -> String) {
        // Time reported for another repair is not counted twice: losses of one flight are missing at the same time.
        let until = self.claimed;
        let missing = ruling.lost_since.map_or(ruling.since, |mark| mark.at);
        let since = if ruling.lost_since.is_some() { missing.max(until) } else { missing };
        let lost = gap.wait.to.at.since(since);
        if lost >= LEAP || gap.wait.to.at <= self.since {
            return;
        }
        // A failure, or a message that did not come, is observed. What else is likely is inferred.
        let messages = &gap.messages;
        let is_awaited = !gap.continues()
            || messages.is_within.is_some()
            || messages.pending.is_some()
            || messages.is_sequential;
        let is_observed = cause.is_failure() || cause == Cause::ServerThink && is_awaited;
        let is_guess = ruling.confidence < if is_observed { Confidence::Medium } else { Confidence::High };
        // No user reads a page within a handshake: a program checks a certificate, or waits for a card or a proxy.
        let is_stall = cause == Cause::ClientThink && gap.is_within_handshake;
        let most = if is_stall { Severity::High } else { Severity::most(cause) };
        let is_repair = matches!(gap.end, GapEnd::Repair(_));
        let finding = || Finding {
            cause,
            severity: most.unless(is_guess && !is_stall),
            confidence: ruling.confidence,
            side: gap.wait.side,
            at: since,
            lost,
            saving: ruling.saving.map(|saving| if is_repair { saving.min(lost) } else { saving }),
            packets: evidence_packets(gap, ruling),
            evidence: tight(evidence(gap)),
        };
        if lost < cause.about().min_duration {
            if let Some(saving) = ruling.saving {
                self.findings.add_short_finding(cause, lost, saving, finding);
            }
            return;
        }
        if is_repair {
            self.claimed = gap.wait.to.at;
        }
        let times = [lost, ruling.saving.unwrap_or_default()];
        self.findings.add(cause, times, self.limits.findings.into(), finding);
    }

    pub(crate) fn add(&mut self, finding: Finding) {
        let Finding { cause, at, lost, saving, .. } = finding;
        if at + lost <= self.since || lost >= LEAP {
            return;
        }
        let times = [lost, saving.unwrap_or_default()];
        self.findings.add(cause, times, self.limits.findings.into(), || finding);
    }

    /// Records the end of the handshake.
    pub(super) fn set_up(&mut self, mark: Mark) {
        let (Some(opened), Some(answered)) = (self.handshake.opened, self.handshake.answered) else { return };
        let lost = mark.at.since(opened.at);
        // The dialogue counts the cost of opening the connection.
        if lost < Cause::ConnectionSetup.about().min_duration || self.is_within_dialogue {
            return;
        }
        let evidence = format!(
            "the connection was opened in packet {} and could be used from packet {} on, {} later",
            opened.frame,
            mark.frame,
            millis(lost)
        );
        let wait = Wait { from: opened, to: mark, side: Side::Client };
        let packets = vec![opened.frame, answered.frame, mark.frame];
        self.add(Finding { packets, ..wait.finding(Cause::ConnectionSetup, evidence) });
    }

    /// Returns the delay of the server's FIN after the response, once the close has begun: a FIN that did not fit into
    /// the window takes a round trip. Anything longer is idle time.
    pub(crate) fn closing(&self) -> Duration {
        let waited = self.account.of(Share::Closing) + self.account.of(Share::Idle);
        let is_the_servers = self.reference.server.has_ended && !self.reference.client.has_ended;
        let is_the_paths = waited <= self.path.round_trip_at_least() * 3 / 2;
        if is_the_servers && is_the_paths { waited } else { Duration::ZERO }
    }

    /// Reports a connection whose requests the previous connection could have carried.
    pub(super) fn find_needless_opening(&mut self) {
        let (Some(previous), Some(opened)) = (self.follows.take(), self.handshake.opened) else { return };
        let requests = self.conversation.count();
        let is_shared = previous.authority == self.conversation.authority();
        // One that is left open may be a connection of a pool that grows.
        let is_closed = requests > 0 && !previous.is_open && (previous.requests == 1 || previous.is_habit);
        let is_per_request = requests == 1 && previous.requests == 1 || is_closed;
        if !self.handshake.is_done || !is_per_request || !is_shared {
            return;
        }
        let set_up = self.account.of(Share::Stall(Cause::ConnectionSetup));
        // A SYN that had no response is a fault of its own.
        let repeats = self.opening.iter().flat_map(|opening| opening.repeats.first());
        let repeated = repeats.map(|(first, _)| opened.at.since(first.at)).sum();
        let lost = self.set_up_time.unwrap_or_default().saturating_sub(repeated).max(set_up);
        let saving = lost + self.reopened + previous.closing;
        // What the set-up takes, its handshake included, counts once.
        let ready = self.conversation.first_request().map_or(opened.at, |request| request.at);
        for cause in [Cause::ServerThink, Cause::ClientThink] {
            self.findings
                .doubt_if(cause, SPARED, |finding| finding.at < ready && finding.severity > Severity::Note);
        }
        let mut finding =
            connection_per_request::finding(&previous, opened, self.conversation.tls(), lost, saving);
        // From the SYN/ACK to the first request, which the client may have sent later.
        if self.is_hidden(Side::Client) {
            self.add_unexplained(LONG, LONG, saving >= NOTICEABLE);
            (finding.severity, finding.confidence) = (Severity::Low, Confidence::Low);
        }
        self.add(finding);
    }

    /// Reports requests that a server handled one at a time, instead of the time that it took for each.
    pub(super) fn find_service_queues(&mut self) {
        self.queue.settle();
        for served in std::mem::take(&mut self.queue.chains) {
            let waits = |finding: &Finding| (served.began.at..served.ended.at).contains(&finding.at);
            self.findings.retract_if(Cause::ServerThink, waits);
            self.add(causes::think::in_turn(&served));
        }
    }

    /// Handles a reset by the server while requests are pending; `last` is the event before it.
    pub(super) fn find_lost_responses(&mut self, segment: &Segment<'_>, last: Mark) {
        let Segment { from, at, frame, .. } = *segment;
        // A reset without ACK denies that the connection exists (RFC 9293, section 3.10.7.1). A program that closes acknowledges.
        let is_denied = !segment.has(Flags::ACK) && !self.reference.server.has_ended;
        if from != Side::Server || is_denied && self.conversation.is_within(Side::Server) {
            return;
        }
        let is_whole = |sender: &Sender| sender.next <= sender.acknowledged;
        let (client, server) = (&self.ends.client.sender, &self.ends.server.sender);
        let alert = self.ends.client.alert;
        // A reset that only responds to close_notify discards no response.
        let is_lost =
            alert == 0 || client.next > client.acknowledged + alert || self.conversation.tls().is_none();
        let unread = client.sent.iter().find(|sent| sent.end > client.acknowledged);
        let facts = LostResponses {
            reset: Mark { at, frame },
            requests: self.conversation.requests(),
            unanswered: self.conversation.unanswered().filter(|_| is_lost),
            first_unanswered: self.conversation.first_unanswered(),
            unread: unread.map_or(last, |sent| Mark { at: sent.at, frame: sent.frame }),
            is_late: self.reference.server.has_ended && client.next > client.acknowledged + alert,
            has_client_ended: self.reference.client.has_ended,
            is_settled: self.is_over() && is_whole(client) && is_whole(server),
            is_heard: self.handshake.answered.is_some() || server.is_seen,
        };
        if let Some(finding) = reset_lost_data::rule(&facts) {
            self.add(finding);
        }
    }

    /// Settles the time after the last event: acknowledgements, then nothing.
    pub(super) fn settle_tail(&mut self) {
        self.release(Side::Client);
        self.release(Side::Server);
        let rest = self.last_at.since(self.last.at);
        match self.before {
            GapStart::Nothing => self.spend_unknown(Doubt::CaptureBegan, rest),
            _ if rest >= LEAP => self.spend_unknown(Doubt::ClockJumped, rest),
            GapStart::Ending => self.spend(Share::Closing, rest),
            GapStart::Handshake(_) | GapStart::Data(_) | GapStart::Unseen(_) => {
                let to = Mark { at: self.last_at, frame: self.last.frame };
                let closed = self.time_forbidden(to);
                let round_trip = self.path.round_trip_at_least();
                let path_time = (rest - closed).min(round_trip);
                self.spend(Share::Stall(Cause::ZeroWindow), closed);
                self.spend(Share::RoundTrip, path_time);
                self.spend_unknown(Doubt::CaptureEnded, rest - closed - path_time);
            }
        }
        [Side::Client, Side::Server].into_iter().for_each(|side| self.settle_closed_windows(side));
    }
}

/// A response this soon comes from a host in the vicinity, which acknowledges for itself.
const NEARBY: Duration = Duration::from_millis(5);
/// Shorter than any reported think time.
pub(super) const PROMPT: Duration = Duration::from_millis(20);
/// Reasons to doubt that a client waited for its server.
pub(super) const UNREADABLE: &str = "; in a protocol that cannot be read, possibly no side waited for it";
/// A reason not to count what a program needs once.
pub(crate) const WARM_UP: &str = "; later responses to such requests came at once: the program warmed up";
/// A reason not to count the set-up of a connection twice.
const SPARED: &str = "; a part of the set-up of a connection that was not needed";
pub(super) const POLLED: &str = "; another request of this path was held, and had no event: it is polled";
pub(super) const STREAMED: &str = "; the response pauses repeatedly: it may be a stream, or paced";

/// Drops the unused capacity of a text.
fn tight(mut text: String) -> String {
    text.shrink_to_fit();
    text
}

/// Returns the packets that show a stall.
fn evidence_packets(gap: &Gap, ruling: &Ruling) -> Vec<u64> {
    let earlier = ruling.lost_since.map(|mark| mark.frame);
    let held = gap.awaited().map(|_| gap.flight.frames);
    let acks = gap.trigger.map(|ack| ack.frame).filter(|_| gap.awaited().is_some());
    let own = gap.own_ack.map(|ack| ack.frame).filter(|_| !gap.continues());
    let repaired = match &gap.end {
        GapEnd::Repair(repair) => Some(repair.earlier.frame),
        GapEnd::Handshake { previous } => previous.map(|before| before.frame),
        GapEnd::Data | GapEnd::Fin | GapEnd::Reset => None,
    };
    let flight = held.into_iter().flat_map(|(first, last)| [first, last]);
    let mut packets: Vec<u64> =
        [Some(gap.wait.from.frame), Some(gap.wait.to.frame), earlier, acks, own, repaired]
            .into_iter()
            .flatten()
            .chain(flight)
            .filter(|frame| *frame > 0)
            .collect();
    packets.sort_unstable();
    packets.dedup();
    packets.shrink_to_fit();
    packets
}
