//! Files of qlog: contained JSON, and JSON text sequences (RFC 7464) or lines of JSON. All input is untrusted: a file has a maximum
//! length, nesting is limited by `serde_json`, and what cannot be read of a file is counted.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tls::decrypt::Sender;

use crate::MAX_BYTES;
use crate::json::{any, name, text};
use crate::trace::{Clock, LeftOut, Reading, Trace};

/// Connections of a file.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The connections, each at one end.
    pub traces: Vec<Trace>,
    /// Events and packets that were left out of them.
    pub left_out: LeftOut,
    /// Number of connections whose client's trace is read, and the server's is there, too.
    pub other_ends: u64,
    /// Number of traces of the network, of which there is no reader, or without packets.
    pub skipped: u64,
}

/// Reason why nothing of a file is read.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It is not qlog.
    #[error(
        "JSON, but not qlog: it has no traces; give a capture (pcap, pcapng) or a file of qlog (.qlog, .sqlog)"
    )]
    NotQlog,
    /// It is not JSON.
    #[error("not qlog: {0}; give the file as its program wrote it, to its end")]
    Json(serde_json::Error),
    /// It is too long.
    #[error("qlog of more than 256 MiB; give the traces of some connections")]
    Long,
    /// It has no packets.
    #[error("qlog without packets: no packet_sent or packet_received could be read{}; log them, or give a capture with a key log", unreadable(*.0))]
    NoPackets(u64),
    /// It has no frames.
    #[error(
        "qlog without frames, in which waits do not show; give one of a program that logs the frames of its packets, or a capture \
         with a key log (--keys)"
    )]
    NoFrames,
}

fn unreadable(count: u64) -> String {
    if count == 0 { String::new() } else { format!(" ({count} events could not be)") }
}

/// Separator of a JSON text sequence.
const RECORD: u8 = 0x1e;

/// A contained file, or the first record of a sequence.
#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow, default)]
    traces: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    trace: Option<&'a RawValue>,
    #[serde(default)]
    qlog_version: Option<Value>,
    #[serde(default)]
    file_schema: Option<Value>,
}

/// A trace. Its events are read one by one.
#[derive(Deserialize)]
struct TraceFields<'a> {
    #[serde(default)]
    vantage_point: Value,
    #[serde(default)]
    common_fields: Value,
    #[serde(default)]
    configuration: Value,
    #[serde(default)]
    event_fields: Value,
    #[serde(borrow, default)]
    events: Vec<&'a RawValue>,
}

/// Connections of a trace, whose events name their groups.
struct Groups {
    end: Option<Sender>,
    is_of_network: bool,
    program: Option<String>,
    group: String,
    clock: Clock,
    fields: Vec<String>,
    readings: BTreeMap<String, Reading>,
    order: Vec<String>,
}

/// Maximum number of connections of a file.
const MAX_TRACES: usize = 10_000;

/// Returns whether a file begins as JSON, or as a sequence of JSON texts.
pub fn is_json(beginning: &[u8]) -> bool {
    let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
    let first = beginning.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | &RECORD))
}

/// Reads a file.
///
/// # Errors
/// [`Fault`] where nothing can be diagnosed.
pub fn read(bytes: &[u8]) -> Result<Log, Fault> {
    if bytes.len() > MAX_BYTES {
        return Err(Fault::Long);
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut log = Log::default();
    let first = bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let mut all = Vec::new();
    match bytes.get(first) {
        Some(&RECORD) => sequence(bytes.split(|byte| *byte == RECORD), &mut log, &mut all)?,
        _ => match serde_json::from_slice::<File<'_>>(bytes) {
            Ok(File { traces: Some(traces), .. }) => {
                traces.into_iter().for_each(|trace| contained(trace, &mut log, &mut all));
            }
            Ok(_) => return Err(Fault::NotQlog),
            // Lines, of which each is a text.
            Err(error) if error.line() > 1 && is_line(bytes) => {
                sequence(bytes.split(|byte| *byte == b'\n'), &mut log, &mut all)?;
            }
            Err(error) => return Err(Fault::Json(error)),
        },
    }
    log.traces = all;
    finish(log)
}

/// Returns whether the first line is the first record of a sequence.
fn is_line(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice::<File<'_>>(line).is_ok_and(|file| file.is_qlog())
}

impl File<'_> {
    const fn is_qlog(&self) -> bool {
        self.trace.is_some() || self.qlog_version.is_some() || self.file_schema.is_some()
    }
}

