//! The interactions of HTTP with TCP in Figures 2 and 4 (papers/p-http#figure-2, papers/p-http#figure-4): simulated,
//! and measured over the real kernel, each gets the right cause. `docs/diagnose.md` shows the simulated ones.
//!
//! Where the kernel cannot be measured, or is always late, that half reports that it was skipped; with
//! `ROUNDTRIP_REQUIRE_KERNEL=1`, as in CI, the former is a failure. `ROUNDTRIP_BLESS=1` stores new plots.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A scenario, with the expected cause.
const FIGURES: [(&str, &str); 2] =
    [("short-initial-segment", "short-initial-segment"), ("short-final-segment", "nagle-delayed-ack")];
/// Minimum delay of an acknowledgement that counts as delayed, in milliseconds.
const MIN_DELAY_MS: f64 = 20.0;

#[test]
fn paper_the_traces_of_figures_2_and_4_are_named_and_drawn_as_they_are_simulated() {
    let directory = directory("interactions-simulated");
    for (scenario, cause) in FIGURES {
        let capture = directory.join(format!("{scenario}.pcapng"));
        let output = roundtrip(&["simulate", &file(scenario), "--pcap", text(&capture), "--pcap-at", "both"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let plots = directory.join(scenario);
        assert!(costs(&capture, cause, &["--svg", text(&plots)]) > 90.0, "{scenario}");
        let mut pictures = fs::read_dir(&plots).unwrap();
        let picture = fs::read_to_string(pictures.next().unwrap().unwrap().path()).unwrap();
        assert!(pictures.next().is_none(), "{scenario} is one connection");
        compare_with_golden(&format!("{scenario}.svg"), &picture);
    }
    let _ = fs::remove_dir_all(directory);
}

#[test]
fn paper_the_traces_of_figures_2_and_4_are_named_as_the_kernel_sends_them() {
    let directory = directory("interactions-measured");
    for (scenario, cause) in FIGURES {
        // The delay of the client's acknowledgement is random: less than a tenth of them are too short.
        let seeds = (1..=8).map(|seed: u32| measured(&directory, scenario, seed));
        let mut costs = seeds.flatten().map(|capture| costs(&capture, cause, &[])).peekable();
        if costs.peek().is_none() {
            skip::report_skip(&format!("{scenario} over the kernel"));
        } else {
            assert!(costs.any(|cost| cost >= MIN_DELAY_MS), "{scenario} over the kernel");
        }
    }
    let _ = fs::remove_dir_all(directory);
}

/// Captures one run over the kernel, if possible.
fn measured(directory: &Path, scenario: &str, seed: u32) -> Option<PathBuf> {
    let capture = directory.join(format!("{scenario}-{seed}.pcapng"));
    let arguments = ["measure", &file(scenario), "--seed", &seed.to_string(), "--pcap", text(&capture)];
    let output = roundtrip(&arguments);
    if output.status.success() {
        return Some(capture);
    }
    let reported = String::from_utf8_lossy(&output.stderr);
    if reported.contains("cannot measure here") {
        skip::refused(&reported);
    }
    None
}

/// Cost of a cause by `diagnose`, in milliseconds.
fn costs(capture: &Path, cause: &str, more: &[&str]) -> f64 {
    let arguments = [&["diagnose", text(capture), "--format", "json"], more].concat();
    let reported: Value = serde_json::from_slice(&roundtrip(&arguments).stdout).unwrap();
    let causes = reported["flows"][0]["causes"].as_array().unwrap();
    let found = causes.iter().find(|found| found["cause"] == cause);
    found.map_or(0.0, |found| found["lost_ms"].as_f64().unwrap())
}

/// Compares the picture in `docs/` with the current one.
fn compare_with_golden(name: &str, picture: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("ROUNDTRIP_BLESS").is_some() {
        fs::write(&golden, picture).unwrap();
    }
    let is_same = fs::read_to_string(&golden).is_ok_and(|golden| golden == picture);
    assert!(is_same, "docs/{name} differs from the plot: review it, then store it with ROUNDTRIP_BLESS=1");
}

fn directory(name: &str) -> PathBuf {
    let path =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("interactions-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

fn file(scenario: &str) -> String {
    format!("{}/../../scenarios/{scenario}.toml", env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn roundtrip(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(arguments).output().unwrap()
}
