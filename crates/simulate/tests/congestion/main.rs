//! DHTTP over a saturated bottleneck: the share of UDP, resends, and the throughput of a competing TCP download,
//! compared with the same number of HTTP/1.1 users.
//!
//! Without the test harness: as a test it runs the highest load once, and a server with few processes. `cargo test --release
//! -p roundtrip-simulate --test congestion -- 60` runs one, two and three client hosts with that number of seeds and prints
//! a table of means with 95% intervals, as stored in `studies/dhttp-congestion`. It fails unless the download beside users of
//! DHTTP has at least 0.9 of its throughput beside users of HTTP, at the lower end of the interval. `-- 60 fair` prints
//! only that comparison, `-- 10 sweep` only the effect of DHTTP's parameters.

extern crate roundtrip_simulate as simulate;

use std::process::ExitCode;
use std::thread;

use dhttp_proto::client::Resend;
use simulate::dumbbell::{DumbbellConfig, DumbbellResult, UserPath, UserProtocol, run};
use trace::Summary;
use trace::statistics::interval95;
use wire::{Duration, Seed};

/// Apache's processes in the measurement of `papers/dhttp#figure-13`.
const PROCESSES: usize = 200;

fn main() -> ExitCode {
    // `ci.sh test` runs tests of other programs by their names.
    if std::env::args().any(|word| word == "--exact") {
        return ExitCode::SUCCESS;
    }
    let seeds = std::env::args().skip(1).find_map(|word| word.parse().ok());
    let Some(seeds) = seeds else { return sample() };
    let has = |mode: &str| std::env::args().any(|word| word == mode);
    if has("sweep") {
        sweep(seeds);
        return ExitCode::SUCCESS;
    }
    if !has("fair") {
        table(seeds);
    }
    fair(seeds)
}

/// `papers/dhttp#table-1`: clients move off UDP, resends come late, and competing downloads share the rest fairly.
fn sample() -> ExitCode {
    let config = DumbbellConfig { downloads: 2, ..DumbbellConfig::new(3, UserProtocol::Dhttp) };
    let full = run(&config, Seed::default()).expect("a dumbbell that can be");
    if full.udp_share() > 0.06 || full.ignored() < 0.2 || full.fairness() < 0.9 {
        eprintln!("a full link: {full:?}");
        return ExitCode::FAILURE;
    }
    // `papers/dhttp#figure-12`: users who close early let others have the processes.
    let [usual, altruistic] = [false, true].map(|closes_early| {
        let config = DumbbellConfig {
            path: UserPath::Lan,
            processes: Some(20),
            closes_early,
            lasts: Duration::from_secs(20),
            ..DumbbellConfig::new(1, UserProtocol::Http)
        };
        run(&config, Seed::default()).expect("a dumbbell that can be").per_second()
    });
    if usual > 0.0 && altruistic > 2.0 * usual {
        return ExitCode::SUCCESS;
    }
    eprintln!("twenty processes: {usual} responses per second, {altruistic} to users who close early");
    ExitCode::FAILURE
}

/// Outcomes of this many seeds, half of them on each of two threads.
fn outcomes(config: DumbbellConfig, seeds: u64) -> Vec<DumbbellResult> {
    let some = |first: u64| -> Vec<DumbbellResult> {
        let seeds = (first..=seeds).step_by(2);
        seeds.map(|seed| run(&config, Seed::new(seed)).expect("a dumbbell that can be")).collect()
    };
    thread::scope(|scope| {
        let threads = [1, 2].map(|first| scope.spawn(move || some(first)));
        threads.map(|thread| thread.join().expect("a run does not panic")).concat()
    })
}

/// Mean, and half the width of its 95% interval.
fn mean(all: &[DumbbellResult], value: impl Fn(&DumbbellResult) -> f64) -> (f64, f64) {
    let values: Vec<f64> = all.iter().map(value).collect();
    let summary = Summary::of(&values).expect("at least one seed");
    (summary.mean, summary.deviation.map_or(0.0, |deviation| interval95(deviation, values.len())))
}

/// Least share of its throughput beside HTTP that a download has beside DHTTP.
const FAIR: f64 = 0.9;

