//! The formulas against every number that `papers/heidemann-model` prints for them.
//!
//! Tables III to VI are computed here directly from the formulas, so that `roundtrip reproduce`, which uses
//! [`model::predict`], computes the same numbers independently. Tables VII and VIII use [`model::predict`], too.

use ::tcp::stack::{Acks, Growth};
use model::slow_start::Policy;
use model::{Assumptions, Exchange, Path, Series, SlowStart, ardp, caching, minimum, predict, simple, tcp};
use scenario::{Client, Connection, Network, Page, Protocol, Requests, Scenario, Server, Stack};
use serde::Deserialize;
use wire::{Bytes, Duration, Rate};

/// A published table, limited to the parts used here.
#[derive(Deserialize)]
struct PublishedTable {
    labels: Vec<String>,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    digits: String,
}

macro_rules! published {
    ($table:literal) => {
        include_str!(concat!("../../../../papers/heidemann-model/", $table, "/published.toml"))
    };
}

/// Compares every printed cell for which `computed` returns a value; returns their number.
fn compare(published: &str, computed: impl Fn(&[String], &str) -> Option<f64>) -> usize {
    let table: PublishedTable = toml::from_str(published).expect("the papers' data is TOML");
    let mut compared = 0;
    for row in &table.rows {
        let (labels, cells) = row.split_at(table.labels.len());
        for (column, cell) in table.columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
            let Some(value) = computed(labels, &column.name) else { continue };
            let printed = cell.parse().expect("a printed number");
            let [computed, published] = [value, printed].map(|value| as_printed(value, &column.digits));
            assert_eq!(computed, published, "{labels:?} {} (left: computed, right: published)", column.name);
            compared += 1;
        }
    }
    compared
}

fn as_printed(value: f64, digits: &str) -> String {
    match digits {
        "whole" => format!("{value:.0}"),
        "decimals-2" => format!("{value:.2}"),
        "significant-3" => format!("{value:.2e}"),
        other => panic!("{other}: unknown format"),
    }
}

const EVERY_SEGMENT: SlowStart = SlowStart {
    acks: Policy::EverySegment,
    growth: Growth::PerAcknowledgement,
    initial_window: 2,
    ssthresh: Some(Bytes::new(64 * 1024)),
};

fn path(network: &str) -> Path {
    Path::from(&Network::named(network).unwrap())
}

fn exchanges(page: &str) -> Vec<Exchange> {
    let exchange = |size| Exchange { request: Bytes::new(256), processing: Duration::ZERO, reply: size };
    Page::named(page).unwrap().objects.iter().map(|object| exchange(object.size)).collect()
}

fn series_ms(transactions: Vec<model::Transaction>) -> f64 {
    Series::independent(transactions).elapsed().as_millis_f64()
}

fn minimum_ms(path: &Path, exchanges: &[Exchange]) -> f64 {
    series_ms(exchanges.iter().map(|exchange| minimum::transaction(path, exchange)).collect())
}

#[test]
fn paper_table_3_minimum_times_are_as_printed() {
    let compared =
        compare(published!("table-3"), |labels, page| Some(minimum_ms(&path(&labels[0]), &exchanges(page))));
    assert_eq!(compared, 60);
}

#[test]
fn paper_table_4_simple_ratios_are_as_printed() {
    let compared = compare(published!("table-4"), |labels, column| {
        let (page, variant) = column.split_once('.').unwrap_or((column, "single"));
        let sizes: Vec<Bytes> = exchanges(page).iter().map(|exchange| exchange.reply).collect();
        Some(match variant {
            "separate" => simple::pipe_per_reply_separate(&path(&labels[0]), &sizes),
            _ => simple::pipe_per_reply_single(&path(&labels[0]), &sizes),
        })
    });
    assert_eq!(compared, 90);
}

#[test]
fn paper_table_5_policies_send_the_printed_number_of_segments() {
    let compared = compare(published!("table-5"), |labels, column| {
        let (policy, cumulative) =
            column.strip_suffix(".cumulative").map_or((column, false), |name| (name, true));
        let acks = match policy {
            "no-delayed-acks" => Policy::NoDelayed,
            "delayed-acks" => Policy::Delayed,
            _ => Policy::EverySegment,
        };
        let stall: usize = labels[0].parse().unwrap();
        let period = SlowStart { acks, ..EVERY_SEGMENT }.periods().nth(stall - 1).unwrap();
        Some(if cumulative { period.csegs as f64 } else { period.segs as f64 })
    });
    assert_eq!(compared, 60);
}

