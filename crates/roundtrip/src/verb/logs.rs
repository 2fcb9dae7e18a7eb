//! `roundtrip logs synthesize`: a synthetic access log.

use std::path::Path;

use accesslog_io::input::Input;
use quantity::names::Quoted;
use workload::logs::curve::{Curve, CurveError};
use workload::logs::synthesize::{SynthesisOptions, write};

use crate::cli::connections::{Logs, LogsVerb, Synthesize};
use crate::failure::Failure;
use crate::file;

/// Writes the log.
pub fn run(flags: &Logs) -> Result<(), Failure> {
    match &flags.verb {
        LogsVerb::Synthesize(flags) => synthesize(flags),
    }
}

fn synthesize(flags: &Synthesize) -> Result<(), Failure> {
    let Synthesize { requests, curve, clients, seed, output } = flags;
    let seed = seed.as_deref().map(quantity::seed).transpose();
    let options = SynthesisOptions {
        curve: curve.as_deref().map_or_else(|| Ok(Curve::day()), read_curve)?,
        requests: number("requests", requests, MAX_REQUESTS)?,
        clients: u32::try_from(number("clients", clients, MAX_CLIENTS)?).unwrap_or(u32::MAX),
        seed: seed.map_err(Failure::of_flag("seed"))?.unwrap_or_default(),
    };
    match output {
        Some(path) => file::write_with(path, |out| write(&options, out)),
        None => write(&options, &mut std::io::stdout().lock()).map_err(Failure::Stdout),
    }
}

fn read_curve(path: &Path) -> Result<Curve, Failure> {
    let unreadable = |error| Failure::Read { path: path.to_owned(), error };
    let bytes = Input::File(path.to_owned()).open().map_err(unreadable)?;
    Curve::read(bytes).map_err(|error| match error {
        CurveError::Io(error) => unreadable(error),
        CurveError::Line(_) => Failure::Value(format!("{}, {error}", path.display())),
        CurveError::Empty => Failure::Value(format!("{}: {error}", path.display())),
    })
}

/// Maximum number of requests: a thousand times those of WorldCup98.
const MAX_REQUESTS: u64 = 1_000_000_000_000;
/// Maximum number of clients: the addresses of 10.0.0.0/8.
const MAX_CLIENTS: u64 = 1 << 24;

fn number(flag: &str, text: &str, max: u64) -> Result<u64, Failure> {
    let number = text.parse().ok().filter(|number| (1..=max).contains(number));
    number
        .ok_or_else(|| Failure::Value(format!("--{flag}: {} is out of range; give 1 to {max}", Quoted(text))))
}
