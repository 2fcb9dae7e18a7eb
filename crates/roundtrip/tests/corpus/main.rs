//! What `diagnose` finds in captures whose causes are known: the simulator asks its endpoints what kept them from
//! sending (`simulate::stalls`), and never the rules that are judged here.
//!
//! As a test it judges a sample. `cargo test --release -p roundtrip --test corpus -- all FILE.csv` judges every capture
//! and writes the table that `studies/diagnosis` keeps; `-- pairs` shows what is taken for what in the first half, the
//! only one that rules may be mended by, `-- mistakes` each of its mistakes, `-- case N` (and a place: `client`) one of
//! the cases, `-- accounts` where all time went, and `-- savings FILE.csv` what the fixes save that are proposed. The second half is what is reported. Not a measure of real
//! machines: TCP, path and programs are the simulator's.

mod cases;
mod savings;
mod show;
mod vantage;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::thread;

use diagnose::Account;
use simulate::stalls::Spent;
use simulate::{Experiment, Hosts};
use trace::Stall;

use cases::Case;
use vantage::{How, Vantage};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let cases = cases::all();
    match words.as_slice() {
        ["all", file] => write(&table(&judge(&cases).tallies), file),
        ["case", number] => show::show(number, None, &cases),
        ["case", number, vantage] => show::show(number, Some(vantage), &cases),
        ["pairs"] => {
            print!("{}", pairs(&judge(&cases).tallies));
            ExitCode::SUCCESS
        }
        ["savings", file] => write(&savings::table(&savings::savings(&cases)), file),
        ["accounts"] => {
            print!("{}", accounts(&judge(&cases)));
            ExitCode::SUCCESS
        }
        ["mistakes"] => {
            print!("{}", mistakes(&judge(&cases).tallies));
            ExitCode::SUCCESS
        }
        // What the test harness would be told (filters, `--nocapture`) means nothing here.
        _ => the_sample_is_good_enough(cases),
    }
}

