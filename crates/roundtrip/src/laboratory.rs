//! Calls of the kernel's engine: this host's kernel over an emulated link.
//!
//! `lab` calls the pure engines. This one touches the operating system, and shows its progress.

use std::io;

use lab::difference::HostTimes;
use lab::{Missing, Outcome, RunResult, description, exchanges};
use measure::profile::Setting;
use measure::run::ClientRecord;
use measure::{Measurement, Options, Peers};
use render::provenance::{Fact, Provenance, RunFacts};
use scenario::spec::Plan;
use scenario::{Engine, Scenario};
use testbed::emulator::Capture;
use trace::har::Visit;
use wire::{Bytes, Duration, Time};

use crate::progress::Progress;

/// Failure of the laboratory, though there may be results.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A scenario could not be measured.
    #[error("{0}")]
    Measurement(measure::Error),
    /// The packets of a scenario could not be stored.
    #[error("the packets of {title} cannot be stored: {error}")]
    NotStored {
        /// Title of the scenario.
        title: String,
        /// The system's error.
        error: io::Error,
    },
}

/// Results of the measurements.
#[derive(Debug, Default)]
pub struct Measurements {
    /// A row for each scenario; one that could not be measured states the reason.
    pub outcomes: Vec<Outcome>,
    /// Host times of each measured scenario.
    pub hosts: Vec<Option<HostTimes>>,
    /// The first run of each scenario that our own client loaded.
    pub visits: Vec<Visit>,
    /// The first run of each scenario that a browser loaded, as a HAR.
    pub recordings: Vec<serde_json::Value>,
    /// Provenance of the figures.
    pub provenance: Provenance,
    /// The first error, apart from scenarios that no kernel can run.
    pub failure: Option<Error>,
}

/// Whether this process can measure. Must be called before it has a second thread, and before it measures.
pub fn available() -> Result<(), testbed::Error> {
    testbed::prepare()?;
    testbed::available()
}

/// Receiver of a run's packets, called as soon as they are captured: there may be too many to store.
pub type PacketSink<'a> = dyn FnMut(&Scenario, &Capture) -> io::Result<()> + 'a;

/// Measures each scenario in turn; passes the packets of its first run to `keep` if given.
pub fn outcomes(plan: &Plan, peers: Peers, mut keep: Option<&mut PacketSink<'_>>) -> Measurements {
    let expected: Vec<f64> = plan.scenarios.iter().map(expected_ms).collect();
    let total: f64 =
        plan.scenarios.iter().zip(&expected).map(|(scenario, ms)| f64::from(scenario.runs) * ms).sum();
    let mut progress = Progress::new(total);
    let options = Options { capture: keep.is_some().then_some(CAPTURE), peers, ..Options::default() };
    let mut measurements = Measurements::default();
    let mut known = Vec::new();
    for (scenario, run_ms) in plan.scenarios.iter().zip(expected) {
        progress.begin_measurement(description::full_title(scenario), scenario.runs);
        let mut measured =
            measure::measure(scenario, &options, |state| progress.complete_run(run_ms, state.done, state.of));
        progress.complete_measurement(run_ms * f64::from(scenario.runs));
        if let Ok(measured) = &mut measured {
            known.push(circumstances(measured));
            if let (Some(keep), Some(capture)) = (&mut keep, measured.capture.take())
                && let Err(error) = keep(scenario, &capture)
            {
                measurements
                    .failure
                    .get_or_insert(Error::NotStored { title: description::full_title(scenario), error });
            }
        }
        let visit = measured.as_ref().ok().and_then(|measured| visit(scenario, measured));
        measurements.recordings.extend(measured.as_ref().ok().and_then(Measurement::recording));
        measurements.add(scenario, measured);
        let outcome = measurements.outcomes.last();
        let labelled = visit.zip(outcome).map(|(visit, outcome)| exchanges::labelled(visit, outcome));
        measurements.visits.extend(labelled);
    }
    measurements.provenance = Provenance::of(&known, "What the kernel was pinned to");
    measurements
}

/// The first run as a visit, where our own client reports it.
fn visit(scenario: &Scenario, measured: &Measurement) -> Option<Visit> {
    let run = measured.runs.first()?;
    let ClientRecord { began, opened, reports } = run.visit.as_ref()?;
    Some(Visit {
        began: measured.began + began.since(Time::ZERO),
        elapsed: Some(run.elapsed),
        exchanges: exchanges::exchanges(scenario, reports, opened, *began),
        ..Visit::default()
    })
}

/// Measures one scenario by these programs, with progress on the terminal.
///
/// # Errors
/// The reason why it cannot be measured, or the error.
pub fn one(scenario: &Scenario, peers: Peers) -> Result<Measurement, measure::Error> {
    let run_ms = expected_ms(scenario);
    let progress = Progress::new(f64::from(scenario.runs) * run_ms);
    progress.begin_measurement(description::full_title(scenario), scenario.runs);
    let options = Options { peers, ..Options::default() };
    measure::measure(scenario, &options, |state| progress.complete_run(run_ms, state.done, state.of))
}

/// Capture buffer: holds a page of 25 MB at both ends.
const CAPTURE: Bytes = Bytes::new(64 << 20);

/// Expected time of a run, for the progress bar alone.
fn expected_ms(scenario: &Scenario) -> f64 {
    lab::predict::outcome(scenario, None).metrics.elapsed_ms.unwrap_or(UNKNOWN_MS) + OVERHEAD.as_millis_f64()
}

/// Expected time of a page that the formulas refuse.
const UNKNOWN_MS: f64 = 1_000.0;

/// Time to set up the two hosts and to drain the link.
const OVERHEAD: Duration = Duration::from_millis(30);

/// Host times of a measurement, as the laboratory takes them.
fn host_times(measured: &Measurement) -> HostTimes {
    let measure::series::HostTimes { client, server } = measured.host_times();
    HostTimes { client, server }
}

impl Measurements {
    fn add(&mut self, scenario: &Scenario, measured: Result<Measurement, measure::Error>) {
        self.hosts.push(measured.as_ref().ok().map(host_times));
        self.outcomes.push(match measured {
            Ok(measured) => {
                let result = RunResult {
                    metrics: measured.metrics(),
                    interval95_ms: measured.elapsed_ms.interval95,
                    stalls: Vec::new(),
                    remarks: measured.remarks,
                };
                Outcome::of_runs(scenario, Engine::Measure, result)
            }
            Err(error) => {
                let reason = error.to_string();
                let why = if matches!(error, measure::Error::Unsuited { .. } | measure::Error::Stack(_)) {
                    Missing::Refused
                } else {
                    self.failure.get_or_insert(Error::Measurement(error));
                    Missing::Failed
                };
                Outcome::missing(scenario, Engine::Measure, why, reason)
            }
        });
    }
}

/// Provenance of one measurement. The version is stated once for the whole program.
fn circumstances(measured: &Measurement) -> RunFacts {
    let fact = |Setting { name, value }: Setting| (name, value);
    let settings: Vec<Fact> = measured.settings.iter().cloned().map(fact).collect();
    let all = measured.provenance().into_iter().map(fact);
    let circumstances = all.filter(|fact| fact.0 != "roundtrip" && !settings.contains(fact)).collect();
    RunFacts { title: description::full_title(&measured.scenario), circumstances, settings }
}
