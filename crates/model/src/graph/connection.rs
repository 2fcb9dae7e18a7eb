//! A connection: when it can be used, and when a response on it arrives.

use page::Host;
use scenario::{Protocol, Scenario, Tls};
use tcp::stack::Idle;
use wire::{Bytes, Duration};

use super::setup::{Setup, setup};
use crate::{Path, SlowStart};

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) path: Path,
    pub(super) opened: Duration,
    pub(super) setup: Setup,
    /// Time from which HTTP/1 may send another request: the end of the last response; never while one is outstanding.
    pub(super) free: Duration,
    /// Requests so far.
    pub(super) requests: u64,
    /// Last byte so far, and its object.
    pub(super) end: Duration,
    pub(super) last: Option<usize>,
    /// First byte of the last response, in the order of requests.
    pub(super) last_first_byte: Duration,
    /// Window at the beginning of the current burst, in segments.
    window: u64,
    /// First byte of the current burst of responses, which follow each other, and the bytes in it so far.
    began: Duration,
    bytes: Bytes,
}

impl Connection {
    /// Opens a connection to this host; one that is warm is open already, and its window, too.
    pub(super) fn open(
        opened: Duration,
        path: Path,
        start: &SlowStart,
        (host, tls): (&Host, Tls),
        is_warm: bool,
    ) -> Self {
        let setup = match is_warm {
            true => Setup::NONE,
            false => setup(&path, start, host, tls),
        };
        Self::opened(opened, path, start, setup, is_warm)
    }

    /// A connection with this set-up.
    pub(super) fn opened(
        opened: Duration,
        path: Path,
        start: &SlowStart,
        setup: Setup,
        is_warm: bool,
    ) -> Self {
        let window = match is_warm {
            true => path.window_to_fill().max(start.initial_window),
            false => grown(start, &path, setup.sent).saturating_sub(setup.in_flight).max(1),
        };
        let ready = opened + setup.tcp + setup.tls;
        Self {
            path,
            opened,
            setup,
            free: ready,
            requests: 0,
            end: ready,
            last: None,
            last_first_byte: ready,
            window,
            began: ready,
            bytes: Bytes::ZERO,
        }
    }

    /// Time from which requests may leave.
    pub(super) fn ready(&self) -> Duration {
        self.opened + self.setup.tcp + self.setup.tls
    }

    /// Whether it is closed: HTTP/1.0 closes it after its response.
    pub(super) fn is_closed(&self, now: Duration, protocol: Protocol) -> bool {
        protocol == Protocol::Http10 && self.requests > 0 && self.free <= now
    }

    /// Appends a response to the current burst, or begins a new one if everything before is acknowledged; returns the time of
    /// its last byte, and how much of it slow start idles.
    pub(super) fn receive(
        &mut self,
        scenario: &Scenario,
        start: &SlowStart,
        first_byte: Duration,
        size: Bytes,
    ) -> (Duration, Duration) {
        let path = &self.path;
        if first_byte >= self.end + path.rtt || self.bytes == Bytes::ZERO {
            let grown = grown(&SlowStart { initial_window: self.window, ..*start }, path, self.bytes);
            self.window = match scenario.stack.idle {
                Idle::Restarted => after_idle(grown, start.initial_window, path, first_byte - self.end),
                Idle::Unchanged | Idle::Paced => grown,
            };
            (self.began, self.bytes) = (first_byte, Bytes::ZERO);
        }
        let start = SlowStart { initial_window: self.window, ..*start };
        self.bytes += size;
        let limited = self.began + path.rate.time_for(self.bytes) + start.delay(path, self.bytes);
        let unlimited = self.end.max(first_byte) + path.rate.time_for(size);
        self.end = limited.max(unlimited);
        (self.end, self.end - unlimited)
    }

    /// Delays the burst: the link was not free before.
    pub(super) fn delay_until(&mut self, end: Duration) {
        let later = end - self.end;
        self.began += later;
        self.end += later;
    }
}

/// Window after these bytes, sent at once: it grows to twice the segments in flight, and not beyond what the acknowledgements
/// open. An application that does not fill it leaves it as it is (RFC 7661; Linux, `tcp_is_cwnd_limited`).
fn grown(start: &SlowStart, path: &Path, bytes: Bytes) -> u64 {
    let segments = bytes.pieces_of(path.mss);
    let opened = start.window_after(path, bytes);
    if segments >= start.initial_window { opened } else { opened.min(2 * segments).max(start.initial_window) }
}

/// Window after an idle time: halved with each retransmission timeout that has passed, as Linux does (RFC 2861).
fn after_idle(window: u64, initial: u64, path: &Path, idle: Duration) -> u64 {
    let timeout = path.rtt + MIN_TIMEOUT_VARIANCE;
    let halvings = idle.as_nanos() / timeout.as_nanos().max(1);
    let shift = u32::try_from(halvings.min(63)).unwrap_or(63);
    (window >> shift).max(window.min(initial))
}

/// Least variance in Linux's retransmission timeout (`TCP_RTO_MIN`).
const MIN_TIMEOUT_VARIANCE: Duration = Duration::from_millis(200);
