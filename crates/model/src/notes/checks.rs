//! Comparison of a scenario with the formulas' assumptions: one check for each kind of note.
//!
//! The sentences are in the notes.

use scenario::network::Direction;
use scenario::programs::ProgramKey;
use scenario::serving::changed_objects;
use scenario::{Connection, Protocol, Requests, Scenario, Stack, Visit};
use tcp::stack::Idle;
use tcp::stack::packets::Sharing;
use wire::link::{Loss, QueueLimit};
use wire::{Bytes, Probability};

use super::Note;
use crate::dhttp::Datagram;
use crate::{Exchange, Path, SlowStart, parallel};

/// Every assumption that the scenario breaks, in the order of [`Note`]; `exchanges` as the protocol sends them.
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
        several(scenario, kind),
        warmth(scenario, kind),
        window_not_open(scenario, path, start, datagram, exchanges),
        window_limited(scenario, path, kind, exchanges),
        beyond_threshold(path, start, kind, exchanges),
        loss(scenario),
        jitter(scenario),
        reordering(scenario),
        scenario.programs.described_without(&IN_THE_FORMULAS).map(|sentence| Note::Programs { sentence }),
        modem(scenario),
        duplication(scenario),
        short_queue(scenario, path, exchanges),
        asymmetric(path),
        large_request(scenario, path),
        fragmented(scenario, path, datagram, exchanges),
        revalidation(scenario, datagram),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Settings of programs and sockets that the formulas honour.
const IN_THE_FORMULAS: [ProgramKey; 3] =
    [ProgramKey::ServerChanged, ProgramKey::InitialWindow, ProgramKey::ClientPages];

/// Properties of a protocol that the notes depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProtocolProperty {
    /// Not a protocol at all.
    Bound,
    /// A connection for every object.
    Separate,
    /// A persistent connection, or cached TCP state; requests wait for responses.
    Kept,
    /// Several persistent connections; requests wait for responses on each.
    Several,
    /// A persistent connection; requests do not wait.
    Pipelined,
    /// Datagrams, with cached state only where windows are shared.
    Forgetful,
    /// Datagrams and a persistent connection.
    Mixed,
}

impl ProtocolProperty {
    const fn of(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Minimum => Self::Bound,
            Protocol::Http10 => Self::Separate,
            Protocol::Http10KeepAlive | Protocol::Http11 | Protocol::Ttcp => Self::Kept,
            Protocol::Http11Parallel => Self::Several,
            Protocol::Http11Pipelined | Protocol::Http11PipelinedDeflate => Self::Pipelined,
            Protocol::Ardp => Self::Forgetful,
            Protocol::Dhttp => Self::Mixed,
        }
    }
}

fn one_request_at_a_time(scenario: &Scenario, kind: ProtocolProperty) -> Option<Note> {
    let objects = scenario.page.objects.len();
    let connections = match kind {
        ProtocolProperty::Separate if scenario.client.parallel <= 1 => 1,
        ProtocolProperty::Kept => 1,
        ProtocolProperty::Several => parallel::connections(&scenario.client, objects),
        ProtocolProperty::Bound
        | ProtocolProperty::Separate
        | ProtocolProperty::Pipelined
        | ProtocolProperty::Forgetful
        | ProtocolProperty::Mixed => return None,
    };
    let waits = (objects as u64).div_ceil(connections).saturating_sub(1);
    let broken = scenario.client.requests == Requests::Independent && waits > 0;
    broken.then_some(Note::OneRequestAtATime { waits })
}

/// For other kinds, several connections are refused.
fn several(scenario: &Scenario, kind: ProtocolProperty) -> Option<Note> {
    let objects = scenario.page.objects.len();
    let connections = match kind {
        ProtocolProperty::Separate => u64::from(scenario.client.parallel).min(objects as u64),
        ProtocolProperty::Several => parallel::connections(&scenario.client, objects),
        ProtocolProperty::Bound
        | ProtocolProperty::Kept
        | ProtocolProperty::Pipelined
        | ProtocolProperty::Forgetful
        | ProtocolProperty::Mixed => return None,
    };
    if connections <= 1 {
        return None;
    }
    match (kind, scenario.client.requests) {
        (ProtocolProperty::Separate, Requests::Dependent) => {
            Some(Note::ParallelUnused { protocol: scenario.protocol })
        }
        _ => Some(Note::ParallelApproximated { connections }),
    }
}

fn warmth(scenario: &Scenario, kind: ProtocolProperty) -> Option<Note> {
    match (scenario.client.connection, kind) {
        (Connection::Cold, _) | (Connection::Warm, ProtocolProperty::Bound) => None,
        (Connection::Warm, ProtocolProperty::Forgetful)
            if scenario.stack.packets.sharing != Sharing::None =>
        {
            None
        }
        (Connection::Warm, ProtocolProperty::Separate | ProtocolProperty::Forgetful) => {
            Some(Note::NothingCached { protocol: scenario.protocol })
        }
        (
            Connection::Warm,
            ProtocolProperty::Kept
            | ProtocolProperty::Several
            | ProtocolProperty::Pipelined
            | ProtocolProperty::Mixed,
        ) => match scenario.programs.sockets(&scenario.stack).idle {
            Idle::Restarted => Some(Note::WindowRestarts),
            Idle::Unchanged | Idle::Paced => None,
        },
    }
}

