//! Savings over real kernels: `diagnose`'s prediction, and the real saving of the same visit without the fault.
//!
//! Both run on this host in real time, and other load adds to their difference. So each runs five times, and the minimum
//! counts.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use diagnose::Cause;
use wire::Duration;

use super::cases::{Acks, Case, RequestOrder};
use super::hosts::reported;
use super::stored_run::{StoredRun, is_cut};
use super::{MAX_CONCURRENT, run, run_concurrently};
use crate::savings::Saving;
use crate::vantage::Vantage;

/// Disjoint parts of the visits. Rules may be improved by the first; the others validate them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    First,
    Second,
    Third,
}

impl Part {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "first" => Some(Self::First),
            "second" => Some(Self::Second),
            "third" => Some(Self::Third),
            _ => None,
        }
    }

    /// Two of each twelve cases that have a fix. The first part always has an old Reno and a new CUBIC. The others have each
    /// congestion control, window and offload in turn, over other paths, response sizes and losses.
    pub(crate) fn of(self, cases: Vec<Case>) -> Vec<(usize, Case)> {
        let numbered = with_fix(cases.into_iter().enumerate().collect());
        let is_chosen = |number: usize, indices: [usize; 2]| {
            indices.map(|index| (number / 12 * 5 + index) % 12).contains(&(number % 12))
        };
        let chosen = numbered.into_iter().filter_map(|(number, case)| match self {
            Self::First => (number + number / 4 + number / 12).is_multiple_of(8).then_some((number, case)),
            Self::Second => {
                is_chosen(number, [1, 8]).then(|| (number, over_another_path(case, (4, 5), (2, 3), 10_000)))
            }
            Self::Third => {
                is_chosen(number, [4, 11]).then(|| (number, over_another_path(case, (5, 4), (4, 3), 50_000)))
            }
        });
        chosen.collect()
    }
}

/// Moves the fault to another path: scales round trip and responses by these ratios.
fn over_another_path(mut case: Case, path: (u64, u64), size: (usize, usize), seeds: u64) -> Case {
    let Case { rtt, behaviour, seed, .. } = &mut case;
    *rtt = *rtt * path.0 / path.1;
    *seed += seeds;
    behaviour
        .responses
        .iter_mut()
        .filter(|bytes| **bytes > 1_000)
        .for_each(|bytes| *bytes = *bytes * size.0 / size.1);
    case
}

/// Cases that have a fix.
pub(crate) fn with_fix(cases: Vec<(usize, Case)>) -> Vec<(usize, Case)> {
    cases.into_iter().filter(|(_, case)| without_fault(case).is_some()).collect()
}

/// Runs each case with its fault and without, and returns the savings; prints an error for a case that failed to run.
pub(crate) fn savings(cases: &[(usize, Case)]) -> Vec<Saving> {
    let all = Mutex::new(Vec::new());
    run_concurrently(MAX_CONCURRENT, cases, |(number, case)| match Pair::run(*number, case) {
        Ok(pair) => all.lock().expect("no thread panics").extend(pair.savings()),
        Err(reason) => eprintln!("corpus: left out: {reason}"),
    });
    sorted(all.into_inner().expect("no thread panics"))
}

fn sorted(mut all: Vec<Saving>) -> Vec<Saving> {
    all.sort_by_key(Saving::order);
    all
}

/// Runs and stores the cases that are not stored yet.
pub(crate) fn store_missing(cases: &[(usize, Case)], directory: &Path) -> Result<(), String> {
    let directories = ["faulty", "mended"].map(|name| directory.join(name));
    directories.iter().try_for_each(fs::create_dir_all).map_err(reported)?;
    let [_, last] = &directories;
    let missing: Vec<_> =
        cases.iter().filter(|(number, _)| !last.join(format!("{number}.csv")).exists()).collect();
    run_concurrently(MAX_CONCURRENT, &missing, |(number, case)| {
        let stored = Pair::run(*number, case).and_then(|pair| {
            let Pair { causes: _, runs } = pair;
            runs.iter()
                .zip(&directories)
                .try_for_each(|(run, directory)| run.save(directory).map_err(reported))
        });
        if let Err(reason) = stored {
            eprintln!("corpus: left out: {reason}");
        }
    });
    Ok(())
}

