//! CUBIC's growth beyond slow start (RFC 9438): a cubic function of the time since the last loss.
//!
//! Floats use additions, products and quotients only, and the cube root is computed here, so that every CPU computes the
//! same.

use wire::{Duration, Time};

/// `C` (RFC 9438, section 5).
const SCALE: f64 = 0.4;
/// `beta_cubic` (section 4.6).
const BETA: f64 = 0.7;
/// `alpha_cubic` (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Least growth, as a part of what is acknowledged, before the first loss: the curve does not know the path yet (Linux,
/// net/ipv4/tcp_cubic.c, `bictcp_update`: "increase cwnd 5% per RTT").
const BEFORE_LOSS: f64 = 0.05;

/// State of CUBIC. Windows are in segments.
#[derive(Clone, Debug, Default)]
pub(super) struct Cubic {
    /// Window at the last loss; 0 before the first, and after a timeout.
    before_loss: f64,
    epoch: Option<Epoch>,
}

/// An epoch: the time since congestion avoidance began.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Time from `start` until the window of the last loss is reached again, in seconds (`K`).
    reach: f64,
    /// Window at the curve's inflection point.
    origin: f64,
    /// Window that Reno would have.
    reno: f64,
    /// The window, including the fraction of a byte.
    cwnd: f64,
}

impl Cubic {
    /// Returns the window after this many bytes were acknowledged in congestion avoidance.
    pub(super) fn grow(&mut self, now: Time, cwnd: u64, bytes: u64, mss: u64, round_trip: Duration) -> u64 {
        let segments = bytes as f64 / mss as f64;
        let before_loss = self.before_loss;
        let current = cwnd as f64 / mss as f64;
        let epoch = self.epoch.get_or_insert_with(|| {
            let origin = before_loss.max(current);
            let reach = cube_root((origin - current) / SCALE);
            Epoch { start: now, reach, origin, reno: current, cwnd: current }
        });
        let offset = (now.since(epoch.start) + round_trip).as_secs_f64() - epoch.reach;
        let target = epoch.origin + SCALE * offset * offset * offset;
        let target = target.clamp(epoch.cwnd, 1.5 * epoch.cwnd);
        let curve = (target - epoch.cwnd) / epoch.cwnd;
        let least = if before_loss == 0.0 { BEFORE_LOSS } else { 0.0 };
        epoch.cwnd += segments * curve.max(least);
        epoch.reno += ALPHA * segments / epoch.reno;
        epoch.cwnd = epoch.cwnd.max(epoch.reno);
        // Positive, and far below 2^63.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let grown = (epoch.cwnd * mss as f64) as u64;
        grown.max(cwnd)
    }

    /// Returns the threshold after a loss at this window, in bytes like `cwnd`; fast convergence included (section
    /// 4.7).
    pub(super) fn threshold_after_loss(&mut self, cwnd: u64, mss: u64) -> u64 {
        self.epoch = None;
        let segments = cwnd as f64 / mss as f64;
        let is_falling = segments < self.before_loss;
        self.before_loss = if is_falling { segments * (1.0 + BETA) / 2.0 } else { segments };
        // 0.7 in integer arithmetic.
        cwnd / 10 * 7 + cwnd % 10 * 7 / 10
    }

    /// Forgets the path after a timeout (Linux, `bictcp_reset`).
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Restarts the curve after idle (section 5.8).
    pub(super) const fn reset_epoch(&mut self) {
        self.epoch = None;
    }
}

/// Cube root by Newton's method, to the last bit or two.
fn cube_root(number: f64) -> f64 {
    if number <= 0.0 {
        return 0.0;
    }
    let mut root = if number > 1.0 { number / 3.0 + 1.0 } else { 1.0 };
    for _ in 0..100 {
        let next = (2.0 * root + number / (root * root)) / 3.0;
        if next >= root {
            break;
        }
        root = next;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_root_is_accurate() {
        for number in [1e-9, 0.3, 1.0, 8.0, 75.0, 1e6] {
            let root = cube_root(number);
            assert!((root * root * root / number - 1.0).abs() < 1e-12, "{number}: {root}");
        }
        assert_eq!(cube_root(0.0), 0.0);
    }

    #[test]
    fn window_grows_by_a_twentieth_in_each_round_trip_before_the_first_loss() {
        let mut cubic = Cubic::default();
        let (mss, round_trip) = (1000, Duration::from_millis(10));
        let mut cwnd = 100 * mss;
        for round in 0..10 {
            cwnd = cubic.grow(Time::ZERO + round_trip * round, cwnd, cwnd, mss, round_trip);
        }
        // 100 times 1.05 to the power of 10; the curve and Reno are slower.
        assert_eq!(cwnd / mss, 162);
        cwnd = cubic.threshold_after_loss(cwnd, mss);
        let after_loss = cubic.grow(Time::ZERO + Duration::from_millis(110), cwnd, cwnd, mss, round_trip);
        assert!(after_loss < cwnd + cwnd / 40, "{after_loss}");
    }

    #[test]
    fn window_returns_to_its_size_before_the_loss_and_pauses_there() {
        let mut cubic = Cubic::default();
        let mss = 1000;
        let mut cwnd = cubic.threshold_after_loss(100 * mss, mss);
        assert_eq!(cwnd, 70 * mss);
        // K = cbrt(100 * 0.3 / 0.4) = 4.2 s.
        let mut at_reach = 0;
        for step in 0..60_u64 {
            let now = Time::ZERO + Duration::from_millis(100 * step);
            cwnd = cubic.grow(now, cwnd, cwnd, mss, Duration::from_millis(100));
            if step == 42 {
                at_reach = cwnd;
            }
        }
        assert!((95 * mss..=101 * mss).contains(&at_reach), "{at_reach}");
        assert!(cwnd > at_reach, "{cwnd}");
    }
}
