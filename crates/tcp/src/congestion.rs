//! The congestion window: its start, growth and reduction (RFC 5681; Stevens vol. 2, section 21.4).
//!
//! All values are in bytes. The bytes in flight are in `flight`, loss detection in `recovery`.

use wire::{Duration, Time};

use crate::ack_info::AckInfo;
use crate::config::{Avoidance, Congestion, Growth};
use crate::cubic::Cubic;
use crate::hystart::HyStart;

/// The congestion window.
#[derive(Clone, Debug)]
pub(super) struct Window {
    config: Congestion,
    mss: u64,
    cwnd: u64,
    threshold: u64,
    /// Bytes acknowledged since the last step of congestion avoidance (RFC 3465).
    credit: u64,
    cubic: Cubic,
    hystart: Option<HyStart>,
}

impl Window {
    pub(super) fn new(config: Congestion, mss: u64) -> Self {
        let hystart = match config.avoidance {
            Avoidance::Reno | Avoidance::Cubic { hystart: false } => None,
            Avoidance::Cubic { hystart: true } => Some(HyStart::default()),
        };
        Self {
            config,
            mss,
            cwnd: u64::from(config.initial_window) * mss,
            threshold: config.initial_threshold.map_or(u64::MAX, u64::from),
            credit: 0,
            cubic: Cubic::default(),
            hystart,
        }
    }

    /// Returns the window, in bytes.
    pub(super) const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// Returns the slow start threshold, in bytes.
    pub(super) const fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Returns whether the connection is in slow start.
    pub(super) const fn is_slow_start(&self) -> bool {
        self.cwnd < self.threshold
    }

    /// Sets the negotiated segment size.
    pub(super) fn set_mss(&mut self, mss: u64) {
        self.cwnd = self.cwnd / self.mss * mss;
        self.mss = mss;
    }

    /// Opens a server's window at the peer's acknowledgement of our SYN (BSD).
    pub(super) fn open_by_handshake(&mut self) {
        if self.config.handshake_opens {
            self.cwnd += self.mss;
        }
    }

    /// Starts with one segment, after this many timeouts of the SYN or SYN-ACK (RFC 5681, section 3.1; Linux).
    pub(super) fn start_after_timeouts(&mut self, timeouts: u8) {
        if self.config.handshake_timeouts.is_some_and(|limit| timeouts >= limit) {
            self.cwnd = self.mss;
        }
    }

    /// Sets window and threshold from the cached state of the path (RFC 2140).
    pub(super) fn adopt(&mut self, cwnd: u64, threshold: u64) {
        (self.cwnd, self.threshold) = (cwnd.max(self.cwnd), threshold);
    }

    /// Sets this connection's share of a window that several connections have in common (RFC 2140).
    pub(super) fn share(&mut self, cwnd: u64) {
        self.cwnd = cwnd.max(self.mss);
    }

    /// Observes a new acknowledgement, whether or not the window limited sending: slow start may end with it (Linux, net/ipv4/tcp_cubic.c,
    /// `cubictcp_acked`, which `tcp_clean_rtx_queue` calls for each).
    pub(super) fn observe(&mut self, now: Time, ack: &AckInfo) {
        let is_slow_start = self.is_slow_start();
        if let (Some(hystart), Some(round_trip)) = (&mut self.hystart, ack.round_trip) {
            hystart.observe(round_trip);
            if is_slow_start && hystart.ends_slow_start(now, ack, round_trip, self.cwnd / self.mss) {
                self.threshold = self.cwnd;
            }
        }
    }

    /// Grows at a new acknowledgement, if the window limited sending.
    pub(super) fn grow(&mut self, now: Time, ack: AckInfo) {
        if self.is_slow_start() {
            let beyond = self.slow_start(&ack);
            if beyond > 0 {
                self.avoid_congestion(now, beyond, &ack);
            }
        } else {
            self.avoid_congestion(now, ack.bytes, &ack);
        }
    }

    /// Reduces the window at a loss detected by duplicate ACKs, with `outstanding` bytes in flight or lost.
    pub(super) fn reduce(&mut self, outstanding: u64) {
        self.reduce_threshold(outstanding);
        self.cwnd = self.threshold;
    }

    /// Reduces the window to one segment, for slow start, at a loss detected by the timer, or by Tahoe.
    pub(super) fn collapse(&mut self, outstanding: u64) {
        self.reduce_threshold(outstanding);
        self.cwnd = self.mss;
        self.cubic.forget();
        self.hystart = self.hystart.as_ref().map(|_| HyStart::default());
    }

    /// Reduces the window when the timer expires again for the same loss.
    pub(super) const fn collapse_again(&mut self) {
        self.cwnd = self.mss;
    }

    /// Ends recovery: limits the window so that no burst follows.
    pub(super) fn end_recovery(&mut self, outstanding: u64) {
        self.cwnd = self.threshold.min(outstanding.max(self.mss) + self.mss);
    }

    /// Reduces the window to at most `segments` after idle.
    pub(super) fn restart(&mut self, segments: u16) {
        self.cwnd = self.cwnd.min(u64::from(segments) * self.mss);
        self.cubic.reset_epoch();
    }

    /// Limits the window to this many bytes; slow start continues from there up to the threshold.
    pub(super) fn limit(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.min(bytes.max(self.mss));
        self.cubic.reset_epoch();
    }

