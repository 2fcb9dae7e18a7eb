//! The page in order of time: which request leaves when on which connection, and when its response arrives.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use page::{Dependency, Host, Moment, Page, Priority};
use scenario::{Connection as Start, Protocol, Scenario, Tls};
use wire::{Bytes, Duration};

use super::connection::Connection;
use super::link::Link;
use super::quic;
use super::{ObjectTimes, dependencies, moment, processing, request_size};
use crate::{Path, SlowStart};

/// Sums over a page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) connections: u64,
    /// Connections that may transfer at the same time.
    pub(super) concurrent: u64,
    pub(super) payload: Bytes,
}

/// Returns the times of each object.
pub(super) fn load(scenario: &Scenario, path: &Path, start: &SlowStart) -> (Vec<ObjectTimes>, Totals) {
    let mut loading = Loading::new(scenario, path, start);
    while let Some(Reverse((now, event))) = loading.events.pop() {
        match event {
            Event::Known(object) => loading.hold_or_enqueue(now, object, None),
            Event::Ended(object) => loading.end(now, object),
            Event::Hinted(host, opens) => loading.prepare(now, host, opens),
            Event::Resolved(object) => loading.enqueue(now, object),
            Event::Leaving(object) => loading.leave(now, object),
            Event::Usable(pool) => loading.dispatch(now, pool),
            Event::FirstByte(object) => loading.arrive(now, object),
            Event::LastByte(object) => loading.handle(now, object),
        }
    }
    let pools = loading.pools.values().flat_map(|pool| &pool.connections);
    loading.totals.concurrent = pools.filter(|connection| connection.requests > 0).count() as u64;
    (loading.times, loading.totals)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A hint for this host is known, which opens a connection if true, or looks its name up.
    Hinted(usize, bool),
    /// The object's dependencies are met.
    Known(usize),
    /// The name of the object's host is known.
    Resolved(usize),
    /// The client's threads have come to its request.
    Leaving(usize),
    /// A connection of a pool is open, or its response complete.
    Usable(PoolKey),
    /// The first byte of the object's response arrives.
    FirstByte(usize),
    /// Its last byte has arrived.
    LastByte(usize),
    /// The client has handled its response.
    Ended(usize),
}

/// Hosts that share connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PoolKey {
    Host(usize),
    /// An address group, over HTTP/2, or over HTTP/3 if true.
    Group(u32, bool),
}

#[derive(Debug, Default)]
struct Pool {
    connections: Vec<Connection>,
    /// Number of connections over HTTP/2 that carry no request.
    spare: usize,
    /// Requests that wait for one: by priority, then in the order in which they are known.
    queue: BTreeSet<(Reverse<Priority>, Duration, usize)>,
}

struct Loading<'a> {
    scenario: &'a Scenario,
    path: &'a Path,
    start: &'a SlowStart,
    events: BinaryHeap<Reverse<(Duration, Event)>>,
    /// Number of dependencies of each object that are not met, and those that wait for each.
    unmet: Vec<usize>,
    dependents: Vec<Vec<(usize, Dependency)>>,
    /// Hints for hosts that wait for each object.
    hints: Vec<Vec<(usize, Dependency, bool)>>,
    times: Vec<ObjectTimes>,
    /// Objects before the document's body that have not ended, those that are held back for them, and the number in flight beside
    /// the document.
    blocking: BTreeSet<usize>,
    /// Objects that join them when they are requested.
    leaders: BTreeSet<usize>,
    held: BTreeSet<usize>,
    in_flight: usize,
    /// Number of boosted objects in flight.
    boosted_in_flight: usize,
    /// Priority of each object, and whether it is delayable and boosted.
    classes: Vec<(Priority, bool, bool)>,
    /// Time in which each host's name is looked up, and at which it is known.
    lookups: Vec<Duration>,
    resolved: BTreeMap<usize, Duration>,
    /// Time of the client's threads for each request and each response, and the time from which they are free.
    client_time: Duration,
    client_free: Duration,
    /// Requests in flight at which delayable ones are held back until the document's body; of those the number of boosted ones
    /// at which others of them are held back, too.
    before_body: [usize; 2],
    /// Connection of each object.
    carriers: Vec<(PoolKey, usize)>,
    pools: BTreeMap<PoolKey, Pool>,
    down: Link,
    last_on_link: Option<usize>,
    up: Link,
    /// Time until which each host computes, as the client sees it.
    computing: BTreeMap<usize, Duration>,
    totals: Totals,
}

