//! Ours for each table and figure of `papers/heidemann-model`.
//!
//! Every page over a network goes through the model's public interface, as a user's scenario does. A table's data has
//! the acknowledgement policy with which it was computed.

use model::slow_start::Policy;
use model::{Assumptions, Path, Prediction, SlowStart, predict, simple};
use scenario::programs::ProgramKey;
use scenario::{Client, Network, Page, Protocol, Requests, Scenario, Server, Stack};
use simulate::page::SERVER;
use simulate::world::ObservationPoint;
use simulate::{Experiment, Hosts};
use tcp::stack::Growth;
use trace::statistics::interval95;
use wire::{Bytes, Duration, Rate, Time};

use super::laboratory::{KernelResult, Laboratory};
use super::published::Cell;

/// Our value, or why the laboratory failed.
type ReproducedValue = Result<Option<f64>, String>;

/// 2^20, the paper's Mb.
const MEGABIT: f64 = 1_048_576.0;

/// Networks: values derived from round trip, rate and segment size.
pub fn table_2(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let path = Path::from(&network(cell.label(0))?);
    Ok(match cell.column.name.as_str() {
        "rtt" => Some(path.rtt.as_millis_f64()),
        "bw" => Some(path.rate.bits_per_second_f64() / MEGABIT),
        "mss" => Some(path.mss.as_f64()),
        "stt" => Some(path.segment_time().as_millis_f64()),
        "muws" => Some(path.window_to_fill() as f64),
        _ => None,
    })
}

/// The bandwidth of a modem whose kilobits are of 1000 bits, in megabits of 2^20.
pub fn decimal_kilobits(cell: &Cell) -> ReproducedValue {
    let modem = network("modem")?;
    Ok((cell.column.name == "bw").then(|| Path::from(&modem).rate.bits_per_second_f64() / MEGABIT))
}

/// A quantity that no table prints. `limit/large-cluster`: the overhead of HTTP over TCP where only round trips count.
/// `gain/modem`: the gain of caching for the small cluster. `bytes/small-page`: a page's size. `old-ardp/flight`,
/// `old-ardp/second-flight`: packets of 1250 bytes that its server sends at once, and before the first
/// acknowledgement.
///
/// # Errors
/// The name, if it is unknown.
pub fn quantity(name: &str) -> ReproducedValue {
    match name.split_once('/') {
        Some(("limit", name)) => {
            let far = point(Network::MAX_RTT, FASTEST);
            overhead(&basic(far, page(name)?, Protocol::Http10), &Assumptions::paper())
        }
        Some(("gain", name)) => gain(on_the_map(&network(name)?)).map(Some),
        Some(("bytes", name)) => {
            Ok(Some(page(name)?.objects.iter().map(|object| object.size.as_f64()).sum()))
        }
        Some(("old-ardp", "flight")) => old_ardp_flights().map(|flights| flights.first().copied()),
        Some(("old-ardp", "second-flight")) => old_ardp_flights().map(|flights| flights.get(1).copied()),
        Some(_) | None => Err(format!("no quantity {name}")),
    }
}

/// Packets of each flight of an ARDP with a fixed window of 16 packets of 1250 bytes and no slow start
/// (`papers/heidemann-model`, footnote 4). The response has 100 kB. The path is DirecPC, whose round trip
/// is longer than the transmission of a window.
fn old_ardp_flights() -> Result<Vec<f64>, String> {
    let mut network = network("direcpc")?;
    network.mss = Bytes::new(1250);
    let mut scenario = basic(network, page("large-page")?, Protocol::Ardp);
    let settings = [
        (ProgramKey::InitialWindow, "16"),
        (ProgramKey::SendBuffer, "20000"),
        (ProgramKey::ReceiveBuffer, "20000"),
    ];
    for (key, value) in settings {
        scenario.programs.set(key, value).map_err(|error| error.to_string())?;
    }
    let experiment = Experiment::new(&scenario, Hosts::default()).map_err(|error| error.to_string())?;
    let fetched = experiment.run(0, true).map_err(|error| error.to_string())?;
    let (mut flights, mut last) = (Vec::<f64>::new(), None::<Time>);
    let sent = fetched.records.iter().filter(|record| {
        record.seen == ObservationPoint::Sent
            && record.from.host == SERVER
            && !record.segment.payload.is_empty()
    });
    // A flight ends with a gap of half a round trip.
    let gap = scenario.network.rtt / 2;
    for record in sent {
        match (last, flights.last_mut()) {
            (Some(last), Some(flight)) if record.at.since(last) < gap => *flight += 1.0,
            _ => flights.push(1.0),
        }
        last = Some(record.at);
    }
    Ok(flights)
}

