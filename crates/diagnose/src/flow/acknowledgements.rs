//! Acknowledgements: evidence of the path and of windows, echoed timestamps, and probes.

use dissect::clock::{self, Stamp};
use dissect::sender::AckStamp;
use dissect::{Mark, Segment, Side};
use wire::packet::Flags;

use crate::cause::Cause;
use crate::gap::{GapEnd, GapStart};
use trace::account::Share;

use super::Flow;
use super::state::{EndState, Suspect};

/// Clause on the packet that was lost, if the data of a retransmission had arrived before.
const REPLY_LOST: &str = "; it had arrived before (TSecr), and a packet of the other side had not, as IP IDs show: the acknowledgement, \
                          or the response with it, was lost";

/// Returns the window in a segment; `None` if its scale is unknown and it is not closed. That of a SYN is not scaled.
fn offered(segment: &Segment<'_>, scale: Option<u8>) -> Option<u32> {
    match (u32::from(segment.tcp.window), scale) {
        (window, _) if segment.has(Flags::SYN) => Some(window),
        (window, Some(bits)) => Some(window << bits),
        (0, None) => Some(0),
        (_, None) => None,
    }
}

impl Flow {
    /// Measures how far a side is by the timestamps that it echoes (RFC 7323, section 4.1), where the handshake was not captured.
    fn time_by_stamps(&mut self, segment: &Segment<'_>) {
        let Segment { from, at, .. } = *segment;
        let Some(Stamp { value, echo }) = segment.options.stamp else { return };
        if self.handshake.opened.is_some() || self.handshake.answered.is_some() {
            return;
        }
        let pending = &mut self.ends.of_mut(from.other()).stamped;
        if let Some((sent, passed)) = pending.take_if(|(sent, _)| !clock::is_later(*sent, echo))
            && sent == echo
        {
            self.path.echoed_stamp(from, at.since(passed));
        }
        self.ends.of_mut(from).stamped.get_or_insert((value, at));
    }

    /// Handles the acknowledgement in a segment, and the window with it.
    pub(super) fn handle_ack(&mut self, segment: &Segment<'_>) {
        let Segment { from, at, frame, .. } = *segment;
        self.time_by_stamps(segment);
        self.infer_scale(segment);
        let window = offered(segment, self.ends.of(from).scale);
        let peer = self.ends.of_mut(from.other());
        let to = peer.sender.position(segment.tcp.ack);
        if !peer.sender.is_seen && peer.sender.next == 0 {
            peer.sender.jump(to);
            (peer.sender.acknowledged, peer.sender.known) = (to, to);
        }
        // A position that no sender can have reached is an invalid acknowledgement.
        const FURTHEST: u64 = 1 << 30;
        if to > peer.sender.next + FURTHEST {
            return;
        }
        let behind = segment.options.sack.map(|(_, end)| peer.sender.position(end));
        let is_sacked = segment.options.is_sack_cut || behind.is_some_and(|end| end > to);
        if to > peer.sender.next || peer.sender.covers_shown(to) {
            let bytes = peer.sender.jump(to);
            self.oddities.not_captured += 1;
            self.unseen(from.other(), segment, bytes);
        }
        self.follow_unseen_hole(from.other(), is_sacked, Mark { at, frame });
        if !segment.has(Flags::SYN) {
            self.track_window(from.other(), to, window, Mark { at, frame });
        }
        let peer = self.ends.of_mut(from.other());
        let had = (peer.sender.acknowledged, peer.sender.window);
        // With an unknown scale a window is at least as large as its field.
        let least = to + u64::from(segment.tcp.window);
        peer.edges = [peer.edges[1], least.max(peer.edges[1])];
        self.acquit(segment, had.0, to);
        let stamp = self.echoed_stamp(segment);
        let peer = self.ends.of_mut(from.other());
        let ack = peer.sender.acknowledge(to, window, Mark { at, frame }, stamp);
        let is_of_unseen = self.echoes_unseen(segment);
        let peer = self.ends.of_mut(from.other());
        let ack = ack.and_then(|ack| if is_of_unseen { peer.sender.is_of_unseen() } else { Some(ack) });
        if ack.is_none_or(|ack| ack.bytes == 0) {
            // With a SACK option the window may change, too.
            let has_sack = segment.options.sack.is_some() || segment.options.is_sack_cut;
            let is_repeated = !segment.carries() && to == had.0 && (window == had.1 || has_sack);
            if is_repeated && peer.sender.next > to {
                peer.sender.acknowledge_duplicate(is_sacked, Mark { at, frame }, stamp);
            }
            return;
        }
        if is_sacked {
            peer.sender.mark_sacked();
        }
        if let Some(ack) = ack {
            self.acknowledge_repeated(from.other(), ack.to, Mark { at, frame });
            let bytes = u64::from(ack.bytes);
            let is_at_once = bytes >= 2 * self.ends.of(from.other()).sender.mss.get();
            if let Some(after) = ack.round_trip(segment.carries()) {
                self.reference.of_mut(from).timeout = segment.carries().then(|| self.path.usual_timeout());
                self.path.answered(from, after);
                if is_at_once {
                    self.path.acknowledged_immediately(from, after);
                }
            }
            let is_delayed = self.lateness(from, &ack).is_some();
            let peer = self.ends.of_mut(from.other());
            peer.sender.pace.acknowledged(at, bytes, ack.to, peer.sender.next, is_delayed);
            peer.last_ack_at = Some(at);
        }
    }

