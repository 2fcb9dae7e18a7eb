//! `roundtrip watch`: stalls of live sockets from the kernel's statistics.

use std::fs;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use capture::watch::Scope;
use capture::watch::session::Session;
use render::terminal::USUAL_WIDTH;
use report::watched::{Row, WatchReport, view};
use wire::Duration;

use crate::cli::watch::{Format, Watch};
use crate::failure::Failure;
use crate::serve::metrics;

/// Returns 1 if a stall worth fixing was found, 3 if nothing could be judged, otherwise 0.
pub fn run(arguments: &Watch) -> Result<ExitCode, Failure> {
    let Watch { command, pid, port, all: _, interval, duration, format, prometheus } = arguments;
    let scope = match (pid, port) {
        (Some(pid), _) => Scope::Process(existing_process(*pid)?),
        (None, Some(port)) => Scope::Port(*port),
        (None, None) => Scope::All,
    };
    let span =
        duration.as_deref().map(quantity::positive_duration).transpose().map_err(Failure::of_flag("for"))?;
    let session = Session { scope, command: command.clone(), interval: parse_interval(interval)?, span };
    let shared = Arc::new(Mutex::new(String::new()));
    if let Some(address) = prometheus {
        let shared = Arc::clone(&shared);
        metrics::serve(*address, move || shared.lock().unwrap_or_else(PoisonError::into_inner).clone())?;
    }
    let is_drawn = *format == Format::Table && std::io::stdout().is_terminal();
    let (mut previous, mut drawn_lines) = (Vec::new(), 0);
    let last = session.run(|report| {
        if prometheus.is_some() {
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = view::metrics(report);
        }
        match format {
            Format::Json => show_json(report, &mut previous),
            Format::Table if report.is_last => {
                let width = crate::terminal::of_stdout().prose_width();
                crate::output::redraw(&erase_sequence(drawn_lines), &view::text(report, width))
            }
            Format::Table if is_drawn => draw(report, &mut drawn_lines),
            Format::Table => Ok(()),
        }
    })?;
    Ok(ExitCode::from(last.status()))
}

fn show_json(report: &WatchReport, previous: &mut Vec<Row>) -> Result<(), Failure> {
    let text = view::json_lines(report, previous);
    previous.clone_from(&report.rows);
    crate::output::to_stdout(&text)
}

/// Draws the table over the previous one, which has `drawn_lines` lines.
fn draw(report: &WatchReport, drawn_lines: &mut usize) -> Result<(), Failure> {
    let width = crate::terminal::of_stdout().width.unwrap_or(USUAL_WIDTH);
    let height = terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0));
    // The cursor takes a line of its own.
    let lines = view::lines(report, width, height.saturating_sub(1));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let erases = erase_sequence(*drawn_lines);
    *drawn_lines = lines.len();
    crate::output::redraw(&erases, &text)
}

/// Returns the escape sequence that moves up by `lines` and erases from there.
fn erase_sequence(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A\x1b[J") }
}

fn existing_process(pid: u32) -> Result<u32, Failure> {
    match fs::metadata(format!("/proc/{pid}")) {
        Ok(_) => Ok(pid),
        Err(_) => Err(Failure::Value(format!("--pid {pid}: no such process"))),
    }
}

fn parse_interval(text: &str) -> Result<Duration, Failure> {
    let range = Duration::from_millis(1)..=Duration::from_secs(1);
    let interval = quantity::duration(text).map_err(Failure::of_flag("interval"))?;
    let refused = || Failure::Value(format!("--interval: {interval} is not between 1ms and 1s"));
    range.contains(&interval).then_some(interval).ok_or_else(refused)
}
