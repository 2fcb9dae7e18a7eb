//! Named stack profiles, each value with its source.

use quantity::names::{Listing, UnknownName};
use wire::{Bytes, Duration};

use super::packets::{
    AckDelay, BufferOccupancy, Counting, Estimator, Nagle, Packets, Recovery, Restart, Rto, Sharing,
    Termination, Ticks,
};
use super::{Acks, Congestion, Growth, Idle, Stack};

impl Stack {
    /// Every profile, in listing order.
    pub const ALL: [Self; 7] = [PERIOD, SUNOS, BSD, LINUX_2_0, SOLARIS, NT, LINUX];

    /// Current Linux, the kernel of measurements.
    pub const LINUX: Self = LINUX;

    /// Returns the profile of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name, with the nearest and all the others.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|stack| stack.name == name)
            .ok_or_else(|| UnknownName::new("stack", name, LISTINGS.map(|listing| listing.name)))
    }

    /// Returns the descriptions of the profiles, in the order of [`Stack::ALL`].
    pub fn listings() -> impl Iterator<Item = Listing> {
        LISTINGS.into_iter()
    }
}

const LISTINGS: [Listing; 7] = [
    Listing {
        name: PERIOD.name,
        description: "SunOS 4.1.3 as the papers measured it in 1996, with Nagle's algorithm off",
        source: "papers/heidemann-model#section-v, papers/p-http#section-2",
    },
    Listing {
        name: SUNOS.name,
        description: "The same, with Nagle's algorithm on",
        source: "papers/p-http#section-2",
    },
    Listing {
        name: BSD.name,
        description: "4.4BSD, and FreeBSD 2.1",
        source: "Stevens and Wright, TCP/IP Illustrated, volume 2",
    },
    Listing {
        name: LINUX_2_0.name,
        description: "Linux 2.0",
        source: "net/ipv4/tcp_output.c and tcp_input.c of Linux 2.0",
    },
    Listing { name: SOLARIS.name, description: "Solaris 2.5", source: "the tcp_* parameters of ndd(1M)" },
    Listing {
        name: NT.name,
        description: "Windows NT 4.0",
        source: "Microsoft, TCP/IP and NBT Configuration Parameters (Q120642)",
    },
    Listing {
        name: LINUX.name,
        description: "Linux 6 as it ships",
        source: "Documentation/networking/ip-sysctl.rst of Linux 6, RFC 6928, RFC 9438",
    },
];

/// Both papers' hosts: SunOS 4.1.3 with multicast, a 16 kB window, and slow start on the local network as well. Also
/// the server with which both papers measured Table VII and the last row of `papers/p-http#table-1`.
const PERIOD: Stack = Stack {
    name: "period",
    // The ACK of the SYN-ACK has already opened the window by one segment (`papers/p-http`, footnote 1).
    initial_window: 2,
    // The 200 ms of `papers/p-http#section-2`: one free-running clock for the whole host.
    acks: Acks::Heartbeat,
    // "the congestion window ... opened by one for each of the seven acknowledgments" (`papers/heidemann-model#section-v`).
    growth: Growth::PerAcknowledgement,
    // 4.3BSD's congestion avoidance and fast retransmit; without loss only slow start matters.
    congestion: Congestion::Reno,
    // "SunOS 4.x does not reduce the congestion window except due to packet loss" (`papers/p-http`, section 2.4).
    idle: Idle::Unchanged,
    // Apache's second fix (`papers/p-http`, section 2.3): TCP_NODELAY, in effect for Table VII's keep-alive rows.
    nagle: false,
    // RFC 2018 is of October 1996; RFC 1323 was not in SunOS 4.
    sack: false,
    timestamps: false,
    window_scaling: false,
    // "a 16 kB default TCP window size" (`papers/heidemann-model#section-v`).
    receive_buffer: Some(Bytes::new(16_384)),
    packets: Packets {
        // The same default for both buffers.
        send_buffer: Bytes::new(16_384),
        occupancy: BufferOccupancy::Unacknowledged,
        unsent_limit: None,
        // `papers/p-http#figure-4`: 1460, 1460 and 1176 bytes of one write leave together.
        nagle: Nagle::OnEntry,
        // "170-190 ms" and "becomes synchronized" (`papers/p-http`, section 2.2).
        ack_delay: AckDelay::Fixed(Duration::from_millis(200)),
        counting: Counting::Bytes,
        handshake_opens: true,
        // tcp_mss() sets the window to one segment when the SYN arrives, whatever was lost (Stevens vol. 2, section 27.5).
        handshake_timeouts: None,
        // "ssthresh, initialized to 64 kB" (`papers/heidemann-model`, appendix): TCP_MAXWIN, in fact.
        initial_threshold: Some(Bytes::new(65_535)),
        // SunOS 4.1 has 4.3BSD-Tahoe's TCP.
        recovery: Recovery::Tahoe,
        // Not used: the window remains unchanged.
        restart: Restart::AfterSending,
        cwnd_validation: false,
        // RFC 2140 is of April 1997; no profile has the metrics that BSD and Linux cache with a route (RTT, ssthresh).
        sharing: Sharing::None,
        rto: BSD_RTO,
        termination: Termination {
            // 2 MSL of 30 s (TCPTV_MSL).
            time_wait: Duration::from_secs(60),
            unread_resets: false,
            reset_discards: false,
        },
        // Not published; the papers' formulas assume instantaneous hosts.
        wake_up: Duration::ZERO,
    },
};

