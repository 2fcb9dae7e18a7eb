//! What `diagnose` says a fix would save over real kernels, and what it does save: the same visit again, mended.
//!
//! Both are made on this machine, whose times are real: what a busy one adds to either is in the difference. So each is made
//! five times, and the one that took the least counts.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use diagnose::Cause;
use wire::Duration;

use super::cases::{Acks, Asking, Case};
use super::hosts::told;
use super::kept::{Kept, is_cut};
use super::{AT_ONCE, in_turn, run};
use crate::savings::Saving;
use crate::vantage::Vantage;

/// Which visits: rules are mended by the first, and judged by the second, which has no visit of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    First,
    Second,
}

impl Half {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "first" => Some(Self::First),
            "second" => Some(Self::Second),
            _ => None,
        }
    }

    /// Of those that can be mended two of each twelve. In the first half an old Reno and a new CUBIC, always; in the second
    /// each congestion control, window and offload in turn, over shorter paths, answers of other sizes, other losses.
    pub(crate) fn of(self, cases: Vec<Case>) -> Vec<(usize, Case)> {
        let numbered = that_can_be_mended(cases.into_iter().enumerate().collect());
        let is_chosen = |number: usize| match self {
            Self::First => (number + number / 4 + number / 12).is_multiple_of(8),
            Self::Second => [1, 8].iter().any(|first| number % 12 == (number / 12 * 5 + first) % 12),
        };
        let chosen = numbered.into_iter().filter(|(number, _)| is_chosen(*number));
        chosen.map(|(number, case)| (number, if self == Self::First { case } else { moved(case) })).collect()
    }
}

/// The same fault elsewhere.
fn moved(mut case: Case) -> Case {
    let Case { rtt, play, seed, .. } = &mut case;
    *rtt = *rtt * 4 / 5;
    *seed += 10_000;
    play.answers.iter_mut().filter(|size| **size > 1_000).for_each(|size| *size = *size * 2 / 3);
    case
}

/// Those of `cases` that can be mended.
pub(crate) fn that_can_be_mended(cases: Vec<(usize, Case)>) -> Vec<(usize, Case)> {
    cases.into_iter().filter(|(_, case)| mended(case).is_some()).collect()
}

/// Runs each with its fault and without, and says what comes of it, or keeps it; says what could not be run.
pub(crate) fn savings(cases: &[(usize, Case)]) -> Vec<Saving> {
    let all = Mutex::new(Vec::new());
    in_turn(AT_ONCE, cases, |(number, case)| match Pair::run(*number, case) {
        Ok(pair) => all.lock().expect("nobody panics").extend(pair.savings()),
        Err(why) => eprintln!("corpus: left out: {why}"),
    });
    sorted(all.into_inner().expect("nobody panics"))
}

fn sorted(mut all: Vec<Saving>) -> Vec<Saving> {
    all.sort_by_key(Saving::order);
    all
}

/// Runs all that are not kept yet, and keeps them.
pub(crate) fn keep(cases: &[(usize, Case)], folder: &Path) -> Result<(), String> {
    let folders = ["faulty", "mended"].map(|name| folder.join(name));
    folders.iter().try_for_each(fs::create_dir_all).map_err(told)?;
    let [_, last] = &folders;
    let missing: Vec<_> =
        cases.iter().filter(|(number, _)| !last.join(format!("{number}.csv")).exists()).collect();
    in_turn(AT_ONCE, &missing, |(number, case)| {
        let kept = Pair::run(*number, case).and_then(|pair| {
            let Pair { causes: _, runs } = pair;
            runs.iter().zip(&folders).try_for_each(|(run, folder)| run.save(folder).map_err(told))
        });
        if let Err(why) = kept {
            eprintln!("corpus: left out: {why}");
        }
    });
    Ok(())
}

