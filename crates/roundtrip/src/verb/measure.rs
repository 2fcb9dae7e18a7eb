//! `roundtrip measure`: page loads by this host's kernel over an emulated link.

use std::io;

use lab::table::Layout;
use lab::{description, outcome, setting};
use measure::peers::{ClientProgram, Peers, ServerProgram};
use quantity::names::UnknownName;
use scenario::spec::{Defaults, Key};
use scenario::{Engine, Scenario};
use testbed::emulator::Capture;
use trace::har;

use crate::cli::Measure;
use crate::failure::Failure;
use crate::file;
use crate::grid_run;
use crate::laboratory::{self, Measurements, PacketSink};
use crate::plan_flags;
use crate::show::Results;

/// Prints a row for each scenario.
pub fn run(arguments: &Measure) -> Result<(), Failure> {
    let Measure { scenario, runs, server, client, har, pcap, output, into, advanced } = arguments;
    let unknown = |flag: &str, unknown: UnknownName| Failure::Value(format!("--{flag}: {unknown}"));
    let peers = Peers {
        server: ServerProgram::named(server).map_err(|error| unknown("server", error))?,
        client: ClientProgram::named(client).map_err(|error| unknown("client", error))?,
    };
    let runs: Vec<(Key, &str)> = runs.iter().map(|runs| (Key::Runs, runs.as_str())).collect();
    let grid = plan_flags::grid(scenario, advanced, &runs, &Defaults::laboratory())?;
    if let Some(path) = &into.into {
        laboratory::available()?;
        return grid_run::append(path, grid, &[Engine::Measure], 1, |plan| {
            let Measurements { outcomes, failure, .. } = laboratory::outcomes(plan, peers, None);
            failure.map_or(Ok(outcomes), |error| Err(error.into()))
        });
    }
    let plan = plan_flags::all_in_memory(grid)?;
    file::check(output.report.iter().chain(pcap).chain(har))?;
    laboratory::available()?;

    let mut captures = Vec::new();
    let mut append =
        |scenario: &Scenario, capture: &Capture| append_capture(&mut captures, scenario, capture);
    let sink = pcap.is_some().then_some(&mut append as &mut PacketSink<'_>);
    let Measurements { outcomes, hosts: _, visits, recordings, provenance, failure } =
        laboratory::outcomes(&plan, peers, sink);
    if let Some(reason) = outcome::nothing(&outcomes) {
        return Err(Failure::Laboratory(reason));
    }
    let saved = pcap.as_ref().map_or(Ok(()), |pcap| file::write(pcap, &captures));
    if let Some(path) = har {
        file::write(path, har::joined(&visits, recordings).as_bytes())?;
    }
    let settings = setting::settings(&plan.grid);
    Results { outcomes, settings, layout: Layout::Rows, provenance }.show(output)?;
    failure.map_or(saved, |error| Err(error.into()))
}

/// Maximum bytes of all captures of a command; later ones are left out.
const MAX_CAPTURE_BYTES: usize = 256 << 20;

/// Appends the packets of one scenario as a section of the file, named by its comment.
fn append_capture(captures: &mut Vec<u8>, scenario: &Scenario, capture: &Capture) -> io::Result<()> {
    let title = description::full_title(scenario);
    let (before, missed) = (captures.len(), capture.missed());
    capture.write(&mut *captures, &title)?;
    if captures.len() > MAX_CAPTURE_BYTES {
        captures.truncate(before);
        eprintln!("roundtrip: the capture is full and lacks {title}; name fewer scenarios");
    } else if missed > 0 {
        eprintln!("roundtrip: the capture lacks the last {missed} packets of {title}, which were too many");
    }
    Ok(())
}
