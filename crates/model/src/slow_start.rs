//! Slow start of TCP's congestion window, and its cost (`papers/heidemann-model#appendix`, Table V).
//!
//! A sender fills its window and stalls until the first acknowledgement returns: a *period* is the transmission between
//! two stalls. No segment is lost and no timer expires. The window grows with each acknowledgement until the path is
//! full, the reply ends, or `ssthresh` is reached.

use std::iter;

use tcp::stack::{Acks, Growth};
use wire::{Bytes, Duration};

use crate::Path;

/// Parameters of the window's growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowStart {
    /// Acknowledgement policy of the receiver.
    pub acks: Policy,
    /// Growth per acknowledgement: one segment in the paper.
    pub growth: Growth,
    /// `cwnd(1)`, in segments: 2 in the paper, because the ACK of the SYN has opened it by one. 0 counts as 1.
    pub initial_window: u64,
    /// Slow start threshold; `None` if unlimited.
    pub ssthresh: Option<Bytes>,
}

/// Acknowledgement policy of a receiver, as in the appendix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// Every segment (`ae`).
    EverySegment,
    /// Every second segment, and the odd last one of a period immediately (`da`): the upper bound for BSD.
    Delayed,
    /// Every second segment, and the odd one with the next period's first (`nda`): the lower bound for BSD.
    NoDelayed,
}

/// Transmission between two stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The congestion window at its beginning, in segments: `cwnd(i)`.
    pub cwnd: u64,
    /// Segments sent: `segs(i)`.
    pub segs: u64,
    /// Segments sent since the connection began: `csegs(i)`.
    pub csegs: u64,
}

/// Wait for acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Transmission time of the segments before it.
    pub sending: Duration,
    /// Part of the round trip without transmission: `wastedstalltime(i)`.
    pub wasted: Duration,
}

impl SlowStart {
    /// Iterates over the stalls in a reply, in order; each wastes the remaining round trip.
    ///
    /// The text counts the smallest n with `ss_segs <= csegs(n)`. The tables count one fewer, and are right:
    /// no stall follows the last transmission.
    pub fn stalls(&self, path: &Path, reply: Bytes) -> impl Iterator<Item = Stall> {
        let (path, acks, ss_segs) = (*path, self.acks, self.segments(path, reply));
        self.periods().take_while(move |period| period.csegs < ss_segs).map(move |period| Stall {
            sending: path.segments_time(period.segs),
            wasted: acks.wasted(&path, period.segs),
        })
    }

    /// Returns the total time that slow start wastes in a reply: `slowstartdelay`.
    pub fn delay(&self, path: &Path, reply: Bytes) -> Duration {
        self.stalls(path, reply).map(|stall| stall.wasted).sum()
    }

    /// Returns the segments sent before slow start ends: `ss_segs = min(muws, reply / mss, ssthresh)`.
    pub fn segments(&self, path: &Path, reply: Bytes) -> u64 {
        let threshold = self.ssthresh.map_or(u64::MAX, |ssthresh| ssthresh.pieces_of(path.mss));
        path.window_to_fill().min(reply.pieces_of(path.mss)).min(threshold)
    }

    /// Returns the window after a reply has been sent completely and acknowledged, in segments: the initial window of the
    /// next reply.
    pub fn window_after(&self, path: &Path, reply: Bytes) -> u64 {
        let segments = reply.pieces_of(path.mss);
        let last = self.states().find(|(period, _)| period.csegs >= segments);
        // The windows grow without bound, so there is a last period.
        last.map_or(u64::MAX, |(period, unacked)| {
            let sent = period.segs - (period.csegs - segments);
            let unacked_segments = sent.saturating_add(unacked);
            let acks = unacked_segments.div_ceil(self.acks.segments_per_ack());
            period.cwnd.saturating_add(self.window_growth(acks, unacked_segments))
        })
    }

    /// Iterates over an unlimited sequence of periods: equations (17) and (18).
    pub fn periods(&self) -> impl Iterator<Item = Period> {
        self.states().map(|(period, _)| period)
    }

    /// Iterates over the periods, each with the segments that the previous one left unacknowledged: `unacked(i - 1)`.
    fn states(&self) -> impl Iterator<Item = (Period, u64)> {
        let start = *self;
        let cwnd = start.initial_window.max(1);
        let first = (Period { cwnd, segs: cwnd, csegs: cwnd }, 0);
        iter::successors(Some(first), move |(period, unacked_before)| {
            let (acks, unacked) = start.acks.acknowledge(period.segs, *unacked_before);
            let acknowledged = period.segs.saturating_add(*unacked_before).saturating_sub(unacked);
            let cwnd = period.cwnd.saturating_add(start.window_growth(acks, acknowledged));
            let segs = cwnd.saturating_sub(unacked);
            Some((Period { cwnd, segs, csegs: period.csegs.saturating_add(segs) }, unacked))
        })
    }

    /// Returns the growth of the window in segments, by `acks` acknowledgements of `acknowledged` segments.
    fn window_growth(&self, acks: u64, acknowledged: u64) -> u64 {
        match self.growth {
            Growth::PerAcknowledgement => acks,
            Growth::PerSegment => acknowledged,
        }
    }
}

