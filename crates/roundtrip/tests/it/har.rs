//! The HAR files that `simulate --har` and `measure --har` write: valid HTTP Archive 1.2, and the same page when they
//! are read again.
//!
//! The reference is the specification (W3C Web Performance working group, HAR 1.2, August 2012): the mandatory fields
//! with their types, and the optional ones. All others begin with an underscore. Measurements are skipped, with a
//! message, where the system has no laboratory.

use std::fs;
use std::process::Command;

use serde_json::Value;

/// Type of a field.
#[derive(Clone, Copy, Debug)]
enum FieldType {
    Text,
    /// ISO 8601 with a time zone.
    Date,
    Address,
    /// Milliseconds or bytes.
    Amount,
    /// Milliseconds or bytes, or -1 if unknown.
    AmountOrNone,
    Is(&'static [Field]),
    ListOf(&'static [Field]),
}
use FieldType::{Address, Amount, AmountOrNone, Date, Is, ListOf, Text};

/// Name, type, and whether the field is mandatory.
type Field = (&'static str, FieldType, bool);

const FILE: &[Field] = &[("log", Is(LOG), true)];
const LOG: &[Field] = &[
    ("version", Text, true),
    ("creator", Is(CREATOR), true),
    ("browser", Is(CREATOR), false),
    ("pages", ListOf(PAGE), false),
    ("entries", ListOf(ENTRY), true),
    ("comment", Text, false),
];
const CREATOR: &[Field] = &[("name", Text, true), ("version", Text, true), ("comment", Text, false)];
const PAGE: &[Field] = &[
    ("startedDateTime", Date, true),
    ("id", Text, true),
    ("title", Text, true),
    ("pageTimings", Is(PAGE_TIMINGS), true),
    ("comment", Text, false),
];
const PAGE_TIMINGS: &[Field] =
    &[("onContentLoad", AmountOrNone, false), ("onLoad", AmountOrNone, false), ("comment", Text, false)];
const ENTRY: &[Field] = &[
    ("pageref", Text, false),
    ("startedDateTime", Date, true),
    ("time", Amount, true),
    ("request", Is(REQUEST), true),
    ("response", Is(RESPONSE), true),
    ("cache", Is(&[]), true),
    ("timings", Is(TIMINGS), true),
    ("serverIPAddress", Text, false),
    ("connection", Text, false),
    ("comment", Text, false),
];
const REQUEST: &[Field] = &[
    ("method", Text, true),
    ("url", Address, true),
    ("httpVersion", Text, true),
    ("cookies", ListOf(NAME_VALUE), true),
    ("headers", ListOf(NAME_VALUE), true),
    ("queryString", ListOf(NAME_VALUE), true),
    ("headersSize", AmountOrNone, true),
    ("bodySize", AmountOrNone, true),
];
const RESPONSE: &[Field] = &[
    ("status", Amount, true),
    ("statusText", Text, true),
    ("httpVersion", Text, true),
    ("cookies", ListOf(NAME_VALUE), true),
    ("headers", ListOf(NAME_VALUE), true),
    ("content", Is(CONTENT), true),
    ("redirectURL", Text, true),
    ("headersSize", AmountOrNone, true),
    ("bodySize", AmountOrNone, true),
];
const NAME_VALUE: &[Field] = &[("name", Text, true), ("value", Text, true)];
const CONTENT: &[Field] = &[
    ("size", Amount, true),
    ("compression", Amount, false),
    ("mimeType", Text, true),
    ("text", Text, false),
];
const TIMINGS: &[Field] = &[
    ("blocked", AmountOrNone, false),
    ("dns", AmountOrNone, false),
    ("connect", AmountOrNone, false),
    ("send", Amount, true),
    ("wait", Amount, true),
    ("receive", Amount, true),
    ("ssl", AmountOrNone, false),
];

/// Type errors in a value, each with its position.
fn type_errors(path: &str, value: &Value, expected_type: FieldType) -> Vec<String> {
    let is_right = match expected_type {
        Text => value.is_string(),
        Date => value.as_str().is_some_and(is_date),
        Address => value
            .as_str()
            .is_some_and(|address| address.starts_with("http://") || address.starts_with("https://")),
        Amount => value.as_f64().is_some_and(|amount| amount >= 0.0),
        AmountOrNone => value.as_f64().is_some_and(|amount| amount >= 0.0 || amount == -1.0),
        Is(fields) => {
            let Some(object) = value.as_object() else { return vec![format!("{path} is not an object")] };
            let missing = fields.iter().filter(|(name, _, must)| *must && !object.contains_key(*name));
            let mut errors: Vec<String> =
                missing.map(|(name, ..)| format!("{path}.{name} is missing")).collect();
            for (name, value) in object {
                let path = format!("{path}.{name}");
                match fields.iter().find(|(known, ..)| known == name) {
                    Some((_, expected_type, _)) => errors.extend(type_errors(&path, value, *expected_type)),
                    None if name.starts_with('_') => {}
                    None => errors.push(format!("{path} is not in the format")),
                }
            }
            return errors;
        }
        ListOf(fields) => {
            let Some(list) = value.as_array() else { return vec![format!("{path} is not a list")] };
            let each = list.iter().enumerate();
            return each
                .flat_map(|(n, value)| type_errors(&format!("{path}[{n}]"), value, Is(fields)))
                .collect();
        }
    };
    if is_right { Vec::new() } else { vec![format!("{path} is {value}, not {expected_type:?}")] }
}

/// `1997-06-24T00:00:00.000Z`
fn is_date(text: &str) -> bool {
    let shape: String =
        text.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    shape == "0000-00-00T00:00:00.000Z"
}

/// Inconsistencies between fields.
fn contradictions(file: &Value) -> Vec<String> {
    let list = |name: &str| file["log"][name].as_array().cloned().unwrap_or_default();
    let pages: Vec<Value> = list("pages").into_iter().map(|page| page["id"].clone()).collect();
    let mut errors = Vec::new();
    for (number, entry) in list("entries").iter().enumerate() {
        if !pages.contains(&entry["pageref"]) {
            errors.push(format!("entry {number} has no page"));
        }
        let parts = ["blocked", "dns", "connect", "send", "wait", "receive"];
        let sum: f64 =
            parts.iter().filter_map(|part| entry["timings"][part].as_f64()).filter(|ms| *ms > 0.0).sum();
        let time = entry["time"].as_f64().unwrap_or(f64::NAN);
        if (sum - time).abs() > 1e-6 {
            errors.push(format!("entry {number} took {time}, and its parts {sum}"));
        }
    }
    errors
}

/// Temporary directory, removed when dropped.
struct TestDirectory(test_fixture::TestDirectory);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let name = format!("har-{name}");
        Self(test_fixture::TestDirectory::below(env!("CARGO_TARGET_TMPDIR"), &name))
    }

    /// Writes `run.har` with these arguments; `None`, with a message, where nothing can be measured.
    fn recorded(&self, arguments: &[&str]) -> Option<Value> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
        let output =
            command.args(arguments).args(["--har", "run.har"]).current_dir(&self.0).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        if printed.contains("cannot measure here") {
            skip::refused(&printed);
            return None;
        }
        assert!(output.status.success(), "{printed}");
        Some(serde_json::from_slice(&fs::read(self.0.join("run.har")).unwrap()).unwrap())
    }

