//! Connections of a browser: which of them carries a request, and when its response arrives.

use std::collections::BTreeMap;

use page::Host;
use scenario::{Connection as Start, Protocol, Scenario, Tls};
use tcp::stack::Idle;
use wire::{Bytes, Duration};

use super::setup::{Setup, setup};
use super::{ObjectTimes, processing, request_size};
use crate::{Path, SlowStart};

/// Connections to every host of a page, and the links that they share.
pub(super) struct Connections<'a> {
    scenario: &'a Scenario,
    path: &'a Path,
    start: &'a SlowStart,
    pools: BTreeMap<Pool, Vec<Connection>>,
    /// Time from which the link towards the client is free, and the object before that; the same towards the servers.
    free: Duration,
    last: Option<usize>,
    free_up: Duration,
    /// Time until which each host computes, as the client sees it.
    computing: BTreeMap<usize, Duration>,
    opened: u64,
}

/// Hosts that share connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    Host(usize),
    /// An address group, over HTTP/2.
    Group(u32),
}

/// A connection.
#[derive(Debug)]
struct Connection {
    opened: Duration,
    setup: Setup,
    /// Time from which a request may leave: for HTTP/1, after the last response.
    usable: Duration,
    /// Window at the beginning of the current burst, in segments.
    window: u64,
    /// First byte of the current burst of responses, which follow each other, and the bytes in it so far.
    began: Duration,
    bytes: Bytes,
    /// Last byte so far.
    end: Duration,
    /// Requests so far.
    requests: u64,
    /// Object of the last response.
    last: Option<usize>,
}

/// A response, and how it came about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    pub(super) request: Bytes,
    pub(super) size: Bytes,
    rtt: Duration,
    connecting: Option<(Duration, Duration)>,
    sent: Duration,
    first_byte: Duration,
    end: Duration,
    slow_start: Duration,
    behind: Option<usize>,
}

impl Reply {
    pub(super) fn times(&self, known: Duration, because_of: Option<usize>) -> ObjectTimes {
        ObjectTimes {
            known,
            connecting: self.connecting.map(|(connecting, _)| connecting),
            securing: self.connecting.map(|(_, securing)| securing),
            sent: self.sent,
            first_byte: self.first_byte,
            end: self.end,
            slow_start: self.slow_start,
            rtt: self.rtt,
            because_of,
            behind: self.behind,
        }
    }
}

/// Overhead of a TLS record of 16 kB (RFC 8446, section 5.2), and of a frame of HTTP/2 (RFC 9113, section 4.1).
const RECORD: u64 = 22;
const FRAME: u64 = 9;
const RECORD_BYTES: u64 = 16_384;
/// Size of a header section, if it is not known; as of a response of Apache in `papers/p-http#figure-2`.
const RESPONSE_HEAD: Bytes = Bytes::new(226);

impl<'a> Connections<'a> {
    pub(super) fn new(scenario: &'a Scenario, path: &'a Path, start: &'a SlowStart) -> Self {
        let (free, free_up, computing) = (Duration::ZERO, Duration::ZERO, BTreeMap::new());
        let pools = BTreeMap::new();
        Self { scenario, path, start, pools, free, last: None, free_up, computing, opened: 0 }
    }

    /// Returns the number of connections opened.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    /// Returns how many may transfer at the same time.
    pub(super) fn concurrent(&self) -> u64 {
        self.pools.values().map(|pool| pool.len() as u64).sum()
    }

    /// Fetches an object that is known from that time.
    pub(super) fn fetch(&mut self, object: usize, known: Duration) -> Reply {
        let scenario = self.scenario;
        let planned = &scenario.page.objects[object];
        let host = &scenario.page.hosts[planned.host];
        let path = Path { rtt: self.path.rtt + host.extra_rtt, ..*self.path };
        let protocol = protocol_of(scenario, host);
        let (pool, index) = self.carrier(protocol, planned.host, &path, known);
        let start = self.start;
        let is_secured = scenario.tls != Tls::None && host.protocols.tls;
        let head = planned.response_head.unwrap_or(RESPONSE_HEAD);
        let pools = &mut self.pools;
        let connection = &mut pools.entry(pool).or_default()[index];

        let request =
            on_the_wire(request_size(scenario, object), protocol, is_secured, connection.requests > 0);
        let size = on_the_wire(planned.size + head, protocol, is_secured, false);
        let ready = connection.opened + connection.setup.tcp + connection.setup.tls;
        let connecting = (known < ready)
            .then(|| (connection.opened.max(known), (connection.opened + connection.setup.tcp).max(known)));
        let usable = connection.usable.max(known);
        self.free_up = usable.max(self.free_up) + path.rate_up.time_for(request);
        // The scenario's processing takes the CPU of the host; each response waits for those before it.
        let cpu = self.computing.entry(planned.host).or_default();
        *cpu = (*cpu).max(self.free_up + path.rtt) + scenario.server.processing;
        let mut first_byte = *cpu + processing(scenario, object);
        if protocol == Protocol::Http11Pipelined {
            // Responses are in the order of their requests.
            first_byte = first_byte.max(connection.end);
        }
        let is_behind_its_connection =
            connection.usable > ready.max(known) || connection.end > first_byte || connection.opened > known;
        let before = connection.last.filter(|_| is_behind_its_connection);
        let (limited, slow_start) = connection.receive(scenario, &path, start, first_byte, size);
        let on_link = first_byte.max(self.free) + path.rate.time_for(size);
        let behind = if on_link > limited { self.last.filter(|_| self.free > first_byte) } else { before };
        let end = limited.max(on_link);
        connection.delay_until(end);
        (self.free, self.last) = (on_link, Some(object));
        connection.requests += 1;
        connection.last = Some(object);
        connection.usable = match protocol {
            Protocol::Http2 | Protocol::Http11Pipelined => connection.usable,
            _ => end,
        };
        Reply { request, size, rtt: path.rtt, connecting, sent: usable, first_byte, end, slow_start, behind }
    }