impl<'a> Loading<'a> {
    fn new(scenario: &'a Scenario, path: &'a Path, start: &'a SlowStart) -> Self {
        let after = dependencies(scenario);
        let mut dependents = vec![Vec::new(); after.len()];
        for (object, dependencies) in after.iter().enumerate() {
            for dependency in dependencies {
                dependents[dependency.on].push((object, *dependency));
            }
        }
        let unmet: Vec<usize> = after.iter().map(Vec::len).collect();
        let known = (0..unmet.len()).filter(|object| unmet[*object] == 0);
        let (browser, classes) = (scenario.browser(), scenario.request_classes());
        let is_plain = scenario.page.is_plain();
        let before_body = classes.iter().enumerate().filter(|(_, class)| class.is_before_body && !is_plain);
        let before_body: BTreeSet<usize> = before_body.map(|(object, _)| object).collect();
        let holds = browser.holds_before_request();
        Self {
            scenario,
            path,
            start,
            events: known.map(|object| Reverse((Duration::ZERO, Event::Known(object)))).collect(),
            times: vec![ObjectTimes::default(); unmet.len()],
            hints: hints(&scenario.page),
            blocking: if holds { before_body.clone() } else { BTreeSet::new() },
            leaders: if holds { BTreeSet::new() } else { before_body },
            held: BTreeSet::new(),
            in_flight: 0,
            boosted_in_flight: 0,
            classes: classes
                .iter()
                .map(|class| (class.priority, class.is_delayable, class.is_boosted))
                .collect(),
            lookups: scenario.lookups(),
            resolved: BTreeMap::new(),
            client_time: scenario.page.recorded.and_then(|recorded| recorded.client_time).unwrap_or_default(),
            client_free: Duration::ZERO,
            before_body: [browser.before_body, browser.boosted_before_body],
            carriers: vec![(PoolKey::Host(0), 0); unmet.len()],
            unmet,
            dependents,
            pools: BTreeMap::new(),
            down: Link::default(),
            last_on_link: None,
            up: Link::default(),
            computing: BTreeMap::new(),
            totals: Totals::default(),
        }
    }

    /// Host of an object, and the protocol that it is fetched by.
    fn host(&self, object: usize) -> (usize, &'a Host, Protocol) {
        let index = self.scenario.page.objects[object].host;
        let (host, protocol) = self.protocol(index);
        (index, host, protocol)
    }

    /// A host, and the protocol that it is reached by: HTTP/1.1 as browsers do where HTTP/2 is not offered.
    fn protocol(&self, index: usize) -> (&'a Host, Protocol) {
        let hosts = &self.scenario.page.hosts;
        let host = &hosts[index];
        let protocol = match self.scenario.protocol {
            Protocol::Http3 if host.carries_http3(hosts) => Protocol::Http3,
            // Both connections of an upgrade carry requests in the same number of round trips.
            Protocol::Http2 | Protocol::Http3 | Protocol::Http3Upgrade => match host.carries_http2(hosts) {
                true => Protocol::Http2,
                false => Protocol::Http11Parallel,
            },
            protocol => protocol,
        };
        (host, protocol)
    }

    /// Connections that serve a host.
    fn pool_of(host: &Host, index: usize, protocol: Protocol) -> PoolKey {
        match host.address_group {
            Some(group) if matches!(protocol, Protocol::Http2 | Protocol::Http3) => {
                PoolKey::Group(group, protocol == Protocol::Http3)
            }
            _ => PoolKey::Host(index),
        }
    }

    /// Looks the name of a host up, and opens a connection to it, if there is none.
    fn prepare(&mut self, now: Duration, index: usize, opens: bool) {
        let known = self.resolve(now, index);
        if !opens {
            return;
        }
        if known > now {
            self.events.push(Reverse((known, Event::Hinted(index, true))));
            return;
        }
        let (host, protocol) = self.protocol(index);
        let key = Self::pool_of(host, index, protocol);
        if self.pools.entry(key).or_default().connections.is_empty() {
            self.open(now, key, host, protocol);
        }
    }

