//! Guarantees to programs: the JSON's names and types, exit statuses, and output that is complete or absent.
//!
//! `transcripts.rs` tests the layout.

use std::fs;
use std::io::Read;
use std::process::{Command, Output, Stdio};

use linux::mounts;

use serde_json::Value;

fn roundtrip(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Temporary directory, removed when dropped.
struct TestDirectory(test_fixture::TestDirectory);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let name = format!("contract-{name}");
        Self(test_fixture::TestDirectory::below(env!("CARGO_TARGET_TMPDIR"), &name))
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn names(&self) -> Vec<String> {
        fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

/// Each field of a row: its name, and whether null is allowed.
const FIELDS: [(&str, FieldKind); 20] = [
    ("network", FieldKind::Text),
    ("page", FieldKind::Text),
    ("visit", FieldKind::Text),
    ("protocol", FieldKind::Text),
    ("engine", FieldKind::Text),
    ("stack", FieldKind::Text),
    ("tls", FieldKind::Text),
    ("elapsed_ms", FieldKind::NumberOrNull),
    ("overhead", FieldKind::NumberOrNull),
    ("round_trips", FieldKind::NumberOrNull),
    ("packets_up", FieldKind::NumberOrNull),
    ("packets_down", FieldKind::NumberOrNull),
    ("payload_bytes", FieldKind::NumberOrNull),
    ("overhead_percent", FieldKind::NumberOrNull),
    ("connections", FieldKind::NumberOrNull),
    ("runs", FieldKind::Number),
    ("elapsed_ms_stddev", FieldKind::NumberOrNull),
    ("load_ms", FieldKind::NumberOrNull),
    ("stalls", FieldKind::List),
    ("notes", FieldKind::List),
];

#[derive(Clone, Copy)]
enum FieldKind {
    Text,
    Number,
    NumberOrNull,
    List,
}

/// Further fields where the networks are several, after `tls`.
const OF_NETWORKS: [&str; 4] = ["rtt_ms", "rate_down_mbps", "rate_up_mbps", "mss"];

fn check_row(row: &Value) {
    let names: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = FIELDS.map(|(name, _)| name).to_vec();
    expected.extend(OF_NETWORKS);
    assert!(OF_NETWORKS.into_iter().all(|name| row[name].is_number()), "{row}");
    expected.sort_unstable();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    for (name, kind) in FIELDS {
        let value = &row[name];
        let fits = match kind {
            FieldKind::Text => value.is_string(),
            FieldKind::Number => value.is_number(),
            FieldKind::NumberOrNull => value.is_number() || value.is_null(),
            FieldKind::List => value.is_array(),
        };
        assert!(fits, "{name} is {value}");
    }
    for stall in row["stalls"].as_array().unwrap() {
        let keys: Vec<&str> = stall.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys.len(), 3, "{stall}");
        assert!(
            stall["cause"].is_string() && stall["at_ms"].is_number() && stall["lost_ms"].is_number(),
            "{stall}"
        );
    }
    assert!(row["notes"].as_array().unwrap().iter().all(Value::is_string));
}

#[test]
fn every_row_of_every_network_page_and_protocol_has_the_promised_fields() {
    let output =
        roundtrip(&["predict", "--network", "all", "--page", "all", "--protocol", "all", "--format", "json"]);
    assert!(output.status.success());
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows.len(), 10 * 6 * 13);
    rows.iter().for_each(check_row);
}

#[test]
fn csv_has_the_columns_of_the_json_and_as_many_lines() {
    let csv = text(&roundtrip(&["predict", "--network", "all", "--format", "csv"]).stdout);
    let mut lines = csv.split_terminator("\r\n");
    let (labels, metrics) = FIELDS.split_at(7);
    let labels = labels.iter().map(|(name, _)| *name);
    let columns: Vec<&str> = labels.chain(OF_NETWORKS).chain(metrics.iter().map(|(name, _)| *name)).collect();
    assert_eq!(lines.next().unwrap(), columns.join(","));
    // One network that is named has no values of its own.
    let csv = text(&roundtrip(&["predict", "--format", "csv"]).stdout);
    assert_eq!(csv.lines().next().unwrap(), FIELDS.map(|(name, _)| name).join(","));
    assert_eq!(lines.count(), 10 * 10);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
        .args(["predict", "--network", "all", "--page", "all", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0];
    // More than a pipe buffer is pending: the rest meets a closed pipe.
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_full_disk_is_reported_in_one_sentence() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
        .arg("predict")
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let printed = "roundtrip: cannot write to standard output: the disk is full; free some space or choose another path\n";
    assert_eq!(text(&output.stderr), printed);
}

#[test]
fn a_report_is_written_whole_or_not_at_all() {
    let directory = TestDirectory::new("page");
    let path = directory.file("page.html");
    for _ in 0..2 {
        assert!(roundtrip(&["predict", "--report", &path]).status.success());
        assert_eq!(directory.names(), ["page.html"]);
    }
    let page = fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    for remote in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(remote), "a page must be self-contained: it has {remote}");
    }
    let missing = roundtrip(&["predict", "--report", &directory.file("no/such/folder.html")]);
    assert_eq!(missing.status.code(), Some(2));
    let onto_directory = roundtrip(&["predict", "--report", directory.0.to_str().unwrap()]);
    assert_eq!(onto_directory.status.code(), Some(2));
    assert_eq!(directory.names(), ["page.html"]);
}

