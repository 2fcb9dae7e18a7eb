//! `link`: a command behind an emulated link, with its own terminal, signals and exit status. Where private networks or TUN
//! devices are not permitted, or Python is not installed, those tests report that they were skipped.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
const CLIENT_AND_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/link/client_and_server.py");

/// Output of a command behind a link; `None`, with a message, where it cannot run.
fn link(flags: &[&str], command: &[&str]) -> Option<Output> {
    let output = Command::new(PROGRAM).arg("link").args(flags).arg("--").args(command).output().unwrap();
    permitted(output)
}

fn permitted(output: Output) -> Option<Output> {
    let reported = text(&output.stderr);
    if reported.contains("cannot capture here") || reported.contains("cannot measure here") {
        skip::refused(&reported);
        return None;
    }
    Some(output)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn temporary(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("link-{}-{name}", std::process::id()))
}

/// Milliseconds of a connection and of an exchange after it, and the bytes per second of a long response.
fn times(flags: &[&str], bytes: &str) -> Option<[f64; 3]> {
    if !skip::has("python3") {
        return None;
    }
    let output = link(flags, &["python3", CLIENT_AND_SERVER, bytes])?;
    let (printed, reported) = (text(&output.stdout), text(&output.stderr));
    let numbers: Vec<f64> = printed.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    Some(numbers.try_into().unwrap_or_else(|_| panic!("{printed}{reported}")))
}

#[test]
fn connections_take_the_round_trip_and_responses_the_rate() {
    let Some([connect, exchange, rate]) = times(&["--rtt", "80ms", "--rate", "8Mbit"], "1500000") else {
        return;
    };
    // A busy host only adds to these times.
    assert!(connect >= 80.0 && exchange >= 80.0, "{connect} {exchange}");
    assert!(rate <= 1_000_000.0 * 1.001, "{rate}");
}

#[test]
fn network_trace_paces_responses() {
    let trace = temporary("trace");
    // 1,500 bytes every 4 ms: 3 Mbit/s with headers.
    fs::write(&trace, "4\n").unwrap();
    let flags =
        ["--rtt", "10ms", "--network-trace", trace.to_str().unwrap(), "--queue-discipline", "fq-codel"];
    let times = times(&flags, "400000");
    fs::remove_file(&trace).unwrap();
    let Some([connect, exchange, rate]) = times else { return };
    assert!(connect >= 10.0 && exchange >= 10.0, "{connect} {exchange}");
    assert!(rate <= 375_000.0 * 1.01, "{rate}");
}

