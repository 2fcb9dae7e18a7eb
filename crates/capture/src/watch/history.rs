//! Stalls of one socket, from samples of the kernel's statistics: rules only, without a socket or a clock.
//!
//! The kernel's own counters (limits by window and buffer, retransmissions) are exact at any sampling rate. Holds by
//! Nagle's algorithm appear only in samples, and their times are estimates.
//!
//! | stall | rule | refuted by |
//! | --- | --- | --- |
//! | `nagle`, `nagle-delayed-ack` | less than one MSS unsent, data unacknowledged, both windows open | (below) |
//! | `receive-window-limited`, `zero-window` | the kernel's own clock | |
//! | `send-buffer-limited` | the kernel's own clock | |
//! | `retransmission-timeout`, `fast-retransmit` | retransmissions, timed from the last progress | DSACK |
//! | `slow-start-restart` | a smaller window after idling, which then limits | losses |
//! | `congestion-window` | a full window of less than ten segments after losses | |
//! | `syn-unanswered` | a retransmitted SYN or SYN/ACK | |
//!
//! A hold by Nagle's algorithm is refuted by bytes in queues below TCP (auto-corking), a pacer's gap, or loss recovery. So
//! are unsent bytes that remain when nothing is unacknowledged (TCP_CORK). With a DSACK the peer had the data, and had only
//! delayed its ACK.

use diagnose::cause::Describe as _;
use diagnose::{Cause, Severity};
use linux::sockets::{CongestionState, State, TcpSocket};
use report::span::shown;
use report::watched::Stall;
use trace::text::counted;
use wire::{Duration, Time};

/// The samples of one socket so far.
#[derive(Clone, Debug)]
pub struct History {
    began: Time,
    last_at: Time,
    last: TcpSocket,
    /// Counters before the watch began.
    base: TcpSocket,
    /// When it last had nothing to send, or new data was acknowledged.
    progress_at: Time,
    hold: Option<Hold>,
    repair: Option<Repair>,
    /// The latest finished retransmission, and its cost.
    repaired: Option<(Kind, Duration)>,
    restart: Option<Restart>,
    coverage: Coverage,
    tallies: [Tally; Kind::ALL.len()],
}

/// Time between samples in which data passed: as far as the samples show a stall of that time, or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Samples were close enough.
    pub observed: Duration,
    /// They were too far apart.
    pub unseen: Duration,
}

impl Coverage {
    /// Adds the times of another socket.
    pub fn add(&mut self, other: Self) {
        let Self { observed, unseen } = other;
        (self.observed, self.unseen) = (self.observed + observed, self.unseen + unseen);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    times: u64,
    samples: u64,
    lost: Duration,
    longest: Duration,
    /// Time of the stall in progress.
    current: Duration,
    is_on: bool,
    /// Part of the time in which the peer's window was closed.
    closed: Duration,
}

/// Kinds of stalls that are distinguished while they last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hold,
    Buffer,
    Window,
    Timeout,
    Fast,
    Restart,
    Congestion,
    Handshake,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Hold,
        Self::Buffer,
        Self::Window,
        Self::Timeout,
        Self::Fast,
        Self::Restart,
        Self::Congestion,
        Self::Handshake,
    ];

    const fn cause(self) -> Cause {
        match self {
            Self::Hold => Cause::Nagle,
            Self::Buffer => Cause::SendBufferLimited,
            Self::Window => Cause::ReceiveWindowLimited,
            Self::Timeout => Cause::RetransmissionTimeout,
            Self::Fast => Cause::FastRetransmit,
            Self::Restart => Cause::SlowStartRestart,
            Self::Congestion => Cause::CongestionWindow,
            Self::Handshake => Cause::SynUnanswered,
        }
    }
}

/// A segment that is held.
#[derive(Clone, Copy, Debug)]
struct Hold {
    began: Time,
    last: Time,
    samples: u64,
    /// Bytes sent before it.
    sent: u64,
}

#[derive(Clone, Copy, Debug)]
struct Repair {
    began: Time,
    is_by_timer: bool,
}

/// A congestion window that was reduced after idling.
#[derive(Clone, Copy, Debug)]
struct Restart {
    from: u32,
    to: u32,
    until: Time,
}

