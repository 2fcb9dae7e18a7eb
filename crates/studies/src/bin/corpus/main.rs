//! `diagnose`'s findings in captures with known causes: the simulator's endpoints report what prevented them from sending
//! (`simulate::stalls`), independently of the rules that are judged here.
//!
//! `sample` judges a sample, as a test does. `all FILE.csv` judges every capture
//! and writes the table in `studies/diagnosis`. `pairs` shows confusions of causes in the first half, by which rules may
//! be improved, and `mistakes` each of its mistakes. `case N` (and a place: `client`) shows one of
//! the cases, `accounts` the accounts of all time. `savings FILE.csv` judges the savings of the proposed fixes,
//! `places` contradictions between captures at both ends and mid-path. The second half is the reported one.
//!
//! `kernel` does the same over real kernels, as root. `kernel keep DIR` runs 1,632 visits in a laboratory and stores
//! captures and true causes. `kernel judge DIR FILE.csv` judges those, `kernel case N` shows one.
//! `kernel savings first keep DIR` runs some with their fault and without (`second`, `third`: others; and only
//! the named families). `kernel savings first judge DIR FILE.csv` compares predicted and real savings.

mod agreement;
mod cases;
mod judge;
mod kernel;
mod savings;
mod show;
mod vantage;

use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use simulate::stalls::TimeAccount;
use simulate::{Experiment, Hosts};

use roundtrip_studies::{exit_code, usage};

use agreement::Agreement;
use cases::Case;
use judge::{JudgedResults, RunFacts, accounts, mistakes, mistakes_of, pairs, table};
use kernel::StoredRun;
use kernel::savings::Part;
use vantage::{CaptureProperties, Vantage};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let cases = cases::all();
    let reported = match words.as_slice() {
        ["all", file] => write(&table(&judge(&cases).tallies), file),
        ["case", number] => show::show(number, None, &cases),
        ["case", number, vantage] => show::show(number, Some(vantage), &cases),
        ["pairs"] => {
            print!("{}", pairs(&judge(&cases).tallies));
            Ok(())
        }
        ["savings", file] => write(&savings::table(&savings::savings(&cases)), file),
        ["accounts"] => {
            print!("{}", accounts(&judge(&cases)));
            Ok(())
        }
        ["places"] => {
            let Agreement { compared, contradictions } = agreement(cases.iter());
            println!("{}\n{} of {compared} contradict", contradictions.join("\n"), contradictions.len());
            Ok(())
        }
        ["mistakes"] => {
            print!("{}", mistakes(&judge(&cases).tallies));
            Ok(())
        }
        ["kernel", rest @ ..] => on_kernels(rest),
        // First the part that needs a single-threaded process.
        ["sample"] => {
            let kernel = kernel::available();
            check_sample(cases).and_then(|()| check_kernel_sample(kernel))
        }
        _ => Err(usage(
            "case N [PLACE]`, `pairs`, `savings FILE.csv`, `accounts`, `places`, `mistakes`, `kernel ...",
        )),
    };
    exit_code("corpus", reported)
}

/// Minimum percentage of pauses over real kernels that must be named right at the ends. It is lower, because other
/// load on the test's host causes pauses.
const MIN_KERNEL_PERCENT: usize = 80;

fn check_kernel_sample(available: Result<(), String>) -> Result<(), String> {
    if let Err(why) = available {
        skip::report_skip(&format!("the corpus over real kernels: {why}"));
        return Ok(());
    }
    let sample = kernel::cases::sample();
    let judged = Mutex::new(JudgedResults::default());
    let numbered: Vec<(usize, &kernel::cases::Case)> =
        sample.iter().map(|(number, case)| (*number, case)).collect();
    kernel::each(&numbered, |right_savings| {
        kernel::judge(&right_savings, &mut judged.lock().expect("no thread panics"))
    });
    let judged = judged.into_inner().expect("no thread panics");
    let (known, right) = at_ends(&judged);
    println!("over real kernels {right} of {known} stalls are named as programs and kernel name them");
    // A host on which every run was late gives no result.
    if right * 100 < known * MIN_KERNEL_PERCENT {
        return Err(mistakes_of(&judged.tallies));
    }
    let savings = kernel::savings::savings(&kernel::savings::with_fix(sample));
    let right_savings = savings.iter().filter(|saving| saving.is_right()).count();
    println!("over real kernels {right_savings} of {} predicted savings are right", savings.len());
    if right_savings * 100 >= savings.len() * MIN_KERNEL_SAVINGS_PERCENT {
        Ok(())
    } else {
        Err(savings::table(&savings))
    }
}

