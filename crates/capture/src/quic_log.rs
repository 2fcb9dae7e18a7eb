//! qlog of an end of QUIC, in place of a capture: its events become the packets that this end saw.

use std::io::Read;
use std::path::Path;

use qlog::trace::LeftOut;
use qlog::{Log, Sender};
use report::Capture;
use trace::text::counted;

use crate::Error;

/// Reads a file.
pub(crate) fn read(path: &Path, source: impl Read) -> Result<Log, Error> {
    let mut bytes = Vec::new();
    let read = source.take(qlog::MAX_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| Error::Unreadable { path: path.to_owned(), error })?;
    qlog::read(&bytes).map_err(|fault| Error::Qlog { path: path.to_owned(), fault })
}

/// Returns what a reader of the report has to know of its source.
pub(crate) fn notes(log: &Log) -> Vec<String> {
    let Log { traces, left_out, other_ends, skipped } = log;
    let LeftOut { unreadable, backwards, without_frames } = *left_out;
    let mut notes = Vec::new();
    for (end, other) in [(Sender::Client, "server"), (Sender::Server, "client")] {
        let of_end: Vec<_> = traces.iter().filter(|trace| trace.end == end).collect();
        let Some(first) = of_end.first() else { continue };
        let program = first.program.as_ref().map_or_else(String::new, |program| format!(" ({program})"));
        let name = if end == Sender::Client { "client" } else { "server" };
        notes.push(format!(
            "qlog of the {name}{program}, {}: packets are numbered in the order of packet_sent and packet_received; those of the \
             {other} that were lost on the way are not in it, and neither are the contents of requests",
            counted(of_end.len() as u64, "connection")
        ));
    }
    let counts = [
        (
            *other_ends,
            "trace",
            "not read: of servers, whose clients' traces of the same connections are in the file",
        ),
        (*skipped, "trace", "not read: of the network, or without packets"),
        (unreadable, "event", "left out: without what it must have, or invalid"),
        (backwards, "packet", "earlier than the event before it: has its time"),
        (without_frames, "packet", "without frames: its contents are unknown"),
    ];
    let counts = counts.into_iter().filter(|(count, _, _)| *count > 0);
    notes.extend(counts.map(|(count, of, why)| format!("{} {why}", counted(count, of))));
    notes
}

/// Returns a capture whose packets were not encrypted, with these notes.
pub(crate) fn without_keys(capture: Capture, notes: Vec<String>) -> Capture {
    let mut capture = Capture { keys: None, ..capture };
    capture.flows.iter_mut().for_each(|flow| flow.keys = None);
    capture.warnings.splice(0..0, notes);
    capture
}