/// Minimal times.
pub fn table_3(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let scenario = basic(network(cell.label(0))?, page(&cell.column.name)?, Protocol::Minimum);
    elapsed_ms(&scenario, &Assumptions::paper()).map(Some)
}

/// The simple ratio; a cluster's as separate connections or as a single one.
pub fn table_4(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let path = Path::from(&network(cell.label(0))?);
    let (name, separate) = match cell.column.name.split_once('.') {
        Some((name, how)) => (name, how == "separate"),
        None => (cell.column.name.as_str(), false),
    };
    let replies: Vec<Bytes> = page(name)?.objects.iter().map(|object| object.size).collect();
    let ratio = if separate { simple::pipe_per_reply_separate } else { simple::pipe_per_reply_single };
    Ok(Some(ratio(&path, &replies)))
}

/// Segments between stalls.
pub fn table_5(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let (name, cumulative) = match cell.column.name.strip_suffix(".cumulative") {
        Some(name) => (name, true),
        None => (cell.column.name.as_str(), false),
    };
    let acks = match name {
        "no-delayed-acks" => Policy::NoDelayed,
        "delayed-acks" => Policy::Delayed,
        "ack-every-segment" => Policy::EverySegment,
        _ => return Ok(None),
    };
    let start = SlowStart { acks, growth: Growth::PerAcknowledgement, initial_window: 2, ssthresh: None };
    let stall: usize = cell.label(0).parse().unwrap_or(0);
    let period = stall.checked_sub(1).and_then(|before| start.periods().nth(before));
    Ok(period.map(|period| if cumulative { period.csegs } else { period.segs } as f64))
}

/// Overheads of three protocols.
pub fn table_6(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let protocol = match cell.label(1) {
        "tcp" => Protocol::Http10,
        "caching" => Protocol::Http10KeepAlive,
        "ardp" => Protocol::Ardp,
        _ => return Ok(None),
    };
    let scenario = basic(network(cell.label(0))?, page(&cell.column.name)?, protocol);
    overhead(&scenario, &Assumptions::paper())
}

/// The model against measurements: predictions with SunOS's acknowledgements, and our measurements.
pub fn table_7(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    let protocol = Protocol::named(cell.label(0)).map_err(|unknown| unknown.to_string())?;
    let basic = basic(network(cell.label(1))?, page("small-cluster")?, protocol);
    let adjusted = || adjusted(basic.clone());
    let predicted = |scenario: &Scenario| elapsed_ms(scenario, &Assumptions::default());
    match cell.column.name.as_str() {
        "basic" => predicted(&basic).map(Some),
        "adjusted" => predicted(&adjusted()).map(Some),
        column => {
            let Some(KernelResult { metrics, processing }) = measured.found(&adjusted())? else {
                return Ok(None);
            };
            Ok(match column {
                "measured" => metrics.elapsed_ms,
                "sd" => metrics.elapsed_ms_stddev,
                "ci95" => metrics.elapsed_ms_stddev.map(|sd| interval95(sd, metrics.runs as usize)),
                "ratio" => {
                    let prediction = predicted(&Scenario { server: Server { processing }, ..adjusted() })?;
                    metrics.elapsed_ms.map(|elapsed| elapsed / prediction)
                }
                _ => None,
            })
        }
    }
}

/// The server's processing time that the paper measured (`papers/heidemann-model#section-v-c`).
const PROCESSING: Server = Server { processing: Duration::from_micros(3_700) };

/// The conditions of Table VII's experiments: processing, one request at a time, the path of that evening.
fn adjusted(basic: Scenario) -> Scenario {
    let mut network = basic.network;
    if network.name == "fast-internet" {
        network.rtt = Duration::from_millis(133);
        // 0.734 Mb/s.
        network.rate = Rate::from_millibits_per_second(769_654_784).expect("above zero");
        network.name = "fast-internet+rtt=133ms+rate=0.734mibit".to_owned();
    }
    let client = Client { requests: Requests::Dependent, ..basic.client };
    Scenario { network, client, server: PROCESSING, runs: 100, ..basic }
}

