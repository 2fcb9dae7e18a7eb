//! A plan as a file, and whether memory and disk have space for it.
//!
//! Not the plan itself: `workload` generates and reads it.

use std::path::Path;
use std::{fmt, fs, io};

use load::resources::free_memory;
use wire::Seed;
use workload::plan::{Plan, PlanError, PlanSpec};
use workload::text;

use crate::failure::{Failure, shown};

/// The plan of the default flags and this seed.
pub fn default_plan(seed: Seed) -> Result<Plan, Failure> {
    generate(PlanSpec { seed, ..PlanSpec::default() })
}

/// The plan that these options specify.
pub fn generate(wanted: PlanSpec) -> Result<Plan, Failure> {
    let unfit = |unfit: PlanError| Failure::Value(unfit.to_string());
    check_memory("drawing the plan", wanted.memory().map_err(unfit)?.get())?;
    wanted.plan().map_err(unfit)
}

/// Writes the plan to a path, if the disk has space for it.
pub fn write(plan: &Plan, path: &Path) -> Result<(), Failure> {
    let mut length = ByteCounter(0);
    text::write(plan, &mut length).expect("counting does not fail");
    let ByteCounter(length) = length;
    crate::file::check_space(path, length, "the plan", "plan a shorter time, fewer users or a lower rate")?;
    crate::file::write_with(path, |out| {
        let mut text = FileSink { out, failed: None };
        let written = text::write(plan, &mut text);
        text.failed.map_or(written.map_err(|_| io::ErrorKind::Other.into()), Err)
    })
}

/// Refuses an open schedule with more requests than fit into memory.
pub fn check_requests(due: f64) -> Result<(), Failure> {
    // Positive, and below the maximum of a plan.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let due = due as u64;
    check_memory("the schedule", due.saturating_mul(OF_REQUEST))
}

/// Upper bound of the memory for each request of a schedule, in bytes.
const OF_REQUEST: u64 = 128;

/// The plan in a file.
pub fn read(path: &Path) -> Result<Plan, Failure> {
    let unreadable = |error| Failure::Read { path: path.to_owned(), error };
    let length = fs::metadata(path).map_err(unreadable)?.len();
    check_memory("reading the plan", length.saturating_mul(OF_TEXT))?;
    let text = fs::read_to_string(path).map_err(unreadable)?;
    text::read(&text).map_err(|error| Failure::Value(format!("{}: {error}", shown(path))))
}

/// Upper bound of the memory for each byte of a plan's text, in bytes.
const OF_TEXT: u64 = 10;

/// Refuses a need of more memory than is available, before it is allocated.
fn check_memory(what: &str, needed: u64) -> Result<(), Failure> {
    const MEGA: u64 = 1_000_000;
    let there = free_memory();
    if needed <= there {
        return Ok(());
    }
    Err(Failure::Value(format!(
        "{what} needs about {} MB of memory and {} MB are free; plan a shorter time, fewer users or files, or a lower rate",
        needed.div_ceil(MEGA),
        there / MEGA
    )))
}

/// Counts bytes without storing them.
struct ByteCounter(u64);

impl fmt::Write for ByteCounter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Self(length) = self;
        *length += text.len() as u64;
        Ok(())
    }
}

/// A text sink over a file, with the error of a failed write.
struct FileSink<'a> {
    out: &'a mut dyn io::Write,
    failed: Option<io::Error>,
}

impl fmt::Write for FileSink<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.failed = Some(error);
            fmt::Error
        })
    }
}