    /// Time at which the name of a host is known, if it is wanted now.
    fn resolve(&mut self, now: Duration, index: usize) -> Duration {
        let lookup = self.lookups.get(index).copied().unwrap_or_default();
        *self.resolved.entry(index).or_insert(now + lookup)
    }

    /// Requests an object, unless a browser holds it back: it is delayable, others come before the body, and as many as it permits are
    /// in flight.
    fn hold_or_enqueue(&mut self, now: Duration, object: usize, ended: Option<usize>) {
        let times = &mut self.times[object];
        match ended {
            None => times.known = now,
            Some(_) => times.behind = ended,
        }
        let (_, is_delayable, is_boosted) = self.classes[object];
        let [max, max_boosted] = self.before_body;
        if is_delayable
            && !self.blocking.is_empty()
            && self.in_flight >= max
            && !(is_boosted && self.boosted_in_flight < max_boosted)
        {
            self.held.insert(object);
            return;
        }
        self.held.remove(&object);
        if self.leaders.remove(&object) {
            self.blocking.insert(object);
        }
        self.in_flight += usize::from(object > 0);
        self.boosted_in_flight += usize::from(is_boosted && object > 0);
        self.enqueue(now, object);
    }

    fn end(&mut self, now: Duration, object: usize) {
        self.in_flight -= usize::from(object > 0);
        self.boosted_in_flight -= usize::from(object > 0 && self.classes[object].2);
        self.blocking.remove(&object);
        for held in self.held.clone() {
            self.hold_or_enqueue(now, held, Some(object));
        }
    }

    /// Work of the client's threads for one message, which follows what they do: the time at which it is done.
    fn work(&mut self, now: Duration) -> Duration {
        if self.client_time == Duration::ZERO {
            return now;
        }
        self.client_free = self.client_free.max(now) + self.client_time;
        self.client_free
    }

    /// Requests an object, once the name of its host is known.
    fn enqueue(&mut self, now: Duration, object: usize) {
        let index = self.scenario.page.objects[object].host;
        let known = self.resolve(now, index);
        if known > now {
            self.events.push(Reverse((known, Event::Resolved(object))));
            return;
        }
        match self.work(now) {
            leaves if leaves > now => self.events.push(Reverse((leaves, Event::Leaving(object)))),
            _ => self.leave(now, object),
        }
    }

    /// Sends a request, once a connection to its host is free.
    fn leave(&mut self, now: Duration, object: usize) {
        let (index, host, protocol) = self.host(object);
        let key = Self::pool_of(host, index, protocol);
        let priority = Reverse(self.classes[object].0);
        self.pools.entry(key).or_default().queue.insert((priority, now, object));
        self.dispatch(now, key);
    }

    /// Sends what can be sent, and opens connections for the rest.
    fn dispatch(&mut self, now: Duration, key: PoolKey) {
        while let Some((_, _, object)) = self.pools.get(&key).and_then(|pool| pool.queue.first()).copied() {
            let (_, host, protocol) = self.host(object);
            let Some(pool) = self.pools.get_mut(&key) else { return };
            let is_multiplexed =
                matches!(protocol, Protocol::Http2 | Protocol::Http3 | Protocol::Http11Pipelined);
            let can_take = |connection: &Connection| {
                let is_free = if is_multiplexed { connection.ready() <= now } else { connection.free <= now };
                is_free && !connection.is_closed(now, protocol)
            };
            if let Some(index) = pool.connections.iter().position(can_take) {
                pool.queue.pop_first();
                self.send(now, object, (key, index));
                continue;
            }
            let max = match protocol {
                protocol if protocol == self.scenario.protocol => self.scenario.client.parallel,
                other => other.connections(),
            };
            let max = usize::from(max.max(1));
            let open = || pool.connections.iter().filter(|connection| !connection.is_closed(now, protocol));
            let opening = open().filter(|connection| connection.ready() > now).count();
            let wanted =
                pool.queue.len() + speculative(self.scenario, now, object, protocol, &pool.connections);
            if open().count() >= max || opening >= wanted {
                self.open_spare(now, key, protocol, wanted);
                return;
            }
            self.open(now, key, host, protocol);
        }
    }

