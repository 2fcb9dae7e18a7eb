//! Ours for the table and the traces of `papers/p-http`: packets, with one set of host times.
//!
//! The published means are of 100 consecutive retrievals: each begins just after the end of the previous one. This is why
//! the client "becomes synchronized" with the heartbeat of its delayed acknowledgements. Ours are consecutive, too.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::LazyLock;

use fetch::{PageEvent, Report};
use http1::message::WritePolicy;
use scenario::programs::ClientDefect;
use scenario::{Client, Network, Page, Protocol, Scenario, Stack};
use simulate::page::SERVER as SERVER_HOST;
use simulate::profile::Clocks;
use simulate::web::{BrowserTimes, HeadSizes, ServerTimes};
use simulate::{Experiment, Hosts, PageResult};
use tcp::Segment;
use trace::{Cause, Stall, Summary};
use wire::{Bytes, Duration};

use super::laboratory::Laboratory;
use super::printed_trace::{matched, value};
use super::published::{Cell, compiled};

/// Our value, or why the laboratory failed.
type ReproducedValue = Result<Option<f64>, String>;

// Host times, once for everything here. Figure 2 has "client_think_time: 0.650ms". From the request to the response's
// header section are 2.175 ms, of which the path takes 0.5. From there to the first write are 1.626 ms, of which the
// longer segment takes 1.1. The cost of a connection is not printed, and no trace has it between a SYN and the first
// response. So it is attributed to the client, an interpreted program that opens a socket. Its size follows from Table 1's
// first row, with three connections.
const CLIENT: BrowserTimes = BrowserTimes {
    connection: Duration::from_millis(8),
    request: Duration::from_micros(650),
    kilobyte: Duration::ZERO,
    file: Duration::ZERO,
};
const SERVER: ServerTimes = ServerTimes {
    connection: Duration::ZERO,
    opening: Duration::ZERO,
    request: Duration::from_micros(1_650),
    write: Duration::from_micros(550),
};
/// Between the two round trips of small segments that the traces show: 0.217 and 0.251 ms.
const RTT: Duration = Duration::from_micros(220);
const HEARTBEAT: Duration = Duration::from_millis(200);
/// Sizes of the documents of `papers/p-http#section-2-1`; below, that of the header section before each.
const SIZES: [u64; 3] = [6651, 3883, 1866];
const HEAD: u64 = 226;
/// Minimum request of our robot; the papers' client sent 52 bytes.
const REQUEST: Bytes = Bytes::new(80);

/// Configuration of the retrievals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Setting {
    protocol: Protocol,
    head_apart: bool,
    nagle: bool,
}

/// Results of 100 consecutive retrievals.
struct Retrievals {
    elapsed_ms: Vec<f64>,
    stalls: Vec<Vec<Stall>>,
}

const HTTP: Setting = Setting { protocol: Protocol::Http10, head_apart: false, nagle: true };
const UNFIXED: Setting = Setting { protocol: Protocol::Http10KeepAlive, head_apart: true, nagle: true };
const FIRST_FIX: Setting = Setting { head_apart: false, ..UNFIXED };
const BOTH_FIXES: Setting = Setting { nagle: false, ..FIRST_FIX };

/// Means over 100 retrievals.
pub fn table_1(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let setting = match cell.label(0) {
        "http" => HTTP,
        "p-http" => UNFIXED,
        "p-http, first fix" => FIRST_FIX,
        "p-http, both fixes" => BOTH_FIXES,
        _ => return Ok(None),
    };
    let elapsed = Summary::of(&hundred_retrievals(setting).elapsed_ms);
    Ok(match cell.column.name.as_str() {
        "mean" => elapsed.map(|elapsed| elapsed.mean),
        "sd" => elapsed.and_then(|elapsed| elapsed.deviation).map(to_nanos),
        "ci95" => elapsed.and_then(|elapsed| elapsed.interval95).map(to_nanos),
        _ => None,
    })
}

/// Milliseconds rounded to nanoseconds.
fn to_nanos(millis: f64) -> f64 {
    (millis * 1e6).round() / 1e6
}

/// The plot of a short first segment.
pub fn figure_1(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let (_, fetched) = short_initial_segment();
    let ends = ends(&fetched, 1..=1 + HEAD + SIZES[0]);
    Ok(match cell.label(0) {
        "short segment" => ends.first().copied(),
        "long segment" => ends.get(1).copied(),
        _ => spread(cell, &stalls(UNFIXED, Cause::ShortInitialSegment)),
    })
}