/// Reads a sequence: its first record has the trace, each other one is an event.
fn sequence<'a>(
    records: impl Iterator<Item = &'a [u8]>,
    log: &mut Log,
    all: &mut Vec<Trace>,
) -> Result<(), Fault> {
    let mut records = records.map(<[u8]>::trim_ascii).filter(|record| !record.is_empty());
    let first = records.next().unwrap_or_default();
    let file: File<'_> = serde_json::from_slice(first).map_err(Fault::Json)?;
    if !file.is_qlog() {
        return Err(Fault::NotQlog);
    }
    let fields = file.trace.and_then(|trace| serde_json::from_str::<TraceFields<'_>>(trace.get()).ok());
    let mut groups = Groups::new(fields.as_ref());
    for record in records {
        groups.event(record, &mut log.left_out);
    }
    groups.finish(log, all);
    Ok(())
}

/// Reads a trace of a contained file.
fn contained(trace: &RawValue, log: &mut Log, all: &mut Vec<Trace>) {
    let Ok(fields) = serde_json::from_str::<TraceFields<'_>>(trace.get()) else {
        log.left_out.unreadable += 1;
        return;
    };
    let mut groups = Groups::new(Some(&fields));
    for event in &fields.events {
        groups.event(event.get().as_bytes(), &mut log.left_out);
    }
    groups.finish(log, all);
}

impl Groups {
    fn new(fields: Option<&TraceFields<'_>>) -> Self {
        let null = Value::Null;
        let (point, common, configuration, names) = fields.map_or((&null, &null, &null, &null), |fields| {
            (&fields.vantage_point, &fields.common_fields, &fields.configuration, &fields.event_fields)
        });
        // Of the network, the flow names the end whose packets are sent.
        let kind = point.get("type").and_then(name);
        let unit = any(configuration, &["time_units"]).or(any(common, &["time_units"])).and_then(name);
        let format = any(common, &["time_format"]).and_then(name);
        Self {
            end: match kind.as_deref() {
                Some("client") => Some(Sender::Client),
                Some("server") => Some(Sender::Server),
                _ => None,
            },
            is_of_network: kind.as_deref() == Some("network"),
            program: point.get("name").and_then(text),
            group: any(common, &["group_id", "ODCID", "odcid"]).and_then(text).unwrap_or_default(),
            clock: Clock {
                unit: if unit.as_deref() == Some("us") { 1e3 } else { 1e6 },
                is_delta: matches!(format.as_deref(), Some("delta" | "relativetopreviousevent")),
            },
            fields: names.as_array().map_or_else(Vec::new, |names| {
                names.iter().map(|name| name.as_str().unwrap_or_default().to_ascii_lowercase()).collect()
            }),
            readings: BTreeMap::new(),
            order: Vec::new(),
        }
    }

    fn event(&mut self, event: &[u8], left_out: &mut LeftOut) {
        let Ok(event) = serde_json::from_slice::<Value>(event) else {
            left_out.unreadable += 1;
            return;
        };
        let place = self.fields.iter().position(|field| field == "group_id");
        let of_array = place.and_then(|place| event.get(place));
        let group = any(&event, &["group_id", "ODCID"]).or(of_array).and_then(text);
        let group = group.unwrap_or_else(|| self.group.clone());
        if !self.readings.contains_key(&group) {
            if self.order.len() >= MAX_TRACES {
                left_out.unreadable += 1;
                return;
            }
            self.order.push(group.clone());
            let reading = Reading::new(self.end, self.program.clone(), group.clone());
            self.readings.insert(group.clone(), reading);
        }
        if let Some(reading) = self.readings.get_mut(&group) {
            reading.event(&event, &self.fields, self.clock, left_out);
        }
    }

    fn finish(mut self, log: &mut Log, all: &mut Vec<Trace>) {
        if self.is_of_network || self.order.is_empty() {
            log.skipped += 1;
            return;
        }
        for group in self.order {
            match self.readings.remove(&group) {
                Some(Reading { trace, .. }) if !trace.events.is_empty() => all.push(trace),
                _ => {}
            }
        }
    }
}