    /// Simulates the page of `run.har`; the second value is its notes, or the error. Notes are in the rows alone.
    fn read_again(&self) -> (Value, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
        let arguments = ["simulate", "--page", "run.har", "--network", "ethernet", "--protocol", "http11"];
        let output = command
            .args(arguments)
            .args(["--runs", "1", "--format", "json"])
            .current_dir(&self.0)
            .output()
            .unwrap();
        let rows: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(rows.is_null() || printed.is_empty(), "notes are printed twice: {printed}");
        let notes = rows[0]["notes"].to_string();
        (rows, notes + &printed)
    }
}

fn sizes(file: &Value) -> Vec<u64> {
    let entries = file["log"]["entries"].as_array().cloned().unwrap_or_default();
    entries.iter().filter_map(|entry| entry["response"]["bodySize"].as_u64()).collect()
}

const PAGE_SIZES: [&str; 2] = ["--page", "6651+3883+1866"];

#[test]
fn a_simulated_run_is_a_valid_archive_with_every_protocol() {
    let directory = TestDirectory::new("har-simulated");
    for (protocol, visit) in [
        ("http10", "first"),
        ("http10-keepalive", "first"),
        ("ttcp", "first"),
        ("ardp", "first"),
        ("dhttp", "first"),
        ("http11", "first"),
        ("http11-pipelined", "first"),
        ("http11-pipelined", "revalidate"),
    ] {
        let scenario =
            ["simulate", "--network", "modem", "--runs", "1", "--protocol", protocol, "--visit", visit];
        let file = directory.recorded(&[&scenario[..], &PAGE_SIZES].concat()).unwrap();
        let errors = [type_errors("file", &file, Is(FILE)), contradictions(&file)].concat();
        assert!(errors.is_empty(), "{protocol}, {visit}: {errors:?}");
        let (rows, printed) = directory.read_again();
        if visit == "first" {
            let mut sizes = sizes(&file);
            sizes.sort_unstable();
            assert_eq!(sizes, [1_866, 3_883, 6_651], "{protocol}");
            assert!(rows[0]["elapsed_ms"].is_number(), "{protocol}: {printed}");
        } else {
            assert!(printed.contains("3 without a body, which count as 1 byte"), "{printed}");
        }
    }
}

