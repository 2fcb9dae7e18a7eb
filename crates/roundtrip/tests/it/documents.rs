//! Commands of the documentation, run. Those that need no privileges, network or other program, and take little time:
//! see [`may_run`]. `parse.rs`, a unit test of the program, parses all of them.

mod commands;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use commands::DocumentedCommand;

/// Time limit of one command in a debug build, on a busy host.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Whether a command is run here, by these rules:
///
/// - it is a whole command, in a block;
/// - its verb computes, and writes files in its own directory only (`site surge` is large, and does not count);
/// - each file that it reads was written by an earlier command of the document, or is in `scenarios/`.
fn may_run(documented: &DocumentedCommand, directory: &Path) -> bool {
    let DocumentedCommand { location: _, words, is_whole } = documented;
    let has = |word: &str| words.iter().any(|one| one == word);
    let engine = words.iter().position(|word| word == "--engine").and_then(|at| words.get(at + 1));
    let verb = match words[1].as_str() {
        "predict" | "simulate" | "list" | "man" | "completions" => true,
        "site" => has("microscape"),
        "load" => words.get(2).is_some_and(|word| word == "plan"),
        "compare" => engine.is_some_and(|engine| !engine.contains("measure") && engine != "all"),
        "reproduce" => {
            words.get(2).is_some_and(|key| key.starts_with("heidemann-model/")) && !has("--measure")
        }
        "diagnose" => words.get(2).is_some_and(|word| word.ends_with(".pcapng")),
        _ => false,
    };
    *is_whole
        && verb
        && words.iter().all(|word| !word.contains('$'))
        && inputs(words).all(|input| directory.join(input).exists())
}

/// Files and directories that a command reads.
fn inputs(words: &[String]) -> impl Iterator<Item = &String> {
    const READ: [&str; 6] = ["--page", "--plan", "--replay", "--laws-of", "--curve", "--surge"];
    let of_flags = words.windows(2).filter(|pair| READ.contains(&pair[0].as_str())).map(|pair| &pair[1]);
    // A name of a page, or sizes, is not a file.
    let of_flags = of_flags.filter(|value| {
        let is_size = |piece: &str| piece.chars().next().is_some_and(|letter| letter.is_ascii_digit());
        !is_size(value) && !["microscape", "small-page", "small-cluster", "all"].contains(&value.as_str())
    });
    let positional = words.iter().skip(2).take_while(|word| !word.starts_with('-'));
    let positional = positional.filter(|word| word.ends_with(".toml") || word.ends_with(".pcapng"));
    of_flags.chain(positional)
}

#[test]
fn documented_commands_run() {
    let mut documents: BTreeMap<String, Vec<DocumentedCommand>> = BTreeMap::new();
    for command in commands::all() {
        let document = command.location.split(':').next().unwrap_or_default().to_owned();
        documents.entry(document).or_default().push(command);
    }
    let (mut count, mut complaints) = (0, Vec::new());
    for commands in documents.values() {
        let directory = tempfile::tempdir().unwrap();
        scenarios(directory.path());
        for command in commands {
            if may_run(command, directory.path()) {
                count += 1;
                complaints.extend(complaint(command, directory.path()));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    assert!(count >= 15, "only {count} commands were run");
}

fn scenarios(directory: &Path) {
    let target = directory.join("scenarios");
    fs::create_dir(&target).unwrap();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, target.join(path.file_name().unwrap())).unwrap();
    }
}

/// The error of a command: a status other than 0, or for `diagnose`, which reports findings by 1, other than these.
#[expect(clippy::disallowed_methods, reason = "another process has a time limit")]
fn complaint(documented: &DocumentedCommand, directory: &Path) -> Option<String> {
    let DocumentedCommand { location, words, .. } = documented;
    let printed = directory.join("stderr");
    let mut child = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
        .args(&words[1..])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&printed).unwrap())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if start.elapsed() > TIMEOUT => {
                child.kill().unwrap();
                child.wait().unwrap();
                return Some(format!("{location}: {}: took over {TIMEOUT:?}", words.join(" ")));
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    let is_good = status == Some(0) || (status == Some(1) && words[1] == "diagnose");
    let printed = fs::read_to_string(printed).unwrap();
    (!is_good).then(|| format!("{location}: {}: status {status:?}\n{printed}", words.join(" ")))
}
