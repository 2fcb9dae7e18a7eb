//! Small responses per second of CPU time: this server compared with nginx, hyper, libcoap and a server that reflects
//! datagrams and does nothing else, in turns, in one run.
//!
//! `cargo bench -p roundtrip-dhttp-proxy --bench small_responses [-- [--loopback] [--rounds N] [SECTION...]]`; the sections are
//! `http`, `many`, `first`, `one`, `opened`, `latency`, `mutated`, `memory`, `cache` and `gateway`, by default all of them.
//! Each server is one thread on CPU 0. Its load runs on the others, in another network namespace, so that each end is charged
//! for its own work (`network`). Without the permission to create namespaces, or with `--loopback`, both use the loopback
//! interface, where the sender is charged for both ends. CPU time is what the kernel charged to the server and to its own
//! thread for the server's incoming packets, so that servers at less than full load can be compared. It is not a comparison of
//! hosts or networks: only ratios within a run are meaningful.
//!
//! `wrk`, `nginx` (nginx-light) and `coap-server-notls` (libcoap3-bin) are Debian's; missing programs are skipped, with a
//! message.

mod datagrams;
mod latency;
mod memory;
mod mutated;
mod network;
mod opened;
#[path = "../origin/mod.rs"]
mod origin;
mod scheduling;
mod server;
mod wrk;

use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use network::Network;
use server::{ServerKind, ServerProcesses};

/// A row of the table.
struct TableRow {
    name: &'static str,
    kind: ServerKind,
    load: Load,
}

