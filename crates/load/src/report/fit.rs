//! Goodness of fit of a plan, and of the log whose distributions it uses, as a table, JSON and CSV.
//!
//! The comparison itself is in `workload::fit`.

use std::path::{Path, PathBuf};

use quantity::names::shown;
use render::output::grid::{Column, Grid, hidden, wrap_lines};
use render::output::{csv, number};
use render::terminal::Terminal;
use serde::Serialize;
use wire::Bytes;
use workload::fit::Fit;
use workload::plan::{Plan, PlanSpec};
use workload::schedule::{Arrivals, Schedule};
use workload::site::Site;

/// A distribution of the plan, as JSON and CSV show it.
#[derive(Serialize)]
pub struct DistributionRow<'a> {
    /// Whether these are a log's values, from which the distribution was estimated, or the plan's, which were sampled from it.
    of: &'static str,
    what: &'static str,
    #[serde(rename = "asked")]
    expected: &'a str,
    values: usize,
    median_asked: f64,
    median: f64,
    p99_asked: f64,
    p99: f64,
    distance: f64,
    likelihood: Option<f64>,
}

/// The rows of a log's distributions, then those of a plan.
pub fn rows<'a>(site: Option<&'a Site>, plan: &'a [Fit]) -> Vec<DistributionRow<'a>> {
    let log = site.map_or(&[][..], |site| &site.fits);
    log.iter().map(|fit| row("log", fit)).chain(plan.iter().map(|fit| row("plan", fit))).collect()
}

fn row<'a>(of: &'static str, fit: &'a Fit) -> DistributionRow<'a> {
    let Fit { what, expected, count, median, high, distance, likelihood } = fit;
    let ((median_asked, median), (p99_asked, p99)) = (*median, *high);
    let (distance, likelihood) = (*distance, *likelihood);
    DistributionRow {
        of,
        what,
        expected,
        values: *count,
        median_asked,
        median,
        p99_asked,
        p99,
        distance,
        likelihood,
    }
}

/// The rows as comma-separated values.
pub fn lines(rows: &[DistributionRow<'_>]) -> String {
    let columns = [
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
    let line = |row: &DistributionRow<'_>| {
        let DistributionRow {
            of,
            what,
            expected,
            values,
            median_asked,
            median,
            p99_asked,
            p99,
            distance,
            likelihood,
        } = row;
        [
            (*of).to_owned(),
            (*what).to_owned(),
            (*expected).to_owned(),
            values.to_string(),
            median_asked.to_string(),
            median.to_string(),
            p99_asked.to_string(),
            p99.to_string(),
            distance.to_string(),
            likelihood.map(|likelihood| likelihood.to_string()).unwrap_or_default(),
        ]
    };
    csv::table(columns, rows.iter().map(line))
}

/// Maximum size of a response in one datagram, in the papers' profile.
const DATAGRAM: Bytes = Bytes::new(1_460);

/// A plan's summary and its goodness of fit; `path` is that of its file.
pub fn table(plan: &Plan, fits: &[Fit], path: Option<&Path>, terminal: Terminal) -> String {
    let PlanSpec { set, files: _, cap, schedule, duration, conditional, seed } = &plan.spec;
    let counted = |count: usize, what| number::counted(count as f64, what);
    let workload = match schedule {
        Schedule::Users(users) => format!("{} for {duration}", number::counted(f64::from(*users), "user")),
        Schedule::Replay(speed) => format!("an access log at {speed} times its speed, {duration} long"),
        Schedule::Rates(_, Arrivals::Constant) => format!("requests at a constant rate for {duration}"),
        Schedule::Rates(_, Arrivals::Poisson) => format!("Poisson requests for {duration}"),
    };
    let bytes: u64 = plan.files.iter().sum();
    let mut text = format!(
        "{}, {workload}, seed {}: {}, {} for {} of {} in all\n",
        set.name(),
        seed.get(),
        counted(plan.pages.len(), "page"),
        counted(plan.requests(), "request"),
        counted(plan.files.len(), "file"),
        number::counted(bytes as f64, "byte"),
    );
    let max = format!("{} bytes", number::count(cap.get() as f64));
    text += &match plan.capped_files() {
        0 => format!("no file reaches the cap of {max}"),
        capped => format!("{} cut to {max}", number::counted(capped as f64, "file")),
    };
    text += &format!(
        "; {:.1}% of the responses fit one datagram of {} bytes or are 304 ({conditional})\n\n",
        100.0 * plan.share_of_small(DATAGRAM),
        number::count(DATAGRAM.get() as f64)
    );
    let mut remarks =
        "\nD is the Kolmogorov-Smirnov distance: the largest difference between the two cumulative \
                       distributions.\nThe likelihood is its p-value, for independent values.\n"
            .to_owned();
    if let Some(path) = path {
        remarks += &format!("The plan is in {}.\n", shown(path));
    }
    let (grid, width) = (grid("distribution", "expected", fits), terminal.prose_width());
    wrap_lines(&text, width)
        + &grid.render(terminal)
        + &wrap_lines(&remarks, width)
        + &hidden(&grid.hidden(terminal), "json", terminal)
}

/// Summary of the log whose distributions a plan uses.
pub fn of_log(logs: &[PathBuf], site: &Site, terminal: Terminal) -> String {
    let Site { set: _, conditional, files, requests, users, duration, fits, notes: _ } = site;
    let names: Vec<String> = logs.iter().map(|log| shown(log).to_string()).collect();
    let counted = |count: usize, what| number::counted(count as f64, what);
    let facts = format!(
        "{}: {} of {} for {} in {duration}, {:.1}% of them answered with 304\n\n",
        names.join(", "),
        counted(*requests, "request"),
        counted(*users, "user"),
        number::counted(f64::from(*files), "file"),
        100.0 * conditional.get(),
    );
    let remark = "\nParameters are fitted to this log (maximum likelihood), so the p-value is too high; D is not affected.\n\n";
    let width = terminal.prose_width();
    wrap_lines(&facts, width)
        + &grid("fitted distribution", "fitted", fits).render(terminal)
        + &wrap_lines(remark, width)
}

fn grid(distribution: &'static str, short: &'static str, fits: &[Fit]) -> Grid {
    let columns = vec![
        Column::name(["", "quantity"]),
        Column::text(["", distribution], 1),
        Column::number(["", "values"], 3),
        Column::number(["median", short], 2),
        Column::number(["", "actual"], 2),
        Column::number(["99%", short], 4),
        Column::number(["", "actual"], 4),
        Column::number(["distance", "D"], 0),
        Column::number(["likeli-", "hood"], 0),
    ];
    let row = |fit: &Fit| {
        let Fit { what, expected, count: values, median, high, distance, likelihood } = fit;
        let numbers = [median.0, median.1, high.0, high.1].map(number::significant);
        let mut row = vec![(*what).to_owned(), expected.clone(), number::count(*values as f64)];
        row.extend(numbers);
        row.push(format!("{distance:.3}"));
        row.push(likelihood.map_or(String::new(), |likelihood| format!("{likelihood:.2}")));
        row
    };
    Grid { columns, rows: fits.iter().map(row).collect() }
}
