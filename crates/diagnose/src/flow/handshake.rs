//! The handshake: the side that opens, the negotiated options, and the window scale if the capture has truncated it.

use dissect::clock;
use dissect::sender::SequenceRelation;
use dissect::{Both, Mark, Segment, Side, window_scale};
use wire::Duration;
use wire::packet::Flags;

use crate::gap::{Gap, GapEnd, GapStart};

use super::Flow;
use super::state::{Handshake, ScaleOffer};

impl Flow {
    /// Reads the options of a SYN.
    pub(super) fn handle_syn(&mut self, segment: &Segment<'_>) {
        let Segment { from, options, .. } = *segment;
        self.ends.of_mut(from.other()).sender.mss.offered = options.mss;
        self.ends.of_mut(from).sender.mss.accepted = options.mss;
        let end = self.ends.of_mut(from);
        let offer = match (options.window_scale, options.is_cut) {
            (Some(bits), _) => ScaleOffer::Bits(bits),
            (None, false) => ScaleOffer::No,
            (None, true) => ScaleOffer::Unknown,
        };
        (end.first_number, end.scale_offer, end.first_window) =
            (Some(segment.tcp.seq), offer, Some(segment.tcp.window));
        end.refuses_sack = !options.is_sack_permitted && !options.is_cut;
        let Both { client, server } = &mut self.ends;
        // Windows are scaled only if both sides offered it (RFC 7323).
        (client.scale, server.scale) = match (client.scale_offer, server.scale_offer) {
            (ScaleOffer::Bits(client), ScaleOffer::Bits(server)) => (Some(client), Some(server)),
            (ScaleOffer::No, _) | (_, ScaleOffer::No) => (Some(0), Some(0)),
            (ScaleOffer::Unknown, _) | (_, ScaleOffer::Unknown) => (None, None),
        };
    }

    /// Returns whether it is a second SYN/ACK to the same SYN with another sequence number: a middlebox, or another
    /// server, replied, too. The client has accepted the first one (RFC 9293, section 3.10.7.4).
    pub(super) fn is_of_another_responder(&self, segment: &Segment<'_>) -> bool {
        let Handshake { opened, answered: Some(answered), is_done: _ } = self.handshake else { return false };
        let first = self.ends.server.first_number;
        segment.from == Side::Server
            && segment.has(Flags::SYN)
            && first.is_some_and(|first| first != segment.tcp.seq)
            && opened.is_none_or(|opened| opened.frame < answered.frame)
    }

    /// Infers the window scale from the first window after a SYN, if the SYN was truncated.
    pub(super) fn infer_scale(&mut self, segment: &Segment<'_>) {
        if segment.has(Flags::SYN) {
            return;
        }
        let peer = &self.ends.of(segment.from.other()).sender;
        let received = peer.position(segment.tcp.ack).saturating_sub(peer.acknowledged);
        let end = self.ends.of_mut(segment.from);
        end.widest_field = end.widest_field.max(segment.tcp.window);
        if let (Some(first), None) = (end.first_window.take(), end.scale) {
            end.scale = window_scale::by_first_windows(first, segment.tcp.window, received);
        }
    }

    /// Infers the window scale, where the handshake was not captured: a sender stops where the window leaves less than a segment, round
    /// after round, and has never sent more. Few windows are there by chance: one in 65,536 values of an unscaled field. Of scaled ones
    /// one lies between any size and its double, so that it must be of many segments.
    pub(super) fn infer_scale_by_stops(&mut self, gap: &Gap) {
        const MIN_STOPS: u8 = 8;
        const MIN_SEGMENTS: u64 = 8;
        /// Largest shift (RFC 7323, section 2.3).
        const MAX_SHIFT: u8 = 14;
        let receiver = self.ends.of_mut(gap.wait.side.other());
        let field = u64::from(receiver.widest_field);
        let is_open = receiver.scale.is_none() && matches!(receiver.scale_offer, ScaleOffer::Unknown);
        if !is_open || gap.awaited().is_none() || gap.is_flowing() {
            return;
        }
        let Some(shift) = (0..=MAX_SHIFT).find(|shift| field << shift >= gap.largest_flight) else { return };
        if receiver.stops_at_field.0 != shift {
            receiver.stops_at_field = (shift, 0);
        }
        let is_telling = shift == 0 || gap.flight.bytes >= MIN_SEGMENTS * gap.mss;
        if is_telling && field << shift < gap.flight.bytes + gap.mss {
            receiver.stops_at_field.1 = receiver.stops_at_field.1.saturating_add(1);
            receiver.scale = (receiver.stops_at_field.1 >= MIN_STOPS).then_some(shift);
        }
    }

