//! Cost of loss: every network and page of the model paper under 0.1%, 1% and 5%, over many runs of the simulator.
//!
//! `sample` computes a sample again and compares it with the one in `studies/loss`, byte by byte; `all FILE.csv` computes and
//! summarises everything. No paper
//! here has such figures.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use roundtrip_studies::{exit_code, in_parallel, usage};
use scenario::{Network, Page, Protocol, Scenario, Stack};
use simulate::{Experiment, Hosts, PageResult};
use wire::Probability;
use wire::link::Loss;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let reported = match words.as_slice() {
        ["all", file] => compute_all(file),
        ["sample"] => check_sample(),
        _ => Err(usage("")),
    };
    exit_code("loss", reported)
}

fn compute_all(file: &str) -> Result<(), String> {
    let text = compute_lines();
    std::fs::write(file, &text).map_err(|error| format!("cannot write {file}: {error}"))?;
    print!("{}", summary(&text));
    Ok(())
}

/// Loss rates of both directions, each packet independently, in thousandths; the first is the baseline.
const PER_MILLE: [u32; 4] = [0, 1, 10, 50];
/// Number of runs: an event in one of a hundred occurs twice.
const RUNS: u32 = 200;
/// The paper's hosts, and today's.
const STACKS: [&str; 2] = ["period", "linux"];
const PROTOCOLS: [Protocol; 2] = [Protocol::Http10, Protocol::Http10KeepAlive];
/// Number of networks of the paper's own tables; the paper's pages exclude the one of another paper.
const NETWORKS: usize = 10;
const PAGES: usize = 6;
const HEADING: &str = "network,page,protocol,stack,loss_percent,least_ms,p10_ms,median_ms,mean_ms,p90_ms,p99_ms,over_no_loss,lost_packets,gave_up\n";

/// One network, page, protocol and stack: a line for each loss rate.
#[derive(Clone)]
struct Case {
    network: Network,
    page: Page,
    protocol: Protocol,
    stack: Stack,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for network in Network::all().into_iter().take(NETWORKS) {
        for page in Page::all().into_iter().take(PAGES) {
            for protocol in PROTOCOLS {
                for stack in STACKS.map(|name| Stack::named(name).expect("a stack's name")) {
                    cases.push(Case { network: network.clone(), page: page.clone(), protocol, stack });
                }
            }
        }
    }
    cases
}

/// Every line, independent of the number of CPUs.
fn compute_lines() -> String {
    HEADING.to_owned() + &in_parallel(&cases(), Case::lines).concat()
}

/// Ratios of the median, the mean and the 99th percentile to the median without loss: geometric means over networks and
/// pages, for each stack, protocol and loss rate.
fn summary(text: &str) -> String {
    let mut logarithms: BTreeMap<[&str; 3], Vec<[f64; 3]>> = BTreeMap::new();
    let mut without = f64::NAN;
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |index: usize| cells[index].parse().unwrap_or(f64::NAN);
        if cells[4] == "0" {
            without = number(7);
        }
        let to_none = [number(7), number(8), number(10)].map(|time: f64| (time / without).ln());
        logarithms.entry([cells[3], cells[2], cells[4]]).or_default().push(to_none);
    }
    let mut lines = "stack,protocol,loss_percent,median,mean,p99\n".to_owned();
    for ([stack, protocol, loss], cases) in logarithms {
        let mean =
            |index: usize| (cases.iter().map(|case| case[index]).sum::<f64>() / cases.len() as f64).exp();
        lines += &format!("{stack},{protocol},{loss},{:.2},{:.2},{:.2}\n", mean(0), mean(1), mean(2));
    }
    lines
}

/// Computes a few small cases of each stack again.
fn check_sample() -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/loss/pages.csv");
    let retained =
        std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let is_in_sample = |case: &&Case| {
        case.page.name == "small-page" && ["adsl", "modem"].contains(&case.network.name.as_str())
    };
    for line in cases().iter().filter(is_in_sample).map(Case::lines).collect::<String>().lines() {
        if !retained.lines().any(|known| known == line) {
            return Err(format!(
                "{} has no line {line}; run everything again, and state the reason in CHANGELOG.md",
                path.display()
            ));
        }
    }
    Ok(())
}

impl Case {
    /// One line for each loss rate, in order.
    fn lines(&self) -> String {
        let Self { network, page, protocol, stack } = self;
        let mut without = None;
        let mut lines = String::new();
        for per_mille in PER_MILLE {
            let times = self.run(per_mille);
            let median = times.at(500);
            let ratio = median / *without.get_or_insert(median);
            lines += &format!(
                "{},{},{},{},{},{:.1},{:.1},{median:.1},{:.1},{:.1},{:.1},{ratio:.2},{:.2},{}\n",
                network.name,
                page.name,
                protocol.name(),
                stack.name,
                f64::from(per_mille) / 10.0,
                times.at(0),
                times.at(100),
                times.mean(),
                times.at(900),
                times.at(990),
                times.lost as f64 / f64::from(RUNS),
                times.timed_out,
            );
        }
        lines
    }

    fn run(&self, per_mille: u32) -> RunTimes {
        let scenario = self.scenario(per_mille);
        let experiment =
            Experiment::new(&scenario, Hosts::default()).expect("a page of the paper can be simulated");
        let mut times = RunTimes::default();
        for number in 0..RUNS {
            let run = experiment.run(number, false).expect("a link that loses is possible");
            times.note(&run);
        }
        times.elapsed_ms.sort_by(f64::total_cmp);
        times
    }

    fn scenario(&self, per_mille: u32) -> Scenario {
        let Self { mut network, page, protocol, stack } = self.clone();
        if let Some(probability) = Probability::new(f64::from(per_mille) / 1_000.0).filter(|_| per_mille > 0)
        {
            network.up.loss = Loss::Independent(probability);
            network.down.loss = Loss::Independent(probability);
        }
        Scenario { runs: RUNS, ..Scenario::new(network, page, protocol, stack) }
    }
}

/// Times of the runs.
#[derive(Default)]
struct RunTimes {
    /// Times of the successful runs; sorted.
    elapsed_ms: Vec<f64>,
    lost: u64,
    timed_out: u32,
}

impl RunTimes {
    fn note(&mut self, run: &PageResult) {
        self.lost += run.lost;
        match run.elapsed {
            Some(elapsed) => self.elapsed_ms.push(elapsed.as_millis_f64()),
            None => self.timed_out += 1,
        }
    }

    /// The time below which this many runs in a thousand are; not a number if none was successful.
    fn at(&self, per_mille: usize) -> f64 {
        let index = (self.elapsed_ms.len() * per_mille / 1_000).min(self.elapsed_ms.len().saturating_sub(1));
        self.elapsed_ms.get(index).copied().unwrap_or(f64::NAN)
    }

    fn mean(&self) -> f64 {
        self.elapsed_ms.iter().sum::<f64>() / self.elapsed_ms.len() as f64
    }
}
