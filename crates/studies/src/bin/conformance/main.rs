//! The simulator's Linux against Linux: the same scenarios through both, segment by segment.
//!
//! Agreement is the same data segments in the same order (connection, direction, sequence numbers), and a time within
//! the larger of 1% and 4 ms, a jiffy. The engines are independent of each other. Differences are looked up in the kernel's
//! source and documented in `crates/simulate`, never tuned.
//!
//! The process has one thread, so that a non-root user may enter a user namespace first. `sample` runs a sample, in
//! half a minute, and judges only the segments, if necessary in a repetition: times are shown, and depend on other load on
//! the host.
//! `all [FILE.csv]` runs everything and writes the results,
//! as stored in `studies/simulator-against-kernel`. `trace N` shows both captures of one scenario, packet by
//! packet. `stacks FILE.csv [NETWORK|microscape ...]` compares the stacks over networks and protocols.

mod cases;
mod outcome;
mod packets;
mod stacks;

use std::process::ExitCode;

use roundtrip_studies::usage;

use cases::Case;
use outcome::{Outcome, compare};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Err(missing) = testbed::prepare().and_then(|()| testbed::available()) {
        skip::refused(&missing.to_string());
        return ExitCode::SUCCESS;
    }
    let result = match words.as_slice() {
        ["all"] => run_all(None),
        ["all", file] => run_all(Some(file)),
        ["trace", number] => trace(number),
        ["stacks", file, names @ ..] => stacks::run(file, names),
        ["sample"] => run_sample(),
        _ => Err(usage("trace N`, `stacks FILE.csv [NETWORK|microscape ...]")),
    };
    result.unwrap_or_else(|sentence| {
        eprintln!("conformance: {sentence}");
        ExitCode::FAILURE
    })
}

/// Minimum percentage with the same segments, and with the same time.
const MIN_PERCENT: usize = 95;
/// Runs of each scenario on the kernel: the median of three is not an outlier.
const RUNS: u32 = 3;
/// Attempts of a scenario of the sample.
const ATTEMPTS: usize = 4;
/// Sampling interval of the cases.
const SAMPLE_INTERVAL: usize = 10;

fn run_sample() -> Result<ExitCode, String> {
    let sample: Vec<Case> = cases::all().into_iter().step_by(SAMPLE_INTERVAL).collect();
    let mut differing = Vec::new();
    for case in &sample {
        if !has_same_segments(case)? {
            differing.push(case.number());
        }
    }
    println!("{} scenarios, other segments in {differing:?}", sample.len());
    Ok(if differing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether both engines send the same segments, in one attempt of a few: a host that is late decides otherwise, and
/// the simulator's hosts never are.
fn has_same_segments(case: &Case) -> Result<bool, String> {
    for _ in 0..ATTEMPTS {
        let outcome = compare(case, 1)?;
        println!("{}", outcome.line());
        if outcome.same_segments() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn run_all(file: Option<&str>) -> Result<ExitCode, String> {
    let outcomes = run(&cases::all(), RUNS)?;
    if let Some(file) = file {
        let text = outcome::record(&outcomes);
        std::fs::write(file, text).map_err(|error| format!("cannot write {file}: {error}"))?;
    }
    let count =
        |predicate: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| predicate(outcome)).count();
    let (total, same, in_time) = (outcomes.len(), count(Outcome::same_segments), count(Outcome::is_in_time));
    println!("{total} scenarios: {same} with the same segments, {in_time} in time");
    let suffices = |matching: usize| matching * 100 >= total * MIN_PERCENT;
    Ok(if suffices(same) && suffices(in_time) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs each case, and prints its outcome.
fn run(cases: &[Case], runs: u32) -> Result<Vec<Outcome>, String> {
    let mut outcomes = Vec::new();
    for case in cases {
        let outcome = compare(case, runs)?;
        println!("{}", outcome.line());
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn trace(number: &str) -> Result<ExitCode, String> {
    let cases = cases::all();
    let case = number.parse().ok().and_then(|number: usize| cases.get(number));
    let case = case.ok_or_else(|| format!("no scenario {number}; there are 0 to {}", cases.len() - 1))?;
    let outcome = compare(case, 1)?;
    println!("{}", outcome.line());
    for (engine, packets) in [("kernel", &outcome.kernel.packets), ("simulator", &outcome.simulator.packets)]
    {
        println!("{engine}");
        for packet in packets {
            println!("{packet}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
