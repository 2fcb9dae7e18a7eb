//! Many runs of one scenario, and their summary.
//!
//! A run in which the emulator or a host was late is void: it is repeated, a bounded number of times. Runs
//! that remain void are reported as such, never averaged in.

use fetch::VisitStats;
use scenario::{Remark, Scenario};
use testbed::emulator::{Capture, Scheduling};
use testbed::lateness::Lateness;
use trace::Metrics;
use wire::calendar::iso_8601;
use wire::{Bytes, Duration};

use crate::profile::Setting;
use crate::run::{Experiment, Outcome, Run};
use crate::whole_page::{self, WholePage};
use crate::{Error, Peers};
use trace::Summary;

/// Options of a measurement, apart from its scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Memory for the packets of the first run that counts, at both ends; `None`: no capture. 64 MiB hold a page
    /// of 25 MB.
    pub capture: Option<Bytes>,
    /// The programs.
    pub peers: Peers,
    /// Whether Chromium also records a trace of a whole page, which takes a part of its CPU.
    pub has_trace: bool,
}

/// Progress of a series of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Completed runs that count.
    pub done: u32,
    /// Requested runs.
    pub of: u32,
    /// Attempts that were void so far.
    pub void: u32,
    /// Duration of the page in the last run; `None` if it remained void and is left out.
    pub elapsed: Option<Duration>,
}

/// Measurement of a scenario.
#[derive(Debug)]
pub struct Measurement {
    /// The scenario.
    pub scenario: Scenario,
    /// The runs that count, in order.
    pub runs: Vec<Run>,
    /// Attempts that were void, repeated or not.
    pub void: u32,
    /// Duration of the page, in milliseconds, over the runs.
    pub elapsed_ms: Summary,
    /// Server time per response, in milliseconds, over all responses of all runs: the scenario's processing
    /// time, and the host's overhead ([`testbed::reactions`]). It is the model's processing time, if the two
    /// are to be compared.
    pub processing_ms: Option<Summary>,
    /// Lateness of the emulator, over all packets of the runs that count.
    pub lateness: Lateness,
    /// Pinned settings of the kernel, as read back.
    pub settings: Vec<Setting>,
    /// Scheduling of the emulator's thread.
    pub scheduling: Scheduling,
    /// Start of the first run, since 1 January 1970, UTC.
    pub began: Duration,
    /// Packets of the first run that counts, if captured.
    pub capture: Option<Capture>,
    /// Deviations from the scenario, and void runs.
    pub remarks: Vec<Remark>,
}

/// Mean reaction times of the hosts, beyond the scenario's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTimes {
    /// From a response, or a SYN-ACK, to the client's next packet.
    pub client: Duration,
    /// From a request to its response.
    pub server: Duration,
}

/// Maximum number of repetitions of a void run.
const MAX_REPETITIONS: u32 = 5;

/// Pause before the first repetition; each further one doubles it, because other programs are often busy for a second.
const FIRST_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Maximum number of void runs before the first valid one; then the series is aborted.
const MAX_VOID_RUNS: u32 = 3;

/// Measures a scenario: its number of runs, each in a laboratory of its own.
///
/// # Errors
/// A right that the system lacks, a part of the scenario that no kernel can do, or the failure of a run.
/// Nothing is left behind in any case.
pub fn measure(
    scenario: &Scenario,
    options: &Options,
    mut progress: impl FnMut(Progress),
) -> Result<Measurement, Error> {
    if whole_page::suits(scenario, options.peers) {
        let mut visit = WholePage::of(scenario, options.peers)?;
        visit.has_trace = options.has_trace;
        let remarks = visit.remarks.clone();
        return runs(
            scenario,
            options,
            remarks,
            &|number, capture| visit.run(number, capture),
            &mut progress,
        );
    }
    let experiment = Experiment::of(scenario, options.peers)?;
    let remarks = experiment.remarks.clone();
    runs(scenario, options, remarks, &|number, capture| experiment.run(number, capture), &mut progress)
}

/// Runs a scenario once: the number of the run, and memory for its packets.
type RunOnce<'a> = dyn Fn(u32, Option<Bytes>) -> Result<Outcome, Error> + 'a;

