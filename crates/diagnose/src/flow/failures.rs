//! Connections that fail after they were opened: cut by a reset, abandoned by a peer, stuck on a path with a small MTU. The
//! rules are those of `causes/{reset_mid_transfer,peer_vanished,path_mtu}.rs`; here are their facts, and what a failure replaces.

use core::net::IpAddr;

use dissect::sender::{Hole, SentSegment};
use dissect::{Both, Mark, Segment, Side};
use wire::packet::Flags;
use wire::{Duration, Time};

use crate::cause::Cause;
use crate::causes::{path_mtu, peer_vanished, reset_mid_transfer};
use crate::failure::{RepeatedRetransmission, ResetFacts, SmallMtu, SplitRepair, StuckFacts};
use crate::finding::Finding;
use crate::gap::GapStart;
use trace::account::Share;

use super::Flow;
use super::state::EndState;

impl Flow {
    /// Handles a retransmission by `from` of data that is not acknowledged.
    pub(super) fn record_repeated_retransmission(
        &mut self,
        from: Side,
        before: &SentSegment,
        start: u64,
        length: u64,
        mark: Mark,
    ) {
        let distance = self.path.to(from.other()).unwrap_or_default();
        let last_seen = self.reference.of(from.other()).last_packet_at;
        let is_silent = |since: Mark| last_seen.is_none_or(|last_seen| last_seen <= since.at + distance);
        let end = self.ends.of_mut(from);
        // Data that was acknowledged in part is split anew: that piece was not sent before.
        let is_same = before.start == start;
        let first = if is_same { Mark { at: before.at, frame: before.frame } } else { mark };
        if length == 0 || start != end.sender.acknowledged {
            return;
        }
        // An acknowledgement that came later than a round trip ago was of data sent at the same time.
        let slack = distance / 4 + Duration::from_millis(5);
        let has_small_arrived = end.sender.progressed_at.is_some_and(|at| at + slack >= before.at + distance);
        let stuck = match end
            .stuck
            .as_deref()
            .copied()
            .filter(|stuck| stuck.start == start && !stuck.is_needless)
        {
            Some(stuck) => stuck,
            None => RepeatedRetransmission {
                start,
                first,
                last: first,
                times: if is_same { before.times } else { 0 },
                // A network card merged or will split a longer one.
                length: if is_same { (before.end - before.start).min(end.sender.mss.get()) } else { length },
                in_vain: 1,
                silent_since: first,
                next: 0,
                shorter: None,
                is_needless: false,
                reset: None,
                has_small_arrived,
            },
        };
        let next = end.sender.next;
        let is_shorter = length < stuck.length;
        let times = stuck.times.saturating_add(u32::from(!is_shorter));
        let shorter = stuck.shorter.or(is_shorter.then_some((mark, length)));
        let (in_vain, silent_since) = if is_silent(stuck.last) && times > 1 {
            (stuck.in_vain.saturating_add(1), stuck.silent_since)
        } else {
            (1, mark)
        };
        end.stuck = Some(Box::new(RepeatedRetransmission {
            last: mark,
            times,
            shorter,
            in_vain,
            silent_since,
            next,
            ..stuck
        }));
    }

    /// Handles the repair of a hole by `piece`, its position and length.
    pub(super) fn record_split_repair(&mut self, from: Side, hole: &Hole, piece: (u64, u64), mark: Mark) {
        let since = Mark { at: hole.since, frame: hole.frame };
        let mss = self.ends.of(from).sender.mss.get();
        if path_mtu::is_split(hole.span(), piece, mss, mark.at.since(since.at)) {
            let split = SplitRepair { since, mark, lost: hole.span().1, piece: piece.1 };
            self.ends.of_mut(from).split.get_or_insert_with(|| Box::new(split));
        }
    }

