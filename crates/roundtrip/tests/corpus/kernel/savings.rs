//! What `diagnose` says a fix would save over real kernels, and what it does save: the same visit again, mended.
//!
//! Both are made on this machine, whose times are real: what a busy one adds to either is in the difference. So each is made
//! three times, and the one that took the least counts.

use std::sync::Mutex;

use diagnose::Cause;
use wire::Duration;

use super::cases::{Acks, Asking, Case};
use super::kept::{Kept, is_cut};
use super::{AT_ONCE, in_turn, run};
use crate::savings::Saving;
use crate::vantage::Vantage;

/// Of those that can be mended every eighth: all round trips and congestion controls of each family.
pub(crate) fn chosen(cases: Vec<Case>) -> Vec<(usize, Case)> {
    let is_chosen = |(number, case): &(usize, Case)| {
        mended(case).is_some() && (number + number / 4 + number / 12).is_multiple_of(8)
    };
    cases.into_iter().enumerate().filter(is_chosen).collect()
}

/// Those of `cases` that can be mended.
pub(crate) fn that_can_be_mended(cases: Vec<(usize, Case)>) -> Vec<(usize, Case)> {
    cases.into_iter().filter(|(_, case)| mended(case).is_some()).collect()
}

/// Runs each with its fault and without; says what could not be run.
pub(crate) fn savings(cases: &[(usize, Case)]) -> Vec<Saving> {
    let all = Mutex::new(Vec::new());
    in_turn(AT_ONCE, cases, |(number, case)| match saving(*number, case) {
        Ok(saving) => all.lock().expect("nobody panics").extend(saving),
        Err(why) => eprintln!("corpus: left out: {why}"),
    });
    let mut all = all.into_inner().expect("nobody panics");
    all.sort_by_key(Saving::order);
    all
}

fn saving(number: usize, case: &Case) -> Result<Option<Saving>, String> {
    let Some((causes, mended)) = mended(case) else { return Ok(None) };
    let (before, after) = (least_disturbed(number, case)?, least_disturbed(number, &mended)?);
    let places = (number..).map(|place| place % Vantage::ALL.len());
    let place = places.into_iter().take(4).find(|place| !is_cut(number, *place)).unwrap_or_default();
    let findings = before.found(place).into_iter().flat_map(|flow| flow.findings);
    let predicted: Duration =
        findings.filter(|finding| causes.contains(&finding.cause)).filter_map(|finding| finding.saving).sum();
    // Of less than a finding is worth nothing is said.
    let saved_ms = before.truth.elapsed_ms - after.truth.elapsed_ms;
    Ok((predicted > Duration::ZERO).then(|| Saving::new(number, causes[0], predicted, saved_ms)))
}

fn least_disturbed(number: usize, case: &Case) -> Result<Kept, String> {
    const RUNS: usize = 3;
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
            &[Cause::RetransmissionTimeout, Cause::TailLossProbe, Cause::FastRetransmit]
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
