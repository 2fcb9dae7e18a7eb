//! A load in progress: its terminal display, and its output when it is interrupted. `load::report::view` tests
//! the lines.

use std::process::{Command, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{TestServer, planned_at, roundtrip};

/// Run by `script`, which provides a terminal; skipped where that is not installed.
#[test]
fn a_terminal_shows_a_load_in_progress_and_is_cleared_afterwards() {
    if !skip::has("script") {
        return;
    }
    let directory = planned_at("load-shown", "50", "3s");
    let served = TestServer::directory(&directory);
    let program = env!("CARGO_BIN_EXE_roundtrip");
    let load = format!(
        "stty rows 30 cols 60; '{program}' load http://{}/ --plan plan.txt --share 4",
        served.address
    );
    let mut command = Command::new("script");
    command
        .args(["-qec", &load, "/dev/null"])
        .current_dir(&directory)
        .env("TERM", "xterm")
        .env("NO_COLOR", "1");
    let printed = command.stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8_lossy(&printed.stdout);
    let (shown, left) = printed.rsplit_once("\x1b[J").expect("something was drawn");
    for words in
        ["1 s of 3 s", "responses  ", " a second, ", "4 open, 4 opened", "tcp-client 100.0%", "bottleneck  "]
    {
        assert!(shown.contains(words) && !left.contains(words), "{words}: {printed}");
    }
    assert!(left.contains("150 responses with "), "{printed}");
}

#[test]
fn an_interrupted_run_prints_its_results_so_far() {
    let directory = planned_at("load-cut", "50", "60s");
    let served = TestServer::directory(&directory);
    let target = format!("http://{}/", served.address);
    let arguments = ["load", &target, "--plan", "plan.txt", "--format", "json", "--log", "cut.hlog"];
    let child = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
        .args(arguments)
        .current_dir(&directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    thread::park_timeout(std::time::Duration::from_millis(1_500));
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let printed = child.wait_with_output().unwrap();
    assert_eq!((printed.status.code(), &printed.stderr[..]), (Some(130), &b""[..]));
    let run = serde_json::from_slice::<Value>(&printed.stdout).unwrap()[0].take();
    assert!(run["answered"].as_u64() > Some(0) && run["failed"] == json!(0), "{run}");
    assert!(run["cut_after_s"].as_f64().is_some_and(|cut| cut < 30.0), "{run}");
    let printed = roundtrip(&directory, &["load", "merge", "cut.hlog"]);
    assert!(String::from_utf8_lossy(&printed.stdout).contains("\nInterrupted after "), "{printed:?}");
}
