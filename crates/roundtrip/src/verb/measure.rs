//! `roundtrip measure`: page loads by this machine's kernel over an emulated link.

use std::io;

use ::measure::peers::{ClientProgram, Peers, ServerProgram};
use quantity::names::Unknown;
use render::output::table::{self, Layout};
use reproduce::engine;
use reproduce::engine::measure::{self, Keep, Measurements};
use scenario::Scenario;
use scenario::spec::{Defaults, Key};
use testbed::emulator::Capture;
use trace::har;

use crate::ask;
use crate::cli::Measure;
use crate::failure::Failure;
use crate::file;
use crate::show::Results;

/// Prints a row for each scenario.
pub fn run(arguments: &Measure) -> Result<(), Failure> {
    let Measure { scenario, runs, server, client, har, pcap, output, advanced } = arguments;
    let unknown = |flag: &str, unknown: Unknown| Failure::Value(format!("--{flag}: {unknown}"));
    let peers = Peers {
        server: ServerProgram::named(server).map_err(|error| unknown("server", error))?,
        client: ClientProgram::named(client).map_err(|error| unknown("client", error))?,
    };
    let runs: Vec<(Key, &str)> = runs.iter().map(|runs| (Key::Runs, runs.as_str())).collect();
    let plan = ask::plan(scenario, advanced, &runs, &Defaults::laboratory())?;
    for path in output.report.iter().chain(pcap).chain(har) {
        file::check(path)?;
    }
    measure::available()?;

    let mut kept = Vec::new();
    let mut keep = |scenario: &Scenario, capture: &Capture| keep(&mut kept, scenario, capture);
    let keep = pcap.is_some().then_some(&mut keep as &mut Keep<'_>);
    let Measurements { outcomes, hosts: _, visits, provenance, failure } =
        measure::outcomes(&plan, peers, keep);
    if let Some(reason) = engine::nothing(&outcomes) {
        return Err(Failure::Laboratory(reason));
    }
    let saved = pcap.as_ref().map_or(Ok(()), |pcap| file::write(pcap, &kept));
    if let Some(path) = har {
        file::write(path, har::file(&visits).as_bytes())?;
    }
    Results { outcomes, layout: Layout::Rows, provenance }.show(output)?;
    failure.map_or(saved, |error| Err(error.into()))
}

/// Maximum bytes of all captures of a command: later ones are left out.
const KEPT_MOST: usize = 256 << 20;

/// Appends the packets of one scenario: a section of its own in the one file, named by its comment.
fn keep(kept: &mut Vec<u8>, scenario: &Scenario, capture: &Capture) -> io::Result<()> {
    let title = format!("{}, {}", scenario.protocol.name(), table::title(scenario));
    let before = kept.len();
    capture.write(&mut *kept, &title)?;
    if kept.len() > KEPT_MOST {
        kept.truncate(before);
        eprintln!("roundtrip: the capture is full, and lacks {title}; name fewer scenarios");
    } else if capture.missed() > 0 {
        eprintln!(
            "roundtrip: the capture lacks the last {} packets of {title}, which were too many",
            capture.missed()
        );
    }
    Ok(())
}
