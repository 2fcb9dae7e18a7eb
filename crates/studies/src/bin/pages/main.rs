//! Whole pages over TLS, HTTP/2 and HTTP/3: the simulator against this kernel.
//!
//! Pages from a seed, over today's networks, with and without loss; the same state machines at both ends, over the
//! simulator's TCP and over Linux's, and for HTTP/3 over its datagrams and Linux's. Agreement is a time within the larger of 2% and 4 ms, a jiffy, and 3% of the packets.
//! Both engines lose the same packets of a direction by number, so a single packet more or less changes what is lost.
//!
//! `all FILE.csv` runs everything; `sample` runs the first cases without loss, and fails if the packets of one differ by
//! more than 15%; `trace N` shows one page object by object. The process has one thread, so that a non-root user may enter a user namespace first.

use std::process::ExitCode;

use measure::{Options, measure};
use roundtrip_studies::pages::{Distance, page};
use roundtrip_studies::{ObjectTimes, exit_code, object_times, quantile, usage};
use scenario::{Network, Protocol, Scenario, Stack, Tls};
use simulate::{Experiment, Hosts};
use wire::Probability;
use wire::link::Loss;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Err(missing) = testbed::prepare().and_then(|()| testbed::available()) {
        skip::refused(&missing.to_string());
        return ExitCode::SUCCESS;
    }
    let reported = match words.as_slice() {
        ["all", file] => study(0..CASES, RUNS).and_then(|outcomes| {
            std::fs::write(file, csv(&outcomes)).map_err(|error| format!("cannot write {file}: {error}"))?;
            print!("{}", summary(&outcomes));
            Ok(())
        }),
        ["sample"] => study(SAMPLE, 1).and_then(|outcomes| {
            let differing = outcomes.iter().find(|outcome| !outcome.has_packets(SAMPLE_TOLERANCE));
            differing.map_or(Ok(()), |outcome| Err(outcome.line()))
        }),
        ["trace", number] => trace(number),
        _ => Err(usage("trace N")),
    };
    exit_code("pages", reported)
}

/// Cases over TCP, and after them those over HTTP/3.
const TCP_CASES: u64 = 48;
const CASES: u64 = 80;
const SAMPLE: [u64; 4] = [0, 1, 2, TCP_CASES];
/// Runs on the kernel: the median of three is not an outlier.
const RUNS: u32 = 3;
const NETWORKS: [&str; 4] = ["cable", "4g", "fibre", "dsl"];
const PROTOCOLS: [Protocol; 2] = [Protocol::Http2, Protocol::Http11Parallel];
const SECURITY: [Tls; 4] = [Tls::V13, Tls::V12, Tls::V13Resumed, Tls::V13EarlyData];
const SECURITY_OF_HTTP3: [Tls; 4] = [Tls::V13, Tls::V13, Tls::V13Resumed, Tls::V13EarlyData];
/// Loss of both directions, in thousandths; the first comes thrice, so that half of the cases have none.
const PER_MILLE: [u32; 6] = [0, 0, 0, 5, 10, 20];
/// Relative tolerance of times ...
const TOLERANCE: f64 = 0.02;
/// ... or a jiffy, the granularity of the kernel's timers.
const TOLERANCE_MS: f64 = 4.0;
/// Relative tolerance of packets.
const PACKETS_TOLERANCE: f64 = 0.03;

/// The same for the sample, on a host that may be busy: then segments arrive together, and fewer are acknowledged.
const SAMPLE_TOLERANCE: f64 = 0.15;

/// A page in both engines.
struct Outcome {
    number: u64,
    objects: usize,
    hosts: usize,
    scenario: Scenario,
    per_mille: u32,
    simulated: EngineResult,
    kernel: EngineResult,
}

struct EngineResult {
    elapsed_ms: f64,
    packets: f64,
    lost: f64,
}

