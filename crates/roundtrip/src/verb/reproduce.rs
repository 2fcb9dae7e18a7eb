//! `roundtrip reproduce`: published tables and figures compared with recomputed ones.
//!
//! Tables go to stdout; figures become files if requested, whose names are printed on stderr.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use measure::Peers;
use render::output::csv;
use reproduce::laboratory::{Benchmarks, KernelResult, Measure};
use reproduce::server_benchmark::benchmark_run::{self, BenchmarkRun, Outcome, Preset};
use reproduce::server_benchmark::population::{self, Population};
use reproduce::verdict::Verdict;
use reproduce::{Error, Options, Report, VerdictRow, page, run as regenerate, side_by_side};
use scenario::Scenario;
use wire::Duration;

use crate::cli::Reproduce;
use crate::cli::flags::Format;
use crate::failure::Failure;
use crate::{file, laboratory};

/// Returns 1 when a verdict is worse than the recorded one.
pub fn run(flags: &Reproduce) -> Result<ExitCode, Failure> {
    let Reproduce { keys, measure, full, figures, format, report: path } = flags;
    if *measure {
        laboratory::available()?;
    }
    let extent = if *full { Preset::FULL } else { Preset::QUICK };
    let mut run_benchmarks = |benchmarks: &[BenchmarkRun]| servers(benchmarks, extent);
    let mut run_populations = |populations: &[Population]| shared_bottleneck(populations, extent);
    let benchmark_runners = measure.then(|| Benchmarks {
        run: &mut run_benchmarks,
        gather: &mut run_populations,
        users: extent.users,
    });
    let measure: Option<&mut Measure<'_>> = if *measure { Some(&mut measure_on_kernel) } else { None };
    // Set by the owner of the logs, which belong to third parties and are not part of the project.
    let logs = std::env::var_os("ROUNDTRIP_LOGS").map(PathBuf::from);
    let report = regenerate(Options { keys: keys.clone(), measure, logs, contests: benchmark_runners })
        .map_err(failure)?;
    figures.as_ref().map_or(Ok(()), |directory| write_figures(&report, directory))?;
    if let Some(path) = path {
        file::write(path, page::page(&report).as_bytes())?;
    }
    let rows = report.rows();
    let text = match format {
        Format::Table => side_by_side::render(&report, crate::terminal::of_stdout()),
        Format::Json => render::output::json(&rows),
        Format::Csv => lines(&rows),
    };
    crate::output::to_stdout(&text)?;
    Ok(verdict(&report))
}

fn measure_on_kernel(scenario: &Scenario, peers: Peers) -> Result<Option<KernelResult>, String> {
    let measured = match laboratory::one(scenario, peers) {
        Ok(measured) => measured,
        // Only a third-party program can be missing.
        Err(measure::Error::Unsuited { part: _, remedy: _ }) if peers != Peers::default() => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let processing = measured.processing_ms.and_then(|summary| Duration::from_secs_f64(summary.mean / 1e3));
    let processing = processing.unwrap_or(scenario.server.processing);
    Ok(Some(KernelResult { metrics: measured.metrics(), processing }))
}

/// Runs the server benchmark without the servers that are not installed, which it reports.
fn servers(benchmarks: &[BenchmarkRun], extent: Preset) -> Result<Vec<Option<Outcome>>, String> {
    let bar = runs(benchmarks.len());
    let missing = |missing: &_| eprintln!("{missing}");
    let outcomes =
        benchmark_run::run_installed(benchmarks, extent, &|done| bar.set_position(done as u64), &missing);
    bar.finish_and_clear();
    let outcomes = outcomes.map_err(|error| error.to_string())?;
    let latencies = outcomes.iter().flatten().filter(|outcome| outcome.latency_is_void).count();
    let throughputs = outcomes.iter().flatten().filter(|outcome| outcome.throughput_is_void).count();
    if latencies + throughputs > 0 {
        let all = outcomes.len();
        eprintln!(
            "of {all} runs the latency of {latencies} and the throughput of {throughputs} are void as users sent requests late: \
             this host is busy"
        );
    }
    Ok(outcomes)
}

/// Runs users behind a bottleneck; reports a program that is not installed.
fn shared_bottleneck(
    populations: &[Population],
    extent: Preset,
) -> Result<Option<Vec<population::Outcome>>, String> {
    if let Some(missing) = populations.iter().find_map(|population| population.kind.available().err()) {
        eprintln!("{missing}");
        return Ok(None);
    }
    let bar = runs(populations.len());
    let outcomes = population::run(populations, extent.fills, &|done| bar.set_position(done as u64));
    bar.finish_and_clear();
    let outcomes = outcomes.map_err(|error| error.to_string())?;
    let of = |why| outcomes.iter().filter(|outcome| outcome.void == Some(why)).count();
    let (late, links) = (of(population::VoidReason::Generator), of(population::VoidReason::Link));
    if late + links > 0 {
        let all = outcomes.len();
        let max_late_ms = outcomes.iter().map(|outcome| outcome.link_late_ms).fold(0.0, f64::max);
        eprintln!(
            "of {all} runs {late} are void as users sent requests late, and {links} as a link was late, by up to {max_late_ms:.1} ms \
             (99.9%): this host is busy"
        );
    }
    Ok(Some(outcomes))
}

fn runs(count: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:20} {pos} of {len} runs of servers, {eta} remaining")
        .expect("the template is fixed");
    ProgressBar::new(count as u64).with_style(style)
}

fn failure(error: Error) -> Failure {
    match error {
        Error::UnknownKey(unknown) => Failure::Value(unknown.to_string()),
        Error::Measure { key: _, sentence: _ } => Failure::Laboratory(error.to_string()),
    }
}

/// Writes the requested figures as SVG files.
fn write_figures(report: &Report, directory: &Path) -> Result<(), Failure> {
    for entry in report.tables.iter().map(|table| table.entry) {
        let Some(picture) = report.picture(entry) else {
            eprintln!("{} has no picture", entry.key);
            continue;
        };
        let path = directory.join(entry.key.replace('/', "-")).with_extension("svg");
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::Write { path: directory.to_owned(), error })?;
        file::write(&path, picture.as_bytes())?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

fn verdict(report: &Report) -> ExitCode {
    let mut worsened = report.worsened().peekable();
    if worsened.peek().is_none() {
        return ExitCode::SUCCESS;
    }
    for (key, judged) in worsened {
        let (now, before) = (judged.judgement.verdict.name(), judged.judgement.expected.name());
        let strays = if judged.judgement.strays { ", and further from print than that" } else { "" };
        eprintln!("roundtrip: {key} {}: {now}, where {before} is on record{strays}", judged.cell.name());
    }
    ExitCode::from(1)
}

fn lines(rows: &[VerdictRow]) -> String {
    let line = |row: &VerdictRow| {
        let VerdictRow { key, cell, published, ours, unit, verdict, bound, mechanism, fitted, note } = row;
        [
            (*key).to_owned(),
            cell.clone(),
            published.to_string(),
            ours.map(|ours| ours.to_string()).unwrap_or_default(),
            unit.clone(),
            Verdict::name(*verdict).to_owned(),
            note.clone().unwrap_or_default(),
            bound.map(|bound| bound.to_string()).unwrap_or_default(),
            mechanism.clone().unwrap_or_default(),
            fitted.to_string(),
        ]
    };
    let heading =
        ["key", "cell", "published", "ours", "unit", "verdict", "note", "bound", "mechanism", "fitted"];
    csv::table(heading, rows.iter().map(line))
}
