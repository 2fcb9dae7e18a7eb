//! Comparison of findings with the known causes: stalls found under their name, and false findings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use diagnose::{Account, Cause};
use trace::Stall;

use crate::vantage::Vantage;

/// Key under which results are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResultKey {
    /// Cause by the endpoints.
    pub(crate) cause: String,
    pub(crate) vantage: Vantage,
    /// Whether the case is in the first half, by which rules may be improved.
    pub(crate) is_first: bool,
}

/// Results for stalls of one cause.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Causes under which they are found.
    found: BTreeMap<String, usize>,
    /// False findings, with the true causes.
    false_alarms: BTreeMap<String, usize>,
    /// Captures with such a stall.
    captures: usize,
    /// Wrong names, a line for each.
    mistakes: Vec<String>,
}

impl Tally {
    pub(crate) fn known(&self) -> usize {
        self.found.values().sum()
    }

    pub(crate) fn right(&self, cause: &str) -> usize {
        self.found.get(cause).copied().unwrap_or_default()
    }

    fn add(&mut self, other: Self) {
        let Self { found, false_alarms, captures, mistakes } = other;
        found.into_iter().for_each(|(name, count)| *self.found.entry(name).or_default() += count);
        for (name, count) in false_alarms {
            *self.false_alarms.entry(name).or_default() += count;
        }
        self.captures += captures;
        self.mistakes.extend(mistakes);
    }
}

pub(crate) type Tallies = BTreeMap<ResultKey, Tally>;

/// All results.
#[derive(Debug, Default)]
pub(crate) struct JudgedResults {
    pub(crate) tallies: Tallies,
    /// Time accounts, by vantage point and half.
    pub(crate) accounts: BTreeMap<(Vantage, bool), Account>,
}

impl JudgedResults {
    pub(crate) fn merge(&mut self, other: Self) {
        let Self { tallies, accounts } = other;
        for (key, tally) in tallies {
            self.tallies.entry(key).or_default().add(tally);
        }
        for (key, account) in accounts {
            self.accounts.entry(key).or_default().merge(&account);
        }
    }
}

/// Pause of unknown cause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) at_ms: f64,
    pub(crate) lost_ms: f64,
}

impl Pause {
    /// Whether it covers a third of a stall that is seen `later_ms` later than it happened.
    fn covers(&self, stall: &Stall, delay_ms: f64) -> bool {
        let at_ms = self.at_ms + delay_ms;
        let end = (stall.at_ms + stall.lost_ms).min(at_ms + self.lost_ms);
        end - stall.at_ms.max(at_ms) > 0.3 * stall.lost_ms
    }
}

/// Known facts of a run.
pub(crate) struct RunFacts<'a> {
    pub(crate) name: &'a str,
    pub(crate) number: usize,
    pub(crate) is_first: bool,
    pub(crate) rtt_ms: f64,
    /// Time at which the client had received everything.
    pub(crate) elapsed_ms: f64,
    /// Stalls as the server saw them, except for the client's own.
    pub(crate) stalls: Vec<Stall>,
    pub(crate) repairs: Vec<Stall>,
    /// Pauses without information: findings in them are neither right nor wrong.
    pub(crate) unwatched: Vec<Pause>,
}

