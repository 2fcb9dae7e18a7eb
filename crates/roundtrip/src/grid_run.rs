//! Rows of a grid by one engine: printed, appended to a file, or streamed if they are too many for memory.

use std::io::Write;
use std::path::Path;

use lab::setting::{self, Setting};
use lab::table::Layout;
use lab::{Outcome, outcome, row};
use render::provenance::Provenance;
use scenario::spec::plan::MAX_SCENARIOS;
use scenario::spec::{Grid, Plan};
use scenario::{Engine, Scenario};
use sweep::RowFile;

use crate::cli::flags::{Format, GridFlags, IntoFlags, OutputFlags};
use crate::failure::{Failure, shown};
use crate::file::PendingFile;
use crate::plan_flags;
use crate::progress::RowProgress;
use crate::show::Results;

/// A grid, its engine, and the destination of its rows.
#[derive(Debug)]
pub struct GridRun<'a> {
    /// The scenarios.
    pub grid: Grid,
    /// The engine.
    pub engine: Engine,
    /// Format and page.
    pub output: &'a OutputFlags,
    /// File that rows are appended to.
    pub into: &'a IntoFlags,
    /// Threads and table of stalls.
    pub flags: &'a GridFlags,
}

impl GridRun<'_> {
    /// Computes `row` of each scenario on all threads, and writes the results.
    pub fn run(
        self,
        row: impl Fn(&Grid, &Scenario) -> Outcome + Sync,
        provenance: fn(&Plan) -> Provenance,
    ) -> Result<(), Failure> {
        let Self { grid, engine, output, into, flags } = self;
        let threads = threads(flags)?;
        let settings = setting::settings(&grid);
        if let Some(path) = &into.into {
            let mut file = RowFile::open(path, &grid, &[engine], &settings)?;
            let (present, all) = (file.present, grid.len());
            let line = |number| row::csv_line(&row(&grid, &grid.scenario(number)), &settings);
            let mut progress = RowProgress::new(all - present, true);
            sweep::run(present..all, threads, line, |_, lines| -> Result<(), Failure> {
                progress.add(lines.len());
                lines.into_iter().try_for_each(|line| file.append(&line))?;
                Ok(file.flush()?)
            })?;
            return report(path, all, present);
        }
        if grid.len() > MAX_SCENARIOS {
            return stream(&grid, &settings, threads, output, flags, &row);
        }
        let plan = plan_flags::all_in_memory(grid)?;
        let mut outcomes = all(&plan.scenarios, threads, |scenario| row(&plan.grid, scenario))?;
        if let Some(reason) = outcome::nothing(&outcomes) {
            return Err(Failure::Value(reason));
        }
        outcome::name_critical_paths(&mut outcomes);
        let results = Results { outcomes, settings, layout: Layout::Rows, provenance: provenance(&plan) };
        results.write_stalls(flags.stalls.as_deref())?;
        results.show(output)
    }
}

/// Appends the rows of the scenarios that a file lacks, by each engine, `batch` scenarios at a time. The first error ends it.
pub fn append(
    path: &Path,
    grid: Grid,
    engines: &[Engine],
    batch: usize,
    mut rows: impl FnMut(&Plan) -> Result<Vec<Outcome>, Failure>,
) -> Result<(), Failure> {
    let settings = setting::settings(&grid);
    let mut file = RowFile::open(path, &grid, engines, &settings)?;
    let (present, all) = (file.present, grid.len());
    let mut progress = RowProgress::new((all - present) * engines.len(), batch > 1);
    let mut plan = Plan { scenarios: Vec::new(), engines: engines.to_vec(), grid };
    for first in (present..all).step_by(batch) {
        plan.scenarios = (first..all.min(first + batch)).map(|number| plan.grid.scenario(number)).collect();
        let rows = rows(&plan)?;
        progress.add(rows.len());
        rows.iter().try_for_each(|outcome| file.append(&row::csv_line(outcome, &settings)))?;
        file.flush()?;
    }
    report(path, all * engines.len(), present * engines.len())
}

/// Prints what a file has now.
fn report(path: &Path, all: usize, present: usize) -> Result<(), Failure> {
    crate::output::to_stdout(&format!("{}: {all} rows, {present} of which it had\n", shown(path)))
}

/// Number of threads: the given one, or that of the CPUs.
pub fn threads(flags: &GridFlags) -> Result<usize, Failure> {
    let Some(text) = flags.threads.as_deref() else { return Ok(sweep::cpus()) };
    text.parse().ok().filter(|threads| (1..=1024).contains(threads)).ok_or_else(|| {
        let given = quantity::names::Quoted(text);
        Failure::Value(format!("--threads: {given} is not a number of threads; give 1 to 1024"))
    })
}

/// Outcomes of all scenarios, in order.
pub fn all(
    scenarios: &[Scenario],
    threads: usize,
    row: impl Fn(&Scenario) -> Outcome + Sync,
) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::with_capacity(scenarios.len());
    let mut progress = RowProgress::new(scenarios.len(), true);
    let sink = |_, results: Vec<Outcome>| -> Result<(), Failure> {
        progress.add(results.len());
        outcomes.extend(results);
        Ok(())
    };
    sweep::run(0..scenarios.len(), threads, |number| row(&scenarios[number]), sink)?;
    Ok(outcomes)
}

/// Prints rows as they are computed.
fn stream(
    grid: &Grid,
    settings: &[Setting],
    threads: usize,
    output: &OutputFlags,
    flags: &GridFlags,
    row: &(impl Fn(&Grid, &Scenario) -> Outcome + Sync),
) -> Result<(), Failure> {
    if output.format != Format::Csv || output.report.is_some() {
        return Err(Failure::Value(format!(
            "{} rows are too many for a table; give --format csv or --into FILE.csv, or fewer values for at most \
             {MAX_SCENARIOS}",
            grid.len()
        )));
    }
    let mut stalls = flags.stalls.as_deref().map(PendingFile::create).transpose()?;
    let mut write_stalls = |text: &dyn Fn() -> String| match &mut stalls {
        Some(file) => file.write_all(text().as_bytes()).map_err(|error| file.failure(error)),
        None => Ok(()),
    };
    write_stalls(&|| row::stalls_heading(settings))?;
    crate::output::to_stdout(&row::csv_heading(settings))?;
    let outcome = |number| row(grid, &grid.scenario(number));
    let mut progress = RowProgress::new(grid.len(), true);
    sweep::run(0..grid.len(), threads, outcome, |first, outcomes| {
        progress.add(outcomes.len());
        for (number, outcome) in (first + 1..).zip(&outcomes) {
            write_stalls(&|| row::stalls_lines(number, outcome, settings))?;
        }
        let lines: String = outcomes.iter().map(|outcome| row::csv_line(outcome, settings)).collect();
        crate::output::to_stdout(&lines)
    })?;
    stalls.map_or(Ok(()), PendingFile::commit)
}