fn runs(
    scenario: &Scenario,
    options: &Options,
    remarks: Vec<Remark>,
    run: &RunOnce<'_>,
    progress: &mut impl FnMut(Progress),
) -> Result<Measurement, Error> {
    let mut series = Series { of: scenario.runs, void: 0, reason: None, void_runs: 0, outcomes: Vec::new() };
    for number in 1..=scenario.runs {
        let outcome = series.run_until_valid(run, number, options)?;
        let elapsed = outcome.as_ref().map(|outcome| outcome.run.elapsed);
        series.outcomes.extend(outcome);
        progress(series.progress(elapsed));
        if series.is_too_busy() {
            break;
        }
    }
    series.conclude(scenario, remarks)
}

#[expect(clippy::disallowed_methods, reason = "there is nothing to wait for but other programs")]
fn pause(time: std::time::Duration) {
    std::thread::sleep(time);
}

struct Series {
    of: u32,
    void: u32,
    /// Reason of the first void run.
    reason: Option<String>,
    void_runs: u32,
    outcomes: Vec<Outcome>,
}

impl Series {
    /// One run that counts, or `None` if it remains void after all repetitions.
    fn run_until_valid(
        &mut self,
        run: &RunOnce<'_>,
        number: u32,
        options: &Options,
    ) -> Result<Option<Outcome>, Error> {
        let capture = options.capture.filter(|_| self.outcomes.is_empty());
        for repetition in 0..=MAX_REPETITIONS {
            if repetition > 0 {
                pause(FIRST_PAUSE * (1 << (repetition - 1)));
            }
            let outcome = run(number, capture)?;
            let Some(reason) = &outcome.void_reason else { return Ok(Some(outcome)) };
            self.void += 1;
            self.reason.get_or_insert_with(|| reason.clone());
        }
        self.void_runs += 1;
        Ok(None)
    }

    /// Whether this host is too busy to continue.
    fn is_too_busy(&self) -> bool {
        self.outcomes.is_empty() && self.void_runs >= MAX_VOID_RUNS
    }

    fn progress(&self, elapsed: Option<Duration>) -> Progress {
        let done = u32::try_from(self.outcomes.len()).unwrap_or(u32::MAX);
        Progress { done, of: self.of, void: self.void, elapsed }
    }

    fn conclude(self, scenario: &Scenario, mut remarks: Vec<Remark>) -> Result<Measurement, Error> {
        let Self { of, void, reason, void_runs, outcomes } = self;
        let reason = reason.unwrap_or_default();
        let mut lateness = Lateness::new();
        let mut runs = Vec::new();
        let mut environment = None;
        for Outcome { void_reason: _, run, settings, scheduling, capture, began } in outcomes {
            lateness.merge(&run.lateness);
            runs.push(run);
            environment.get_or_insert((settings, scheduling, capture, began));
        }
        let milliseconds = |durations: &mut dyn Iterator<Item = Duration>| {
            Summary::of(&durations.map(Duration::as_millis_f64).collect::<Vec<_>>())
        };
        let elapsed_ms = milliseconds(&mut runs.iter().map(|run| run.elapsed));
        let processing_ms =
            milliseconds(&mut runs.iter().flat_map(|run| run.reactions.response_times.iter().copied()));
        let (Some(elapsed_ms), Some((settings, scheduling, capture, began))) = (elapsed_ms, environment)
        else {
            let message = format!("it was void, and so was every repetition; of the first, {reason}");
            return Err(Error::Run { number: 1, what: message });
        };
        if void > 0 {
            remarks.push(Remark::VoidAttempts { attempts: void, reason });
        }
        if void_runs > 0 {
            remarks.push(Remark::VoidRuns { void: void_runs, runs: of });
        }
        remarks.extend(destroyed(&runs));
        let channels: Vec<_> = runs.iter().filter_map(|run| run.channels).collect();
        remarks.extend(Remark::transports(&channels));
        let visits = runs.iter().filter_map(|run| run.visit.as_ref());
        let visits: Vec<_> = visits.map(|visit| (visit.began, VisitStats::of(&visit.reports))).collect();
        remarks.extend(scenario::robot::remarks(&visits));
        Ok(Measurement {
            scenario: scenario.clone(),
            runs,
            void,
            elapsed_ms,
            processing_ms,
            lateness,
            settings,
            scheduling,
            began,
            capture,
            remarks,
        })
    }
}