/// `cwnd[stalls(reply / mss)] >= muws` after the first exchange (`papers/heidemann-model#section-iv-d`).
fn window_not_open(
    scenario: &Scenario,
    path: &Path,
    start: &SlowStart,
    datagram: &Datagram,
    exchanges: &[Exchange],
) -> Option<Note> {
    let over_tcp: Vec<&Exchange> = match ProtocolProperty::of(scenario.protocol) {
        ProtocolProperty::Bound | ProtocolProperty::Separate | ProtocolProperty::Forgetful => return None,
        ProtocolProperty::Kept | ProtocolProperty::Several | ProtocolProperty::Pipelined => {
            exchanges.iter().collect()
        }
        ProtocolProperty::Mixed => exchanges.iter().filter(|exchange| !datagram.fits(exchange)).collect(),
    };
    let (first, later) = over_tcp.split_first()?;
    let window = start.window_after(path, first.reply);
    let to_fill = path.window_to_fill();
    let needed = later.iter().map(|exchange| exchange.reply.pieces_of(path.mss)).max()?;
    let broken = scenario.client.connection == Connection::Cold && window < to_fill;
    broken.then_some(Note::WindowNotOpen { window, to_fill, matters: needed > window })
}

fn window_limited(
    scenario: &Scenario,
    path: &Path,
    kind: ProtocolProperty,
    exchanges: &[Exchange],
) -> Option<Note> {
    let over_tcp = match kind {
        ProtocolProperty::Bound | ProtocolProperty::Forgetful => false,
        ProtocolProperty::Separate
        | ProtocolProperty::Kept
        | ProtocolProperty::Several
        | ProtocolProperty::Pipelined
        | ProtocolProperty::Mixed => true,
    };
    let window = largest_window(&scenario.programs.sockets(&scenario.stack))?;
    let to_fill = path.window_to_fill();
    let limited = window.get() / path.mss.get().max(1) < to_fill
        && exchanges.iter().any(|exchange| exchange.reply > window);
    (over_tcp && limited).then_some(Note::WindowLimited { window, to_fill })
}

/// Maximum window that a receiver can advertise; `None` if it grows with the transfer.
fn largest_window(stack: &Stack) -> Option<Bytes> {
    /// The window field has 16 bits (RFC 9293).
    const UNSCALED: Bytes = Bytes::new(65_535);
    match (stack.receive_buffer, stack.window_scaling) {
        (Some(buffer), true) => Some(buffer),
        (Some(buffer), false) => Some(buffer.min(UNSCALED)),
        (None, true) => None,
        (None, false) => Some(UNSCALED),
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
    let beyond = path.window_to_fill() > threshold
        && exchanges.iter().any(|exchange| exchange.reply.pieces_of(path.mss) > threshold);
    (kind != ProtocolProperty::Bound && beyond).then_some(Note::BeyondThreshold { ssthresh })
}

fn either(scenario: &Scenario, befalls: impl Fn(&Direction) -> bool) -> bool {
    befalls(&scenario.network.up) || befalls(&scenario.network.down)
}

fn loss(scenario: &Scenario) -> Option<Note> {
    either(scenario, |direction| direction.loss != Loss::None).then_some(Note::Loss)
}

fn jitter(scenario: &Scenario) -> Option<Note> {
    either(scenario, |direction| direction.jitter.is_some()).then_some(Note::Unsteady { what: "jitter" })
}

fn modem(scenario: &Scenario) -> Option<Note> {
    scenario.network.modem.is_some().then_some(Note::Modem)
}

fn reordering(scenario: &Scenario) -> Option<Note> {
    either(scenario, |direction| direction.reordering.is_some())
        .then_some(Note::Unsteady { what: "reordering" })
}

fn duplication(scenario: &Scenario) -> Option<Note> {
    either(scenario, |direction| direction.duplication != Probability::default())
        .then_some(Note::Unsteady { what: "duplication" })
}

/// Half the window can arrive at the link together while the other half is in flight: that much may have to
/// wait.
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
    (ProtocolProperty::of(scenario.protocol) == ProtocolProperty::Mixed && fragmented)
        .then_some(Note::Fragmented { limit: datagram.limit, mss: path.mss })
}

fn revalidation(scenario: &Scenario, datagram: &Datagram) -> Option<Note> {
    let (head, changed) = (datagram.response_head, changed_objects(scenario).len());
    match scenario.visit {
        Visit::First => None,
        Visit::Revalidate => Some(Note::RevalidationHead { head, changed }),
    }
}