#[derive(Clone, Copy)]
enum Load {
    Wrk(wrk::Load),
    Datagrams(datagrams::Load),
    Opened(opened::Load),
    /// Through a gateway, to this server at this path.
    Through(ServerKind, &'static str),
}

const LINES: [TableRow; 25] = {
    use datagrams::Load as D;
    use wrk::Load as W;
    const fn line(name: &'static str, kind: ServerKind, load: Load) -> TableRow {
        TableRow { name, kind, load }
    }
    [
        line("nginx, kept alive", ServerKind::Nginx, Load::Wrk(W::KeptAlive)),
        line("hyper, kept alive", ServerKind::Hyper, Load::Wrk(W::KeptAlive)),
        line("roundtrip, kept alive", ServerKind::Ours, Load::Wrk(W::KeptAlive)),
        line("nginx, pipelined", ServerKind::Nginx, Load::Wrk(W::Pipelined)),
        line("hyper, pipelined", ServerKind::Hyper, Load::Wrk(W::Pipelined)),
        line("roundtrip, pipelined", ServerKind::Ours, Load::Wrk(W::Pipelined)),
        line("nginx, a connection each", ServerKind::Nginx, Load::Wrk(W::Each)),
        line("hyper, a connection each", ServerKind::Hyper, Load::Wrk(W::Each)),
        line("roundtrip, a connection each", ServerKind::Ours, Load::Wrk(W::Each)),
        line("reflector, many clients", ServerKind::Reflector, Load::Datagrams(D::Known)),
        line("libcoap, two clients", ServerKind::Coap, Load::Datagrams(D::Coap)),
        line("roundtrip, DHTTP, many clients", ServerKind::Ours, Load::Datagrams(D::Known)),
        line("roundtrip, DHTTP, first requests", ServerKind::Ours, Load::Datagrams(D::New)),
        line("reflector, one client", ServerKind::Reflector, Load::Datagrams(D::One)),
        line("roundtrip, DHTTP, one client", ServerKind::Ours, Load::Datagrams(D::One)),
        line("nginx, hits of proxy_cache", ServerKind::NginxCache, Load::Wrk(W::KeptAlive)),
        line("cache, kept alive", ServerKind::Cache, Load::Wrk(W::KeptAlive)),
        line("cache, DHTTP, many clients", ServerKind::Cache, Load::Datagrams(D::Known)),
        line(
            "gateway, cached responses",
            ServerKind::CachingGateway,
            Load::Through(ServerKind::Cache, "/small.txt"),
        ),
        line(
            "gateway, to the server by DHTTP",
            ServerKind::Gateway,
            Load::Through(ServerKind::Ours, "/_dhttp_/small.txt"),
        ),
        line(
            "gateway, to the server by HTTP",
            ServerKind::Gateway,
            Load::Through(ServerKind::Nginx, "/small.txt"),
        ),
        line("nginx, 16 KB, kept alive", ServerKind::Nginx, Load::Wrk(W::LargeKeptAlive)),
        line(
            "roundtrip, DHTTP, 16 KB, connection reused",
            ServerKind::Ours,
            Load::Opened(opened::Load::Reused),
        ),
        line("nginx, 16 KB, a connection each", ServerKind::Nginx, Load::Wrk(W::LargeEach)),
        line("roundtrip, DHTTP, 16 KB, new connection", ServerKind::Ours, Load::Opened(opened::Load::New)),
    ]
};

/// Target: one line reaches `ratio` times the responses of another; 0: only the ratio is reported.
struct Target {
    section: &'static str,
    measured_row: &'static str,
    ratio: f64,
    reference_row: &'static str,
}

const TARGETS: [Target; 19] = {
    const fn target(
        section: &'static str,
        measured_row: &'static str,
        ratio: f64,
        reference_row: &'static str,
    ) -> Target {
        Target { section, measured_row, ratio, reference_row }
    }
    [
        target("http", "roundtrip, kept alive", 1.2, "nginx, kept alive"),
        target("http", "roundtrip, kept alive", 0.9, "hyper, kept alive"),
        target("http", "roundtrip, pipelined", 0.9, "hyper, pipelined"),
        target("http", "roundtrip, pipelined", 1.0, "nginx, pipelined"),
        target("http", "roundtrip, a connection each", 1.0, "nginx, a connection each"),
        target("many", "roundtrip, DHTTP, many clients", 2.5, "nginx, kept alive"),
        target("many", "roundtrip, DHTTP, many clients", 2.0, "libcoap, two clients"),
        target("many", "roundtrip, DHTTP, many clients", 0.9, "reflector, many clients"),
        target("first", "roundtrip, DHTTP, first requests", 6.0, "nginx, a connection each"),
        target("one", "roundtrip, DHTTP, one client", 8.0, "nginx, kept alive"),
        target("one", "roundtrip, DHTTP, one client", 1.2, "hyper, pipelined"),
        target("opened", "roundtrip, DHTTP, 16 KB, connection reused", 0.95, "nginx, 16 KB, kept alive"),
        target("opened", "roundtrip, DHTTP, 16 KB, new connection", 1.0, "nginx, 16 KB, a connection each"),
        target("cache", "cache, kept alive", 0.9, "roundtrip, kept alive"),
        target("cache", "cache, kept alive", 2.0, "nginx, hits of proxy_cache"),
        target("cache", "cache, DHTTP, many clients", 0.9, "roundtrip, DHTTP, many clients"),
        target("gateway", "gateway, cached responses", 0.9, "roundtrip, kept alive"),
        target("gateway", "gateway, to the server by DHTTP", 0.0, "roundtrip, kept alive"),
        target("gateway", "gateway, to the server by HTTP", 0.0, "roundtrip, kept alive"),
    ]
};

/// Responses per second of CPU time.
#[derive(Clone, Copy)]
struct Rate {
    server: f64,
    /// Responses per second of CPU time of the server and its load.
    both: f64,
    /// Share of the time in which the server's CPU was busy.
    busy: f64,
}

/// Options of a run.
struct Options {
    rounds: usize,
    is_loopback: bool,
    sections: Vec<String>,
}

impl Options {
    fn of(arguments: Vec<String>) -> Self {
        let mut options = Self { rounds: 5, is_loopback: false, sections: Vec::new() };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--loopback" => options.is_loopback = true,
                "--rounds" => {
                    options.rounds =
                        arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(5).max(1);
                }
                _ => options.sections.push(argument),
            }
        }
        options
    }

    fn selects(&self, section: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|selected| selected == section)
    }

    fn network(&self) -> Network {
        if self.is_loopback {
            return Network::Loopback;
        }
        Network::apart().unwrap_or_else(|error| {
            eprintln!("over the loopback interface, without namespaces: {error}");
            Network::Loopback
        })
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments_as_str: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [server::ROLE, role, address, directory] = arguments_as_str[..] {
        server::run(role, address.parse().expect("this program wrote it"), Path::new(directory));
        return ExitCode::SUCCESS;
    }
    if let [memory::ROLE, server, connections] = arguments_as_str[..] {
        let parsed = (server.parse().ok(), connections.parse().ok());
        let (Some(server), Some(connections)) = parsed else { return ExitCode::FAILURE };
        memory::keep(server, connections);
        return ExitCode::SUCCESS;
    }
    let options = Options::of(arguments);
    let network = options.network();
    scheduling::load_here();
    let directory = server::ServedDirectory::new();
    let servers = ServerProcesses::start(&network, &directory);
    let targets: Vec<&Target> = TARGETS.iter().filter(|target| options.selects(target.section)).collect();
    let is_wanted = |line: &TableRow| {
        targets.iter().any(|target| [target.measured_row, target.reference_row].contains(&line.name))
    };
    let mut rates: [Vec<Rate>; LINES.len()] = Default::default();
    for _ in 0..options.rounds {
        for (line, rates) in LINES.iter().zip(&mut rates).filter(|(line, _)| is_wanted(line)) {
            rates.extend(measure(line, &servers));
        }
    }
    if !targets.is_empty() {
        print_rates(&rates);
        print_ratios(&targets, &rates);
    }
    if options.selects("mutated") {
        mutated::compare(&servers);
    }
    drop(servers);
    if options.selects("latency") {
        latency::compare(&directory, options.rounds);
    }
    if options.selects("memory") {
        memory::compare(&network, &directory);
    }
    ExitCode::SUCCESS
}

