//! Which protocol is faster for whom: over answer size, requests of a client, round trip and loss, from the simulator.
//!
//! `cargo bench -p roundtrip --bench crossover -- FILE.csv` computes every cell; what came of it is kept in `studies/crossover`,
//! and `reproduce roundtrip/crossover` draws it and computes a part again. Not a benchmark of this machine, nor of hosts: nothing
//! but the network takes time, and it is virtual.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread;

use scenario::{Network, Page, Protocol, Scenario, Stack};
use simulate::{Experiment, Hosts};
use wire::link::Loss;
use wire::{Bytes, Duration, Probability, Rate};

fn main() -> ExitCode {
    let file = std::env::args().skip(1).find(|argument| argument != "--bench");
    let told = match file {
        Some(file) => written(&file, &all(&every_cell())),
        None => Err("name a file for the cells".to_owned()),
    };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("crossover: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Bodies, in bytes: up to one datagram, a window, many.
const BYTES: [u64; 5] = [500, 1_000, 2_000, 8_000, 32_000];
/// That a client makes and that the server has never seen before.
const REQUESTS: [usize; 3] = [1, 3, 10];
const RTT_MS: [u64; 3] = [5, 50, 200];
/// In thousandths, each packet by itself, in both directions.
const LOSS: [u32; 3] = [0, 10, 50];
const PROTOCOLS: [Protocol; 4] =
    [Protocol::Http10, Protocol::Http11, Protocol::Http11Pipelined, Protocol::Dhttp];
/// Of the bottleneck: more than any of these windows needs.
const RATE: u64 = 100_000_000;
/// Enough for a 99.9th percentile, and no more: it is the worst of them.
const RUNS: u32 = 1_000;
const HEADING: &str = "bytes,requests,rtt_ms,loss_percent,protocol,runs,median_ms,p99_ms,p999_ms\n";

/// A client's requests by one protocol over one network.
#[derive(Clone, Copy, Debug)]
struct Cell {
    bytes: u64,
    requests: usize,
    rtt_ms: u64,
    per_mille: u32,
    protocol: Protocol,
}

fn cells(bytes: &[u64], requests: &[usize], rtt_ms: &[u64], losses: &[u32]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for bytes in bytes.iter().copied() {
        for requests in requests.iter().copied() {
            for rtt_ms in rtt_ms.iter().copied() {
                for per_mille in losses.iter().copied() {
                    let cell = |protocol| Cell { bytes, requests, rtt_ms, per_mille, protocol };
                    cells.extend(PROTOCOLS.map(cell));
                }
            }
        }
    }
    cells
}

fn every_cell() -> Vec<Cell> {
    cells(&BYTES, &REQUESTS, &RTT_MS, &LOSS)
}

/// Every line, whatever the number of processors.
fn all(cells: &[Cell]) -> Result<String, String> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let lines: Result<BTreeMap<usize, String>, String> = thread::scope(|scope| {
        let share = |worker| cells.iter().enumerate().skip(worker).step_by(workers);
        let work = |worker| {
            move || {
                share(worker)
                    .map(|(place, cell)| Ok((place, cell.line()?)))
                    .collect::<Result<Vec<_>, String>>()
            }
        };
        let working: Vec<_> = (0..workers).map(|worker| scope.spawn(work(worker))).collect();
        let done = working.into_iter().map(|worker| worker.join().expect("no cell panics"));
        done.collect::<Result<Vec<_>, _>>().map(|lines| lines.into_iter().flatten().collect())
    });
    Ok(HEADING.to_owned() + &lines?.into_values().collect::<String>())
}

fn written(file: &str, text: &Result<String, String>) -> Result<(), String> {
    std::fs::write(file, text.as_ref()?).map_err(|error| format!("cannot write {file}: {error}"))
}

impl Cell {
    fn scenario(&self, runs: u32) -> Result<Scenario, String> {
        let Self { bytes, requests, rtt_ms, per_mille, protocol } = *self;
        let rate = Rate::from_bits_per_second(RATE).expect("above zero");
        let name = format!("{rtt_ms}ms");
        let mut network = Network::new(name, Duration::from_millis(rtt_ms), rate, Bytes::new(1_460));
        if let Some(share) = Probability::new(f64::from(per_mille) / 1e3).filter(|_| per_mille > 0) {
            network.up.loss = Loss::Independent(share);
            network.down.loss = Loss::Independent(share);
        }
        let page = Page::from_sizes("answers", vec![Bytes::new(bytes); requests])
            .map_err(|error| error.to_string())?;
        let stack = Stack::named("linux").map_err(|unknown| unknown.to_string())?;
        Ok(Scenario { runs, ..Scenario::new(network, page, protocol, stack) })
    }

    fn line(&self) -> Result<String, String> {
        let Self { bytes, requests, rtt_ms, per_mille, protocol } = self;
        // Without loss there is nothing by which one run differs from another.
        let runs = if *per_mille == 0 { 1 } else { RUNS };
        let experiment =
            Experiment::new(&self.scenario(runs)?, Hosts::default()).map_err(|error| error.to_string())?;
        let mut elapsed_ms = Vec::new();
        for number in 0..runs {
            let run = experiment.run(number, false).map_err(|error| error.to_string())?;
            // Who gave up has waited longer than anybody else.
            elapsed_ms.push(run.elapsed.map_or(f64::INFINITY, |elapsed| elapsed.as_millis_f64()));
        }
        elapsed_ms.sort_by(f64::total_cmp);
        let at =
            |per_mille: usize| elapsed_ms[(elapsed_ms.len() * per_mille / 1_000).min(elapsed_ms.len() - 1)];
        let (percent, protocol) = (f64::from(*per_mille) / 10.0, protocol.name());
        Ok(format!(
            "{bytes},{requests},{rtt_ms},{percent},{protocol},{runs},{:.1},{:.1},{:.1}\n",
            at(500),
            at(990),
            at(999)
        ))
    }
}
