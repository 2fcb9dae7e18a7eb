//! Whole pages in Chromium: the simulator and the formulas, from a recording made on a fast network, against the browser on slower ones.
//!
//! Each page is made from a seed, recorded once over HTTP/2 at 1 Gbit/s and 2 ms, and read from that HAR as a user's recording is. It
//! is then measured with Chromium, and predicted from the recording, over two of four networks by HTTP/1.1, HTTP/2
//! and HTTP/3 with TLS 1.3.
//! Compared are the event `load` and the last response.
//!
//! `all FILE.csv` runs everything and writes the file after each page; `pages FIRST LAST FILE.csv` runs some; `sample` runs one page,
//! and fails if its last response differs by half; `predict FILE.csv` predicts the measured pages again, from
//! their recordings, which are kept in the directory FILE; `discovery FIRST LAST DIR` compares what is read from recordings with what
//! the pages were made with; `lighthouse FILE.csv` compares Lighthouse's simulated throttling with a table; `trace N NETWORK PROTOCOL` shows one page object by object, and the difference by
//! phase. The process has one thread, so that a non-root user may enter a user namespace first.

mod discovery;
mod lighthouse;
mod pages;
mod recordings;
mod trace;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use measure::peers::{ClientProgram, Peers};
use measure::run::Run;
use measure::{Options, measure};
use page::Page;
use roundtrip_studies::{exit_code, quantile, usage};
use scenario::{Network, Protocol, Scenario, Stack, Tls};
use wire::Probability;
use wire::link::Loss;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if !skip::has("chromium") {
        return ExitCode::SUCCESS;
    }
    if let Err(missing) = testbed::prepare().and_then(|()| testbed::available()) {
        skip::refused(&missing.to_string());
        return ExitCode::SUCCESS;
    }
    let number = |text: &str| text.parse().map_err(|_| usage(USAGE));
    let reported = match words.as_slice() {
        ["all", file] => study(0..PAGES, file),
        ["pages", first, last, file] => {
            number(first).and_then(|first| number(last).and_then(|last| study(first..last + 1, file)))
        }
        ["sample"] => sample(),
        ["predict", file] => predict(file),
        ["lighthouse", file] => lighthouse::compare(file),
        ["discovery", first, last, directory] => number(first).and_then(|first| {
            number(last).and_then(|last| discovery::compare(first, last, Path::new(directory)))
        }),
        ["trace", page, network, protocol] => {
            number(page).and_then(|page| trace::trace(page, network, protocol))
        }
        _ => Err(usage(USAGE)),
    };
    exit_code("chromium", reported)
}

const USAGE: &str = "predict FILE.csv`, `lighthouse FILE.csv`, `pages FIRST LAST FILE.csv`, `discovery FIRST LAST DIR`, `trace N NETWORK PROTOCOL";
const PAGES: u64 = 30;
/// Visits of a page on a network: the median of three is not an outlier.
const RUNS: u32 = 3;
const NETWORKS: [&str; 4] = ["cable", "4g", "dsl", "3g"];
/// `4g` that loses 1% of the packets in both directions, for every third page: the seeds of visits differ, and means of
/// several are compared.
const LOSSY: &str = "4g+loss=1%";
const LOSSY_RUNS: u32 = 5;
const LOSSY_SIMULATED_RUNS: u32 = 25;
const PROTOCOLS: [Protocol; 3] = [Protocol::Http2, Protocol::Http11Parallel, Protocol::Http3];
/// Tolerance of the sample, on a host that may be busy.
const SAMPLE_TOLERANCE: f64 = 0.5;

/// A page on a network by a protocol: times in milliseconds.
struct Cell {
    number: u64,
    objects: usize,
    hosts: usize,
    network: &'static str,
    protocol: Protocol,
    runs: usize,
    void: u32,
    measured: PageTimes,
    simulated: PageTimes,
    formula: PageTimes,
}

#[derive(Clone, Copy)]
struct PageTimes {
    load_ms: f64,
    last_ms: f64,
}

fn study(numbers: std::ops::Range<u64>, file: &str) -> Result<(), String> {
    let (mut cells, mut left_out) = (Vec::new(), Vec::new());
    for number in numbers {
        match cells_of(number, &directory(file)) {
            Ok((page_cells, void)) => {
                cells.extend(page_cells);
                left_out.extend(void);
            }
            Err(reason) => left_out.push(format!("page {number}: {reason}")),
        }
        std::fs::write(file, csv(&cells)).map_err(|error| format!("cannot write {file}: {error}"))?;
    }
    print!("{}", summary(&cells));
    left_out.iter().for_each(|reason| println!("left out: {reason}"));
    Ok(())
}

/// The directory of the recordings of a table.
fn directory(file: &str) -> PathBuf {
    Path::new(file).with_extension("")
}