/// Savings of stored runs.
pub(crate) fn judge_stored(cases: &[(usize, Case)], directory: &Path) -> Result<Vec<Saving>, String> {
    let mut all = Vec::new();
    for (number, case) in cases {
        let Some((causes, _)) = without_fault(case) else { continue };
        let [faulty, without_fault] =
            ["faulty", "mended"].map(|name| StoredRun::load(&directory.join(name), *number));
        if let (Some(faulty), Some(without_fault)) = (faulty?, without_fault?) {
            all.extend(Pair { causes, runs: [faulty, without_fault] }.savings());
        }
    }
    Ok(sorted(all))
}

/// Visit with its fault, and without it.
struct Pair {
    causes: &'static [Cause],
    runs: [StoredRun; 2],
}

impl Pair {
    fn run(number: usize, case: &Case) -> Result<Self, String> {
        let (causes, without_fault) =
            without_fault(case).ok_or_else(|| format!("{}: its fault is unknown", case.name))?;
        let runs = [fastest_run(number, case)?, fastest_run(number, &without_fault)?];
        Ok(Self { causes, runs })
    }

    /// Savings at each vantage point whose capture has whole packets.
    fn savings(&self) -> Vec<Saving> {
        let Self { causes, runs: [before, after] } = self;
        let saved_ms = before.truth.elapsed_ms - after.truth.elapsed_ms;
        let whole = Vantage::ALL.into_iter().enumerate().filter(|(index, _)| !is_cut(before.number, *index));
        let at = |(index, vantage): (usize, Vantage)| {
            let findings = before.found(index).into_iter().flat_map(|flow| flow.findings);
            let of_it = findings.filter(|finding| causes.contains(&finding.cause));
            let predicted: Duration = of_it.filter_map(|finding| finding.saving).sum();
            // Shorter findings get no prediction.
            (predicted > Duration::ZERO)
                .then(|| Saving::new(before.number, vantage, causes[0], predicted, saved_ms))
        };
        whole.filter_map(at).collect()
    }
}

fn fastest_run(number: usize, case: &Case) -> Result<StoredRun, String> {
    const RUNS: usize = 5;
    let runs: Result<Vec<StoredRun>, String> =
        (0..RUNS).map(|_| Ok(StoredRun::of(number, case, &run(case)?))).collect();
    let by_elapsed =
        |one: &StoredRun, other: &StoredRun| one.truth.elapsed_ms.total_cmp(&other.truth.elapsed_ms);
    Ok(runs?.into_iter().min_by(by_elapsed).expect("there are some"))
}

/// Returns the causes that the case provokes, and the case without them.
fn without_fault(case: &Case) -> Option<(&'static [Cause], Case)> {
    let mut case = case.clone();
    let Case { name, tuning, behaviour, loss, .. } = &mut case;
    let causes: &[Cause] = match name.split(' ').next()? {
        "connection-per-request" => {
            behaviour.request_order = RequestOrder::Sequential;
            &[Cause::ConnectionPerRequest]
        }
        "server-thinks" => {
            behaviour.server_think = Duration::ZERO;
            &[Cause::ServerThink]
        }
        "nagle" => {
            behaviour.nagle = false;
            &[Cause::Nagle]
        }
        "nagle-delayed-ack" => {
            behaviour.nagle = false;
            &[Cause::NagleDelayedAck]
        }
        "short-initial-segment" => {
            tuning.initial_window = 10;
            &[Cause::ShortInitialSegment]
        }
        "delayed-ack" => {
            behaviour.acks = Acks::Quick;
            &[Cause::DelayedAck]
        }
        "send-buffer" => {
            behaviour.send_buffer = None;
            &[Cause::SendBufferLimited]
        }
        "receive-buffer" => {
            behaviour.receive_buffer = None;
            &[Cause::ReceiveWindowLimited]
        }
        "zero-window" => {
            behaviour.reading_pause = None;
            &[Cause::ZeroWindow]
        }
        "loss-of-short-answers" => {
            *loss = None;
            // Losses cost more than repairs: they also reduce the window.
            &[
                Cause::RetransmissionTimeout,
                Cause::TailLossProbe,
                Cause::FastRetransmit,
                Cause::CongestionWindow,
            ]
        }
        "after-idle" => {
            tuning.restarts_after_idle = false;
            &[Cause::SlowStartRestart]
        }
        "expect-100" => {
            behaviour.expects = false;
            &[Cause::ExpectContinue]
        }
        _ => return None,
    };
    Some((causes, case))
}
