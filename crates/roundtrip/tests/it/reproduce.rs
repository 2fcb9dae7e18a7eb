//! `roundtrip reproduce` as programs see it: its JSON, its exit status, the files it writes.
//!
//! The verdicts are compared with the record; `transcripts.rs` tests the layout. The commands of
//! `papers/coverage.md` are run here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Working directory of a command, removed when dropped.
struct TestDirectory(test_fixture::TestDirectory);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let name = format!("reproduce-{name}");
        Self(test_fixture::TestDirectory::below(env!("CARGO_TARGET_TMPDIR"), &name))
    }

    fn reproduce(&self, arguments: &[&str]) -> Output {
        self.run(&[&["reproduce"], arguments].concat())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
        command.args(arguments).current_dir(&self.0).output().unwrap()
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.0.join(directory)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Tables that take more than a minute without optimisation: users behind a bottleneck, over ten seeds.
const LONG: [&str; 2] = ["dhttp/claims", "dhttp/table-1"];

/// Rows of every table, and the number of figures: of the directory that `ROUNDTRIP_REPRODUCTION` names, which
/// `./ci.sh smoke` writes with the release build, or computed here, without [`LONG`].
fn everything() -> (Vec<Value>, usize) {
    let directory = TestDirectory::new("everything");
    let (rows, figures) = match std::env::var_os("ROUNDTRIP_REPRODUCTION") {
        Some(stored) => {
            let stored = Path::new(&stored);
            (fs::read(stored.join("rows.json")).unwrap(), stored.join("figures"))
        }
        None => {
            let keys = reproduce::catalogue::ENTRIES.iter().map(|entry| entry.key);
            let is_long = |key: &&str| LONG.contains(key) && std::env::var_os("ROUNDTRIP_BLESS").is_none();
            skip::report_skip("dhttp/claims and dhttp/table-1, for want of ROUNDTRIP_REPRODUCTION");
            let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
            command
                .args(["reproduce", "--format", "json", "--figures", "figures"])
                .args(keys.filter(|key| !is_long(key)))
                .env_remove("ROUNDTRIP_LOGS");
            let output = command.current_dir(&directory.0).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            (output.stdout, directory.0.join("figures"))
        }
    };
    (serde_json::from_slice(&rows).unwrap(), fs::read_dir(figures).unwrap().count())
}

/// The record to store: every cell that a run without measurements and logs can test.
fn record_of(rows: &[Value]) -> String {
    let head = "# key, cell, verdict, and ours where it differs; written anew by\n# ROUNDTRIP_BLESS=1 cargo test -p \
                roundtrip -- paper_every_verdict\n";
    let line = |row: &Value| {
        let word = |name: &str| row[name].as_str().unwrap();
        let line = format!("{}\t{}\t{}", word("key"), word("cell"), word("verdict"));
        match (word("verdict"), row["ours"].as_f64()) {
            ("not-testable-here", _) => String::new(),
            ("differs" | "explained", Some(ours)) => format!("{line}\t{ours:.5e}\n"),
            _ => format!("{line}\n"),
        }
    };
    head.to_owned() + &rows.iter().map(line).collect::<String>()
}

/// A single run tests JSON, figures and record, because it takes long without optimisation.
#[test]
fn paper_every_verdict_is_the_recorded_one() {
    let (rows, figures) = everything();
    assert!(rows.len() > 500, "{}", rows.len());
    // Figures 10 to 14 of the DHTTP paper are measured.
    assert_eq!(figures, 15);
    for row in &rows {
        assert_promised(row);
    }
    let record = record_of(&rows);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers/verdicts.tsv");
    if std::env::var_os("ROUNDTRIP_BLESS").is_some() {
        fs::write(path, record).unwrap();
        return;
    }
    let stored = fs::read_to_string(path).unwrap();
    let keys: BTreeSet<&str> = rows.iter().filter_map(|row| row["key"].as_str()).collect();
    let stored = stored.lines().filter(|line| {
        line.starts_with('#') || line.split('\t').next().is_some_and(|key| keys.contains(key))
    });
    assert_eq!(record.lines().collect::<Vec<_>>(), stored.collect::<Vec<_>>());
}

/// A row has the documented fields; an explanation has a mechanism and its bound; a fitted cell is no agreement.
fn assert_promised(row: &Value) {
    let words = ["exact", "within-tolerance", "holds", "fitted", "explained", "differs", "not-testable-here"];
    let names: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    let promised =
        ["bound", "cell", "fitted", "key", "mechanism", "note", "ours", "published", "unit", "verdict"];
    assert_eq!(names, promised, "{row:?}");
    assert!(row["key"].as_str().unwrap().contains('/') && row["cell"].is_string() && row["unit"].is_string());
    assert!(row["published"].is_number() && (row["ours"].is_number() || row["ours"].is_null()));
    let verdict = row["verdict"].as_str().unwrap();
    assert!(words.contains(&verdict), "{row:?}");
    assert!(row["fitted"].is_boolean() && (row["bound"].is_number() || row["bound"].is_null()));
    let is_explained = verdict == "explained";
    assert!(!is_explained || (row["mechanism"].is_string() && row["bound"].is_number()), "{row:?}");
    let agrees = words[..3].contains(&verdict);
    assert!(!agrees || row["fitted"] == Value::Bool(false), "a fitted cell counts as agreement: {row:?}");
}

/// The commands of `papers/coverage.md`, in the order of its rows.
fn coverage() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers/coverage.md");
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let cells =
        rows.map(|row| row.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect::<Vec<_>>());
    let mut commands = Vec::new();
    for (number, cells) in (1..).zip(cells) {
        let [count, _, state, command] = cells.as_slice() else { panic!("{cells:?}") };
        assert_eq!(count.parse(), Ok(number), "{cells:?}");
        assert!(["agrees", "deviates", "partial", "missing"].contains(state), "{cells:?}");
        commands.push(command.trim_matches('`').to_owned());
    }
    assert_eq!(commands.len(), 177);
    commands
}