    /// Opens a connection to a host.
    fn open(&mut self, now: Duration, key: PoolKey, host: &Host, protocol: Protocol) {
        let pool = self.pools.entry(key).or_default();
        let is_warm = self.scenario.client.connection == Start::Warm && pool.connections.is_empty();
        let path = Path { rtt: self.path.rtt + host.extra_rtt, ..*self.path };
        let opened = match protocol {
            Protocol::Http3 => quic::open(now, path, self.scenario, host, is_warm),
            _ => Connection::open(now, path, self.start, (host, self.scenario.tls), is_warm),
        };
        self.events.push(Reverse((opened.ready(), Event::Usable(key))));
        let late = now + self.scenario.browser().backup_after;
        if !self.scenario.page.is_plain() && pool.connections.is_empty() && opened.ready() > late {
            self.events.push(Reverse((late, Event::Usable(key))));
        }
        pool.connections.push(opened);
        self.totals.connections += u64::from(!is_warm);
    }

    /// Opens the connections over HTTP/2 that a browser wants beside a first one that is not open yet. They carry no request, but their
    /// handshakes take the link.
    fn open_spare(&mut self, now: Duration, key: PoolKey, protocol: Protocol, wanted: usize) {
        let is_browser = protocol == Protocol::Http2 && !self.scenario.page.is_plain();
        let Some(pool) = self.pools.get_mut(&key).filter(|_| is_browser) else { return };
        let Some(first) = pool.connections.first().filter(|first| first.ready() > now) else { return };
        let wanted = wanted.min(self.scenario.browser().connections_per_origin);
        while pool.spare + 1 < wanted {
            pool.spare += 1;
            self.down.carry(now + first.path.rtt * 2, self.path.rate.time_for(first.setup.sent));
            self.totals.connections += 1;
        }
    }

    fn send(&mut self, now: Duration, object: usize, (key, index): (PoolKey, usize)) {
        let (host_index, host, protocol) = self.host(object);
        let Some(connection) = self.pools.get_mut(&key).and_then(|pool| pool.connections.get_mut(index))
        else {
            return;
        };
        let is_secured = self.scenario.tls != Tls::None && host.protocols.tls;
        let is_repeated = connection.requests > 0;
        let request = on_the_wire(request_size(self.scenario, object), protocol, is_secured, is_repeated);
        let arrives = self.up.carry(now, self.path.rate_up.time_for(request)) + connection.path.rtt;
        // The scenario's processing takes the CPU of the host; each response waits for those before it.
        let cpu = self.computing.entry(host_index).or_default();
        *cpu = (*cpu).max(arrives) + self.scenario.server.processing;
        let mut first_byte = *cpu + processing(self.scenario, object);
        if protocol == Protocol::Http11Pipelined {
            // Responses are in the order of their requests.
            first_byte = first_byte.max(connection.last_first_byte);
        }
        let times = &mut self.times[object];
        let secured = connection.opened + connection.setup.tcp;
        if times.known < connection.ready() {
            times.connecting = Some(connection.opened.max(times.known));
            times.securing = Some(secured.max(times.known));
        }
        if now > connection.ready().max(times.known) || connection.opened > times.known {
            times.behind = times.behind.or(connection.last);
        }
        (times.sent, times.first_byte, times.rtt) = (now, first_byte, connection.path.rtt);
        times.is_quic = protocol == Protocol::Http3;
        connection.free = Duration::MAX;
        connection.requests += 1;
        connection.last_first_byte = first_byte;
        self.carriers[object] = (key, index);
        self.totals.payload += request;
        self.events.push(Reverse((first_byte, Event::FirstByte(object))));
        self.discover(object, |at| at == Moment::Begun);
    }

    fn arrive(&mut self, now: Duration, object: usize) {
        let (_, host, protocol) = self.host(object);
        let (key, index) = self.carriers[object];
        let Some(connection) = self.pools.get_mut(&key).and_then(|pool| pool.connections.get_mut(index))
        else {
            return;
        };
        let planned = &self.scenario.page.objects[object];
        let is_secured = self.scenario.tls != Tls::None && host.protocols.tls;
        let head = planned.response_head.unwrap_or(RESPONSE_HEAD);
        let size = on_the_wire(planned.size + head, protocol, is_secured, false);
        let before = connection.last.filter(|_| connection.end > now);
        let start = if protocol == Protocol::Http3 { quic::slow_start(self.scenario) } else { *self.start };
        let (limited, slow_start) = connection.receive(self.scenario, &start, now, size);
        let length = self.path.rate.time_for(size);
        let carried = self.down.carry(now, length);
        let end = limited.max(carried);
        connection.delay_until(end);
        (connection.last, connection.free) = (Some(object), end);
        let times = &mut self.times[object];
        (times.end, times.slow_start) = (end, slow_start);
        let on_link = self.last_on_link.filter(|_| carried > limited && carried > now + length);
        times.behind = times.behind.or(on_link).or(before);
        self.last_on_link = Some(object);
        self.totals.payload += size;
        self.events.push(Reverse((end, Event::Usable(key))));
        self.discover(object, |at| matches!(at, Moment::Delivered(_)));
        if self.client_time == Duration::ZERO {
            return self.handle(end, object);
        }
        self.events.push(Reverse((end, Event::LastByte(object))));
    }