/// A page of two hosts, whose image does not count for the event.
const GRAPH: &str = r#"
host = [{ name = "a.example" }, { name = "b.example" }]
object = [
  { path = "/", type = "document", size = 9000 },
  { host = "b.example", path = "/x.css?v=1", type = "style-sheet", size = 3000, after = ["1"] },
  { path = "/late.png", type = "image", size = 40000, load = false, after = ["2"] },
]
"#;

#[test]
fn a_simulated_graph_has_the_urls_types_and_event_of_its_page() {
    let directory = TestDirectory::new("har-graph");
    fs::write(directory.0.join("page.toml"), GRAPH).unwrap();
    let scenario = ["simulate", "--network", "cable", "--protocol", "http2", "--page", "page.toml"];
    let file = directory.recorded(&scenario).unwrap();
    let errors = [type_errors("file", &file, Is(FILE)), contradictions(&file)].concat();
    assert!(errors.is_empty(), "{errors:?}");
    let entries = file["log"]["entries"].as_array().unwrap();
    let named = |entry: &Value| {
        let mime = entry["response"]["content"]["mimeType"].as_str().unwrap().to_owned();
        (entry["request"]["url"].as_str().unwrap().to_owned(), mime)
    };
    let expected = [
        ("https://a.example/", "text/html"),
        ("https://b.example/x.css?v=1", "text/css"),
        ("https://a.example/late.png", "image/png"),
    ];
    assert_eq!(
        entries.iter().map(named).collect::<Vec<_>>(),
        expected.map(|(url, mime)| (url.into(), mime.into()))
    );
    // In the first minute of the day of the note.
    let end = |entry: &Value| {
        let began = entry["startedDateTime"].as_str().unwrap();
        let second: f64 = began.trim_end_matches('Z').rsplit(':').next().unwrap().parse().unwrap();
        1e3 * second + entry["time"].as_f64().unwrap()
    };
    let load = file["log"]["pages"][0]["pageTimings"]["onLoad"].as_f64().unwrap();
    assert!((load - end(&entries[1])).abs() < 1.5 && load + 10.0 < end(&entries[2]), "{load}: {entries:?}");
}

#[test]
fn a_measured_run_is_a_valid_archive_and_the_same_page_again() {
    let directory = TestDirectory::new("har-measured");
    let scenario = ["measure", "--network", "fast-ethernet", "--runs", "1", "--protocol", "http11"];
    let Some(file) = directory.recorded(&[&scenario[..], &PAGE_SIZES].concat()) else { return };
    let errors = [type_errors("file", &file, Is(FILE)), contradictions(&file)].concat();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(sizes(&file), [6_651, 3_883, 1_866]);
    let (rows, printed) = directory.read_again();
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
    let arguments = ["simulate", "--network", "ethernet", "--protocol", "http11", "--runs", "1"];
    let requested = command.args(arguments).args(["--format", "json"]).args(PAGE_SIZES).output().unwrap();
    let requested: Value = serde_json::from_slice(&requested.stdout).unwrap();
    assert_eq!(rows[0]["payload_bytes"], requested[0]["payload_bytes"], "{printed}");
}

#[test]
fn violations_of_the_format_are_found() {
    let directory = TestDirectory::new("har-wrong");
    let scenario = ["simulate", "--network", "ethernet", "--runs", "1", "--protocol", "http11"];
    let good = directory.recorded(&[&scenario[..], &PAGE_SIZES].concat()).unwrap();
    for (pointer, value) in [
        ("/log/entries/0/time", Value::Null),
        ("/log/entries/0/startedDateTime", "today".into()),
        ("/log/entries/1/timings/send", (-1).into()),
        ("/log/entries/1/request", Value::Array(Vec::new())),
        ("/log/pages", Value::Array(Vec::new())),
    ] {
        let mut file = good.clone();
        *file.pointer_mut(pointer).unwrap() = value;
        let errors = [type_errors("file", &file, Is(FILE)), contradictions(&file)].concat();
        assert!(!errors.is_empty(), "{pointer}");
    }
}
