//! `roundtrip watch` of a server with a fault, as an unprivileged user: JSON lines, the table, metrics, exit statuses.
//!
//! Where Python or setpriv is not installed, the tests report that they were skipped.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");
const EXCHANGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gate/exchange.py");

/// Watches a process that serves itself this number of responses, as the user `nobody`; `None`, with a message, where that is
/// not possible.
fn watch(write_mode: &str, requests: u32, flags: &str) -> Option<Output> {
    if !skip::has("python3") || !skip::has("setpriv") {
        return None;
    }
    let script = format!(
        "python3 {EXCHANGE} {write_mode} {requests} 0 & exec {PROGRAM} watch --pid $! --for 1500ms {flags}"
    );
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
    ]);
    let output = command.args(["sh", "-c", &script]).output().unwrap();
    let reported = text(&output.stderr);
    if reported.contains("setpriv:") {
        skip::report_skip(&reported);
        return None;
    }
    Some(output)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn an_ordinary_user_sees_the_stall_with_its_program_and_fix() {
    let Some(output) = watch("apart", 60, "--format json") else { return };
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(output.status.code(), Some(1), "{lines:#?} {}", text(&output.stderr));
    let [begin, stalls @ .., end] = &lines[..] else { panic!("{lines:#?}") };
    assert_eq!(begin["event"], "begin", "{begin}");
    assert_eq!((&end["event"], &end["fails"]), (&"end".into(), &true.into()), "{end}");
    let last = stalls.last().unwrap();
    assert_eq!((&last["event"], &last["cause"]), (&"stall".into(), &"nagle-delayed-ack".into()), "{last}");
    assert_eq!((&last["side"], &last["program"]), (&"server".into(), &"python3".into()), "{last}");
    assert_eq!(last["fixes"][0]["who"], "server application", "{last}");
    // Most of the 1.5 s were lost, 40 ms or more at a time.
    assert!(last["lost_ms"].as_f64() > Some(300.0) && last["longest_ms"].as_f64() > Some(30.0), "{last}");
}

#[test]
fn a_server_without_the_fault_is_silent() {
    let Some(output) = watch("whole", 5_000, "") else { return };
    let reported = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{reported}");
    assert!(reported.contains("No stalls were found."), "{reported}");
}

#[test]
fn the_table_names_cause_program_and_fix() {
    let Some(output) = watch("apart", 60, "") else { return };
    let reported = text(&output.stdout);
    assert!(
        reported.contains("\n1. nagle-delayed-ack: ") && reported.contains("python3 (pid "),
        "{reported}"
    );
    assert!(
        reported.contains("- server application: set TCP_NODELAY") && !reported.contains('\x1b'),
        "{reported}"
    );
}

#[test]
fn a_command_is_watched_until_it_ends() {
    if !skip::has("python3") {
        return;
    }
    for (write_mode, requests, status, expected) in
        [("apart", "20", "7", 1), ("whole", "2000", "0", 0), ("whole", "2000", "7", 3)]
    {
        let flags = [
            "watch",
            "--interval",
            "1ms",
            "--format",
            "json",
            "--",
            "python3",
            EXCHANGE,
            write_mode,
            requests,
            status,
        ];
        let output = Command::new(PROGRAM).args(flags).output().unwrap();
        let reported = text(&output.stdout);
        assert_eq!(output.status.code(), Some(expected), "{reported}");
        let end: Value = serde_json::from_str(reported.lines().last().unwrap()).unwrap();
        assert_eq!(
            (&end["event"], &end["command_status"]),
            (&"end".into(), &status.parse::<i32>().unwrap().into()),
            "{end}"
        );
    }
    let output = Command::new(PROGRAM).args(["watch", "--", "no-such-program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no such program"), "{}", text(&output.stderr));
}

#[test]
fn metrics_are_served_while_it_watches() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let mut command = Command::new(PROGRAM);
    command.args(["watch", "--port", "1", "--for", "3s", "--prometheus", &address]);
    let mut watching = command.stdout(Stdio::null()).spawn().unwrap();
    let scrape = || {
        let mut stream = TcpStream::connect(&address).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.contains("roundtrip_watch_samples_total ").then_some(text)
    };
    let scraped = std::iter::repeat_with(|| {
        Command::new("sleep").arg("0.1").status().unwrap();
        scrape()
    });
    let text = scraped.take(29).flatten().next().unwrap();
    assert!(text.contains("# TYPE roundtrip_watch_lost_seconds_total counter\n"), "{text}");
    assert!(text.contains("# HELP roundtrip_watch_sockets "), "{text}");
    // No socket has this port.
    assert_eq!(watching.wait().unwrap().code(), Some(3));
}

#[test]
fn misuse_is_one_sentence_and_status_2() {
    for (flags, expected) in [
        (&["--pid", "4194304000"][..], "--pid"),
        (&["--pid", "4194303"], "no such process"),
        (&["--interval", "1us"], "not between 1ms and 1s"),
        (&["--interval", "fast"], "--interval"),
        (&["--duration", "-1s"], "--for"),
        (&["--port", "0"], "--port"),
        (&["--port", "80", "--all"], "--all"),
    ] {
        let output = Command::new(PROGRAM).arg("watch").args(flags).output().unwrap();
        let reported = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {reported}");
        assert!(reported.contains(expected) && reported.lines().count() == 1, "{flags:?}: {reported}");
    }
}
