//! The optional parts of a build: `--version --verbose` lists them, and an error names the command that adds a missing one.
//!
//! It tests the build that it belongs to; CI has one with none of them and one with all.

use std::fs;
use std::process::{Command, Output};

/// Each feature, whether this build has it, and a command line that needs it.
const FEATURES: [(&str, bool, &[&str]); 6] = [
    ("all-verbs", cfg!(feature = "all-verbs"), &["list", "networks"]),
    ("image-codecs", cfg!(feature = "image-codecs"), &["content", "no-such-page", "--quality", "50"]),
    // With the page, it ends because the address is no one's (RFC 5737).
    ("lab-page", cfg!(feature = "lab-page"), &["lab", "--no-open", "--listen", "192.0.2.1:1"]),
    ("object-store", cfg!(feature = "object-store"), &["connections", "s3:///access.log"]),
    ("parquet", cfg!(feature = "parquet"), &["connections", "access.parquet"]),
    ("png", cfg!(feature = "png"), &["diagnose", "run.pcap", "--png", "plots"]),
];

fn roundtrip(arguments: &[&str], directory: &std::path::Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(arguments).current_dir(directory).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_version_lists_every_feature_only_if_verbose() {
    let here = std::path::Path::new(".");
    let version = format!("roundtrip {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(text(&roundtrip(&["--version"], here).stdout), version);
    let states = FEATURES
        .map(|(name, is_built, _)| format!("  {name:<12}  {}\n", if is_built { "on" } else { "off" }));
    for flags in [["--version", "--verbose"], ["-v", "-V"]] {
        let output = roundtrip(&flags, here);
        assert!(output.status.success());
        assert_eq!(text(&output.stdout), format!("{version}features:\n{}", states.concat()));
    }
}

#[test]
fn a_missing_feature_is_named_with_the_command_that_adds_it() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("access.parquet"), b"PAR1 and no more").unwrap();
    for (name, is_built, words) in FEATURES {
        let output = roundtrip(words, directory.path());
        let printed = text(&output.stderr);
        let command =
            format!("install with `cargo install --locked --path crates/roundtrip --features {name}`");
        assert_eq!(printed.contains(&command), !is_built, "{words:?}: {printed}");
        if !is_built {
            assert_eq!(output.status.code(), Some(2), "{words:?}");
            assert_eq!(printed.lines().count(), 1, "{printed}");
            let culprit = words.iter().find(|word| printed.starts_with(&format!("roundtrip: {word}: ")));
            assert!(culprit.is_some(), "{printed}");
        }
    }
}
