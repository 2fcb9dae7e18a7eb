//! Endpoint of a connection: its data, its state and its timers (RFC 9293).
//!
//! Received segments are processed in `input`, sending is in `output`, each mechanism in its own module. An endpoint
//! has no clock and no socket: call `handle(now, input)`, then `poll(now)` until it returns a timeout; only then
//! `handle` again. Timers need no input: the driver polls when the timeout has expired.

use wire::Time;

use crate::Payload;
use crate::acks::Acknowledger;
use crate::config::{Config, ConfigError, IdleSince, TIMESTAMP_BYTES};
use crate::congestion::Window;
use crate::events::Events;
use crate::flight::Flight;
use crate::host_cache::InitialState;
use crate::idle::{Pacer, Usage};
use crate::interface::{ConnectionStats, Failure, Input, Limit, Output, State};
use crate::rack::Rack;
use crate::receive::Receiver;
use crate::recovery::Loss;
use crate::rto::RetransmissionTimer;
use crate::send::SendBuffer;

/// Endpoint of a connection, of a client or a server.
///
/// Contract: `handle(now, input)`, then `poll(now)` until it returns a timeout; only then `handle` again. `now` never
/// decreases.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) config: Config,
    pub(super) state: State,
    pub(super) is_server: bool,
    pub(super) negotiated: NegotiatedParameters,
    pub(super) initial: InitialState,
    /// Connection count in the peer's SYN (T/TCP).
    pub(super) peer_count: Option<u32>,
    /// Whether the peer's SYN requested a cookie (TCP Fast Open).
    pub(super) cookie_requested: bool,
    /// Whether the application was notified that the connection is open before the handshake completed.
    pub(super) is_early: bool,

    /// First unacknowledged number.
    pub(super) unacknowledged: u64,
    /// Next number to send.
    pub(super) next: u64,
    pub(super) send: SendBuffer,
    pub(super) flight: Flight,
    pub(super) window: Window,
    pub(super) peer: PeerWindow,
    pub(super) loss: Loss,
    pub(super) rack: Rack,
    pub(super) timer: RetransmissionTimer,
    pub(super) timed_segment: Option<TimedSegment>,
    pub(super) usage: Usage,
    pub(super) pacer: Pacer,
    pub(super) persist: Persist,

    pub(super) receiver: Receiver,
    pub(super) acks: Acknowledger,

    /// Timeout last returned: no timer expires before it.
    next_timeout: Time,
    pub(super) events: Events,
    pub(super) pending: PendingSegments,
    /// End of TIME_WAIT, or of FIN_WAIT_2 without an application.
    pub(super) time_wait_deadline: Option<Time>,
    pub(super) last_sent: Time,
    /// Timestamp of the first SYN or SYN-ACK.
    pub(super) first_timestamp: u32,
    /// Limit at the last attempt to send data.
    pub(super) limit: Limit,
    /// Whether new data was sent since the window's usage was last recorded.
    pub(super) has_sent: bool,
    pub(super) last_received: Time,
    /// Whether nothing was outstanding after the last input was processed (BSD's `idle`).
    pub(super) is_idle_on_entry: bool,
    /// End of the last short segment sent (Minshall's `snd_sml`).
    pub(super) short_end: u64,
    /// Timestamp to echo.
    pub(super) echo: u32,
    /// Whether the application will not read any more.
    pub(super) is_orphan: bool,
}

/// Parameters negotiated by both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct NegotiatedParameters {
    /// Payload of a full segment, without options.
    pub mss: u64,
    pub timestamps: bool,
    pub sack: bool,
    pub scales: bool,
    /// Window scale shift of this end.
    pub scale: u8,
    /// Window scale shift of the peer.
    pub peer_scale: u8,
}

/// The peer's advertised window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerWindow {
    /// Right edge: the number after the last that may be sent.
    pub edge: u64,
    /// Window last received, in bytes.
    pub size: u64,
    /// Maximum window ever received.
    pub largest: u64,
    /// Sequence number and acknowledgement of the segment that last updated it.
    pub updated_by: (u64, u64),
}

/// Segment whose round trip is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedSegment {
    /// Number after its last.
    pub end: u64,
    pub at: Time,
    /// Segments sent since, including itself.
    pub segments: u64,
}

/// Segments due at the next poll.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(super) struct PendingSegments {
    pub syn: bool,
    pub reset: bool,
    /// Whether a retransmission is due that no window limits.
    pub retransmission: bool,
    /// Whether a probe of a closed window is due.
    pub probe: bool,
    /// Whether a tail loss probe is due.
    pub tail_probe: bool,
    /// Whether the FIN is due, after everything written has been sent.
    pub fin: bool,
}

/// Persist timer, which probes a closed window (RFC 9293, section 3.8.6.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Persist {
    pub deadline: Option<Time>,
    pub tries: u8,
}

impl Connection {
    /// Creates a client's endpoint. It is idle before [`Input::Open`].
    ///
    /// # Errors
    /// The first invalid knob of `config`.
    pub fn client(config: Config) -> Result<Self, ConfigError> {
        Self::new(config, State::Closed)
    }