    /// Handles a segment of the handshake.
    pub(super) fn handle_handshake_segment(&mut self, segment: &Segment<'_>) {
        let Segment { from, at, frame, .. } = *segment;
        let sender = &mut self.ends.of_mut(from).sender;
        let start = sender.position(segment.tcp.seq);
        // Data carried by Fast Open counts with the SYN.
        // Minimum time after which a stack retransmits a SYN.
        const SOON: Duration = Duration::from_millis(150);
        let order = sender.send(
            start,
            start + 1 + segment.length(),
            Mark { at, frame },
            segment.identification,
            SOON,
        );
        let Handshake { opened, answered, is_done: _ } = self.handshake;
        let before = if from == Side::Client { opened } else { answered };
        let previous = match order {
            SequenceRelation::New => None,
            // A retransmitted SYN gets another SYN/ACK.
            _ if from == Side::Server && self.handshake.is_syn_retransmitted() => None,
            SequenceRelation::Filled(hole) => Some(Mark { at: hole.since, frame: hole.frame }),
            SequenceRelation::Retransmission(Some(sent)) => {
                before.or(Some(Mark { at: sent.last_sent_at, frame: sent.frame }))
            }
            // After the SYN/ACK, a SYN looks like a probe.
            SequenceRelation::Probe => before.filter(|before| at.since(before.at) >= SOON),
            SequenceRelation::Retransmission(None) | SequenceRelation::Twice => return,
        };
        // A retransmitted SYN gets another SYN/ACK; once data flows, no side waits for that.
        if !matches!(order, SequenceRelation::New)
            && self.handshake.is_done
            && matches!(self.before, GapStart::Data(_))
        {
            return;
        }
        // It echoes the client's last segment: that had arrived, and the server waits for data (TCP_DEFER_ACCEPT).
        let opened = self.ends.client.clock.first_value();
        let echo = segment.options.stamp.map(|stamp| stamp.echo);
        let has_reply = opened.zip(echo).is_some_and(|(opened, echo)| clock::is_later(echo, opened));
        if from == Side::Server && previous.is_some() && self.handshake.is_done && has_reply {
            return;
        }
        let mark = Mark { at, frame };
        let is_unanswered = self.handshake.answered.is_none() && self.ends.server.sender.next == 0;
        if from == Side::Client {
            if previous.is_some() && is_unanswered {
                self.record_repeated_syn(before.unwrap_or(self.last), mark);
            }
            self.handshake.opened = Some(mark);
        } else {
            if let (Some(opened), SequenceRelation::New) = (self.handshake.opened, order) {
                self.path.opened(from, at.since(opened.at));
            }
            self.handshake.answered = Some(mark);
            self.is_opened(mark);
        }
        self.close(segment, GapEnd::Handshake { previous });
        self.before = GapStart::Handshake(from);
    }
}

#[cfg(test)]
mod tests {
    use crate::report::VantagePoint;
    use crate::script::Script;

    /// Found on a simulated satellite path, captured at both ends: the retransmitted SYN reached the server's interface
    /// after data had been sent, and counted as a new connection.
    #[test]
    fn regress_copy_of_its_own_syn_opens_no_new_connection() {
        let lines = "0 C syn\n15 S syn\n30 C\n31 C send=100\n32 C reopen\n46 S send=500\n61 C";
        // There must be exactly one report.
        let report = Script { one_way_ms: 15.0, lines }.diagnose(VantagePoint::Client);
        assert_eq!((report.packets, report.is_whole), (7, true));
    }

    /// Found in a mobile network: two SYN/ACKs with different sequence numbers reply to one SYN.
    #[test]
    fn regress_syn_ack_of_another_responder_is_no_start_of_the_stream() {
        let lines = "0 C syn\n15 S syn\n15.5 S syn seq=16000000\n30 C ack=0\n31 C send=100 ack=0\n1046 S seq=0 send=500\n1061 C ack=500";
        let faults = Script { one_way_ms: 15.0, lines }.faults(VantagePoint::Client);
        assert_eq!(faults, [(crate::Cause::ServerThink, 1_000)]);
    }

    /// Flights of `flight` segments, each acknowledged as a whole, with this window; the handshake was not captured.
    fn rounds(flight: u32, window: u32) -> u64 {
        let mut lines = format!("0 C send=100 win={window}\n15 S send=1460\n30.1 C win={window}\n");
        for round in 0..16 {
            let at = f64::from(46 + 31 * round);
            (0..flight).for_each(|n| lines += &format!("{} S send=1460\n", at + 0.04 * f64::from(n)));
            lines += &format!("{} C win={window}\n", at + 15.5);
        }
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server);
        let limited = |count: &&crate::finding::Count| count.cause == crate::Cause::ReceiveWindowLimited;
        report.counts.iter().find(limited).map_or(0, |count| count.times)
    }

    #[test]
    fn sender_that_stops_at_the_field_each_time_shows_an_unscaled_window() {
        assert!(rounds(6, 6 * 1_460) >= 5);
        assert_eq!((rounds(6, 8 * 1_460), rounds(6, 502)), (0, 0));
    }

    #[test]
    fn sender_that_stops_at_a_multiple_of_the_field_each_time_shows_the_scale() {
        let field = (12 * 1_460_u32).div_ceil(32);
        assert!(rounds(12, field) >= 5);
        assert_eq!(rounds(12, field * 3 / 2), 0, "room for more");
        assert_eq!(rounds(5, (5 * 1_460_u32).div_ceil(32)), 0, "few segments may be there by chance");
    }
}
