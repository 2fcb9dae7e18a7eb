//! Table VII of `papers/heidemann-model#table-7` on today's kernel: the small cluster over Fast-Internet and Ethernet,
//! HTTP/1.0 and keep-alive, held against the adjusted prediction.
//!
//! Where the measured times differ from the model, this is why (read off the captures):
//!
//! - *Fast-Internet.* Without a tick of the 200 ms heartbeat in a bad place both protocols come out within 0.3% of the
//!   model, in flights of 2, 3, 3 and 6 segments. In about four runs of ten a tick acknowledges a single segment, the
//!   pairs that follow are out of step, and the last segment of the first object waits for one ACK more: up to 105 ms.
//!   That is the mean's 2 or 3%, and most of its deviation; the paper saw the same ("delayed ACK's sometimes alter both
//!   the pattern of packet transmission between stalls and the stall delay").
//! - *Ethernet.* The model lets one segment fill this path and so counts no stall; a receiver that acknowledges every
//!   second segment leaves the link idle for a round trip after the first two, 0.75 ms for each object of more than two
//!   segments that comes over a new connection. The answers' heads take 0.22 ms that the model has not, and what is left
//!   are a dozen wake-ups of two hosts and a link, 0.02 to 0.05 ms each.
//!
//! `cargo bench -p measure --bench table_7 [-- RUNS [FOLDER-FOR-CAPTURES [STACK]]]`; 20 runs each unless told. Not a
//! test: it takes minutes, and a busy machine shows.

use std::path::PathBuf;

use measure::{Measured, Options, measure};
use scenario::{Client, Connection, Network, Page, Protocol, Requests, Scenario, Server, Stack, Visit};
use wire::{Bytes, Duration, Rate, Seed};

/// A row of the table.
struct Case {
    network: fn() -> Network,
    protocol: Protocol,
    /// What the model says with the server's 3.7 ms for each object (`papers/README.md`).
    adjusted_ms: f64,
    /// As the paper measured it.
    published_ms: f64,
}

const CASES: [Case; 4] = [
    Case { network: ethernet, protocol: Protocol::Http10, adjusted_ms: 26.8, published_ms: 36.8 },
    Case { network: ethernet, protocol: Protocol::Http10KeepAlive, adjusted_ms: 25.4, published_ms: 26.6 },
    Case { network: fast_internet, protocol: Protocol::Http10, adjusted_ms: 1_728.0, published_ms: 1_716.0 },
    Case {
        network: fast_internet,
        protocol: Protocol::Http10KeepAlive,
        adjusted_ms: 1_068.3,
        published_ms: 1_103.0,
    },
];

/// What the paper's server took for each object, on average.
const PROCESSING_MS: f64 = 3.7;

fn main() -> Result<(), measure::Error> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let runs = arguments.next().and_then(|runs| runs.parse().ok()).unwrap_or(20);
    let folder = arguments.next().map(PathBuf::from);
    let stack =
        Stack::named(&arguments.next().unwrap_or_else(|| "period".to_owned())).expect("a stack's name");
    measure::prepare()?;
    measure::available()?;
    println!("all in milliseconds; `model` is `adjusted` with the server's measured time in it");
    println!(
        "network        protocol         adjusted  server  model    measured (sd, 95%)      median   ratio  published"
    );
    for case in CASES.into_iter().take(if std::env::var_os("ETH").is_some() { 2 } else { 4 }) {
        let scenario = scenario((case.network)(), case.protocol, runs, stack.clone());
        let options = Options { capture: folder.as_ref().map(|_| Bytes::new(1 << 24)) };
        let measured = measure(&scenario, &options, |_| ())?;
        print(&case, &measured);
        if let (Some(folder), Some(packets)) = (&folder, &measured.capture) {
            let name = format!("{}-{}.pcapng", scenario.network.name, case.protocol.name());
            packets.save(&folder.join(name), "papers/heidemann-model#table-7")?;
        }
    }
    Ok(())
}

fn print(case: &Case, measured: &Measured) {
    let Case { network: _, protocol, adjusted_ms, published_ms } = case;
    let elapsed = measured.elapsed_ms;
    let processing_ms = measured.processing_ms.map_or(PROCESSING_MS, |summary| summary.mean);
    let objects = measured.scenario.page.objects.len() as f64;
    let model_ms = adjusted_ms + objects * (processing_ms - PROCESSING_MS);
    println!(
        "{:14} {:16} {adjusted_ms:8.1} {processing_ms:7.3} {model_ms:7.1} {:9.2} ({:5.2}, {:5.2}) {:9.2} {:7.3} {published_ms:9.1}",
        measured.scenario.network.name,
        protocol.name(),
        elapsed.mean,
        elapsed.deviation.unwrap_or_default(),
        elapsed.interval95.unwrap_or_default(),
        elapsed.median,
        elapsed.mean / model_ms,
    );
    if std::env::var_os("DBG").is_some() {
        let mut v: Vec<_> =
            measured.runs.iter().map(|r| (r.elapsed.as_millis_f64() * 100.0).round() / 100.0).collect();
        println!("{v:?}");
        v.sort_by(f64::total_cmp);
        println!("p10 {} p90 {}", v[v.len() / 10], v[v.len() * 9 / 10]);
    }
    let late = |per_mille| measured.lateness.per_mille(per_mille);
    let (row, [p50, p99, p999]) = (measured.row(), [late(500), late(990), late(999)]);
    println!(
        "    packets {:.1} up, {:.1} down, payload {:.0}; void {}; lateness {p50}, {p99}, {p999}; {}",
        row.packets_up.unwrap_or_default(),
        row.packets_down.unwrap_or_default(),
        row.payload_bytes.unwrap_or_default(),
        measured.void,
        row.notes.join("; "),
    );
}

fn ethernet() -> Network {
    Network::named("ethernet").expect("one of the thirteen")
}

/// As it was on the evenings of the experiments: 133 ms and 0.734 Mb/s.
fn fast_internet() -> Network {
    let rate = Rate::from_millibits_per_second(734 * (1 << 20)).expect("above zero");
    Network::new("fast-internet".to_owned(), Duration::from_millis(133), rate, Bytes::new(512))
}

fn scenario(network: Network, protocol: Protocol, runs: u32, stack: Stack) -> Scenario {
    Scenario {
        network,
        page: Page::named("small-cluster").expect("one of the six workloads"),
        visit: Visit::First,
        protocol,
        stack,
        client: Client {
            request: Bytes::new(256),
            requests: Requests::Dependent,
            parallel: 1,
            connection: Connection::Cold,
        },
        server: Server { processing: Duration::from_micros(3_700) },
        runs,
        seed: Seed::default(),
    }
}
