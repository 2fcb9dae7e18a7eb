//! The stack profiles that have names, each value with its source.

use wire::Bytes;

use super::{Acks, Congestion, Growth, Idle, Stack};
use crate::names::{Listing, Unknown};

impl Stack {
    /// Every profile, in the order they are listed.
    pub const ALL: [Self; 2] = [PERIOD, LINUX];

    /// The profile of that name.
    ///
    /// # Errors
    /// [`Unknown`] when there is none, with the nearest and all the others.
    pub fn named(name: &str) -> Result<Self, Unknown> {
        Self::ALL
            .into_iter()
            .find(|stack| stack.name == name)
            .ok_or_else(|| Unknown::new("stack", name, LISTINGS.map(|listing| listing.name)))
    }

    /// What each name stands for, in the order of [`Stack::ALL`].
    pub fn listings() -> impl Iterator<Item = Listing> {
        LISTINGS.into_iter()
    }
}

const LISTINGS: [Listing; 2] = [
    Listing {
        name: PERIOD.name,
        description: "SunOS 4.1.3 as the papers measured it in 1996, with Nagle's algorithm off",
        source: "papers/heidemann-model#section-v, papers/p-http#section-2",
    },
    Listing {
        name: LINUX.name,
        description: "Linux 6 as it ships",
        source: "Documentation/networking/ip-sysctl.rst of Linux 6, RFC 6928, RFC 9438",
    },
];

/// Both papers' machines: SunOS 4.1.3 with multicast, a 16 kB window and slow start on the local network, too;
/// and the server that both papers measured Table VII and the last row of `papers/p-http#table-1` with.
const PERIOD: Stack = Stack {
    name: "period",
    // The ACK of the SYN-ACK has already opened the window by one segment (`papers/p-http`, footnote 1).
    initial_window: 2,
    // The 200 ms of `papers/p-http#section-2`: one free-running clock for the whole host.
    acks: Acks::Heartbeat,
    // "the congestion window ... opened by one for each of the seven acknowledgments" (`papers/heidemann-model#section-v`).
    growth: Growth::PerAcknowledgement,
    // 4.3BSD's congestion avoidance and fast retransmit; without loss it is slow start that matters.
    congestion: Congestion::Reno,
    // "SunOS 4.x does not reduce the congestion window except due to packet loss" (`papers/p-http`, section 2.4).
    idle: Idle::Kept,
    // Apache's second fix (`papers/p-http`, section 2.3): TCP_NODELAY, in force for Table VII's keep-alive rows.
    nagle: false,
    // RFC 2018 is of October 1996; RFC 1323 was not in SunOS 4.
    sack: false,
    timestamps: false,
    window_scaling: false,
    // "a 16 kB default TCP window size" (`papers/heidemann-model#section-v`).
    receive_buffer: Some(Bytes::new(16_384)),
};

/// The defaults of a Linux 6 kernel without a distribution's changes.
const LINUX: Stack = Stack {
    name: "linux",
    // RFC 6928, since Linux 2.6.39.
    initial_window: 10,
    // Quick ACKs at first, then TCP_DELACK_MIN (40 ms).
    acks: Acks::QuickThenDelayed,
    // tcp_slow_start() in net/ipv4/tcp_cong.c: by what was acknowledged.
    growth: Growth::PerSegment,
    // The default of net.ipv4.tcp_congestion_control.
    congestion: Congestion::Cubic,
    // net.ipv4.tcp_slow_start_after_idle = 1.
    idle: Idle::Restarted,
    // Minshall's variant, unless a program sets TCP_NODELAY.
    nagle: true,
    // net.ipv4.tcp_sack, tcp_timestamps and tcp_window_scaling = 1.
    sack: true,
    timestamps: true,
    window_scaling: true,
    // net.ipv4.tcp_moderate_rcvbuf = 1: it grows with the transfer.
    receive_buffer: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_is_found_by_its_name_and_a_slip_is_told_the_nearest() {
        assert!(Stack::ALL.into_iter().all(|stack| Stack::named(stack.name) == Ok(stack)));
        assert_eq!(Stack::named("linuks").unwrap_err().nearest(), Some("linux"));
    }
}
