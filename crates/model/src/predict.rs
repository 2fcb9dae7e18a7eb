//! Entry point: chooses the formula of a scenario, and returns its prediction.
//!
//! Each part of the scenario is honoured, or a [`Note`] reports that it is not, or a [`Refusal`] that there is no
//! prediction. `runs` and `seed` have no effect: a formula is deterministic.

use std::borrow::Cow;

use ::tcp::stack::packets::Sharing;
use ::tcp::stack::{Acks, Congestion};
use scenario::serving::{self, ServingError, changed_objects};
use scenario::{Connection, Object, Page, Protocol, Requests, Scenario, Server, Stack, Tls, Visit};
use trace::Metrics;
use wire::{Bytes, Duration};

use crate::dhttp::Datagram;
use crate::graph::ObjectTimes;
use crate::transaction::Wait;
use crate::{
    Exchange, Note, Path, Refusal, Series, SlowStart, Transaction, ardp, caching, dhttp, graph, minimum,
    notes, parallel, tcp,
};

/// Inputs of the formulas that a scenario does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumptions {
    /// Acknowledgement policy of the receiver; `None`: the stack's.
    pub acks: Option<Acks>,
    /// Maximum UDP payload of DHTTP, if the network carries it unfragmented.
    pub datagram_limit: Bytes,
    /// Size of a response's headers. Counted to decide whether the response fits a datagram, and in a 304, which has no
    /// body. Otherwise omitted, as in the paper.
    pub response_head: Bytes,
}

impl Default for Assumptions {
    /// Returns the stack's acknowledgements; 1460 bytes (`papers/dhttp#section-iii`); the 226 bytes of headers that Apache
    /// sends in `papers/p-http#figure-2`.
    fn default() -> Self {
        Self { acks: None, datagram_limit: Bytes::new(1460), response_head: Bytes::new(226) }
    }
}

impl Assumptions {
    /// Returns the assumptions of Table VI: every segment is acknowledged by every stack.
    pub fn paper() -> Self {
        Self { acks: Some(Acks::EverySegment), ..Self::default() }
    }
}

/// Prediction of the formulas for a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Time from the first packet of the first request to the last byte of the last response.
    pub elapsed: Duration,
    /// Elapsed time of the protocol `minimum`, with bodies as stored.
    pub minimum: Duration,
    /// Part of `elapsed` that is neither transmission nor the server's work, in round trips of the network: 1
    /// for the minimum. `None` without delay.
    pub round_trips: Option<f64>,
    /// Handshakes and slow start's stalls, in order.
    pub stalls: Vec<Wait>,
    /// Connections opened; `None` where the protocol is a bound and not a protocol.
    pub connections: Option<u64>,
    /// Payload of requests and responses as the formulas count it: without response headers, which no
    /// scenario has.
    pub payload: Bytes,
    /// Packets up and down, where the protocol determines them: one datagram each way for each object.
    pub packets: Option<(u64, u64)>,
    /// Assumptions that the scenario breaks.
    pub notes: Vec<Note>,
    /// Times of each object, for pages that are predicted as graphs.
    pub objects: Vec<ObjectTimes>,
}

/// Predicts a scenario by the closed formulas.
///
/// # Errors
/// [`Refusal`] if a size is unknown, or the result exceeds the range of a duration.
pub fn predict<'a>(scenario: &'a Scenario, assumptions: &Assumptions) -> Result<Prediction<'a>, Refusal> {
    let is_graph = !scenario.page.is_plain();
    // The minimum holds with and without TLS.
    let is_secured = scenario.tls != Tls::None && scenario.protocol != Protocol::Minimum;
    let needs_graph = is_graph || is_secured || scenario.protocol.is_of_today();
    check(scenario, needs_graph)?;
    let mut path = Path::from(&scenario.network);
    let start = slow_start(&scenario.programs.sockets(&scenario.stack), assumptions);
    let limit = assumptions.datagram_limit.min(scenario::dhttp::max_datagram(&scenario.network));
    let datagram = Datagram { limit, response_head: assumptions.response_head };
    if needs_graph {
        if scenario.stack.timestamps {
            path.mss = Bytes::new(path.mss.get().saturating_sub(TIMESTAMPS).max(1));
        }
        return predict_graph(scenario, &path, &start, assumptions);
    }
    let whole = exchanges(scenario, assumptions, |object| object.size);
    let sent = match scenario.protocol {
        Protocol::Http11PipelinedDeflate => {
            deflate_sizes_known(&scenario.page)?;
            exchanges(scenario, assumptions, |object| object.deflated.unwrap_or(object.size))
        }
        Protocol::Minimum
        | Protocol::Http10
        | Protocol::Http10KeepAlive
        | Protocol::Http11
        | Protocol::Http11Parallel
        | Protocol::Http11Pipelined
        | Protocol::Ttcp
        | Protocol::Ardp
        | Protocol::Dhttp
        | Protocol::Http2
        | Protocol::Http3
        | Protocol::Http3Upgrade => whole.clone(),
    };
    let notes = notes::notes(scenario, &path, &start, &datagram, &sent);

    let minimum = minimum_time(scenario, &path, &sent);
    let series = series(scenario, &path, &start, &datagram, &sent);
    let elapsed = series.elapsed();
    if elapsed == Duration::MAX {
        let (page, network) = (scenario.page.name.clone(), scenario.network.name.clone());
        return Err(Refusal::TooLong { page, network });
    }
    Ok(Prediction {
        scenario,
        elapsed,
        minimum,
        round_trips: ratio(elapsed - series.working(), path.rtt),
        stalls: series.stalls(),
        connections: connections(scenario, &datagram, &sent),
        payload: sent.iter().map(|exchange| exchange.request + exchange.reply).sum(),
        packets: packets(scenario.protocol, &datagram, &sent),
        notes,
        objects: Vec::new(),
    })
}

