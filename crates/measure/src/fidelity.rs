//! Stack fidelity: the parts of a stack profile that no Linux kernel reproduces, and the scenarios in which they show.
//!
//! A scenario flows in; the first part that would make the measured packets differ flows out, if any. The
//! parts that the kernel, its settings and the link's shims do reproduce are set in [`crate::profile`]. A
//! part that cannot show is honoured: the rule for it is here, and `tests/fidelity.rs` of the program shows
//! it in simulated packets.

use std::fmt;

use http1::server::Closing;
use scenario::network::Direction;
use scenario::programs::HeadWrite;
use scenario::{Network, Programs, Protocol, Remark, Requests, Scenario, Stack};
use tcp::stack::packets::{AckDelay, Counting, Nagle, Packets, Recovery, Restart, Sharing, Termination};
use tcp::stack::{Acks, Congestion, Growth, Idle};
use wire::link::{Loss, Order, QueueDiscipline, QueueLimit};
use wire::{Bytes, Duration, Probability};

/// A stack that this kernel cannot reproduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreproducible {
    /// Name of the stack profile.
    pub stack: &'static str,
    /// The part of it that would show.
    pub part: StackPart,
}

/// A part of a stack profile that the kernel does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackPart {
    /// Nagle's algorithm in another form than Minshall's.
    Nagle(Nagle),
    /// Acknowledgement policy of the receiver.
    Acks(Acks),
    /// Delay of an acknowledgement by something other than a heartbeat of 200 ms.
    AckDelay,
    /// A window that opens per acknowledgement, combined with something that the shim does not support.
    Growth,
    /// A congestion window of segments where Linux's is of bytes, or vice versa.
    Counting,
    /// A congestion window that grows although it is not used.
    UnusedGrowth,
    /// A first slow-start threshold below the largest window.
    Threshold,
    /// Congestion window after idle.
    Idle,
    /// A fixed receive buffer, scaled or larger than 64 KiB.
    ReceiveBuffer,
    /// Loss recovery.
    Recovery(Recovery),
    /// The retransmission timer.
    Rto,
    /// Effect of a close with unread data on the peer.
    Reset,
    /// State that connections share.
    Sharing,
    /// The first window of a server that accepts some connections and opens others itself.
    MixedOpening,
}

impl StackPart {
    /// Missing feature, as in "the kernel has no ...".
    const fn missing(self) -> &'static str {
        match self {
            Self::Nagle(Nagle::OnEntry) => "Nagle's algorithm of 4.3BSD",
            Self::Nagle(Nagle::PerSegment | Nagle::Minshall) => "Nagle's algorithm of RFC 896",
            Self::Acks(Acks::Timer) => "delayed-ACK timer of this stack",
            Self::Acks(Acks::Delayed) => "ACK at the end of each flight",
            Self::Acks(Acks::NoDelayed) => "receiver that never acknowledges an odd segment",
            Self::Acks(Acks::EverySegment | Acks::Heartbeat | Acks::QuickThenDelayed) | Self::AckDelay => {
                "delayed ACK of this length"
            }
            Self::Growth => "window that opens per ACK, together with window scaling or a restart after idle",
            Self::Counting => "congestion window in this unit",
            Self::UnusedGrowth => "congestion window that grows unused",
            Self::Threshold => "initial slow-start threshold",
            Self::Idle => "restart after idle in this form",
            Self::ReceiveBuffer => "fixed window that is scaled, or larger than 65,535 bytes",
            Self::Recovery(Recovery::Tahoe) => "loss recovery of 4.3BSD-Tahoe",
            Self::Recovery(Recovery::Reno) => "loss recovery of 4.3BSD-Reno",
            Self::Recovery(Recovery::NewReno | Recovery::Sack | Recovery::Rack) => {
                "such loss recovery with or without SACK"
            }
            Self::Rto => "retransmission timer of this stack",
            Self::Reset => "close that spares unread data a reset",
            Self::Sharing => "window that connections share, or inherit from one another",
            Self::MixedOpening => "initial window that depends on which end opened the connection",
        }
    }

    /// Alternative that can be measured.
    const fn remedy(self) -> &'static str {
        match self {
            Self::Nagle(_) => "measure with --stack linux or --nagle off, or simulate",
            Self::Recovery(_) => "measure with --stack linux or without loss and reordering, or simulate",
            Self::Rto => "measure with --stack linux or over a faster network, or simulate",
            Self::Reset => "measure with --stack linux or --server-close careful, or simulate",
            Self::Sharing => "measure with --sharing none, or simulate",
            Self::MixedOpening => "measure with --stack linux or a smaller --request-size, or simulate",
            Self::Acks(_)
            | Self::AckDelay
            | Self::Growth
            | Self::Counting
            | Self::UnusedGrowth
            | Self::Threshold
            | Self::Idle
            | Self::ReceiveBuffer => "measure with --stack linux or period, or simulate",
        }
    }
}