#[test]
fn output_input_and_exit_status_are_the_commands() {
    let mut command = Command::new(PROGRAM);
    command.args(["link", "--network", "dsl", "--", "sh", "-c", "cat; echo oops >&2; exit 7"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Where links are not permitted, it ends without reading.
    let _ = child.stdin.take().unwrap().write_all(b"a line\n");
    let Some(output) = permitted(child.wait_with_output().unwrap()) else { return };
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(7), "a line\n"));
    let reported = text(&output.stderr);
    assert!(reported.starts_with("oops\n") && reported.contains("roundtrip: link dsl: "), "{reported}");

    let Some(output) = link(&["--network", "dsl"], &["sh", "-c", "kill -9 $$"]) else { return };
    assert_eq!(output.status.code(), Some(137));
    let Some(output) = link(&["--network", "dsl"], &["no-such-program"]) else { return };
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no such program: `no-such-program`"), "{output:?}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another process begins in its own time")]
fn signals_are_passed_on_and_processes_left_behind_are_ended() {
    let left = temporary("left");
    // The shell exits when it gets SIGTERM; its child in another session would outlive it.
    let script = format!(
        "trap 'exit 42' TERM; setsid sleep 300 & echo $! > {0}.new; mv {0}.new {0}; while :; do sleep 0.05; done",
        left.display()
    );
    let mut command = Command::new(PROGRAM);
    command.args(["link", "--network", "dsl", "--", "sh", "-c", &script]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    while !left.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let kill = format!("kill -TERM {}", child.id());
    let _ = Command::new("sh").args(["-c", &kill]).status().unwrap();
    let Some(output) = permitted(child.wait_with_output().unwrap()) else { return };
    assert_eq!(output.status.code(), Some(42), "{}", text(&output.stderr));
    let process = fs::read_to_string(&left).unwrap();
    fs::remove_file(&left).unwrap();
    assert!(!PathBuf::from(format!("/proc/{}", process.trim())).exists(), "{process} is still running");
}

#[test]
fn nested_links_and_incomplete_networks_are_refused_with_a_sentence() {
    let Some(output) = link(&["--network", "dsl"], &[PROGRAM, "link", "--network", "4g", "--", "true"])
    else {
        return;
    };
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("links cannot be nested"), "{output:?}");
    for (flags, part) in [
        (&[][..], "give --network NAME"),
        (&["--seed", "3"], "give --network NAME"),
        (&["--rtt", "20ms"], "rate is missing"),
        (&["--network", "4g,dsl"], "2 networks"),
        (&["--network", "4g", "--network-trace", "/dev/null"], "a rate of zero"),
        (
            &["--network", "4g", "--rate", "1Mbit", "--network-trace", MANIFEST],
            "not a time in whole milliseconds",
        ),
        (&["--network", "4h"], "did you mean `4g`"),
    ] {
        let Some(output) = link(flags, &["true"]) else { return };
        let reported = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {reported}");
        assert!(reported.contains(part), "{flags:?}: {reported}");
    }
}

#[test]
fn clients_packets_are_captured_and_diagnosed() {
    if !skip::has("python3") {
        return;
    }
    let pcap = temporary("run.pcapng");
    let report = temporary("report.html");
    let flags = ["--network", "dsl", "--pcap", pcap.to_str().unwrap(), "--diagnose", "--report"];
    let flags = [&flags[..], &[report.to_str().unwrap()]].concat();
    let Some(output) = link(&flags, &["python3", CLIENT_AND_SERVER, "100000"]) else { return };
    let reported = text(&output.stderr);
    assert!(reported.contains("1 connection") && reported.contains("client_and_server.py"), "{reported}");
    let diagnosed = Command::new(PROGRAM).args(["diagnose", "--format", "json"]).arg(&pcap).output().unwrap();
    let diagnosed: serde_json::Value = serde_json::from_slice(&diagnosed.stdout).unwrap();
    assert_eq!(diagnosed["connections"], 1, "{diagnosed:#}");
    assert!(diagnosed["flows"][0]["rtt_ms"].as_f64() >= Some(50.0), "{diagnosed:#}");
    assert!(fs::read_to_string(&report).unwrap().contains("client_and_server.py"));
    fs::remove_file(&pcap).unwrap();
    fs::remove_file(&report).unwrap();
}

#[test]
fn other_hosts_are_reached_across_the_link() {
    if !skip::has("slirp4netns") || !skip::has("python3") {
        return;
    }
    // An address of this host towards others; nothing is sent. This host itself is outside the private network.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    if socket.connect("198.51.100.1:9").is_err() {
        return skip::refused("this host has no route to others");
    }
    let listener = TcpListener::bind((socket.local_addr().unwrap().ip(), 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || listener.accept().is_ok());
    let script = format!(
        "import socket, time; begin = time.perf_counter(); socket.create_connection(('{}', {})); \
         print(1e3 * (time.perf_counter() - begin))",
        address.ip(),
        address.port()
    );
    let Some(output) = link(&["--rtt", "80ms", "--rate", "8Mbit"], &["python3", "-c", &script]) else {
        return;
    };
    let (printed, reported) = (text(&output.stdout), text(&output.stderr));
    assert!(reported.contains("other hosts by slirp4netns"), "{reported}");
    assert!(printed.trim().parse::<f64>().is_ok_and(|connect| connect >= 80.0), "{printed}{reported}");
    assert!(server.join().unwrap());
}
