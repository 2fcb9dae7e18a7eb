//! `roundtrip connections`: what keep-alive time-outs and DHTTP would cost and save.

use std::io::IsTerminal;

use crate::cli::connections::Connections;
use crate::cli::flags::{Format, OutputFlags};
use crate::connections::{Answer, answer, ask, input, page, parquet_file, row, table};
use crate::failure::Failure;
use crate::provenance::Provenance;
use crate::terminal::Terminal;
use crate::{file, output, show};

/// Prints the answer, and writes a page if one was asked for.
pub fn run(flags: &Connections) -> Result<(), Failure> {
    let OutputFlags { format, report } = &flags.output;
    let asked = ask::asked(flags)?;
    if flags.logs.is_empty() && std::io::stdin().is_terminal() {
        return Err(Failure::Value("name an access log, or pipe one in".to_owned()));
    }
    report.iter().chain(&flags.out).try_for_each(|path| file::check(path))?;
    let Answer { passed, names, said } = answer(input::named(&flags.logs)?, &asked)?;
    for sentence in said {
        eprintln!("roundtrip: {sentence}");
    }
    let counts = &passed.counts;
    let text = match format {
        Format::Table => table::render(counts, Terminal::of_stdout()),
        Format::Json => output::json(&row::rows(counts)),
        Format::Csv => row::lines(&row::rows(counts)),
    };
    output::to_stdout(&text)?;
    if let Some(path) = &flags.out {
        let bytes = parquet_file::bytes(&row::rows(counts));
        file::write(path, &bytes.map_err(|error| Failure::Value(format!("--out: {error}")))?)?;
    }
    let Some(path) = report else { return Ok(()) };
    let provenance = show::program()
        .and(Provenance::fact("logs", names.join(", ")))
        .and(Provenance::fact("rule", asked.question.rule().name().to_owned()));
    let name = match names.as_slice() {
        [one] => one.rsplit('/').next().unwrap_or(one).to_owned(),
        many => format!("{} logs", many.len()),
    };
    file::write(path, page::page(counts, &name, &provenance).as_bytes())
}
