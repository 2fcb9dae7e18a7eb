//! Manifests: dependencies that nothing uses, and targets without a test program.

use std::collections::BTreeSet;

use super::tree;

/// Dependencies that no source names, by crate, with the reason.
const ONLY_FOR_FEATURES: [(&str, &[&str]); 2] = [
    // The choice of the TLS library's ciphers.
    ("accesslog-io", &["reqwest"]),
    // What the optional features select of common dependencies: the tests with and without them share the rest of the build.
    (
        "roundtrip",
        &[
            "async-trait",
            "base64",
            "futures-channel",
            "futures-util",
            "libm",
            "num-traits",
            "profiling-procmacros",
            "ring",
            "siphasher",
            "twox-hash",
            "yoke",
        ],
    ),
];

/// The manifests below crates/: the name of the directory, and the content.
fn manifests() -> Vec<(String, toml::Table)> {
    let read = |file: &String| tree::text(file).parse().unwrap_or_else(|error| panic!("{file}: {error}"));
    let directory = |file: &str| file.split('/').nth(1).expect("below crates/").to_owned();
    tree::files("crates", &["Cargo.toml"]).iter().map(|file| (directory(file), read(file))).collect()
}

/// The names in the sources of a crate, but for this one: words of letters, digits and underscores.
fn names(directory: &str) -> BTreeSet<String> {
    let words = |file: &String| -> Vec<String> {
        let text = tree::text(file);
        text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned).collect()
    };
    let files = tree::files(directory, &[".rs"]);
    files.iter().filter(|file| !file.ends_with("tidy/manifests.rs")).flat_map(words).collect()
}

#[test]
fn every_dependency_is_named_in_a_source_of_its_crate() {
    let unused = |(name, table): (String, toml::Table)| -> (String, Vec<String>) {
        let names = names(&format!("crates/{name}"));
        let unused = ["dependencies", "dev-dependencies", "build-dependencies"]
            .iter()
            .filter_map(|section| table.get(*section)?.as_table())
            .flat_map(|section| section.keys().cloned())
            .filter(|key| !names.contains(&key.replace('-', "_")))
            .collect();
        (name, unused)
    };
    let mut found: Vec<_> =
        manifests().into_iter().map(unused).filter(|(_, unused)| !unused.is_empty()).collect();
    found.iter_mut().for_each(|(_, unused)| unused.sort());
    let listed = ONLY_FOR_FEATURES
        .map(|(name, unused)| (name.to_owned(), unused.iter().map(ToString::to_string).collect()));
    assert_eq!(found, listed, "left: dependencies that no source names; right: what {} lists", file!());
}

#[test]
fn targets_without_a_test_program_have_no_unit_tests() {
    let mut checked = 0;
    let mut complaints = Vec::new();
    for (name, table) in manifests() {
        let programs = table.get("bin").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        for target in table.get("lib").iter().copied().chain(&programs) {
            if target.get("test").and_then(toml::Value::as_bool) != Some(false) {
                continue;
            }
            checked += 1;
            let path = target.get("path").and_then(toml::Value::as_str).unwrap_or("src/lib.rs");
            let below =
                format!("crates/{name}/{}", path.rsplit_once('/').map_or("src", |(directory, _)| directory));
            let files = tree::files(&below, &[".rs"]);
            assert!(!files.is_empty(), "{below}");
            let has_tests = |file: &&String| tree::text(file).lines().any(|line| line.trim() == "#[test]");
            complaints.extend(files.iter().filter(has_tests).map(|file| format!("{file}, of {name}")));
        }
    }
    assert!(checked > 0, "no target has `test = false`");
    tree::expect_none("Unit tests that no program runs; remove `test = false`:", &complaints);
}