    /// Handles a complete response.
    fn handle(&mut self, now: Duration, object: usize) {
        let end = self.work(now);
        self.times[object].end = end;
        self.events.push(Reverse((end, Event::Ended(object))));
        self.discover(object, |at| at == Moment::Ended);
    }

    /// Notes the moments of an object that are known, of this kind.
    fn discover(&mut self, object: usize, is_known: impl Fn(Moment) -> bool) {
        let size = self.scenario.page.objects[object].size;
        let times = self.times[object];
        for (host, after, opens) in &self.hints[object] {
            if is_known(after.at) {
                let known = moment(&times, after.at, size) + after.plus;
                self.events.push(Reverse((known, Event::Hinted(*host, *opens))));
            }
        }
        for (dependent, dependency) in self.dependents[object].iter().copied() {
            if !is_known(dependency.at) {
                continue;
            }
            let met = moment(&times, dependency.at, size) + dependency.plus;
            let of_dependent = &mut self.times[dependent];
            if met >= of_dependent.known {
                (of_dependent.known, of_dependent.because_of) = (met, Some(object));
            }
            self.unmet[dependent] -= 1;
            if self.unmet[dependent] == 0 {
                self.events.push(Reverse((of_dependent.known, Event::Known(dependent))));
            }
        }
    }
}

/// Hints for hosts, by the object that makes each known, and whether it opens a connection.
fn hints(page: &Page) -> Vec<Vec<(usize, Dependency, bool)>> {
    let mut hints = vec![Vec::new(); page.objects.len()];
    for (index, host) in page.hosts.iter().enumerate() {
        for (after, opens) in host.hints.all() {
            hints[after.on].push((index, after, opens));
        }
    }
    hints
}

/// Overhead of a TLS record of 16 kB (RFC 8446, section 5.2), and of a frame of HTTP/2 (RFC 9113, section 4.1).
const RECORD: u64 = 22;
const FRAME: u64 = 9;
const RECORD_BYTES: u64 = 16_384;
/// Size of a header section, if it is not known; as of a response of Apache in `papers/p-http#figure-2`.
const RESPONSE_HEAD: Bytes = Bytes::new(226);

/// Bytes that a message takes on a connection: with records and frames, and HTTP/2's header compression.
fn on_the_wire(message: Bytes, protocol: Protocol, is_secured: bool, is_repeated_request: bool) -> Bytes {
    let message = match protocol {
        // HPACK sends fields of earlier requests as indices; the path and what changes remain.
        Protocol::Http2 if is_repeated_request => Bytes::new(message.get() / 4),
        Protocol::Http3 => return quic::on_the_wire(message, is_repeated_request),
        _ => message,
    };
    let pieces = message.get().div_ceil(RECORD_BYTES);
    let records = if is_secured { pieces * RECORD } else { 0 };
    let frames = if protocol == Protocol::Http2 { (pieces + 1) * FRAME } else { 0 };
    message + Bytes::new(records + frames)
}

/// Number of connections that a browser opens beyond one for each waiting request: with the first of a visit, and where the first to a
/// host is not open after a while.
fn speculative(
    scenario: &Scenario,
    now: Duration,
    object: usize,
    protocol: Protocol,
    connections: &[Connection],
) -> usize {
    if scenario.page.is_plain() || !matches!(protocol, Protocol::Http11Parallel | Protocol::Http2) {
        return 0;
    }
    let browser = scenario.browser();
    let is_late = |first: &Connection| now >= first.opened + browser.backup_after && first.ready() > now;
    usize::from(object == 0 && browser.opens_second) + usize::from(connections.first().is_some_and(is_late))
}
