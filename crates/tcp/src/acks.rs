//! Delayed acknowledgements and their variants (RFC 1122, section 4.2.3.2).
//!
//! Linux's current rules follow `net/ipv4/tcp_input.c` and `tcp_timer.c` of Linux 6 (`tcp_event_data_recv`,
//! `__tcp_ack_snd_check`, `tcp_cleanup_rbuf`, `tcp_delack_timer_handler`).

use wire::{Duration, Time};

use crate::config::{Acks, OddSegmentAck};
use crate::receive::Receiver;

/// Delayed-ACK state: data not acknowledged yet, and the deadline of its acknowledgement.
#[derive(Clone, Debug)]
pub(super) struct Acknowledger {
    policy: Acks,
    mss: u64,
    /// Whether an acknowledgement must be sent now.
    is_due: bool,
    deadline: Option<Time>,
    /// Number of segments since the last acknowledgement.
    segments: u8,
    bytes: u64,
    linux: Linux,
}

/// Linux's additional state.
#[derive(Clone, Copy, Debug)]
struct Linux {
    /// Number of segments that are still acknowledged immediately, if the connection is not interactive.
    quick: u8,
    /// Whether data flows in both directions alternately (`pingpong`).
    is_interactive: bool,
    /// The delay, adapted to the time between arrivals (`ato`); zero before the first.
    delay: Duration,
    last_arrival: Time,
    /// Largest segment seen, up to the negotiated one (`rcv_mss`).
    largest: u64,
    /// Short or pushed segments since the last acknowledgement.
    pushed: u8,
    compression: Compression,
}

/// Duplicate acknowledgements that Linux leaves out because a later one repeats their blocks (`tcp_compressed_ack_kick`).
#[derive(Clone, Copy, Debug, Default)]
struct Compression {
    /// Next number expected when these were counted.
    next: u64,
    /// Duplicates sent immediately.
    duplicates: u8,
    /// Duplicates left out since the last acknowledgement.
    left_out: u8,
    /// Time of the one that stands for them.
    until: Option<Time>,
}

