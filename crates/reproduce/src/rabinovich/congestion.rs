//! Users behind a bottleneck (`papers/dhttp#section-vi-b`, B.2): Table I, simulated and measured, and Figure 13.
//!
//! [`simulate::dumbbell`] simulates, `server_benchmark::population` measures.

use render::plot::curves::{Curve, Curves, Panel};
use render::plot::palette;
use render::plot::svg::{Point, Stroke};

use dhttp_proto::server::PerClient;
use simulate::dumbbell::{DumbbellConfig, DumbbellResult, Transactions, UserPath, UserProtocol};
use simulate::web::ServerTimes;
use wire::Duration;

use crate::laboratory::{BenchmarkResults, Laboratory};
use crate::published::Cell;
use crate::server_benchmark::population::{Outcome, Population};
use crate::server_benchmark::server::{DhttpCounters, ServerKind};

/// Our value, or the reason why it is not available.
type ReproducedValue = Result<Option<f64>, String>;

/// Numbers of hosts of users.
const HOST_COUNTS: [u32; 3] = [1, 2, 3];

/// The first label is the number of hosts. Columns that end in `-kernel` are measured, the others simulated.
pub fn table_1(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    let hosts = cell.label(0).parse().unwrap_or(1);
    if let Some(column) = cell.column.name.strip_suffix("-kernel") {
        let population = Population { kind: ServerKind::Dhttp, hosts, with_download: true };
        let Some(benchmark) = measured.populations(&all(true))? else { return Ok(None) };
        return Ok(benchmark.population(population).map(|outcome| counted(column, outcome.counted)));
    }
    let config = DumbbellConfig::new(hosts as usize, UserProtocol::Dhttp);
    let share: fn(&DumbbellResult) -> f64 = match cell.column.name.as_str() {
        "udp" => DumbbellResult::udp_share,
        "resent" => DumbbellResult::resent,
        _ => DumbbellResult::ignored,
    };
    let all: Vec<f64> = measured.dumbbells(&config, SEEDS)?.iter().map(share).collect();
    Ok(trace::Summary::of(&all).map(|summary| 100.0 * summary.median))
}

/// Seeds of users behind the bottleneck: the ratios of single ones are noise.
const SEEDS: u64 = 10;
/// Seeds where results differ by much more than seeds do.
const FEW_SEEDS: u64 = 2;

/// Simulated users behind the bottleneck. `download`: throughput of a competing download, in bits per second, mean over
/// `SEEDS` seeds. Without a download: the users' mean `latency` in milliseconds, as SURGE counts it, and `throughput` in
/// responses per second. `None` for an unknown quantity or unknown users.
///
/// # Errors
/// The simulator's error.
pub fn simulated(
    quantity_name: &str,
    users: &str,
    hosts: usize,
    measured: &mut Laboratory<'_>,
) -> ReproducedValue {
    let (users, is_slow) = users.strip_suffix("-slow").map_or((users, false), |users| (users, true));
    let protocol = match users {
        "dhttp" => UserProtocol::Dhttp,
        "dhttp-internet" => UserProtocol::DhttpOfToday,
        "http" | "prefork" => UserProtocol::Http,
        _ => return Ok(None),
    };
    let mut config = DumbbellConfig::new(hosts, protocol);
    config.downloads = usize::from(quantity_name == "download");
    config.processes = (users == "prefork").then_some(PROCESSES);
    if is_slow {
        config.times = SLOW;
    }
    let seeds = if config.downloads > 0 && config.processes.is_none() { SEEDS } else { FEW_SEEDS };
    quantity(quantity_name, measured.dumbbells(&config, seeds)?)
}