/// BSD's timer (Stevens vol. 2, figure 25.2).
const BSD_RTO: Rto = Rto {
    estimator: Estimator::Coarse(Ticks::BSD_SLOW),
    // TCPTV_SRTTDFLT of 3 s and no variation known: 6 s.
    initial: Duration::from_secs(6),
    // TCPTV_MIN.
    min: Duration::from_secs(1),
    // TCPTV_REXMTMAX.
    max: Duration::from_secs(64),
    // TCPTV_KEEP_INIT ends a handshake after 75 s: SYNs are sent after 0, 6, 18 and 42 s.
    syn_retries: 3,
    // TCP_MAXRXTSHIFT.
    data_retries: 12,
};

/// The papers' hosts before Apache was fixed.
const SUNOS: Stack = Stack { name: "sunos-4.1.3", nagle: true, ..PERIOD };

/// 4.4BSD-Lite, the origin of FreeBSD 2.1's TCP.
const BSD: Stack = Stack {
    name: "bsd-4.4",
    // "4.4BSD, FreeBSD 2.1, and Linux 2.0 will reset the congestion window" (`papers/p-http`, section 2.4).
    idle: Idle::Restarted,
    nagle: true,
    // tcp_do_rfc1323 = 1 (Stevens vol. 2, figure 24.3).
    timestamps: true,
    window_scaling: true,
    // tcp_recvspace in FreeBSD 2.1; 4.4BSD had 8 KiB.
    receive_buffer: Some(Bytes::new(16_384)),
    packets: Packets {
        // TCP_MAXWIN << TCP_MAX_WINSHIFT: never reached.
        initial_threshold: None,
        recovery: Recovery::Reno,
        // t_idle counts from the last segment received (Stevens vol. 2, section 26.3), so that a request
        // hides the idle time before it (RFC 5681, section 4.1): a response never restarts, contrary to the
        // paper.
        restart: Restart::AfterReceiving,
        ..PERIOD.packets
    },
    ..PERIOD
};

/// Linux 2.0.
const LINUX_2_0: Stack = Stack {
    name: "linux-2.0",
    // cong_window = 1, without another segment for the handshake.
    initial_window: 1,
    acks: Acks::Timer,
    idle: Idle::Restarted,
    nagle: true,
    // SK_RMEM_MAX.
    receive_buffer: Some(Bytes::new(32_767)),
    packets: Packets {
        send_buffer: Bytes::new(32_767),
        occupancy: BufferOccupancy::Unacknowledged,
        unsent_limit: None,
        nagle: Nagle::PerSegment,
        // tcp_delack_estimator, tcp_send_delayed_ack of 2.0.30 and later.
        ack_delay: AckDelay::Estimated,
        counting: Counting::Segments,
        handshake_opens: false,
        // ssthresh = 0x7fffffff.
        initial_threshold: None,
        recovery: Recovery::Reno,
        // tcp_send_skb: cong_window = 1 if nothing waits and the idle time exceeds the timeout.
        restart: Restart::AfterSending,
        sharing: Sharing::None,
        rto: Rto {
            estimator: Estimator::Fine,
            // TCP_TIMEOUT_INIT.
            initial: Duration::from_secs(3),
            // HZ/5.
            min: Duration::from_millis(200),
            max: Duration::from_secs(120),
            syn_retries: 5,
            data_retries: 15,
        },
        ..PERIOD.packets
    },
    ..PERIOD
};

/// Solaris 2.5.
const SOLARIS: Stack = Stack {
    name: "solaris-2.5",
    // tcp_slow_start_initial = 1, without another segment for the handshake.
    initial_window: 1,
    acks: Acks::Timer,
    // As in its descendants (tcp_wput_data: suna == snxt and a timeout since the last segment received).
    idle: Idle::Restarted,
    nagle: true,
    // tcp_recv_hiwat; rounded up to whole segments, 8760 on an Ethernet.
    receive_buffer: Some(Bytes::new(8_760)),
    packets: Packets {
        // tcp_xmit_hiwat.
        send_buffer: Bytes::new(8_192),
        // It is compared with the unsent bytes (TCP_UNSENT_BYTES in OpenSolaris, which has the same TCP by
        // Mentat).
        occupancy: BufferOccupancy::Unsent,
        unsent_limit: None,
        nagle: Nagle::PerSegment,
        // tcp_deferred_ack_interval.
        ack_delay: AckDelay::Fixed(Duration::from_millis(50)),
        handshake_opens: false,
        initial_threshold: None,
        recovery: Recovery::Reno,
        restart: Restart::AfterReceiving,
        sharing: Sharing::None,
        rto: Rto {
            estimator: Estimator::Fine,
            // tcp_rexmit_interval_initial was half a second before Solaris 2.6.
            initial: Duration::from_millis(500),
            // tcp_rexmit_interval_min.
            min: Duration::from_millis(200),
            // tcp_rexmit_interval_max.
            max: Duration::from_secs(240),
            // tcp_ip_abort_cinterval of 3 minutes.
            syn_retries: 8,
            // tcp_ip_abort_interval of 2 minutes.
            data_retries: 8,
        },
        // tcp_close_wait_interval.
        termination: Termination { time_wait: Duration::from_secs(240), ..PERIOD.packets.termination },
        ..PERIOD.packets
    },
    ..PERIOD
};