/// Maximum spacing of samples: beyond it, the time between them is unknown.
const MAX_SPACING: Duration = Duration::from_millis(1_000);
/// Spacing of samples that counts as idle between them.
const SURE_SPACING: Duration = Duration::from_millis(50);
/// A hold longer than the round trip by this much waited for a delayed ACK. Linux delays by 40 ms (`TCP_DELACK_MIN`),
/// other systems by up to 200 ms. RFC 1122, section 4.2.3.2, allows 500 ms.
const DELAYED: Duration = Duration::from_millis(20);
/// The initial window (RFC 6928).
const INITIAL_WINDOW: u32 = 10;
/// Time without progress, with data unacknowledged, that is an outage while it lasts.
const OUTAGE: Duration = Duration::from_secs(1);
/// Number of retransmissions in a row that is one: the first may repair a single loss.
const OUTAGE_RETRANSMISSIONS: u8 = 2;
/// Time until a SYN is retransmitted (RFC 6298, section 2): the least that each costs.
const SYN_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum spacing of samples that shows a stall of 20 ms, which is worth fixing.
const COVERING: Duration = Duration::from_millis(20);
/// `TCP_INFINITE_SSTHRESH`: no loss yet.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

impl History {
    /// Creates a history with a first sample. The counters of a socket that was opened before the watch are its base.
    pub fn new(at: Time, socket: &TcpSocket, is_opened_since: bool) -> Self {
        let mut base = *socket;
        if is_opened_since {
            base.info = Default::default();
            base.progress = Default::default();
        }
        let mut history = Self {
            began: at,
            last_at: at,
            last: base,
            base,
            progress_at: at,
            hold: None,
            repair: None,
            repaired: None,
            restart: None,
            coverage: Coverage::default(),
            tallies: [Tally::default(); Kind::ALL.len()],
        };
        history.handle(at, socket);
        history
    }

    /// Returns the latest sample.
    pub const fn last(&self) -> &TcpSocket {
        &self.last
    }

    /// Returns the time of the latest sample.
    pub const fn last_at(&self) -> Time {
        self.last_at
    }

    /// Handles the next sample.
    pub fn handle(&mut self, at: Time, socket: &TcpSocket) {
        // A closing socket that waits for the peer's FIN (FIN-WAIT-2) may be a remainder that has no statistics.
        if socket.state == State::Open && socket.progress.mss == 0 {
            return;
        }
        let spacing = at.since(self.last_at).min(MAX_SPACING);
        self.cover(at, socket);
        match socket.state {
            State::Open => {
                self.open_handshake(socket);
                self.hold(at, spacing, socket);
                self.limits(socket);
                self.repair(at, spacing, socket);
                self.windows(at, spacing, socket);
            }
            State::SynSent | State::SynReceived => self.handshake(at, socket),
            State::Listening | State::Closed => {}
        }
        (self.last_at, self.last) = (at, *socket);
    }

    /// Counts the time since the last sample as observed, or not, if data passed.
    fn cover(&mut self, at: Time, socket: &TcpSocket) {
        let (before, now) = (&self.last.progress, &socket.progress);
        if now.bytes_sent != before.bytes_sent || now.bytes_received != before.bytes_received {
            let span = at.since(self.last_at);
            let Coverage { observed, unseen } = &mut self.coverage;
            *if span > COVERING { unseen } else { observed } += span;
        }
    }

    /// Returns the busy time that the samples cover, and that they do not.
    pub const fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// Attributes retransmissions before any data to the handshake: they are SYNs or SYN/ACKs.
    fn open_handshake(&mut self, socket: &TcpSocket) {
        let is_first = self.last.progress.bytes_sent == 0 && self.last.progress.bytes_received == 0;
        let count = socket.info.retransmitted.saturating_sub(self.last.info.retransmitted);
        if is_first && count > 0 && socket.progress.bytes_retransmitted == 0 {
            let tally = self.tally(Kind::Handshake);
            if tally.times == 0 {
                let lost = SYN_TIMEOUT * u64::from(count);
                *tally = Tally { times: u64::from(count), lost, longest: lost, ..Tally::default() };
            }
            self.last.info.retransmitted = socket.info.retransmitted;
            self.base.info.retransmitted = socket.info.retransmitted;
        }
    }

    fn hold(&mut self, at: Time, spacing: Duration, socket: &TcpSocket) {
        let sent = socket.progress.bytes_sent;
        let unchanged = self.hold.filter(|hold| hold.sent == sent);
        // Nagle's algorithm holds nothing when nothing is unacknowledged.
        let is_corked = socket.info.sending.unacknowledged == 0 && socket.info.sending.not_sent.get() > 0;
        if unchanged.is_some() && is_corked {
            self.hold = None;
            return;
        }
        self.hold = match (unchanged, is_held(socket)) {
            (Some(hold), true) => Some(Hold { last: at, samples: hold.samples + 1, ..hold }),
            (None, true) => {
                self.end_hold(at);
                let age = socket.progress.since_sent.min(spacing);
                let began = Time::from_nanos(at.as_nanos().saturating_sub(age.as_nanos()));
                Some(Hold { began, last: at, samples: 1, sent })
            }
            (_, false) => {
                self.end_hold(at);
                None
            }
        };
    }