/// Prints a table, and keeps it.
fn write(text: &str, file: &str) -> ExitCode {
    print!("{text}");
    match std::fs::write(file, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus: cannot write {file}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The sample of the test: every so many; and what of its stalls must be named right at the ends, in a hundred.
const EVERY: usize = 37;
const ENOUGH: usize = 97;
/// And of savings, what must come true.
const KEPT: usize = 85;

fn the_sample_is_good_enough(cases: Vec<Case>) -> ExitCode {
    let sample: Vec<Case> = cases.into_iter().step_by(EVERY).collect();
    let at_ends: Vec<(Where, Tally)> =
        judge(&sample).tallies.into_iter().filter(|(place, _)| place.vantage != Vantage::Middle).collect();
    let known: usize = at_ends.iter().map(|(_, tally)| tally.known()).sum();
    let right: usize = at_ends.iter().map(|(place, tally)| tally.right(&place.cause)).sum();
    println!("{right} of {known} stalls are named as the endpoints name them");
    let savings = savings::savings(&sample);
    let kept = savings.iter().filter(|saving| saving.is_right()).count();
    println!("{kept} of {} predicted savings are kept", savings.len());
    let is_good = known > 100 && right * 100 >= known * ENOUGH;
    let is_kept = savings.len() > 10 && kept * 100 >= savings.len() * KEPT;
    if is_good && is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Where {
    /// What the endpoints say.
    cause: String,
    vantage: Vantage,
    /// Of the first half, that rules may be mended by.
    is_first: bool,
}

/// Stalls of one cause.
#[derive(Clone, Debug, Default)]
struct Tally {
    /// What they are found as.
    found: BTreeMap<String, usize>,
    /// Found without being there, and what is there.
    false_alarms: BTreeMap<String, usize>,
    /// Captures with such a stall.
    captures: usize,
    /// What was named wrongly, a line for each.
    mistakes: Vec<String>,
}

impl Tally {
    fn known(&self) -> usize {
        self.found.values().sum()
    }

    fn right(&self, cause: &str) -> usize {
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

type Tallies = BTreeMap<Where, Tally>;

/// All that is known of what was found.
#[derive(Debug, Default)]
struct Judged {
    tallies: Tallies,
    /// Where all time went, by the place of the capture and the half.
    accounts: BTreeMap<(Vantage, bool), Account>,
}

fn judge(cases: &[Case]) -> Judged {
    let numbered: Vec<(usize, &Case)> = cases.iter().enumerate().collect();
    let most = thread::available_parallelism().map_or(1, usize::from);
    let all = thread::scope(|scope| {
        let parts = numbered.chunks(numbered.len().div_ceil(most).max(1));
        let work = |part: &[(usize, &Case)]| {
            let mut judged = Judged::default();
            part.iter().for_each(|(number, case)| judge_one(*number, case, &mut judged));
            judged
        };
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a case can be run")).collect::<Vec<_>>()
    });
    let mut judged = Judged::default();
    for Judged { tallies, accounts } in all {
        for (place, tally) in tallies {
            judged.tallies.entry(place).or_default().add(tally);
        }
        for (place, account) in accounts {
            judged.accounts.entry(place).or_default().merge(&account);
        }
    }
    judged
}

fn judge_one(number: usize, case: &Case, judged: &mut Judged) {
    let Judged { tallies, accounts } = judged;
    let Case { name, scenario } = case;
    let experiment =
        Experiment::new(scenario, Hosts::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let fetched = experiment.run(0, true).unwrap_or_else(|error| panic!("{name}: {error}"));
    let Some(elapsed) = fetched.elapsed else { return };
    // Of less nobody needs the cause.
    let least = (scenario.network.rtt.as_millis_f64() / 4.0).max(5.0);
    let Spent { working: _, stalls, repairs } = experiment.spent(&fetched);
    let way = scenario.network.rtt.as_millis_f64() / 2.0;
    // Either half has every value of every axis.
    let is_first = (number / 2 + number / 8 + number / 32).is_multiple_of(2);
    for (place, vantage) in Vantage::ALL.into_iter().enumerate() {
        let variant = number / 4 + number + place;
        let how = How {
            vantage,
            way: scenario.network.rtt / 2,
            is_cut: variant % 4 == 1,
            is_offloaded: variant % 3 == 1,
            is_numbered: variant % 5 < 3,
        };
        let (found, account) = vantage::found(&fetched.records, how, fetched.began);
        accounts.entry((vantage, is_first)).or_default().merge(&account);
        let seen = |stalls: &[Stall]| -> Vec<Stall> {
            stalls.iter().map(|stall| as_seen(stall, vantage, way)).collect()
        };
        let (all, repairs) = (seen(&stalls), seen(&repairs));
        let known: Vec<&Stall> = all.iter().filter(|stall| stall.lost_ms >= least).collect();
        let mut add = |cause: &str, tally: Tally| {
            let place = Where { cause: cause.to_owned(), vantage, is_first };
            tallies.entry(place).or_default().add(tally);
        };
        let mistake = |kind: &str, stall: &Stall, instead: &str| {
            let Stall { cause, at_ms, lost_ms } = stall;
            let cut = if how.is_cut { " cut" } else { "" };
            let merged = if how.is_offloaded { " merged" } else { "" };
            let plain = if how.is_numbered { "" } else { " unnumbered" };
            format!(
                "{kind} {cause}, {instead} instead: {number} ({name}) at {}{cut}{merged}{plain}, {at_ms:.3} +{lost_ms:.3} ms",
                vantage.name()
            )
        };
        let mut there: Vec<&str> = known.iter().map(|stall| stall.cause.as_str()).collect();
        there.sort_unstable();
        there.dedup();
        there.into_iter().for_each(|cause| add(cause, Tally { captures: 1, ..Tally::default() }));
        for stall in known {
            let name = name_at(&found, stall);
            let name = if is_repair(&repairs, stall, &name) { stall.cause.clone() } else { name };
            let mistakes =
                if name == stall.cause { Vec::new() } else { vec![mistake("missed", stall, &name)] };
            add(&stall.cause, Tally { found: BTreeMap::from([(name, 1)]), mistakes, ..Tally::default() });
        }
        // How the connection ends nobody waits for.
        let matters = |stall: &&Stall| stall.lost_ms >= least && stall.at_ms < elapsed.as_millis_f64();
        for stall in found.iter().filter(matters) {
            let truth = name_at(&all, stall);
            if truth != stall.cause && !is_repair(&repairs, stall, &stall.cause) {
                let mistakes = vec![mistake("false", stall, &truth)];
                let false_alarms = BTreeMap::from([(truth, 1)]);
                add(&stall.cause, Tally { false_alarms, mistakes, ..Tally::default() });
            }
        }
    }
}

/// What the other end does is seen half a round trip later, or half of that.
fn as_seen(stall: &Stall, vantage: Vantage, way_ms: f64) -> Stall {
    let is_clients = matches!(stall.cause.as_str(), "connection-setup" | "client-think");
    let later_ms = match (vantage, is_clients) {
        (Vantage::Client, true) | (Vantage::Server, false) => 0.0,
        (Vantage::Client, false) | (Vantage::Server, true) => way_ms,
        (Vantage::Middle, _) => way_ms / 2.0,
    };
    Stall { at_ms: stall.at_ms + later_ms, ..stall.clone() }
}

/// Whether a repair of that name was under way during a stall: a wait for a window and for what was lost have two names.
fn is_repair(repairs: &[Stall], stall: &Stall, name: &str) -> bool {
    let alike: Vec<Stall> = repairs.iter().filter(|repair| repair.cause == name).cloned().collect();
    name_at(&alike, &Stall { cause: name.to_owned(), ..stall.clone() }) == name
}

/// What covers most of a stall, if it covers a third of it; of two that do, the one of its name.
fn name_at(others: &[Stall], stall: &Stall) -> String {
    let overlap = |other: &Stall| {
        let end = (stall.at_ms + stall.lost_ms).min(other.at_ms + other.lost_ms);
        end - stall.at_ms.max(other.at_ms)
    };
    let name = |other: &Stall| match (other.cause.as_str(), stall.cause.as_str()) {
        // Two names of one wait: the endpoints tell only that there was a handshake, and only that a timer ran out.
        ("connection-per-request", "connection-setup") | ("connection-setup", "connection-per-request") => {
            stall.cause.clone()
        }
        ("tail-loss-probe", "retransmission-timeout") | ("retransmission-timeout", "tail-loss-probe") => {
            stall.cause.clone()
        }
        (cause, _) => cause.to_owned(),
    };
    let rank = |other: &Stall| (overlap(other), name(other) == stall.cause);
    let best = others.iter().filter(|other| overlap(other) > 0.3 * stall.lost_ms).max_by(|one, other| {
        let ((one, is_one), (other, is_other)) = (rank(one), rank(other));
        one.total_cmp(&other).then(is_one.cmp(&is_other))
    });
    best.map_or_else(|| "nothing".to_owned(), name)
}

const HEADING: &str =
    "cause,vantage,half,captures,stalls,found,found_otherwise,false_alarms,recall,precision\n";

fn table(tallies: &Tallies) -> String {
    let mut text = HEADING.to_owned();
    for (Where { cause, vantage, is_first }, tally) in tallies {
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

/// Where all time went, in parts of a hundred.
fn accounts(judged: &Judged) -> String {
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

fn mistakes(tallies: &Tallies) -> String {
    let first = tallies.iter().filter(|(place, _)| place.is_first);
    first.flat_map(|(_, tally)| &tally.mistakes).map(|line| format!("{line}\n")).collect()
}

fn pairs(tallies: &Tallies) -> String {
    let mut text = String::new();
    for (Where { cause, vantage, is_first: _ }, tally) in tallies.iter().filter(|(place, _)| place.is_first) {
        let Tally { found, false_alarms, captures: _, mistakes: _ } = tally;
        let _ =
            writeln!(text, "{cause} at {}: found as {found:?}; falsely for {false_alarms:?}", vantage.name());
    }
    text
}