/// Case of this number: its page and protocol by the number, loss from the half on.
fn scenario(number: u64) -> Result<(Scenario, u32), String> {
    let is_http3 = number >= TCP_CASES;
    let (index, of) = if is_http3 { (number - TCP_CASES, CASES - TCP_CASES) } else { (number, TCP_CASES) };
    let at = |length: usize, step: u64| usize::try_from(index / step).unwrap_or(0) % length;
    let mut network = Network::named(NETWORKS[at(4, 1)]).map_err(|error| error.to_string())?;
    let per_mille = PER_MILLE[usize::try_from(6 * index / of).unwrap_or(0).min(5)];
    if let Some(loss) = Probability::new(f64::from(per_mille) / 1_000.0).filter(|_| per_mille > 0) {
        (network.up.loss, network.down.loss) = (Loss::Independent(loss), Loss::Independent(loss));
    }
    let stack = Stack::named("linux").map_err(|error| error.to_string())?;
    let (protocol, tls) = match is_http3 {
        true => (Protocol::Http3, SECURITY_OF_HTTP3[at(4, 4)]),
        false => (PROTOCOLS[at(2, 4)], SECURITY[at(4, 8)]),
    };
    let page = page(number, Distance::None)?;
    Ok((Scenario { tls, ..Scenario::new(network, page, protocol, stack) }, per_mille))
}

fn study(cases: impl IntoIterator<Item = u64>, runs: u32) -> Result<Vec<Outcome>, String> {
    let mut outcomes = Vec::new();
    for number in cases {
        let (scenario, per_mille) = scenario(number)?;
        match compare(number, Scenario { runs, ..scenario }, per_mille) {
            Ok(outcome) => {
                println!("{}", outcome.line());
                outcomes.push(outcome);
            }
            // Runs that are void on a busy host say nothing about the simulator.
            Err(reason) if reason.contains("it was void") => eprintln!("pages: left out: {reason}"),
            Err(reason) => return Err(reason),
        }
    }
    Ok(outcomes)
}

fn compare(number: u64, scenario: Scenario, per_mille: u32) -> Result<Outcome, String> {
    let measured =
        measure(&scenario, &Options::default(), |_| ()).map_err(|error| format!("page {number}: {error}"))?;
    let experiment = Experiment::new(&scenario, Hosts::default()).map_err(|error| error.to_string())?;
    let mut simulated = Vec::new();
    for run in 1..=scenario.runs {
        let run = experiment.run(run, false).map_err(|error| error.to_string())?;
        let elapsed = run.elapsed.ok_or_else(|| format!("page {number}: no end in the simulator"))?;
        let packets = run.up.packets + run.down.packets;
        simulated.push((elapsed.as_millis_f64(), packets as f64, run.lost as f64));
    }
    let measured = measured.runs.iter().map(|run| {
        let packets = run.packets_up + run.packets_down;
        (run.elapsed.as_millis_f64(), packets as f64, run.lost as f64)
    });
    Ok(Outcome {
        number,
        objects: scenario.page.objects.len(),
        hosts: scenario.page.hosts.len(),
        simulated: EngineResult::median(simulated),
        kernel: EngineResult::median(measured.collect()),
        scenario,
        per_mille,
    })
}

/// Shows when each object of a page was requested, began to arrive and was complete, in both engines.
fn trace(number: &str) -> Result<(), String> {
    let number = number.parse().map_err(|_| usage("trace N"))?;
    let (scenario, _) = scenario(number)?;
    let scenario = Scenario { runs: 1, ..scenario };
    let measured = measure(&scenario, &Options::default(), |_| ()).map_err(|error| error.to_string())?;
    let visit = measured.runs.first().and_then(|run| run.visit.as_ref()).ok_or("no run on the kernel")?;
    let kernel = object_times(&visit.reports, visit.began);
    let experiment = Experiment::new(&scenario, Hosts::default()).map_err(|error| error.to_string())?;
    let run = experiment.run(1, false).map_err(|error| error.to_string())?;
    let simulated = object_times(&run.reports, run.began);
    println!(
        "object host   bytes   requested       first byte      complete, simulated and on the kernel, ms"
    );
    let mut order: Vec<(&usize, &ObjectTimes)> = simulated.iter().collect();
    order.sort_by(|(_, one), (_, other)| one[2].total_cmp(&other[2]));
    for (object, times) in order {
        let other = kernel.get(object).copied().unwrap_or([f64::NAN; 3]);
        let (host, size) =
            scenario.page.objects.get(*object).map_or((0, 0), |one| (one.host, one.size.get()));
        let cells = times.iter().zip(other).map(|(one, other)| format!("{one:7.1} {other:7.1}"));
        println!("{object:6} {host:4} {size:7} {}", cells.collect::<Vec<_>>().join(" "));
    }
    Ok(())
}