    fn tally(&mut self, kind: Kind) -> &mut Tally {
        &mut self.tallies[kind as usize]
    }

    /// Ends a hold between its last sample and the one at `at`.
    fn end_hold(&mut self, at: Time) {
        if let Some(Hold { began, last, samples, sent: _ }) = self.hold.take() {
            let tally = self.tally(Kind::Hold);
            tally.samples += samples;
            tally.add(last.since(began) + at.since(last).min(MAX_SPACING) / 2);
        }
    }

    /// Adds the times that the kernel's own clocks measured.
    fn limits(&mut self, socket: &TcpSocket) {
        let grown = |clock: fn(&TcpSocket) -> Duration| clock(socket).saturating_sub(clock(&self.last));
        let window = grown(|socket| socket.info.receive_window_limited);
        let buffer = grown(|socket| socket.info.send_buffer_limited);
        let is_closed = socket.info.sending.peer_window.get() < u64::from(socket.progress.mss);
        let tally = self.tally(Kind::Window);
        tally.grow(window);
        tally.closed += if is_closed { window } else { Duration::ZERO };
        self.tally(Kind::Buffer).grow(buffer);
    }

    fn repair(&mut self, at: Time, spacing: Duration, socket: &TcpSocket) {
        let before = self.last;
        if before.send_queue == 0 && socket.progress.bytes_sent > before.progress.bytes_sent {
            let age = socket.progress.since_sent.min(spacing);
            self.progress_at = Time::from_nanos(at.as_nanos().saturating_sub(age.as_nanos()));
        }
        let is_seen = self.repair.is_some() || before.send_queue > 0;
        if socket.info.retransmitted > before.info.retransmitted && self.repair.is_none() {
            self.repair = Some(Repair { began: self.progress_at, is_by_timer: false });
        }
        if self.repair.is_none() && self.is_out(at, socket) {
            self.repair = Some(Repair { began: self.progress_at, is_by_timer: true });
        }
        if let Some(repair) = &mut self.repair {
            repair.is_by_timer |= socket.retransmits > 0
                || socket.info.sending.congestion_state == CongestionState::Loss
                || socket.progress.timeouts > before.progress.timeouts;
        }
        if socket.progress.bytes_acked > before.progress.bytes_acked || socket.send_queue == 0 {
            if let Some(Repair { began, is_by_timer }) = self.repair.take() {
                let (kind, usual) = match is_by_timer {
                    true => (Kind::Timeout, socket.progress.timeout),
                    // Duplicate ACKs, or a tail loss probe.
                    false => (Kind::Fast, socket.info.round_trip * 2),
                };
                // If no sample showed it, only its typical time is certain.
                let lost = if is_seen { at.since(began) } else { spacing.min(usual) };
                self.tally(kind).add(lost);
                self.repaired = Some((kind, lost));
            }
            self.progress_at = at;
        }
        if socket.progress.duplicates > before.progress.duplicates {
            // The peer had the data (DSACK): nothing was lost.
            let is_open = self.repair.take().is_some();
            if let Some((kind, lost)) = self.repaired.take_if(|_| !is_open) {
                self.tally(kind).retract(lost);
            }
        }
    }

    /// Returns whether nothing is acknowledged any more, as far as a sample shows it.
    fn is_out(&self, at: Time, socket: &TcpSocket) -> bool {
        let sending = &socket.info.sending;
        let silence = at.since(self.progress_at);
        let is_silent = sending.unacknowledged > 0
            && sending.peer_window.get() > 0
            && silence >= OUTAGE
            && silence >= socket.info.round_trip * 2;
        socket.state == State::Open && (socket.retransmits >= OUTAGE_RETRANSMISSIONS || is_silent)
    }

    /// Returns the outage in progress, and since when it lasts.
    fn outage(&self) -> Option<Time> {
        let repair = self.repair.filter(|_| self.is_out(self.last_at, &self.last));
        repair.map(|repair| repair.began)
    }

