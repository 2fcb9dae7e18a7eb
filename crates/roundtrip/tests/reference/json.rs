//! Fields of the JSON that verbs print, read from the source of the types that are serialised.

use std::fs;
use std::path::Path;

use super::{cell, root, table};

/// The page.
pub fn page() -> String {
    let sources = sources();
    let mut text = "# JSON\n\nGenerated from the source of the types that are serialised. `--format json` prints an \
                    array of rows, or an object where a caption says so. CSV has the same fields as columns, but for \
                    lists. `null` is a value that is not known.\n"
        .to_owned();
    for (title, captions) in TYPES {
        text += &format!("\n## {title}\n");
        if title == OUTCOMES {
            let rows: Vec<Vec<String>> = lab::row::fields()
                .map(|[key, kind, meaning]| vec![format!("`{key}`"), kind.to_owned(), meaning.to_owned()])
                .collect();
            text += &format!(
                "\nA row for each scenario and engine:\n\n{}",
                table(&["field", "type", "meaning"], &rows)
            );
            let settings: Vec<Vec<String>> = lab::setting::fields()
                .into_iter()
                .map(|[key, kind, meaning]| vec![format!("`{key}`"), kind, meaning])
                .collect();
            text += &format!(
                "\nBehind `tls`, a field for each key that was set or that a list varies, and for what differs between \
                 the networks:\n\n{}",
                table(&["field", "type", "meaning"], &settings)
            );
            let shares: Vec<Vec<String>> = lab::row::graph_fields()
                .map(|[key, kind, meaning]| vec![format!("`{key}`"), kind.to_owned(), meaning.to_owned()])
                .collect();
            text += &format!(
                "\nBefore `stalls`, if a page has dependencies or several hosts: shares of the critical path of the first \
                 simulated run, which add up to 100:\n\n{}",
                table(&["field", "type", "meaning"], &shares)
            );
        }
        for (field, caption) in captions {
            let rows = with_field(&sources, field);
            text += &format!("\n{caption}:\n\n{}", table(&["field", "type", "meaning"], &rows));
        }
    }
    text += "\n## diagnose\n\nAn object for a capture, an array of them for several. Times are milliseconds since the \
             first packet; packets are numbered from 1. Keys of inner objects are in brackets.\n";
    let source = sources.iter().find(|source| source.contains("\"needless_retransmissions\":"));
    let source = source.expect("one file makes the JSON of a diagnosis");
    for (function, caption) in DIAGNOSIS {
        text += &format!("\n{caption}: {}.\n", keys(source, function));
    }
    text + &verdict(&sources)
}

/// Keys of the verdict on all captures.
fn verdict(sources: &[String]) -> String {
    let source =
        sources.iter().find(|source| source.contains("\"failing_runs\":")).expect("a verdict as JSON");
    let (_, body) = source.split_once("pub fn json(").expect("a method");
    let body = body.split("\n    }\n").next().unwrap_or_default();
    let (case, verdict) = body.rsplit_once("json!({").expect("two objects");
    let quoted = |keys: Vec<String>| keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let verdict = quoted_keys(&format!("json!({{{verdict}"));
    format!("\n`verdict`, on all captures: {}; each case: {}.\n", quoted(verdict), quoted(quoted_keys(case)))
}

/// Title of the rows of outcomes, whose fields `lab` lists.
const OUTCOMES: &str = "predict, simulate, measure, compare";

/// Titles; of each type a field that no other serialised type has, and its caption.
const TYPES: [(&str, &[(&str, &str)]); 6] = [
    (OUTCOMES, &[("lost_ms", "A stall")]),
    ("content", &[("saved_bytes", "A row for each format and network")]),
    ("reproduce", &[("published", "A row for each published number")]),
    (
        "connections",
        &[
            ("max_simultaneous", "A row for each threshold, limit and timeout"),
            ("p90_bytes_per_connection", "Further fields of each row, with `--distribution`"),
        ],
    ),
    (
        "load",
        &[
            ("answers_per_second", "An object"),
            ("laws", "Parameters of the run, in the same object"),
            ("p50_ms", "`requests`, with latencies from the scheduled time"),
            (
                "p999",
                "`experienced_ms`, `intended_ms` and `generator_late_ms`: mean, percentiles and maximum",
            ),
            ("generator_share", "`seconds`"),
            ("next", "`bottleneck`"),
            ("slow_connects", "`evidence`"),
            ("max_in_flight", "`shape` in it"),
            ("median_ms", "`ramp` in it"),
            ("nanos", "`first_byte`, `connect` and round trip times in it"),
            ("out_of_order", "`sockets` in it"),
            ("listen_overflows", "`host` in it"),
            ("busiest", "`server` in it"),
            ("waited", "`generator`, and the server's `all` and `busiest` in it"),
            ("limit_per_second", "Of `--find-limit`, an object"),
            ("server_cpus", "`steps` of it"),
        ],
    ),
    ("list", &[("description", "A row for each name")]),
];

const DIAGNOSIS: [(&str, &str); 6] = [
    ("capture", "The object"),
    ("flow", "`flows`"),
    ("finding", "`findings` of a flow"),
    ("exchange", "`exchanges` of a flow"),
    ("kernel", "`kernel` of a flow"),
    ("watch", "`watched`, if sockets were watched instead of packets"),
];

/// Every source file of the libraries and the program.
fn sources() -> Vec<String> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        collect(&entry.unwrap().path().join("src"), &mut sources);
    }
    sources
}

fn collect(directory: &Path, sources: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(fs::read_to_string(path).unwrap());
        }
    }
}

