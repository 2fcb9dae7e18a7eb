//! `roundtrip measure`: what this machine's kernel does over an emulated link.

use std::path::{Path, PathBuf};

use ::measure::emulator::Capture;
use scenario::Scenario;
use scenario::spec::{Defaults, Key};

use crate::ask;
use crate::cli::Measure;
use crate::engine;
use crate::engine::measure::{self, Measurements};
use crate::failure::Failure;
use crate::file;
use crate::output::table::{self, Layout};
use crate::show::Results;

/// Prints a row for each scenario.
pub fn run(arguments: &Measure) -> Result<(), Failure> {
    let Measure { scenario, runs, pcap, output } = arguments;
    let runs: Vec<(Key, &str)> = runs.iter().map(|runs| (Key::Runs, runs.as_str())).collect();
    let plan = ask::plan(scenario, &runs, &Defaults::laboratory())?;
    for path in output.report.iter().chain(pcap) {
        file::check(path)?;
    }
    measure::available()?;

    let Measurements { outcomes, provenance, captures, failure } = measure::outcomes(&plan, pcap.is_some());
    if let Some(reason) = engine::nothing(&outcomes) {
        return Err(Failure::Laboratory(reason));
    }
    Results { outcomes, layout: Layout::Rows, provenance }.show(output)?;
    for (scenario, capture) in &captures {
        if let Some(pcap) = pcap {
            save(capture, scenario, &named(pcap, scenario, captures.len()))?;
        }
    }
    failure.map_or(Ok(()), |error| Err(error.into()))
}

/// The file that was named; where there are captures of several scenarios, one for each beside it.
fn named(pcap: &Path, scenario: &Scenario, captures: usize) -> PathBuf {
    if captures == 1 {
        return pcap.to_owned();
    }
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let Scenario { network, page, visit: _, protocol, stack, client: _, server: _, runs: _, seed: _ } =
        scenario;
    let name = [&text(pcap.file_stem()), &network.name, &page.name, protocol.name(), stack.name].join("-");
    // Sizes after deflate are written with a slash.
    pcap.with_file_name(format!("{}.{}", name.replace('/', "_"), text(pcap.extension())))
}

fn save(capture: &Capture, scenario: &Scenario, path: &Path) -> Result<(), Failure> {
    let comment = format!("{}, {}", scenario.protocol.name(), table::title(scenario));
    file::write_with(path, |out| capture.write(out, &comment))?;
    if capture.missed() > 0 {
        eprintln!(
            "roundtrip: {} lacks the last {} packets of the run, which were too many",
            path.display(),
            capture.missed()
        );
    }
    Ok(())
}