#[test]
fn every_row_of_the_coverage_holds() {
    let mut commands = coverage();
    commands.sort();
    commands.dedup();
    let directory = TestDirectory::new("coverage");
    for command in commands.iter().filter(|command| !command.ends_with("--measure")) {
        let Some(arguments) = command.strip_prefix("roundtrip ") else { continue };
        let arguments: Vec<&str> = arguments.split(' ').collect();
        // Without optimisation only a few of them run: the others are parts of everything, which another test runs.
        let is_quick = [
            "roundtrip reproduce heidemann-model/table",
            "roundtrip reproduce p-http/figure",
            "roundtrip list",
        ];
        if cfg!(debug_assertions) && !is_quick.iter().any(|quick| command.starts_with(quick)) {
            let keys: Vec<String> = arguments.iter().skip(1).map(|key| (*key).to_owned()).collect();
            assert!(reproduce::catalogue::select(&keys).is_ok(), "{command}");
            continue;
        }
        let output = directory.run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{command}: {}", text(&output.stderr));
    }
}

#[test]
fn every_test_that_the_coverage_names_is_there() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for command in coverage()
        .iter()
        .filter_map(|command| command.strip_prefix("cargo test -p roundtrip").map(str::to_owned))
    {
        let (target, rest) = command.split_once(" -- ").unwrap();
        let (package, target) = target.split_once(" --").unwrap();
        let package = package.strip_prefix('-').unwrap_or("roundtrip");
        let directory = crates.join(package).join(if target == "lib" { "src" } else { "tests" });
        let name = rest.split(' ').next().unwrap();
        assert!(!name.is_empty() && is_named(&directory, name), "{command}");
    }
}

/// Whether this directory contains a test whose name begins so, or a module of this name.
fn is_named(directory: &Path, name: &str) -> bool {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).any(|path| match path.is_dir() {
        true => is_named(&path, name),
        false => {
            let text = fs::read_to_string(&path).unwrap_or_default();
            text.contains(&format!("fn {name}"))
                || (text.contains("#[test]") && path.file_stem() == Some(name.as_ref()))
        }
    })
}

#[test]
fn a_row_is_selected_by_its_labels() {
    let output = TestDirectory::new("row").reproduce(&["heidemann-model/table-3/adsl", "--format", "csv"]);
    let lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 7);
    assert!(lines[1..].iter().all(|line| line.starts_with("heidemann-model/table-3,adsl/")), "{lines:?}");
}

#[test]
fn figures_are_written_to_the_given_directory_and_listed_on_stderr() {
    let directory = TestDirectory::new("figures");
    let output = directory.reproduce(&["heidemann-model/figure-4", "--figures", "plots/new"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(directory.names("plots/new"), ["heidemann-model-figure-4.svg"]);
    assert_eq!(text(&output.stderr), "wrote plots/new/heidemann-model-figure-4.svg\n");
    let svg = fs::read_to_string(directory.0.join("plots/new/heidemann-model-figure-4.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("fast-internet"));
}

#[test]
fn no_file_is_written_unless_requested() {
    let directory = TestDirectory::new("quiet");
    assert_eq!(directory.reproduce(&["heidemann-model/figure-4"]).status.code(), Some(0));
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 0);
}

#[test]
fn a_directory_that_cannot_be_created_is_one_sentence_and_exit_2() {
    let directory = TestDirectory::new("blocked");
    fs::write(directory.0.join("figures"), "a file").unwrap();
    let output = directory.reproduce(&["heidemann-model/figure-2", "--figures", "figures"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let sentence = text(&output.stderr);
    assert!(sentence.starts_with("roundtrip: cannot write figures: "), "{sentence}");
    assert_eq!(sentence.lines().count(), 1);
}
