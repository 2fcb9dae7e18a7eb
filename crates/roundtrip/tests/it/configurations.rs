//! Compatibility of configurations between versions: every file that a version accepted is accepted by the next, and each key is
//! in a file (`tests/configurations/VERSION`).
//!
//! Files of a released version are never changed. A new key is added to the files of the version in preparation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/configurations")
}

/// Files of all versions.
fn files() -> Vec<PathBuf> {
    let versions = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = versions
        .flat_map(|version| fs::read_dir(version).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// The verb whose file it is: the name up to the first dash.
fn verb(file: &Path) -> String {
    let name = file.file_stem().unwrap().to_str().unwrap();
    name.split('-').next().unwrap().to_owned()
}

#[test]
fn files_of_earlier_versions_are_accepted() {
    let directory = std::env::temp_dir().join(format!("roundtrip-configurations-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let files = files();
    assert!(files.len() >= 8, "{files:?}");
    for file in &files {
        let verb = verb(file);
        // The kernel must judge what `nat` would install; the file is parsed before.
        let last = if verb == "nat" { "--print-rules" } else { "--check" };
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
        command.current_dir(&directory).arg(&verb).arg("--config").arg(file).arg(last);
        let output = command.output().unwrap();
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {reported}", file.display());
        assert!(!output.stdout.is_empty(), "{}", file.display());
    }
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn every_key_of_a_service_is_in_a_file() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/settings.md");
    let reference = fs::read_to_string(reference).unwrap();
    let mut missing = Vec::new();
    for section in reference.split("\n## roundtrip ").skip(1) {
        let verb_of_section = section.split(' ').next().unwrap();
        let texts = files()
            .into_iter()
            .filter(|file| verb(file) == verb_of_section)
            .map(|file| fs::read_to_string(file).unwrap());
        let texts: String = texts.collect();
        let used: BTreeSet<&str> =
            texts.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key).collect();
        let section = section.split("\n## ").next().unwrap();
        let keys = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        missing.extend(keys.filter(|key| !used.contains(key)).map(|key| format!("{verb_of_section}: {key}")));
    }
    assert!(missing.is_empty(), "add these keys to a file in tests/configurations: {missing:?}");
}