/// Minimum percentage of right savings over real kernels: load on the host is as large as some of them.
const MIN_KERNEL_SAVINGS_PERCENT: usize = 50;

/// Returns the number of known stalls at the ends, and of those that are named right.
fn at_ends(judged: &JudgedResults) -> (usize, usize) {
    let tallies = judged.tallies.iter().filter(|(key, _)| key.vantage != Vantage::Middle);
    let counts = tallies.map(|(key, tally)| (tally.known(), tally.right(&key.cause)));
    counts.fold((0, 0), |(known, right), (more, of_these)| (known + more, right + of_these))
}

/// Runs the subcommands of `kernel`.
fn on_kernels(words: &[&str]) -> Result<(), String> {
    let cases = kernel::cases::all();
    let numbered = |number: &str| {
        let number: Option<usize> = number.parse().ok();
        let case = number.and_then(|number| Some((number, cases.get(number)?)));
        case.ok_or_else(|| format!("there are cases 0 to {}", cases.len() - 1))
    };
    match words {
        ["keep", directory] => {
            kernel::available()?;
            kernel::store_missing(&cases, directory.as_ref())
        }
        ["judge", directory, file] => {
            let judged = kernel::judge_stored(directory.as_ref(), cases.len())?;
            print!("{}", accounts(&judged));
            eprint!("{}{}", pairs(&judged.tallies), mistakes(&judged.tallies));
            write(&table(&judged.tallies), file)
        }
        ["savings", part, "keep", directory, families @ ..] => {
            kernel::available()?;
            let mut visits = part_named(part)?.of(cases);
            let is_of = |name: &str| families.is_empty() || families.contains(&name);
            visits.retain(|(_, case)| is_of(case.name.split(' ').next().unwrap_or_default()));
            if visits.is_empty() {
                return Err(format!(
                    "no visit is of {}; families are {}",
                    families.join(", "),
                    kernel::cases::FAMILIES.join(", ")
                ));
            }
            kernel::savings::store_missing(&visits, directory.as_ref())
        }
        ["savings", part, "judge", directory, file] => {
            let visits = part_named(part)?.of(cases);
            write(&savings::table(&kernel::savings::judge_stored(&visits, directory.as_ref())?), file)
        }
        ["case", number] => {
            kernel::available()?;
            let (number, case) = numbered(number)?;
            kernel::show(&StoredRun::of(number, case, &kernel::run(case)?));
            Ok(())
        }
        ["case", number, directory] => {
            let right_savings = StoredRun::load(directory.as_ref(), numbered(number)?.0)?;
            kernel::show(&right_savings.ok_or_else(|| format!("{number} is not stored in {directory}"))?);
            Ok(())
        }
        _ => {
            Err("usage: `kernel keep DIR`, `kernel judge DIR FILE.csv`, `kernel case N`, or `kernel savings \
                  PART keep|judge DIR`"
                .to_owned())
        }
    }
}

fn part_named(name: &str) -> Result<Part, String> {
    Part::named(name).ok_or_else(|| format!("{name}: unknown part; give first, second or third"))
}

/// Prints a table, and stores it.
fn write(text: &str, file: &str) -> Result<(), String> {
    print!("{text}");
    std::fs::write(file, text).map_err(|error| format!("cannot write {file}: {error}"))
}

/// Sampling interval of the test; then the minimum percentage of stalls that must be named right at the ends.
const SAMPLE_INTERVAL: usize = 37;
const MIN_PERCENT: usize = 97;
/// Minimum percentage of right savings.
const MIN_SAVINGS_PERCENT: usize = 85;

/// Maximum contradicted faults, in a thousand: two causes of one wait, and tails that were lost before they reached the vantage
/// point.
const CONTRADICTED: usize = 1;
/// Sampling interval of that comparison.
const VANTAGE_SAMPLING: usize = 13;

