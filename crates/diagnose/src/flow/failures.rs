//! Connections that fail after they were opened: cut by a reset, abandoned by a peer, stuck on a path with a small MTU.

use core::net::IpAddr;

use dissect::sender::{Hole, SentSegment};
use dissect::{Mark, Segment, Side};
use wire::packet::Flags;
use wire::{Duration, Time};

use crate::account::Share;
use crate::cause::Cause;
use crate::causes::reset_mid_transfer;
use crate::finding::{Confidence, Finding, Severity};
use crate::gap::{GapStart, counted, millis, packets};

use super::Flow;
use super::state::EndState;

/// The first unacknowledged data, while it is retransmitted repeatedly.
#[derive(Clone, Copy, Debug)]
pub(super) struct RepeatedRetransmission {
    /// Its first byte.
    start: u64,
    /// When it was first sent, and last.
    first: Mark,
    last: Mark,
    /// Number of times it was sent at its full length, and that length.
    times: u32,
    length: u64,
    /// Number of transmissions since its peer's last packet, and the time of the first of them.
    in_vain: u32,
    silent_since: Mark,
    /// Position up to which its sender had sent.
    next: u64,
    /// The first shorter transmission.
    shorter: Option<(Mark, u64)>,
    /// Whether it is acknowledged in the capture.
    is_needless: bool,
    /// The reset that ended it.
    reset: Option<(Side, Mark)>,
    /// Whether data sent together with it was acknowledged.
    has_small_arrived: bool,
}

/// A lost segment that its sender repeated in smaller pieces, seen at its receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct SplitRepair {
    /// When the loss showed, and the first piece.
    since: Mark,
    mark: Mark,
    /// Lengths of what was lost and of that piece.
    lost: u64,
    piece: u64,
}

/// An MTU that a router reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmallMtu {
    mark: Mark,
    mtu: u32,
    reporter: IpAddr,
    from: Side,
}