impl Policy {
    /// Returns `acks(i)` and `unacked(i)` for a period of `segs` segments with `unacked` waiting before it.
    fn acknowledge(self, segs: u64, unacked: u64) -> (u64, u64) {
        match self {
            Self::EverySegment => (segs, 0),
            Self::Delayed => (segs.div_ceil(2), 0),
            Self::NoDelayed => {
                let unacked_segments = segs.saturating_add(unacked);
                // A single segment (initial window of 1) is acknowledged by the timer.
                let acks = (unacked_segments / 2).max(1);
                (acks, unacked_segments.saturating_sub(acks.saturating_mul(2)))
            }
        }
    }

    /// Returns the segments that must arrive before the first acknowledgement is sent: `k`.
    const fn segments_per_ack(self) -> u64 {
        match self {
            Self::EverySegment => 1,
            Self::Delayed | Self::NoDelayed => 2,
        }
    }

    /// Returns `rtt - (segs - k) / bw`, or zero where the period outlasts the round trip.
    fn wasted(self, path: &Path, segs: u64) -> Duration {
        path.rtt - path.segments_time(segs.saturating_sub(self.segments_per_ack()))
    }
}

impl From<Acks> for Policy {
    /// BSD's heartbeat is closest to the lower bound, as Fig. 3 of the paper shows. Linux acknowledges every
    /// segment at the beginning of a connection, which is when it slow-starts.
    fn from(acks: Acks) -> Self {
        match acks {
            Acks::EverySegment | Acks::QuickThenDelayed => Self::EverySegment,
            Acks::Delayed => Self::Delayed,
            Acks::NoDelayed | Acks::Heartbeat | Acks::Timer => Self::NoDelayed,
        }
    }
}

#[cfg(test)]
mod tests {
    use scenario::Network;

    use super::*;

    const EVERY: SlowStart = SlowStart {
        acks: Policy::EverySegment,
        growth: Growth::PerAcknowledgement,
        initial_window: 2,
        ssthresh: None,
    };
    const NO_DELAYED: SlowStart = SlowStart { acks: Policy::NoDelayed, ..EVERY };

    #[test]
    fn paper_figure_3_sends_2_3_3_and_6_segments_and_opens_the_window_to_9() {
        let sent: Vec<u64> = NO_DELAYED.periods().take(4).map(|period| period.segs).collect();
        assert_eq!(sent, [2, 3, 3, 6]);
        let measured = Path { mss: Bytes::new(512), ..Path::from(&Network::named("fast-internet").unwrap()) };
        assert_eq!(NO_DELAYED.window_after(&measured, Bytes::new(6651)), 9);
    }

    #[test]
    fn window_grows_by_the_acknowledgements_of_a_reply() {
        let path = Path::from(&Network::named("fast-internet").unwrap());
        let after = |start: SlowStart, segments: u64| start.window_after(&path, Bytes::new(512 * segments));
        assert_eq!([1, 2, 3, 13, 14].map(|segments| after(EVERY, segments)), [3, 4, 5, 15, 16]);
        assert_eq!([1, 2, 3, 13].map(|segments| after(NO_DELAYED, segments)), [3, 3, 4, 9]);
    }

    #[test]
    fn window_growing_by_acknowledged_segments_doubles_with_delayed_acks() {
        let linux = SlowStart { growth: Growth::PerSegment, ..NO_DELAYED };
        let sent: Vec<u64> = linux.periods().take(4).map(|period| period.segs).collect();
        assert_eq!(sent, [2, 4, 8, 16]);
    }

    #[test]
    fn a_reply_that_fits_the_first_window_does_not_stall() {
        let path = Path::from(&Network::named("direcpc").unwrap());
        assert_eq!(EVERY.stalls(&path, Bytes::new(1024)).count(), 0);
        assert_eq!(EVERY.stalls(&path, Bytes::new(1025)).count(), 1);
        assert_eq!(SlowStart { initial_window: 10, ..EVERY }.stalls(&path, Bytes::new(5120)).count(), 0);
    }

    #[test]
    fn period_that_fills_the_round_trip_wastes_nothing() {
        let path = Path::from(&Network::named("modem").unwrap());
        assert_eq!(Policy::EverySegment.wasted(&path, 1), path.rtt);
        assert_eq!(Policy::EverySegment.wasted(&path, 100), Duration::ZERO);
    }

    #[test]
    fn slow_start_ends_at_its_threshold() {
        let path = Path::from(&Network::named("direcpc").unwrap());
        let limited = SlowStart { ssthresh: Some(Bytes::new(4096)), ..EVERY };
        assert_eq!(limited.segments(&path, Bytes::new(102_400)), 8);
        assert!(limited.delay(&path, Bytes::new(102_400)) < EVERY.delay(&path, Bytes::new(102_400)));
    }

    #[test]
    fn every_initial_window_grows() {
        for acks in [Policy::EverySegment, Policy::Delayed, Policy::NoDelayed] {
            for initial_window in [0, 1, 2, 3, 10, u64::MAX] {
                let start = SlowStart { acks, initial_window, ..EVERY };
                let periods = start.periods().take_while(|period| period.csegs < u64::MAX).count();
                assert!(periods < 200, "{acks:?} from {initial_window}: {periods}");
            }
        }
    }
}
