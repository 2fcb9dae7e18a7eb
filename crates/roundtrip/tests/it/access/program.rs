//! Runs the program, and provides logs and temporary directories.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Temporary directory, removed when dropped.
pub(crate) struct TestDirectory(pub(crate) test_fixture::TestDirectory);

impl TestDirectory {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("access-{name}");
        Self(test_fixture::TestDirectory::below(env!("CARGO_TARGET_TMPDIR"), &name))
    }

    pub(crate) fn write(&self, name: &str, contents: &[u8]) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

pub(crate) fn roundtrip(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(arguments).output().unwrap()
}

pub(crate) fn piped(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its input does not read to the end.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Warnings without the line ends at which they are wrapped.
pub(crate) fn sentences(bytes: &[u8]) -> String {
    text(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A synthetic log.
pub(crate) fn synthetic_log(requests: u32) -> Vec<u8> {
    roundtrip(&["logs", "synthesize", "--requests", &requests.to_string(), "--clients", "300"]).stdout
}

pub(crate) fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    compressed.write_all(bytes).unwrap();
    compressed.finish().unwrap()
}

pub(crate) fn rows(output: &Output) -> Vec<Value> {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Output format, and three timeouts.
pub(crate) const JSON: [&str; 4] = ["--format", "json", "--timeout", "1,5,15"];

pub(crate) fn json<'a>(logs: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [&["connections"], logs, &JSON, more].concat()
}
