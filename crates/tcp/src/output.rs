//! Sending, one segment at a time (RFC 9293, section 3.8; Stevens vol. 2, chapter 26).
//!
//! In this order: a reset, a SYN, retransmissions, new data, a probe, a bare acknowledgement. Timers are in
//! `connection`; windows are computed elsewhere.

use wire::Time;

use crate::Payload;
use crate::config::{Counting, Idle, Nagle, Recovery};
use crate::connection::{Connection, TimedSegment};
use crate::interface::{Failure, Limit, State};
use crate::segment::{Flags, Options, SackBlocks, Segment, SynOptions, Timestamps};

impl Connection {
    /// Returns the next segment that should be sent now, if there is one.
    pub(super) fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if self.pending.reset {
            return Some(self.reset());
        }
        if self.pending.syn {
            return Some(self.syn(now));
        }
        match self.state {
            State::Closed | State::Listen | State::SynSent => return None,
            State::SynReceived if !self.is_early => return None,
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => {}
        }
        if self.next == 0 {
            return self.delayed_syn_ack(now);
        }
        if self.pending.tail_probe
            && let Some(segment) = self.tail_probe(now)
        {
            return Some(segment);
        }
        if let Some(segment) = self.retransmit(now).or_else(|| self.send_new(now)).or_else(|| self.probe(now))
        {
            return Some(segment);
        }
        self.acks.is_due().then(|| self.segment(now, self.next, Payload::EMPTY, Flags::default()))
    }

    fn reset(&mut self) -> Segment {
        self.pending.reset = false;
        Segment {
            sequence: self.next,
            acknowledgement: self.receiver.next(),
            window: 0,
            flags: Flags { rst: true, ack: true, ..Flags::default() },
            options: Options::default(),
            framing: self.config.handshake.framing(),
            payload: Payload::EMPTY,
        }
    }

    /// Returns the delayed SYN-ACK to a trusted SYN, once it can carry data or its delay has expired.
    fn delayed_syn_ack(&mut self, now: Time) -> Option<Segment> {
        let has_data = self.send.end() > 1 || self.pending.fin;
        (has_data || self.acks.is_due()).then(|| self.syn(now))
    }

    /// Returns a SYN or SYN-ACK. The first SYN of an early connection carries data; a retransmitted one does not.
    fn syn(&mut self, now: Time) -> Segment {
        self.pending.syn = false;
        let is_first = self.next == 0;
        self.next = self.next.max(1);
        if is_first {
            self.timed_segment = Some(TimedSegment { end: 1, at: now, segments: 1 });
            self.first_timestamp = self.timestamps(now).value;
        }
        if self.timer.deadline().is_none() {
            self.timer.start(now);
        }
        let is_syn_ack = self.is_server;
        let (payload, fin) =
            if is_first && self.is_early { self.early_data(now) } else { (Payload::EMPTY, false) };
        let flags = Flags { syn: true, ack: is_syn_ack, fin, ..Flags::default() };
        let mut syn = self.segment(now, 0, payload, flags);
        let wants_timestamps = if is_syn_ack { self.negotiated.timestamps } else { self.config.timestamps };
        let scales = if is_syn_ack { self.negotiated.scales } else { self.config.window_scaling };
        let (connection_count, fast_open) = self.handshake_options(is_syn_ack);
        let options = SynOptions {
            mss: Some(self.config.mss),
            window_scale: scales.then(|| self.config.receive_buffer.scale()),
            sack_permitted: if is_syn_ack { self.negotiated.sack } else { self.wants_sack() },
            connection_count,
            fast_open,
        };
        syn.options.timestamps = wants_timestamps.then(|| self.timestamps(now));
        syn.options.syn = Some(Box::new(options));
        syn
    }

    /// Returns the data for the first SYN: at most one segment, and whether the FIN follows it.
    fn early_data(&mut self, now: Time) -> (Payload, bool) {
        let bytes = (self.send.end() - 1).min(self.negotiated.mss);
        let fin = self.pending.fin && !self.send.is_blocked() && bytes == self.send.end() - 1;
        let end = 1 + bytes + u64::from(fin);
        let payload = if bytes > 0 { self.send.slice(1, 1 + bytes) } else { Payload::EMPTY };
        if end > 1 {
            self.flight.push(1, end, now);
            self.next = end;
            self.last_sent = now;
        }
        if fin {
            self.record_fin_sent();
        }
        (payload, fin)
    }

    /// Returns the first lost segment, if the window allows it or its retransmission is due regardless.
    fn retransmit(&mut self, now: Time) -> Option<Segment> {
        if !self.flight.has_lost() {
            return None;
        }
        let fits = self.in_flight() + self.negotiated.mss <= self.window.cwnd();
        if !fits && !self.pending.retransmission {
            return None;
        }
        self.pending.retransmission = false;
        let (start, end) = self.flight.retransmit_first_lost(now)?;
        if self.timer.deadline().is_none() {
            self.timer.start(now);
        }
        Some(self.data(now, start, end))
    }

    /// Returns new data, or the FIN, as far as windows, Nagle and silly-window avoidance allow.
    fn send_new(&mut self, now: Time) -> Option<Segment> {
        let unsent = self.send.end().saturating_sub(self.next);
        let wants_fin = self.pending.fin && !self.send.is_blocked() && self.next <= self.send.end();
        if unsent == 0 && !wants_fin {
            self.limit = match self.send.is_blocked() {
                // More send buffer would help only up to the limit of the windows.
                true => self.limit_of(self.negotiated.mss, self.peer.edge.saturating_sub(self.next)),
                false => Limit::Nothing,
            };
            self.record_usage();
            return None;
        }
        self.apply_idle_policy(now);
        let open = self.peer.edge.saturating_sub(self.next);
        let wanted = unsent.min(self.negotiated.mss);
        let allowed = wanted.min(open).min(self.capacity());
        let is_last = wants_fin && allowed == unsent;
        if !self.may_send(allowed, unsent, is_last) {
            self.limit = self.limit_of(wanted, open);
            self.record_usage();
            self.start_persist_timer(now, unsent);
            return None;
        }
        if !self.pacer.allows(now) {
            self.limit = Limit::Pacing;
            return None;
        }
        let end = self.next + allowed + u64::from(is_last);
        let segment = self.data(now, self.next, end);
        self.flight.push(self.next, end, now);
        self.account_for(now, end, allowed);
        if is_last {
            self.record_fin_sent();
        }
        Some(segment)
    }

    /// Returns the limit that prevented a segment of `wanted` bytes. The receive window has priority over the
    /// congestion window.
    fn limit_of(&self, wanted: u64, open: u64) -> Limit {
        if open < wanted {
            Limit::ReceiveWindow
        } else if self.capacity() < wanted {
            Limit::CongestionWindow
        } else if self.send.is_blocked() {
            // A short segment, and more data would follow if the buffer had space for it.
            Limit::SendBuffer
        } else {
            Limit::Nagle
        }
    }

    /// Returns the bytes that the congestion window still allows.
    fn capacity(&self) -> u64 {
        let capacity = self.window.cwnd().saturating_sub(self.in_flight());
        match self.config.congestion.counting {
            Counting::Bytes => capacity,
            // A segment may be sent if the window allows a full one.
            Counting::Segments => {
                if capacity >= self.negotiated.mss {
                    self.negotiated.mss
                } else {
                    0
                }
            }
        }
    }

    /// Sender-side silly-window avoidance and Nagle (RFC 1122, section 4.2.3.4).
    fn may_send(&self, allowed: u64, unsent: u64, is_last: bool) -> bool {
        if is_last {
            return true;
        }
        if allowed == 0 {
            return false;
        }
        let is_everything = allowed == unsent && !self.send.is_blocked();
        allowed == self.negotiated.mss
            || (is_everything && self.nagle_allows())
            || 2 * allowed >= self.peer.largest
            || self.pending.probe
    }

    fn nagle_allows(&self) -> bool {
        match self.config.nagle {
            None => true,
            Some(Nagle::OnEntry) => self.is_idle_on_entry,
            Some(Nagle::PerSegment) => self.flight.is_empty(),
            Some(Nagle::Minshall) => self.short_end <= self.unacknowledged,
        }
    }

    /// Accounts for a new segment with the given end and payload bytes.
    pub(super) fn account_for(&mut self, now: Time, end: u64, bytes: u64) {
        self.next = end;
        self.send.sent(end);
        self.has_sent = true;
        self.pending.probe = false;
        self.persist.deadline = None;
        if bytes > 0 && bytes < self.negotiated.mss {
            self.short_end = end;
        }
        match &mut self.timed_segment {
            Some(timed_segment) => timed_segment.segments += 1,
            None => self.timed_segment = Some(TimedSegment { end, at: now, segments: 1 }),
        }
        if self.timer.deadline().is_none() {
            self.timer.start(now);
        }
        self.pacer.sent(now);
        self.last_sent = now;
        self.acks.sent_data(now);
        self.schedule_tail_probe(now);
    }

    /// Records that the FIN was sent.
    fn record_fin_sent(&mut self) {
        self.state = match self.state {
            State::Established | State::SynReceived => State::FinWait1,
            State::CloseWait => State::LastAck,
            state @ (State::Closed
            | State::Listen
            | State::SynSent
            | State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait) => state,
        };
    }

    /// Applies the policy for the window after idle (`papers/p-http`, section 2.4).
    fn apply_idle_policy(&mut self, now: Time) {
        if !self.flight.is_empty() || self.last_sent == Time::ZERO {
            return;
        }
        let timeout = self.config.idle_after.unwrap_or_else(|| self.timer.timeout());
        match self.config.idle {
            Idle::Unchanged => {}
            Idle::Restarted { segments, since } => {
                if now.since(self.idle_since(since)) >= timeout {
                    self.window.restart(segments);
                }
            }
            Idle::Decayed => {
                let idle = now.since(self.last_sent);
                if idle > timeout {
                    self.window.decay(idle.as_nanos() / timeout.as_nanos().max(1));
                    self.last_sent = now;
                }
            }
            Idle::Paced => {
                if now.since(self.last_sent) >= timeout {
                    let open = self.peer.edge.saturating_sub(self.next).min(self.window.cwnd());
                    if let Some(segments) = self.pacer.start(now, open / self.negotiated.mss.max(1)) {
                        self.window.limit(segments * self.negotiated.mss);
                    }
                    self.last_sent = now;
                }
            }
        }
    }

    /// Records after sending whether the congestion window is full (Linux's `tcp_write_xmit`).
    fn record_usage(&mut self) {
        let is_limited = self.capacity() < self.negotiated.mss;
        let has_sent = std::mem::take(&mut self.has_sent);
        if self.config.congestion.cwnd_validation && (has_sent || (is_limited && self.next < self.send.end()))
        {
            self.usage.record(self.in_flight(), self.unacknowledged, self.next, is_limited);
        }
    }

    /// Starts the persist timer if data is unsent, nothing is outstanding and nothing may be sent: the peer's window is
    /// closed, and the update that opens it may be lost.
    fn start_persist_timer(&mut self, now: Time, unsent: u64) {
        if unsent > 0 && self.flight.is_empty() && self.persist.deadline.is_none() && !self.pending.probe {
            let wait = self.timer.timeout() * (1 << self.persist.tries.min(20));
            self.persist.deadline = Some(now + wait.min(self.config.rto.max));
        }
    }

    /// Handles the persist timer.
    pub(super) fn probe_timeout(&mut self) {
        self.persist.deadline = None;
        self.persist.tries = self.persist.tries.saturating_add(1);
        if self.persist.tries > self.config.rto.data_retries {
            return self.fail(Failure::TimedOut);
        }
        self.pending.probe = true;
    }

    /// Returns a window probe: an old sequence number without data, which any receiver acknowledges. (BSD sends a byte
    /// instead.)
    fn probe(&mut self, now: Time) -> Option<Segment> {
        if !self.pending.probe {
            return None;
        }
        self.pending.probe = false;
        let unsent = self.send.end().saturating_sub(self.next);
        self.start_persist_timer(now, unsent);
        Some(self.segment(now, self.unacknowledged.saturating_sub(1), Payload::EMPTY, Flags::default()))
    }

    /// Returns the segment with these sequence numbers; the FIN is the one after the last byte written.
    pub(super) fn data(&mut self, now: Time, start: u64, end: u64) -> Segment {
        let last_byte = end.min(self.send.end());
        let payload = if last_byte > start { self.send.slice(start, last_byte) } else { Payload::EMPTY };
        let is_fin = end > self.send.end();
        let empties_buffer = last_byte == self.send.end() && !payload.is_empty();
        let flags = Flags { fin: is_fin, psh: empties_buffer, ..Flags::default() };
        self.segment(now, start, payload, flags)
    }

    /// Returns a segment with the fields common to all, which acknowledges the received data.
    fn segment(&mut self, now: Time, sequence: u64, payload: Payload, flags: Flags) -> Segment {
        let is_first = flags.syn && !self.is_server;
        let flags = Flags { ack: !is_first, ..flags };
        let window = self.advertise(flags.syn);
        let options = Options {
            timestamps: self.negotiated.timestamps.then(|| self.timestamps(now)),
            sack: if self.negotiated.sack && self.receiver.has_gap() {
                // With timestamps there is space for three (RFC 2018, section 3).
                self.receiver.sack(if self.negotiated.timestamps { 3 } else { 4 })
            } else {
                SackBlocks::default()
            },
            syn: None,
        };
        if flags.ack {
            self.acks.sent();
        }
        let (acknowledgement, framing) = (self.receiver.next(), self.config.handshake.framing());
        Segment { sequence, acknowledgement, window, flags, options, framing, payload }
    }

    /// Returns the window field of the header, and records that it was advertised.
    fn advertise(&mut self, is_syn: bool) -> u16 {
        let scale = if is_syn { 0 } else { self.negotiated.scale };
        let window = self.receiver.window(self.negotiated.mss) >> scale;
        let advertised = u16::try_from(window).unwrap_or(u16::MAX);
        self.receiver.advertised(u64::from(advertised) << scale);
        advertised
    }

    fn timestamps(&self, now: Time) -> Timestamps {
        let millis = now.as_nanos() / 1_000_000;
        // The clock wraps, as in RFC 7323.
        #[expect(clippy::cast_possible_truncation)]
        let value = millis as u32;
        Timestamps { value, echo: self.echo }
    }

    pub(super) const fn wants_sack(&self) -> bool {
        match self.config.recovery {
            Recovery::Tahoe | Recovery::Reno | Recovery::NewReno => false,
            Recovery::Sack | Recovery::Rack => true,
        }
    }
}