/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`.
const LINUX_MIN_DELAY: Duration = Duration::from_millis(40);
/// `TCP_DELACK_MAX`.
const LINUX_MAX_DELAY: Duration = Duration::from_millis(200);
/// Linux 2.0: the first estimate and the maximum, a third and a half of `HZ`; and a jiffy.
const LINUX_2_0_FIRST: Duration = Duration::from_millis(330);
const LINUX_2_0_MAX_DELAY: Duration = Duration::from_millis(500);
const LINUX_2_0_JIFFY: Duration = Duration::from_millis(10);
/// `TCP_MAX_QUICKACKS`.
const LINUX_QUICK: u8 = 16;
/// `TCP_FASTRETRANS_THRESH`.
const LINUX_DUPLICATES: u8 = 3;
/// `net.ipv4.tcp_comp_sack_nr` and `tcp_comp_sack_delay_ns`; the delay is at most a twentieth of the round trip.
const LINUX_LEFT_OUT: u8 = 44;
const LINUX_COMPRESSION: Duration = Duration::from_millis(1);
/// `TCP_MIN_MSS + sizeof(struct tcphdr)` less the header: the initial `rcv_mss`.
const LINUX_FIRST_MAX_SEGMENT: u64 = 536;

/// Arrived data, as far as acknowledging depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivedData {
    /// Number of bytes.
    pub bytes: u64,
    /// Whether the sender pushed.
    pub is_pushed: bool,
    /// The current retransmission timeout, which bounds Linux's delay.
    pub rto: Duration,
    /// The smoothed round trip, which bounds it as well.
    pub round_trip: Option<Duration>,
}

impl Acknowledger {
    pub(super) const fn new(policy: Acks, mss: u64) -> Self {
        let linux = Linux {
            quick: 0,
            is_interactive: false,
            delay: Duration::ZERO,
            last_arrival: Time::ZERO,
            largest: if mss < LINUX_FIRST_MAX_SEGMENT { mss } else { LINUX_FIRST_MAX_SEGMENT },
            pushed: 0,
            compression: Compression { next: 0, duplicates: 0, left_out: 0, until: None },
        };
        Self { policy, mss, is_due: false, deadline: None, segments: 0, bytes: 0, linux }
    }

    /// Sets the negotiated segment size.
    pub(super) fn set_mss(&mut self, mss: u64) {
        self.mss = mss;
        self.linux.largest = mss.min(LINUX_FIRST_MAX_SEGMENT);
    }

    /// Returns whether an acknowledgement must be sent now.
    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// Returns the deadline of the next acknowledgement, if nothing else happens.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline.into_iter().chain(self.linux.compression.until).min()
    }

    /// Requests an immediate acknowledgement, regardless of the policy.
    pub(super) const fn acknowledge_now(&mut self) {
        self.is_due = true;
    }

    /// Delays a due acknowledgement for as long as the policy delays that of an odd segment: a response may carry it.
    pub(super) fn postpone(&mut self, now: Time) {
        let delay = match self.policy {
            Acks::EverySegment => return,
            Acks::Counted { segments: _, odd } | Acks::ReadBytes { odd } => odd,
            Acks::Linux => OddSegmentAck::After(LINUX_MIN_DELAY),
        };
        self.is_due = false;
        self.start_timer(now, delay);
    }

    /// Handles the end of the peer's stream while ours is open. Linux expects the application to close, and delays the
    /// acknowledgement for its FIN to carry (`tcp_fin`); other stacks acknowledge immediately.
    pub(super) fn acknowledge_end(&mut self, now: Time) {
        match self.policy {
            Acks::EverySegment | Acks::Counted { .. } | Acks::ReadBytes { .. } => self.is_due = true,
            Acks::Linux => {
                self.linux.is_interactive = true;
                self.start_timer(now, OddSegmentAck::After(LINUX_MIN_DELAY));
            }
        }
    }

    /// Stops all acknowledging.
    pub(super) const fn stop(&mut self) {
        (self.deadline, self.linux.compression.until) = (None, None);
        self.is_due = false;
    }

    /// Records data that arrived in order, with no gap before or after it.
    pub(super) fn arrive(&mut self, now: Time, arrived: ArrivedData, receiver: &Receiver) {
        self.segments = self.segments.saturating_add(1);
        self.bytes += arrived.bytes;
        if let Acks::Counted { segments: _, odd: OddSegmentAck::Estimated } = self.policy {
            self.linux.estimate(now, arrived.rto);
        }
        match self.policy {
            Acks::EverySegment => self.is_due = true,
            Acks::Counted { segments, odd } => {
                if self.segments >= segments {
                    self.is_due = true;
                } else {
                    self.start_timer(now, odd);
                }
            }
            Acks::ReadBytes { odd } => self.start_timer(now, odd),
            Acks::Linux => self.arrive_linux(now, arrived, receiver),
        }
    }

    /// Records data beyond a gap; `round_trip` is known, and `has_sack` negotiated, as far as the connection is.
    pub(super) fn arrive_out_of_order(
        &mut self,
        now: Time,
        receiver: &Receiver,
        round_trip: Option<Duration>,
        has_sack: bool,
    ) {
        let is_quick = self.linux.quick > 0 && !self.linux.is_interactive;
        let compresses =
            self.policy == Acks::Linux && has_sack && !is_quick && self.bytes <= self.linux.largest;
        if !compresses || self.linux.compression.leaves_none_out(receiver.next()) {
            self.is_due = true;
            return;
        }
        let delay = round_trip.map_or(LINUX_COMPRESSION, |round_trip| LINUX_COMPRESSION.min(round_trip / 20));
        self.linux.compression.left_out += 1;
        self.linux.compression.until.get_or_insert(now + delay);
    }

    /// Records that the application has read; `opened` is the window's growth since it was last advertised.
    pub(super) fn read(&mut self, opened: u64, receiver: &Receiver) {
        let advertised = receiver.edge().saturating_sub(receiver.next());
        let needs_update = match self.policy {
            // Only a sender that may be blocked needs an update (RFC 1122, section 4.2.3.3).
            Acks::EverySegment | Acks::Counted { segments: _, odd: _ } => {
                2 * opened >= receiver.size() || (advertised < self.mss && opened >= self.mss)
            }
            Acks::ReadBytes { odd: _ } => opened >= 2 * self.mss || 2 * opened >= receiver.size(),
            Acks::Linux => {
                2 * advertised <= receiver.size() && receiver.space() >= 2 * advertised.max(self.mss)
            }
        };
        if needs_update || (self.policy == Acks::Linux && self.acknowledges_read(receiver)) {
            self.is_due = true;
        }
    }

    /// Records that a segment with an acknowledgement was sent.
    pub(super) fn sent(&mut self) {
        if self.linux.quick > 0 && self.bytes > 0 {
            self.linux.quick -= 1;
            if self.linux.quick == 0 {
                self.linux.delay = LINUX_MIN_DELAY;
            }
        }
        self.is_due = false;
        self.deadline = None;
        (self.linux.compression.left_out, self.linux.compression.until) = (0, None);
        (self.segments, self.bytes, self.linux.pushed) = (0, 0, 0);
    }

    /// Records that data was sent: if that is soon after data arrived, the connection is interactive.
    pub(super) fn sent_data(&mut self, now: Time) {
        if now.since(self.linux.last_arrival) < self.linux.delay {
            self.linux.is_interactive = true;
        }
    }

    /// Handles the deadline.
    pub(super) fn expire(&mut self, now: Time, rto: Duration) {
        if self.linux.compression.until.is_some_and(|until| until <= now) {
            self.linux.compression.until = None;
            self.is_due = true;
        }
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        self.deadline = None;
        self.is_due = true;
        if self.linux.is_interactive {
            self.linux.is_interactive = false;
            self.linux.delay = LINUX_MIN_DELAY;
        } else {
            self.linux.delay = (self.linux.delay * 2).min(rto);
        }
    }

    fn start_timer(&mut self, now: Time, odd: OddSegmentAck) {
        if self.deadline.is_none() {
            self.deadline = match odd {
                OddSegmentAck::Never => None,
                OddSegmentAck::After(delay) => Some(now + delay),
                OddSegmentAck::Estimated => Some(now + self.linux.delay.min(LINUX_2_0_MAX_DELAY)),
                OddSegmentAck::OnTick(ticks) => Some(ticks.after(now)),
            };
        }
    }

    fn arrive_linux(&mut self, now: Time, arrived: ArrivedData, receiver: &Receiver) {
        let linux = &mut self.linux;
        if arrived.bytes >= linux.largest {
            linux.largest = arrived.bytes.min(self.mss);
            linux.pushed = linux.pushed.max(u8::from(arrived.is_pushed));
        } else {
            linux.pushed = linux.pushed.saturating_add(1);
        }
        let quick = u8::try_from(receiver.size() / (2 * linux.largest.max(1))).unwrap_or(u8::MAX);
        linux.adapt_ack_delay(now, arrived.rto, quick.clamp(2, LINUX_QUICK));
        if self.bytes > linux.largest || (linux.quick > 0 && !linux.is_interactive) {
            self.is_due = true;
            return;
        }
        let until = now + linux.effective_delay(arrived.round_trip);
        self.deadline = Some(self.deadline.map_or(until, |before| before.min(until)));
    }

    /// Returns whether a read causes an acknowledgement: Linux acknowledges reads of more than a segment, and pushed data
    /// once all of it is read.
    fn acknowledges_read(&self, receiver: &Receiver) -> bool {
        let Linux { quick: _, is_interactive, delay: _, last_arrival: _, largest, pushed, compression: _ } =
            self.linux;
        let is_pushed = pushed >= 2 || (pushed == 1 && !is_interactive);
        self.deadline.is_some() && (self.bytes > largest || (is_pushed && receiver.unread() == 0))
    }
}

impl Compression {
    /// Counts a duplicate; returns whether it is sent at once.
    fn leaves_none_out(&mut self, next: u64) -> bool {
        if self.left_out >= LINUX_LEFT_OUT {
            return true;
        }
        if self.next != next {
            (self.next, self.duplicates) = (next, 0);
        }
        let is_sent = self.duplicates < LINUX_DUPLICATES;
        self.duplicates += u8::from(is_sent);
        is_sent
    }
}

impl Linux {
    /// `tcp_event_data_recv`: the delay follows the time between arrivals; after a long pause, quick again.
    fn adapt_ack_delay(&mut self, now: Time, rto: Duration, quick: u8) {
        let pause = now.since(self.last_arrival);
        self.last_arrival = now;
        if self.delay == Duration::ZERO {
            self.quick = quick;
            self.delay = LINUX_MIN_DELAY;
        } else if pause <= LINUX_MIN_DELAY / 2 {
            self.delay = self.delay / 2 + LINUX_MIN_DELAY / 2;
        } else if pause < self.delay {
            self.delay = (self.delay / 2 + pause).min(rto);
        } else if pause > rto {
            self.quick = self.quick.max(quick);
        }
    }

    /// `tcp_delack_estimator` of Linux 2.0: half of the last estimate and the time since the last arrival.
    fn estimate(&mut self, now: Time, rto: Duration) {
        let pause = now.since(self.last_arrival).max(LINUX_2_0_JIFFY);
        self.last_arrival = now;
        self.delay = if self.delay == Duration::ZERO {
            LINUX_2_0_FIRST
        } else if pause > rto {
            rto
        } else {
            self.delay / 2 + pause
        };
    }

    /// `tcp_send_delayed_ack`.
    fn effective_delay(&self, round_trip: Option<Duration>) -> Duration {
        if self.delay <= LINUX_MIN_DELAY {
            return self.delay;
        }
        let uses_short_delay = self.is_interactive || self.pushed > 0;
        let maximum = if uses_short_delay { LINUX_MAX_DELAY } else { Duration::from_millis(500) };
        let maximum = round_trip.map_or(maximum, |round_trip| maximum.min(round_trip.max(LINUX_MIN_DELAY)));
        self.delay.min(maximum).min(LINUX_MAX_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Payload;
    use crate::config::ReceiveBuffer;

    #[test]
    fn linux_leaves_out_duplicates_after_the_third_for_a_twentieth_of_the_round_trip() {
        let mut receiver = Receiver::new(ReceiveBuffer::Fixed(1 << 20));
        receiver.accept(3_000, &Payload::from(vec![0; 1_000]));
        let mut acks = Acknowledger::new(Acks::Linux, 1_448);
        let mut at = |micros: u64| {
            let now = Time::from_nanos(micros * 1_000);
            if acks.deadline().is_some_and(|deadline| deadline <= now) {
                acks.expire(now, Duration::from_secs(1));
            } else {
                acks.arrive_out_of_order(now, &receiver, Some(Duration::from_millis(4)), true);
            }
            let is_due = acks.is_due();
            if is_due {
                acks.sent();
            }
            is_due
        };
        assert_eq!([0, 12, 24].map(&mut at), [true; 3]);
        assert_eq!([36, 48, 60].map(&mut at), [false; 3]);
        assert!(!at(235), "the timer of the first that was left out runs for 200 us");
        assert!(at(236), "and then one stands for all");
        assert!(!at(240));
    }

    #[test]
    fn every_duplicate_is_sent_without_selective_acknowledgements() {
        let receiver = Receiver::new(ReceiveBuffer::Fixed(1 << 20));
        let mut acks = Acknowledger::new(Acks::Linux, 1_448);
        for _ in 0..10 {
            acks.arrive_out_of_order(Time::ZERO, &receiver, None, false);
            assert!(acks.is_due());
            acks.sent();
        }
    }
}