impl fmt::Display for Unreproducible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stack, part } = self;
        write!(f, "--stack {stack}: the kernel has no {}; {}", part.missing(), part.remedy())
    }
}

/// Refuses a scenario whose packets would show a part of the stack that this kernel does not have. The sizes of writes are known
/// of our own programs (`Peers::default`), not of others.
///
/// # Errors
/// The first such part.
pub fn check(scenario: &Scenario, writes_are_known: bool) -> Result<(), Unreproducible> {
    let stack = scenario.programs.sockets(&scenario.stack);
    let never_holds = writes_are_known && never_holds_short_segments(&stack, scenario);
    let part = missing_anywhere(&stack).or_else(|| missing_here(&stack, scenario, never_holds));
    part.map_or(Ok(()), |part| Err(Unreproducible { stack: stack.name, part }))
}

/// Note on a response that the kernel's larger send buffer takes in one write, and the stack's in several. It
/// changes a page's time by less than a fiftieth.
pub fn send_buffer_note(scenario: &Scenario) -> Option<Remark> {
    let buffer = scenario.stack.packets.send_buffer;
    let is_larger = scenario.page.objects.iter().any(|object| object.size > buffer);
    let is_kernels_own = scenario.programs.send_buffer.is_none();
    let is_deviation = is_larger && is_kernels_own && buffer < Stack::LINUX.packets.send_buffer;
    is_deviation.then_some(Remark::LargerSendBuffer(scenario.stack.name))
}

/// The first part that shows in every scenario.
fn missing_anywhere(stack: &Stack) -> Option<StackPart> {
    let Stack {
        name: _,
        // Set by route, option or sysctl: [`crate::profile`].
        initial_window: _,
        acks,
        growth,
        congestion: Congestion::Reno | Congestion::Cubic,
        idle,
        // [`missing_here`].
        nagle: _,
        sack: _,
        timestamps: _,
        window_scaling,
        receive_buffer,
        packets,
    } = stack;
    let Packets {
        // With a receive window of the same size it never limits what is in flight: [`send_buffer_note`].
        send_buffer: _,
        occupancy: _,
        nagle: _, // [`missing_here`].
        ack_delay,
        counting,
        // The initial window of the end that opens the connection, and a sysctl: [`crate::profile`].
        handshake_opens: _,
        unsent_limit: _,
        initial_threshold,
        recovery: _,
        restart,
        cwnd_validation,
        sharing,
        rto: _,
        // A run ends long before a port is reused; the rest: [`missing_here`].
        termination: Termination { time_wait: _, unread_resets: _, reset_discards: _ },
        handshake_timeouts: _, // The measuring host's own, as the time to wake up.
        wake_up: _,
    } = packets;
    let is_shimmed = *growth == Growth::PerAcknowledgement;
    let fixed = receive_buffer.as_ref().map(|size| size.get());
    let largest = fixed.unwrap_or(u64::MAX);
    let is_delay_known = match acks {
        Acks::Heartbeat => *ack_delay == AckDelay::Fixed(HEARTBEAT),
        Acks::EverySegment | Acks::QuickThenDelayed | Acks::Timer | Acks::Delayed | Acks::NoDelayed => true,
    };
    let has_acks = match acks {
        Acks::EverySegment | Acks::Heartbeat | Acks::QuickThenDelayed => true,
        Acks::Timer | Acks::Delayed | Acks::NoDelayed => false,
    };
    let has_idle = match (idle, restart) {
        (Idle::Unchanged, _) | (Idle::Restarted, Restart::Decaying) => true,
        (Idle::Restarted, Restart::AfterSending | Restart::AfterReceiving) | (Idle::Paced, _) => false,
    };
    let has_counting = match counting {
        // The shim cuts windows by bytes.
        Counting::Bytes => is_shimmed,
        Counting::Segments => !is_shimmed,
    };
    let rules = [
        (has_acks, StackPart::Acks(*acks)),
        (is_delay_known, StackPart::AckDelay),
        (!is_shimmed || (*idle == Idle::Unchanged && !window_scaling), StackPart::Growth),
        (has_counting, StackPart::Counting),
        (is_shimmed || *cwnd_validation, StackPart::UnusedGrowth),
        (initial_threshold.is_none_or(|threshold| threshold.get() >= largest), StackPart::Threshold),
        (has_idle, StackPart::Idle),
        (fixed.is_none_or(|size| size <= MAX_UNSCALED_WINDOW && !window_scaling), StackPart::ReceiveBuffer),
        (*sharing == Sharing::None, StackPart::Sharing),
    ];
    rules.into_iter().find(|(is_reproduced, _)| !is_reproduced).map(|(_, part)| part)
}