impl RunFacts<'_> {
    /// Counts the findings of one capture. `capture_label` is printed with every mistake.
    pub(crate) fn record_findings(
        &self,
        vantage: Vantage,
        found: &[Stall],
        account: &Account,
        capture_label: &str,
        judged: &mut JudgedResults,
    ) {
        let Self { name: run, number, is_first, rtt_ms, elapsed_ms, stalls, repairs, unwatched } = self;
        let is_first = *is_first;
        let JudgedResults { tallies, accounts } = judged;
        accounts.entry((vantage, is_first)).or_default().merge(account);
        // Shorter stalls need no cause, except for lost data.
        let min_ms = (rtt_ms / 4.0).max(5.0);
        let matters = |stall: &&Stall| stall.lost_ms >= min_ms || stall.cause == LOST_FOR_GOOD;
        let seen = |stalls: &[Stall]| -> Vec<Stall> {
            stalls.iter().map(|stall| as_seen(stall, vantage, rtt_ms / 2.0)).collect()
        };
        let (all, repairs) = (seen(stalls), seen(repairs));
        let delay_ms = observation_delay(vantage, false, rtt_ms / 2.0);
        let known: Vec<&Stall> = all.iter().filter(matters).collect();
        let mut add = |cause: &str, tally: Tally| {
            let key = ResultKey { cause: cause.to_owned(), vantage, is_first };
            tallies.entry(key).or_default().add(tally);
        };
        let mistake = |kind: &str, stall: &Stall, instead: &str| {
            let Stall { cause, at_ms, lost_ms } = stall;
            format!(
                "{kind} {cause}, {instead} instead: {number} ({run}) at {}{capture_label}, {at_ms:.3} +{lost_ms:.3} ms",
                vantage.name()
            )
        };
        let mut causes: Vec<&str> = known.iter().map(|stall| stall.cause.name()).collect();
        causes.sort_unstable();
        causes.dedup();
        causes.into_iter().for_each(|cause| add(cause, Tally { captures: 1, ..Tally::default() }));
        for stall in known {
            let name = name_at(found, stall);
            let name = if is_repair(&repairs, stall, &name) { stall.cause.name().to_owned() } else { name };
            let mistakes =
                if name == stall.cause.name() { Vec::new() } else { vec![mistake("missed", stall, &name)] };
            add(
                stall.cause.name(),
                Tally { found: BTreeMap::from([(name, 1)]), mistakes, ..Tally::default() },
            );
        }
        // No one waits for the connection's close.
        for stall in found.iter().filter(matters).filter(|stall| stall.at_ms < *elapsed_ms) {
            let truth = name_at(&all, stall);
            if truth == "nothing" && unwatched.iter().any(|pause| pause.covers(stall, delay_ms)) {
                continue;
            }
            if truth != stall.cause.name() && !is_repair(&repairs, stall, stall.cause.name()) {
                let mistakes = vec![mistake("false", stall, &truth)];
                let false_alarms = BTreeMap::from([(truth, 1)]);
                add(stall.cause.name(), Tally { false_alarms, mistakes, ..Tally::default() });
            }
        }
    }
}

/// Cause that loses responses, not time.
const LOST_FOR_GOOD: Cause = Cause::ResetLostData;

/// Shifts a stall to a vantage point: events of the far end arrive half a round trip later, mid-path half of that.
pub(crate) fn as_seen(stall: &Stall, vantage: Vantage, one_way_delay_ms: f64) -> Stall {
    let is_at_client =
        matches!(stall.cause, Cause::ConnectionSetup | Cause::ClientThink | Cause::ExpectContinue);
    Stall { at_ms: stall.at_ms + observation_delay(vantage, is_at_client, one_way_delay_ms), ..stall.clone() }
}

/// Delay until an event is visible at a vantage point.
const fn observation_delay(vantage: Vantage, is_at_client: bool, one_way_delay_ms: f64) -> f64 {
    match (vantage, is_at_client) {
        (Vantage::Client, true) | (Vantage::Server, false) => 0.0,
        (Vantage::Client, false) | (Vantage::Server, true) => one_way_delay_ms,
        (Vantage::Middle, _) => one_way_delay_ms / 2.0,
    }
}

/// Whether a repair of that name was in progress during a stall: a wait for a window and for lost data has two names.
fn is_repair(repairs: &[Stall], stall: &Stall, name: &str) -> bool {
    let same_cause: Vec<Stall> =
        repairs.iter().filter(|repair| repair.cause.name() == name).cloned().collect();
    name_at(&same_cause, &Stall { cause: Cause::by_name(name).unwrap_or(stall.cause), ..stall.clone() })
        == name
}

