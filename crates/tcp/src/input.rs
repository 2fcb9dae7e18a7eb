//! Processing of received segments (RFC 9293, section 3.10.7): handshake, acknowledgement, data, FIN, reset.
//!
//! Replies are computed by `output` when it is polled.

use wire::{Duration, Time};

use crate::ack_info::AckInfo;
use crate::acks::ArrivedData;
use crate::config::Estimator;
use crate::connection::Connection;
use crate::idle::MIN_SEGMENTS;
use crate::interface::{Failure, State};
use crate::receive::Arrival;
use crate::segment::Segment;

impl Connection {
    /// Handles a received segment.
    pub(super) fn handle_segment(&mut self, now: Time, segment: &Segment) {
        match self.state {
            State::Closed => {}
            State::Listen => self.handle_in_listen(now, segment),
            State::SynSent => self.handle_in_syn_sent(now, segment),
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => self.handle_synchronized(now, segment),
        }
        self.last_received = now;
    }

    fn handle_in_listen(&mut self, now: Time, segment: &Segment) {
        if !segment.flags.syn || segment.flags.ack || segment.flags.rst {
            return;
        }
        self.state = State::SynReceived;
        self.begin(now, segment);
        let options = segment.options.syn.as_deref().copied().unwrap_or_default();
        self.is_early = self.trusts_syn(&options);
        if !self.is_early {
            self.pending.syn = true;
            return;
        }
        self.events.connected = true;
        self.cache_count();
        // Data of a trusted SYN lies in the window, although none was advertised.
        self.receiver.advertised(self.receiver.window(self.negotiated.mss));
        self.process_data(now, segment);
        if self.delays_syn_ack() {
            self.acks.postpone(now);
        } else {
            self.pending.syn = true;
        }
    }

    fn handle_in_syn_sent(&mut self, now: Time, segment: &Segment) {
        let acknowledges_syn = segment.flags.ack && (1..=self.next.max(1)).contains(&segment.acknowledgement);
        if segment.flags.rst {
            if acknowledges_syn {
                self.fail(Failure::Refused);
            }
            return;
        }
        if !segment.flags.syn || !acknowledges_syn {
            return;
        }
        self.begin(now, segment);
        self.acknowledge_syn(now, segment);
        self.mark_early_data_unsent(segment.acknowledgement);
        self.become_established();
        self.acks.acknowledge_now();
        self.process_acknowledgement(now, segment);
        if !self.is_over() {
            self.process_data(now, segment);
        }
    }

    /// Marks data sent with the SYN as unsent if the peer did not accept it: it is retransmitted within the negotiated
    /// segment size and window.
    fn mark_early_data_unsent(&mut self, acknowledged: u64) {
        if acknowledged < self.next {
            self.flight.clear();
            if acknowledged > 1 {
                self.flight.push(1, acknowledged, self.last_sent);
            }
            self.next = acknowledged;
            self.timed_segment = None;
        }
        if self.flight.is_empty() {
            self.timer.stop();
        }
    }

    /// Negotiates options with the peer's SYN: those that both ends enable apply from now on.
    fn begin(&mut self, now: Time, syn: &Segment) {
        let offers = syn.options.syn.as_deref().copied().unwrap_or_default();
        self.negotiated.timestamps = self.config.timestamps && syn.options.timestamps.is_some();
        self.negotiated.sack = self.wants_sack() && offers.sack_permitted;
        if let (true, Some(shift)) = (self.config.window_scaling, offers.window_scale) {
            (self.negotiated.scale, self.negotiated.peer_scale) =
                (self.config.receive_buffer.scale(), shift.min(14));
            self.negotiated.scales = true;
        }
        self.negotiate_mss(offers.mss);
        self.record_timestamp(syn);
        self.read_handshake_options(&offers);
        self.receiver.begin(syn.sequence + 1);
        self.set_peer_window(syn, u64::from(syn.window));
        self.last_received = now;
    }

    fn handle_synchronized(&mut self, now: Time, segment: &Segment) {
        let next = self.receiver.next();
        if segment.flags.rst {
            if (next..=self.receiver.edge().max(next)).contains(&segment.sequence) {
                self.reset_by_peer();
            }
            return;
        }
        if segment.flags.syn {
            return self.handle_unexpected_syn();
        }
        if !segment.flags.ack {
            return;
        }
        self.persist.tries = 0;
        let is_acceptable = segment.end() >= next && segment.sequence <= self.receiver.edge().max(next);
        let is_empty_and_old = segment.length() == 0 && segment.sequence < next;
        if !is_acceptable || is_empty_and_old {
            // Old, beyond the window, or a probe: respond with the current acknowledgement.
            self.acks.acknowledge_now();
        } else {
            self.record_timestamp(segment);
        }
        if self.unacknowledged == 0 && segment.acknowledgement >= 1 {
            self.complete_handshake(now, segment);
        }
        self.process_acknowledgement(now, segment);
        if !self.is_over() {
            self.process_data(now, segment);
        }
    }

