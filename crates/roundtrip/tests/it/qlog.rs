//! qlog: what `simulate` writes, and what `diagnose` reads of it and of other files.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

/// Temporary directory, removed when dropped.
struct TestDirectory(test_fixture::TestDirectory);

impl TestDirectory {
    fn new(name: &str) -> Self {
        Self(test_fixture::TestDirectory::below(env!("CARGO_TARGET_TMPDIR"), &format!("qlog-{name}")))
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
        command.args(arguments).current_dir(&self.0).output().unwrap()
    }

    /// Simulates a page over HTTP/3, and writes its qlog.
    fn simulate(&self, arguments: &[&str]) -> String {
        let output =
            self.run(&[&["simulate", "--protocol", "http3", "--qlog", "run.qlog"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(self.0.join("run.qlog")).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    /// Causes, places and times that are found in a file, and the account of the time.
    fn diagnosed(&self, name: &str) -> (Vec<(String, Value, Value)>, Value) {
        let output = self.run(&["diagnose", name, "--format", "json"]);
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let flows = report["flows"].as_array().unwrap();
        assert_eq!(flows.len(), 1, "{report}");
        let findings = flows[0]["findings"].as_array().unwrap().iter();
        let of = |finding: &Value| {
            (
                finding["cause"].as_str().unwrap().to_owned(),
                finding["at_ms"].clone(),
                finding["lost_ms"].clone(),
            )
        };
        (findings.map(of).collect(), flows[0]["account_ms"].clone())
    }
}

/// The trace of one end.
fn trace_of(file: &str, end: &str) -> String {
    let mut file: Value = serde_json::from_str(file).unwrap();
    let traces = file["traces"].as_array_mut().unwrap();
    traces.retain(|trace| trace["vantage_point"]["type"] == end);
    assert_eq!(traces.len(), 1);
    file.to_string()
}

#[test]
fn qlog_of_each_end_has_the_causes_and_times_of_its_capture_with_keys() {
    let directory = TestDirectory::new("ends");
    let runs: [&[&str]; 5] = [
        &["--network", "4g", "--page", "large-page"],
        &["--network", "cable", "--page", "medium-cluster", "--loss", "3%", "--seed", "2"],
        &["--network", "geo-satellite", "--page", "medium-cluster", "--loss", "1%"],
        &["--network", "3g", "--page", "300kb", "--tls", "1.3-0rtt", "--processing", "200ms"],
        &["--network", "dsl", "--page", "small-cluster", "--tls", "1.3-resumed"],
    ];
    for run in runs {
        for end in ["client", "server"] {
            let file = directory.simulate(&[run, &["--pcap", "run.pcapng", "--pcap-at", end]].concat());
            directory.write("end.qlog", &trace_of(&file, end));
            let capture = directory.diagnosed("run.pcapng");
            assert!(!capture.0.is_empty(), "{run:?}");
            assert_eq!(directory.diagnosed("end.qlog"), capture, "{run:?} at the {end}");
        }
    }
}

#[test]
fn the_same_run_has_the_same_qlog_with_a_trace_of_each_end_and_its_losses() {
    let directory = TestDirectory::new("same");
    let arguments = ["--network", "cable", "--page", "300kb", "--loss", "3%", "--seed", "2"];
    let file = directory.simulate(&arguments);
    assert_eq!(directory.simulate(&arguments), file);
    let value: Value = serde_json::from_str(&file).unwrap();
    assert!(file.find("file_schema").unwrap() < 256 && file.find("serialization_format").unwrap() < 256);
    let count = |trace: &Value, name: &str| {
        let events = trace["events"].as_array().unwrap();
        events.iter().filter(|event| event["name"] == format!("quic:{name}")).count()
    };
    let traces = value["traces"].as_array().unwrap();
    let ends: Vec<&Value> = traces.iter().map(|trace| &trace["vantage_point"]["type"]).collect();
    assert_eq!(ends, ["client", "server"]);
    let [client, server] = [&traces[0], &traces[1]];
    assert_eq!(count(client, "parameters_set"), 2);
    // What the server sent and the client did not get was lost; loss detection finds all but what was last.
    let numbers = |trace: &Value, name: &str| -> BTreeSet<u64> {
        let events = trace["events"].as_array().unwrap().iter();
        let events = events.filter(|event| event["name"] == format!("quic:{name}"));
        let headers = events.map(|event| &event["data"]["header"]);
        let headers = headers.filter(|header| header["packet_type"] == "1RTT");
        headers.map(|header| header["packet_number"].as_u64().unwrap()).collect()
    };
    let arrived = numbers(client, "packet_received");
    let last = *arrived.last().unwrap();
    let lost = numbers(server, "packet_sent").into_iter().filter(|number| !arrived.contains(number));
    let lost: BTreeSet<u64> = lost.filter(|number| number + 30 < last).collect();
    assert!(lost.len() > 3 && lost.is_subset(&numbers(server, "packet_lost")), "{lost:?}");
    assert!(count(server, "recovery_metrics_updated") > 5);
}

#[test]
fn of_a_file_with_both_ends_the_client_is_diagnosed_and_a_note_says_so() {
    let directory = TestDirectory::new("both");
    let file = directory.simulate(&["--network", "4g", "--page", "medium-cluster"]);
    directory.write("client.qlog", &trace_of(&file, "client"));
    assert_eq!(directory.diagnosed("run.qlog"), directory.diagnosed("client.qlog"));
    let output = directory.run(&["diagnose", "run.qlog"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("qlog of the client") && text.contains("not read: of servers"), "{text}");
}

#[test]
fn protocols_without_quic_refuse_qlog_by_name() {
    let directory = TestDirectory::new("refused");
    let output = directory.run(&["simulate", "--protocol", "http3,http2", "--qlog", "run.qlog"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("--qlog: http2 has no QUIC"), "{text}");
}

#[test]
fn files_without_a_diagnosis_are_refused_with_a_sentence() {
    let directory = TestDirectory::new("bad");
    let files = [
        (r#"{"log": {"entries": []}}"#, "no traces"),
        (r#"{"qlog_version": "0.3", "traces": [{"events": [NaN]}]}"#, "not qlog"),
        (r#"{"qlog_version": "0.3", "traces": []}"#, "without packets"),
        ("{", "not qlog"),
    ];
    for (file, expected) in files {
        directory.write("bad", file);
        let output = directory.run(&["diagnose", "bad"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(expected) && text.lines().count() < 5, "{text}");
    }
}