/// Windows NT 4.0.
const NT: Stack = Stack {
    name: "nt-4.0",
    initial_window: 1,
    // Every second segment, or after 200 ms on a timer of the connection.
    acks: Acks::Timer,
    // Undocumented; undocumented mechanisms are assumed to be absent.
    idle: Idle::Unchanged,
    nagle: true,
    // TcpWindowSize: 8 KiB in whole segments, 8760 on an Ethernet.
    receive_buffer: Some(Bytes::new(8_760)),
    packets: Packets {
        // AFD's DefaultSendWindow.
        send_buffer: Bytes::new(8_192),
        occupancy: BufferOccupancy::Unacknowledged,
        unsent_limit: None,
        nagle: Nagle::PerSegment,
        handshake_opens: false,
        initial_threshold: None,
        recovery: Recovery::Reno,
        sharing: Sharing::None,
        rto: Rto {
            estimator: Estimator::Fine,
            // TcpInitialRTT.
            initial: Duration::from_secs(3),
            min: Duration::from_millis(300),
            max: Duration::from_secs(240),
            // TcpMaxConnectRetransmissions.
            syn_retries: 3,
            // TcpMaxDataRetransmissions.
            data_retries: 5,
        },
        // TcpTimedWaitDelay.
        termination: Termination { time_wait: Duration::from_secs(240), ..PERIOD.packets.termination },
        ..PERIOD.packets
    },
    ..PERIOD
};

/// The defaults of a Linux 6 kernel without a distribution's changes.
const LINUX: Stack = Stack {
    name: "linux",
    // RFC 6928, since Linux 2.6.39.
    initial_window: 10,
    // Quick ACKs at first, then TCP_DELACK_MIN (40 ms).
    acks: Acks::QuickThenDelayed,
    // tcp_slow_start() in net/ipv4/tcp_cong.c: by the number of segments acknowledged.
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
    packets: Packets {
        // The maximum of tcp_wmem.
        send_buffer: Bytes::new(4 << 20),
        occupancy: BufferOccupancy::Unacknowledged,
        unsent_limit: None,
        nagle: Nagle::Minshall,
        // TCP_DELACK_MIN; the rest adapts to arrivals.
        ack_delay: AckDelay::Fixed(Duration::from_millis(40)),
        // packets_out against snd_cwnd.
        counting: Counting::Segments,
        handshake_opens: false,
        // tcp_init_transfer(): total_retrans > 1, unless tcp_try_undo_spurious_syn() finds that none was lost.
        handshake_timeouts: Some(2),
        initial_threshold: None,
        // net.ipv4.tcp_recovery = 1, tcp_early_retrans = 3.
        recovery: Recovery::Rack,
        // tcp_cwnd_restart().
        restart: Restart::Decaying,
        // tcp_cwnd_validate().
        cwnd_validation: true,
        sharing: Sharing::None,
        rto: Rto {
            estimator: Estimator::FineVariation,
            // TCP_TIMEOUT_INIT, TCP_RTO_MIN, TCP_RTO_MAX.
            initial: Duration::from_secs(1),
            min: Duration::from_millis(200),
            max: Duration::from_secs(120),
            // net.ipv4.tcp_syn_retries, tcp_retries2.
            syn_retries: 6,
            data_retries: 15,
        },
        termination: Termination {
            // TCP_TIMEWAIT_LEN.
            time_wait: Duration::from_secs(60),
            // tcp_close(): RFC 2525, section 2.17.
            unread_resets: true,
            reset_discards: false,
        },
        // Interrupt, softirq and scheduler: a process that has slept for a millisecond runs after 45 to 60 us, three
        // times the delay after a short sleep (Linux 6.18 on a virtual machine; `crates/measure`, `emulator::relay`).
        wake_up: Duration::from_micros(50),
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_is_found_by_name_and_a_misspelt_one_suggests_the_nearest() {
        assert!(Stack::ALL.into_iter().all(|stack| Stack::named(stack.name) == Ok(stack)));
        assert_eq!(Stack::named("linuks").unwrap_err().nearest(), Some("linux"));
    }
}