    /// Returns the connection that can carry a request first: an idle one, or a new one if there may be more. A new
    /// connection is opened whenever none is idle; the request leaves on whichever is usable first.
    fn carrier(&mut self, protocol: Protocol, host: usize, path: &Path, known: Duration) -> (Pool, usize) {
        let scenario = self.scenario;
        let planned = &scenario.page.hosts[host];
        let pool_key = match planned.address_group {
            Some(group) if protocol == Protocol::Http2 => Pool::Group(group),
            _ => Pool::Host(host),
        };
        let max = match protocol {
            Protocol::Http10 | Protocol::Http11Parallel => usize::from(scenario.client.parallel.max(1)),
            _ => 1,
        };
        let open = |at, is_warm| Connection::open(at, path, self.start, (planned, scenario.tls), is_warm);
        let pool = self.pools.entry(pool_key).or_default();
        let has_idle = pool.iter().any(|connection| connection.usable <= known);
        if pool.is_empty() || !has_idle && pool.len() < max {
            let is_warm = scenario.client.connection == Start::Warm && pool.is_empty();
            pool.push(open(known, is_warm));
            self.opened += u64::from(!is_warm);
        }
        let usable = |index: &usize| pool.get(*index).map(|connection| connection.usable.max(known));
        let first = (0..pool.len()).min_by_key(usable).unwrap_or(0);
        // HTTP/1.0 closes a connection after its response; the next one takes its place.
        if protocol == Protocol::Http10
            && let Some(connection) = pool.get_mut(first).filter(|connection| connection.requests > 0)
        {
            *connection = Connection { last: connection.last, ..open(connection.usable.max(known), false) };
            self.opened += 1;
        }
        (pool_key, first)
    }
}

/// Protocol of a host: HTTP/1.1 where HTTP/2 is not offered, by as many connections as browsers open.
fn protocol_of(scenario: &Scenario, host: &Host) -> Protocol {
    match scenario.protocol {
        Protocol::Http2 if !host.protocols.http2 => Protocol::Http11Parallel,
        protocol => protocol,
    }
}

/// Bytes that a message takes on a connection: with records and frames, and HTTP/2's header compression.
fn on_the_wire(message: Bytes, protocol: Protocol, is_secured: bool, is_repeated_request: bool) -> Bytes {
    let message = match protocol {
        // HPACK sends fields of earlier requests as indices; the path and what changes remain.
        Protocol::Http2 if is_repeated_request => Bytes::new(message.get() / 4),
        _ => message,
    };
    let pieces = message.get().div_ceil(RECORD_BYTES);
    let records = if is_secured { pieces * RECORD } else { 0 };
    let frames = if protocol == Protocol::Http2 { (pieces + 1) * FRAME } else { 0 };
    message + Bytes::new(records + frames)
}

impl Connection {
    fn open(
        opened: Duration,
        path: &Path,
        start: &SlowStart,
        (host, tls): (&Host, Tls),
        is_warm: bool,
    ) -> Self {
        let setup = match is_warm {
            true => Setup { tcp: Duration::ZERO, tls: Duration::ZERO, sent: Bytes::ZERO },
            false => setup(path, start, host, tls),
        };
        let usable = opened + setup.tcp + setup.tls;
        let window = match is_warm {
            true => path.window_to_fill().max(start.initial_window),
            false => start.window_after(path, setup.sent),
        };
        Self {
            opened,
            setup,
            usable,
            window,
            began: usable,
            bytes: Bytes::ZERO,
            end: usable,
            requests: 0,
            last: None,
        }
    }

    /// Appends a response to the current burst, or begins a new one if everything before is acknowledged; returns the time of
    /// its last byte, and how much of it slow start idles.
    fn receive(
        &mut self,
        scenario: &Scenario,
        path: &Path,
        start: &SlowStart,
        first_byte: Duration,
        size: Bytes,
    ) -> (Duration, Duration) {
        if first_byte >= self.end + path.rtt || self.bytes == Bytes::ZERO {
            let grown = SlowStart { initial_window: self.window, ..*start }.window_after(path, self.bytes);
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
    fn delay_until(&mut self, end: Duration) {
        let later = end - self.end;
        self.began += later;
        self.end += later;
    }
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
