//! `load --find-limit`: runs at increasing rates until the server no longer sustains one.

use std::cell::RefCell;
use std::process::ExitCode;

use load::limit_search::{SearchSpec, Step};
use load::progress::Stop;
use load::report::limit;
use render::output::number::significant;
use wire::Duration;

use super::run_display::{RunDisplay, StopSignal};
use crate::cli::load::{LoadFormat, LoadRun};
use crate::failure::Failure;

/// Default duration of a step.
pub const STEP: Duration = Duration::from_secs(3);

/// Runs a search, and prints its results.
pub fn run(
    spec: SearchSpec<'_>,
    flags: &LoadRun,
    (stop, stop_signal): (&Stop, &StopSignal),
) -> Result<ExitCode, Failure> {
    let (url, lasts) = (spec.url, spec.lasts);
    let display = RefCell::new(None::<RunDisplay>);
    let mut watch = |rate: f64, progress: &load::progress::Progress| {
        let title = format!("{url} at {} a second", significant(rate));
        display.borrow_mut().get_or_insert_with(|| RunDisplay::new(&title, lasts, None)).show(progress);
    };
    let mut stepped = |step: &Step| {
        drop(display.borrow_mut().take());
        eprintln!("{}", step.line());
    };
    let search = spec.run(stop, &mut watch, &mut stepped);
    let (is_cut, search) = (stop.stop(), search.map_err(|error| Failure::Network(error.to_string()))?);
    if let Some(path) = &flags.report {
        crate::file::write(path, limit::page(url, &search).as_bytes())?;
    }
    crate::output::to_stdout(&match flags.format {
        LoadFormat::Table => limit::table(url, &search, crate::terminal::of_stdout()),
        LoadFormat::Json => render::output::json(&[limit::values(url, &search)]),
        LoadFormat::Csv | LoadFormat::Junit => limit::lines(&search),
    })?;
    Ok(match search.limit() {
        _ if is_cut => ExitCode::from(stop_signal.status()),
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    })
}
