//! Parquet and Arrow tables: the same result as from the lines of the table.
//!
//! Not the accepted column types: the tests of `columns` cover those.

use std::fs;
use std::sync::Arc;

use accesslog::{ClientDefinition, Format, Reader};
use arrow_array::{
    Array, ArrayRef, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt16Array,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use super::program::{TestDirectory, json, piped, roundtrip, rows as parse_rows};

fn rows(logs: &[&str], more: &[&str]) -> Vec<Value> {
    parse_rows(&roundtrip(&json(logs, more)))
}

/// A synthetic log as lines and as a table with these names of columns.
fn synthetic_log(names: [&str; 4]) -> (Vec<u8>, RecordBatch) {
    let log = roundtrip(&["logs", "synthesize", "--requests", "20000", "--clients", "300"]).stdout;
    let mut records = Vec::new();
    Reader::new(Format::Clf, ClientDefinition::default()).read(&log, |record| records.push(record));
    let hosts = log.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').next());
    let hosts = hosts.filter(|host| !host.is_empty()).map(|host| String::from_utf8(host.to_vec()).unwrap());
    let times = records.iter().map(|record| i64::try_from(record.time.as_nanos()).unwrap());
    let sizes = records.iter().map(|record| record.size.map(|size| i64::try_from(size.get()).unwrap()));
    let columns: [ArrayRef; 4] = [
        Arc::new(TimestampNanosecondArray::from_iter_values(times)),
        Arc::new(StringArray::from_iter_values(hosts)),
        Arc::new(UInt16Array::from_iter_values(records.iter().map(|record| record.status))),
        Arc::new(sizes.collect::<Int64Array>()),
    ];
    let batch = RecordBatch::try_from_iter(names.into_iter().zip(columns)).unwrap();
    (log, batch)
}

fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

/// A table with an unneeded column that takes most of its bytes.
pub(crate) fn parquet_with_ballast() -> Vec<u8> {
    let (_, batch) = synthetic_log(["time", "client", "status", "bytes"]);
    let ballast = (0..batch.num_rows()).map(|row| format!("{:0>200}", row.wrapping_mul(0x9e37_79b9_7f4a)));
    let mut columns: Vec<(String, ArrayRef)> =
        vec![("agent".to_owned(), Arc::new(ballast.map(Some).collect::<StringArray>()))];
    let names = batch.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    columns.extend(names.into_iter().zip(batch.columns().iter().cloned()));
    parquet(&RecordBatch::try_from_iter(columns).unwrap())
}

#[test]
fn a_table_gives_the_same_counts_as_its_lines() {
    let directory = TestDirectory::new("tables");
    let (log, batch) = synthetic_log(["time", "client", "status", "bytes"]);
    let expected = rows(&[&directory.write("lines.log", &log)], &[]);
    let mut file = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    file.write(&batch).unwrap();
    stream.write(&batch).unwrap();
    let tables = [
        directory.write("table.parquet", &parquet(&batch)),
        directory.write("table.arrow", &file.into_inner().unwrap()),
        directory.write("stream.arrows", &stream.into_inner().unwrap()),
    ];
    for table in &tables {
        assert_eq!(rows(&[table], &["--threads", "1"]), expected, "{table}");
        assert_eq!(rows(&[table], &["--threads", "3"]), expected, "{table}");
        let bytes = fs::read(table).unwrap();
        assert_eq!(parse_rows(&piped(&json(&["-"], &[]), &bytes)), expected, "{table}");
    }
    // The first half as lines, the second as a table.
    let line = log.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(9_999).unwrap().0 + 1;
    let halves = [
        directory.write("b.log", &log[..line]),
        directory.write("a.parquet", &parquet(&batch.slice(10_000, 10_000))),
    ];
    assert_eq!(rows(&[&halves[1], &halves[0]], &[]), expected);
}

#[test]
fn columns_of_other_names_are_named_by_a_flag() {
    let directory = TestDirectory::new("named-columns");
    let (log, batch) = synthetic_log(["when", "who", "code", "n"]);
    let expected = rows(&[&directory.write("lines.log", &log)], &[]);
    let table = directory.write("table.parquet", &parquet(&batch));
    assert_eq!(rows(&[&table], &["--columns", "time=when,client=who,status=code,size=n"]), expected);
    let cases = [
        (None, "no column recognised as the time (columns: when, who, code, n)"),
        (Some("time=wen"), "unknown column `wen`; choose one of when, who, code, n"),
        (Some("tme=when"), "did you mean `time`?"),
        (Some("when"), "`when` names no column; give a pair such as client=ip"),
        (Some("time=when,client=who"), "--missing-size"),
    ];
    for (columns, sentence) in cases {
        let flags: Vec<&str> = columns.iter().flat_map(|columns| ["--columns", columns]).collect();
        let output = roundtrip(&[&["connections", table.as_str()], flags.as_slice()].concat());
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{columns:?}");
        assert!(printed.contains(sentence), "{columns:?}: {printed}");
    }
}

#[test]
fn a_truncated_table_is_refused_and_a_damaged_one_is_counted_up_to_the_damage() {
    let directory = TestDirectory::new("broken-tables");
    let (_, batch) = synthetic_log(["time", "client", "status", "bytes"]);
    let whole = parquet(&batch);
    // The schema is at the end.
    let output = roundtrip(&["connections", &directory.write("cut.parquet", &whole[..whole.len() / 2])]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch.slice(0, 10_000)).unwrap();
    stream.write(&batch.slice(10_000, 10_000)).unwrap();
    let stream = stream.into_inner().unwrap();
    let output = roundtrip(&[
        "connections",
        "--format",
        "json",
        &directory.write("cut.arrows", &stream[..stream.len() - 9_000]),
    ]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && printed.contains("could not be read to its end"), "{printed}");
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows[0]["requests"], 10_000);
}

