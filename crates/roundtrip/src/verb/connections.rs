//! `roundtrip connections`: cost and savings of keep-alive timeouts and DHTTP.

use std::io::IsTerminal;
use std::path::Path;

use accesslog::connections::Counts;
use accesslog_io::input;
use accesslog_io::pass::PassResult;
use accesslog_io::report::{over_time, page, parquet_file, row, table};
use render::provenance::Provenance;
use wire::Bytes;

use crate::cli::connections::Connections;
use crate::cli::flags::{Format, OutputFlags};
use crate::connections::{CountReport, count_connections, options};
use crate::failure::Failure;
use crate::feature::Feature;
use crate::{file, show, terminal};

/// Prints the result, and writes a page if requested.
pub fn run(flags: &Connections) -> Result<(), Failure> {
    let OutputFlags { format, report } = &flags.output;
    let options = options::options(flags)?;
    let is_table = |path: &Path| path.extension().is_some_and(|extension| extension == "parquet");
    if flags.out.is_some() {
        Feature::Parquet.require("--out").map_err(Failure::Value)?;
    }
    if flags.over_time.as_deref().is_some_and(is_table) {
        Feature::Parquet.require("--over-time").map_err(Failure::Value)?;
    }
    if flags.logs.is_empty() && std::io::stdin().is_terminal() {
        return Err(Failure::Value("name an access log, or pipe one in".to_owned()));
    }
    file::check(report.iter().chain(&flags.out).chain(&flags.over_time))?;
    let CountReport { passed, names, warnings } = count_connections(input::named(&flags.logs)?, &options)?;
    warnings.iter().for_each(|sentence| terminal::warn(sentence));
    let PassResult { counts, loads, read: _, late: _ } = &passed;
    let counts_to_show = counts_to_show(counts, flags);
    let loads = loads.as_ref();
    // A report always includes the distribution.
    let distribution = loads.filter(|_| flags.distribution);
    let rows = || row::rows(counts, distribution);
    let text = match format {
        Format::Table => table::render(&counts_to_show, distribution, crate::terminal::of_stdout()),
        Format::Json => render::output::json(&rows()),
        Format::Csv => row::lines(&rows()),
    };
    crate::output::to_stdout(&text)?;
    if let Some(path) = &flags.out {
        file::write(path, &parquet_file::bytes(&rows()).map_err(Failure::of_flag("out"))?)?;
    }
    if let Some(path) = &flags.over_time {
        let minutes = over_time::minutes(counts);
        let bytes = match is_table(path) {
            true => parquet_file::over_time(&minutes).map_err(Failure::of_flag("over-time"))?,
            false => over_time::lines(&minutes).into_bytes(),
        };
        file::write(path, &bytes)?;
    }
    let Some(path) = report else { return Ok(()) };
    let provenance = show::program()
        .and(Provenance::fact("logs", names.join(", ")))
        .and(Provenance::fact("rule", options.query.rule().name().to_owned()));
    let name = match names.as_slice() {
        [one] => one.rsplit('/').next().unwrap_or(one).to_owned(),
        many => format!("{} logs", many.len()),
    };
    file::write(path, page::page(&counts_to_show, loads, &name, &provenance).as_bytes())
}

/// Returns the counts shown in tables and reports: those of HTTP alone, unless DHTTP is requested.
fn counts_to_show(counts: &Counts, flags: &Connections) -> Counts {
    let Connections { dhttp, thresholds, .. } = flags;
    let mut counts_to_show = counts.clone();
    if !dhttp && thresholds.is_empty() {
        counts_to_show.streams.retain(|stream| stream.threshold == Bytes::ZERO);
    }
    counts_to_show
}
