//! A plan as a file, and its goodness of fit as a table, JSON and CSV.
//!
//! Not the plan itself: `workload` generates and reads it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use load::needs::free_memory;
use render::output::grid::{Column, Grid};
use render::output::{csv, number};
use serde::Serialize;
use wire::{Bytes, Seed};
use workload::fit::Fit;
use workload::plan::{Plan, Unfit, Wanted};
use workload::schedule::{Arrivals, Schedule};
use workload::site::Site;
use workload::text;

use crate::failure::{Failure, shown};

/// The plan of the default flags and this seed.
pub fn usual(seed: Seed) -> Result<Plan, Failure> {
    drawn(Wanted { seed, ..Wanted::default() })
}

/// The plan that these options specify.
pub fn drawn(wanted: Wanted) -> Result<Plan, Failure> {
    let unfit = |unfit: Unfit| Failure::Value(unfit.to_string());
    check_memory("drawing the plan", wanted.memory().map_err(unfit)?.get())?;
    wanted.plan().map_err(unfit)
}

/// Writes the plan to a path, if the disk has space for it.
pub fn write(plan: &Plan, path: &Path) -> Result<(), Failure> {
    let mut length = Length(0);
    text::write(plan, &mut length).expect("counting does not fail");
    let Length(length) = length;
    crate::file::check_room(path, length, "the plan", "plan a shorter time, fewer users or a lower rate")?;
    crate::file::write_with(path, |out| {
        let mut text = Through { out, failed: None };
        let written = text::write(plan, &mut text);
        text.failed.map_or(written.map_err(|_| io::ErrorKind::Other.into()), Err)
    })
}

/// Fingerprint of a plan: FNV-1a of 64 bits, which detects accidental differences, not malicious ones.
pub fn mark(plan: &Plan) -> String {
    let mut mark = Mark::default();
    text::write(plan, &mut mark).expect("a number takes whatever is written");
    mark.hex()
}

/// The same for a text.
pub fn mark_of(text: fmt::Arguments<'_>) -> String {
    let mut mark = Mark::default();
    mark.write_fmt(text).expect("a number takes whatever is written");
    mark.hex()
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
        "{what} needs about {} MB of memory and {} MB are there; plan a shorter time, fewer users or files, or a lower rate",
        needed.div_ceil(MEGA),
        there / MEGA
    )))
}

/// Counts bytes without storing them.
struct Length(u64);

impl fmt::Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Self(length) = self;
        *length += text.len() as u64;
        Ok(())
    }
}

struct Mark(u64);

impl Default for Mark {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Mark {
    fn hex(&self) -> String {
        let Self(mark) = self;
        format!("{mark:016x}")
    }
}

impl fmt::Write for Mark {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Self(hash) = self;
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        *hash = text.bytes().fold(*hash, step);
        Ok(())
    }
}

/// A text sink over a file, with the error of a failed write.
struct Through<'a> {
    out: &'a mut dyn io::Write,
    failed: Option<io::Error>,
}

impl fmt::Write for Through<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.failed = Some(error);
            fmt::Error
        })
    }
}

/// A distribution of the plan, as JSON and CSV show it.
#[derive(Serialize)]
pub struct Line<'a> {
    /// Whether these are a log's values, from which the distribution was estimated, or the plan's, which were sampled from it.
    of: &'static str,
    what: &'static str,
    asked: &'a str,
    values: usize,
    median_asked: f64,
    median: f64,
    p99_asked: f64,
    p99: f64,
    distance: f64,
    likelihood: Option<f64>,
}

pub fn rows<'a>(site: Option<&'a Site>, plan: &'a [Fit]) -> Vec<Line<'a>> {
    let log = site.map_or(&[][..], |site| &site.fits);
    log.iter().map(|fit| row("log", fit)).chain(plan.iter().map(|fit| row("plan", fit))).collect()
}

fn row<'a>(of: &'static str, fit: &'a Fit) -> Line<'a> {
    let Fit { what, asked, count, median, high, distance, likelihood } = fit;
    let ((median_asked, median), (p99_asked, p99)) = (*median, *high);
    let (distance, likelihood) = (*distance, *likelihood);
    Line { of, what, asked, values: *count, median_asked, median, p99_asked, p99, distance, likelihood }
}

