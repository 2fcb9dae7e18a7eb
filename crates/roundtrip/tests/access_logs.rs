//! `roundtrip connections` and `roundtrip logs` as programs and people use them: any way a log can come, and any way it
//! can be wrong.
//!
//! Not what is counted: `simulate`'s tests hold that to brute force.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A folder of this test's own, gone at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, contents: &[u8]) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn roundtrip(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(arguments).output().unwrap()
}

fn piped(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses does not read to the end.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A made-up log.
fn made_up(requests: u32) -> Vec<u8> {
    roundtrip(&["logs", "synthesize", "--requests", &requests.to_string(), "--clients", "300"]).stdout
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn rows(output: &Output) -> Vec<Value> {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

const JSON: [&str; 4] = ["--format", "json", "--timeout", "1,5,15"];

fn json<'a>(logs: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [&["connections"], logs, &JSON, more].concat()
}

#[test]
fn the_answer_is_the_same_however_the_log_comes_and_however_many_threads_read_it() {
    let folder = Folder::new("comes");
    let log = made_up(20_000);
    let plain = folder.write("whole.log", &log);
    let expected = rows(&roundtrip(&json(&[&plain], &["--threads", "1"])));
    assert_eq!(expected.len(), 3 * 2 * 3);
    let packed = [
        folder.write("packed.gz", &gzipped(&log)),
        folder.write("packed.zst", &zstd::encode_all(log.as_slice(), 1).unwrap()),
    ];
    // Two members in one file, cut in the middle of a line, and two files, the later one first by name.
    let (first, second) = log.split_at(log.len() / 3);
    let members = folder.write("members.gz", &[gzipped(first), gzipped(second)].concat());
    let line = log.len() / 3 + second.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    folder.write("rotated/access.log", &log[line..]);
    folder.write("rotated/access.log.1.gz", &gzipped(&log[..line]));
    let rotated = folder.0.join("rotated").to_str().unwrap().to_owned();
    let pattern = format!("{rotated}/access.log*");
    let ways = [&plain, &packed[0], &packed[1], &members, &rotated, &pattern];
    for way in ways {
        for more in [&["--threads", "4"][..], &["--threads", "3", "--window", "64kib"]] {
            assert_eq!(rows(&roundtrip(&json(&[way], more))), expected, "{way} {more:?}");
        }
    }
    assert_eq!(rows(&piped(&json(&[], &[]), &gzipped(&log))), expected);
    assert_eq!(rows(&piped(&json(&["-"], &[]), &log)), expected);
}

#[test]
fn every_row_has_the_promised_fields_and_csv_the_same_columns() {
    let log = made_up(2_000);
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
fn lines_out_of_order_are_put_right_and_counted() {
    let log = text(&made_up(5_000));
    let mut lines: Vec<&str> = log.lines().collect();
    let expected = rows(&piped(&json(&[], &[]), log.as_bytes()));
    lines.chunks_mut(7).for_each(<[&str]>::reverse);
    let output = piped(&json(&[], &[]), lines.join("\n").as_bytes());
    assert_eq!(rows(&output), expected);
    assert!(text(&output.stderr).contains("lines were earlier than the line before, and were put in order"));
}

#[test]
fn times_that_run_backwards_for_days_are_counted_and_not_silent() {
    let line = |day: u32, number: u32| {
        format!("h{} - - [{day:02}/Aug/1995:02:00:00 -0400] \"GET / HTTP/1.0\" 200 9\n", number % 9)
    };
    let log: String = (1..=5).rev().flat_map(|day| (0..4_000).map(move |number| line(day, number))).collect();
    let output = piped(&json(&[], &["--window", "64kib"]), log.as_bytes());
    let counted = rows(&output)[0]["requests"].as_u64().unwrap();
    assert!((4_000..20_000).contains(&counted), "{counted}");
    assert!(text(&output.stderr).contains("came too late to be put in order"), "{}", text(&output.stderr));
    // A window that holds them all puts them right.
    let output = piped(&json(&[], &[]), log.as_bytes());
    assert_eq!(rows(&output)[0]["requests"], 20_000);
}

#[test]
fn what_is_no_log_is_refused_in_a_sentence() {
    let folder = Folder::new("refused");
    let nothing = folder.write("empty.log", b"");
    let diary = folder.write("diary.txt", b"dear diary,\n");
    let cases = [
        (vec![nothing.as_str()], "there is nothing in it; name another log"),
        (vec![&diary], "not an access log that is known here; give its format with --log-format"),
        (vec![&nothing, &diary], "nothing there is a log"),
        (vec!["no-such-file.log"], "there is no such file or folder"),
        (vec!["no-such-*.log"], "no file is there; name a log"),
    ];
    for (logs, sentence) in cases {
        let output = roundtrip(&json(&logs, &[]));
        assert_eq!(output.status.code(), Some(2), "{logs:?}");
        assert!(text(&output.stderr).contains(sentence), "{logs:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr).lines().count(), 1);
    }
}

#[test]
fn a_log_without_sizes_is_refused_with_the_flag_that_helps() {
    let log = "h - - [01/Aug/1995:02:00:00 -0400] \"GET / HTTP/1.0\" 200 -\n".repeat(3);
    let output = piped(&json(&[], &[]), log.as_bytes());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--missing-size zero"), "{}", text(&output.stderr));
    let by_udp = |policy| {
        rows(&piped(&json(&[], &["--missing-size", policy]), log.as_bytes()))[1]["udp_share"].clone()
    };
    assert_eq!([by_udp("zero"), by_udp("large")], [1.0, 0.0]);
}

#[test]
fn binary_and_a_line_of_a_hundred_megabytes_cost_no_more_than_themselves() {
    let log = made_up(1_000);
    let cut = log.len() / 2 + log[log.len() / 2..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut spoilt = log[..cut].to_vec();
    spoilt.extend((0..=255_u8).chain([b'\n']));
    spoilt.extend(std::iter::repeat_n(b'x', 100 << 20));
    spoilt.push(b'\n');
    spoilt.extend(&log[cut..]);
    let output = piped(&json(&[], &[]), &spoilt);
    assert_eq!(rows(&output), rows(&piped(&json(&[], &[]), &log)));
    let said = text(&output.stderr);
    assert!(
        said.contains("3 of 1,003 lines could not be read") && said.contains("1 longer than 1 MiB"),
        "{said}"
    );
}

#[test]
fn a_truncated_archive_is_counted_as_far_as_it_goes() {
    let folder = Folder::new("truncated");
    let packed = gzipped(&made_up(20_000));
    let log = folder.write("cut.gz", &packed[..packed.len() / 2]);
    let output = roundtrip(&json(&[&log], &[]));
    let counted = rows(&output)[0]["requests"].as_u64().unwrap();
    assert!((5_000..15_000).contains(&counted), "{counted}");
    assert!(text(&output.stderr).contains("could not be read to its end"), "{}", text(&output.stderr));
}

#[test]
fn a_disk_that_is_full_is_said_in_a_sentence() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
        .args(["logs", "synthesize"])
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the disk is full"), "{}", text(&output.stderr));
    let output = roundtrip(&["logs", "synthesize", "-o", "/dev/full"]);
    assert!(text(&output.stderr).contains("cannot write /dev/full"), "{}", text(&output.stderr));
    assert!(Path::new("/dev/full").exists());
}

#[test]
fn wrong_flags_name_themselves_and_the_remedy() {
    let cases = [
        (vec!["--timeout", "soon"], "--timeout:"),
        (vec!["--per-client", "0"], "0 connections per client cannot be counted; give 1 to 64"),
        (vec!["--threshold", "-1"], "--threshold:"),
        (vec!["--rule", "least-recently"], "did you mean `least-recently-used`?"),
        (vec!["--log-format", "clff"], "did you mean `clf`?"),
        (vec!["--client-prefix", "33"], "--client-prefix: `33` is not a prefix"),
        (vec!["--missing-size", "none"], "--missing-size: unknown policy `none`"),
        (vec!["--client-field", "x"], "has no names for its fields"),
    ];
    let log = made_up(10);
    for (flags, sentence) in cases {
        let output = piped(&[&["connections"], flags.as_slice()].concat(), &log);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(text(&output.stderr).contains(sentence), "{flags:?}: {}", text(&output.stderr));
    }
}

#[test]
fn other_rules_answer_too_and_the_page_has_the_paper_s_figures() {
    let folder = Folder::new("page");
    let log = folder.write("made-up.log", &made_up(3_000));
    let page = folder.0.join("page.html");
    let with_page = ["--report", page.to_str().unwrap(), "--rule", "first-created"];
    let first_created = rows(&roundtrip(&json(&[&log], &with_page)));
    let usual = rows(&roundtrip(&json(&[&log], &[])));
    let total = |rows: &[Value], limit| -> Vec<Value> {
        let of_limit = rows.iter().filter(|row| row["connections_per_client"] == limit);
        of_limit.map(|row| row["total_connections"].clone()).collect()
    };
    // With one connection there is only one to take over.
    assert_eq!(total(&first_created, 1), total(&usual, 1));
    let page = fs::read_to_string(page).unwrap();
    for figure in
        ["Figure 6a", "Figure 6b", "Figure 7", "Figure 8a", "Figure 8b", "Figure 9", "Connections over time"]
    {
        assert!(page.contains(figure), "{figure} is missing");
    }
}