/// Returns the cause that covers most of a stall, at least a third of it; of equal ones the one with its name.
fn name_at(others: &[Stall], stall: &Stall) -> String {
    // Pipelined requests are outstanding together: the time of the loss is not compared.
    if stall.cause == LOST_FOR_GOOD && others.iter().any(|other| other.cause == LOST_FOR_GOOD) {
        return LOST_FOR_GOOD.name().to_owned();
    }
    let overlap = |other: &Stall| {
        let end = (stall.at_ms + stall.lost_ms).min(other.at_ms + other.lost_ms);
        end - stall.at_ms.max(other.at_ms)
    };
    let name = |other: &Stall| match (other.cause, stall.cause) {
        // Two names of one wait: the endpoints report only a handshake, or only an expired timer.
        (Cause::ConnectionPerRequest, Cause::ConnectionSetup)
        | (Cause::ConnectionSetup, Cause::ConnectionPerRequest) => stall.cause.name().to_owned(),
        (Cause::TailLossProbe, Cause::RetransmissionTimeout)
        | (Cause::RetransmissionTimeout, Cause::TailLossProbe) => stall.cause.name().to_owned(),
        (cause, _) => cause.name().to_owned(),
    };
    let rank = |other: &Stall| (overlap(other), name(other) == stall.cause.name());
    let best = others.iter().filter(|other| overlap(other) > 0.3 * stall.lost_ms).max_by(|one, other| {
        let ((one, is_one), (other, is_other)) = (rank(one), rank(other));
        one.total_cmp(&other).then(is_one.cmp(&is_other))
    });
    best.map_or_else(|| "nothing".to_owned(), name)
}

const HEADING: &str =
    "cause,vantage,half,captures,stalls,found,found_otherwise,false_alarms,recall,precision\n";

pub(crate) fn table(tallies: &Tallies) -> String {
    let mut text = HEADING.to_owned();
    for (ResultKey { cause, vantage, is_first }, tally) in tallies {
        let (known, right) = (tally.known(), tally.right(cause));
        let wrong: usize = tally.false_alarms.values().sum();
        let share = |part: usize, all: usize| {
            if all == 0 { String::new() } else { format!("{:.3}", part as f64 / all as f64) }
        };
        let half = if *is_first { "first" } else { "second" };
        let _ = writeln!(
            text,
            "{cause},{},{half},{},{known},{right},{},{wrong},{},{}",
            vantage.name(),
            tally.captures,
            known - right,
            share(right, known),
            share(right, right + wrong),
        );
    }
    text
}

/// Time accounts, in percent.
pub(crate) fn accounts(judged: &JudgedResults) -> String {
    let mut text = "vantage,half,share,seconds,percent\n".to_owned();
    for ((vantage, is_first), account) in &judged.accounts {
        let total = account.total().as_secs_f64();
        for (share, time) in account.iter() {
            let (seconds, half) = (time.as_secs_f64(), if *is_first { "first" } else { "second" });
            let percent = 100.0 * seconds / total;
            let _ = writeln!(text, "{},{half},{},{seconds:.3},{percent:.3}", vantage.name(), share.name());
        }
    }
    text
}

/// Mistakes of both halves.
pub(crate) fn mistakes_of(tallies: &Tallies) -> String {
    tallies.values().flat_map(|tally| &tally.mistakes).map(|line| format!("{line}\n")).collect()
}

pub(crate) fn mistakes(tallies: &Tallies) -> String {
    let first = tallies.iter().filter(|(key, _)| key.is_first);
    first.flat_map(|(_, tally)| &tally.mistakes).map(|line| format!("{line}\n")).collect()
}

pub(crate) fn pairs(tallies: &Tallies) -> String {
    let mut text = String::new();
    for (ResultKey { cause, vantage, is_first: _ }, tally) in tallies.iter().filter(|(key, _)| key.is_first) {
        let Tally { found, false_alarms, captures: _, mistakes: _ } = tally;
        let _ =
            writeln!(text, "{cause} at {}: found as {found:?}; falsely for {false_alarms:?}", vantage.name());
    }
    text
}