    /// Creates a server's endpoint. Its first input must be a SYN.
    ///
    /// # Errors
    /// The first invalid knob of `config`.
    pub fn server(config: Config) -> Result<Self, ConfigError> {
        Self::new(config, State::Listen)
    }

    fn new(config: Config, state: State) -> Result<Self, ConfigError> {
        config.check()?;
        let mss = u64::from(config.mss);
        let negotiated = NegotiatedParameters {
            mss,
            timestamps: false,
            sack: false,
            scales: false,
            scale: 0,
            peer_scale: 0,
        };
        Ok(Self {
            state,
            is_server: state == State::Listen,
            negotiated,
            initial: InitialState::default(),
            peer_count: None,
            cookie_requested: false,
            is_early: false,
            unacknowledged: 0,
            next: 0,
            send: SendBuffer::new(config.send_buffer, config.occupancy, config.unsent_limit),
            flight: Flight::new(config.congestion.counting, mss),
            window: Window::new(config.congestion, mss),
            peer: PeerWindow::default(),
            loss: Loss::default(),
            rack: Rack::default(),
            timer: RetransmissionTimer::new(config.rto),
            timed_segment: None,
            usage: Usage::default(),
            pacer: Pacer::default(),
            persist: Persist::default(),
            receiver: Receiver::new(config.receive_buffer),
            acks: Acknowledger::new(config.acks, mss),
            next_timeout: Time::MAX,
            events: Events::default(),
            pending: PendingSegments::default(),
            time_wait_deadline: None,
            last_sent: Time::ZERO,
            first_timestamp: 0,
            limit: Limit::Nothing,
            has_sent: false,
            last_received: Time::ZERO,
            is_idle_on_entry: true,
            short_end: 0,
            echo: 0,
            is_orphan: false,
            config,
        })
    }