/// Refuses what has no formula.
fn check(scenario: &Scenario, needs_graph: bool) -> Result<(), Refusal> {
    if needs_graph && scenario.protocol != Protocol::Minimum && !graph::is_predicted(scenario.protocol) {
        return Err(match !scenario.page.is_plain() {
            true => Refusal::Graph { page: scenario.page.name.clone(), protocol: scenario.protocol },
            false => Refusal::Tls { tls: scenario.tls, protocol: scenario.protocol },
        });
    }
    if scenario.protocol.is_http3()
        && let Err(ServingError { what, remedy }) = serving::web(scenario)
    {
        return Err(Refusal::Http3 { what, remedy });
    }
    if scenario.client.parallel > 1 && !has_parallel_formula(scenario.protocol) {
        let (protocol, parallel) = (scenario.protocol, scenario.client.parallel);
        return Err(Refusal::Parallel { protocol, parallel });
    }
    // The minimum of a later page is that of any page.
    if scenario.programs.pages() > 1 && scenario.protocol != Protocol::Minimum {
        return Err(Refusal::Session { pages: scenario.programs.pages() });
    }
    Ok(())
}

/// Bytes of each segment that timestamps take (RFC 7323).
const TIMESTAMPS: u64 = 12;

/// Predicts a page of several hosts or with dependencies of its own, and any page over TLS or HTTP/2.
fn predict_graph<'a>(
    scenario: &'a Scenario,
    path: &Path,
    start: &SlowStart,
    assumptions: &Assumptions,
) -> Result<Prediction<'a>, Refusal> {
    let sent = exchanges(scenario, assumptions, |object| object.size);
    let transferred = match scenario.visit {
        Visit::First => Cow::Borrowed(scenario),
        Visit::Revalidate => Cow::Owned(graph::revalidated(scenario, assumptions.response_head)),
    };
    let minimum = match scenario.page.is_plain() {
        true => minimum_time(scenario, path, &sent),
        false => graph::minimum(&transferred, path),
    };
    if scenario.protocol == Protocol::Minimum {
        return Ok(Prediction {
            scenario,
            elapsed: minimum,
            minimum,
            round_trips: None,
            stalls: Vec::new(),
            connections: None,
            payload: transferred.page.size(),
            packets: None,
            notes: Vec::new(),
            objects: Vec::new(),
        });
    }
    let load = graph::load(&transferred, path, start);
    let elapsed = load.elapsed();
    if elapsed == Duration::MAX {
        let (page, network) = (scenario.page.name.clone(), scenario.network.name.clone());
        return Err(Refusal::TooLong { page, network });
    }
    let ends = load.objects.iter().map(|times| times.end).enumerate();
    let other_load = scenario.page.other_load(ends).map(Note::OtherLoad);
    let notes = notes::of_graph(scenario, path, start, &sent, load.concurrent, assumptions.response_head);
    Ok(Prediction {
        scenario,
        elapsed,
        minimum,
        round_trips: ratio(elapsed - load.working, path.rtt),
        stalls: load.waits,
        connections: Some(load.connections),
        payload: load.payload,
        packets: None,
        notes: notes.into_iter().chain(other_load).collect(),
        objects: load.objects,
    })
}

