//! `roundtrip measure`: what this machine's kernel does over an emulated link.

use std::path::{Path, PathBuf};

use ::measure::emulator::Capture;
use scenario::Scenario;
use scenario::spec::{Defaults, Key};

use crate::ask;
use crate::cli::Measure;
use crate::engine;
use crate::engine::measure::{self, Keep, Measurements};
use crate::failure::{Failure, shown};
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

    let several = plan.scenarios.len() > 1;
    let mut keep = pcap.as_ref().map(|pcap| {
        move |scenario: &Scenario, capture: &Capture| {
            let path = if several { named(pcap, scenario) } else { pcap.clone() };
            save(capture, scenario, &path)
        }
    });
    let keep = keep.as_mut().map(|keep| keep as &mut Keep<'_>);
    let Measurements { outcomes, provenance, failure } = measure::outcomes(&plan, keep);
    if let Some(reason) = engine::nothing(&outcomes) {
        return Err(Failure::Laboratory(reason));
    }
    Results { outcomes, layout: Layout::Rows, provenance }.show(output)?;
    failure.map_or(Ok(()), Err)
}

/// Beside the file that was named, one for each of several scenarios.
fn named(pcap: &Path, scenario: &Scenario) -> PathBuf {
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
            shown(path),
            capture.missed()
        );
    }
    Ok(())
}
