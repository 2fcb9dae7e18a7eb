//! Reads access logs for a load: requests for a server, or files and distributions for a plan.
//!
//! `load::requests::logged` turns records into requests; `workload` makes plans.

use std::io::{self, Read};
use std::path::PathBuf;

use accesslog::{ClientDefinition, LoggedRequest, Reader, Record, recognise};
use accesslog_io::blocks::Blocks;
use accesslog_io::input::{Input, named};
use accesslog_io::open_logs::BEGINNING;
use accesslog_io::table_file::{ColumnNames, batches};
use accesslog_io::table_format::{TableFormat, TableSource};
use load::requests::logged::{LoggedRequests, Replay};
use render::output::number;
use workload::log_sample::LogSample;
use workload::plan::PlanError;

use crate::failure::Failure;
use crate::feature::Feature;
use crate::terminal::warn;

/// Bytes of one read.
const BLOCK: usize = 1 << 20;

/// Receiver of a log's requests.
trait Sink {
    fn push(&mut self, record: Record, request: Option<LoggedRequest<'_>>);

    /// Whether enough requests were read.
    fn is_full(&mut self) -> Result<bool, Failure>;
}

/// Lines of a plan, up to a limit.
struct LimitedLines<'a> {
    lines: &'a mut LogSample,
    limit: RequestLimit,
}

impl Sink for LimitedLines<'_> {
    fn push(&mut self, record: Record, request: Option<LoggedRequest<'_>>) {
        self.lines.push(&record, request.and_then(|request| request.target()));
    }

    fn is_full(&mut self) -> Result<bool, Failure> {
        is_full(self.lines, self.limit)
    }
}

/// Limit of the number of requests.
#[derive(Clone, Copy, Debug)]
pub enum RequestLimit {
    /// All requests; more than this are refused.
    AllOf(f64),
    /// The first requests, up to this number.
    FirstOf(usize),
}

/// Reads the requests of these logs; reports skipped lines on standard error.
pub fn read(logs: &[PathBuf], limit: RequestLimit) -> Result<LogSample, Failure> {
    let mut lines = LogSample::default();
    let inputs = named(logs)?;
    let mut is_all = true;
    for input in &inputs {
        is_all = is_all && read_one(input, &mut LimitedLines { lines: &mut lines, limit })?;
    }
    if !is_all {
        let count = number::count(lines.len() as f64);
        warn(&format!("only the first {count} requests of the log are read"));
    }
    if lines.skipped > 0 {
        let count = number::counted(lines.skipped as f64, "request");
        let reason = "whose status is not 200, 206 or 304, or whose size is missing";
        warn(&format!("left out of the log: {count} {reason}"));
    }
    Ok(lines)
}

/// Reads a log; returns false if the limit was reached first.
fn read_one(input: &Input, sink: &mut dyn Sink) -> Result<bool, Failure> {
    let unreadable = |error: io::Error| Failure::Value(format!("cannot read {}: {error}", input.name()));
    let mut bytes = input.open().map_err(unreadable)?;
    let mut beginning = Vec::new();
    bytes.by_ref().take(BEGINNING).read_to_end(&mut beginning).map_err(unreadable)?;
    let client = ClientDefinition::default();
    if let Some(kind) = TableFormat::of(&beginning) {
        Feature::Parquet.require(&input.name()).map_err(Failure::Value)?;
        let source = match input {
            Input::File(path) => TableSource::File(path.clone()),
            Input::Object(object) => TableSource::Object(object.clone()),
            Input::Stdin => {
                bytes.read_to_end(&mut beginning).map_err(unreadable)?;
                TableSource::Memory(beginning.into())
            }
        };
        let table = batches(kind, source, &ColumnNames::default())
            .map_err(|error| unreadable(io::Error::other(error)))?;
        for batch in table.batches {
            let mut push = |batch| table.columns.read(&batch, &client, |record| sink.push(record, None));
            batch.and_then(&mut push).map_err(|error| unreadable(io::Error::other(error)))?;
            if sink.is_full()? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let format = recognise(&beginning, &client).ok_or_else(|| {
        Failure::Value(format!(
            "{}: unknown access log format; `roundtrip connections` lists the known ones",
            input.name()
        ))
    })?;
    let mut reader = Reader::new(format, client);
    let mut blocks =
        Blocks::new(Box::new(move || Ok(Box::new(io::Cursor::new(beginning).chain(bytes)))), BLOCK);
    while let Some(block) = blocks.next_block().map_err(unreadable)? {
        reader.read_requests(&block, |record, request| sink.push(record, request));
        if sink.is_full()? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether enough requests were read; more than are allowed are refused.
fn is_full(lines: &mut LogSample, limit: RequestLimit) -> Result<bool, Failure> {
    match limit {
        RequestLimit::AllOf(limit) if lines.len() as f64 > limit => {
            Err(Failure::Value(PlanError::TooManyRequests(lines.len() as f64).to_string()))
        }
        RequestLimit::FirstOf(limit) if lines.len() >= limit => {
            lines.truncate(limit);
            Ok(true)
        }
        RequestLimit::AllOf(_) | RequestLimit::FirstOf(_) => Ok(false),
    }
}

/// Parses the value of `--speed`, such as `2` or `2x`.
pub fn speed(text: &str) -> Result<f64, Failure> {
    let refused = || Failure::Value(format!("--speed: `{text}` is not a number above 0, up to 1,000,000"));
    let number = text.strip_suffix(['x', 'X']).unwrap_or(text);
    number.parse().ok().filter(|speed: &f64| *speed > 0.0 && *speed <= 1e6).ok_or_else(refused)
}

/// Reads the requests of these logs, to be sent `speed` times as fast: paths as logged, GET and HEAD only.
pub fn requests(logs: &[PathBuf], speed: f64) -> Result<Replay, Failure> {
    let mut logged = LoggedRequests::default();
    for input in &named(logs)? {
        read_one(input, &mut logged)?;
    }
    logged.replay(speed).map_err(Failure::of_flag("replay"))
}

impl Sink for LoggedRequests {
    fn push(&mut self, record: Record, request: Option<LoggedRequest<'_>>) {
        self.push(&record, request);
    }

    fn is_full(&mut self) -> Result<bool, Failure> {
        self.check().map(|()| false).map_err(Failure::of_flag("replay"))
    }
}