impl Prediction<'_> {
    /// Returns the elapsed time over the minimum's; `None` if that is zero.
    pub fn overhead(&self) -> Option<f64> {
        ratio(self.elapsed, self.minimum)
    }

    /// Returns the metrics that the formulas know.
    pub fn metrics(&self) -> Metrics {
        let packets = self.packets.map(|(up, down)| (up as f64, down as f64));
        Metrics {
            elapsed_ms: Some(self.elapsed.as_millis_f64()),
            elapsed_ms_stddev: None,
            round_trips: self.round_trips,
            packets_up: packets.map(|(up, _)| up),
            packets_down: packets.map(|(_, down)| down),
            payload_bytes: Some(self.payload.as_f64()),
            connections: self.connections.map(|connections| connections as f64),
            runs: 1,
            load_ms: self.load().map(Duration::as_millis_f64),
        }
    }

    /// Returns the time of the load event, if it does not wait for all objects.
    pub fn load(&self) -> Option<Duration> {
        self.scenario.page.load(self.objects.iter().map(|times| times.end).enumerate())
    }

    /// Returns the waits as stalls.
    pub fn named_stalls(&self) -> Vec<trace::Stall> {
        self.stalls.iter().map(stall).collect()
    }
}

/// Returns whether there is a formula for several concurrent connections.
const fn has_parallel_formula(protocol: Protocol) -> bool {
    match protocol {
        Protocol::Minimum | Protocol::Http10 | Protocol::Http11Parallel => true,
        Protocol::Http10KeepAlive
        | Protocol::Http11
        | Protocol::Http11Pipelined
        | Protocol::Http11PipelinedDeflate
        | Protocol::Ttcp
        | Protocol::Ardp
        | Protocol::Dhttp
        | Protocol::Http2
        | Protocol::Http3
        | Protocol::Http3Upgrade => false,
    }
}

/// Returns whether an exchange begins with the window of the previous one.
fn shares_windows(scenario: &Scenario) -> bool {
    match scenario.stack.packets.sharing {
        Sharing::None => false,
        Sharing::Temporal | Sharing::Ensemble => true,
    }
}

/// Returns the parameters of slow start. Nagle, SACK and timestamps are not in the formulas; the receive window and idle
/// get a note where they matter.
fn slow_start(stack: &Stack, assumptions: &Assumptions) -> SlowStart {
    let Stack {
        name: _,
        initial_window,
        acks,
        growth,
        congestion,
        idle: _,
        nagle: _,
        sack: _,
        timestamps: _,
        window_scaling: _,
        receive_buffer: _,
        packets: _,
    } = stack;
    SlowStart {
        acks: assumptions.acks.unwrap_or(*acks).into(),
        growth: *growth,
        initial_window: u64::from(*initial_window),
        ssthresh: match congestion {
            // "ssthresh, initialized to 64 kB" (appendix).
            Congestion::Reno => Some(Bytes::new(64 * 1024)),
            // Linux starts without one.
            Congestion::Cubic => None,
        },
    }
}

fn exchanges(
    scenario: &Scenario,
    assumptions: &Assumptions,
    size: impl Fn(&Object) -> Bytes,
) -> Vec<Exchange> {
    let Server { processing } = scenario.server;
    let changed = changed_objects(scenario);
    let reply = |(index, object)| match scenario.visit {
        Visit::Revalidate if !changed.contains(&index) => assumptions.response_head,
        Visit::First | Visit::Revalidate => size(object),
    };
    let request = scenario.client.request;
    let objects = scenario.page.objects.iter().enumerate();
    objects.map(|object| Exchange { request, processing, reply: reply(object) }).collect()
}

/// Refuses a page without any size after deflate; an object that does not shrink has none.
fn deflate_sizes_known(page: &Page) -> Result<(), Refusal> {
    match page.objects.iter().any(|object| object.deflated.is_some()) {
        true => Ok(()),
        false => Err(Refusal::DeflatedSizesUnknown { page: page.name.clone() }),
    }
}

/// Returns `S_min`, with the waits of the client added.
fn minimum_time(scenario: &Scenario, path: &Path, exchanges: &[Exchange]) -> Duration {
    let transactions = exchanges.iter().map(|exchange| minimum::transaction(path, exchange)).collect();
    Series { transactions, waits: waits(scenario, Protocol::Minimum) }.elapsed()
}

