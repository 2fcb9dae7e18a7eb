//! Logs in an object store: the same result as from files, and a sentence for every error.
//!
//! The store is a local one that speaks the S3 protocol.

use super::program::{TestDirectory, gzipped, json, roundtrip, rows, synthetic_log, text};
use super::s3::{Store, key};
#[cfg(feature = "parquet")]
use super::tables;

/// Returns a log, and its parts in four files, one of them compressed.
fn rotated() -> (Vec<u8>, Vec<(String, Vec<u8>)>) {
    let log = synthetic_log(20_000);
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let parts = lines.chunks(5_000).enumerate().map(|(number, lines)| match number {
        2 => (format!("logs/2026/access-{number}.log.gz"), gzipped(&lines.concat())),
        _ => (format!("logs/2026/access-{number}.log"), lines.concat()),
    });
    let parts = parts.collect();
    (log, parts)
}

#[test]
fn a_store_gives_the_same_counts_as_files_by_pattern_and_by_prefix() {
    let directory = TestDirectory::new("store");
    let (log, parts) = rotated();
    let expected = rows(&roundtrip(&json(&[&directory.write("whole.log", &log)], &[])));
    let mut objects: Vec<(&str, &[u8])> =
        parts.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    objects.push(("logs/notes/readme.txt", b"dear diary,\n"));
    let store = Store::new(&objects, &[]);
    for logs in ["s3://bucket/logs/2026", "s3://bucket/logs/2026/", "s3://bucket/logs/*/access-?.log*"] {
        let output = store.roundtrip(key(), &json(&[logs], &[]));
        assert_eq!(rows(&output), expected, "{logs}");
    }
    // One object, with a file alongside.
    let other_log = directory.write("rest.log", &parts[1].1);
    let output = store.roundtrip(key(), &json(&["s3://bucket/logs/2026/access-0.log", &other_log], &[]));
    assert_eq!(rows(&output)[0]["requests"], 10_000);
    let web = store.on_the_web("logs/2026/access-0.log");
    assert_eq!(rows(&store.roundtrip(key(), &json(&[&web], &[])))[0]["requests"], 5_000);
}

#[test]
fn long_objects_are_fetched_in_pieces() {
    let directory = TestDirectory::new("pieces");
    let log = synthetic_log(120_000);
    let expected = rows(&roundtrip(&json(&[&directory.write("whole.log", &log)], &[])));
    let store = Store::new(&[("whole.log", &log)], &[]);
    let output = store.roundtrip(key(), &json(&["s3://bucket/whole.log"], &[]));
    assert_eq!(rows(&output), expected);
    let first = "GET whole.log bytes=0-262143";
    assert_eq!(store.request_log()[..2], ["HEAD whole.log", first], "its beginning identifies its format");
    assert!(store.request_log().iter().any(|request| request == "GET whole.log bytes=262144-4456447"));
}

#[cfg(feature = "parquet")]
#[test]
fn only_the_needed_columns_of_a_parquet_object_are_fetched() {
    let directory = TestDirectory::new("parquet-object");
    let table = tables::parquet_with_ballast();
    let expected = rows(&roundtrip(&json(&[&directory.write("table.parquet", &table)], &[])));
    let store = Store::new(&[("table.parquet", &table)], &[]);
    let output = store.roundtrip(key(), &json(&["s3://bucket/table.parquet"], &[]));
    assert_eq!(rows(&output), expected);
    let fetched: usize = store.request_log().iter().filter_map(|request| length(request)).sum();
    assert!(fetched * 2 < table.len(), "{fetched} of {} bytes: {:?}", table.len(), store.request_log());
}

#[cfg(feature = "parquet")]
/// Length of the range in `GET name bytes=0-9`.
fn length(request: &str) -> Option<usize> {
    let (from, to) = request.rsplit_once("bytes=")?.1.split_once('-')?;
    Some(to.parse::<usize>().ok()? + 1 - from.parse::<usize>().ok()?)
}

#[test]
fn a_refusal_of_the_store_is_reported_in_a_sentence() {
    let store = Store::new(&[("access.log", b"x"), ("empty.log", b"")], &[]);
    let cases = [
        ("s3://bucket/none.log", key(), "no such object, and none below it; name a log"),
        ("s3://bucket/none-*", key(), "no such object"),
        ("s3://bucket/access.log", "unknown-key", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("s3://bucket/*.log", "unknown-key", "denies access"),
        ("s3://bucket/access.log", key(), "unknown access log format"),
        ("s3://bucket/empty.log", key(), "the log is empty"),
        ("s3:///access.log", key(), "the bucket is missing"),
        ("ftp://host/access.log", key(), "unsupported scheme `ftp`"),
        ("https://127.0.0.1:1/access.log?token=1", key(), "pipe it in: curl"),
    ];
    for (log, key, sentence) in cases {
        let output = store.roundtrip(key, &json(&[log], &[]));
        assert_eq!(output.status.code(), Some(2), "{log}");
        let printed = text(&output.stderr);
        assert!(printed.contains(sentence) && printed.contains(log), "{log}: {printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
    }
}

#[test]
fn an_object_that_ends_too_early_is_counted_as_far_as_it_goes() {
    let log = synthetic_log(20_000);
    let store = Store::new(&[("cut.log", &log)], &[("cut.log", 1_000_000)]);
    let output = store.roundtrip(key(), &json(&["s3://bucket/cut.log"], &[]));
    let counted = rows(&output)[0]["requests"].as_u64().unwrap();
    assert!((1_000..15_000).contains(&counted), "{counted}");
    assert!(
        super::program::sentences(&output.stderr).contains("could not be read to its end"),
        "{}",
        text(&output.stderr)
    );
}
