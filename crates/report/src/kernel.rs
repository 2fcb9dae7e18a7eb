//! The kernel's view of connections that were captured live, which packets do not show: the limits of their senders.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use diagnose::{FlowReport, Side};
use trace::text::counted;
use wire::Duration;

use crate::span::shown;

/// A socket, by its own address and its peer's.
pub type SocketPair = (SocketAddr, SocketAddr);

/// The kernel's counters of a sender (`TCP_INFO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Time during which it had data to send or unacknowledged.
    pub busy: Duration,
    /// Part of this time limited by the peer's window.
    pub receive_window_limited: Duration,
    /// Part of this time limited by its own send buffer.
    pub send_buffer_limited: Duration,
    /// Smoothed round trip time.
    pub round_trip: Duration,
    /// Number of retransmitted segments.
    pub retransmitted: u32,
}

/// The kernel's counters of the ends on this host, by connection: its client and its server.
#[derive(Clone, Debug, Default)]
pub struct KernelStats(BTreeMap<SocketPair, Vec<(Side, SenderCounters)>>);

impl KernelStats {
    /// Returns the counters of the ends that are on this host.
    pub fn of(&self, flow: &FlowReport) -> &[(Side, SenderCounters)] {
        self.0.get(&(flow.client, flow.server)).map(Vec::as_slice).unwrap_or_default()
    }
}

impl FromIterator<(SocketPair, Vec<(Side, SenderCounters)>)> for KernelStats {
    fn from_iter<I: IntoIterator<Item = (SocketPair, Vec<(Side, SenderCounters)>)>>(connections: I) -> Self {
        Self(connections.into_iter().collect())
    }
}

/// Returns a sentence on the kernel's counters for one end; empty if all are zero, or if they count more time than the
/// connection took: its socket lingered.
pub fn sentence((side, counters): &(Side, SenderCounters), elapsed: Duration) -> Option<String> {
    let SenderCounters { busy, receive_window_limited, send_buffer_limited, round_trip: _, retransmitted } =
        counters;
    const TICKS: Duration = Duration::from_millis(20);
    (*busy > Duration::ZERO && *busy <= elapsed + TICKS).then(|| {
        format!(
            "by its kernel's own count the {side} was busy sending for {}: of this held up by the {}'s window for {}, by its own \
             send buffer for {}; {} retransmitted",
            shown(*busy),
            side.other(),
            shown(*receive_window_limited),
            shown(*send_buffer_limited),
            counted(u64::from(*retransmitted), "segment"),
        )
    })
}
