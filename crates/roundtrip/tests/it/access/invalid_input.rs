//! Invalid logs and flags: everything readable is counted, every loss is reported, nothing panics.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};

use super::program::{TestDirectory, gzipped, json, piped, roundtrip, rows, synthetic_log, text};

#[test]
fn times_that_run_backwards_for_days_are_refused() {
    let line = |day: u32, number: u32| {
        format!("h{} - - [{day:02}/Aug/1995:02:00:00 -0400] \"GET / HTTP/1.0\" 200 9\n", number % 9)
    };
    let log: String = (1..=5).rev().flat_map(|day| (0..4_000).map(move |number| line(day, number))).collect();
    let output = piped(&json(&[], &["--window", "64kib"]), log.as_bytes());
    let refused = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{refused}");
    assert!(refused.contains("of 20000 requests are further out of order than --window"), "{refused}");
    // A window that spans all of them sorts them.
    let output = piped(&json(&[], &[]), log.as_bytes());
    assert_eq!(rows(&output)[0]["requests"], 20_000);
}

#[test]
fn a_file_that_is_not_a_log_is_refused_in_a_sentence() {
    let directory = TestDirectory::new("refused");
    let empty = directory.write("empty.log", b"");
    let diary = directory.write("diary.txt", b"dear diary,\n");
    let cases = [
        (vec![empty.as_str()], "the log is empty; name another log"),
        (vec![&diary], "unknown access log format; name it with --log-format"),
        (vec![&empty, &diary], "no access log found"),
        (vec!["no-such-file.log"], "no such file or directory"),
        (vec!["no-such-*.log"], "no such file; name a log"),
    ];
    for (logs, sentence) in cases {
        let output = roundtrip(&json(&logs, &[]));
        assert_eq!(output.status.code(), Some(2), "{logs:?}");
        assert!(
            super::program::sentences(&output.stderr).contains(sentence),
            "{logs:?}: {}",
            text(&output.stderr)
        );
        assert_eq!(text(&output.stderr).lines().count(), 1);
    }
}

#[test]
fn a_log_without_sizes_is_refused_with_the_flag_that_helps() {
    let log = "h - - [01/Aug/1995:02:00:00 -0400] \"GET / HTTP/1.0\" 200 -\n".repeat(3);
    let output = piped(&json(&[], &[]), log.as_bytes());
    assert_eq!(output.status.code(), Some(2));
    assert!(
        super::program::sentences(&output.stderr).contains("--missing-size zero"),
        "{}",
        text(&output.stderr)
    );
    let by_udp = |policy| {
        rows(&piped(&json(&[], &["--missing-size", policy]), log.as_bytes()))[1]["udp_share"].clone()
    };
    assert_eq!([by_udp("zero"), by_udp("large")], [1.0, 0.0]);
}

#[test]
fn binary_and_a_line_of_a_hundred_megabytes_need_bounded_memory() {
    let log = synthetic_log(1_000);
    let cut = log.len() / 2 + log[log.len() / 2..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut damaged = log[..cut].to_vec();
    damaged.extend((0..=255_u8).chain([b'\n']));
    damaged.extend(std::iter::repeat_n(b'x', 100 << 20));
    damaged.push(b'\n');
    damaged.extend(&log[cut..]);
    let output = piped(&json(&[], &[]), &damaged);
    assert_eq!(rows(&output), rows(&piped(&json(&[], &[]), &log)));
    let printed = super::program::sentences(&output.stderr);
    assert!(
        printed.contains("3 of 1,003 lines could not be read") && printed.contains("1 longer than 1 MiB"),
        "{printed}"
    );
}

#[test]
fn a_truncated_archive_is_counted_up_to_its_end() {
    let directory = TestDirectory::new("truncated");
    let compressed = gzipped(&synthetic_log(20_000));
    let log = directory.write("cut.gz", &compressed[..compressed.len() / 2]);
    let output = roundtrip(&json(&[&log], &[]));
    let counted = rows(&output)[0]["requests"].as_u64().unwrap();
    assert!((5_000..15_000).contains(&counted), "{counted}");
    assert!(
        super::program::sentences(&output.stderr).contains("could not be read to its end"),
        "{}",
        text(&output.stderr)
    );
    // Warnings are as wide as COLUMNS.
    let mut narrow = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
    let narrow = narrow.args(json(&[&log], &[])).env("COLUMNS", "60").output().unwrap();
    // No word is broken, such as the path of the file.
    let is_narrow = |line: &str| line.chars().count() <= 60 || line.split_whitespace().count() <= 2;
    assert!(text(&narrow.stderr).lines().all(is_narrow), "{}", text(&narrow.stderr));
}

#[test]
fn an_archive_without_any_readable_data_is_refused() {
    let directory = TestDirectory::new("beyond-help");
    let log = directory.write("cut.gz", &gzipped(&synthetic_log(100))[..12]);
    let output = roundtrip(&json(&[&log], &[]));
    assert_eq!(output.status.code(), Some(2));
    assert!(super::program::sentences(&output.stderr).contains("cut.gz"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr).lines().count(), 1);
}

/// Runs the program with its standard output on a full disk.
fn onto_a_full_disk(arguments: &[&str]) -> Output {
    let full = File::options().write(true).open("/dev/full").unwrap();
    Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(arguments).stdout(full).output().unwrap()
}

#[test]
fn a_full_disk_is_reported_in_a_sentence() {
    let directory = TestDirectory::new("full");
    let log = directory.write("made-up.log", &synthetic_log(100));
    for arguments in [&["logs", "synthesize"][..], &["connections", &log]] {
        let output = onto_a_full_disk(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            super::program::sentences(&output.stderr).contains("the disk is full"),
            "{}",
            text(&output.stderr)
        );
    }
    for arguments in [
        &["logs", "synthesize", "-o", "/dev/full"][..],
        &["connections", &log, "--report", "/dev/full"],
        #[cfg(feature = "parquet")]
        &["connections", &log, "--out", "/dev/full"],
    ] {
        let output = roundtrip(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            super::program::sentences(&output.stderr).contains("cannot write /dev/full"),
            "{}",
            text(&output.stderr)
        );
    }
    assert!(Path::new("/dev/full").exists());
}

#[test]
fn errors_name_the_wrong_flag_and_the_remedy() {
    let cases = [
        (vec!["--timeout", "soon"], "--timeout:"),
        (vec!["--per-client", "0"], "0 connections per client are out of range; give 1 to 64"),
        (vec!["--threshold", "-1"], "--threshold:"),
        (vec!["--rule", "least-recently"], "did you mean `least-recently-used`?"),
        (vec!["--log-format", "clff"], "did you mean `clf`?"),
        (vec!["--client-prefix", "33"], "--client-prefix: `33` is not a prefix"),
        (vec!["--missing-size", "none"], "--missing-size: unknown policy `none`"),
        (vec!["--client-field", "x"], "has no names for its fields"),
    ];
    let log = synthetic_log(10);
    for (flags, sentence) in cases {
        let output = piped(&[&["connections"], flags.as_slice()].concat(), &log);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(
            super::program::sentences(&output.stderr).contains(sentence),
            "{flags:?}: {}",
            text(&output.stderr)
        );
    }
}