/// Simulated users of Figures 10 to 12, in the mean over `FEW_SEEDS` seeds: `throughput` and `latency` as in [`simulated`].
/// A thousand users share a LAN with a server whose accepting of a connection is a bottleneck of its own (`SLOW`). `None`
/// for an unknown quantity or unknown users.
///
/// # Errors
/// The simulator's error.
pub fn in_a_lan(
    quantity_name: &str,
    users: &str,
    idle_s: u64,
    measured: &mut Laboratory<'_>,
) -> ReproducedValue {
    let (protocol, processes) = match users {
        "dhttp" | "dhttp-slow-opening" => (UserProtocol::Dhttp, MAX_CONNECTIONS),
        "prefork"
        | "prefork-one-connection"
        | "altruistic"
        | "ttcp"
        | "ttcp-page-first"
        | "ttcp-full"
        | "ttcp-page-first-full" => (UserProtocol::Http, PROCESSES),
        _ => return Ok(None),
    };
    let transactions = match users {
        "ttcp" | "ttcp-full" => Some(Transactions::WholePage),
        "ttcp-page-first" | "ttcp-page-first-full" => Some(Transactions::PageFirst),
        _ => None,
    };
    let hosts = if transactions.is_some() { TTCP_MACHINES } else { LAN_MACHINES };
    let mut config = DumbbellConfig {
        transactions,
        path: UserPath::Lan,
        lasts: Duration::from_secs(20),
        idle: Duration::from_secs(idle_s),
        processes: Some(processes),
        closes_early: users == "altruistic",
        times: SLOW,
        ..DumbbellConfig::new(hosts, protocol)
    };
    config.dhttp.connections = MAX_CONNECTIONS;
    config.dhttp.per_client = PerClient { max: 3, max_when_few: 3, few_below: 0 };
    config.dhttp.timeout.idle = config.idle;
    match users {
        "dhttp-slow-opening" => config.times.opening = SLOW.connection,
        "prefork-one-connection" | "ttcp-full" | "ttcp-page-first-full" => config.connections = 1,
        "ttcp" | "ttcp-page-first" => {
            config.connections = 1;
            config.times = LESS_SLOW;
        }
        _ => {}
    }
    quantity(quantity_name, measured.dumbbells(&config, FEW_SEEDS)?)
}

fn quantity(quantity_name: &str, results: &[DumbbellResult]) -> ReproducedValue {
    let value: fn(&DumbbellResult) -> f64 = match quantity_name {
        "download" => |result| result.flows.iter().sum(),
        "latency" => DumbbellResult::charged_ms,
        "throughput" => DumbbellResult::per_second,
        _ => return Ok(None),
    };
    Ok(Some(results.iter().map(value).sum::<f64>() / results.len() as f64))
}

/// Apache's processes in the measurement.
const PROCESSES: usize = 200;
/// 200 processes and a backlog of 128 together; the DHTTP server's limit (`papers/dhttp#section-vi-b`).
const MAX_CONNECTIONS: usize = 328;
/// "Up to 1000 user equivalents on 5 machines."
const LAN_MACHINES: usize = 5;
/// Times of a server with "the bottleneck process in Apache that must handle all the incoming connections". It is the least
/// whole number of milliseconds at which, as in Figure 10, Apache is faster with 1 s than with a connection for each
/// response. "DHTTP servers do not have a bottleneck process that accepts all TCP connections".
const SLOW: ServerTimes = ServerTimes {
    connection: Duration::from_millis(4),
    opening: Duration::ZERO,
    request: Duration::from_micros(500),
    write: Duration::ZERO,
};

/// "Four machines [...]: a 731MHz Pentium 3 machine [...] as a server and three [...] as clients" (Figure 14).
const TTCP_MACHINES: usize = 3;
/// The same times at 731 MHz instead of 500.
const LESS_SLOW: ServerTimes = ServerTimes {
    connection: Duration::from_micros(2_736),
    opening: Duration::ZERO,
    request: Duration::from_micros(342),
    write: Duration::ZERO,
};

fn counted(column: &str, counted: DhttpCounters) -> f64 {
    let DhttpCounters { by_udp, by_tcp, resent, ignored } = counted;
    let share = |of: u64, all: u64| 100.0 * of as f64 / all.max(1) as f64;
    match column {
        "udp" => share(by_udp, by_udp + by_tcp),
        "resent" => share(resent, by_udp),
        _ => share(ignored, resent),
    }
}

/// Claims of the text on DHTTP compared with Apache, and on the bandwidth that either leaves to a download. The column
/// is the number of hosts.
pub fn figure_13(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    let hosts = cell.column.name.parse().unwrap_or(1);
    let (claim, with_download) = match cell.label(0).strip_suffix("-beside-a-download") {
        Some(claim) => (claim, true),
        None => (cell.label(0), false),
    };
    let Some(benchmark) = measured.populations(&all(with_download))? else { return Ok(None) };
    let of = |kind| benchmark.population(Population { kind, hosts, with_download });
    let [dhttp, apache] = [of(ServerKind::Dhttp), of(ServerKind::Prefork)];
    Ok(dhttp.zip(apache).map(|(dhttp, apache)| match claim {
        "throughput" => dhttp.per_second / apache.per_second,
        "lower-latency" => apache.mean_ms / dhttp.mean_ms,
        _ => dhttp.beside_bits / apache.beside_bits,
    }))
}

