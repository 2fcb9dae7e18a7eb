//! Logs in every form (compressed, truncated, rotated, piped), and the result in every format.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::program::{JSON, TestDirectory, gzipped, json, piped, roundtrip, rows, synthetic_log, text};

#[test]
fn the_result_is_the_same_for_every_form_of_the_log_and_number_of_threads() {
    let directory = TestDirectory::new("comes");
    let log = synthetic_log(20_000);
    let plain = directory.write("whole.log", &log);
    let expected = rows(&roundtrip(&json(&[&plain], &["--threads", "1"])));
    assert_eq!(expected.len(), 3 * 2 * 3);
    let compressed = [
        directory.write("packed.gz", &gzipped(&log)),
        directory.write("packed.zst", &zstd::encode_all(log.as_slice(), 1).unwrap()),
    ];
    // Two members in one file, cut in the middle of a line, and two files, the later one first by name.
    let (first, second) = log.split_at(log.len() / 3);
    let members = directory.write("members.gz", &[gzipped(first), gzipped(second)].concat());
    let line = log.len() / 3 + second.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    directory.write("rotated/access.log", &log[line..]);
    directory.write("rotated/access.log.1.gz", &gzipped(&log[..line]));
    let rotated = directory.0.join("rotated").to_str().unwrap().to_owned();
    let pattern = format!("{rotated}/access.log*");
    let forms = [&plain, &compressed[0], &compressed[1], &members, &rotated, &pattern];
    for form in forms {
        for more in [&["--threads", "4"][..], &["--threads", "3", "--window", "64kib"]] {
            assert_eq!(rows(&roundtrip(&json(&[form], more))), expected, "{form} {more:?}");
        }
    }
    assert_eq!(rows(&piped(&json(&[], &[]), &gzipped(&log))), expected);
    assert_eq!(rows(&piped(&json(&["-"], &[]), &log)), expected);
}

#[test]
fn overlapping_logs_count_as_all_their_lines_sorted() {
    let directory = TestDirectory::new("overlap");
    let log = synthetic_log(20_000);
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let expected = rows(&roundtrip(&json(&[&directory.write("sorted.log", &log)], &[])));
    // Three servers; the third has two logs: the later one is compressed, and its name sorts first.
    let server = |number: usize| -> Vec<&[u8]> { lines.iter().skip(number).step_by(3).copied().collect() };
    let third = server(2);
    let (first_half, second_half) = third.split_at(third.len() / 2);
    directory.write("servers/a.log", &server(0).concat());
    directory.write("servers/b.log", &server(1).concat());
    directory.write("servers/c.1.gz", &gzipped(&second_half.concat()));
    directory.write("servers/c.2.log", &first_half.concat());
    let servers = directory.0.join("servers").to_str().unwrap().to_owned();
    for more in [&["--threads", "1"][..], &["--threads", "4"], &["--threads", "2", "--window", "64kib"]] {
        let output = roundtrip(&json(&[&servers], more));
        assert_eq!(rows(&output), expected, "{more:?}");
        assert_eq!(text(&output.stderr), "", "{more:?}");
    }
    let by_threads = ["1", "4"].map(|threads| {
        rows(&roundtrip(&json(&[&servers], &["--rule", "first-created", "--threads", threads])))
    });
    assert_eq!(by_threads[0], by_threads[1]);
}

#[test]
fn regress_a_pipe_with_a_name_is_read_from_its_beginning() {
    let directory = TestDirectory::new("named-pipe");
    let log = directory.write("whole.log", &synthetic_log(5_000));
    let program = env!("CARGO_BIN_EXE_roundtrip");
    let script = format!("cat {log} | {program} connections /dev/fd/0 {}", JSON.join(" "));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(rows(&output), rows(&roundtrip(&json(&[&log], &[]))));
}

#[test]
fn every_row_has_the_promised_fields_and_csv_the_same_columns() {
    let log = synthetic_log(2_000);
    let row = rows(&piped(&json(&[], &[]), &log)).swap_remove(0);
    for name in [
        "timeout_s",
        "connections_per_client",
        "threshold_bytes",
        "max_simultaneous",
        "total_connections",
        "mean_bytes_per_connection",
        "udp_share",
        "requests",
    ] {
        assert!(row[name].is_number(), "{name} is {}", row[name]);
    }
    assert_eq!(row["protocol"], "http");
    let csv = text(&piped(&["connections", "--format", "csv", "--timeout", "5"], &log).stdout);
    let mut lines = csv.split_terminator("\r\n");
    let mut columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    columns.sort_unstable();
    let mut names: Vec<&String> = row.as_object().unwrap().keys().collect();
    names.sort_unstable();
    assert_eq!((columns.len(), lines.count()), (names.len(), 6));
    assert!(columns.iter().zip(names).all(|(column, name)| column == name));
}