    /// Checks for congestion windows that are small and limit the sender.
    fn windows(&mut self, at: Time, spacing: Duration, socket: &TcpSocket) {
        let (sending, before) = (&socket.info.sending, &self.last.info.sending);
        let is_limiting = sending.unacknowledged >= sending.congestion_window
            && sending.not_sent.get() >= u64::from(socket.progress.mss);
        let is_small =
            sending.congestion_window < INITIAL_WINDOW && sending.slow_start_threshold < NO_THRESHOLD;
        // Within a long spacing it may also have sent.
        let is_idle = self.last.progress.since_sent + spacing.min(SURE_SPACING) >= self.last.progress.timeout;
        let is_clean = [sending.congestion_state, before.congestion_state] == [CongestionState::Open; 2]
            && socket.info.retransmitted == self.last.info.retransmitted;
        let has_sent =
            socket.progress.bytes_sent > self.last.progress.bytes_sent && self.last.progress.bytes_sent > 0;
        if is_idle && is_clean && has_sent && sending.congestion_window < before.congestion_window {
            let (from, to) = (before.congestion_window, sending.congestion_window.max(1));
            self.restart = Some(Restart { from, to, until: at + MAX_SPACING });
        }
        let limited = if is_limiting && is_small { spacing } else { Duration::ZERO };
        match self.restart.filter(|restart| at <= restart.until && sending.congestion_window < restart.from) {
            Some(Restart { from, to, until: _ }) if is_limiting => {
                // Slow start doubles the window in each round trip.
                let rounds = u64::from((from / to).max(2).ilog2());
                let lost = socket.info.round_trip * rounds;
                self.tally(Kind::Restart).add(lost);
                self.restart = None;
            }
            other => self.restart = other,
        }
        self.tally(Kind::Congestion).grow(limited);
    }

    fn handshake(&mut self, at: Time, socket: &TcpSocket) {
        if socket.retransmits > 0 {
            let lost = at.since(self.began);
            *self.tally(Kind::Handshake) =
                Tally { times: u64::from(socket.retransmits), lost, longest: lost, ..Tally::default() };
        }
    }

    /// Returns whether a segment is held now.
    pub const fn is_holding(&self) -> bool {
        self.hold.is_some()
    }

    /// Returns whether there may be a stall: cheaper than [`stalls`](Self::stalls).
    pub fn has_stalled(&self) -> bool {
        self.hold.is_some() || self.outage().is_some() || self.tallies.iter().any(|tally| tally.times > 0)
    }

    /// Returns the stalls so far.
    pub fn stalls(&self) -> Vec<Stall> {
        let mut so_far = self.clone();
        so_far.end_hold(self.last_at);
        if let Some(began) = self.outage() {
            so_far.tally(Kind::Timeout).add(self.last_at.since(began));
        }
        let is_reported = |kind: Kind, tally: &Tally| match kind {
            // A single sample may be the moment before a segment is sent.
            Kind::Hold => tally.samples > 1,
            _another => tally.times > 0 && tally.lost > Duration::ZERO,
        };
        let all = Kind::ALL.into_iter().zip(&so_far.tallies);
        let reported = all.filter(|(kind, tally)| {
            is_reported(*kind, tally) && tally.lost >= kind.cause().about().min_duration
        });
        reported.map(|(kind, tally)| self.stall(kind.cause(), tally)).collect()
    }

    fn stall(&self, cause: Cause, tally: &Tally) -> Stall {
        let cause = match cause {
            Cause::Nagle if tally.longest >= self.last.progress.min_round_trip * 2 + DELAYED => {
                Cause::NagleDelayedAck
            }
            Cause::ReceiveWindowLimited if tally.closed * 2 >= tally.lost => Cause::ZeroWindow,
            other => other,
        };
        // A fix saves what was lost: the kernel counts only what held the sender.
        let severity = Severity::of(cause, tally.lost, self.last_at.since(self.began));
        // A client that does not complete a handshake is not the server's fault.
        let is_waiting_server = cause == Cause::SynUnanswered && self.last.state == State::SynReceived;
        Stall {
            cause,
            severity: if is_waiting_server { Severity::Low } else { severity },
            times: tally.times,
            lost: tally.lost,
            longest: tally.longest,
            evidence: self.evidence(cause, tally),
        }
    }

