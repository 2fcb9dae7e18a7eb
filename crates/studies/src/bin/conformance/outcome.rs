//! Results of a scenario in both engines, and their comparison.

use measure::run::Run;
use measure::{Options, measure};
use simulate::{Experiment, Hosts};
use wire::{Bytes, Duration};

use crate::cases::Case;
use crate::packets::{self, SentPacket};

/// Results of both engines.
pub(crate) struct Outcome {
    case: Case,
    pub(crate) kernel: EngineResult,
    pub(crate) simulator: EngineResult,
    /// Minimum and maximum time on the kernel.
    range_ms: [f64; 2],
    /// Time in the first run to wake both programs up and to run them. The simulator includes the stack's wake-up times only.
    hosts_ms: f64,
    /// Kernel, date and the like.
    environment: Vec<String>,
    /// Index of the first different segment.
    first_difference: Option<usize>,
}

/// Result of one engine.
pub(crate) struct EngineResult {
    elapsed_ms: f64,
    /// Packets of the first run.
    pub(crate) packets: Vec<SentPacket>,
}

/// Capture buffer: larger than any of the pages.
const CAPTURE: Bytes = Bytes::new(1 << 24);
/// Relative tolerance of times ...
const TOLERANCE: f64 = 0.01;
/// ... or a jiffy, the granularity of the kernel's timers.
const TOLERANCE_MS: f64 = 4.0;

/// Runs a scenario through both.
pub(crate) fn compare(case: &Case, runs: u32) -> Result<Outcome, String> {
    let scenario = case.scenario(runs);
    let simulator = Experiment::new(&scenario, Hosts::default()).map_err(|error| error.to_string())?;
    let simulated = simulator.run(0, true).map_err(|error| error.to_string())?;
    let elapsed = simulated.elapsed.ok_or_else(|| format!("{case}: not all arrived in the simulator"))?;
    let simulator = EngineResult {
        elapsed_ms: elapsed.as_millis_f64(),
        packets: packets::of_simulator(&simulated.records),
    };

    let options = Options { capture: Some(CAPTURE), ..Options::default() };
    let measured = measure(&scenario, &options, |_| ()).map_err(|error| format!("{case}: {error}"))?;
    let hosts = measured.runs.first().map(|run| hosts(run, scenario.server.processing)).unwrap_or_default();
    let reported = |name: &&str| measured.provenance().into_iter().find(|pair| pair.name == *name);
    let environment = ["date", "kernel", "emulator"].iter().filter_map(reported);
    let environment = environment.map(|pair| format!("{}: {}", pair.name, pair.value)).collect();
    let capture = measured.capture.ok_or_else(|| format!("{case}: no capture was taken"))?;
    let packets = packets::of_kernel(&capture);
    let kernel = EngineResult { elapsed_ms: measured.elapsed_ms.median, packets };
    let range_ms = [measured.elapsed_ms.min, measured.elapsed_ms.max];
    let first_difference = first_difference(&kernel, &simulator);
    let hosts_ms = hosts.as_millis_f64();
    Ok(Outcome { case: case.clone(), kernel, simulator, range_ms, hosts_ms, environment, first_difference })
}

/// Time of both hosts beyond that of the scenario.
fn hosts(run: &Run, processing: Duration) -> Duration {
    let responses = run.reactions.response_times.iter().map(|response| *response - processing);
    responses.chain(run.reactions.think_times.iter().copied()).fold(Duration::ZERO, |sum, time| sum + time)
}

/// Index of the first different segment.
fn first_difference(kernel: &EngineResult, simulator: &EngineResult) -> Option<usize> {
    let [kernel, simulator] = [kernel, simulator].map(|response| packets::data(&response.packets));
    let same = kernel.iter().zip(&simulator).take_while(|(one, other)| one == other).count();
    (same < kernel.len() || same < simulator.len()).then_some(same)
}

impl Outcome {
    pub(crate) fn same_segments(&self) -> bool {
        self.first_difference.is_none()
    }

    pub(crate) fn is_in_time(&self) -> bool {
        self.is_near(self.kernel.elapsed_ms)
    }

    /// Whether the time would agree on a host that wakes its programs up immediately, which a busy one does not.
    fn is_in_time_but_for_hosts(&self) -> bool {
        self.is_near(self.kernel.elapsed_ms - self.hosts_ms)
    }

    fn is_near(&self, kernel_ms: f64) -> bool {
        let allowed = TOLERANCE_MS.max(TOLERANCE * kernel_ms);
        (self.simulator.elapsed_ms - kernel_ms).abs() <= allowed
    }

    /// The outcome in one line.
    pub(crate) fn line(&self) -> String {
        let Self {
            case,
            kernel,
            simulator,
            range_ms: [min, max],
            hosts_ms,
            environment: _,
            first_difference,
        } = self;
        let segments = packets::data(&kernel.packets).len();
        let comparison = match first_difference {
            None => "same".to_owned(),
            Some(index) => format!("differ at {index}"),
        };
        let time = match (self.is_in_time(), self.is_in_time_but_for_hosts()) {
            (true, _) => "in time",
            (false, true) => "late by the hosts' time",
            (false, false) => "NOT IN TIME",
        };
        format!(
            "{case:80} {segments:3} segments {comparison:10} {:8.2} [{min:8.2}, {max:8.2}] ms, hosts {hosts_ms:5.2} ms, \
             simulated {:8.2} ms  {time}",
            kernel.elapsed_ms, simulator.elapsed_ms
        )
    }
}

/// The stored file: one line for each scenario.
pub(crate) fn record(outcomes: &[Outcome]) -> String {
    let heading = "number,scenario,segments,same_until,kernel_ms,kernel_least_ms,kernel_greatest_ms,hosts_ms,simulated_ms,in_time\n";
    let environment = outcomes.iter().take(1).flat_map(|outcome| &outcome.environment);
    let remarks: String = environment.map(|line| format!("# {line}\n")).collect();
    let line = |outcome: &Outcome| {
        let Outcome {
            case,
            kernel,
            simulator,
            range_ms: [min, max],
            hosts_ms,
            environment: _,
            first_difference,
        } = outcome;
        let segments = packets::data(&kernel.packets).len();
        format!(
            "{},{},{segments},{},{:.3},{min:.3},{max:.3},{hosts_ms:.3},{:.3},{}\n",
            case.number(),
            case.description(),
            first_difference.unwrap_or(segments),
            kernel.elapsed_ms,
            simulator.elapsed_ms,
            if outcome.is_in_time() { "yes" } else { "no" }
        )
    };
    remarks + heading + &outcomes.iter().map(line).collect::<String>()
}
