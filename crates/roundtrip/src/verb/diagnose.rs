//! `roundtrip diagnose`: captures in, the cause of every stall out.

use std::process::ExitCode;

use crate::cli::Diagnose;
use crate::cli::flags::Format;
use crate::diagnosis::filter::Filter;
use crate::diagnosis::{Capture, csv, json, page, sequence, text, xpl};
use crate::failure::Failure;
use crate::terminal::Terminal;
use crate::{file, output};

/// 1 if something worth fixing was found, 0 if not.
pub fn run(arguments: &Diagnose) -> Result<ExitCode, Failure> {
    let Diagnose { files, flows, causes, since, svg, xpl, output: flags } = arguments;
    let filter = Filter::new(flows, causes, since.as_deref())?;
    let is_plotted = svg.is_some() || xpl.is_some() || flags.report.is_some();
    let mut captures = Vec::new();
    for path in files {
        let capture = Capture::read(path, &filter, is_plotted)?;
        for note in capture.warnings.iter().chain(&capture.damage) {
            eprintln!("roundtrip: {}: {note}", capture.name);
        }
        captures.push(capture);
    }
    let shown = match flags.format {
        Format::Table => text::render(&captures, Terminal::of_stdout()),
        Format::Json => json::text(&captures),
        Format::Csv => csv::text(&captures),
    };
    output::to_stdout(&shown)?;
    if let Some(path) = &flags.report {
        file::write(path, page::page(&captures).as_bytes())?;
    }
    if let Some(folder) = svg {
        sequence::write_all(&captures, folder)?;
    }
    if let Some(folder) = xpl {
        xpl::write_all(&captures, folder)?;
    }
    let found = captures.iter().any(Capture::is_worth_fixing);
    Ok(if found { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