/// Number of transmissions after which the peer counts as vanished.
const MIN_VAIN_TRANSMISSIONS: u32 = 4;
const MIN_SILENCE: Duration = Duration::from_secs(1);
/// Number of transmissions of a full segment after which its size is suspect.
const TOO_LARGE: u32 = 3;

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

    /// Handles the repair of a hole by `piece`, its position and length: less than a second after a loss a sender has no
    /// reason to send smaller segments than before.
    pub(super) fn record_split_repair(&mut self, from: Side, hole: &Hole, piece: (u64, u64), mark: Mark) {
        const MIN_LOST: u64 = 1_000;
        let (start, lost) = hole.span();
        let since = Mark { at: hole.since, frame: hole.frame };
        let full = lost.min(self.ends.of(from).sender.mss.get());
        let is_split = piece.0 == start && piece.1 * 10 <= full * 6 && full >= MIN_LOST;
        if is_split && piece.1 > 0 && mark.at.since(since.at) >= MIN_SILENCE {
            let split = SplitRepair { since, mark, lost, piece: piece.1 };
            self.ends.of_mut(from).split.get_or_insert_with(|| Box::new(split));
        }
    }

    /// Reports a sender that fell to smaller segments after a loss, and from then on sent no larger one.
    fn settle_split(&mut self, from: Side) {
        let Some(split) = self.ends.of_mut(from).split.take() else { return };
        let SplitRepair { since, mark, lost, piece } = *split;
        let largest = u64::from(self.ends.of(from).sender.mss.largest());
        if largest * 10 > piece * 11 || self.findings.times(Cause::PathMtu) > 0 {
            return;
        }
        let evidence = format!(
            "{} of the {from} were missing (packet {}) until they came in pieces of {piece} (packet {}) {} later, and no              segment of more than {} ever came{}",
            counted(lost, "byte"),
            since.frame,
            mark.frame,
            millis(mark.at.since(since.at)),
            counted(largest, "byte"),
            self.reported_mtu(from)
        );
        self.find_failure(Cause::PathMtu, from, since, mark, vec![since.frame, mark.frame], evidence);
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
        let RepeatedRetransmission { first, times, length, shorter, .. } = *stuck;
        let Some((small, small_length)) = shorter else { return };
        let reported = self.small_mtu.as_ref().filter(|mtu| mtu.from == from);
        if (times >= TOO_LARGE || reported.is_some()) && self.is_largest(from, length) {
            let evidence = format!(
                "the {} sent {} (packet {}) {times} times in vain; in segments of {} (packet {}) they arrived (packet {}), \
                 and no segment as large ever did{}",
                from,
                counted(length, "byte"),
                first.frame,
                counted(small_length, "byte"),
                small.frame,
                mark.frame,
                self.reported_mtu(from)
            );
            self.find_failure(
                Cause::PathMtu,
                from,
                first,
                mark,
                vec![first.frame, small.frame, mark.frame],
                evidence,
            );
        }
    }

    /// Returns what a router reported about packets of `from`.
    fn reported_mtu(&self, from: Side) -> String {
        let reported = self.small_mtu.as_deref().filter(|reported| reported.from == from);
        reported.map_or_else(String::new, |SmallMtu { mark, mtu, reporter, from: _ }| {
            let size = if *mtu > 0 { format!(" of {mtu} bytes") } else { " that is smaller".to_owned() };
            format!(
                "; {reporter} reported an MTU{size} (ICMP \"fragmentation needed\", packet {})",
                mark.frame
            )
        })
    }

    /// Returns whether a segment of `length` bytes is full-sized on the wire, and none as large was acknowledged.
    fn is_largest(&self, from: Side, length: u64) -> bool {
        let end = self.ends.of(from);
        length <= end.sender.mss.get() && length > u64::from(end.sender.largest_arrived)
    }

    /// Records that a router reported a packet of `from` as larger than its link's MTU.
    pub(super) fn record_small_mtu(&mut self, from: Side, mark: Mark, mtu: u32, reporter: IpAddr) {
        self.small_mtu.get_or_insert_with(|| Box::new(SmallMtu { mark, mtu, reporter, from }));
    }

    /// Handles a reset in the middle of a transfer; called before it ends the connection.
    pub(super) fn record_cut(&mut self, segment: &Segment<'_>) {
        let Segment { from, at, frame, .. } = *segment;
        let peer = from.other();
        // A message that ends with the connection, and not by a FIN, is cut.
        let is_cut = |side| self.conversation.message_facts(side, &[]).is_within == Some(true);
        let is_read = self.conversation.unanswered().is_some();
        let [own_sender, other_sender] = [from, peer].map(|side| &self.ends.of(side).sender);
        let has_closed = self.reference.of(from).has_ended || self.reference.of(peer).has_ended;
        // A client that had closed before had given up: what comes then meets a closed socket.
        if from == Side::Client && self.reference.client.has_ended {
            return;
        }
        let unacknowledged = |side: Side| {
            let EndState { sender, first_number, .. } = self.ends.of(side);
            // A SYN is no data: a reset of a half-open connection cuts nothing.
            let syn = first_number.is_some_and(|number| sender.position(number) == sender.acknowledged);
            sender.next.saturating_sub(sender.acknowledged + u64::from(syn))
        };
        let incomplete = "its message was incomplete".to_owned();
        let is_truncated = from == Side::Server && !has_closed && self.is_response_truncated(at);
        let (cut, severity, what) = if is_truncated {
            let what = "its data had just come, and TLS ends with a close_notify, which it did not send";
            (from, Severity::High, what.to_owned())
        } else if is_cut(peer) {
            (peer, Severity::High, incomplete)
        } else if is_cut(from) && !self.reference.of(from).has_ended {
            (from, Severity::High, incomplete)
        } else if is_read
            || has_closed
            || !own_sender.is_seen
            || !other_sender.is_seen
            || unacknowledged(peer) == 0
        {
            return;
        } else {
            // A program that closes with unread data also resets, but acknowledges the received data: it may not want
            // the rest. A reset without ACK denies that the connection exists.
            let is_denied = !segment.has(Flags::ACK);
            let is_refused = self.conversation.tls().is_some() && from == Side::Server;
            let severity = if is_denied || is_refused { Severity::High } else { Severity::Low };
            let bytes = unacknowledged(peer);
            let what = match is_denied {
                true => format!("{bytes} of its bytes were not acknowledged"),
                false => format!("{bytes} of its bytes were acknowledged by the reset alone"),
            };
            (peer, severity, what)
        };
        let since = self
            .ends
            .of(cut)
            .sender
            .sent
            .front()
            .map_or(self.last, |sent| Mark { at: sent.at, frame: sent.frame });
        let reset = Mark { at, frame };
        let what = what + &self.sign_of_a_firewall(segment);
        let confidence = if severity == Severity::Low { Confidence::Low } else { Confidence::Medium };
        self.cut =
            Some(Box::new(MidTransferReset { by: from, of: cut, severity, confidence, since, reset, what }));
    }

    /// Returns whether a reset by a TLS server at `at` truncates its response: each side sends `close_notify` before it closes
    /// (RFC 8446, section 6.1), and no server closes an idle connection so soon.
    fn is_response_truncated(&self, at: Time) -> bool {
        const NOT_IDLE: Duration = Duration::from_secs(1);
        let is_recent = self.before == GapStart::Data(Side::Server) && at.since(self.last.at) < NOT_IDLE;
        let tls = self.conversation.tls();
        is_recent && tls.is_some_and(|tls| tls.is_read() && tls.contents.server > 0 && !tls.has_closed.server)
    }

    /// Returns a clause on a reset that the host itself did not send: a firewall copies the IP ID of the packet that it
    /// rejects, and its own packets have passed fewer or more routers than those of the host.
    fn sign_of_a_firewall(&self, segment: &Segment<'_>) -> String {
        /// Routes may differ by this many routers.
        const ROUTES: u8 = 2;
        let Segment { from, identification, hop_limit, .. } = *segment;
        let own = self.path.hop_limit(from).filter(|own| own.abs_diff(hop_limit) > ROUTES);
        let rejected = self.ends.of(from.other()).recent.last_identification();
        // A host that numbers its packets has numbered the reset, too.
        let is_copied = rejected == Some(identification) && !self.ends.of(from).recent.is_complete();
        match (own, is_copied && identification != 0) {
            (_, true) => format!(
                "; the reset has the IP ID of the {}'s last packet: a firewall or NAT sent it, not the {from}",
                from.other()
            ),
            (Some(own), false) => format!(
                "; the reset has a TTL of {hop_limit}, the {from}'s other packets one of {own}: a firewall or NAT probably \
                 sent it, not the {from}"
            ),
            (None, false) => String::new(),
        }
    }

    /// Reports the reset, unless its sender had retransmitted its data in vain, or it left requests without a response.
    fn settle_cut(&mut self) {
        let Some(cut) = self.cut.take() else { return };
        let MidTransferReset { by, of, severity, confidence, since, reset, what } = *cut;
        if self.findings.times(Cause::ResetLostData) > 0 || self.findings.times(Cause::PeerVanished) > 0 {
            return;
        }
        let lost = reset.at.since(since.at);
        self.add(Finding {
            cause: Cause::ResetMidTransfer,
            severity,
            confidence,
            side: of,
            at: since.at,
            lost,
            saving: None,
            packets: vec![since.frame, reset.frame],
            evidence: format!(
                "the {by} reset the connection (packet {}) while the {of} was sending (packet {}): {what}",
                reset.frame, since.frame
            ),
        });
    }

    /// Settles failures at the end of the connection.
    pub(super) fn settle_failures(&mut self) {
        for side in [Side::Client, Side::Server] {
            self.settle_stuck(side);
            self.settle_split(side);
        }
        self.settle_reported_mtu();
        self.settle_cut();
        self.settle_tls();
        let error = self.conversation.error().map(|error| reset_mid_transfer::of_stream(&error));
        error.into_iter().for_each(|finding| self.add(finding));
    }

    fn settle_stuck(&mut self, from: Side) {
        let Some(stuck) = self.ends.of_mut(from).stuck.take() else { return };
        let RepeatedRetransmission {
            first,
            last,
            times,
            length,
            in_vain,
            silent_since,
            next,
            is_needless,
            reset,
            has_small_arrived,
            ..
        } = *stuck;
        let until = Mark { at: self.last_at, frame: last.frame };
        let peer = from.other();
        let distance = self.path.to(peer).unwrap_or_default();
        // A side that sends new data, or acknowledges some, still has its peer.
        let [own_sender, other_sender] = [from, peer].map(|side| &self.ends.of(side).sender);
        let continues = own_sender.next > next
            || is_needless && other_sender.progressed_at.is_some_and(|at| at > first.at);
        let Some(last_seen) = self.reference.of(peer).last_packet_at.filter(|_| !continues) else { return };
        let has_reset = self.cut.as_ref().is_some_and(|cut| cut.by == peer);
        let is_silent = last_seen <= last.at + distance && !has_reset;
        let is_too_large = times >= TOO_LARGE
            && last.at.since(first.at) >= MIN_SILENCE
            && length * 10 >= own_sender.mss.get() * 9
            && self.is_largest(from, length);
        // A peer that has nothing to acknowledge has not vanished.
        let is_size = is_too_large && has_small_arrived && !is_needless;
        if !is_size
            && in_vain >= MIN_VAIN_TRANSMISSIONS
            && last.at.since(silent_since.at) >= MIN_SILENCE
            && (is_silent || is_needless)
        {
            let ended = reset.map_or_else(String::new, |(by, reset)| {
                format!("; the {by} then reset the connection (packet {})", reset.frame)
            });
            let evidence = if is_needless {
                format!(
                    "the {from} retransmitted the same {} repeatedly ({}) though their acknowledgement \
                     passed here: what the {peer} sends does not reach it{ended}",
                    counted(length, "byte"),
                    packets(first.frame, last.frame)
                )
            } else {
                format!(
                    "the {from} sent {} {in_vain} times ({}) and received nothing more from the {peer}{}{ended}",
                    counted(length, "byte"),
                    packets(silent_since.frame, last.frame),
                    self.full_backlog(from, last_seen)
                )
            };
            let mut frames = vec![if is_needless { first.frame } else { silent_since.frame }, last.frame];
            frames.extend(reset.map(|(_, reset)| reset.frame));
            self.find_failure(Cause::PeerVanished, from, silent_since, until, frames, evidence);
        } else if is_too_large {
            let small = if has_small_arrived {
                "smaller ones sent together with them arrived".to_owned()
            } else {
                format!("the {peer} sent packets meanwhile")
            };
            let evidence = format!(
                "the {from} sent {length} bytes (packet {}) {times} times in vain, to the end (packet {}), though {small}; no \
                 segment as large ever arrived{}",
                first.frame,
                last.frame,
                self.reported_mtu(from)
            );
            self.find_failure(Cause::PathMtu, from, first, until, vec![first.frame, last.frame], evidence);
        }
    }

    /// Returns the other possible reason if the server has sent nothing since its SYN/ACK: its kernel drops the handshake's
    /// last segment and data of a connection for which the listen backlog has no space.
    fn full_backlog(&self, from: Side, last_seen: Time) -> String {
        let answered =
            self.handshake.answered.filter(|answered| from == Side::Client && last_seen <= answered.at);
        answered.map_or_else(String::new, |answered| {
            format!(
                "; the server has sent nothing since its SYN/ACK (packet {}): its listen backlog may be full",
                answered.frame
            )
        })
    }

    /// Reports an MTU that a router announced, if there is no other evidence.
    fn settle_reported_mtu(&mut self) {
        let Some((mark, from)) = self.small_mtu.as_ref().map(|small| (small.mark, small.from)) else {
            return;
        };
        let reported = self.reported_mtu(from);
        let within = Mark { at: mark.at.min(self.last_at).max(self.started.at), frame: mark.frame };
        if self.findings.times(Cause::PathMtu) > 0 {
            return;
        }
        self.add(Finding {
            cause: Cause::PathMtu,
            severity: Severity::Low,
            confidence: Confidence::High,
            side: from,
            at: within.at,
            lost: Duration::ZERO,
            saving: None,
            packets: vec![mark.frame],
            evidence: format!("a packet of the {from} was too big for the path, and it went on{reported}"),
        });
    }

    /// Replaces the findings of losses since `first` by a failure.
    fn find_failure(
        &mut self,
        cause: Cause,
        side: Side,
        first: Mark,
        until: Mark,
        packets: Vec<u64>,
        evidence: String,
    ) {
        let lost = until.at.since(first.at);
        let mut retracted = Duration::ZERO;
        for loss in [Cause::RetransmissionTimeout, Cause::FastRetransmit, Cause::TailLossProbe] {
            let time = self.findings.retract(loss, side, first.at);
            self.account.transfer(Share::Stall(loss), Share::Stall(cause), time);
            retracted += time;
        }
        self.add(Finding {
            cause,
            severity: Severity::most(cause),
            confidence: Confidence::High,
            side,
            at: first.at,
            lost,
            saving: (cause == Cause::PathMtu).then_some(retracted),
            packets,
            evidence,
        });
    }
}

/// A reset in the middle of a transfer.
#[derive(Debug)]
pub(super) struct MidTransferReset {
    by: Side,
    of: Side,
    severity: Severity,
    confidence: Confidence,
    since: Mark,
    reset: Mark,
    what: String,
}
