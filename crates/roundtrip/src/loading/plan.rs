//! Plan files, and checks that memory and disk have space for them.
//!
//! `workload` generates and parses plans.

use std::path::Path;
use std::{fmt, fs, io};

use load::resources::free_memory;
use wire::Seed;
use workload::plan::{Plan, PlanError, PlanSpec};
use workload::text;

use crate::failure::{Failure, shown};

/// Generates the plan of the default flags and this seed.
pub fn default_plan(seed: Seed) -> Result<Plan, Failure> {
    generate(PlanSpec { seed, ..PlanSpec::default() })
}

/// Generates the plan that these options specify.
pub fn generate(spec: PlanSpec) -> Result<Plan, Failure> {
    let invalid = |invalid: PlanError| Failure::Value(invalid.to_string());
    check_memory("generating the plan", spec.memory().map_err(invalid)?.get())?;
    spec.plan().map_err(invalid)
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
pub fn check_requests(requests: f64) -> Result<(), Failure> {
    // Positive, and below the maximum of a plan.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let requests = requests as u64;
    check_memory("the schedule", requests.saturating_mul(REQUEST_BYTES))
}

/// Upper bound of the memory for each request of a schedule, in bytes.
const REQUEST_BYTES: u64 = 128;

/// Reads the plan in a file.
pub fn read(path: &Path) -> Result<Plan, Failure> {
    let unreadable = |error| Failure::Read { path: path.to_owned(), error };
    let length = fs::metadata(path).map_err(unreadable)?.len();
    check_memory("reading the plan", length.saturating_mul(BYTES_PER_TEXT_BYTE))?;
    let text = fs::read_to_string(path).map_err(unreadable)?;
    text::read(&text).map_err(|error| Failure::Value(format!("{}: {error}", shown(path))))
}

/// Upper bound of the memory for each byte of a plan's text, in bytes.
const BYTES_PER_TEXT_BYTE: u64 = 10;

/// Refuses to allocate more memory than is free. `activity` begins the error.
fn check_memory(activity: &str, needed: u64) -> Result<(), Failure> {
    const MEGA: u64 = 1_000_000;
    let free = free_memory();
    if needed <= free {
        return Ok(());
    }
    Err(Failure::Value(format!(
        "{activity} needs about {} MB of memory and {} MB are free; plan a shorter time, fewer users or files, or a lower rate",
        needed.div_ceil(MEGA),
        free / MEGA
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