/// All runs, sorted so that concurrent ones take equally long.
fn all(with_download: bool) -> Vec<Population> {
    let both = |hosts| {
        [ServerKind::Dhttp, ServerKind::Prefork].map(|kind| Population { kind, hosts, with_download })
    };
    HOST_COUNTS.into_iter().flat_map(both).collect()
}

/// Width of a curve, in pixels.
const WIDTH: f64 = 1.8;

/// A quantity of a curve.
type Value = fn(&Outcome) -> f64;

/// Throughput and latency alone on the bottleneck; below, the bandwidths of users and a competing download.
pub fn draw_13(benchmark: &BenchmarkResults) -> Option<String> {
    let panel =
        |title: &str, with_download, curves: &[(&'static str, Stroke<'static>, ServerKind, Value)]| {
            let mut drawn = Vec::new();
            for (name, stroke, kind, value) in curves {
                let point = |hosts| {
                    let population = Population { kind: *kind, hosts, with_download };
                    Some((f64::from(hosts), value(benchmark.population(population)?)))
                };
                let points: Vec<Point> = HOST_COUNTS.into_iter().filter_map(point).collect();
                drawn.push(Curve { name, stroke: *stroke, is_joined: true, points });
            }
            Panel { title: title.to_owned(), curves: drawn }
        };
    let solid = |colour| Stroke::solid(colour, WIDTH);
    let dashed = |colour| Stroke { colour, width: WIDTH, dashes: "5 4" };
    let both = |value: Value| {
        [
            (DHTTP, solid(palette::ACCENT), ServerKind::Dhttp, value),
            (APACHE, solid(palette::INK), ServerKind::Prefork, value),
        ]
    };
    let with_download: [(_, _, _, Value); 2] = [
        (BY_DHTTP, dashed(palette::ACCENT), ServerKind::Dhttp, |outcome| outcome.beside_bits / 1e6),
        (BY_APACHE, dashed(palette::INK), ServerKind::Prefork, |outcome| outcome.beside_bits / 1e6),
    ];
    let shared: Vec<_> = both(|outcome| outcome.users_bits / 1e6).into_iter().chain(with_download).collect();
    let rows = vec![
        vec![
            panel("users alone: responses a second", false, &both(|outcome| outcome.per_second)),
            panel("users alone: mean latency, ms", false, &both(|outcome| outcome.mean_ms)),
        ],
        vec![
            panel("with a download beside them: Mbit/s of each", true, &shared),
            panel(
                "with a download beside them: % dropped at the bottleneck",
                true,
                &both(|outcome| 100.0 * outcome.dropped_share),
            ),
        ],
    ];
    let is_empty = rows.iter().flatten().flat_map(|panel| &panel.curves).all(|curve| curve.points.is_empty());
    let picture = Curves {
        title: "DHTTP and Apache over a bottleneck of 9 Mbit/s",
        subtitle: [
            "A hundred SURGE users at each host, 70, 25 and 10 ms away; the bottleneck queues 60 packets.",
            "Below: with a competing bulk TCP flow, 40 ms away.",
        ],
        key: vec![
            (DHTTP, solid(palette::ACCENT)),
            (APACHE, solid(palette::INK)),
            (BY_DHTTP, dashed(palette::ACCENT)),
            (BY_APACHE, dashed(palette::INK)),
        ],
        bottom: "machines",
        ticks: [0, 1, 2, 3].map(f64::from).to_vec(),
        rows,
        source: "After Rabinovich, Wang 2004, Fig. 13; measured on this machine.",
    };
    (!is_empty).then(|| picture.draw())
}

const DHTTP: &str = "users of DHTTP";
const APACHE: &str = "users of Apache";
const BY_DHTTP: &str = "a download beside DHTTP";
const BY_APACHE: &str = "a download beside Apache";