    /// Remembers a retransmission that an acknowledgement may show to be spurious.
    pub(super) fn suspect(&mut self, segment: &Segment<'_>, start: u64, stop: u64) {
        let suspect = &mut self.ends.of_mut(segment.from).suspect;
        match suspect.as_deref_mut().filter(|suspect| suspect.start == start && !suspect.is_covered) {
            Some(suspect) => suspect.is_repeated = true,
            None => {
                let stamp = segment.options.stamp.map(|stamp| stamp.value);
                let (is_repeated, is_covered) = (false, false);
                *suspect = Some(Box::new(Suspect {
                    start,
                    stop,
                    stamp,
                    frame: segment.frame,
                    is_repeated,
                    is_covered,
                }));
            }
        }
    }

    /// Retracts the finding of a retransmission if the original had arrived, so that nothing was lost. A duplicate SACK
    /// shows it (RFC 2883), if the data was retransmitted once. So does an acknowledgement of its data that echoes an
    /// earlier timestamp (RFC 3522), if all data before it had been acknowledged. Otherwise an earlier segment of the same
    /// acknowledgement may be the one echoed (RFC 7323, section 4.1). Where IP IDs show that a packet of the other side did not
    /// pass before this, that was the loss: the acknowledgement, or the response with it.
    fn acquit(&mut self, segment: &Segment<'_>, had: u64, to: u64) {
        let side = segment.from.other();
        let EndState { sender, suspect, .. } = self.ends.of_mut(side);
        let Some(retransmission) = suspect.as_deref_mut() else { return };
        let Suspect { start, stop, stamp, frame, is_repeated, is_covered } = *retransmission;
        if to <= start {
            return;
        }
        retransmission.is_covered = true;
        let echo = segment.options.stamp.map(|stamp| stamp.echo);
        let is_earlier = stamp.zip(echo).is_some_and(|(stamp, echo)| clock::is_later(stamp, echo));
        let is_of_original = !is_covered && had == start && to >= stop && is_earlier;
        let block = segment.options.sack.map(|(from, end)| (sender.position(from), sender.position(end)));
        let is_duplicate = block.is_some_and(|(from, end)| from <= start && stop <= end && end <= to);
        let causes: &[Cause] = match (is_of_original, is_duplicate && !is_repeated) {
            (_, true) => &[Cause::RetransmissionTimeout, Cause::TailLossProbe, Cause::FastRetransmit],
            (true, false) => &[Cause::RetransmissionTimeout, Cause::TailLossProbe],
            (false, false) => return,
        };
        *suspect = None;
        if is_of_original && segment.carries() && self.reference.of(segment.from).skipped > 0 {
            self.findings.explain(Cause::RetransmissionTimeout, frame, REPLY_LOST);
            return;
        }
        for cause in causes {
            let time = self.findings.retract_shown_by(*cause, frame);
            self.account.transfer(Share::Stall(*cause), Share::RoundTrip, time);
        }
    }

