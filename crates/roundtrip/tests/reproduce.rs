//! `roundtrip reproduce` as programs see it: its JSON, its exit status, the files it writes.
//!
//! Not the verdicts themselves: a unit test compares those with the record. Not the layout: that is in `transcripts.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A directory of one test's own, the current one of the command, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("reproduce-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn reproduce(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
        command.arg("reproduce").args(arguments).current_dir(&self.0).output().unwrap()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.0.join(folder)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_json_has_a_row_for_every_published_number_with_the_promised_fields() {
    let output = Folder::new("json").reproduce(&["--format", "json"]);
    assert_eq!(output.status.code(), Some(0));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(rows.len() > 500, "{}", rows.len());
    let words = ["exact", "within-tolerance", "explained", "differs", "not-testable-here"];
    for row in &rows {
        let row = row.as_object().unwrap();
        let names: Vec<&str> = row.keys().map(String::as_str).collect();
        assert_eq!(names, ["cell", "key", "note", "ours", "published", "unit", "verdict"], "{row:?}");
        assert!(
            row["key"].as_str().unwrap().contains('/') && row["cell"].is_string() && row["unit"].is_string()
        );
        assert!(row["published"].is_number() && (row["ours"].is_number() || row["ours"].is_null()));
        assert!(words.contains(&row["verdict"].as_str().unwrap()), "{row:?}");
        assert!(row["note"].is_string() || row["verdict"] == "exact", "{row:?}");
    }
}

#[test]
fn figures_are_written_to_the_given_directory_and_listed_on_stderr() {
    let folder = Folder::new("figures");
    let output = folder.reproduce(&["heidemann-model/figure-4", "--figures", "plots/new"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(folder.names("plots/new"), ["heidemann-model-figure-4.svg"]);
    assert_eq!(text(&output.stderr), "wrote plots/new/heidemann-model-figure-4.svg\n");
    let svg = fs::read_to_string(folder.0.join("plots/new/heidemann-model-figure-4.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("fast-internet"));
}

#[test]
fn everything_writes_every_figure_and_a_table_writes_none() {
    let folder = Folder::new("default");
    folder.reproduce(&["heidemann-model/table-3"]);
    assert_eq!(folder.names("figures"), [] as [String; 0]);
    folder.reproduce(&[]);
    // Figures 6 to 9 of the DHTTP paper are of a server's log, which is not part of this tree.
    let of_a_log = std::env::var_os("ROUNDTRIP_LOGS").map_or(0, |_| 4);
    if of_a_log == 0 {
        skip::because("figures 6 to 9 of the DHTTP paper, for want of ROUNDTRIP_LOGS");
    }
    assert_eq!(folder.names("figures").len(), 10 + of_a_log);
}

#[test]
fn a_directory_that_cannot_be_created_is_one_sentence_and_exit_2() {
    let folder = Folder::new("blocked");
    fs::write(folder.0.join("figures"), "a file").unwrap();
    let output = folder.reproduce(&["heidemann-model/figure-2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let sentence = text(&output.stderr);
    assert!(sentence.starts_with("roundtrip: cannot write figures: "), "{sentence}");
    assert_eq!(sentence.lines().count(), 1);
}