    /// Decays after idle for `timeouts` retransmission timeouts: halved for each, but not below the initial
    /// window (RFC 2861, section 3.1).
    pub(super) fn decay(&mut self, timeouts: u64) {
        let minimum = (u64::from(self.config.initial_window) * self.mss).min(self.cwnd);
        self.threshold = self.threshold.max(self.cwnd / 4 * 3);
        for _ in 0..timeouts.min(64) {
            self.cwnd = (self.cwnd / 2).max(minimum);
        }
        self.cubic.reset_epoch();
    }

    /// Slow start. Returns the bytes beyond its end, which count for congestion avoidance.
    fn slow_start(&mut self, ack: &AckInfo) -> u64 {
        let increment = match self.config.growth {
            Growth::PerAck => {
                self.cwnd += self.mss;
                return 0;
            }
            Growth::PerByte { max_segments } => {
                // Linux counts segments: a short one that is acknowledged opens the window as much as a full
                // one.
                ack.segments.min(u64::from(max_segments)) * self.mss
            }
        };
        let grown = (self.cwnd + increment).min(self.threshold);
        let used = grown - self.cwnd;
        self.cwnd = grown;
        increment - used
    }

    fn avoid_congestion(&mut self, now: Time, bytes: u64, ack: &AckInfo) {
        match (self.config.avoidance, self.config.growth) {
            (Avoidance::Reno, Growth::PerAck) => self.cwnd += (self.mss * self.mss / self.cwnd).max(1),
            (Avoidance::Reno, Growth::PerByte { max_segments: _ }) => {
                self.credit += bytes;
                if self.credit >= self.cwnd {
                    self.credit -= self.cwnd;
                    self.cwnd += self.mss;
                }
            }
            (Avoidance::Cubic { hystart: _ }, _) => {
                let round_trip = ack.round_trip.unwrap_or(Duration::ZERO);
                self.cwnd = self.cubic.grow(now, self.cwnd, bytes, self.mss, round_trip);
            }
        }
    }

    fn reduce_threshold(&mut self, outstanding: u64) {
        let lowered = match self.config.avoidance {
            Avoidance::Reno => outstanding / 2,
            Avoidance::Cubic { hystart: _ } => self.cubic.threshold_after_loss(self.cwnd, self.mss),
        };
        self.threshold = lowered.max(2 * self.mss);
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Counting;

    fn window(growth: Growth, initial_threshold: Option<u32>) -> Window {
        let config = Congestion {
            initial_window: 2,
            handshake_opens: false,
            handshake_timeouts: None,
            initial_threshold,
            counting: Counting::Bytes,
            growth,
            avoidance: Avoidance::Reno,
            cwnd_validation: false,
        };
        Window::new(config, 100)
    }

    fn acknowledge(window: &mut Window, segments: u64) {
        let bytes = segments * 100;
        let ack = AckInfo { bytes, segments, number: 0, next: 0, round_trip: None };
        window.grow(Time::ZERO, ack);
    }

    #[test]
    fn slow_start_grows_by_a_segment_or_by_the_bytes_acknowledged() {
        let mut per_ack = window(Growth::PerAck, None);
        acknowledge(&mut per_ack, 2);
        assert_eq!(per_ack.cwnd(), 300);
        let mut per_byte = window(Growth::PerByte { max_segments: 2 }, None);
        acknowledge(&mut per_byte, 2);
        acknowledge(&mut per_byte, 9);
        assert_eq!(per_byte.cwnd(), 600);
    }

    #[test]
    fn congestion_avoidance_grows_by_a_segment_per_window() {
        let mut reno = window(Growth::PerByte { max_segments: 2 }, Some(400));
        acknowledge(&mut reno, 2);
        assert_eq!(reno.cwnd(), 400);
        (0..4).for_each(|_| acknowledge(&mut reno, 1));
        assert_eq!(reno.cwnd(), 500);
        let mut per_ack = window(Growth::PerAck, Some(200));
        (0..2).for_each(|_| acknowledge(&mut per_ack, 1));
        assert_eq!(per_ack.cwnd(), 290);
    }

    /// Of a page, most responses leave the window open: the round trips of their acknowledgements are the path's.
    #[test]
    fn acknowledgements_of_a_window_that_is_not_full_end_slow_start() {
        let config = Congestion {
            initial_window: 20,
            avoidance: Avoidance::Cubic { hystart: true },
            ..window(Growth::PerByte { max_segments: 2 }, None).config
        };
        let mut window = Window::new(config, 100);
        let mut observe = |number, next, millis| {
            let at = Time::ZERO + Duration::from_millis(10 * number);
            let round_trip = Some(Duration::from_millis(millis));
            window.observe(at, &AckInfo { bytes: 100, segments: 1, number, next, round_trip });
            window.is_slow_start()
        };
        assert!(observe(1, 20, 40));
        let ended = (21..=40).find(|number| !observe(*number, 40, 60));
        assert_eq!(ended, Some(29), "eight longer round trips, and one more");
    }

    #[test]
    fn idle_time_halves_the_window_but_not_below_the_initial_window() {
        let mut window = window(Growth::PerAck, None);
        (0..6).for_each(|_| acknowledge(&mut window, 1));
        assert_eq!(window.cwnd(), 800);
        window.decay(1);
        assert_eq!(window.cwnd(), 400);
        window.decay(60);
        assert_eq!(window.cwnd(), 200);
        window.restart(1);
        assert_eq!(window.cwnd(), 100);
    }

    #[test]
    fn loss_halves_the_outstanding_data_down_to_two_segments() {
        let mut window = window(Growth::PerAck, None);
        window.reduce(900);
        assert_eq!((window.cwnd(), window.threshold()), (450, 450));
        window.collapse(300);
        assert_eq!((window.cwnd(), window.threshold()), (100, 200));
    }
}