    fn evidence(&self, cause: Cause, tally: &Tally) -> String {
        let busy = self.last.info.busy.saturating_sub(self.base.info.busy);
        let retransmitted = self.last.info.retransmitted.saturating_sub(self.base.info.retransmitted);
        let segments = counted(u64::from(retransmitted), "segment");
        match cause {
            Cause::Nagle | Cause::NagleDelayedAck => format!(
                "less than one MSS ({} bytes) was unsent in {} while segments were unacknowledged and both windows open; minimum round trip {}",
                self.last.progress.mss,
                counted(tally.samples, "sample"),
                shown(self.last.progress.min_round_trip)
            ),
            Cause::ReceiveWindowLimited | Cause::ZeroWindow => {
                format!(
                    "by the kernel's count the peer's window limited {} of {} busy",
                    shown(tally.lost),
                    shown(busy)
                )
            }
            Cause::SendBufferLimited => {
                format!(
                    "by the kernel's count the send buffer limited {} of {} busy",
                    shown(tally.lost),
                    shown(busy)
                )
            }
            Cause::RetransmissionTimeout if self.outage().is_some() => format!(
                "nothing acknowledged for {}, and it lasts: {} in a row",
                shown(self.last_at.since(self.progress_at)),
                counted(u64::from(self.last.retransmits), "retransmission")
            ),
            Cause::RetransmissionTimeout => {
                format!(
                    "{segments} retransmitted, after the timer ({}) expired",
                    shown(self.last.progress.timeout)
                )
            }
            Cause::SlowStartRestart => {
                "the congestion window was smaller after idling, and was full then".to_owned()
            }
            Cause::CongestionWindow => format!(
                "a window of {} segments was full, after losses",
                self.last.info.sending.congestion_window
            ),
            Cause::SynUnanswered if self.last.state == State::SynReceived => {
                format!("SYN/ACK retransmitted {} without a reply", counted(tally.times, "time"))
            }
            Cause::SynUnanswered => {
                format!("SYN retransmitted {} without a reply", counted(tally.times, "time"))
            }
            _ => format!("{segments} retransmitted"),
        }
    }
}

impl Tally {
    /// Adds a finished stall.
    fn add(&mut self, lost: Duration) {
        (self.times, self.lost, self.longest) = (self.times + 1, self.lost + lost, self.longest.max(lost));
    }

    /// Retracts the latest stall.
    fn retract(&mut self, lost: Duration) {
        (self.times, self.lost) = (self.times.saturating_sub(1), self.lost.saturating_sub(lost));
        self.longest = self.longest.min(self.lost);
    }

    /// Extends the stall in progress; zero ends it.
    fn grow(&mut self, lost: Duration) {
        if lost == Duration::ZERO {
            (self.is_on, self.current) = (false, Duration::ZERO);
            return;
        }
        self.times += u64::from(!self.is_on);
        (self.is_on, self.current) = (true, self.current + lost);
        (self.lost, self.longest) = (self.lost + lost, self.longest.max(self.current));
    }
}

/// Returns whether only Nagle's algorithm (or TCP_CORK) prevents bytes from being sent (RFC 9293, section 3.7.4).
fn is_held(socket: &TcpSocket) -> bool {
    let sending = &socket.info.sending;
    let (unsent, mss) = (sending.not_sent.get(), u64::from(socket.progress.mss));
    let in_flight = u64::from(socket.send_queue).saturating_sub(unsent);
    let is_short = 0 < unsent && unsent < mss;
    let is_waiting = 0 < sending.unacknowledged && sending.unacknowledged < sending.congestion_window;
    // Also zero on kernels that do not report the window: those show no holds.
    let fits = in_flight + unsent <= sending.peer_window.get();
    let is_undisturbed = matches!(sending.congestion_state, CongestionState::Open | CongestionState::Reduced);
    let is_below = socket.device_queue.is_some_and(|bytes| bytes > 0);
    is_short && is_waiting && fits && is_undisturbed && !is_below && !is_paced(socket)
}

