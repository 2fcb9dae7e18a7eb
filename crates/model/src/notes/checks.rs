//! Comparison of a scenario with the formulas' assumptions: one check for each kind of note.

use scenario::network::Direction;
use scenario::programs::ProgramKey;
use scenario::serving;
use scenario::serving::changed_objects;
use scenario::{Connection, Protocol, Requests, Scenario, Stack, Visit};
use tcp::stack::Idle;
use tcp::stack::packets::Sharing;
use wire::link::{Loss, QueueDiscipline, QueueLimit};
use wire::{Bytes, Probability};

use super::Note;
use crate::dhttp::Datagram;
use crate::{Exchange, Path, SlowStart, parallel};

/// Returns every assumption that the scenario breaks, in the order of [`Note`]; `exchanges` as the protocol sends them.
pub(crate) fn notes(
    scenario: &Scenario,
    path: &Path,
    start: &SlowStart,
    datagram: &Datagram,
    exchanges: &[Exchange],
) -> Vec<Note> {
    let kind = ProtocolProperty::of(scenario.protocol);
    [
        one_request_at_a_time(scenario, kind),
        parallel_connections(scenario, kind),
        warm_connection(scenario, kind),
        window_not_open(scenario, path, start, datagram, exchanges),
        window_limited(scenario, path, kind, exchanges),
        beyond_threshold(path, start, kind, exchanges),
        loss(scenario),
        jitter(scenario),
        reordering(scenario),
        scenario.programs.described_without(&IN_THE_FORMULAS).map(|sentence| Note::Programs { sentence }),
        modem(scenario),
        duplication(scenario),
        mean_rate(scenario),
        queue_management(scenario),
        short_queue(scenario, path, exchanges),
        asymmetric(path),
        large_request(scenario, path),
        fragmented(scenario, path, datagram, exchanges),
        revalidation(scenario, datagram.response_head),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns every assumption that a scenario breaks whose page is predicted as a graph.
pub(crate) fn of_graph(
    scenario: &Scenario,
    path: &Path,
    start: &SlowStart,
    exchanges: &[Exchange],
    connections: u64,
    response_head: Bytes,
) -> Vec<Note> {
    let kind = ProtocolProperty::of(scenario.protocol);
    // QUIC's windows are those of its own ends.
    let has_tcp = scenario.protocol != Protocol::Http3;
    [
        (connections > 1).then_some(Note::InTurn { connections }),
        (scenario.protocol == Protocol::Http3Upgrade).then_some(Note::UpgradeAsHttp2),
        serving::without_offer(scenario).map(Note::WithoutOffer),
        window_limited(scenario, path, kind, exchanges).filter(|_| has_tcp),
        beyond_threshold(path, start, kind, exchanges).filter(|_| has_tcp),
        loss(scenario),
        jitter(scenario),
        reordering(scenario),
        scenario.programs.described_without(&IN_GRAPHS).map(|sentence| Note::Programs { sentence }),
        modem(scenario),
        duplication(scenario),
        mean_rate(scenario),
        queue_management(scenario),
        short_queue(scenario, path, exchanges),
        revalidation(scenario, response_head),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Settings of programs and sockets that the formulas honour.
const IN_THE_FORMULAS: [ProgramKey; 3] =
    [ProgramKey::ServerChanged, ProgramKey::InitialWindow, ProgramKey::ClientPages];

/// The same of graphs.
const IN_GRAPHS: [ProgramKey; 6] = [
    ProgramKey::ServerChanged,
    ProgramKey::InitialWindow,
    ProgramKey::ClientPages,
    ProgramKey::ClientDns,
    ProgramKey::Browser,
    ProgramKey::Http3Server,
];

/// Properties of a protocol that the notes depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProtocolProperty {
    /// Lower bound of all protocols.
    LowerBound,
    /// A connection for every object.
    ConnectionPerObject,
    /// A persistent connection, or cached TCP state; requests wait for responses.
    Persistent,
    /// Several persistent connections; requests wait for responses on each.
    PersistentParallel,
    /// A persistent connection; requests do not wait.
    Pipelined,
    /// Datagrams, with cached state only where windows are shared.
    Uncached,
    /// Datagrams and a persistent connection.
    DatagramsAndTcp,
}

impl ProtocolProperty {
    const fn of(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Minimum => Self::LowerBound,
            Protocol::Http10 => Self::ConnectionPerObject,
            Protocol::Http10KeepAlive | Protocol::Http11 | Protocol::Ttcp => Self::Persistent,
            Protocol::Http11Parallel => Self::PersistentParallel,
            Protocol::Http11Pipelined
            | Protocol::Http11PipelinedDeflate
            | Protocol::Http2
            | Protocol::Http3
            | Protocol::Http3Upgrade => Self::Pipelined,
            Protocol::Ardp => Self::Uncached,
            Protocol::Dhttp => Self::DatagramsAndTcp,
        }
    }
}

fn one_request_at_a_time(scenario: &Scenario, kind: ProtocolProperty) -> Option<Note> {
    let objects = scenario.page.objects.len();
    let connections = match kind {
        ProtocolProperty::ConnectionPerObject if scenario.client.parallel <= 1 => 1,
        ProtocolProperty::Persistent => 1,
        ProtocolProperty::PersistentParallel => parallel::connections(&scenario.client, objects),
        ProtocolProperty::LowerBound
        | ProtocolProperty::ConnectionPerObject
        | ProtocolProperty::Pipelined
        | ProtocolProperty::Uncached
        | ProtocolProperty::DatagramsAndTcp => return None,
    };
    let waits = (objects as u64).div_ceil(connections).saturating_sub(1);
    let is_broken = scenario.client.requests == Requests::Independent && waits > 0;
    is_broken.then_some(Note::OneRequestAtATime { waits })
}

/// Checks concurrent connections; other protocols refuse them.
fn parallel_connections(scenario: &Scenario, kind: ProtocolProperty) -> Option<Note> {
    let objects = scenario.page.objects.len();
    let connections = match kind {
        ProtocolProperty::ConnectionPerObject => u64::from(scenario.client.parallel).min(objects as u64),
        ProtocolProperty::PersistentParallel => parallel::connections(&scenario.client, objects),
        ProtocolProperty::LowerBound
        | ProtocolProperty::Persistent
        | ProtocolProperty::Pipelined
        | ProtocolProperty::Uncached
        | ProtocolProperty::DatagramsAndTcp => return None,
    };
    if connections <= 1 {
        return None;
    }
    match (kind, scenario.client.requests) {
        (ProtocolProperty::ConnectionPerObject, Requests::Dependent) => {
            Some(Note::ParallelUnused { protocol: scenario.protocol })
        }
        _ => Some(Note::ParallelApproximated { connections }),
    }
}

fn warm_connection(scenario: &Scenario, kind: ProtocolProperty) -> Option<Note> {
    match (scenario.client.connection, kind) {
        (Connection::Cold, _) | (Connection::Warm, ProtocolProperty::LowerBound) => None,
        (Connection::Warm, ProtocolProperty::Uncached) if scenario.stack.packets.sharing != Sharing::None => {
            None
        }
        (Connection::Warm, ProtocolProperty::ConnectionPerObject | ProtocolProperty::Uncached) => {
            Some(Note::NothingCached { protocol: scenario.protocol })
        }
        (
            Connection::Warm,
            ProtocolProperty::Persistent
            | ProtocolProperty::PersistentParallel
            | ProtocolProperty::Pipelined
            | ProtocolProperty::DatagramsAndTcp,
        ) => match scenario.programs.sockets(&scenario.stack).idle {
            Idle::Restarted => Some(Note::WindowRestarts),
            Idle::Unchanged | Idle::Paced => None,
        },
    }
}

/// Checks `cwnd[stalls(reply / mss)] >= muws` after the first exchange (`papers/heidemann-model#section-iv-d`).
fn window_not_open(
    scenario: &Scenario,
    path: &Path,
    start: &SlowStart,
    datagram: &Datagram,
    exchanges: &[Exchange],
) -> Option<Note> {
    let over_tcp: Vec<&Exchange> = match ProtocolProperty::of(scenario.protocol) {
        ProtocolProperty::LowerBound | ProtocolProperty::ConnectionPerObject | ProtocolProperty::Uncached => {
            return None;
        }
        ProtocolProperty::Persistent | ProtocolProperty::PersistentParallel | ProtocolProperty::Pipelined => {
            exchanges.iter().collect()
        }
        ProtocolProperty::DatagramsAndTcp => {
            exchanges.iter().filter(|exchange| !datagram.fits(exchange)).collect()
        }
    };
    let (first, later) = over_tcp.split_first()?;
    let window = start.window_after(path, first.reply);
    let to_fill = path.window_to_fill();
    let needed = later.iter().map(|exchange| exchange.reply.pieces_of(path.mss)).max()?;
    let is_broken = scenario.client.connection == Connection::Cold && window < to_fill;
    is_broken.then_some(Note::WindowNotOpen { window, to_fill, matters: needed > window })
}

fn window_limited(
    scenario: &Scenario,
    path: &Path,
    kind: ProtocolProperty,
    exchanges: &[Exchange],
) -> Option<Note> {
    let over_tcp = match kind {
        ProtocolProperty::LowerBound | ProtocolProperty::Uncached => false,
        ProtocolProperty::ConnectionPerObject
        | ProtocolProperty::Persistent
        | ProtocolProperty::PersistentParallel
        | ProtocolProperty::Pipelined
        | ProtocolProperty::DatagramsAndTcp => true,
    };
    let window = largest_window(&scenario.programs.sockets(&scenario.stack))?;
    let to_fill = path.window_to_fill();
    let is_limited = window.get() / path.mss.get().max(1) < to_fill
        && exchanges.iter().any(|exchange| exchange.reply > window);
    (over_tcp && is_limited).then_some(Note::WindowLimited { window, to_fill })
}

/// Returns the maximum window that a receiver can advertise; `None` if it grows with the transfer.
fn largest_window(stack: &Stack) -> Option<Bytes> {
    /// The window field has 16 bits (RFC 9293).
    const MAX_UNSCALED_WINDOW: Bytes = Bytes::new(65_535);
    match (stack.receive_buffer, stack.window_scaling) {
        (Some(buffer), true) => Some(buffer),
        (Some(buffer), false) => Some(buffer.min(MAX_UNSCALED_WINDOW)),
        (None, true) => None,
        (None, false) => Some(MAX_UNSCALED_WINDOW),
    }
}

fn beyond_threshold(
    path: &Path,
    start: &SlowStart,
    kind: ProtocolProperty,
    exchanges: &[Exchange],
) -> Option<Note> {
    let ssthresh = start.ssthresh?;
    let threshold = ssthresh.pieces_of(path.mss);
    let is_beyond = path.window_to_fill() > threshold
        && exchanges.iter().any(|exchange| exchange.reply.pieces_of(path.mss) > threshold);
    (kind != ProtocolProperty::LowerBound && is_beyond).then_some(Note::BeyondThreshold { ssthresh })
}

fn in_either_direction(scenario: &Scenario, has_impairment: impl Fn(&Direction) -> bool) -> bool {
    has_impairment(&scenario.network.up) || has_impairment(&scenario.network.down)
}

fn loss(scenario: &Scenario) -> Option<Note> {
    in_either_direction(scenario, |direction| direction.loss != Loss::None).then_some(Note::Loss)
}

fn jitter(scenario: &Scenario) -> Option<Note> {
    in_either_direction(scenario, |direction| direction.jitter.is_some())
        .then_some(Note::NotModelled { impairment: "jitter" })
}

fn modem(scenario: &Scenario) -> Option<Note> {
    scenario.network.modem.is_some().then_some(Note::Modem)
}

fn reordering(scenario: &Scenario) -> Option<Note> {
    in_either_direction(scenario, |direction| direction.reordering.is_some())
        .then_some(Note::NotModelled { impairment: "reordering" })
}

fn duplication(scenario: &Scenario) -> Option<Note> {
    in_either_direction(scenario, |direction| direction.duplication != Probability::default())
        .then_some(Note::NotModelled { impairment: "duplication" })
}

fn mean_rate(scenario: &Scenario) -> Option<Note> {
    let impairment = "changes of the rate over time; they take the mean rate of the network trace";
    scenario.network.traces.is_some().then_some(Note::NotModelled { impairment })
}

fn queue_management(scenario: &Scenario) -> Option<Note> {
    in_either_direction(scenario, |direction| direction.discipline != QueueDiscipline::DropTail)
        .then_some(Note::NotModelled { impairment: "queue management (CoDel)" })
}

/// Checks that the queue holds half the window, which can arrive at the link while the other half is in flight.
fn short_queue(scenario: &Scenario, path: &Path, exchanges: &[Exchange]) -> Option<Note> {
    let to_fill = path.window_to_fill();
    let needed = exchanges.iter().map(|exchange| exchange.reply.pieces_of(path.mss)).max()?.min(to_fill) / 2;
    let QueueLimit { bytes, packets } = scenario.network.down.queue;
    let packets_fit = packets.is_none_or(|packets| packets >= needed);
    let bytes_fit = bytes.is_none_or(|bytes| bytes.get() / path.mss.get().max(1) >= needed);
    (!(packets_fit && bytes_fit)).then_some(Note::ShortQueue { to_fill })
}

fn asymmetric(path: &Path) -> Option<Note> {
    let (up, down) = (path.rate_up, path.rate);
    (up != down).then_some(Note::Asymmetric { up, down })
}

fn large_request(scenario: &Scenario, path: &Path) -> Option<Note> {
    let request = scenario.client.request;
    (request > path.mss).then_some(Note::LargeRequest { request, mss: path.mss })
}

fn fragmented(scenario: &Scenario, path: &Path, datagram: &Datagram, exchanges: &[Exchange]) -> Option<Note> {
    let fragmented = exchanges.iter().any(|exchange| {
        datagram.fits(exchange)
            && exchange.reply + datagram.response_head + Datagram::RESPONSE_HEADER > path.mss
    });
    (ProtocolProperty::of(scenario.protocol) == ProtocolProperty::DatagramsAndTcp && fragmented)
        .then_some(Note::Fragmented { limit: datagram.limit, mss: path.mss })
}

fn revalidation(scenario: &Scenario, head: Bytes) -> Option<Note> {
    let changed = changed_objects(scenario).len();
    match scenario.visit {
        Visit::First => None,
        Visit::Revalidate => Some(Note::RevalidationHead { head, changed }),
    }
}
