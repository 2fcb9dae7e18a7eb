//! The verbs that measure, on real hosts and a link of their own, and this host's kernel.
//!
//! No time is asserted. Where the system has no laboratory the tests report that they were skipped; with
//! `ROUNDTRIP_REQUIRE_KERNEL=1`, as in CI, that is a failure.

use std::process::{Command, Output};

use linux::mounts;

use serde_json::Value;
use test_fixture::TestDirectory;

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Output of a measuring command; `None`, with a message, where nothing can be measured.
fn measured(arguments: &[&str]) -> Option<Output> {
    let output = Command::new(PROGRAM).args(arguments).output().unwrap();
    if text(&output.stderr).contains("cannot measure here") {
        skip::refused(&text(&output.stderr));
        return None;
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(output)
}

fn rows(output: &Output) -> Vec<Value> {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

#[test]
fn a_comparison_has_a_row_of_each_engine_for_each_protocol() {
    let arguments = ["compare", "--network", "ethernet", "--runs", "2", "--format", "json"];
    let Some(output) = measured(&arguments) else { return };
    let rows = rows(&output);
    let engines_by_protocol: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["protocol"].as_str().unwrap(), row["engine"].as_str().unwrap())).collect();
    let expected = [
        ("http10", "model"),
        ("http10", "simulate"),
        ("http10", "measure"),
        ("http10-keepalive", "model"),
        ("http10-keepalive", "simulate"),
        ("http10-keepalive", "measure"),
    ];
    assert_eq!(engines_by_protocol, expected);
    for row in rows.iter().filter(|row| row["engine"] == "measure") {
        assert_eq!(row["runs"], 2);
        for known in
            ["elapsed_ms", "overhead", "packets_up", "packets_down", "payload_bytes", "elapsed_ms_stddev"]
        {
            assert!(row[known].as_f64().unwrap() > 0.0, "{known} in {row}");
        }
    }
    // Stderr is not a terminal here: there is no progress bar on it.
    assert_eq!(text(&output.stderr), "");
}

/// First bytes of a section of a pcapng file.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

#[test]
fn a_measurement_writes_packets_and_a_page_and_reports_refused_scenarios() {
    let directory =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pcap-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let [pcap, page] =
        ["run.pcapng", "page.html"].map(|name| directory.join(name).to_str().unwrap().to_owned());
    let measure_protocols = |protocols| {
        let scenario = ["measure", "--network", "fast-ethernet", "--page", "small-page", "--runs", "1"];
        let output = ["--protocol", protocols, "--pcap", &pcap, "--report", &page, "--format", "json"];
        measured(&[scenario.as_slice(), &output].concat())
    };
    let (single, several) = (measure_protocols("http11"), measure_protocols("http10,http11,ttcp"));
    let mut names: Vec<String> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let packets = std::fs::read(&pcap).unwrap_or_default();
    let provenance = std::fs::read_to_string(&page).unwrap_or_default();
    std::fs::remove_dir_all(&directory).unwrap();
    let (Some(_), Some(several)) = (single, several) else { return };
    assert_eq!(names, ["page.html", "run.pcapng"]);
    // A section for each scenario that could be measured, in the one file.
    let sections = packets.windows(4).filter(|bytes| *bytes == SECTION_HEADER).count();
    assert_eq!(sections, 2);
    assert!(provenance.contains("Linux ") && provenance.contains("tcp_sack"));
    let rows = rows(&several);
    assert!(rows[0]["elapsed_ms"].is_number() && rows[2]["elapsed_ms"].is_null());
    assert!(rows[2]["notes"][0].as_str().unwrap().starts_with("cannot measure ttcp"));
}

#[test]
fn an_interrupted_measurement_continues() {
    let directory = TestDirectory::below(env!("CARGO_TARGET_TMPDIR"), "laboratory-into");
    let path = directory.join("rows.csv").to_str().unwrap().to_owned();
    let measure = || {
        let scenario = ["measure", "--network", "ethernet", "--page", "small-page", "--runs", "1"];
        measured(&[scenario.as_slice(), &["--protocol", "http11,http10", "--into", &path]].concat())
    };
    let Some(_) = measure() else { return };
    let whole = std::fs::read_to_string(&path).unwrap();
    let rows: Vec<&str> = whole.split_inclusive("\r\n").collect();
    assert_eq!(rows.len(), 3);
    std::fs::write(&path, rows[..2].concat() + &rows[2][..9]).unwrap();
    let Some(again) = measure() else { return };
    assert!(
        text(&again.stdout).ends_with("rows.csv: 2 rows, 1 of which it had\n"),
        "{}",
        text(&again.stdout)
    );
    let continued = std::fs::read_to_string(&path).unwrap();
    assert!(continued.starts_with(&rows[..2].concat()), "the first row was measured again");
    assert!(
        continued[rows[0].len() + rows[1].len()..].starts_with("ethernet,small-page,first,http10,measure,")
    );
}

#[test]
fn without_a_laboratory_a_comparison_gives_the_model_and_the_missing_requirement() {
    if !is_root() {
        return skip::report_skip("only root can hide /dev/net/tun from a command");
    }
    let without_tun = |verb: &str| {
        let hidden = mounts::apart(|| {
            mounts::mount("tmpfs", "/dev/net", "")?;
            Ok(Command::new(PROGRAM).args([verb, "--network", "modem"]).output().unwrap())
        });
        hidden.unwrap()
    };
    let compare = without_tun("compare");
    let missing = "roundtrip: cannot measure here: /dev/net/tun is absent or has no driver; load it with `modprobe tun`, or \
                   give the container the device";
    let told = |printed: &[u8]| text(printed).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!((told(&compare.stderr).as_str(), compare.status.code()), (missing, Some(0)));
    assert!(text(&compare.stdout).contains("predicted") && text(&compare.stdout).contains("failed"));
    let measure = without_tun("measure");
    assert_eq!((told(&measure.stderr).as_str(), measure.status.code()), (missing, Some(2)));
    assert_eq!(text(&measure.stdout), "");
}

#[test]
fn data_lost_by_a_naive_close_is_found_in_its_packets_and_none_after_a_careful_one() {
    // Each has a laboratory of its own.
    std::thread::scope(|scope| {
        scope.spawn(|| check_close("naive", true));
        scope.spawn(|| check_close("careful", false));
    });
}

fn check_close(close: &str, is_destructive: bool) {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let pcap = directory.join(format!("{close}-close-{}.pcapng", std::process::id()));
    let pcap = pcap.to_str().unwrap();
    let scenario = ["measure", "--profile", "linux", "--network", "n-fast-internet", "--page", "microscape"];
    let programs = ["--protocol", "http11-pipelined", "--server-requests", "5", "--server-close", close];
    let output = ["--runs", "1", "--pcap", pcap, "--format", "json"];
    let Some(output) = measured(&[&scenario[..], &programs, &output].concat()) else { return };
    let notes = rows(&output)[0]["notes"].to_string();
    // The client recovers in the same way: it retries requests without a response.
    assert!(notes.contains("requests retried"), "{close}: {notes}");
    assert!(is_destructive || !notes.contains("destroyed"), "{close}: {notes}");
    let diagnosis = Command::new(PROGRAM).args(["diagnose", pcap]).output().unwrap();
    // Exit status 1: there are findings.
    assert_eq!(diagnosis.status.code(), Some(i32::from(is_destructive)), "{}", text(&diagnosis.stderr));
    let printed = text(&diagnosis.stdout);
    assert_eq!(printed.contains("reset-lost-data"), is_destructive, "{close}: {printed}");
    std::fs::remove_file(pcap).unwrap();
}