/// Returns whether the sender may be waiting for a pacer: less than twice its gap has passed since the last segment.
fn is_paced(socket: &TcpSocket) -> bool {
    let rate = socket.progress.pacing_rate;
    if rate == 0 || rate == u64::MAX {
        return false;
    }
    let gap = Duration::from_nanos(u64::from(socket.progress.mss) * 1_000_000_000 / rate);
    gap > Duration::from_millis(1) && socket.progress.since_sent < gap * 2
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use wire::Bytes;

    use super::*;
    use linux::sockets::{SenderProgress, SenderState, TcpInfo};

    /// An established socket that has sent and received, over 1 ms.
    fn socket() -> TcpSocket {
        let sending = SenderState {
            congestion_window: 10,
            slow_start_threshold: NO_THRESHOLD,
            peer_window: Bytes::new(65_536),
            ..SenderState::default()
        };
        let millis = Duration::from_millis;
        TcpSocket {
            local: (Ipv4Addr::LOCALHOST, 80).into(),
            peer: (Ipv4Addr::LOCALHOST, 40_000).into(),
            cookie: 1,
            inode: 1,
            state: State::Open,
            is_closing: false,
            send_queue: 0,
            receive_queue: 0,
            retransmits: 0,
            device_queue: Some(0),
            info: TcpInfo { round_trip: millis(1), sending, ..TcpInfo::default() },
            progress: SenderProgress {
                mss: 1_448,
                bytes_sent: 10_000,
                bytes_acked: 10_000,
                min_round_trip: millis(1),
                timeout: millis(200),
                ..SenderProgress::default()
            },
        }
    }

    /// 600 bytes are held while 100 are unacknowledged.
    fn held(socket: TcpSocket) -> TcpSocket {
        let mut held = socket;
        (held.info.sending.unacknowledged, held.send_queue) = (1, 700);
        held.info.sending.not_sent = Bytes::new(600);
        held
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// Returns the stalls of samples, each with its time in milliseconds.
    fn stalls(samples: &[(u64, TcpSocket)]) -> Vec<(Cause, u64, f64)> {
        let ((first, socket), rest) = samples.split_first().unwrap();
        let mut history = History::new(at(*first), socket, false);
        rest.iter().for_each(|(millis, socket)| history.handle(at(*millis), socket));
        let summary = |stall: Stall| (stall.cause, stall.times, stall.lost.as_millis_f64());
        history.stalls().into_iter().map(summary).collect()
    }

    /// Sequential exchanges from time 0: each starts `every` ms and holds a segment for `holds` ms, sampled at
    /// intervals of `spacing` ms.
    fn exchanges(count: u64, every: u64, holds: u64, spacing: u64) -> Vec<(u64, TcpSocket)> {
        let sample = |now: u64| {
            let mut socket = socket();
            socket.progress.bytes_sent += now / every * 700;
            socket.progress.since_sent = Duration::from_millis(now % every);
            (now, if (1..holds).contains(&(now % every)) { held(socket) } else { socket })
        };
        (0..count * every / spacing).map(|tick| sample(tick * spacing)).collect()
    }

    #[test]
    fn a_segment_held_for_a_delayed_ack_is_found_and_timed() {
        let found = stalls(&exchanges(7, 50, 44, 1));
        let [(cause, times, lost)] = found[..] else { panic!("{found:?}") };
        assert_eq!((cause, times), (Cause::NagleDelayedAck, 7));
        assert!((lost - 7.0 * 44.0).abs() < 7.0, "{lost}");
        // With a 20 times lower sampling rate: the same, less precisely.
        let found = stalls(&exchanges(70, 50, 44, 20));
        let [(cause, _, lost)] = found[..] else { panic!("{found:?}") };
        assert!(cause == Cause::NagleDelayedAck && (lost / 70.0 / 44.0 - 1.0).abs() < 0.2, "{lost}");
    }

    #[test]
    fn a_hold_of_a_round_trip_has_no_delayed_ack() {
        let mut samples = exchanges(3, 50, 30, 1);
        for (_, socket) in &mut samples {
            socket.progress.min_round_trip = Duration::from_millis(29);
        }
        assert_eq!(stalls(&samples)[0].0, Cause::Nagle);
    }

    #[test]
    fn holds_shorter_than_the_sampling_are_found_if_they_recur() {
        // 10 ms in each 37, sampled each 10: most exchanges show it once.
        let found = stalls(&exchanges(100, 37, 10, 10));
        let [(_, times, lost)] = found[..] else { panic!("{found:?}") };
        assert!(times > 50 && (lost / 1_000.0 - 1.0).abs() < 0.35, "{times} {lost}");
    }

    #[test]
    fn bytes_delayed_for_other_reasons_are_no_hold() {
        type Change = fn(&mut TcpSocket);
        let cases: [(&str, Change); 8] = [
            ("a slow reader", |socket| socket.info.sending.peer_window = Bytes::new(500)),
            ("a full segment", |socket| socket.info.sending.not_sent = Bytes::new(1_448)),
            ("auto-corking", |socket| socket.device_queue = Some(2_304)),
            ("a full congestion window", |socket| socket.info.sending.congestion_window = 1),
            ("recovery", |socket| socket.info.sending.congestion_state = CongestionState::Recovery),
            ("a pacer", |socket| socket.progress.pacing_rate = 10_000),
            ("nothing unacknowledged", |socket| socket.info.sending.unacknowledged = 0),
            ("nothing unsent", |socket| socket.info.sending.not_sent = Bytes::new(0)),
        ];
        for (name, change) in cases {
            let mut samples = exchanges(7, 50, 44, 1);
            samples
                .iter_mut()
                .filter(|(_, socket)| socket.send_queue > 0)
                .for_each(|(_, socket)| change(socket));
            let found = stalls(&samples);
            assert!(
                found.iter().all(|(cause, _, _)| !matches!(cause, Cause::Nagle | Cause::NagleDelayedAck)),
                "{name}: {found:?}"
            );
        }
    }

    #[test]
    fn one_sample_is_not_enough() {
        assert_eq!(stalls(&[(0, socket()), (10, held(socket())), (20, socket())]), []);
    }

    #[test]
    fn regress_a_closing_socket_without_statistics_has_no_full_window() {
        let mut closing = socket();
        (closing.info, closing.progress) = (TcpInfo::default(), SenderProgress::default());
        assert_eq!(stalls(&[(0, socket()), (10, socket()), (260, closing), (300, closing)]), []);
    }

    #[test]
    fn corked_bytes_are_no_hold() {
        // Everything is acknowledged, and the bytes remain unsent.
        let mut corked = held(socket());
        (corked.info.sending.unacknowledged, corked.send_queue) = (0, 600);
        let samples =
            [(0, socket()), (10, held(socket())), (20, held(socket())), (30, corked), (200, corked)];
        assert_eq!(stalls(&samples), []);
    }

    #[test]
    fn the_kernels_clocks_are_taken_from_the_first_sample_on() {
        let sample = |millis, closed| {
            let mut socket = socket();
            socket.info.receive_window_limited = Duration::from_millis(millis);
            socket.info.send_buffer_limited = Duration::from_millis(millis / 10);
            socket.info.sending.peer_window = Bytes::new(if closed { 0 } else { 65_536 });
            socket
        };
        let samples = [
            (0, sample(500, false)),
            (50, sample(540, false)),
            (90, sample(540, false)),
            (120, sample(560, false)),
        ];
        assert_eq!(
            stalls(&samples),
            [(Cause::SendBufferLimited, 2, 6.0), (Cause::ReceiveWindowLimited, 2, 60.0)]
        );
        let samples = [(0, sample(0, false)), (50, sample(50, true))];
        assert_eq!(stalls(&samples)[1].0, Cause::ZeroWindow);
    }

    /// A segment in flight, sent 5 ms before the first sample that shows it.
    fn flight(bytes_acked: u64, retransmitted: u32, timeouts: u16) -> TcpSocket {
        let mut socket = socket();
        (socket.send_queue, socket.info.sending.unacknowledged) = (1_448, 1);
        (socket.info.retransmitted, socket.progress.timeouts) = (retransmitted, timeouts);
        (socket.progress.bytes_sent, socket.progress.bytes_acked) = (11_448, bytes_acked);
        socket.progress.since_sent = Duration::from_millis(5);
        socket
    }

    #[test]
    fn a_timeout_costs_the_time_since_the_segment_was_sent() {
        let (lost, resent) = (flight(10_000, 0, 0), flight(10_000, 1, 1));
        let timer = [(0, socket()), (10, lost), (200, lost), (220, resent), (230, flight(11_448, 1, 1))];
        assert_eq!(stalls(&timer), [(Cause::RetransmissionTimeout, 1, 225.0)]);
        let fast = [(0, socket()), (10, lost), (20, flight(10_000, 1, 0)), (30, flight(11_448, 1, 0))];
        assert_eq!(stalls(&fast), [(Cause::FastRetransmit, 1, 25.0)]);
    }

    #[test]
    fn a_retransmission_between_two_samples_costs_its_usual_time() {
        let mut over = flight(11_448, 1, 0);
        over.send_queue = 0;
        // Twice the round trip of 1 ms is too short for a finding.
        assert_eq!(stalls(&[(0, socket()), (50, over)]), []);
        over.progress.timeouts = 1;
        assert_eq!(stalls(&[(0, socket()), (500, over)]), [(Cause::RetransmissionTimeout, 1, 200.0)]);
    }

    #[test]
    fn a_retransmission_that_the_peer_had_received_is_no_stall() {
        // A tail loss probe, because the peer delayed its acknowledgement.
        let (mut probed, mut over) = (flight(10_000, 1, 0), flight(11_448, 1, 0));
        over.progress.duplicates = 1;
        let in_time = [(0, socket()), (10, flight(10_000, 0, 0)), (40, probed), (50, over)];
        assert_eq!(stalls(&in_time), []);
        let late =
            [(0, socket()), (10, flight(10_000, 0, 0)), (40, probed), (50, flight(11_448, 1, 0)), (60, over)];
        assert_eq!(stalls(&late), []);
        probed.progress.duplicates = 1;
        assert_eq!(stalls(&[(0, socket()), (10, flight(10_000, 0, 0)), (40, probed), (50, over)]), []);
    }

    #[test]
    fn a_window_that_is_small_after_idling_counts_if_it_limits() {
        let window = |congestion_window, sent, is_full: bool| {
            let mut socket = socket();
            socket.info.round_trip = Duration::from_millis(50);
            socket.info.sending.congestion_window = congestion_window;
            socket.progress.bytes_sent = sent;
            if is_full {
                (socket.info.sending.unacknowledged, socket.send_queue) = (congestion_window, 30_000);
                socket.info.sending.not_sent = Bytes::new(14_480);
            }
            socket
        };
        let mut idle = window(80, 100_000, false);
        idle.progress.since_sent = Duration::from_millis(1_500);
        let full = [(0, idle), (10, window(10, 114_480, true))];
        assert_eq!(stalls(&full), [(Cause::SlowStartRestart, 1, 150.0)]);
        assert_eq!(stalls(&[(0, idle), (10, window(10, 101_000, false))]), []);
        let mut lossy = window(10, 114_480, true);
        lossy.info.retransmitted = 1;
        assert!(
            stalls(&[(0, idle), (10, lossy)]).iter().all(|(cause, _, _)| *cause != Cause::SlowStartRestart)
        );
    }

    /// A socket with a segment that was retransmitted `retransmits` times in a row.
    fn silent(retransmits: u8) -> TcpSocket {
        let mut socket = socket();
        (socket.send_queue, socket.retransmits) = (1_000, retransmits);
        socket.info.sending.unacknowledged = 1;
        socket.info.retransmitted = u32::from(retransmits);
        socket.progress.bytes_sent += 1_000 * (1 + u64::from(retransmits));
        socket
    }

    #[test]
    fn an_outage_is_reported_while_it_lasts_and_counted_once() {
        let idle = socket();
        let lasting = [(0, idle), (10, silent(0)), (250, silent(1)), (700, silent(2)), (1_500, silent(3))];
        let [(cause, 1, lost)] = stalls(&lasting)[..] else { panic!("{:?}", stalls(&lasting)) };
        assert_eq!(cause, Cause::RetransmissionTimeout);
        assert!((1_450.0..=1_500.0).contains(&lost), "{lost}");
        let mut over = silent(3);
        (over.send_queue, over.retransmits, over.info.sending.unacknowledged) = (0, 0, 0);
        over.progress.bytes_acked += 1_000;
        let ended = [&lasting[..], &[(1_600, over)]].concat();
        assert_eq!(stalls(&ended).len(), 1, "{:?}", stalls(&ended));
        // The first retransmission may repair a single loss.
        assert_eq!(stalls(&lasting[..3]), []);
    }

    #[test]
    fn an_outage_that_began_before_the_watch_is_reported() {
        let mut history = History::new(at(0), &silent(4), false);
        history.handle(at(1_200), &silent(4));
        assert_eq!(history.stalls()[0].cause, Cause::RetransmissionTimeout);
        assert!(
            history.stalls()[0].evidence.contains("it lasts: 4 retransmissions"),
            "{:?}",
            history.stalls()
        );
    }

    #[test]
    fn retransmitted_syns_of_a_connection_that_opened_are_no_timeout() {
        let mut opened = socket();
        (opened.info.retransmitted, opened.progress.bytes_sent, opened.progress.bytes_received) = (2, 100, 0);
        let history = History::new(at(0), &opened, true);
        let stalls: Vec<_> =
            history.stalls().iter().map(|stall| (stall.cause, stall.lost.as_millis_f64())).collect();
        assert_eq!(stalls, [(Cause::SynUnanswered, 2_000.0)]);
    }

    #[test]
    fn a_small_window_counts_only_after_losses() {
        let full = |threshold| {
            let mut socket = socket();
            socket.info.sending.congestion_window = 4;
            (socket.info.sending.unacknowledged, socket.info.sending.slow_start_threshold) = (4, threshold);
            (socket.info.sending.not_sent, socket.send_queue) = (Bytes::new(100_000), 106_000);
            socket
        };
        assert_eq!(
            stalls(&[(0, full(2)), (10, full(2)), (30, full(2))]),
            [(Cause::CongestionWindow, 1, 30.0)]
        );
        assert_eq!(stalls(&[(0, full(NO_THRESHOLD)), (30, full(NO_THRESHOLD))]), []);
    }

    #[test]
    fn a_handshake_hangs_when_its_first_segment_is_retransmitted() {
        let mut syn = socket();
        syn.state = State::SynSent;
        let mut resent = syn;
        resent.retransmits = 2;
        assert_eq!(stalls(&[(0, syn), (500, syn)]), []);
        assert_eq!(stalls(&[(0, syn), (3_100, resent)]), [(Cause::SynUnanswered, 2, 3_100.0)]);
        let mut history = History::new(at(0), &syn, true);
        resent.state = State::SynReceived;
        history.handle(at(3_100), &resent);
        assert_eq!(history.stalls()[0].severity, Severity::Low);
    }
}