/// The trace of a short first segment.
pub fn figure_2(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let (_, fetched) = short_initial_segment();
    Ok(value(&matched(&compiled!("p-http/figure-2"), &fetched.records), cell))
}

/// The plot of a short last segment.
pub fn figure_3(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let (_, fetched) = short_final_segment();
    let mut ends = ends(&fetched, FIRST_RESPONSE + 1..=FIRST_RESPONSE + 1 + HEAD + SIZES[1]);
    Ok(match cell.label(0) {
        "short segment" => ends.pop(),
        "odd segment" => ends.pop().and_then(|_| ends.pop()),
        _ => spread(cell, &stalls(FIRST_FIX, Cause::NagleDelayedAck)),
    })
}

/// The trace of a short last segment.
pub fn figure_4(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let (_, fetched) = short_final_segment();
    Ok(value(&matched(&compiled!("p-http/figure-4"), &fetched.records), cell))
}

/// A quantity that no table prints. `ignored/together`: the objects lost by a client that ignores data in the segment of
/// the headers. `ignored/apart`: the same where the server flushes the headers.
///
/// # Errors
/// The name, if it is unknown.
pub fn quantity(name: &str) -> ReproducedValue {
    let head_apart = match name {
        "ignored/together" => false,
        "ignored/apart" => true,
        _ => return Err(format!("no quantity {name}")),
    };
    let mut scenario = scenario(Setting { head_apart, ..BOTH_FIXES }, SIZES);
    scenario.programs.client_defect = Some(ClientDefect::BodyWithHeaders);
    let hosts = hosts(head_apart, [Duration::from_millis(123), Duration::from_millis(77)]);
    let experiment = Experiment::new(&scenario, hosts).map_err(|error| error.to_string())?;
    let fetched = experiment.run(0, false).map_err(|error| error.to_string())?;
    let complete = |report: &Report| matches!(report.event, PageEvent::ObjectComplete { .. });
    let lost = SIZES.len() - fetched.reports.iter().filter(|report| complete(report)).count();
    Ok(Some(lost as f64))
}

/// The minimum or the maximum stall.
fn spread(cell: &Cell, stalls: &[f64]) -> Option<f64> {
    match cell.column.name.as_str() {
        "shortest" => stalls.iter().copied().reduce(f64::min),
        "longest" => stalls.iter().copied().reduce(f64::max),
        _ => None,
    }
}

/// First response of Figure 4's connection, "6,675" bytes with its header section: 24 more than those of the document of
/// Table 1.
const FIRST_RESPONSE: u64 = 6_675;

/// The run that Figures 1 and 2 show.
pub fn short_initial_segment() -> (Experiment, PageResult) {
    // The client's heartbeat 189.201 ms after the SYN.
    let tick = CLIENT.connection + Duration::from_micros(189_201);
    retrieve(UNFIXED, SIZES, [tick, Duration::from_millis(77)])
}

/// The run that Figures 3 and 4 show.
pub fn short_final_segment() -> (Experiment, PageResult) {
    let sizes = [FIRST_RESPONSE - HEAD, SIZES[1], SIZES[2]];
    // The client's heartbeat 189.262 ms after the SYN; the server's between the second request and its response.
    let ticks = [Duration::from_micros(189_262), Duration::from_micros(9_940)];
    retrieve(FIRST_FIX, sizes, ticks.map(|tick| CLIENT.connection + tick))
}

/// Ends of the server's segments within a range of sequence numbers, each once, in order.
fn ends(fetched: &PageResult, range: std::ops::RangeInclusive<u64>) -> Vec<f64> {
    let segments =
        fetched.records.iter().filter(|record| record.from.host == SERVER_HOST).map(|record| &record.segment);
    let data = segments.filter(|segment| !segment.payload.is_empty() && range.contains(&segment.sequence));
    let ends: BTreeSet<u64> = data.map(Segment::end).filter(|end| range.contains(end)).collect();
    ends.into_iter().map(|end| end as f64).collect()
}

/// Duration of the first stall of this name in each of 100 retrievals except the first, whose phase is arbitrary.
fn stalls(setting: Setting, cause: Cause) -> Vec<f64> {
    let runs = &hundred_retrievals(setting).stalls;
    let first = runs.iter().skip(1).filter_map(|stalls| stalls.iter().find(|stall| stall.cause == cause));
    first.map(|stall| stall.lost_ms).collect()
}

/// 100 consecutive retrievals; computed once.
fn hundred_retrievals(setting: Setting) -> &'static Retrievals {
    static ALL: LazyLock<BTreeMap<Setting, Retrievals>> = LazyLock::new(|| {
        [HTTP, UNFIXED, FIRST_FIX, BOTH_FIXES].map(|setting| (setting, Retrievals::of(setting))).into()
    });
    ALL.get(&setting).expect("there are no other settings")
}