/// The first part that shows in this scenario.
fn missing_here(stack: &Stack, scenario: &Scenario, never_holds: bool) -> Option<StackPart> {
    let Packets { nagle, recovery, rto, termination, .. } = &stack.packets;
    let linux = Stack::LINUX.packets.rto;
    let has_nagle = !stack.nagle || *nagle == Nagle::Minshall || never_holds;
    let has_recovery = matches!((stack.sack, recovery), (true, Recovery::Rack) | (false, Recovery::NewReno));
    // Before the first measurement the timer has its initial value: a SYN-ACK must arrive by then.
    let first = rto.initial.min(linux.initial);
    let has_rto = *rto == linux || scenario.network.rtt + syn_waits(stack, scenario) < first;
    let has_reset =
        (termination.unread_resets && !termination.reset_discards) || !closes_naively(&scenario.programs);
    let rules = [
        (has_nagle, StackPart::Nagle(*nagle)),
        (has_recovery || is_lossless(&scenario.network), StackPart::Recovery(*recovery)),
        (has_rto, StackPart::Rto),
        (has_reset, StackPart::Reset),
    ];
    rules.into_iter().find(|(is_reproduced, _)| !is_reproduced).map(|(_, part)| part)
}

/// Whether no form of Nagle's algorithm ever delays a segment: each end writes once on a connection. The client
/// writes a single segment. The server writes a response that fits its send buffer, with the FIN that releases the
/// last short segment.
fn never_holds_short_segments(stack: &Stack, scenario: &Scenario) -> bool {
    let Programs { server_head, server_buffer, .. } = &scenario.programs;
    let buffer = stack.packets.send_buffer.get();
    let fits = scenario.page.objects.iter().all(|object| object.size.get() + MAX_HEADER_BYTES <= buffer);
    let writes_once = *server_head != Some(HeadWrite::Apart) && server_buffer.is_none() && fits;
    let options = if stack.timestamps { TIMESTAMPS_OPTION_BYTES } else { 0 };
    let segment = scenario.network.mss.get().saturating_sub(options);
    scenario.protocol == Protocol::Http10 && writes_once && scenario.client.request.get() <= segment
}

/// Maximum time that a SYN waits behind data: each of the other open connections sends a window.
fn syn_waits(stack: &Stack, scenario: &Scenario) -> Duration {
    let connections = match (scenario.protocol, scenario.client.requests) {
        (Protocol::Dhttp, _) => 1,
        (Protocol::Http10, Requests::Independent) => u64::from(scenario.client.parallel.saturating_sub(1)),
        // Sequential connections.
        _ => 0,
    };
    let page = scenario.page.size().get();
    let window = stack.receive_buffer.map_or(page, |buffer| buffer.get());
    scenario.network.rate.time_for(Bytes::new(page.min(window.saturating_mul(connections))))
}

/// Whether every packet arrives once and in order.
fn is_lossless(network: &Network) -> bool {
    [&network.up, &network.down].into_iter().all(|direction| {
        let Direction { queue, discipline, loss, jitter, reordering, duplication } = direction;
        *queue == QueueLimit::default()
            && *discipline == QueueDiscipline::DropTail
            && *loss == Loss::None
            && jitter.is_none_or(|jitter| jitter.order == Order::Preserved)
            && reordering.is_none()
            && *duplication == Probability::NEVER
    })
}

fn closes_naively(programs: &Programs) -> bool {
    programs.server_close == Some(Closing::Naive)
}

/// Period of the shim's clock ([`testbed::ack_heartbeat`]).
const HEARTBEAT: Duration = Duration::from_millis(200);
/// Upper bound of our server's response headers, bytes.
const MAX_HEADER_BYTES: u64 = 1_024;
/// The largest window without scaling, bytes.
const MAX_UNSCALED_WINDOW: u64 = 65_535;
/// Size of the option in each segment (RFC 7323), padding included.
const TIMESTAMPS_OPTION_BYTES: u64 = 12;
