//! Access logs read for a plan: one that does again what they have, or one by their laws.
//!
//! Not the plan: `scenario::surge` makes it of records. Not the simulation of `connections` either, which needs no
//! more than a window of a log at a time.

use std::io::{self, Read};
use std::path::PathBuf;

use scenario::access_log::{Reader, Who, recognise};
use scenario::surge::lines::Lines;
use scenario::surge::plan::{MOST_REQUESTS, Unfit};

use crate::connections::blocks::Blocks;
use crate::connections::input::{Input, named};
use crate::connections::line_up::BEGINNING;
use crate::failure::Failure;

/// So much is read at once.
const BLOCK: usize = 1 << 20;

/// The requests of these logs.
pub fn read(logs: &[PathBuf]) -> Result<Lines, Failure> {
    let mut lines = Lines::default();
    for input in named(logs)? {
        read_one(&input, &mut lines)?;
    }
    Ok(lines)
}

fn read_one(input: &Input, lines: &mut Lines) -> Result<(), Failure> {
    let unreadable = |error: io::Error| Failure::Value(format!("cannot read {}: {error}", input.name()));
    let mut bytes = input.open().map_err(unreadable)?;
    let mut beginning = Vec::new();
    bytes.by_ref().take(BEGINNING).read_to_end(&mut beginning).map_err(unreadable)?;
    let who = Who::default();
    let format = recognise(&beginning, &who).ok_or_else(|| {
        Failure::Value(format!(
            "{} is no access log that is known; `roundtrip connections` lists which are",
            input.name()
        ))
    })?;
    let mut reader = Reader::new(format, who);
    let mut blocks =
        Blocks::new(Box::new(move || Ok(Box::new(io::Cursor::new(beginning).chain(bytes)))), BLOCK);
    while let Some(block) = blocks.next().map_err(unreadable)? {
        reader.read_targets(&block, |record, target| lines.push(&record, target));
        if lines.len() as f64 > MOST_REQUESTS {
            return Err(Failure::Value(Unfit::TooManyRequests(lines.len() as f64).to_string()));
        }
    }
    Ok(())
}
