//! Transcripts of the program's output, run again and compared.
//!
//! A file in `transcripts/` has commands with their output: `$ ` is typed, `! ` came on stderr, `? ` is an exit status
//! other than 0, all else came on stdout. After an intended change, `ROUNDTRIP_BLESS=1 cargo test -p roundtrip` writes
//! them again; read the difference before you commit it. Nothing here needs privileges or takes time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn every_transcript_equals_the_output() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    if !cfg!(feature = "image-codecs") {
        skip::report_skip("content.txt, for want of the feature image-codecs");
        files.retain(|path| !path.ends_with("content.txt"));
    }
    files.sort();
    assert!(!files.is_empty(), "no transcripts in {}", directory.display());
    let differences: Vec<String> = files.iter().filter_map(|path| difference(path, &directory)).collect();
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

/// Difference of a transcript from the current output; writes the transcript again if requested.
fn difference(path: &Path, directory: &Path) -> Option<String> {
    let before = fs::read_to_string(path).unwrap();
    let commands = before.lines().filter_map(|line| line.strip_prefix("$ "));
    let now: Vec<String> = commands.map(|command| run(command, directory)).collect();
    let now = now.join("\n");
    if now == before {
        return None;
    }
    if std::env::var_os("ROUNDTRIP_BLESS").is_some() {
        fs::write(path, now).unwrap();
        return None;
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), now.lines().collect());
    Some(format!(
        "{} (- is the transcript, + the program):\n{}",
        path.display(),
        lines_that_differ(&old, &new)
    ))
}

/// Runs a command, and returns it with all output.
fn run(typed: &str, directory: &Path) -> String {
    let arguments = words(typed);
    assert_eq!(arguments[0], "roundtrip", "only roundtrip is run here: {typed}");
    let output = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
        .args(&arguments[1..])
        .current_dir(directory)
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    let mut text = format!("$ {typed}\n{}", String::from_utf8_lossy(&output.stdout).replace('\r', ""));
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        text += &format!("! {line}\n");
    }
    match output.status.code() {
        Some(0) => {}
        code => text += &format!("? {code:?}\n").replace("Some(", "").replace(')', ""),
    }
    text
}

/// Words of a command, split as by a shell, with single quotes only.
fn words(typed: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in typed.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    words
}

/// Marks the lines that are not in a longest common subsequence.
fn lines_that_differ(old: &[&str], new: &[&str]) -> String {
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for (i, old_line) in old.iter().enumerate().rev() {
        for (j, new_line) in new.iter().enumerate().rev() {
            common[i][j] = match old_line == new_line {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut text) = (0, 0, String::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            text += &format!("  {:4} - {}\n", i + 1, old[i]);
            i += 1;
        } else {
            text += &format!("  {:4} + {}\n", j + 1, new[j]);
            j += 1;
        }
    }
    text
}
