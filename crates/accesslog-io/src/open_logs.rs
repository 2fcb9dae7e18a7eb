//! Logs recognised by their beginnings, and sorted by their first requests: rotated logs are named newest first.
//!
//! Not the merge of logs that overlap in time: that happens as they are read.

use std::io::{self, Read};

use accesslog::{Format, Reader, recognise};
use bytes::Bytes;
use wire::Time;

use crate::error::{Error, Part};

use crate::blocks::{Blocks, OpenLog};
use crate::input::Input;
use crate::options::ConnectionsOptions;
use crate::source::{Log, OpenTable, Table};
use crate::table_file::batches;
use crate::table_format::{TableFormat, TableSource};

/// Logs ready to be read.
pub struct OpenLogs {
    /// The logs, sorted by their first requests, with the time of the earliest request seen.
    pub logs: Vec<(Time, Log)>,
    /// Their names.
    pub names: Vec<String>,
    /// Reasons why others were skipped.
    pub skipped: Vec<Error>,
}

/// Bytes of a log that are examined before it is read.
pub const BEGINNING: u64 = 64 << 10;

/// Recognises and sorts logs. A file that is not a log is skipped, unless it is the only one.
pub fn open_all(inputs: Vec<Input>, options: &ConnectionsOptions) -> Result<OpenLogs, Error> {
    let is_only = inputs.len() == 1;
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    for input in inputs {
        match examine_log(&input, options) {
            Ok((first, log)) => found.push((first, input.name(), log)),
            Err(error) if is_only => return Err(error),
            Err(error) => skipped.push(error),
        }
    }
    if found.is_empty() && !skipped.is_empty() {
        return Err(Error::NoAccessLog(Box::new(skipped.swap_remove(0))));
    }
    // Logs without a time at their beginning are read from the start.
    for (first, _, _) in &mut found {
        *first = Some(*first).filter(|first| *first < Time::MAX).unwrap_or_default();
    }
    found.sort_by_key(|(first, _, _)| *first);
    let (logs, names) = found.into_iter().map(|(first, name, log)| ((first, log), name)).unzip();
    Ok(OpenLogs { logs, names, skipped })
}

/// Examines a log: the time of its first request, and all of its bytes.
fn examine_log(input: &Input, options: &ConnectionsOptions) -> Result<(Time, Log), Error> {
    let unreadable = |error: io::Error| match input {
        Input::File(path) => Error::Unreadable { path: path.clone(), error },
        Input::Stdin => Error::Stdin(error),
        Input::Object(object) => Error::Store(format!("{}: {error}", object.name())),
    };
    let mut bytes = input.open().map_err(unreadable)?;
    let mut beginning = Vec::new();
    let looked_at = bytes.by_ref().take(BEGINNING).read_to_end(&mut beginning);
    if let Err(error) = looked_at
        && beginning.is_empty()
    {
        return Err(unreadable(error));
    }
    if let Some(kind) = TableFormat::of(&beginning) {
        Part::Parquet.require(&input.name())?;
        return table(input, kind, beginning, bytes, options);
    }
    let format = match &options.format {
        Some(format) => format.clone(),
        None => recognise(&beginning, &options.definition).ok_or_else(|| match beginning.is_empty() {
            true => Error::Empty(input.name()),
            false => Error::UnknownFormat(input.name()),
        })?,
    };
    no_names(&format, options)?;
    let reader = Reader::new(format, options.definition.clone());
    let mut first = Time::MAX;
    reader.clone().read(&beginning, |record| first = first.min(record.time));
    // Files are opened only when they are read: there may be more of them than a process may have open.
    let open: OpenLog = match input.is_reopenable().then(|| input.clone()) {
        Some(file) => Box::new(move || file.open()),
        None => Box::new(move || Ok(Box::new(io::Cursor::new(beginning).chain(bytes)))),
    };
    Ok((first, Log::Lines(Blocks::new(open, options.window.size), Box::new(reader))))
}

/// Examines a table. Piped input is stored in memory, because a table is not read sequentially.
fn table(
    input: &Input,
    kind: TableFormat,
    mut beginning: Vec<u8>,
    mut rest: Box<dyn Read + Send>,
    options: &ConnectionsOptions,
) -> Result<(Time, Log), Error> {
    let name = input.name();
    let bad = |error: &dyn std::fmt::Display| Error::Table { name: name.clone(), reason: error.to_string() };
    let source = match input {
        Input::Object(object) => TableSource::Object(object.clone()),
        Input::File(path) if input.is_reopenable() => TableSource::File(path.clone()),
        Input::File(_) | Input::Stdin => {
            rest.read_to_end(&mut beginning).map_err(|error| bad(&error))?;
            TableSource::Memory(Bytes::from(beginning))
        }
    };
    let mut named = options.named.clone();
    named.client = named.client.or_else(|| options.definition.field.clone());
    let mut opened = batches(kind, source.clone(), &named).map_err(|error| bad(&error))?;
    let mut first = Time::MAX;
    if let Some(Ok(batch)) = opened.batches.next() {
        let read = opened.columns.read(&batch, &options.definition, |record| first = first.min(record.time));
        read.map_err(|error| bad(&error))?;
    }
    let open: OpenTable = Box::new(move || batches(kind, source, &named).map_err(|error| error.to_string()));
    Ok((first, Log::Table(Table::Closed(Some(open)), options.definition.clone())))
}

/// Refuses a client field for formats whose fields have no names.
fn no_names(format: &Format, options: &ConnectionsOptions) -> Result<(), Error> {
    format.check_client_field(&options.definition).map_err(Error::ClientField)
}