fn series(
    scenario: &Scenario,
    path: &Path,
    start: &SlowStart,
    datagram: &Datagram,
    exchanges: &[Exchange],
) -> Series {
    let connection = scenario.client.connection;
    let each = |transaction: &dyn Fn(&Exchange) -> Transaction| exchanges.iter().map(transaction).collect();
    let transactions = match scenario.protocol {
        Protocol::Minimum => each(&|exchange| minimum::transaction(path, exchange)),
        Protocol::Http10 => {
            let path = parallel::path(path, concurrent_connections(scenario));
            each(&|exchange| tcp::transaction(&path, start, exchange))
        }
        Protocol::Http11Parallel => parallel::persistent(path, start, &scenario.client, exchanges),
        Protocol::Http10KeepAlive
        | Protocol::Http11
        | Protocol::Http11Pipelined
        | Protocol::Http11PipelinedDeflate
        | Protocol::Ttcp
        | Protocol::Http2
        | Protocol::Http3
        | Protocol::Http3Upgrade => caching::transactions(path, start, connection, exchanges),
        Protocol::Ardp => ardp::transactions(path, start, shares_windows(scenario), connection, exchanges),
        Protocol::Dhttp => dhttp::transactions(path, start, connection, datagram, exchanges),
    };
    Series { transactions, waits: waits(scenario, scenario.protocol) }
}

/// Returns the number of concurrent connections; dependent requests use one at a time.
fn concurrent_connections(scenario: &Scenario) -> u64 {
    match scenario.client.requests {
        Requests::Independent | Requests::AfterDocument => {
            u64::from(scenario.client.parallel).min(scenario.page.objects.len() as u64)
        }
        Requests::Dependent => 1,
    }
}

/// Returns the number of objects that cost a separate round trip because their request waits (`papers/heidemann-model`, IV-A).
///
/// A client that has one request in flight at a time waits for each object after the first. A client that does
/// not wait for responses waits once, because the first object lists the embedded ones: "we would add one
/// additional rtt". The minimum is of that kind: no protocol can request an unknown object.
fn waits(scenario: &Scenario, protocol: Protocol) -> u64 {
    let after_first = (scenario.page.objects.len() as u64).saturating_sub(1);
    match (scenario.client.requests, protocol) {
        (Requests::Independent, _) => 0,
        (Requests::AfterDocument, _) => after_first.min(1),
        (
            Requests::Dependent,
            Protocol::Http10
            | Protocol::Http10KeepAlive
            | Protocol::Http11
            | Protocol::Http11Parallel
            | Protocol::Ttcp
            | Protocol::Ardp,
        ) => after_first,
        (
            Requests::Dependent,
            Protocol::Minimum
            | Protocol::Http11Pipelined
            | Protocol::Http11PipelinedDeflate
            | Protocol::Dhttp
            | Protocol::Http2
            | Protocol::Http3
            | Protocol::Http3Upgrade,
        ) => after_first.min(1),
    }
}

fn connections(scenario: &Scenario, datagram: &Datagram, exchanges: &[Exchange]) -> Option<u64> {
    let new_connections = match scenario.client.connection {
        Connection::Cold => 1,
        Connection::Warm => 0,
    };
    match scenario.protocol {
        Protocol::Minimum => None,
        // T/TCP saves the handshake, not the connection.
        Protocol::Http10 | Protocol::Ttcp => Some(exchanges.len() as u64),
        Protocol::Http10KeepAlive
        | Protocol::Http11
        | Protocol::Http11Pipelined
        | Protocol::Http11PipelinedDeflate
        | Protocol::Http2
        | Protocol::Http3
        | Protocol::Http3Upgrade => Some(new_connections),
        Protocol::Http11Parallel => {
            Some(new_connections * parallel::connections(&scenario.client, exchanges.len()))
        }
        Protocol::Ardp => Some(0),
        Protocol::Dhttp => {
            Some(if exchanges.iter().all(|exchange| datagram.fits(exchange)) { 0 } else { new_connections })
        }
    }
}

/// Returns the packets up and down; `None` where they depend on acknowledgements and on connection closing.
fn packets(protocol: Protocol, datagram: &Datagram, exchanges: &[Exchange]) -> Option<(u64, u64)> {
    let all_small = protocol == Protocol::Dhttp && exchanges.iter().all(|exchange| datagram.fits(exchange));
    all_small.then_some((exchanges.len() as u64, exchanges.len() as u64))
}

fn ratio(part: Duration, whole: Duration) -> Option<f64> {
    (whole > Duration::ZERO).then(|| part.as_secs_f64() / whole.as_secs_f64())
}

fn stall(wait: &Wait) -> trace::Stall {
    let Wait { cause, at, lost } = wait;
    trace::Stall { cause: *cause, at_ms: at.as_millis_f64(), lost_ms: lost.as_millis_f64() }
}
