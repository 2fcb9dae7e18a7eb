//! The faster protocol by response size, requests of a client, round trip and loss, from the simulator and from this
//! host's kernel.
//!
//! ```text
//! cargo bench -p roundtrip-reproduce --bench crossover -- FILE.csv              simulates every cell of the map
//! cargo bench -p roundtrip-reproduce --bench crossover -- FILE.csv --measure    measures some of them, as root
//! cargo bench -p roundtrip-reproduce --bench crossover -- FILE.csv --measure 1000,1,5,1     measures the cells with this prefix
//! ```
//!
//! The results are in `studies/crossover`; `reproduce roundtrip/crossover` draws them and computes a part again. Not a
//! benchmark of this host: in simulated runs only the network takes time, and it is virtual. In measured runs the hosts'
//! time is small compared with the emulated round trip.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread;

use roundtrip_reproduce::study::crossover::cell::{Cell, PROTOCOLS};
use simulate::{Experiment, Hosts};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let reported = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [file] => written(file, &all(&SIMULATED.cells(), cpus(), simulated)),
        [file, "--measure"] => measure_into(file, ""),
        [file, "--measure", only] => measure_into(file, only),
        _ => Err("name a file for the cells".to_owned()),
    };
    match reported {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("crossover: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn measure_into(file: &str, only: &str) -> Result<(), String> {
    testbed::available().map_err(|error| error.to_string())?;
    let mut cells = MEASURED.cells();
    cells.retain(|cell| line(cell, Vec::new()).starts_with(only));
    written(file, &all(&cells, BESIDE, measured))
}

/// The columns of the files.
const HEADING: &str = "bytes,requests,rtt_ms,loss_percent,protocol,runs,median_ms,p99_ms,p999_ms\n";

/// The cells are all combinations of these values.
struct Grid<'a> {
    /// Body sizes: up to one datagram, a window, many windows.
    bytes: &'a [u64],
    requests: &'a [usize],
    rtt_ms: &'a [u64],
    loss_percent: &'a [u32],
}

const SIMULATED: Grid<'_> = Grid {
    bytes: &[500, 1_000, 2_000, 8_000, 32_000],
    requests: &[1, 3, 10],
    rtt_ms: &[5, 50, 200],
    loss_percent: &[0, 1, 5],
};

/// Fewer cells, because runs take real time.
const MEASURED: Grid<'_> =
    Grid { bytes: &[1_000, 2_000], requests: &[1, 10], rtt_ms: &[5, 50], loss_percent: &[0, 1] };

/// Simulated runs with loss: enough for a 99.9th percentile, which is their maximum.
const RUNS: u32 = 1_000;
/// Measured runs with loss: four are beyond the 99th percentile. For a single request two are beyond the 99.9th, as it
/// takes a tenth of a second on average, where ten take seconds.
const fn runs_with_loss(requests: usize) -> u32 {
    if requests == 1 { 2_000 } else { 400 }
}
/// Runs without loss, for a median.
const RUNS_WITHOUT: u32 = 30;
/// Maximum number of concurrent measurements: most of a run is waiting for the network.
const BESIDE: usize = 6;

impl Grid<'_> {
    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for bytes in self.bytes.iter().copied() {
            for requests in self.requests.iter().copied() {
                for rtt_ms in self.rtt_ms.iter().copied() {
                    for loss_percent in self.loss_percent.iter().copied() {
                        let cell = |protocol| Cell { bytes, requests, rtt_ms, loss_percent, protocol };
                        cells.extend(PROTOCOLS.map(cell));
                    }
                }
            }
        }
        cells
    }
}

fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Every line, in the order of the cells.
fn all(
    cells: &[Cell],
    workers: usize,
    line: impl Fn(&Cell) -> Result<String, String> + Sync,
) -> Result<String, String> {
    let lines: Result<BTreeMap<usize, String>, String> = thread::scope(|scope| {
        let share = |worker| cells.iter().enumerate().skip(worker).step_by(workers);
        let line = &line;
        let work = |worker| {
            move || {
                share(worker)
                    .map(|(place, cell)| Ok((place, line(cell)?)))
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

fn simulated(cell: &Cell) -> Result<String, String> {
    // Without loss all runs are equal.
    let runs = if cell.loss_percent == 0 { 1 } else { RUNS };
    let experiment =
        Experiment::new(&cell.scenario(runs)?, Hosts::default()).map_err(|error| error.to_string())?;
    let mut elapsed_ms = Vec::new();
    for number in 0..runs {
        let run = experiment.run(number, false).map_err(|error| error.to_string())?;
        elapsed_ms.push(run.elapsed.map_or(f64::INFINITY, |elapsed| elapsed.as_millis_f64()));
    }
    Ok(line(cell, elapsed_ms))
}

fn measured(cell: &Cell) -> Result<String, String> {
    let runs = if cell.loss_percent == 0 { RUNS_WITHOUT } else { runs_with_loss(cell.requests) };
    let found = measure::measure(&cell.scenario(runs)?, &measure::Options::default(), |_| ())
        .map_err(|error| format!("{cell:?}: {error}"))?;
    let line = line(cell, found.runs.iter().map(|run| run.elapsed.as_millis_f64()).collect());
    eprint!("{line}");
    Ok(line)
}

/// Percentiles of some runs, in milliseconds; an aborted run counts as infinite.
fn line(cell: &Cell, mut elapsed_ms: Vec<f64>) -> String {
    let Cell { bytes, requests, rtt_ms, loss_percent, protocol } = cell;
    elapsed_ms.sort_by(f64::total_cmp);
    let runs = elapsed_ms.len();
    let at = |per_mille: usize| {
        let place = (runs * per_mille / 1_000).min(runs.saturating_sub(1));
        elapsed_ms.get(place).map_or("-".to_owned(), |ms| format!("{ms:.1}"))
    };
    // The maximum of a hundred runs estimates the 99th percentile, that of a thousand the 99.9th. A single run has no
    // variation.
    let known =
        |least: usize, per_mille| if runs == 1 || runs >= least { at(per_mille) } else { String::new() };
    let (median, p99, p999) = (at(500), known(100, 990), known(1_000, 999));
    let protocol = protocol.name();
    format!("{bytes},{requests},{rtt_ms},{loss_percent},{protocol},{runs},{median},{p99},{p999}\n")
}