    /// Handles a retransmission by `from` of data whose acknowledgement was captured.
    pub(super) fn record_needless_retransmission(&mut self, from: Side, start: u64, length: u64, mark: Mark) {
        /// Shorter than any timeout.
        const PAUSE: Duration = Duration::from_millis(150);
        let end = self.ends.of_mut(from);
        if length == 0 {
            return;
        }
        let known = end.stuck.as_deref().copied().filter(|stuck| stuck.start == start && stuck.is_needless);
        let stuck = match known {
            Some(stuck) if mark.at.since(stuck.last.at) < PAUSE => return,
            Some(stuck) => {
                RepeatedRetransmission { last: mark, in_vain: stuck.in_vain.saturating_add(1), ..stuck }
            }
            None => RepeatedRetransmission {
                start,
                first: mark,
                last: mark,
                times: 1,
                length,
                in_vain: 2,
                silent_since: mark,
                next: end.sender.next,
                shorter: None,
                is_needless: true,
                reset: None,
                has_small_arrived: false,
            },
        };
        end.stuck = Some(Box::new(stuck));
    }

    /// Handles a reset during repeated retransmissions.
    pub(super) fn record_reset(&mut self, segment: &Segment<'_>) {
        let reset = (segment.from, Mark { at: segment.at, frame: segment.frame });
        for end in [&mut self.ends.client, &mut self.ends.server] {
            end.stuck.iter_mut().for_each(|stuck| stuck.reset = Some(reset));
        }
    }

    /// Handles the acknowledgement of data of `from` up to `to`.
    pub(super) fn acknowledge_repeated(&mut self, from: Side, to: u64, mark: Mark) {
        let Some(stuck) =
            self.ends.of_mut(from).stuck.take_if(|stuck| stuck.start < to && !stuck.is_needless)
        else {
            return;
        };
        let facts = self.stuck_facts(from, *stuck);
        if let Some(failure) = path_mtu::in_pieces(&facts, mark) {
            self.find_failure(failure);
        }
    }

    /// Returns whether a segment of `length` bytes is full-sized on the wire, and none as large was acknowledged.
    fn is_largest(&self, from: Side, length: u64) -> bool {
        let end = self.ends.of(from);
        length <= end.sender.mss.get() && length > u64::from(end.sender.largest_arrived)
    }