/// The fields of the serialised struct that has this one.
fn with_field(sources: &[String], field: &str) -> Vec<Vec<String>> {
    let quoted_field = format!("`{field}`");
    let structs = sources.iter().flat_map(|source| serialised(source));
    let matching: Vec<Vec<Vec<String>>> =
        structs.filter(|rows| rows.iter().any(|row| row[0] == quoted_field)).collect();
    assert_eq!(matching.len(), 1, "serialised structs with the field {field}");
    matching.into_iter().flatten().collect()
}

/// The fields of each struct of a file that derives `Serialize`.
fn serialised(source: &str) -> Vec<Vec<Vec<String>>> {
    let lines: Vec<&str> = source.lines().collect();
    let derives = lines.iter().enumerate().filter(|(_, line)| {
        line.starts_with("#[derive(") && line.split(['(', ',', ')', ' ']).any(|word| word == "Serialize")
    });
    let bodies = derives.filter_map(|(at, _)| {
        let next = lines[at + 1..].iter().position(|line| !line.starts_with("#["))? + at + 1;
        let is_struct = lines[next].contains("struct ") && lines[next].ends_with('{');
        is_struct.then(|| fields(&lines[next + 1..]))
    });
    bodies.collect()
}

/// Serialised fields in the body of a struct, with their types and doc comments.
fn fields(body: &[&str]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let (mut meaning, mut is_skipped, mut renamed) = (String::new(), false, None);
    for line in body.iter().take_while(|line| **line != "}").map(|line| line.trim()) {
        if let Some(comment) = line.strip_prefix("///") {
            meaning += comment;
        } else if line.starts_with("#[") {
            is_skipped |= line == "#[serde(skip)]" || line == "#[serde(flatten)]";
            let name = line.strip_prefix("#[serde(rename = \"").and_then(|name| name.strip_suffix("\")]"));
            renamed = name.or(renamed);
        } else if let Some((field, kind)) = line.trim_end_matches(',').split_once(": ") {
            let field = renamed.or(field.rsplit(' ').next()).unwrap_or(field);
            if !is_skipped {
                rows.push(vec![format!("`{field}`"), json_type(kind), cell(&meaning)]);
            }
            (meaning, is_skipped, renamed) = (String::new(), false, None);
        }
    }
    rows
}

/// The JSON type of a Rust type.
fn json_type(kind: &str) -> String {
    if let Some(inner) = kind.strip_prefix("Option<") {
        return format!("{} or null", json_type(inner.trim_end_matches('>')));
    }
    if kind.starts_with("Vec<") || kind.starts_with(['(', '[']) {
        return "array".to_owned();
    }
    match kind {
        "String" | "&'static str" | "Cause" | "Verdict" => "string",
        "bool" => "boolean",
        "f64" | "u32" | "u64" | "i64" | "usize" => "number",
        _ => "object",
    }
    .to_owned()
}

/// Keys of the object that a function returns, in order; keys of inner objects follow theirs in brackets.
fn keys(source: &str, function: &str) -> String {
    let body = body(source, function);
    let (before, object) =
        body.rsplit_once("\n    json!({\n").unwrap_or_else(|| panic!("{function}: no object"));
    let mut keys: Vec<(String, String)> = Vec::new();
    for line in object.lines() {
        let top_level = line.strip_prefix("        \"").and_then(|rest| rest.split_once("\": "));
        match (top_level, keys.last_mut()) {
            (Some((key, value)), _) => keys.push((key.to_owned(), value.to_owned())),
            (None, Some((_, value))) => *value += line,
            (None, None) => {}
        }
    }
    let shown = keys.iter().map(|(key, value)| {
        let inner = inner(source, before, value);
        let inner: Vec<String> = inner.iter().map(|key| format!("`{key}`")).collect();
        if inner.is_empty() { format!("`{key}`") } else { format!("`{key}` [{}]", inner.join(", ")) }
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// The body of a function.
fn body(source: &str, function: &str) -> String {
    let start = format!("fn {function}(");
    let lines = source.lines().skip_while(|line| !line.starts_with(&start)).take_while(|line| *line != "}");
    lines.collect::<Vec<_>>().join("\n")
}

/// Keys of the objects in a value: its own, or those of the variable or function that it names.
fn inner(source: &str, before: &str, value: &str) -> Vec<String> {
    let name: String =
        value.chars().take_while(|letter| letter.is_ascii_lowercase() || *letter == '_').collect();
    if value.contains("json!({") {
        return quoted_keys(value);
    }
    if value.starts_with(&format!("{name}(")) {
        return quoted_keys(&body(source, &name));
    }
    let variable = before.rsplit_once(&format!("let {name} ="));
    variable.map_or_else(Vec::new, |(_, rest)| quoted_keys(rest.split(';').next().unwrap_or_default()))
}

fn quoted_keys(text: &str) -> Vec<String> {
    let Some((_, object)) = text.split_once("json!({") else { return Vec::new() };
    let before_colons = object.split("\": ").filter_map(|piece| piece.rsplit_once('"'));
    let is_key = |key: &&str| key.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    let mut keys: Vec<String> = before_colons.map(|(_, key)| key).filter(is_key).map(str::to_owned).collect();
    // Only a value follows the last colon.
    keys.truncate(object.matches("\": ").count());
    keys
}

#[test]
fn fields_are_read_with_their_comments() {
    let source = "/// A row.\n#[derive(Clone, Serialize)]\npub struct Row<'a> {\n    /// The name.\n    pub name: \
                  String,\n    #[serde(skip)]\n    hidden: u64,\n    /// A time,\n    /// in ms.\n    at_ms: \
                  Option<f64>,\n}\n#[derive(Clone)]\nstruct Other {\n    of: u8,\n}\n";
    let expected = [["`name`", "string", "The name."], ["`at_ms`", "number or null", "A time, in ms."]];
    assert_eq!(serialised(source), [expected]);
}