/// Predicts the measured pages of a table again, and writes it.
fn predict(file: &str) -> Result<(), String> {
    let table = std::fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
    let mut cells = Vec::new();
    for line in table.lines().skip(1) {
        let cell = predicted_again(line, &directory(file)).map_err(|error| format!("{line}: {error}"))?;
        println!("{}", cell.line());
        cells.push(cell);
    }
    print!("{}", summary(&cells));
    std::fs::write(file, csv(&cells)).map_err(|error| format!("cannot write {file}: {error}"))
}

fn predicted_again(line: &str, recordings: &Path) -> Result<Cell, String> {
    let values: Vec<&str> = line.split(',').collect();
    let [number, objects, hosts, network, protocol, runs, void, load, last, ..] = values.as_slice() else {
        return Err("too few values".to_owned());
    };
    let count = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
    let time = |text: &str| text.parse::<f64>().map_err(|error| error.to_string());
    let number = count(number)?;
    let network = NETWORKS.into_iter().chain([LOSSY]).find(|name| name == network).ok_or("no network")?;
    let protocol = Protocol::named(protocol).map_err(|error| error.to_string())?;
    let recorded = recordings::recorded(number, recordings)?;
    let [simulated, formula] = predictions(&recorded, network, protocol)?;
    Ok(Cell {
        number,
        objects: usize::try_from(count(objects)?).unwrap_or(0),
        hosts: usize::try_from(count(hosts)?).unwrap_or(0),
        network,
        protocol,
        runs: usize::try_from(count(runs)?).unwrap_or(0),
        void: u32::try_from(count(void)?).unwrap_or(0),
        measured: PageTimes { load_ms: time(load)?, last_ms: time(last)? },
        simulated,
        formula,
    })
}

fn sample() -> Result<(), String> {
    let page = pages::page(SAMPLE)?;
    let visited = recordings::har(&page)
        .and_then(|har| recordings::read(har.as_bytes()))
        .and_then(|recorded| cell(SAMPLE, &page, &recorded, "4g", Protocol::Http2, 1));
    let cell = match visited {
        // Visits that are void on a busy host say nothing about the simulator.
        Err(reason) if reason.contains("it was void") => {
            eprintln!("chromium: left out: {reason}");
            return Ok(());
        }
        visited => visited?,
    };
    println!("{}", cell.line());
    let difference = (cell.simulated.last_ms / cell.measured.last_ms - 1.0).abs();
    if difference <= SAMPLE_TOLERANCE { Ok(()) } else { Err(cell.line()) }
}

/// A page of a few objects.
const SAMPLE: u64 = 0;

/// The page on its two networks, and sentences on what is left out.
fn cells_of(number: u64, recordings: &Path) -> Result<(Vec<Cell>, Vec<String>), String> {
    let page = pages::page(number)?;
    let recorded = recordings::recorded(number, recordings)?;
    let (mut cells, mut left_out) = (Vec::new(), Vec::new());
    let first = usize::try_from(number % 2).unwrap_or(0);
    let lossy = number.is_multiple_of(3).then_some(LOSSY);
    for network in [NETWORKS[first], NETWORKS[first + 2]].into_iter().chain(lossy) {
        let runs = if network == LOSSY { LOSSY_RUNS } else { RUNS };
        for protocol in PROTOCOLS {
            match cell(number, &page, &recorded, network, protocol, runs) {
                Ok(cell) => {
                    println!("{}", cell.line());
                    cells.push(cell);
                }
                Err(reason) => {
                    let reason = format!("page {number} over {network} by {}: {reason}", protocol.name());
                    println!("{reason}");
                    left_out.push(reason);
                }
            }
        }
    }
    Ok((cells, left_out))
}

fn scenario(page: &Page, network: Network, protocol: Protocol, runs: u32) -> Result<Scenario, String> {
    let stack = Stack::named("linux").map_err(|error| error.to_string())?;
    Ok(Scenario { tls: Tls::V13, runs, ..Scenario::new(network, page.clone(), protocol, stack) })
}

/// Visits with Chromium, and the number of those that were void.
fn visits(page: &Page, network: Network, protocol: Protocol, runs: u32) -> Result<(Vec<Run>, u32), String> {
    let scenario = scenario(page, network, protocol, runs)?;
    let peers = Peers { client: ClientProgram::Chromium, ..Peers::default() };
    let options = Options { peers, ..Options::default() };
    let measured = measure(&scenario, &options, |_| ()).map_err(|error| error.to_string())?;
    Ok((measured.runs, measured.void))
}