#[test]
fn lines_out_of_order_are_sorted_and_counted() {
    let log = text(&synthetic_log(5_000));
    let mut lines: Vec<&str> = log.lines().collect();
    let expected = rows(&piped(&json(&[], &[]), log.as_bytes()));
    lines.chunks_mut(7).for_each(<[&str]>::reverse);
    let output = piped(&json(&[], &[]), lines.join("\n").as_bytes());
    assert_eq!(rows(&output), expected);
    assert!(super::program::sentences(&output.stderr).contains("lines were out of order, and were sorted"));
}

#[test]
fn the_distribution_is_in_every_format_if_requested() {
    let directory = TestDirectory::new("spread");
    let log = directory.write("made-up.log", &synthetic_log(5_000));
    let [minutes, table] = ["minutes.csv", "answer.parquet"].map(|name| directory.0.join(name));
    let files = ["--over-time", minutes.to_str().unwrap(), "--out", table.to_str().unwrap()];
    let files = &files[..if cfg!(feature = "parquet") { 4 } else { 2 }];
    let plain = rows(&roundtrip(&json(&[&log], &[])));
    let with_distribution = rows(&roundtrip(&json(&[&log], &[&["--distribution"], files].concat())));
    for (row, plain) in with_distribution.iter().zip(&plain) {
        let value = |name: &str| row[format!("{name}_per_connection")].as_f64().unwrap();
        assert!(plain.get("median_bytes_per_connection").is_none());
        assert_eq!(row["total_connections"], plain["total_connections"]);
        for quantity in ["bytes", "requests"] {
            let [median, p90, p99, max] =
                ["median", "p90", "p99", "max"].map(|part| value(&format!("{part}_{quantity}")));
            assert!(median <= p90 && p90 <= p99 && p99 <= max, "{row}");
            assert!(value(&format!("mean_{quantity}")) <= max, "{row}");
        }
    }
    // Another rule counts the same by another algorithm.
    let by_rule = rows(&roundtrip(&json(&[&log], &["--distribution", "--rule", "first-created"])));
    let of_one_connection = |rows: &[Value]| -> Vec<Value> {
        rows.iter().filter(|row| row["connections_per_client"] == 1).cloned().collect()
    };
    assert_eq!(of_one_connection(&by_rule), of_one_connection(&with_distribution));
    let csv = text(&roundtrip(&["connections", &log, "--format", "csv", "--distribution"]).stdout);
    assert_eq!(
        csv.lines().next().unwrap().split(',').count(),
        with_distribution[0].as_object().unwrap().len()
    );
    let table = text(&roundtrip(&["connections", &log, "--distribution"]).stdout);
    assert!(table.contains("What each carries, 3 connections per client"), "{table}");
    let minutes = fs::read_to_string(minutes).unwrap();
    let highest = minutes.lines().skip(1).filter(|line| line.contains(",http,15,3,0,"));
    let highest = highest.map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap()).max();
    let row =
        plain.iter().find(|row| row["timeout_s"] == 15.0 && row["connections_per_client"] == 3).unwrap();
    assert_eq!(highest, row["max_simultaneous"].as_u64());
}

#[test]
fn other_rules_work_too_and_the_page_has_the_paper_s_figures() {
    let directory = TestDirectory::new("page");
    let log = directory.write("made-up.log", &synthetic_log(3_000));
    let page = directory.0.join("page.html");
    let with_page = ["--report", page.to_str().unwrap(), "--rule", "first-created", "--dhttp"];
    let first_created = rows(&roundtrip(&json(&[&log], &with_page)));
    let default = rows(&roundtrip(&json(&[&log], &[])));
    let total = |rows: &[Value], limit| -> Vec<Value> {
        let of_limit = rows.iter().filter(|row| row["connections_per_client"] == limit);
        of_limit.map(|row| row["total_connections"].clone()).collect()
    };
    // With one connection per client the rules are equivalent.
    assert_eq!(total(&first_created, 1), total(&default, 1));
    let page = fs::read_to_string(page).unwrap();
    for figure in [
        "carry at most",
        "Figure 6a",
        "Figure 6b",
        "Figure 7",
        "Figure 8a",
        "Figure 8b",
        "Figure 9",
        "Connections over time",
    ] {
        assert!(page.contains(figure), "{figure} is missing");
    }
    // Without the flag a page is about HTTP; programs get both.
    let page = directory.0.join("http.html");
    let rows = rows(&roundtrip(&json(&[&log], &["--report", page.to_str().unwrap()])));
    let page = fs::read_to_string(page).unwrap();
    assert!(!page.contains("DHTTP") && !page.contains("Figure"), "DHTTP is on the page");
    assert!(rows.iter().any(|row| row["protocol"] == "dhttp"));
}