    /// Handles an input: a received segment, or a call of the application.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Open => self.open(),
            Input::Segment(segment) => self.handle_segment(now, segment),
            Input::Write(payload) => self.write(payload),
            Input::WriteLast(payload) => {
                self.write(payload);
                self.shutdown();
            }
            Input::Shutdown => self.shutdown(),
            Input::Close => self.close(),
            Input::Abort => self.abort(),
        }
        self.is_idle_on_entry = self.flight.is_empty();
    }

    /// Returns the next output: a segment to transmit, an event, or the time of the next poll.
    pub fn poll(&mut self, now: Time) -> Output {
        if self.next_timeout <= now {
            self.expire(now);
        }
        loop {
            if let Some(event) = self.events.next() {
                return Output::Event(event);
            }
            if let Some(segment) = self.next_segment(now) {
                return Output::Transmit(segment);
            }
            if !self.take_blocked_write() {
                self.next_timeout = self.deadline();
                return Output::Timeout((self.next_timeout < Time::MAX).then_some(self.next_timeout));
            }
        }
    }

    /// Returns the next bytes in order, in the pieces in which they arrived. Reading may open the window: poll
    /// afterwards.
    pub fn read(&mut self) -> Option<Payload> {
        let payload = self.receiver.read()?;
        let opened =
            self.receiver.space().saturating_sub(self.receiver.edge().saturating_sub(self.receiver.next()));
        self.acks.read(opened, &self.receiver);
        Some(payload)
    }

    /// Returns whether an acknowledgement must be sent: after a read, the only reason to poll.
    pub const fn must_acknowledge(&self) -> bool {
        self.acks.is_due()
    }

    /// Returns whether there is unread data.
    pub const fn has_unread(&self) -> bool {
        self.receiver.unread() > 0
    }

    /// Returns the state of the connection.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns statistics of the connection, as `ss` shows them.
    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats {
            state: self.state,
            limit: self.limit,
            cwnd: self.window.cwnd(),
            ssthresh: self.window.threshold(),
            in_flight: self.in_flight(),
            peer_window: self.peer.size,
            round_trip: self.timer.smoothed(),
            rto: self.timer.timeout(),
            retransmits_at: self.timer.deadline(),
            acknowledges_at: self.acks.deadline(),
        }
    }

    /// Returns the bytes in flight, or whole segments' worth if segments are counted.
    pub(super) fn in_flight(&self) -> u64 {
        self.flight.weight().saturating_sub(self.loss.credit())
    }

    fn open(&mut self) {
        if self.state == State::Closed && self.next == 0 {
            self.state = State::SynSent;
            self.is_early = self.may_send_early();
            // A SYN that may carry data is delayed until there is data.
            self.pending.syn = !self.is_early;
            self.events.connected = self.is_early;
        }
    }

    fn write(&mut self, payload: Payload) {
        if self.pending.fin || self.is_over() {
            return;
        }
        self.tune_send_buffer();
        self.send.write(payload);
        self.pending.syn |= self.is_early && self.state == State::SynSent && self.next == 0;
        self.events.written = !self.send.is_blocked();
    }

    /// Grows a tuned send buffer, unless the congestion window is full anyway (`tcp_should_expand_sndbuf`).
    fn tune_send_buffer(&mut self) {
        let mss = self.negotiated.mss.max(1);
        let (in_flight, cwnd) = (self.in_flight(), self.window.cwnd());
        let window = if in_flight + mss > cwnd { 0 } else { cwnd / mss };
        self.send.tune(window, mss);
    }

    /// Accepts more of a blocked write, if the send buffer has space now, as if the application wrote again.
    fn take_blocked_write(&mut self) -> bool {
        if !self.send.is_blocked() {
            return false;
        }
        self.tune_send_buffer();
        if !self.send.unblock() {
            return false;
        }
        self.events.written = !self.send.is_blocked();
        self.is_idle_on_entry = self.flight.is_empty();
        true
    }

    fn shutdown(&mut self) {
        match self.state {
            State::Closed if self.next == 0 => {}
            State::Listen => self.complete_close(),
            State::SynSent if self.send.end() == 1 && !self.is_early => self.complete_close(),
            State::Closed | State::FinWait1 | State::FinWait2 => {}
            State::Closing | State::LastAck | State::TimeWait => {}
            State::SynSent | State::SynReceived | State::Established | State::CloseWait => {
                self.pending.fin = true;
                self.pending.syn |= self.is_early && self.state == State::SynSent && self.next == 0;
            }
        }
    }

    fn close(&mut self) {
        if self.receiver.unread() > 0 && self.config.termination.unread_resets {
            return self.abort();
        }
        self.is_orphan = true;
        self.receiver.discard();
        self.shutdown();
    }

    fn abort(&mut self) {
        let is_known_to_peer = !matches!(self.state, State::Closed | State::Listen | State::SynSent);
        self.pending.reset = is_known_to_peer && self.state != State::TimeWait;
        self.complete_close();
    }

    /// Ends the connection and reports an orderly close to the application.
    pub(super) fn complete_close(&mut self) {
        self.enter_closed();
        self.events.closed = true;
    }

    /// Ends the connection and reports a failure to the application.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.enter_closed();
        if self.config.termination.reset_discards {
            self.receiver.discard();
            self.events.readable = false;
        }
        self.events.failed = Some(failure);
    }

    fn enter_closed(&mut self) {
        self.state = State::Closed;
        self.timer.stop();
        self.persist.deadline = None;
        self.time_wait_deadline = None;
        self.acks.stop();
        self.pacer.stop();
        self.rack.stop();
        let reset = self.pending.reset;
        self.pending = PendingSegments { reset, ..PendingSegments::default() };
    }

    /// Returns whether the connection has ended.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Closed && self.next > 0
    }

    /// Returns the earliest deadline of all timers; [`Time::MAX`] if none runs.
    fn deadline(&self) -> Time {
        let or_never = |deadline: Option<Time>| deadline.unwrap_or(Time::MAX);
        or_never(self.timer.deadline())
            .min(or_never(self.acks.deadline()))
            .min(or_never(self.persist.deadline))
            .min(or_never(self.time_wait_deadline))
            .min(or_never(self.pacer.deadline()))
            .min(or_never(self.rack.deadline()))
    }

    /// Handles expired timers.
    fn expire(&mut self, now: Time) {
        let is_due = |deadline: Option<Time>| deadline.is_some_and(|deadline| deadline <= now);
        if is_due(self.acks.deadline()) {
            self.acks.expire(now, self.timer.timeout());
        }
        if is_due(self.rack.deadline()) {
            self.expire_rack(now);
        }
        if is_due(self.timer.deadline()) {
            self.retransmission_timeout(now);
        }
        if is_due(self.persist.deadline) {
            self.probe_timeout();
        }
        if is_due(self.time_wait_deadline) {
            self.complete_close();
        }
        if is_due(self.pacer.deadline()) {
            self.pacer.expire();
        }
        self.is_idle_on_entry = self.flight.is_empty();
    }

    /// Negotiates the segment size and sets it in all parts: the smaller MSS less the options.
    pub(super) fn negotiate_mss(&mut self, peer_mss: Option<u16>) {
        let peer_mss = peer_mss.unwrap_or(DEFAULT_MSS).max(1);
        let options = if self.negotiated.timestamps { TIMESTAMP_BYTES } else { 0 };
        let mss = self.config.mss.min(peer_mss).saturating_sub(options).max(1);
        self.negotiated.mss = u64::from(mss);
        self.flight.set_mss(self.negotiated.mss);
        self.window.set_mss(self.negotiated.mss);
        self.acks.set_mss(self.negotiated.mss);
    }

    /// Returns the start of the idle time, as the stack defines it.
    pub(super) const fn idle_since(&self, since: IdleSince) -> Time {
        match since {
            IdleSince::Sent => self.last_sent,
            IdleSince::Received => self.last_received,
        }
    }
}

/// MSS of a peer that sends no such option (RFC 9293, section 3.7.1).
const DEFAULT_MSS: u16 = 536;
