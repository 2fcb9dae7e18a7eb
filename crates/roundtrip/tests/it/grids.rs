//! Grids of scenarios: lists multiply, rows say what was run, interrupted runs continue, any number of threads gives the
//! same bytes.

use std::fs;
use std::process::{Command, Output};

use test_fixture::TestDirectory;

/// Two round trips, three losses, two protocols, two seeds.
const GRID: [&str; 12] = [
    "simulate",
    "--rtt",
    "20ms..80ms*2",
    "--rate",
    "10Mbit",
    "--loss",
    "0%,1%,burst:1%/50%",
    "--protocol",
    "http11,http10",
    "--seed",
    "1..2",
    "--runs=2",
];
const ROWS: usize = 2 * 3 * 2 * 2;

fn run(directory: &TestDirectory, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
    command.args(GRID).args(arguments).current_dir(directory).output().unwrap()
}

fn directory(name: &str) -> TestDirectory {
    TestDirectory::below(env!("CARGO_TARGET_TMPDIR"), &format!("grids-{name}"))
}

#[test]
fn rows_have_a_column_for_every_key_and_any_number_of_threads_gives_the_same_bytes() {
    let directory = directory("threads");
    let one = run(&directory, &["--format", "csv", "--threads", "1"]);
    assert!(one.status.success(), "{}", String::from_utf8_lossy(&one.stderr));
    let text = String::from_utf8(one.stdout.clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + ROWS);
    let heading = "network,page,visit,protocol,engine,stack,tls,seed,rtt_ms,rate_down_mbps,rate_up_mbps,loss_percent,loss,elapsed_ms,";
    assert!(lines[0].starts_with(heading), "{}", lines[0]);
    let second = "custom-20ms,small-cluster,first,http11,simulate,linux,none,2,20,10,10,0,none,";
    assert!(lines[2].starts_with(second), "{}", lines[2]);
    let last = "custom-80ms+loss=burst:1%/50%/100%/0%,small-cluster,first,http10,simulate,linux,none,2,80,10,10,,burst:1%/50%/100%/0%,";
    assert!(lines[ROWS].starts_with(last), "{}", lines[ROWS]);
    for threads in ["2", "7"] {
        assert_eq!(
            run(&directory, &["--format", "csv", "--threads", threads]).stdout,
            one.stdout,
            "{threads} threads"
        );
    }
}

#[test]
fn an_interrupted_run_continues_and_other_rows_are_refused() {
    let directory = directory("into");
    let whole = run(&directory, &["--format", "csv"]).stdout;
    // An interrupted run leaves a part of a row.
    fs::write(directory.join("rows.csv"), &whole[..whole.len() / 2]).unwrap();
    let output = run(&directory, &["--into", "rows.csv"]);
    let sentence = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !sentence.contains(" 0 of which"), "{sentence}");
    assert!(fs::read(directory.join("rows.csv")).unwrap() == whole, "the rows differ");
    let again = run(&directory, &["--into", "rows.csv"]);
    assert_eq!(
        String::from_utf8(again.stdout).unwrap(),
        format!("rows.csv: {ROWS} rows, {ROWS} of which it had\n")
    );
    let other = run(&directory, &["--into", "rows.csv", "--mss", "512"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8(other.stderr).unwrap().contains("its columns are of another run"));
    let other = run(&directory, &["--into", "rows.csv", "--seed", "3"]);
    assert!(String::from_utf8(other.stderr).unwrap().contains("its rows are of another run"));
    assert!(fs::read(directory.join("rows.csv")).unwrap() == whole, "a refused file was changed");
}

#[test]
fn a_comparison_continues_with_the_first_scenario_that_lacks_an_engine() {
    let directory = directory("compare");
    let compare = |engines: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
        let grid = ["compare", "--engine", engines, "--runs=2", "--loss", "0%,1%", "--network", "4g,modem"];
        command.args(grid).args(more).current_dir(&directory).output().unwrap()
    };
    let whole = compare("model,simulate", &["--format", "csv"]).stdout;
    let text = String::from_utf8(whole.clone()).unwrap();
    let rows: Vec<&str> = text.split_inclusive("\r\n").collect();
    // The heading, two scenarios, and the third one's row by the model.
    fs::write(directory.join("rows.csv"), rows[..6].concat()).unwrap();
    let output = compare("model,simulate", &["--into", "rows.csv", "--threads", "1"]);
    let sentence = format!("rows.csv: {} rows, 4 of which it had\n", rows.len() - 1);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), sentence);
    assert!(fs::read(directory.join("rows.csv")).unwrap() == whole, "the rows differ");
    let refused = compare("simulate", &["--into", "rows.csv"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("its rows are of another run"));
    let refused = compare("model,simulate", &["--into", "rows.csv", "--waterfall", "waterfall.html"]);
    assert_eq!(refused.status.code(), Some(2), "the first runs of rows that it has are unknown");
}

#[test]
fn every_stall_is_a_line_with_the_row_it_belongs_to() {
    let directory = directory("stalls");
    let output = run(&directory, &["--stalls", "stalls.csv", "--format", "json"]);
    assert!(output.status.success());
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let table = fs::read_to_string(directory.join("stalls.csv")).unwrap();
    let mut lines = table.lines();
    assert!(lines.next().unwrap().ends_with(",loss_percent,loss,cause,at_ms,lost_ms"));
    let count: usize = rows.iter().map(|row| row["stalls"].as_array().unwrap().len()).sum();
    assert_eq!(lines.clone().count(), count);
    for line in lines {
        let number: usize = line.split(',').next().unwrap().parse().unwrap();
        let row = &rows[number - 1];
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(Some(cells[1]), row["network"].as_str());
        let stalls = row["stalls"].as_array().unwrap();
        let cause = cells[cells.len() - 3];
        assert!(stalls.iter().any(|stall| stall["cause"] == cause), "{line}");
    }
}

#[test]
fn too_many_rows_are_refused_with_their_count() {
    let directory = directory("count");
    let refused = run(&directory, &["--parallel", "1..1000", "--initial-window", "1..1000"]);
    assert_eq!(refused.status.code(), Some(2));
    let sentence = String::from_utf8(refused.stderr).unwrap();
    assert!(sentence.contains("24000000 scenarios are too many"), "{sentence}");
    let refused = run(&directory, &["--parallel", "1..1000"]);
    let sentence = String::from_utf8(refused.stderr).unwrap();
    assert!(
        sentence.contains("24000 rows are too many for a table; give --format csv or --into FILE.csv"),
        "{sentence}"
    );
}
