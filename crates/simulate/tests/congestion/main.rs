//! DHTTP over a saturated bottleneck: the share of UDP, resends, and the throughput of a competing TCP download,
//! compared with the same number of HTTP/1.1 users.
//!
//! Without the test harness: as a test it runs the highest load once. `cargo test --release -p
//! roundtrip-simulate --test congestion -- 20` runs one, two and three client hosts with that number of seeds and prints
//! a table of means with 95% intervals, as stored in `studies/dhttp-congestion`.

extern crate roundtrip_simulate as simulate;

use std::process::ExitCode;

use simulate::dumbbell::{DumbbellConfig, DumbbellResult, UserProtocol, run};
use trace::Summary;
use trace::statistics::interval95;
use wire::Seed;

/// Apache's processes in the measurement of `papers/dhttp#figure-13`.
const PROCESSES: usize = 200;

fn main() -> ExitCode {
    match std::env::args().skip(1).find_map(|word| word.parse().ok()) {
        Some(seeds) => table(seeds),
        None => sample(),
    }
}

/// `papers/dhttp#table-1`: clients move off UDP, resends come late, and competing downloads share the rest fairly.
fn sample() -> ExitCode {
    let config = DumbbellConfig { downloads: 2, ..DumbbellConfig::new(3, UserProtocol::Dhttp) };
    let full = run(&config, Seed::default()).expect("a dumbbell that can be");
    if full.udp_share() < 0.06 && full.ignored() > 0.2 && full.fairness() > 0.9 {
        return ExitCode::SUCCESS;
    }
    eprintln!("a full link: {full:?}");
    ExitCode::FAILURE
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

fn table(seeds: u64) -> ExitCode {
    println!(
        "| downloads | hosts | users request by | UDP share | resent/fresh | of it ignored | mean latency, ms | users, \
         Mbit/s | download, Mbit/s |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for downloads in [0, 1] {
        for machines in 1..=3 {
            for (name, config) in rows() {
                let config = DumbbellConfig { downloads, ..config(machines) };
                let all: Vec<DumbbellResult> = (1..=seeds)
                    .map(|seed| run(&config, Seed::new(seed)).expect("a dumbbell that can be"))
                    .collect();
                let both = |value: fn(&DumbbellResult) -> f64, digits: usize| {
                    let values: Vec<f64> = all.iter().map(value).collect();
                    let summary = Summary::of(&values).expect("at least one seed");
                    let interval =
                        summary.deviation.map_or(0.0, |deviation| interval95(deviation, values.len()));
                    format!("{:.digits$} ± {interval:.digits$}", summary.mean)
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
    ExitCode::SUCCESS
}