    /// Returns the facts about data of `from` that was retransmitted repeatedly.
    fn stuck_facts(&self, from: Side, stuck: RepeatedRetransmission) -> StuckFacts<'_> {
        let peer = from.other();
        let distance = self.path.to(peer).unwrap_or_default();
        let last_seen = self.reference.of(peer).last_packet_at;
        let has_reset = self.cut.as_ref().is_some_and(|cut| cut.0 == peer);
        let only_answer = self.handshake.answered.filter(|answered| {
            from == Side::Client && last_seen.is_some_and(|last_seen| last_seen <= answered.at)
        });
        let sender = &self.ends.of(from).sender;
        let mss = sender.mss.get();
        // A network card splits longer ones into segments, the last of which may be smaller.
        let is_full = |sent: &SentSegment| {
            let length = sent.end - sent.start;
            length * 10 >= length.div_ceil(mss) * mss * 9
        };
        StuckFacts {
            from,
            stuck,
            until: Mark { at: self.last_at, frame: stuck.last.frame },
            mss,
            is_all_full: sender.next - stuck.start > mss && sender.sent.iter().all(is_full),
            is_largest: self.is_largest(from, stuck.length),
            is_silent: last_seen.is_some_and(|last_seen| last_seen <= stuck.last.at + distance) && !has_reset,
            reported: self.small_mtu.as_deref().filter(|reported| reported.from == from),
            only_answer,
        }
    }

    /// Records that a router reported a packet of `from` as larger than its link's MTU.
    pub(super) fn record_small_mtu(&mut self, from: Side, mark: Mark, mtu: u32, reporter: IpAddr) {
        self.small_mtu.get_or_insert_with(|| Box::new(SmallMtu { mark, mtu, reporter, from }));
    }

    /// Handles a reset that may be in the middle of a transfer; called before it ends the connection.
    pub(super) fn record_cut(&mut self, segment: &Segment<'_>) {
        let Segment { from, at, frame, identification, hop_limit, .. } = *segment;
        let peer = from.other();
        let both = |of: &dyn Fn(Side) -> bool| Both { client: of(Side::Client), server: of(Side::Server) };
        let sending = |side: Side| {
            let first = self.ends.of(side).sender.sent.front();
            first.map_or(self.last, |sent| Mark { at: sent.at, frame: sent.frame })
        };
        let rejected = self.ends.of(peer).recent.last_identification();
        let facts = ResetFacts {
            from,
            mark: Mark { at, frame },
            is_bare: !segment.has(Flags::ACK),
            is_within: both(&|side| self.conversation.is_within(side)),
            has_ended: both(&|side| self.reference.of(side).has_ended),
            is_seen: both(&|side| self.ends.of(side).sender.is_seen),
            unacknowledged: self.unacknowledged(peer),
            sending: Both { client: sending(Side::Client), server: sending(Side::Server) },
            is_read: self.conversation.unanswered().is_some(),
            is_tls: self.conversation.tls().is_some(),
            truncation: self.truncation(at),
            usual_hop_limit: self.path.hop_limit(from),
            hop_limit,
            // A host that numbers its packets has numbered the reset, too.
            is_copied: rejected == Some(identification)
                && identification != 0
                && !self.ends.of(from).recent.is_complete(),
        };
        if let Some(finding) = reset_mid_transfer::rule(&facts) {
            self.cut = Some(Box::new((from, finding)));
        }
    }

    /// Handles a FIN, after the data before it: a server's may cut its response.
    pub(super) fn record_early_close(&mut self, segment: &Segment<'_>) {
        let may_end = self.reference.client.has_ended || self.ends.server.sender.has_hole(segment.tcp.seq);
        if segment.from == Side::Server && !may_end && self.conversation.is_response_cut() {
            let closed = Mark { at: segment.at, frame: segment.frame };
            let since = self.conversation.first_unanswered().unwrap_or(self.started);
            self.cut = Some(Box::new((Side::Server, reset_mid_transfer::closed_early(since, closed))));
        }
    }

    /// Returns the bytes of `side` that were not acknowledged, without control traffic after the last request. A SYN is no data: a reset
    /// of a half-open connection cuts nothing.
    fn unacknowledged(&self, side: Side) -> u64 {
        let EndState { sender, first_number, .. } = self.ends.of(side);
        let syn = first_number.is_some_and(|number| sender.position(number) == sender.acknowledged);
        let request_end = self.conversation.request_end().filter(|_| side == Side::Client);
        let sent = request_end.map_or(sender.next, |end| sender.next.min(end));
        sent.saturating_sub(sender.acknowledged + u64::from(syn))
    }

    /// Returns the sign that a reset by the server at `at` truncates what it sends. In TLS each side sends `close_notify` before it
    /// closes (RFC 8446, section 6.1), and no server closes an idle connection so soon. One that ends before it has read the client's
    /// last control traffic resets, too. In WebSocket each side sends a Close frame (RFC 6455, section 7.1.2). Elsewhere a message that
    /// ends with full segments alone is an exception.
    fn truncation(&self, at: Time) -> Option<&'static str> {
        const NOT_IDLE: Duration = Duration::from_secs(1);
        const TO_READ: Duration = Duration::from_millis(20);
        let is_recent = self.before == GapStart::Data(Side::Server) && at.since(self.last.at) < NOT_IDLE;
        let is_unread = |sent: Time| sent >= self.last.at && at.since(sent) < TO_READ;
        let is_read = !self.ends.client.sender.sent_last.is_some_and(is_unread);
        let EndState { sender, pieces, .. } = &self.ends.server;
        let is_full = *pieces == 0 && u64::from(sender.largest_flight) >= 2 * sender.mss.get();
        match self.conversation.tls() {
            Some(tls) => {
                (is_recent && is_read && tls.is_read() && tls.contents.server > 0 && !tls.has_closed.server)
                    .then_some(
                        "its data had just come, and TLS ends with a close_notify, which it did not send",
                    )
            }
            None if self.conversation.is_websocket_open() => {
                Some("no side had sent the Close frame with which WebSocket ends")
            }
            None => (is_recent && is_full && self.conversation.unanswered().is_none())
                .then_some("its last segments were full, so it had more to send"),
        }
    }

    /// Reports the reset, unless its sender had retransmitted its data in vain, or it left requests without a response.
    fn settle_cut(&mut self) {
        let Some(cut) = self.cut.take() else { return };
        if self.findings.times(Cause::ResetLostData) == 0 && self.findings.times(Cause::PeerVanished) == 0 {
            self.add(cut.1);
        }
    }

    /// Settles failures at the end of the connection.
    pub(super) fn settle_failures(&mut self) {
        for side in [Side::Client, Side::Server] {
            self.settle_stuck(side);
            self.settle_split(side);
        }
        self.settle_reported_mtu();
        self.settle_response_that_never_came();
        self.settle_cut();
        self.settle_tls();
        let error = self.conversation.error().map(|error| reset_mid_transfer::of_stream(&error));
        error.into_iter().for_each(|finding| self.add(finding));
    }

    fn settle_stuck(&mut self, from: Side) {
        let Some(stuck) = self.ends.of_mut(from).stuck.take() else { return };
        let peer = from.other();
        // A side that sends new data, or acknowledges some, still has its peer.
        let [own_sender, other_sender] = [from, peer].map(|side| &self.ends.of(side).sender);
        let continues = own_sender.next > stuck.next
            || stuck.is_needless && other_sender.progressed_at.is_some_and(|at| at > stuck.first.at);
        if continues || self.reference.of(peer).last_packet_at.is_none() {
            return;
        }
        let facts = self.stuck_facts(from, *stuck);
        if let Some(failure) = peer_vanished::rule(&facts).or_else(|| path_mtu::in_vain(&facts)) {
            self.find_failure(failure);
        }
    }

    /// Reports a sender that fell to smaller segments after a loss, unless its path is known to be narrow.
    fn settle_split(&mut self, from: Side) {
        let Some(split) = self.ends.of_mut(from).split.take() else { return };
        let largest = u64::from(self.ends.of(from).sender.mss.largest());
        let reported = self.small_mtu.as_deref().filter(|reported| reported.from == from);
        let failure = path_mtu::split(from, &split, largest, reported);
        if let Some(failure) = failure.filter(|_| self.findings.times(Cause::PathMtu) == 0) {
            self.find_failure(failure);
        }
    }

    /// Reports full segments that never came, though a later packet shows that they were sent.
    fn settle_response_that_never_came(&mut self) {
        let sender = &self.ends.server.sender;
        let largest = u64::from(sender.mss.largest());
        if let Some(missing) = sender.never_filled().filter(|_| largest < sender.mss.get()) {
            let finding = path_mtu::never_filled(missing, self.last_at, [largest, sender.mss.get()]);
            finding.into_iter().for_each(|finding| self.add(finding));
        }
        let Some(shown) = self.ends.server.sender.shown_alone() else { return };
        let request = self.conversation.first_unanswered().unwrap_or(self.started);
        let mss = self.ends.server.sender.mss.get();
        if let Some(finding) =
            path_mtu::never_came(request, shown, mss).filter(|_| self.is_largest(Side::Server, mss))
        {
            let time = self.findings.retract(Cause::ServerThink, Side::Client, request.at);
            self.account.transfer(Share::Stall(Cause::ServerThink), Share::Stall(Cause::PathMtu), time);
            self.add(finding);
        }
    }

    /// Reports an MTU that a router announced, if there is no other evidence.
    fn settle_reported_mtu(&mut self) {
        if let Some(small) = self.small_mtu.as_deref()
            && self.findings.times(Cause::PathMtu) == 0
        {
            self.add(path_mtu::reported(small, self.started.at, self.last_at));
        }
    }

    /// Replaces the findings of losses since it began by a failure.
    fn find_failure(&mut self, failure: Finding) {
        let Finding { cause, side, at, .. } = failure;
        let mut retracted = Duration::ZERO;
        for loss in [Cause::RetransmissionTimeout, Cause::FastRetransmit, Cause::TailLossProbe] {
            let time = self.findings.retract(loss, side, at);
            self.account.transfer(Share::Stall(loss), Share::Stall(cause), time);
            retracted += time;
        }
        self.add(Finding { saving: (cause == Cause::PathMtu).then_some(retracted), ..failure });
    }
}