/// Returns `None` if a program is missing.
fn measure(line: &TableRow, servers: &ServerProcesses) -> Option<Rate> {
    let server = servers.get(line.kind)?;
    let look =
        || [scheduling::time_of_server(server.process), scheduling::time_of_loaders(), started().elapsed()];
    let mut before = look();
    let responses = match line.load {
        Load::Wrk(load) => wrk::run(load, server.address)?,
        Load::Datagrams(load) => datagrams::run(load, server.address, || before = look()),
        Load::Opened(load) => opened::run(load, server.address, || before = look()),
        Load::Through(requested, path) => {
            wrk::through(server.address, &format!("http://{}{path}", servers.get(requested)?.address))?
        }
    } as f64;
    let after = look();
    let [spent, loading, elapsed] = std::array::from_fn(|index| (after[index] - before[index]).as_secs_f64());
    Some(Rate { server: responses / spent, both: responses / (spent + loading), busy: spent / elapsed })
}

fn print_rates(rates: &[Vec<Rate>]) {
    println!("responses per second of CPU time, medians\n");
    println!("| {:42} | server | min | max | both ends | server busy |", "");
    println!("| {:-<42} | ---: | ---: | ---: | ---: | ---: |", "");
    for (line, rates) in LINES.iter().zip(rates).filter(|(_, rates)| !rates.is_empty()) {
        let of = |part: fn(&Rate) -> f64| spread(rates.iter().map(part).collect());
        let ((server, min, max), (both, ..), (busy, ..)) =
            (of(|rate| rate.server), of(|rate| rate.both), of(|rate| rate.busy));
        let name = line.name;
        println!("| {name:42} | {server:.0} | {min:.0} | {max:.0} | {both:.0} | {:.0}% |", 100.0 * busy);
    }
}

fn print_ratios(targets: &[&Target], rates: &[Vec<Rate>]) {
    let of = |name: &str| LINES.iter().zip(rates).find(|(line, _)| line.name == name).map(|(_, rates)| rates);
    println!("\nratios within a round: median, minimum and maximum\n");
    println!("| row | compared with | target | ratio | min | max | | ratio by both ends' time |");
    println!("| --- | --- | ---: | ---: | ---: | ---: | --- | ---: |");
    for Target { section: _, measured_row, ratio, reference_row } in targets {
        let (Some(first), Some(second)) = (of(measured_row), of(reference_row)) else { continue };
        let pairs = || first.iter().zip(second);
        if pairs().next().is_some() {
            let (measured, min, max) =
                spread(pairs().map(|(measured, reference)| measured.server / reference.server).collect());
            let (both, ..) =
                spread(pairs().map(|(measured, reference)| measured.both / reference.both).collect());
            let verdict = match *ratio {
                0.0 => "",
                ratio if measured >= ratio => "reached",
                _ => "missed",
            };
            println!(
                "| {measured_row} | {reference_row} | {ratio:.2} | {measured:.2} | {min:.2} | {max:.2} | {verdict} | {both:.2} |"
            );
        }
    }
}

/// Median, minimum, maximum.
fn spread(mut all: Vec<f64>) -> (f64, f64, f64) {
    all.sort_by(f64::total_cmp);
    (all[all.len() / 2], all[0], all[all.len() - 1])
}

/// Duration of the load on each line in a round.
const LOADED: Duration = Duration::from_secs(1);

/// Start time of the measurement.
fn started() -> Instant {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    *STARTED.get_or_init(now)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is a driver, and this is its one place")]
fn now() -> Instant {
    Instant::now()
}