impl Retrievals {
    fn of(setting: Setting) -> Self {
        let (mut elapsed_ms, mut stalls) = (Vec::new(), Vec::new());
        let mut tick = Duration::from_millis(123);
        for _ in 0..100 {
            let (experiment, fetched) = retrieve(setting, SIZES, [tick, Duration::from_millis(77)]);
            let elapsed = fetched.elapsed.unwrap_or_default();
            let since_tick = (HEARTBEAT - tick + elapsed).as_nanos() % HEARTBEAT.as_nanos();
            tick = HEARTBEAT - Duration::from_nanos(since_tick);
            elapsed_ms.push(elapsed.as_millis_f64());
            stalls.push(experiment.spent(&fetched).stalls);
        }
        Self { elapsed_ms, stalls }
    }
}

/// One retrieval that begins this long before the next tick of the client's heartbeat, and of the server's.
fn retrieve(setting: Setting, sizes: [u64; 3], ticks: [Duration; 2]) -> (Experiment, PageResult) {
    let hosts = hosts(setting.head_apart, ticks);
    let experiment = Experiment::new(&scenario(setting, sizes), hosts).expect("the simulator has all of it");
    let fetched = experiment.run(0, true).expect("a plan that was checked");
    (experiment, fetched)
}

/// The documents and the stack.
fn scenario(setting: Setting, sizes: [u64; 3]) -> Scenario {
    let Setting { protocol, head_apart: _, nagle } = setting;
    let mut stack = Stack::named("sunos-4.1.3").expect("a stack of the catalogue");
    stack.nagle = nagle;
    let mut network = Network::named("ethernet").expect("a network of the catalogue");
    network.rtt = RTT;
    Scenario {
        client: Client { request: REQUEST, ..Client::default() },
        ..Scenario::new(
            network,
            Page::from_sizes("yahoo", sizes.map(Bytes::new)).expect("three sizes"),
            protocol,
            stack,
        )
    }
}

/// The hosts, with their heartbeats.
fn hosts(head_apart: bool, [client, server]: [Duration; 2]) -> Hosts {
    let clocks = |heartbeat| Clocks { heartbeat, slow: Duration::from_millis(333) };
    Hosts {
        client: CLIENT,
        server: SERVER,
        // papers/p-http#section-2-3: "Apache writes data at the application-layer in 4KB chunks."
        writes: WritePolicy { head_apart, buffer: NonZeroUsize::new(4096), gather: None },
        heads: HeadSizes { object: usize::try_from(HEAD).ok(), unchanged: None },
        clocks: Some([clocks(client), clocks(server)]),
        ..Hosts::default()
    }
}

#[cfg(test)]
mod tests {
    use simulate::page::CLIENT as CLIENT_HOST;
    use simulate::world::ObservationPoint;

    use super::*;

    #[test]
    fn paper_the_client_becomes_synchronized_with_its_heartbeat() {
        let (_, fetched) = retrieve(UNFIXED, SIZES, [Duration::from_millis(120), Duration::from_millis(77)]);
        let acks = fetched.records.iter().filter(|record| {
            record.seen == ObservationPoint::Sent
                && record.from.host == CLIENT_HOST
                && record.segment.is_pure_ack()
        });
        let on_tick = acks.map(|record| record.at.as_nanos()).filter(|at| at % 200_000_000 == 120_000_000);
        assert_eq!(on_tick.collect::<Vec<_>>(), [120_000_000, 320_000_000, 520_000_000]);
    }

    #[test]
    fn paper_without_its_cause_each_stall_is_gone() {
        let delayed = |setting| {
            let (experiment, fetched) =
                retrieve(setting, SIZES, [Duration::from_millis(197), Duration::from_millis(77)]);
            let stalls = experiment.spent(&fetched).stalls.into_iter();
            stalls.filter(|stall| stall.lost_ms > 100.0).map(|stall| stall.cause).collect::<Vec<_>>()
        };
        // With a separate header section, the rest is not a whole number of segments either.
        assert_eq!(
            delayed(UNFIXED),
            [Cause::ShortInitialSegment, Cause::NagleDelayedAck, Cause::NagleDelayedAck]
        );
        assert_eq!(delayed(FIRST_FIX), [Cause::NagleDelayedAck]);
        assert_eq!([delayed(BOTH_FIXES), delayed(HTTP)], [const { Vec::<Cause>::new() }; 2]);
    }
}