pub fn lines(rows: &[Line<'_>]) -> String {
    let heading = [
        "of",
        "what",
        "asked",
        "values",
        "median_asked",
        "median",
        "p99_asked",
        "p99",
        "distance",
        "likelihood",
    ];
    let line = |row: &Line<'_>| {
        let Line { of, what, asked, values, median_asked, median, p99_asked, p99, distance, likelihood } =
            row;
        let numbers = [median_asked, median, p99_asked, p99, distance].map(f64::to_string);
        let words = [(*of).to_owned(), (*what).to_owned(), (*asked).to_owned(), values.to_string()];
        let last = likelihood.map_or(String::new(), |likelihood| likelihood.to_string());
        csv::line(words.into_iter().chain(numbers).chain([last]))
    };
    csv::line(heading.map(str::to_owned)) + &rows.iter().map(line).collect::<String>()
}

/// Maximum size of a response in one datagram, in the papers' profile.
const DATAGRAM: Bytes = Bytes::new(1_460);

pub fn table(plan: &Plan, fits: &[Fit], path: Option<&Path>) -> String {
    let Wanted { set, files: _, cap, schedule, lasts, conditional, seed } = &plan.wanted;
    let count = |count: usize| number::count(count as f64);
    let who = match schedule {
        Schedule::Users(users) => format!("{} for {lasts}", counted(*users, "user")),
        Schedule::Replay(speed) => format!("an access log at {speed} times its speed, {lasts} long"),
        Schedule::Rates(_, Arrivals::Constant) => format!("requests at a constant rate for {lasts}"),
        Schedule::Rates(_, Arrivals::Poisson) => format!("Poisson requests for {lasts}"),
    };
    let bytes: u64 = plan.files.iter().sum();
    let mut text = format!(
        "{}, {who}, seed {}: {} pages, {} requests for {} files of {} bytes in all\n",
        set.name(),
        seed.get(),
        count(plan.pages.len()),
        count(plan.requests()),
        count(plan.files.len()),
        number::count(bytes as f64),
    );
    let most = format!("{} bytes", number::count(cap.get() as f64));
    text += &match plan.capped() {
        0 => format!("no file reaches the cap of {most}"),
        capped => format!("{} cut to {most}", counted(u32::try_from(capped).unwrap_or(u32::MAX), "file")),
    };
    text += &format!(
        "; {:.1}% of the responses fit one datagram of {} bytes or are 304 ({conditional})\n\n",
        100.0 * plan.small(DATAGRAM),
        number::count(DATAGRAM.get() as f64)
    );
    text += &grid("distribution", "expected", fits);
    text += "\nD is the Kolmogorov-Smirnov distance: the largest difference between the two cumulative distributions.\n\
             The likelihood is its p-value, for independent values.\n";
    if let Some(path) = path {
        text += &format!("The plan is in {}.\n", shown(path));
    }
    text
}

/// Summary of the log whose distributions a plan uses.
pub fn of_log(logs: &[PathBuf], site: &Site) -> String {
    let Site { set: _, conditional, files, requests, users, lasts, fits, notes: _ } = site;
    let names: Vec<String> = logs.iter().map(|log| shown(log).to_string()).collect();
    let count = |count: usize| number::count(count as f64);
    format!(
        "{}: {} requests of {} users for {} files in {lasts}, {:.1}% of them answered with 304\n\n{}\nParameters are \
         fitted to this log (maximum likelihood), so the p-value is too high; D is not affected.\n\n",
        names.join(", "),
        count(*requests),
        count(*users),
        number::count(f64::from(*files)),
        100.0 * conditional.get(),
        grid("fitted distribution", "fitted", fits)
    )
}

fn grid(law: &'static str, short: &'static str, fits: &[Fit]) -> String {
    let columns = vec![
        Column::name(["", "quantity"]),
        Column::text(["", law], 1),
        Column::number(["", "values"], 3),
        Column::number(["median", short], 2),
        Column::number(["", "actual"], 2),
        Column::number(["99%", short], 4),
        Column::number(["", "actual"], 4),
        Column::number(["distance", "D"], 0),
        Column::number(["likeli-", "hood"], 0),
    ];
    let row = |fit: &Fit| {
        let Fit { what, asked, count: values, median, high, distance, likelihood } = fit;
        let numbers = [median.0, median.1, high.0, high.1].map(number::significant);
        let mut row = vec![(*what).to_owned(), asked.clone(), number::count(*values as f64)];
        row.extend(numbers);
        row.push(format!("{distance:.3}"));
        row.push(likelihood.map_or(String::new(), |likelihood| format!("{likelihood:.2}")));
        row
    };
    Grid { columns, rows: fits.iter().map(row).collect() }.render(crate::terminal::of_stdout())
}

fn counted(count: u32, what: &str) -> String {
    format!("{} {what}{}", number::count(f64::from(count)), if count == 1 { "" } else { "s" })
}
