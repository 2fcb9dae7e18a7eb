//! Access logs read for a plan: one that does again what they have, or one by their laws.
//!
//! Not the plan: `scenario::surge` makes it of records. Not the simulation of `connections` either, which needs no
//! more than a window of a log at a time.

use std::io::{self, Read};
use std::path::PathBuf;

use columns::Named;
use scenario::access_log::{Reader, Who, recognise};
use scenario::surge::lines::Lines;
use scenario::surge::plan::Unfit;

use crate::connections::blocks::Blocks;
use crate::connections::input::{Input, named};
use crate::connections::line_up::BEGINNING;
use crate::connections::table_file::{Kind, Place, batches};
use crate::failure::Failure;
use crate::output::number;

/// So much is read at once.
const BLOCK: usize = 1 << 20;

/// How many requests are read.
#[derive(Clone, Copy, Debug)]
pub enum Most {
    /// All, and more than so many are refused.
    AllOf(f64),
    /// The first so many.
    FirstOf(usize),
}

/// The requests of these logs; what is not among them is said.
pub fn read(logs: &[PathBuf], most: Most) -> Result<Lines, Failure> {
    let mut lines = Lines::default();
    let inputs = named(logs)?;
    let mut is_all = true;
    for input in &inputs {
        is_all = is_all && read_one(input, &mut lines, most)?;
    }
    if !is_all {
        eprintln!("only the first {} requests of the log are read", number::count(lines.len() as f64));
    }
    if lines.left_out > 0 {
        eprintln!(
            "{} requests of the log are left out: their answers were neither whole nor unchanged, or have no size",
            lines.left_out
        );
    }
    Ok(lines)
}

/// Reads a log, and gives whether that was all of it.
fn read_one(input: &Input, lines: &mut Lines, most: Most) -> Result<bool, Failure> {
    let unreadable = |error: io::Error| Failure::Value(format!("cannot read {}: {error}", input.name()));
    let mut bytes = input.open().map_err(unreadable)?;
    let mut beginning = Vec::new();
    bytes.by_ref().take(BEGINNING).read_to_end(&mut beginning).map_err(unreadable)?;
    let who = Who::default();
    if let Some(kind) = Kind::of(&beginning) {
        let place = match input {
            Input::File(path) => Place::File(path.clone()),
            Input::Object(object) => Place::Object(object.clone()),
            Input::Stdin => {
                bytes.read_to_end(&mut beginning).map_err(unreadable)?;
                Place::Memory(beginning.into())
            }
        };
        let table =
            batches(kind, place, &Named::default()).map_err(|error| unreadable(io::Error::other(error)))?;
        for batch in table.batches {
            let mut push = |batch| table.columns.read(&batch, &who, |record| lines.push(&record, None));
            batch.and_then(&mut push).map_err(|error| unreadable(io::Error::other(error)))?;
            if is_full(lines, most)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
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
        if is_full(lines, most)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether there are as many as are wanted; more than are allowed are refused.
fn is_full(lines: &mut Lines, most: Most) -> Result<bool, Failure> {
    match most {
        Most::AllOf(most) if lines.len() as f64 > most => {
            Err(Failure::Value(Unfit::TooManyRequests(lines.len() as f64).to_string()))
        }
        Most::FirstOf(most) if lines.len() >= most => {
            lines.cut(most);
            Ok(true)
        }
        Most::AllOf(_) | Most::FirstOf(_) => Ok(false),
    }
}
