//! DHTTP over a saturated bottleneck: the share of UDP, resends, and the throughput of competing TCP flows,
//! compared with the same number of HTTP/1.1 users.
//!
//! Without the test harness: as a test it runs the highest load once. `cargo test --release -p roundtrip-simulate
//! --test congestion -- 20` runs one, two and three client hosts with that number of seeds and prints a table
//! of means with 95% intervals, as stored in `studies/dhttp-congestion`.

extern crate roundtrip_simulate as simulate;

use std::process::ExitCode;

use simulate::dumbbell::{DumbbellResult, UserProtocol, found};
use trace::Summary;
use trace::statistics::interval95;
use wire::Seed;

fn main() -> ExitCode {
    match std::env::args().skip(1).find_map(|word| word.parse().ok()) {
        Some(seeds) => table(seeds),
        None => sample(),
    }
}

/// `papers/dhttp#table-1`: clients move off UDP, and resends come late; competing flows share the rest
/// fairly.
fn sample() -> ExitCode {
    let full = found(3, UserProtocol::Dhttp, Seed::default()).expect("a town that can be");
    let is_as_in_the_paper = full.udp_share() < 0.06 && full.resent() < 0.2 && full.ignored() > 0.2;
    if is_as_in_the_paper && full.fairness() > 0.9 {
        return ExitCode::SUCCESS;
    }
    eprintln!("a full line: {full:?}");
    ExitCode::FAILURE
}

fn table(seeds: u64) -> ExitCode {
    println!(
        "| machines | users ask by | UDP share | resent/fresh | of it ignored | others' flows, Mbit/s | Jain's index |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for machines in 1..=3 {
        for asks in [UserProtocol::Dhttp, UserProtocol::Http] {
            let all: Vec<DumbbellResult> = (1..=seeds)
                .map(|seed| found(machines, asks, Seed::new(seed)).expect("a town that can be"))
                .collect();
            let both = |value: fn(&DumbbellResult) -> f64, digits: usize| {
                let values: Vec<f64> = all.iter().map(value).collect();
                let summary = Summary::of(&values).expect("at least one seed");
                let interval = summary.deviation.map_or(0.0, |deviation| interval95(deviation, values.len()));
                format!("{:.digits$} ± {interval:.digits$}", summary.mean)
            };
            let flows = both(|found| found.flows.iter().sum::<f64>() / 1e6, 2);
            let fairness = both(DumbbellResult::fairness, 3);
            let dhttp = match asks {
                UserProtocol::Http => ["-".to_owned(), "-".to_owned(), "-".to_owned()],
                UserProtocol::Dhttp => [
                    both(|found| 100.0 * found.udp_share(), 1) + "%",
                    both(|found| 100.0 * found.resent(), 1) + "%",
                    both(|found| 100.0 * found.ignored(), 0) + "%",
                ],
            };
            println!("| {machines} | {asks:?} | {} | {flows} | {fairness} |", dhttp.join(" | "));
        }
    }
    ExitCode::SUCCESS
}