#[test]
fn nothing_is_left_behind_on_a_full_disk() {
    let directory = TestDirectory::new("tiny");
    let path = directory.0.to_str().unwrap();
    // In a mount namespace of its own: the small disk disappears with the script.
    let script = format!(
        "{} predict --report {path}/page.html; \
         echo status $? >&2; ls -A {path} >&2",
        env!("CARGO_BIN_EXE_roundtrip")
    );
    let output = mounts::apart(|| {
        mounts::mount("tmpfs", path, "size=4k")?;
        Ok(Command::new("sh").args(["-c", &script]).output().unwrap())
    });
    let output = match output {
        Ok(output) => output,
        Err(refused) => return skip::report_skip(&refused.to_string()),
    };
    let expected = format!(
        "roundtrip: cannot write {path}/page.html: the disk is full; free some space or choose another path\n\
         status 2\n"
    );
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn what_a_flag_cannot_do_is_refused_with_what_it_can_do() {
    for (arguments, expected) in [
        (
            ["page", "small-cluster", "--plot", "p.jpg"],
            "--plot p.jpg: not a format that it writes; give FILE.svg",
        ),
        (["predict", "--protocol=http10", "--contours", "p.png"], "give FILE.svg"),
        (
            ["diagnose", "c.pcap", "--report", "r.pdf"],
            "--report r.pdf: not a format that it writes; give FILE.html",
        ),
        (["simulate", "--protocol=http10", "--plot", "p.jpg"], "give FILE.svg, FILE.png or FILE.xpl"),
        (["reproduce", "heidemann", "--format", "json"], "did you mean `heidemann-model`?"),
        (["load", "ftp://127.0.0.1/", "--for", "1s"], "begins with http:// or https://"),
        (["load", "http://127.0.0.1/", "--rate=1", "--report=r.html"], "roundtrip load page"),
    ] {
        let output = roundtrip(&arguments);
        let reported = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {reported}");
        assert!(reported.contains(expected) && reported.lines().count() == 1, "{arguments:?}: {reported}");
    }
}

#[test]
fn the_same_command_prints_the_same_bytes() {
    let predict = || roundtrip(&["predict", "--network", "all", "--format", "json"]).stdout;
    assert_eq!(predict(), predict());
}

#[test]
fn completions_and_manual_pages_know_every_verb() {
    let verbs = ["predict", "simulate", "measure", "compare", "reproduce", "list", "completions", "man"];
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&roundtrip(&["completions", shell]).stdout);
        assert!(verbs.iter().all(|verb| script.contains(verb)), "{shell}");
        assert!(script.contains("fast-internet"), "{shell} completes names");
    }
    for verb in verbs {
        let page = text(&roundtrip(&["man", verb]).stdout);
        assert!(page.contains(&format!(".TH roundtrip\\-{verb} 1")) || page.contains(".TH"), "{verb}");
        assert!(page.contains(".SH EXAMPLES"), "{verb}");
    }
}

#[test]
fn every_value_of_every_flag_gets_one_sentence_or_a_result() {
    let flags = [
        "--network",
        "--page",
        "--protocol",
        "--stack",
        "--visit",
        "--requests",
        "--parallel",
        "--connection",
        "--processing",
        "--request-size",
        "--acks",
        "--seed",
        "--rtt",
        "--rate",
        "--rate-up",
        "--delay-up",
        "--mss",
        "--mtu",
        "--queue",
        "--loss",
        "--jitter",
        "--reordering",
        "--duplication",
        "--format",
    ];
    let huge = "9".repeat(5_000);
    let values = ["", " ", "-1", "0", "1e400", "0.0000000001%", "\u{1b}[31mred", "é∞", "1+", "../..", &huge];
    for flag in flags {
        for value in values {
            // In one word and in two: clap parses them differently.
            for arguments in [vec![format!("{flag}={value}")], vec![flag.to_owned(), value.to_owned()]] {
                let typed: Vec<&str> =
                    ["predict"].into_iter().chain(arguments.iter().map(String::as_str)).collect();
                check_output(&roundtrip(&typed), &typed);
            }
        }
    }
    let coloured = "\u{1b}[31m";
    for typed in [
        [coloured, ""],
        ["--x\u{1b}", ""],
        ["", ""],
        ["predict", coloured],
        ["man", coloured],
        ["list", coloured],
    ] {
        check_output(&roundtrip(&typed), &typed);
    }
}

fn check_output(output: &Output, typed: &[&str]) {
    let printed = text(&output.stderr);
    match output.status.code() {
        Some(0) => assert_eq!(printed, "", "{typed:?}"),
        Some(2) => {
            assert!(printed.starts_with("roundtrip: ") && printed.ends_with('\n'), "{typed:?}: {printed}");
            let sentence = printed.trim_end_matches('\n');
            assert!(!sentence.contains(char::is_control), "{typed:?}: {printed:?}");
            assert!(sentence.len() < 1_200, "{typed:?}: a sentence of {} bytes", sentence.len());
        }
        other => panic!("{typed:?} ended with {other:?}: {printed}"),
    }
}
