//! Access logs read for a load: their requests for a server, or their files or distributions for a plan.
//!
//! Not the plan: `workload` makes it from records. Not the simulation of `connections` either, which needs only a
//! window of a log at a time.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;

use accesslog::{Client, ClientDefinition, LoggedRequest, Reader, Record, recognise};
use accesslog_io::blocks::Blocks;
use accesslog_io::input::{Input, named};
use accesslog_io::open_logs::BEGINNING;
use accesslog_io::table_file::{ColumnNames, batches};
use accesslog_io::table_format::{TableFormat, TableSource};
use load::job::page;
use load::requests::Request;
use load::requests::file::split;
use render::output::number;
use wire::{Duration, Time};
use workload::log_sample::LogSample;
use workload::plan::{MAX_FILES, MAX_REQUESTS, Page, PageStart, PlanError};
use workload::replay::due_times;

use crate::failure::Failure;
use crate::feature::Feature;

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
    most: RequestLimit,
}

impl Sink for LimitedLines<'_> {
    fn push(&mut self, record: Record, request: Option<LoggedRequest<'_>>) {
        self.lines.push(&record, request.and_then(|request| request.target()));
    }

    fn is_full(&mut self) -> Result<bool, Failure> {
        is_full(self.lines, self.most)
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

/// The requests of these logs; lines left out are reported on standard error.
pub fn read(logs: &[PathBuf], most: RequestLimit) -> Result<LogSample, Failure> {
    let mut lines = LogSample::default();
    let inputs = named(logs)?;
    let mut is_all = true;
    for input in &inputs {
        is_all = is_all && read_one(input, &mut LimitedLines { lines: &mut lines, most })?;
    }
    if !is_all {
        eprintln!("only the first {} requests of the log are read", number::count(lines.len() as f64));
    }
    if lines.left_out > 0 {
        eprintln!(
            "{} requests of the log are left out: their status is not 200, 206 or 304, or their size is missing",
            lines.left_out
        );
    }
    Ok(lines)
}

/// Reads a log; returns whether that was all of it.
fn read_one(input: &Input, sink: &mut dyn Sink) -> Result<bool, Failure> {
    let unreadable = |error: io::Error| Failure::Value(format!("cannot read {}: {error}", input.name()));
    let mut bytes = input.open().map_err(unreadable)?;
    let mut beginning = Vec::new();
    bytes.by_ref().take(BEGINNING).read_to_end(&mut beginning).map_err(unreadable)?;
    let who = ClientDefinition::default();
    if let Some(kind) = TableFormat::of(&beginning) {
        Feature::Parquet.require(&input.name())?;
        let place = match input {
            Input::File(path) => TableSource::File(path.clone()),
            Input::Object(object) => TableSource::Object(object.clone()),
            Input::Stdin => {
                bytes.read_to_end(&mut beginning).map_err(unreadable)?;
                TableSource::Memory(beginning.into())
            }
        };
        let table = batches(kind, place, &ColumnNames::default())
            .map_err(|error| unreadable(io::Error::other(error)))?;
        for batch in table.batches {
            let mut push = |batch| table.columns.read(&batch, &who, |record| sink.push(record, None));
            batch.and_then(&mut push).map_err(|error| unreadable(io::Error::other(error)))?;
            if sink.is_full()? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let format = recognise(&beginning, &who).ok_or_else(|| {
        Failure::Value(format!(
            "{}: unknown access log format; `roundtrip connections` lists the known ones",
            input.name()
        ))
    })?;
    let mut reader = Reader::new(format, who);
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
fn is_full(lines: &mut LogSample, most: RequestLimit) -> Result<bool, Failure> {
    match most {
        RequestLimit::AllOf(most) if lines.len() as f64 > most => {
            Err(Failure::Value(PlanError::TooManyRequests(lines.len() as f64).to_string()))
        }
        RequestLimit::FirstOf(most) if lines.len() >= most => {
            lines.cut(most);
            Ok(true)
        }
        RequestLimit::AllOf(_) | RequestLimit::FirstOf(_) => Ok(false),
    }
}

/// The value of `--speed`.
pub fn speed(text: &str) -> Result<f64, Failure> {
    let refused = || Failure::Value(format!("--speed: `{text}` is not a number above 0, up to 1,000,000"));
    text.parse().ok().filter(|speed: &f64| *speed > 0.0 && *speed <= 1e6).ok_or_else(refused)
}

/// The requests of a log, for a server.
pub struct Replay {
    /// The different requests.
    pub requests: Vec<Request>,
    /// One for each line of the log.
    pub pages: Vec<Page>,
    /// Duration of the replay.
    pub lasts: Duration,
    /// Sentences on what is left out.
    pub notes: Vec<String>,
}

/// The requests of these logs at their times, `speed` times as fast: paths as logged, GET and HEAD only.
pub fn requests(logs: &[PathBuf], speed: f64) -> Result<Replay, Failure> {
    let mut logged = LoggedRequests::default();
    for input in &named(logs)? {
        read_one(input, &mut logged)?;
    }
    let notes = logged.notes();
    let LoggedRequests { mut lines, known, .. } = logged;
    // The sort is stable: requests at equal times stay in the order of the log.
    lines.sort_by_key(|line| line.time);
    let times: Vec<Time> = lines.iter().map(|line| line.time).collect();
    let unfit = |unfit| match unfit {
        PlanError::Nothing => {
            let why = notes.join("; ");
            Failure::Value(format!(
                "--replay: the log has no request to repeat{}{why}",
                if why.is_empty() { "" } else { ": " }
            ))
        }
        unfit => Failure::Value(format!("--replay: {unfit}")),
    };
    let (dues, lasts) = due_times(&times, speed).map_err(unfit)?;
    let mut users = BTreeMap::new();
    let mut pages = Vec::with_capacity(lines.len());
    for (line, due) in lines.iter().zip(dues) {
        let next = u32::try_from(users.len()).unwrap_or(u32::MAX);
        let user = *users.entry(line.client).or_insert(next);
        pages.push(page(line.request, user, PageStart::At(due)));
    }
    let mut requests: Vec<(u32, Request)> = known
        .into_iter()
        .map(|((_, _, error), (number, mut request))| {
            request.logged_error = error;
            (number, request)
        })
        .collect();
    requests.sort_by_key(|(number, _)| *number);
    Ok(Replay { requests: requests.into_iter().map(|(_, request)| request).collect(), pages, lasts, notes })
}

/// A method, a path, and the status where it is an error.
type LoggedName = (Vec<u8>, Vec<u8>, Option<u16>);

/// The requests of a log that is being read.
#[derive(Default)]
struct LoggedRequests {
    lines: Vec<LoggedLine>,
    /// Different requests with their numbers; for an error the same status is expected again.
    known: BTreeMap<LoggedName, (u32, Request)>,
    /// Lines that are left out, by their method.
    unsafe_methods: BTreeMap<String, u64>,
    /// Lines without a path, and those whose path cannot be sent.
    unnamed: u64,
    unsendable: u64,
    /// Lines whose method the log does not have.
    without_method: u64,
}

#[derive(Clone, Copy)]
struct LoggedLine {
    time: Time,
    client: Client,
    request: u32,
}

impl Sink for LoggedRequests {
    fn push(&mut self, record: Record, request: Option<LoggedRequest<'_>>) {
        let Some(LoggedRequest { method, path, query }) = request else {
            self.unnamed += 1;
            return;
        };
        self.without_method += u64::from(method.is_none());
        let method = method.unwrap_or(b"GET");
        if !matches!(method, b"GET" | b"HEAD") {
            // Names that are not methods, such as those of probes, are counted together.
            let is_name = method.len() <= 16 && method.iter().all(u8::is_ascii_uppercase);
            let name =
                if is_name { String::from_utf8_lossy(method).into_owned() } else { "other".to_owned() };
            *self.unsafe_methods.entry(name).or_default() += 1;
            return;
        }
        let mut text = path.to_vec();
        if let Some(query) = query {
            text.push(b'?');
            text.extend_from_slice(query);
        }
        let error = Some(record.status).filter(|status| (400..=999).contains(status));
        let key = (method.to_vec(), text, error);
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let number = match self.known.get(&key) {
            Some((number, _)) => *number,
            None => {
                let made = std::str::from_utf8(&key.1)
                    .ok()
                    .and_then(split)
                    .and_then(|(_, target)| Request::new(&String::from_utf8_lossy(&key.0), &target).ok());
                let Some(request) = made else {
                    self.unsendable += 1;
                    return;
                };
                self.known.insert(key, (next, request));
                next
            }
        };
        self.lines.push(LoggedLine { time: record.time, client: record.client, request: number });
    }

    fn is_full(&mut self) -> Result<bool, Failure> {
        if self.lines.len() as f64 > MAX_REQUESTS {
            return Err(Failure::Value(format!(
                "--replay: {}",
                PlanError::TooManyRequests(self.lines.len() as f64)
            )));
        }
        let different = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        if different > MAX_FILES {
            return Err(Failure::Value(format!(
                "--replay: the log has more than {} different requests; replay a part of it",
                number::count(f64::from(MAX_FILES))
            )));
        }
        Ok(false)
    }
}

impl LoggedRequests {
    fn notes(&self) -> Vec<String> {
        let count = |count: u64| number::count(count as f64);
        let methods = self.unsafe_methods.iter().map(|(name, times)| format!("{} {name}", count(*times)));
        let mut left: Vec<String> = methods.collect();
        let out: u64 = self.unsafe_methods.values().sum::<u64>() + self.unnamed + self.unsendable;
        if self.unnamed > 0 {
            left.push(format!("{} without a path", count(self.unnamed)));
        }
        if self.unsendable > 0 {
            left.push(format!("{} with a path that cannot be sent", count(self.unsendable)));
        }
        let mut notes = Vec::new();
        if out > 0 {
            let all = out + self.lines.len() as u64;
            notes.push(format!(
                "{} of {} logged requests are left out ({}); only GET and HEAD are repeated",
                count(out),
                count(all),
                left.join(", ")
            ));
        }
        if self.without_method > 0 {
            notes.push(format!(
                "the log has no method for {} requests, which are repeated as GET",
                count(self.without_method)
            ));
        }
        notes
    }
}