#[test]
fn the_result_can_be_a_parquet_table() {
    let directory = TestDirectory::new("parquet-out");
    let (log, _) = synthetic_log(["time", "client", "status", "bytes"]);
    let out = directory.0.join("answer.parquet").to_str().unwrap().to_owned();
    let expected = rows(&[&directory.write("lines.log", &log)], &["--out", &out]);
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(fs::File::open(&out).unwrap()).unwrap().build().unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    let totals = batches.iter().flat_map(|batch| {
        let column = batch.column_by_name("total_connections").unwrap().clone();
        let column = column.as_any().downcast_ref::<arrow_array::UInt64Array>().unwrap().clone();
        (0..column.len()).map(move |row| column.value(row)).collect::<Vec<u64>>()
    });
    let expected: Vec<u64> = expected.iter().map(|row| row["total_connections"].as_u64().unwrap()).collect();
    assert_eq!(totals.collect::<Vec<u64>>(), expected);
}

#[test]
fn a_table_has_distributions_and_responses_of_one_size_are_one_file() {
    let directory = TestDirectory::new("tables-laws");
    let (_, batch) = synthetic_log(["time", "client", "status", "bytes"]);
    let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    let tables = [
        directory.write("table.parquet", &parquet(&batch)),
        directory.write("table.arrows", &stream.into_inner().unwrap()),
    ];
    let [one, other] = tables.map(|table| {
        let printed = roundtrip(&[
            "load",
            "plan",
            "--laws-of",
            &table,
            "--for",
            "2s",
            "--files",
            "50",
            "--format",
            "json",
        ]);
        let stderr = super::program::sentences(&printed.stderr);
        assert!(
            printed.status.success() && stderr.contains("responses of one size are one file"),
            "{stderr}"
        );
        serde_json::from_slice::<Vec<Value>>(&printed.stdout).unwrap()
    });
    assert_eq!(one, other);
    assert_eq!((&one[0]["of"], &one[0]["what"]), (&"log".into(), &"file size, bytes".into()));
}