fn cell(
    number: u64,
    page: &Page,
    recorded: &Page,
    network: &'static str,
    protocol: Protocol,
    runs: u32,
) -> Result<Cell, String> {
    let (visits, void) = visits(page, network_named(network)?, protocol, runs)?;
    // Losses make some visits much longer: means are compared then, and otherwise medians, which no busy moment moves.
    let middle = |times: &[f64]| match network {
        LOSSY => times.iter().sum::<f64>() / times.len() as f64,
        _ => quantile(times, 5),
    };
    let loads = visits.iter().filter_map(|run| run.browser.as_ref());
    let (loads, lasts): (Vec<f64>, Vec<f64>) =
        loads.map(|browser| (browser.load.as_millis_f64(), browser.last_end.as_millis_f64())).unzip();
    let [simulated, formula] = predictions(recorded, network, protocol)?;
    Ok(Cell {
        number,
        objects: page.objects.len(),
        hosts: page.hosts.len(),
        network,
        protocol,
        runs: visits.len(),
        void,
        measured: PageTimes { load_ms: middle(&loads), last_ms: middle(&lasts) },
        simulated,
        formula,
    })
}

/// Times by the simulator and by the formulas.
fn predictions(recorded: &Page, network: &str, protocol: Protocol) -> Result<[PageTimes; 2], String> {
    let runs = if network == LOSSY { LOSSY_SIMULATED_RUNS } else { 1 };
    let predicted = scenario(recorded, network_named(network)?, protocol, runs)?;
    let times = |outcome: lab::Outcome| {
        let last_ms = outcome.metrics.elapsed_ms.unwrap_or(f64::NAN);
        PageTimes { load_ms: outcome.metrics.load_ms.unwrap_or(last_ms), last_ms }
    };
    Ok([times(lab::simulate::outcome(&predicted, |_| ())), times(lab::predict::outcome(&predicted, None))])
}

fn network_named(name: &str) -> Result<Network, String> {
    let mut network =
        Network::named(name.split('+').next().unwrap_or(name)).map_err(|error| error.to_string())?;
    if name == LOSSY {
        let loss = || Probability::new(0.01).map(Loss::Independent).ok_or("no probability");
        (network.up.loss, network.down.loss) = (loss()?, loss()?);
    }
    Ok(network)
}

impl Cell {
    fn line(&self) -> String {
        let Self { number, objects, hosts, network, protocol, measured, simulated, formula, .. } = self;
        let percent = |predicted: f64, measured: f64| (predicted / measured - 1.0) * 100.0;
        format!(
            "page {number:2} ({objects:3} objects, {hosts:2} hosts) {:15} over {network:10}: load {:7.1} ms, \
             simulated {:7.1} ({:+5.1}%), by formulas {:7.1} ({:+5.1}%); last {:7.1} ms, simulated {:7.1}",
            protocol.name(),
            measured.load_ms,
            simulated.load_ms,
            percent(simulated.load_ms, measured.load_ms),
            formula.load_ms,
            percent(formula.load_ms, measured.load_ms),
            measured.last_ms,
            simulated.last_ms,
        )
    }
}

fn csv(cells: &[Cell]) -> String {
    let mut text =
        "page,objects,hosts,network,protocol,runs,void,measured_load_ms,measured_last_ms,simulated_load_ms,\
                    simulated_last_ms,formula_load_ms,formula_last_ms\n"
            .to_owned();
    for cell in cells {
        let Cell { number, objects, hosts, network, protocol, runs, void, measured, simulated, formula } =
            cell;
        let protocol = protocol.name();
        let _ = write!(text, "{number},{objects},{hosts},{network},{protocol},{runs},{void}");
        for times in [measured, simulated, formula] {
            let _ = write!(text, ",{:.1},{:.1}", times.load_ms, times.last_ms);
        }
        text.push('\n');
    }
    text
}

/// Relative errors of both engines: median and 90th percentile, in all, by protocol and by network.
fn summary(cells: &[Cell]) -> String {
    let of = |name: &str, is_own: &dyn Fn(&Cell) -> bool| {
        let own: Vec<&Cell> = cells.iter().filter(|cell| is_own(cell)).collect();
        let error = |predicted: fn(&Cell) -> f64, measured: fn(&Cell) -> f64| {
            let errors: Vec<f64> =
                own.iter().map(|cell| (predicted(cell) / measured(cell) - 1.0).abs() * 100.0).collect();
            format!("{:.1}% and {:.1}%", quantile(&errors, 5), quantile(&errors, 9))
        };
        format!(
            "{name:16} {:3} cells; load: simulated {}, by formulas {}; last response: simulated {}\n",
            own.len(),
            error(|cell| cell.simulated.load_ms, |cell| cell.measured.load_ms),
            error(|cell| cell.formula.load_ms, |cell| cell.measured.load_ms),
            error(|cell| cell.simulated.last_ms, |cell| cell.measured.last_ms),
        )
    };
    let mut text = of("all", &|_| true);
    for protocol in PROTOCOLS {
        text += &of(protocol.name(), &|cell| cell.protocol == protocol);
    }
    for network in NETWORKS.into_iter().chain([LOSSY]) {
        text += &of(network, &|cell| cell.network == network);
    }
    text
}
