//! A plan as a file, and how well it fits as a table, JSON and CSV.
//!
//! Not the plan itself: `scenario::surge` draws and reads it.

use std::path::Path;

use scenario::surge::fit::Fit;
use scenario::surge::plan::{Plan, Wanted};
use scenario::surge::schedule::{Arrivals, Schedule};
use scenario::surge::text;
use serde::Serialize;
use wire::{Bytes, Seed};

use crate::failure::{Failure, shown};
use crate::output::grid::{Column, Grid};
use crate::output::{csv, number};
use crate::terminal::Terminal;

/// The plan that comes of no flags but the seed's.
pub fn usual(seed: Seed) -> Result<Plan, Failure> {
    let plan = Wanted { seed, ..Wanted::default() }.plan();
    plan.map_err(|unfit| Failure::Value(unfit.to_string()))
}

/// The plan as a file has it.
pub fn written(plan: &Plan) -> String {
    let mut text = String::new();
    text::write(plan, &mut text).expect("a string takes whatever is written");
    text
}

/// Tells plans apart: FNV-1a of 64 bits, which nobody who means well meets twice.
pub fn mark(plan: &Plan) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", written(plan).bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// The plan of a file.
pub fn read(path: &Path) -> Result<Plan, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::Read { path: path.to_owned(), error })?;
    text::read(&text).map_err(|error| Failure::Value(format!("{}: {error}", shown(path))))
}

/// A law of the plan, as JSON and CSV show it.
#[derive(Serialize)]
pub struct Line<'a> {
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

pub fn rows(fits: &[Fit]) -> Vec<Line<'_>> {
    fits.iter().map(row).collect()
}

fn row(fit: &Fit) -> Line<'_> {
    let Fit { what, asked, count, median, high, distance, likelihood } = fit;
    let ((median_asked, median), (p99_asked, p99)) = (*median, *high);
    let (distance, likelihood) = (*distance, *likelihood);
    Line { what, asked, values: *count, median_asked, median, p99_asked, p99, distance, likelihood }
}

pub fn lines(rows: &[Line<'_>]) -> String {
    let heading =
        ["what", "asked", "values", "median_asked", "median", "p99_asked", "p99", "distance", "likelihood"];
    let line = |row: &Line<'_>| {
        let Line { what, asked, values, median_asked, median, p99_asked, p99, distance, likelihood } = row;
        let numbers = [median_asked, median, p99_asked, p99, distance].map(f64::to_string);
        let words = [(*what).to_owned(), (*asked).to_owned(), values.to_string()];
        let last = likelihood.map_or(String::new(), |likelihood| likelihood.to_string());
        csv::line(words.into_iter().chain(numbers).chain([last]))
    };
    csv::line(heading.map(str::to_owned)) + &rows.iter().map(line).collect::<String>()
}

/// What fits one datagram, in the papers' profile.
const DATAGRAM: Bytes = Bytes::new(1_460);

pub fn table(plan: &Plan, fits: &[Fit], path: Option<&Path>) -> String {
    let Wanted { set, files: _, cap, schedule, lasts, conditional, seed } = &plan.wanted;
    let count = |count: usize| number::count(count as f64);
    let who = match schedule {
        Schedule::Users(users) => format!("{} for {lasts}", counted(*users, "user")),
        Schedule::Replay(speed) => format!("an access log at {speed} times its speed, {lasts} long"),
        Schedule::Rates(_, Arrivals::Constant) => format!("requests at even distances for {lasts}"),
        Schedule::Rates(_, Arrivals::Poisson) => format!("requests by chance for {lasts}"),
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
        "; {:.1}% of the answers fit one datagram of {} bytes or say that nothing has changed ({conditional})\n\n",
        100.0 * plan.small(DATAGRAM),
        number::count(DATAGRAM.get() as f64)
    );
    let columns = vec![
        Column::name(["", "law"]),
        Column::text(["", "asked for"], 1),
        Column::number(["", "values"], 3),
        Column::number(["median", "asked"], 2),
        Column::number(["", "got"], 2),
        Column::number(["99%", "asked"], 4),
        Column::number(["", "got"], 4),
        Column::number(["distance", "D"], 0),
        Column::number(["likeli-", "hood"], 0),
    ];
    let row = |fit: &Fit| {
        let Fit { what, asked, count: values, median, high, distance, likelihood } = fit;
        let numbers = [median.0, median.1, high.0, high.1].map(number::significant);
        let mut row = vec![(*what).to_owned(), asked.clone(), count(*values)];
        row.extend(numbers);
        row.push(format!("{distance:.3}"));
        row.push(likelihood.map_or(String::new(), |likelihood| format!("{likelihood:.2}")));
        row
    };
    text += &Grid { columns, rows: fits.iter().map(row).collect() }.render(Terminal::of_stdout());
    text += "\nD is the largest difference between the shares that are below anything; the likelihood is how often chance\n\
             alone differs by as much, where values do not depend on one another.\n";
    if let Some(path) = path {
        text += &format!("The plan is in {}.\n", shown(path));
    }
    text
}

fn counted(count: u32, what: &str) -> String {
    format!("{} {what}{}", number::count(f64::from(count)), if count == 1 { "" } else { "s" })
}