impl EngineResult {
    fn median(runs: Vec<(f64, f64, f64)>) -> Self {
        let of =
            |value: fn(&(f64, f64, f64)) -> f64| quantile(&runs.iter().map(value).collect::<Vec<_>>(), 5);
        Self { elapsed_ms: of(|run| run.0), packets: of(|run| run.1), lost: of(|run| run.2) }
    }
}

impl Outcome {
    fn is_in_time(&self) -> bool {
        let difference = (self.simulated.elapsed_ms - self.kernel.elapsed_ms).abs();
        difference <= TOLERANCE_MS.max(TOLERANCE * self.kernel.elapsed_ms)
    }

    fn has_packets(&self, tolerance: f64) -> bool {
        (self.simulated.packets / self.kernel.packets - 1.0).abs() <= tolerance
    }

    fn line(&self) -> String {
        let Self { number, objects, hosts, scenario, per_mille, simulated, kernel } = self;
        let verdict = match (self.is_in_time(), self.has_packets(PACKETS_TOLERANCE)) {
            (true, true) => "agree",
            (false, true) => "NOT IN TIME",
            (true, false) => "OTHER PACKETS",
            (false, false) => "DIFFER",
        };
        format!(
            "page {number:2} ({objects:3} objects, {hosts:2} hosts) {:15} TLS {:11} over {:5} loss {:.1}%: {:7.1} and {:7.1} ms, {:4} and {:4} packets, {} and {} lost: {verdict}",
            scenario.protocol.name(),
            scenario.tls.name(),
            scenario.network.name,
            f64::from(*per_mille) / 10.0,
            simulated.elapsed_ms,
            kernel.elapsed_ms,
            simulated.packets,
            kernel.packets,
            simulated.lost,
            kernel.lost,
        )
    }
}

fn csv(outcomes: &[Outcome]) -> String {
    let line = |outcome: &Outcome| {
        let Outcome { number, objects, hosts, scenario, per_mille, simulated, kernel } = outcome;
        format!(
            "{number},{objects},{hosts},{},{},{},{:.1},{:.1},{:.1},{},{},{},{}\n",
            scenario.protocol.name(),
            scenario.tls.name(),
            scenario.network.name,
            f64::from(*per_mille) / 10.0,
            simulated.elapsed_ms,
            kernel.elapsed_ms,
            simulated.packets,
            kernel.packets,
            simulated.lost,
            kernel.lost,
        )
    };
    let heading = "page,objects,hosts,protocol,tls,network,loss_percent,simulated_ms,kernel_ms,simulated_packets,kernel_packets,simulated_lost,kernel_lost\n";
    heading.to_owned() + &outcomes.iter().map(line).collect::<String>()
}

/// Numbers of cases that agree, with loss and without.
fn summary(outcomes: &[Outcome]) -> String {
    let of = |name: &str, is_http3: bool, has_loss: bool| {
        let is_own = |outcome: &&Outcome| {
            (outcome.per_mille > 0) == has_loss && outcome.scenario.protocol.is_http3() == is_http3
        };
        let own: Vec<&Outcome> = outcomes.iter().filter(is_own).collect();
        let in_time = own.iter().filter(|outcome| outcome.is_in_time()).count();
        let packets = own.iter().filter(|outcome| outcome.has_packets(PACKETS_TOLERANCE)).count();
        format!(
            "{name}: {} pages, {in_time} within the larger of 2% and 4 ms, {packets} within 3% of the packets, \
             difference {} in the median and {} at the 90th percentile\n",
            own.len(),
            percent(&own, 5),
            percent(&own, 9),
        )
    };
    let tcp = of("TCP without loss", false, false) + &of("TCP with loss", false, true);
    tcp + &of("HTTP/3 without loss", true, false) + &of("HTTP/3 with loss", true, true)
}

/// Quantile, in tenths, of the times' relative difference.
fn percent(outcomes: &[&Outcome], tenths: usize) -> String {
    let difference =
        |outcome: &&Outcome| (outcome.simulated.elapsed_ms / outcome.kernel.elapsed_ms - 1.0).abs() * 100.0;
    format!("{:.1}%", quantile(&outcomes.iter().map(difference).collect::<Vec<_>>(), tenths))
}
