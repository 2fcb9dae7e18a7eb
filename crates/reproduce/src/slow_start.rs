//! Slow start in packets: `papers/heidemann-model#table-5` again, and its Fig. 3.
//!
//! The formulas' side of the same table is in [`super::heidemann`].

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use http1::message::WritePolicy;
use scenario::{Network, Page, Protocol, Scenario, Stack};
use simulate::page::SERVER;
use simulate::web::HeadSizes;
use simulate::world::{ObservationPoint, Record};
use simulate::{Experiment, Hosts, PageResult};
use tcp::stack::{Acks, Idle};
use wire::{Bytes, Duration, Rate};

use super::heidemann::basic;
use super::laboratory::Laboratory;
use super::published::Cell;

/// Our value, or why the laboratory failed.
type ReproducedValue = Result<Option<f64>, String>;

/// Segments between stalls, counted.
pub fn table_5(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    static FLIGHTS: LazyLock<[Vec<usize>; 3]> =
        LazyLock::new(|| [Acks::NoDelayed, Acks::Delayed, Acks::EverySegment].map(endless_flights));
    let [no_delayed, delayed, every_segment] = &*FLIGHTS;
    let (name, is_cumulative) = match cell.column.name.strip_suffix(".cumulative") {
        Some(name) => (name, true),
        None => (cell.column.name.as_str(), false),
    };
    let flights = match name {
        "no-delayed-acks" => no_delayed,
        "delayed-acks" => delayed,
        "ack-every-segment" => every_segment,
        _ => return Ok(None),
    };
    let stall: usize = cell.label(0).parse().unwrap_or(0);
    let flight = stall.checked_sub(1).and_then(|before| flights.get(before)).copied();
    let total = flights.iter().take(stall).sum();
    Ok(flight.map(|flight| if is_cumulative { total } else { flight } as f64))
}

/// Round trips to set up, and the segments before the first and the second stall, where bandwidth is not the bottleneck.
pub fn figure_1(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let (_, fetched) = idealised();
    let data = |record: &&Record| record.seen == ObservationPoint::Sent && !record.segment.payload.is_empty();
    let request = fetched.records.iter().find(data).map(|record| record.at.since(fetched.began));
    let flights = flights(&fetched.records, TRACE_RTT / 2);
    Ok(match cell.label(0) {
        "setup" => request.map(|request| request.as_secs_f64() / TRACE_RTT.as_secs_f64()),
        "first flight" => flights.first().map(|flight| *flight as f64),
        "second flight" => flights.get(1).map(|flight| *flight as f64),
        _ => None,
    })
}

/// The run of Fig. 1: twelve segments over a path that is not the bottleneck, each of them acknowledged.
pub fn idealised() -> (Experiment, PageResult) {
    let rate = Rate::from_bits_per_second(1_000_000_000).expect("above zero");
    run(&scenario(Acks::EverySegment, TRACE_RTT, rate, &[512 * 12]), Hosts::default())
}

/// Segments between stalls of the trace.
pub fn figure_3(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let (_, fetched) = trace();
    let flights = flights(&fetched.records, TRACE_RTT / 2);
    let number: usize = cell.label(0).parse().unwrap_or(0);
    Ok(number.checked_sub(1).and_then(|before| flights.get(before)).map(|flight| *flight as f64))
}

/// The run of Fig. 3: a response of 6,675 bytes with its header section, then two more. 19 bytes are left for a fourteenth
/// segment.
pub fn trace() -> (Experiment, PageResult) {
    // 0.734 Mb/s, Mb = 2^20 (`papers/heidemann-model#section-v-c`).
    let rate = Rate::from_millibits_per_second(769_654_784).expect("above zero");
    let mut scenario = scenario(Acks::NoDelayed, TRACE_RTT, rate, &[6_675 - HEAD, 3_883, 1_866]);
    scenario.stack.receive_buffer = Some(Bytes::new(16_384));
    let hosts = Hosts {
        // papers/p-http#section-2-3: "Apache writes data at the application-layer in 4KB chunks."
        writes: WritePolicy { buffer: NonZeroUsize::new(4096), ..WritePolicy::default() },
        heads: HeadSizes { object: usize::try_from(HEAD).ok(), unchanged: None },
        ..Hosts::default()
    };
    run(&scenario, hosts)
}

/// "the roundtrip time is about 133 ms" (`papers/heidemann-model#section-v-b`).
const TRACE_RTT: Duration = Duration::from_millis(133);
/// Bytes of a response's header section, as in the traces of `papers/p-http#figure-2`.
const HEAD: u64 = 226;

/// The flights of a response that only slow start limits.
fn endless_flights(acks: Acks) -> Vec<usize> {
    const RTT: Duration = Duration::from_secs(4);
    let rate = Rate::from_bits_per_second(1_000_000_000_000).expect("above zero");
    // Ten flights of the fastest policy are 2,046 segments.
    let (_, fetched) = run(&scenario(acks, RTT, rate, &[512 * 2_100]), Hosts::default());
    flights(&fetched.records, RTT / 4)
}

/// Segments of 512 bytes over one connection, with a window that only slow start limits.
fn scenario(acks: Acks, rtt: Duration, rate: Rate, sizes: &[u64]) -> Scenario {
    let network = Network::new("figure".to_owned(), rtt, rate, Bytes::new(512));
    let page = Page::from_sizes("figure", sizes.iter().copied().map(Bytes::new)).expect("sizes above zero");
    let mut stack = Stack::named("period").expect("the papers' own stack is in the catalogue");
    stack.acks = acks;
    stack.idle = Idle::Unchanged;
    stack.receive_buffer = Some(Bytes::new(1 << 30));
    stack.window_scaling = true;
    stack.packets.initial_threshold = None;
    stack.packets.send_buffer = Bytes::new(1 << 30);
    let basic = basic(network, page, Protocol::Http10KeepAlive);
    let client = scenario::Client { requests: scenario::Requests::Dependent, ..basic.client };
    Scenario { stack, client, ..basic }
}

fn run(scenario: &Scenario, hosts: Hosts) -> (Experiment, PageResult) {
    let experiment = Experiment::new(scenario, hosts).expect("the simulator has all of it");
    let fetched = experiment.run(0, true).expect("a plan that was checked");
    (experiment, fetched)
}

/// Number of data segments that the server sends between pauses longer than `stall`.
fn flights(records: &[Record], stall: Duration) -> Vec<usize> {
    let sent = records.iter().filter(|record| {
        record.seen == ObservationPoint::Sent
            && record.from.host == SERVER
            && !record.segment.payload.is_empty()
    });
    let sent: Vec<&Record> = sent.collect();
    sent.chunk_by(|one, next| next.at.since(one.at) < stall).map(<[_]>::len).collect()
}