/// The model against the W3C's measurements, and our measurements. Ours uses one server for both, which does not stall:
/// there is nothing to correct.
pub fn table_8(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    let basic = basic(network(cell.label(0))?, page("w3c-page")?, Protocol::Http11Pipelined);
    let adjusted = Scenario { server: PROCESSING, ..basic.clone() };
    let predicted = |scenario: &Scenario| elapsed_ms(scenario, &Assumptions::paper());
    match cell.column.name.as_str() {
        "basic" => predicted(&basic).map(Some),
        "adjusted" => predicted(&adjusted).map(Some),
        column => {
            // "Each run was repeated 5 times" (`papers/w3c#table-4`).
            let repeated = Scenario { runs: 5, ..adjusted.clone() };
            let Some(KernelResult { metrics, processing: _ }) = measured.found(&repeated)? else {
                return Ok(None);
            };
            Ok(match column {
                "measured" | "corrected" => metrics.elapsed_ms,
                // The server's real processing time of each response is not visible where responses share segments.
                "ratio" | "corrected-ratio" => {
                    let prediction = predicted(&adjusted)?;
                    metrics.elapsed_ms.map(|elapsed| elapsed / prediction)
                }
                _ => None,
            })
        }
    }
}

/// Height of the surface at its far corner: Table II's longest round trip and highest bandwidth.
pub fn figure_2(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let corner = point(Duration::from_millis(500), network("fast-ethernet")?.rate);
    overhead(&basic(corner, page(cell.label(0))?, Protocol::Http10), &Assumptions::paper())
}

/// Overhead of HTTP over TCP, as section VI computes it.
pub fn figure_4(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let at = on_the_map(&network(cell.label(0))?);
    overhead(&basic(at, page("small-cluster")?, Protocol::Http10), &Assumptions::default())
}

/// Gain from connection caching, at named networks and in the limit.
pub fn figure_5(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    if cell.column.name == "round-trips" {
        return limit_round_trips(cell, &Assumptions::default());
    }
    let at = match cell.label(0) {
        "limit" => point(Network::MAX_RTT, FASTEST),
        name => on_the_map(&network(name)?),
    };
    gain(at).map(Some)
}

/// Round trips of the small cluster where only they count, with and without connection caching.
pub fn limit_round_trips(cell: &Cell, assumptions: &Assumptions) -> ReproducedValue {
    let protocol = match cell.label(0) {
        "limit, noncaching" => Protocol::Http10,
        "limit, caching" => Protocol::Http10KeepAlive,
        _ => return Ok(None),
    };
    let scenario = basic(point(Network::MAX_RTT, FASTEST), page("small-cluster")?, protocol);
    prediction(&scenario, assumptions).map(|prediction| prediction.round_trips)
}

/// 1 Tbit/s, the maximum rate of a network.
const FASTEST: Rate = Rate::from_bits_per_second(1_000_000_000_000).expect("above zero");

/// `S_TCP / S_first-miss` for the small cluster, as section VI computes it.
pub fn gain(network: Network) -> Result<f64, String> {
    let page = page("small-cluster")?;
    let ms = |protocol| elapsed_ms(&basic(network.clone(), page.clone(), protocol), &Assumptions::default());
    Ok(ms(Protocol::Http10)? / ms(Protocol::Http10KeepAlive)?)
}

/// A point of a figure: segments are 512 bytes everywhere.
pub fn point(rtt: Duration, rate: Rate) -> Network {
    Network::new("figure".to_owned(), rtt, rate, Bytes::new(512))
}

/// A network as a point of a figure.
fn on_the_map(network: &Network) -> Network {
    point(network.rtt, network.rate)
}

/// The paper's basic model: requests of 256 bytes, all sent together, no processing; its hosts' stack.
pub fn basic(network: Network, page: Page, protocol: Protocol) -> Scenario {
    let stack = Stack::named("period").expect("the papers' own stack is in the catalogue");
    let client = Client { requests: Requests::Independent, ..Client::default() };
    Scenario { client, ..Scenario::new(network, page, protocol, stack) }
}

/// A network of the catalogue.
pub fn network(name: &str) -> Result<Network, String> {
    Network::named(name).map_err(|unknown| unknown.to_string())
}

/// A page of the catalogue.
pub fn page(name: &str) -> Result<Page, String> {
    Page::named(name).map_err(|unknown| unknown.to_string())
}

fn prediction<'a>(scenario: &'a Scenario, assumptions: &Assumptions) -> Result<Prediction<'a>, String> {
    predict(scenario, assumptions).map_err(|refusal| refusal.to_string())
}

fn elapsed_ms(scenario: &Scenario, assumptions: &Assumptions) -> Result<f64, String> {
    prediction(scenario, assumptions).map(|prediction| prediction.elapsed.as_millis_f64())
}

/// `S / S_min`.
pub fn overhead(scenario: &Scenario, assumptions: &Assumptions) -> ReproducedValue {
    prediction(scenario, assumptions).map(|prediction| prediction.overhead())
}
