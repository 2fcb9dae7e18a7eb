//! `roundtrip simulate`: what the packets do, in virtual time.

use scenario::spec::{Defaults, Key, Plan};

use crate::ask;
use crate::cli::Simulate;
use crate::engine::{self, simulate};
use crate::failure::Failure;
use crate::file;
use crate::output::table::{self, Layout};
use crate::show::Results;

/// Prints a row for each scenario.
pub fn run(arguments: &Simulate) -> Result<(), Failure> {
    let Simulate { scenario, runs, pcap, output } = arguments;
    let runs: Vec<(Key, &str)> = runs.iter().map(|runs| (Key::Runs, runs.as_str())).collect();
    let plan = ask::plan(scenario, &runs, &Defaults::laboratory())?;
    for path in output.report.iter().chain(pcap) {
        file::check(path)?;
    }
    let outcomes = simulate::outcomes(&plan);
    if let Some(reason) = engine::nothing(&outcomes) {
        return Err(Failure::Value(reason));
    }
    if let Some(path) = pcap {
        file::write_with(path, |out| capture(&plan, out))?;
    }
    Results { outcomes, layout: Layout::Rows, provenance: simulate::provenance(&plan) }.show(output)
}

/// The packets of each scenario's first run: a section of its own in the one file, its comment says whose. What cannot
/// be simulated has none.
fn capture(plan: &Plan, mut out: &mut dyn std::io::Write) -> std::io::Result<()> {
    for scenario in &plan.scenarios {
        if let Ok((_, fetched)) = simulate::first_run(scenario) {
            let title = format!("{}, {}", scenario.protocol.name(), table::title(scenario));
            ::simulate::capture::write(&fetched.records, &mut out, &title)?;
        }
    }
    Ok(())
}