/// Prints the download's throughput beside three hosts, and its ratio to that beside HTTP, with and without a limit of
/// connections on both sides.
fn fair(seeds: u64) -> ExitCode {
    let [paper, by_tcp, internet, http, _] = rows();
    let mut is_fair = true;
    println!(
        "\n| users of three hosts | limit | download, Mbit/s | over that beside HTTP | over that beside S = 0 |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for processes in [None, Some(PROCESSES)] {
        let download = |(_, config): Row| {
            let mut config = DumbbellConfig { downloads: 1, processes, ..config(3) };
            config.dhttp.connections = processes.unwrap_or(config.dhttp.connections);
            mean(&outcomes(config, seeds), |result| result.flows.iter().sum::<f64>() / 1e6)
        };
        let ratio = |(over, off): (f64, f64), (under, beside): (f64, f64)| {
            (over / under, over / under * (off / over).hypot(beside / under))
        };
        let limit = processes.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
        let (beside_http, beside_tcp) = (download(http), download(by_tcp));
        for row in [http, by_tcp, paper, internet] {
            let own = download(row);
            let [to_http, to_tcp] = [beside_http, beside_tcp].map(|other| ratio(own, other));
            let is_least = to_http.0 - to_http.1 >= FAIR;
            is_fair &= processes.is_some() || is_least || row.0 == http.0 || row.0 == by_tcp.0;
            let shown = |(value, interval): (f64, f64)| format!("{value:.2} ± {interval:.2}");
            println!("| {} | {limit} | {} | {} | {} |", row.0, shown(own), shown(to_http), shown(to_tcp));
        }
    }
    if is_fair { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Label of a row of the table, and its users, by the number of machines.
type Row = (&'static str, fn(usize) -> DumbbellConfig);

/// Returns the rows of the table.
fn rows() -> [Row; 5] {
    [
        ("DHTTP, paper", |machines| DumbbellConfig::new(machines, UserProtocol::Dhttp)),
        ("the same, S = 0", |machines| {
            let mut config = DumbbellConfig::new(machines, UserProtocol::Dhttp);
            config.dhttp.threshold = 0;
            config
        }),
        ("DHTTP, internet", |machines| DumbbellConfig::new(machines, UserProtocol::DhttpOfToday)),
        ("HTTP", |machines| DumbbellConfig::new(machines, UserProtocol::Http)),
        ("HTTP, 200 processes", |machines| DumbbellConfig {
            processes: Some(PROCESSES),
            ..DumbbellConfig::new(machines, UserProtocol::Http)
        }),
    ]
}

fn table(seeds: u64) {
    println!(
        "| downloads | hosts | users request by | UDP share | resent/fresh | of it ignored | mean latency, ms | users, \
         Mbit/s | download, Mbit/s |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for downloads in [0, 1] {
        for machines in 1..=3 {
            for (name, config) in rows() {
                let config = DumbbellConfig { downloads, ..config(machines) };
                let all = outcomes(config, seeds);
                let both = |value: fn(&DumbbellResult) -> f64, digits: usize| {
                    let (mean, interval) = mean(&all, value);
                    format!("{mean:.digits$} ± {interval:.digits$}")
                };
                let flows = match downloads {
                    0 => "-".to_owned(),
                    _ => both(|result| result.flows.iter().sum::<f64>() / 1e6, 2),
                };
                let dhttp = match config.users {
                    UserProtocol::Http => ["-".to_owned(), "-".to_owned(), "-".to_owned()],
                    UserProtocol::Dhttp | UserProtocol::DhttpOfToday => [
                        both(|result| 100.0 * result.udp_share(), 1) + "%",
                        both(|result| 100.0 * result.resent(), 1) + "%",
                        both(|result| 100.0 * result.ignored(), 0) + "%",
                    ],
                };
                let latency = both(DumbbellResult::mean_ms, 0);
                let users = both(|result| result.users_bits() / 1e6, 2);
                let dhttp = dhttp.join(" | ");
                println!("| {downloads} | {machines} | {name} | {dhttp} | {latency} | {users} | {flows} |");
            }
        }
    }
}

/// A parameter's value, and the change that it makes.
type Change = (&'static str, fn(&mut DumbbellConfig));

/// Prints the effect of each of DHTTP's parameters, with users of the paper's profile: S, L, resend times, idle timeout.
fn sweep(seeds: u64) {
    fn resend_after(config: &mut DumbbellConfig, first: u64) {
        config.client.resend =
            Resend::Fixed { waits: [Duration::from_secs(first), Duration::from_secs(2 * first)] };
    }
    let changes: [Change; 12] = [
        ("S = 0", |config| config.dhttp.threshold = 0),
        ("S = 512", |config| config.dhttp.threshold = 512),
        ("S = 1,000", |config| config.dhttp.threshold = 1_000),
        ("**S = 1,460, L = 1%, 5 and 10 s, idle 5 s**", |_| ()),
        ("L = 0.1%", |config| config.dhttp.loss.threshold_ppm = 1_000),
        ("L = 5%", |config| config.dhttp.loss.threshold_ppm = 50_000),
        ("L = 100%", |config| config.dhttp.loss.threshold_ppm = 1_000_000),
        ("resends after 1 and 2 s", |config| resend_after(config, 1)),
        ("resends after 2 and 4 s", |config| resend_after(config, 2)),
        ("resends after 20 and 40 s", |config| resend_after(config, 20)),
        ("idle 1 s", |config| config.dhttp.timeout.idle = Duration::from_secs(1)),
        ("idle 15 s", |config| config.dhttp.timeout.idle = Duration::from_secs(15)),
    ];
    println!(
        "| hosts | parameters | UDP share | resent/fresh | connections | mean latency, ms | responses a second |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for machines in [1, 3] {
        for (name, change) in changes {
            let mut config = DumbbellConfig::new(machines, UserProtocol::Dhttp);
            change(&mut config);
            let all = outcomes(config, seeds);
            let both = |value: fn(&DumbbellResult) -> f64, digits: usize| {
                let (mean, interval) = mean(&all, value);
                format!("{mean:.digits$} ± {interval:.digits$}")
            };
            println!(
                "| {machines} | {name} | {}% | {}% | {} | {} | {} |",
                both(|result| 100.0 * result.udp_share(), 1),
                both(|result| 100.0 * result.resent(), 1),
                both(|result| result.dhttp.connections as f64, 0),
                both(DumbbellResult::mean_ms, 0),
                both(DumbbellResult::per_second, 1)
            );
        }
    }
}