    /// Handles a repeated SYN: our SYN-ACK, or our acknowledgement of the peer's, was lost.
    fn handle_unexpected_syn(&mut self) {
        if self.unacknowledged == 0 {
            self.pending.syn = true;
        } else {
            self.acks.acknowledge_now();
        }
    }

    fn reset_by_peer(&mut self) {
        match self.state {
            State::TimeWait | State::Closing | State::LastAck => self.complete_close(),
            State::Closed
            | State::Listen
            | State::SynSent
            | State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait => self.fail(Failure::Reset),
        }
    }

    /// Handles the acknowledgement of a server's SYN.
    fn complete_handshake(&mut self, now: Time, segment: &Segment) {
        self.acknowledge_syn(now, segment);
        self.cache_count();
        if !self.is_early {
            self.window.open_by_handshake();
        }
        if self.state == State::SynReceived {
            self.become_established();
        }
    }

    /// Enters ESTABLISHED, or FIN-WAIT-1 if the FIN was sent with the SYN, and notifies the application.
    fn become_established(&mut self) {
        let is_fin_sent = self.pending.fin && self.next > self.send.end();
        self.state = if is_fin_sent { State::FinWait1 } else { State::Established };
        self.events.connected |= !self.is_early;
    }

    /// Handles the acknowledgement of our SYN.
    fn acknowledge_syn(&mut self, now: Time, segment: &Segment) {
        if self.unacknowledged > 0 {
            return;
        }
        self.unacknowledged = 1;
        let echo =
            segment.options.timestamps.filter(|_| self.negotiated.timestamps).map(|stamps| stamps.echo);
        if echo != Some(self.first_timestamp) {
            // The first was lost, not late.
            self.window.start_after_timeouts(self.timer.backoff());
        }
        if self.timer.backoff() == 0
            && let Some(timed_segment) = self.timed_segment.take()
        {
            self.timer.record_round_trip(timed_segment.at, now);
        }
        self.timed_segment = None;
        self.timer.reset_backoff();
        if self.flight.is_empty() {
            self.timer.stop();
        }
    }

    fn process_acknowledgement(&mut self, now: Time, segment: &Segment) {
        let number = segment.acknowledgement;
        if number > self.next {
            // Acknowledges data never sent.
            return self.acks.acknowledge_now();
        }
        let window = u64::from(segment.window) << self.negotiated.peer_scale;
        let is_new_sack = self.process_sack(segment);
        if number > self.unacknowledged {
            self.acknowledge(now, segment);
        } else if number == self.unacknowledged {
            let is_duplicate = segment.length() == 0 && window == self.peer.size && !self.flight.is_empty();
            if is_duplicate || is_new_sack {
                self.duplicate(is_new_sack);
            }
        }
        self.update_rack(now);
        // Lexicographic: later data first, then later acknowledgements (RFC 9293, 3.10.7.4), then wider windows, as in
        // BSD and Linux. The same numbers with a smaller window belong to an old segment.
        if (segment.sequence, number, window)
            > (self.peer.updated_by.0, self.peer.updated_by.1, self.peer.size)
        {
            self.set_peer_window(segment, window);
        }
    }

    fn process_sack(&mut self, segment: &Segment) -> bool {
        let mut is_new_sack = false;
        for (start, end) in segment.options.sack.ranges(segment.acknowledgement) {
            is_new_sack |= self.flight.sack(start, end);
        }
        is_new_sack
    }

    /// Handles a new acknowledgement.
    fn acknowledge(&mut self, now: Time, segment: &Segment) {
        let number = segment.acknowledgement;
        let bytes = number - self.unacknowledged;
        if self.pacer.stop() {
            let paced = self.next - self.unacknowledged;
            self.window.limit(paced.max(MIN_SEGMENTS * self.negotiated.mss));
        }
        let taken = self.flight.acknowledge(number);
        self.unacknowledged = number;
        self.send.release(number);
        let round_trip = self.measure(now, taken.sent, segment);
        self.timer.reset_backoff();

        let segments = taken.segments;
        let info = AckInfo { bytes, segments, number, next: self.next, round_trip };
        self.window.observe(now, &info);
        let may_grow = self.recover(bytes);
        let is_used = !self.config.congestion.cwnd_validation
            || self.usage.allows_growth(self.window.cwnd(), self.window.is_slow_start());
        if may_grow && is_used {
            self.window.grow(now, info);
        }
        if self.flight.is_empty() {
            self.timer.stop();
        } else {
            self.timer.start(now);
        }
        if self.pending.fin && number > self.send.end() {
            self.acknowledge_fin(now);
        }
    }