fn vantage_points_agree(cases: &[Case]) -> Result<(), String> {
    let Agreement { compared, contradictions } = agreement(cases.iter().step_by(VANTAGE_SAMPLING));
    println!("{} of {compared} faults are contradicted at another vantage point", contradictions.len());
    let is_good = compared > 1_000 && contradictions.len() * 1_000 <= compared * CONTRADICTED;
    if is_good { Ok(()) } else { Err(contradictions.join("\n")) }
}

fn check_sample(cases: Vec<Case>) -> Result<(), String> {
    vantage_points_agree(&cases)?;
    let sample: Vec<Case> = cases.into_iter().step_by(SAMPLE_INTERVAL).collect();
    let (known, right) = at_ends(&judge(&sample));
    println!("{right} of {known} stalls are named as the endpoints name them");
    let savings = savings::savings(&sample);
    let right_savings = savings.iter().filter(|saving| saving.is_right()).count();
    println!("{right_savings} of {} predicted savings are right", savings.len());
    let is_good = known > 100 && right * 100 >= known * MIN_PERCENT;
    let predicts_savings = savings.len() > 10 && right_savings * 100 >= savings.len() * MIN_SAVINGS_PERCENT;
    if is_good && predicts_savings { Ok(()) } else { Err("too few stalls or savings are right".to_owned()) }
}

/// Compares captures at both ends and mid-path.
fn agreement<'a>(cases: impl Iterator<Item = &'a Case>) -> Agreement {
    let mut all = Agreement::default();
    for Case { name, scenario } in cases {
        let experiment =
            Experiment::new(scenario, Hosts::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let fetched = experiment.run(0, true).unwrap_or_else(|error| panic!("{name}: {error}"));
        all.add(agreement::of(name, &fetched.records, scenario.network.rtt / 2));
    }
    all
}

fn judge(cases: &[Case]) -> JudgedResults {
    let numbered: Vec<(usize, &Case)> = cases.iter().enumerate().collect();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let all = thread::scope(|scope| {
        let parts = numbered.chunks(numbered.len().div_ceil(threads).max(1));
        let work = |part: &[(usize, &Case)]| {
            let mut judged = JudgedResults::default();
            part.iter().for_each(|(number, case)| judge_one(*number, case, &mut judged));
            judged
        };
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a case can be run")).collect::<Vec<_>>()
    });
    let mut judged = JudgedResults::default();
    all.into_iter().for_each(|part| judged.merge(part));
    judged
}

fn judge_one(number: usize, case: &Case, judged: &mut JudgedResults) {
    let Case { name, scenario } = case;
    let experiment =
        Experiment::new(scenario, Hosts::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let fetched = experiment.run(0, true).unwrap_or_else(|error| panic!("{name}: {error}"));
    let Some(elapsed) = fetched.elapsed else { return };
    let TimeAccount { working: _, stalls, repairs } = experiment.spent(&fetched);
    let known = RunFacts {
        name,
        number,
        // Either half has every value of every axis.
        is_first: (number / 2 + number / 8 + number / 32).is_multiple_of(2),
        rtt_ms: scenario.network.rtt.as_millis_f64(),
        elapsed_ms: elapsed.as_millis_f64(),
        stalls,
        repairs,
        unwatched: Vec::new(),
    };
    for (index, vantage) in Vantage::ALL.into_iter().enumerate() {
        let variant = number / 4 + number + index;
        let properties = CaptureProperties {
            vantage,
            one_way_delay: scenario.network.rtt / 2,
            is_cut: variant % 4 == 1,
            is_offloaded: variant % 3 == 1,
            is_numbered: variant % 5 < 3,
        };
        let mark_if = |is_set, word: &'static str| if is_set { word } else { "" };
        let taken = [
            mark_if(properties.is_cut, " cut"),
            mark_if(properties.is_offloaded, " merged"),
            mark_if(!properties.is_numbered, " unnumbered"),
        ];
        let (found, account) = vantage::found(&fetched.records, properties, fetched.began);
        known.record_findings(vantage, &found, &account, &taken.concat(), judged);
    }
}
