//! `roundtrip diagnose`: captures in, the cause of every stall out.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use capture::Capture;
use capture::filter::Filter;
use capture::live::{self, Live};
use capture::report::{csv, json, page, text};

use crate::cli::flags::Format;
use crate::cli::{Diagnose, diagnosed_command};
use crate::failure::Failure;
use crate::feature::Feature;
use crate::{file, plots};

/// Returns 1 if something worth fixing was found, 0 if not.
pub fn run(arguments: &Diagnose) -> Result<ExitCode, Failure> {
    let Diagnose { files, flows, causes, since, svg, png, xpl, output: flags, .. } = arguments;
    if let Some(sentence) = in_place_of_capture(arguments) {
        return Err(Failure::Value(sentence));
    }
    if png.is_some() {
        Feature::Png.require("--png")?;
    }
    let mut filter = Filter::new(flows, causes, since.as_deref())?;
    let is_plotted = svg.is_some() || png.is_some() || xpl.is_some() || flags.report.is_some();
    let captures = match live(arguments)? {
        Some(ask) => {
            filter.is_whole = !ask.command.is_empty();
            vec![captured(&ask, &filter, is_plotted, arguments.write.as_deref())?]
        }
        None => files
            .iter()
            .map(|path| Capture::read(path, &filter, is_plotted))
            .collect::<Result<Vec<_>, capture::Error>>()?,
    };
    for capture in &captures {
        for note in capture.warnings.iter().chain(&capture.damage) {
            eprintln!("roundtrip: {}: {note}", capture.name);
        }
    }
    let shown = match flags.format {
        Format::Table => text::render(&captures, crate::terminal::of_stdout()),
        Format::Json => json::text(&captures),
        Format::Csv => csv::text(&captures),
    };
    crate::output::to_stdout(&shown)?;
    if let Some(path) = &flags.report {
        file::write(path, page::page(&captures).as_bytes())?;
    }
    if let Some(directory) = svg {
        plots::write_svg(&captures, directory)?;
    }
    if let Some(directory) = png {
        plots::write_png(&captures, directory)?;
    }
    if let Some(directory) = xpl {
        plots::write_xplot(&captures, directory)?;
    }
    let found = captures.iter().any(Capture::is_worth_fixing);
    Ok(if found { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// The live capture, with its packets in a file if one is named.
fn captured(ask: &Live, filter: &Filter, is_plotted: bool, path: Option<&Path>) -> Result<Capture, Failure> {
    let Some(path) = path else { return Ok(live::capture(ask, filter, is_plotted)?) };
    let mut captured = None;
    file::write_with(path, |out| {
        let written;
        (captured, written) = live::capture_into(ask, filter, is_plotted, out);
        written
    })?;
    let captured = captured.ok_or_else(|| Failure::Laboratory("nothing was captured".to_owned()))?;
    Ok(captured?)
}

/// The error for a command or an address where captures belong.
fn in_place_of_capture(arguments: &Diagnose) -> Option<String> {
    let files: Vec<OsString> = arguments.files.iter().map(|path| path.clone().into_os_string()).collect();
    diagnosed_command::in_place_of_capture(&files)
}

/// The live capture that the flags request; `None` for files.
fn live(arguments: &Diagnose) -> Result<Option<Live>, Failure> {
    let Diagnose { run, command, port, span, write, .. } = arguments;
    if !run && port.is_none() && span.is_none() {
        return match write {
            Some(_) => Err(Failure::Value(
                "--write keeps the packets of a live capture: give --run, --port or --for instead of a file"
                    .to_owned(),
            )),
            None => Ok(None),
        };
    }
    let span = span.as_deref().map(quantity::duration).transpose();
    let span = span.map_err(|error| Failure::Value(format!("--for: {error}")))?;
    Ok(Some(Live { port: *port, span, command: command.clone() }))
}