    /// Measures a round trip where possible, and the number of segments sent during it.
    fn measure(&mut self, now: Time, sent: Option<Time>, segment: &Segment) -> Option<Duration> {
        if let Some(timed_segment) = self.timed_segment
            && segment.acknowledgement >= timed_segment.end
        {
            self.timed_segment = None;
            let is_application_limited = self.next >= self.send.end() && !self.send.is_blocked();
            self.pacer.measure(timed_segment.segments, now.since(timed_segment.at), is_application_limited);
            match self.config.rto.estimator {
                Estimator::Coarse(_) => self.timer.record_round_trip(timed_segment.at, now),
                Estimator::Fine | Estimator::FineVariation => {}
            }
        }
        let echoed = segment.options.timestamps.filter(|_| self.negotiated.timestamps);
        let echoed = echoed.map(|timestamps| Time::ZERO + Duration::from_millis(u64::from(timestamps.echo)));
        let sent = sent.or(echoed)?;
        match self.config.rto.estimator {
            Estimator::Coarse(_) => {}
            Estimator::Fine | Estimator::FineVariation => self.timer.record_round_trip(sent, now),
        }
        Some(now.since(sent))
    }

    fn acknowledge_fin(&mut self, now: Time) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.is_orphan {
                    // No application reads any more: the peer may finish within the duration of TIME_WAIT.
                    self.time_wait_deadline = Some(now + self.config.termination.time_wait);
                }
            }
            State::Closing => self.begin_time_wait(now),
            State::LastAck => self.complete_close(),
            State::Closed
            | State::Listen
            | State::SynSent
            | State::SynReceived
            | State::Established
            | State::FinWait2
            | State::CloseWait
            | State::TimeWait => {}
        }
    }

    fn begin_time_wait(&mut self, now: Time) {
        self.state = State::TimeWait;
        self.timer.stop();
        self.time_wait_deadline = Some(now + self.config.termination.time_wait);
    }

    fn set_peer_window(&mut self, segment: &Segment, window: u64) {
        let number = if segment.flags.ack { segment.acknowledgement } else { self.unacknowledged };
        self.peer.updated_by = (segment.sequence, number);
        self.peer.size = window;
        self.peer.edge = number.max(1) + window;
        self.peer.largest = self.peer.largest.max(window);
        if window > 0 {
            self.persist.deadline = None;
        }
    }

    /// Handles data and FIN.
    fn process_data(&mut self, now: Time, segment: &Segment) {
        let start = segment.sequence + u64::from(segment.flags.syn);
        if !segment.payload.is_empty() {
            self.process_payload(now, start, segment);
        }
        let is_end = segment.flags.fin && !self.is_over();
        if is_end {
            self.receiver.record_fin(start + segment.payload.len() as u64);
        }
        if self.receiver.consume_fin() {
            self.handle_end_of_stream(now);
        } else if is_end {
            self.acks.acknowledge_now();
        }
    }

    fn process_payload(&mut self, now: Time, start: u64, segment: &Segment) {
        let is_reading =
            matches!(self.state, State::SynReceived | State::Established | State::FinWait1 | State::FinWait2);
        let is_new = start + segment.payload.len() as u64 > self.receiver.next();
        if self.is_orphan && is_reading && is_new {
            // No application will read it (RFC 1122, section 4.2.2.13).
            self.pending.reset = true;
            return self.complete_close();
        }
        let before = self.receiver.next();
        match self.receiver.accept(start, &segment.payload) {
            Arrival::InOrder => {
                let arrived = ArrivedData {
                    bytes: self.receiver.next() - before,
                    is_pushed: segment.flags.psh,
                    rto: self.timer.timeout(),
                    round_trip: self.timer.smoothed(),
                };
                self.acks.arrive(now, arrived, &self.receiver);
            }
            Arrival::OutOfOrder => {
                let (round_trip, has_sack) = (self.timer.smoothed(), self.negotiated.sack);
                self.acks.arrive_out_of_order(now, &self.receiver, round_trip, has_sack);
            }
            Arrival::Old | Arrival::FilledGap => self.acks.acknowledge_now(),
        }
        self.events.readable |= self.receiver.next() > before;
    }

    /// Handles the end of the stream: all data and the FIN have arrived.
    fn handle_end_of_stream(&mut self, now: Time) {
        self.events.peer_finished = true;
        match self.state {
            State::SynReceived | State::Established => {
                self.state = State::CloseWait;
                // Transactions are not Linux's: they acknowledge by their own rules.
                if !self.delays_syn_ack() {
                    return self.acks.acknowledge_end(now);
                }
            }
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.begin_time_wait(now),
            State::Closed
            | State::Listen
            | State::SynSent
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => {}
        }
        self.acks.acknowledge_now();
    }

    fn record_timestamp(&mut self, segment: &Segment) {
        if let Some(timestamps) = segment.options.timestamps
            && (segment.flags.syn || segment.sequence <= self.receiver.next())
        {
            self.echo = timestamps.value;
        }
    }
}