    /// Learns whether the sender of a segment echoes the stamps of acknowledgements without data.
    pub(super) fn observe_echo(&mut self, segment: &Segment<'_>, stamp: Stamp) {
        let own = self.ends.of_mut(segment.from);
        own.sender.echoes_bare |= own.data_stamp.is_some_and(|data| clock::is_later(stamp.echo, data));
        let apart = segment.at.since(self.last.at);
        let is_one_tick = own.clock.is_one_tick(segment.at, stamp.value, apart);
        let peer = self.ends.of_mut(segment.from.other());
        let is_together = is_one_tick && peer.data_stamp == Some(stamp.value);
        if peer.newest_stamp.is_none_or(|newest| clock::is_later(stamp.value, newest)) {
            peer.newest_stamp = Some(stamp.value);
        }
        if segment.carries() {
            peer.data_stamp = peer.newest_stamp;
        }
        self.ends.of_mut(segment.from).is_together = is_together;
    }

    /// Returns whether a segment echoes a later timestamp than any captured: it responds to a packet that was not
    /// captured.
    pub(super) fn echoes_unseen(&self, segment: &Segment<'_>) -> bool {
        let newest = self.ends.of(segment.from).newest_stamp;
        segment.options.stamp.zip(newest).is_some_and(|(stamp, newest)| clock::is_later(stamp.echo, newest))
    }

    /// Returns the timestamp of an acknowledgement, if its receiver may echo it from then on: it must be in order there
    /// (RFC 7323, section 4.3).
    fn echoed_stamp(&self, segment: &Segment<'_>) -> Option<AckStamp> {
        let sender = &self.ends.of(segment.from).sender;
        let is_in_order = sender.position(segment.tcp.seq) <= sender.acknowledged;
        let stamp = segment.options.stamp.filter(|_| is_in_order);
        stamp.map(|stamp| AckStamp { value: stamp.value, is_bare: !segment.carries() })
    }

    /// Handles a segment without data.
    pub(super) fn handle_bare_ack(&mut self, segment: &Segment<'_>) {
        let mark = Mark { at: segment.at, frame: segment.frame };
        let is_last =
            segment.from == Side::Client && self.handshake.answered.is_some() && !self.handshake.is_done;
        if is_last {
            self.close(segment, GapEnd::Handshake { previous: None });
            self.before = GapStart::Handshake(Side::Client);
            self.handshake.is_done = true;
            self.set_up(mark);
            return;
        }
        let own = &mut self.ends.of_mut(segment.from).sender;
        own.show_sent(segment.tcp.seq, mark, segment.identification);
        if own.is_probed_by(segment.tcp.seq) {
            self.record_window_probe(segment.from);
        }
        self.note_own_ack(segment);
    }

    /// Notes an acknowledgement of everything received, without a message.
    pub(super) fn note_own_ack(&mut self, segment: &Segment<'_>) {
        let mark = Mark { at: segment.at, frame: segment.frame };
        let covers_all = self.has_messages(segment.from);
        let late = self.ends.of(segment.from).late;
        let own = &mut self.reference.of_mut(segment.from).own_ack;
        if covers_all && own.is_none() {
            *own = Some((mark, late));
            self.reference.of_mut(segment.from).own_ack_stamp =
                segment.options.stamp.map(|stamp| stamp.value);
        }
    }
}