/// What comes of those that were kept.
pub(crate) fn judge_kept(cases: &[(usize, Case)], folder: &Path) -> Result<Vec<Saving>, String> {
    let mut all = Vec::new();
    for (number, case) in cases {
        let Some((causes, _)) = mended(case) else { continue };
        let [faulty, mended] = ["faulty", "mended"].map(|name| Kept::load(&folder.join(name), *number));
        if let (Some(faulty), Some(mended)) = (faulty?, mended?) {
            all.extend(Pair { causes, runs: [faulty, mended] }.savings());
        }
    }
    Ok(sorted(all))
}

/// A visit with its fault, and without.
struct Pair {
    causes: &'static [Cause],
    runs: [Kept; 2],
}

impl Pair {
    fn run(number: usize, case: &Case) -> Result<Self, String> {
        let (causes, mended) =
            mended(case).ok_or_else(|| format!("{}: no fault of it is known", case.name))?;
        let runs = [least_disturbed(number, case)?, least_disturbed(number, &mended)?];
        Ok(Self { causes, runs })
    }

    /// At each place where whole packets were captured.
    fn savings(&self) -> Vec<Saving> {
        let Self { causes, runs: [before, after] } = self;
        let saved_ms = before.truth.elapsed_ms - after.truth.elapsed_ms;
        let whole = Vantage::ALL.into_iter().enumerate().filter(|(place, _)| !is_cut(before.number, *place));
        let at = |(place, vantage): (usize, Vantage)| {
            let findings = before.found(place).into_iter().flat_map(|flow| flow.findings);
            let of_it = findings.filter(|finding| causes.contains(&finding.cause));
            let predicted: Duration = of_it.filter_map(|finding| finding.saving).sum();
            // Of less than a finding is worth nothing is said.
            (predicted > Duration::ZERO)
                .then(|| Saving::new(before.number, vantage, causes[0], predicted, saved_ms))
        };
        whole.filter_map(at).collect()
    }
}

fn least_disturbed(number: usize, case: &Case) -> Result<Kept, String> {
    const RUNS: usize = 5;
    let runs: Result<Vec<Kept>, String> =
        (0..RUNS).map(|_| Ok(Kept::of(number, case, &run(case)?))).collect();
    let least = |one: &Kept, other: &Kept| one.truth.elapsed_ms.total_cmp(&other.truth.elapsed_ms);
    Ok(runs?.into_iter().min_by(least).expect("there are some"))
}

/// What the case was made to show, by all its names, and the same without it.
fn mended(case: &Case) -> Option<(&'static [Cause], Case)> {
    let mut case = case.clone();
    let Case { name, tuning, play, loss, .. } = &mut case;
    let causes: &[Cause] = match name.split(' ').next()? {
        "connection-per-request" => {
            play.asking = Asking::OneByOne;
            &[Cause::ConnectionPerRequest]
        }
        "server-thinks" => {
            play.server_think = Duration::ZERO;
            &[Cause::ServerThink]
        }
        "nagle" => {
            play.nagle = false;
            &[Cause::Nagle]
        }
        "nagle-delayed-ack" => {
            play.nagle = false;
            &[Cause::NagleDelayedAck]
        }
        "short-initial-segment" => {
            tuning.initial_window = 10;
            &[Cause::ShortInitialSegment]
        }
        "delayed-ack" => {
            play.acks = Acks::Quick;
            &[Cause::DelayedAck]
        }
        "send-buffer" => {
            play.send_buffer = None;
            &[Cause::SendBufferLimited]
        }
        "receive-buffer" => {
            play.receive_buffer = None;
            &[Cause::ReceiveWindowLimited]
        }
        "zero-window" => {
            play.rests = None;
            &[Cause::ZeroWindow]
        }
        "loss-of-short-answers" => {
            *loss = None;
            // What losses cost beside repairs: a smaller window.
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
            play.expects = false;
            &[Cause::ExpectContinue]
        }
        _ => return None,
    };
    Some((causes, case))
}