#[test]
fn paper_table_6_overheads_are_as_printed() {
    let compared = compare(published!("table-6"), |labels, page| {
        let (path, exchanges) = (path(&labels[0]), exchanges(page));
        let each = |formula: fn(&Path, &SlowStart, &Exchange) -> model::Transaction| {
            exchanges.iter().map(|exchange| formula(&path, &EVERY_SEGMENT, exchange)).collect()
        };
        let transactions = match labels[1].as_str() {
            "tcp" => each(tcp::transaction),
            "ardp" => each(ardp::transaction),
            _ => caching::transactions(&path, &EVERY_SEGMENT, Connection::Cold, &exchanges),
        };
        Some(series_ms(transactions) / minimum_ms(&path, &exchanges))
    });
    assert_eq!(compared, 180);
}

/// The papers' Perl client, with SunOS's acknowledgements.
fn period(network: Network, page: &str, protocol: Protocol) -> Scenario {
    Scenario {
        client: Client { requests: Requests::Independent, ..Client::default() },
        ..Scenario::new(network, Page::named(page).unwrap(), protocol, Stack::named("period").unwrap())
    }
}

fn elapsed_ms(scenario: &Scenario, assumptions: &Assumptions) -> f64 {
    predict(scenario, assumptions).unwrap().elapsed.as_millis_f64()
}

/// Processing time of the server per object in Tables VII and VIII.
const PROCESSING: Server = Server { processing: Duration::from_micros(3_700) };

#[test]
fn paper_table_7_basic_and_adjusted_are_as_printed_except_two_cells() {
    let compared = compare(published!("table-7"), |labels, column| {
        let protocol = Protocol::named(&labels[0]).unwrap();
        let network = Network::named(&labels[1]).unwrap();
        let mut scenario = period(network, "small-cluster", protocol);
        match (column, labels[1].as_str()) {
            // Printed as 12.8 and 11.4, which Table VI contradicts.
            ("basic", "ethernet") => return None,
            ("basic", _) => {}
            ("adjusted", network) => {
                scenario.server = PROCESSING;
                scenario.client.requests = Requests::Dependent;
                if network == "fast-internet" {
                    scenario.network.rtt = Duration::from_millis(133);
                    scenario.network.rate = Rate::from_millibits_per_second(769_654_784).unwrap();
                }
            }
            _measured => return None,
        }
        Some(elapsed_ms(&scenario, &Assumptions::default()))
    });
    assert_eq!(compared, 6);
}

#[test]
fn paper_table_7_two_basic_ethernet_cells_follow_from_table_6() {
    let ethernet = || Network::named("ethernet").unwrap();
    let basic = [Protocol::Http10, Protocol::Http10KeepAlive].map(|protocol| {
        let ms = elapsed_ms(&period(ethernet(), "small-cluster", protocol), &Assumptions::default());
        format!("{ms:.1}")
    });
    assert_eq!(basic, ["14.3", "12.9"]);
}

#[test]
fn paper_table_8_basic_and_adjusted_are_as_printed() {
    let compared = compare(published!("table-8"), |labels, column| {
        let network = Network::named(&labels[0]).unwrap();
        let mut scenario = period(network, "w3c-page", Protocol::Http11Pipelined);
        match column {
            "basic" => {}
            "adjusted" => scenario.server = PROCESSING,
            _measured => return None,
        }
        Some(elapsed_ms(&scenario, &Assumptions::paper()))
    });
    assert_eq!(compared, 12);
}

#[test]
fn paper_section_6_fast_internet_takes_5_20_times_the_minimum_without_delayed_acks() {
    let mut scenario = period(Network::named("fast-internet").unwrap(), "small-cluster", Protocol::Http10);
    scenario.stack.acks = Acks::NoDelayed;
    let overhead = predict(&scenario, &Assumptions::default()).unwrap().overhead().unwrap();
    assert_eq!(format!("{overhead:.2}"), "5.20");
}