/// Remark on responses that naive closes destroyed, if any.
fn destroyed(runs: &[Run]) -> Option<Remark> {
    scenario::robot::destroyed(&runs.iter().map(|run| run.destroyed.clone()).collect::<Vec<_>>())
}

impl Measurement {
    /// Means over the runs.
    pub fn metrics(&self) -> Metrics {
        let mean = |value: fn(&Run) -> u64| {
            let total: u64 = self.runs.iter().map(value).sum();
            Some(total as f64 / self.runs.len() as f64)
        };
        Metrics {
            elapsed_ms: Some(self.elapsed_ms.mean),
            elapsed_ms_stddev: self.elapsed_ms.deviation,
            round_trips: None,
            packets_up: mean(|run| run.packets_up),
            packets_down: mean(|run| run.packets_down),
            payload_bytes: mean(|run| run.payload.get()),
            connections: mean(|run| run.connections),
            runs: u32::try_from(self.runs.len()).unwrap_or(u32::MAX),
            load_ms: self.mean_load_ms(),
        }
    }

    /// The first run as a HAR, where a browser reports it.
    pub fn recording(&self) -> Option<serde_json::Value> {
        Some(self.runs.first()?.browser.as_ref()?.har.clone())
    }

    /// Mean time of the event `load`, where a browser reports it.
    fn mean_load_ms(&self) -> Option<f64> {
        let loads = self.runs.iter().filter_map(|run| run.browser.as_ref());
        let loads: Vec<f64> = loads.map(|browser| browser.load.as_millis_f64()).collect();
        Summary::of(&loads).map(|loads| loads.mean)
    }

    /// Mean reaction time of each host ([`testbed::reactions`]); zero without reactions.
    pub fn host_times(&self) -> HostTimes {
        let mean = |times: &mut dyn Iterator<Item = Duration>| {
            let times: Vec<_> = times.collect();
            let count = u64::try_from(times.len()).unwrap_or(u64::MAX).max(1);
            times.into_iter().fold(Duration::ZERO, |sum, time| sum + time) / count
        };
        let due = self.scenario.server.processing;
        let reactions = || self.runs.iter().map(|run| &run.reactions);
        let client = mean(&mut reactions().flat_map(|reactions| reactions.think_times.iter().copied()));
        let server = mean(
            &mut reactions().flat_map(|reactions| reactions.response_times.iter().map(|time| *time - due)),
        );
        HostTimes { client, server }
    }

    /// Provenance of these numbers: version, date, kernel, lateness, and every setting.
    pub fn provenance(&self) -> Vec<Setting> {
        let pair = |name: &str, value: String| Setting { name: name.to_owned(), value };
        let lateness_at = |per_mille| self.lateness.per_mille(per_mille);
        let mut pairs = vec![
            pair("roundtrip", env!("CARGO_PKG_VERSION").to_owned()),
            pair("date", iso_8601(self.began)),
            pair("kernel", kernel_version()),
            pair("emulator", self.scheduling.to_string()),
            pair(
                "emulator's lateness (median, 99%, 99.9%)",
                format!("{}, {}, {}", lateness_at(500), lateness_at(990), lateness_at(999)),
            ),
            pair("void attempts", self.void.to_string()),
        ];
        let think_times = self.runs.iter().flat_map(|run| &run.reactions.think_times);
        let think_times: Vec<_> = think_times.map(|time| time.as_millis_f64()).collect();
        let hosts =
            [("server's processing", self.processing_ms), ("client's reaction", Summary::of(&think_times))];
        for (name, times) in hosts {
            pairs.extend(times.map(|ms| {
                pair(&format!("{name} (mean, median)"), format!("{:.3} ms, {:.3} ms", ms.mean, ms.median))
            }));
        }
        pairs.extend(self.settings.iter().cloned());
        pairs
    }
}

fn kernel_version() -> String {
    nix::sys::utsname::uname().map_or_else(
        |errno| format!("unknown ({})", errno.desc()),
        |name| format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy()),
    )
}
