//! The paper's claims for a hundred million synthetic requests over the three months of WorldCup98: a long test, run by hand.
//!
//! Sizes are an assumption; connections are counted. `roundtrip reproduce dhttp` does the same for logs that are short
//! enough for CI.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::program::rows;

/// The figures are those of `studies/connections`, which rounds them. The same seed gives the same log: they must not change.
#[test]
#[ignore = "long evidence: ROUNDTRIP_LOGS=... cargo test --release -p roundtrip --test it -- --ignored --nocapture three_months"]
fn paper_three_months_of_a_hundred_million_requests_restate_its_claims() {
    let Some(logs) = std::env::var_os("ROUNDTRIP_LOGS") else {
        skip::report_skip("ROUNDTRIP_LOGS names no directory with worldcup98_requests_per_minute.csv.gz");
        return;
    };
    let curve = PathBuf::from(logs).join("worldcup98_requests_per_minute.csv.gz");
    let mut log = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
        .args(["logs", "synthesize", "--requests", "100000000", "--curve"])
        .arg(curve)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
        .args(["connections", "--format", "json"])
        .stdin(log.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(log.wait().unwrap().success());
    let rows = rows(&output);
    assert_eq!(rows[0]["requests"], 100_000_000);
    let peak = |threshold, limit, timeout| number(&rows, threshold, limit, timeout, "max_simultaneous");
    let bytes =
        |threshold, limit, timeout| number(&rows, threshold, limit, timeout, "mean_bytes_per_connection");
    let fall = |threshold| 100.0 * (1.0 - peak(threshold, 3, 15) / peak(0, 3, 15));
    let share = |threshold| 100.0 * number(&rows, threshold, 3, 15, "udp_share");
    let claims = [
        ("the peak falls by %, 4096 bytes", "a third", fall(4_096), 46.2, 0.05),
        ("the peak falls by %, 1460 bytes", "20", fall(1_460), 27.9, 0.05),
        ("responses by UDP in %, 4096 bytes", "above 58", share(4_096), 64.5, 0.05),
        ("responses by UDP in %, 1460 bytes", "above 40", share(1_460), 46.1, 0.05),
        ("times the bytes per connection at 1 s", "over 2", bytes(4_096, 3, 1) / bytes(0, 3, 1), 2.60, 0.005),
        ("times fewer at 5 s with 1 connection", "almost 2", peak(0, 1, 5) / peak(4_096, 1, 5), 1.66, 0.005),
    ];
    for (claim, paper, computed, _, _) in claims {
        println!("{claim:40} paper: {paper:8} computed: {computed:.2}");
    }
    for (claim, _, computed, expected, tolerance) in claims {
        assert!(
            (computed - expected).abs() <= tolerance,
            "{claim}: {computed}, the recorded value is {expected}"
        );
    }
}

fn number(rows: &[Value], threshold: u64, limit: u64, timeout_s: u64, field: &str) -> f64 {
    let is_selected = |row: &&Value| {
        row["threshold_bytes"] == threshold
            && row["connections_per_client"] == limit
            && row["timeout_s"].as_f64() == Some(timeout_s as f64)
    };
    rows.iter().find(is_selected).and_then(|row| row[field].as_f64()).unwrap()
}