/// Leaves out the servers' ends of connections whose clients' are there.
fn finish(mut log: Log) -> Result<Log, Fault> {
    let clients: Vec<String> = log
        .traces
        .iter()
        .filter(|trace| trace.end == Sender::Client && !trace.group.is_empty())
        .map(|trace| trace.group.clone())
        .collect();
    let count = log.traces.len();
    log.traces.retain(|trace| trace.end == Sender::Client || !clients.contains(&trace.group));
    log.other_ends = (count - log.traces.len()) as u64;
    let packets = || log.traces.iter().flat_map(|trace| &trace.events);
    if packets().next().is_none() {
        return Err(Fault::NoPackets(log.left_out.unreadable));
    }
    if packets().all(|event| event.packet.frames.as_ref().is_none_or(Vec::is_empty)) {
        return Err(Fault::NoFrames);
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: &str = r#"{"time": 1, "name": "transport:packet_sent", "data": {"header": {"packet_type": "initial",
        "packet_number": 0}, "raw": {"length": 1200}, "frames": [{"frame_type": "ping"}]}}"#;

    fn contained(events: &str) -> String {
        format!(
            r#"{{"qlog_version": "0.3", "traces": [{{"vantage_point": {{"type": "client"}}, "events": [{events}]}}]}}"#
        )
    }

    fn times(file: &str) -> Vec<i64> {
        read(file.as_bytes()).unwrap().traces[0].events.iter().map(|event| event.at / 1_000_000).collect()
    }

    #[test]
    fn contained_files_sequences_and_lines_are_the_same() {
        let event = SENT.replace('\n', " ");
        let first = r#"{"qlog_format": "JSON-SEQ", "trace": {"vantage_point": {"type": "client"}}}"#;
        let files = [
            contained(&format!("{event}, {event}")),
            format!("\u{1e}{first}\n\u{1e}{event}\n\u{1e}{event}\n"),
            format!("{first}\n{event}\n{event}\n"),
            format!("\u{feff}  {}", contained(&format!("{event}, {event}"))),
        ];
        for file in files {
            assert!(is_json(file.as_bytes()));
            assert_eq!(times(&file), [1, 1], "{file}");
        }
        let arrays = r#"{"qlog_version": "draft-01", "traces": [{"vantage_point": {"type": "CLIENT"}, "configuration":
            {"time_units": "us"}, "event_fields": ["relative_time", "category", "event", "data"], "events":
            [[2000, "TRANSPORT", "PACKET_SENT", {"packet_type": "Initial", "header": {"packet_number": "0",
            "packet_size": 1200}, "frames": [{"frame_type": "ping"}]}]]}]}"#;
        let log = read(arrays.as_bytes()).unwrap();
        let event = &log.traces[0].events[0];
        assert_eq!((event.at, event.packet.length, log.traces[0].end), (2_000_000, 1_200, Sender::Client));
    }

    #[test]
    fn times_may_count_from_the_event_before_and_do_not_run_backwards() {
        let delta = contained(&format!("{SENT}, {SENT}"))
            .replace(r#""events""#, r#""common_fields": {"time_format": "delta"}, "events""#);
        assert_eq!(times(&delta), [1, 2]);
        let backwards = contained(&format!("{}, {SENT}", SENT.replace(": 1,", ": 5,")));
        assert_eq!(times(&backwards), [5, 5]);
        assert_eq!(read(backwards.as_bytes()).unwrap().left_out.backwards, 1);
    }

    #[test]
    fn events_that_cannot_be_read_are_counted() {
        let bad = [
            r#"{"time": 1e999, "name": "quic:packet_sent"}"#,
            r#"{"time": "NaN", "name": "quic:packet_sent"}"#,
            r#"{"name": "quic:packet_sent"}"#,
            r#"{"time": 1, "name": "quic:packet_sent", "data": {"header": {"packet_type": "initial"}}}"#,
            r#"{"time": 1, "name": "quic:packet_sent", "data": {"header": 7}}"#,
            r#"{"time": 1, "name": 7}"#,
            "7",
            "[]",
            "null",
        ];
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let file = contained(&format!("{}, {deep}, {SENT}", bad.join(", ")));
        let log = read(file.as_bytes()).unwrap();
        assert_eq!((log.left_out.unreadable, log.traces[0].events.len()), (10, 1));
    }

    #[test]
    fn files_without_a_diagnosis_have_a_reason() {
        let fault = |file: &str| read(file.as_bytes()).unwrap_err().to_string();
        assert!(fault(r#"{"log": {"entries": []}}"#).contains("no traces"));
        assert!(fault(&contained(SENT)[..200]).starts_with("not qlog"));
        assert!(fault(&contained("")).contains("without packets"));
        let bare = SENT.replace(r#", "frames": [{"frame_type": "ping"}]"#, "");
        assert!(fault(&contained(&bare)).contains("without frames"));
        assert!(fault("\u{1e}{}\n").contains("no traces"));
        assert!(fault(&"{\"a\":".repeat(100_000)).starts_with("not qlog"));
        let network = contained(SENT).replace("client", "network");
        assert!(fault(&network).contains("without packets"));
    }

    #[test]
    fn of_both_ends_of_a_connection_the_clients_is_read() {
        let trace = |end: &str, group: &str| {
            format!(
                r#"{{"vantage_point": {{"type": "{end}"}}, "common_fields": {{"group_id": "{group}"}}, "events": [{SENT}]}}"#
            )
        };
        let all = [trace("server", "a1"), trace("client", "a1"), trace("server", "b2")].join(", ");
        let log = read(format!(r#"{{"traces": [{all}]}}"#).as_bytes()).unwrap();
        let ends: Vec<_> = log.traces.iter().map(|trace| (trace.end, trace.group.as_str())).collect();
        assert_eq!((ends, log.other_ends), (vec![(Sender::Client, "a1"), (Sender::Server, "b2")], 1));
    }
}
