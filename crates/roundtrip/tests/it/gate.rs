//! `diagnose` as a gate: which findings fail, exit statuses, baselines, and runs of a command.
//!
//! The command has a server that writes header section and body separately, or together. Where captures are not permitted, or
//! Python is not installed, those tests report that they were skipped.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");
const EXCHANGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gate/exchange.py");

fn diagnose(arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("diagnose").args(arguments).env_remove("GITHUB_STEP_SUMMARY");
    command.output().unwrap()
}

/// Path of a capture of the fuzz corpus.
fn capture(name: &str) -> String {
    format!("{}/../../fuzz/corpus/capture/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn status(arguments: &[&str]) -> i32 {
    diagnose(arguments).status.code().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Path of a file in the directory of a test.
fn file(test: &str, name: &str) -> PathBuf {
    let directory =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("gate-{test}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    directory.join(name)
}

/// Output of a gate over a command in a private network; `None`, with a message, where it cannot run.
fn run(flags: &[&str], exchange: [&str; 3]) -> Option<Output> {
    if !skip::has("python3") {
        return None;
    }
    let command = ["--", "python3", EXCHANGE];
    permitted(diagnose(&[&["--run", "--isolated"], flags, &command, &exchange].concat()))
}

fn permitted(output: Output) -> Option<Output> {
    let reported = text(&output.stderr);
    if reported.contains("cannot capture here") {
        skip::refused(&reported);
        return None;
    }
    Some(output)
}

#[test]
fn the_exit_status_follows_thresholds_and_allowed_causes() {
    let nagle = capture("nagle");
    // 75 ms: medium.
    for (flags, expected) in [
        (&[][..], 1),
        (&["--fail-on", "high"], 0),
        (&["--fail-on", "high,nagle-delayed-ack"], 1),
        (&["--fail-on", "nagle-delayed-ack:76"], 0),
        (&["--fail-on", "none"], 0),
        (&["--allow", "nagle-delayed-ack"], 0),
        (&["--allow", "nagle"], 1),
    ] {
        assert_eq!(status(&[&[nagle.as_str()], flags].concat()), expected, "{flags:?}");
    }
    // Notes never fail.
    assert_eq!(status(&[&nagle, "--fail-on", "low", "--allow", "nagle-delayed-ack"]), 0);
}

#[test]
fn misuse_is_one_sentence_and_status_2() {
    let nagle = capture("nagle");
    let invalid_file = file("misuse", "wrong.json");
    fs::write(&invalid_file, "{}").unwrap();
    for (flags, expected) in [
        (["--fail-on", "nagel"], "did you mean `nagle`"),
        (["--fail-on", "hihg"], "did you mean `high`"),
        (["--fail-on", "slow-start"], "never a fault"),
        (["--allow", "nagel"], "--allow: unknown cause"),
        (["--baseline", "/nonexistent"], "--baseline /nonexistent"),
        (["--baseline", invalid_file.to_str().unwrap()], "not a baseline"),
        (["--runs", "3"], "--run"),
        (["--isolated", "--status-of-command"], "--run and COMMAND must be given too"),
        (["--", "ls"], "a capture and a command exclude each other; write `roundtrip diagnose "),
        (["--run", "--"], "COMMAND must be given too"),
    ] {
        let output = diagnose(&[&[nagle.as_str()][..], &flags].concat());
        let reported = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {reported}");
        assert!(reported.contains(expected) && reported.lines().count() == 1, "{flags:?}: {reported}");
    }
    fs::remove_dir_all(invalid_file.parent().unwrap()).unwrap();
}

#[test]
fn a_command_without_run_gets_the_command_line_that_runs_it() {
    let refusal = |arguments: &[&str]| {
        let output = diagnose(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        text(&output.stderr)
    };
    for (typed, first, kind, command) in [
        (&["--", "sh", "-c", "true"][..], "sh", "a command", "sh -c true"),
        (&["--run", "sh", "-c", "true"], "sh", "a command", "sh -c true"),
        (&["sh", "-c", "true"], "sh", "a command", "sh -c true"),
        (&["--", "sh", "http://h/?a=1&b=2"], "sh", "a command", "sh 'http://h/?a=1&b=2'"),
        (&["http://h/"], "http://h/", "an address", "curl http://h/"),
    ] {
        let expected = format!(
            "roundtrip: `{first}`: {kind}, not a capture; write `roundtrip diagnose --run -- {command}`\n"
        );
        assert_eq!(refusal(typed), expected, "{typed:?}");
    }
    let with_flag = refusal(&["--svg", "plots", "--", "curl", "h"]);
    assert!(with_flag.contains("write `roundtrip diagnose --svg plots --run -- curl h`"), "{with_flag}");
    for other in [
        &[][..],
        &["--run"],
        &["--run", "--bogus", "sh"],
        &["--run", "--bogus", "--", "sh"],
        &["--bogus"],
        &["no-such-capture.pcapng", "--bogus"],
    ] {
        assert!(!refusal(other).contains("not a capture"), "{other:?}");
    }
}

#[test]
fn only_findings_that_are_not_in_the_baseline_fail() {
    let known = file("baseline", "known.json");
    let known_path = known.to_str().unwrap();
    assert_eq!(status(&[&capture("nagle"), "--write-baseline", known_path]), 0);
    assert_eq!(status(&[&capture("nagle"), "--baseline", known_path]), 0);
    assert_eq!(status(&[&capture("timeouts"), "--baseline", known_path]), 1);
    let output = diagnose(&[&capture("nagle"), "--baseline", known_path]);
    let reported = text(&output.stdout);
    assert!(
        reported.ends_with(
            "Verdict: passes\n  nagle-delayed-ack (client, port 80): 75 ms lost (in the baseline)\n"
        ),
        "{reported}"
    );
    fs::remove_dir_all(known.parent().unwrap()).unwrap();
}

#[test]
fn every_format_has_the_same_verdict() {
    let nagle = capture("nagle");
    for format in ["table", "json", "csv", "markdown", "junit", "sarif", "github", "tap"] {
        for (flags, expected) in [(&[][..], 1), (&["--fail-on", "high"], 0)] {
            let output = diagnose(&[&[nagle.as_str(), "--format", format], flags].concat());
            assert_eq!(output.status.code(), Some(expected), "{format}");
            assert!(text(&output.stdout).contains("nagle-delayed-ack"), "{format}");
        }
    }
    let output = diagnose(&[&nagle, "--format", "json", "--fail-on", "high"]);
    let verdict = &serde_json::from_slice::<Value>(&output.stdout).unwrap()["verdict"];
    assert_eq!((&verdict["fails"], &verdict["cases"][0]["outcome"]), (&false.into(), &"passes".into()));
}

#[test]
fn the_job_summary_is_appended_to_the_runners_file() {
    let summary = file("summary", "summary.md");
    fs::write(&summary, "before\n").unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["diagnose", &capture("nagle"), "--format", "github"]);
    let output = command.env("GITHUB_STEP_SUMMARY", &summary).output().unwrap();
    assert!(text(&output.stdout).starts_with("::error title=nagle-delayed-ack"), "{}", text(&output.stdout));
    let written = fs::read_to_string(&summary).unwrap();
    assert!(written.starts_with("before\n## Roundtrip: 1 stall fails\n"), "{written}");
    assert!(written.contains("```mermaid\nxychart-beta\n"), "{written}");
    fs::remove_dir_all(summary.parent().unwrap()).unwrap();
}

#[test]
fn a_server_that_writes_headers_and_body_apart_fails_in_most_runs_and_its_twin_in_none() {
    let flags = ["--runs", "3", "--format", "json"];
    let Some(apart) = run(&flags, ["apart", "8", "0"]) else { return };
    let reported: Value = serde_json::from_slice(&apart.stdout).unwrap();
    assert_eq!(apart.status.code(), Some(1), "{reported:#}");
    assert_eq!(reported.as_array().unwrap().len(), 3);
    let case = &reported[0]["verdict"]["cases"][0];
    assert_eq!((&case["cause"], &case["side"]), (&"nagle-delayed-ack".into(), &"server".into()), "{case}");
    assert!(case["failing_runs"].as_u64() >= Some(2) && case["port"] == "ephemeral", "{case}");
    let Some(whole) = run(&flags, ["whole", "8", "0"]) else { return };
    assert_eq!(whole.status.code(), Some(0), "{}", text(&whole.stdout));
}

#[test]
fn the_status_of_the_command_is_reported_and_returned_on_request() {
    let Some(output) = run(&["--format", "json"], ["whole", "2", "7"]) else { return };
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    // What the command was to do may not have happened.
    assert_eq!((output.status.code(), &reported["command_status"]), (Some(3), &7.into()));
    assert_eq!(reported["verdict"]["judged"], false, "{reported:#}");
    for (write_mode, status) in [("whole", 7), ("apart", 0), ("apart", 3)] {
        let exchange = [write_mode, "8", &status.to_string()];
        let Some(output) = run(&["--status-of-command"], exchange) else { return };
        assert_eq!(output.status.code(), Some(status), "{}", text(&output.stdout));
    }
    let killed = ["--run", "--isolated", "--status-of-command", "--", "sh", "-c", "kill -9 $$"];
    let Some(killed) = permitted(diagnose(&killed)) else { return };
    assert_eq!(killed.status.code(), Some(137), "{}", text(&killed.stderr));
}

#[test]
fn nothing_seen_is_an_error_in_every_format() {
    for (format, expected) in [
        ("table", "Nothing could be judged: no packet was captured."),
        ("json", "\"unjudged\": \"no packet was captured\""),
        ("markdown", "## Roundtrip: nothing could be judged"),
        ("junit", "errors=\"1\""),
        ("sarif", "\"executionSuccessful\": false"),
        ("github", "::error title=Roundtrip::nothing could be judged"),
        ("tap", "not ok 1 - nothing could be judged"),
    ] {
        let run = ["--run", "--isolated", "--format", format, "--", "true"];
        let Some(output) = permitted(diagnose(&run)) else { return };
        assert_eq!(output.status.code(), Some(3), "{format}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains(expected), "{format}: {}", text(&output.stdout));
    }
}

/// Runs a program as the user `nobody`, without any capability; `None`, with a message, where that cannot be done.
fn run_unprivileged(arguments: &[&str]) -> Option<Output> {
    if !skip::has("setpriv") {
        return None;
    }
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
    ]);
    let output = command.args(arguments).output().unwrap();
    let reported = text(&output.stderr);
    if reported.contains("setpriv:") {
        skip::report_skip(&reported);
        return None;
    }
    Some(output)
}

#[test]
fn an_ordinary_user_diagnoses_a_command_in_a_private_network() {
    if !skip::has("python3") {
        return;
    }
    for (write_mode, expected) in [("apart", 1), ("whole", 0)] {
        let run = [PROGRAM, "diagnose", "--format", "json", "--run", "--isolated", "--", "python3", EXCHANGE];
        let Some(output) = run_unprivileged(&[&run[..], &[write_mode, "8", "0"]].concat()) else { return };
        let Some(output) = permitted(output) else { return };
        assert_eq!(output.status.code(), Some(expected), "{write_mode}: {}", text(&output.stderr));
        let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&reported["connections"], &reported["command_status"]),
            (&1.into(), &0.into()),
            "{reported}"
        );
    }
}

#[test]
fn a_private_network_contains_nothing_else_and_the_command_runs_as_the_same_user() {
    let script = "id -u; wc -l < /proc/net/dev; grep CapEff /proc/self/status";
    let run = [PROGRAM, "diagnose", "--run", "--isolated", "--", "sh", "-c", script];
    let Some(output) = run_unprivileged(&run).and_then(permitted) else { return };
    // Two lines of headings, and lo.
    assert_eq!(text(&output.stderr), "65534\n3\nCapEff:\t0000000000000000\n");
    // It opened no connection.
    assert_eq!(output.status.code(), Some(3));
}

/// Runs `diagnose --run --isolated` in a user namespace of this test, in which no other can be created; `None`, with a message,
/// where that cannot be done.
fn without_namespaces(isolated: &str, flags: &str, command: &str) -> Option<Output> {
    if !skip::has("unshare") || !skip::has("setpriv") {
        return None;
    }
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \
         {PROGRAM} diagnose --run {isolated} {flags} -- {command}"
    );
    let output = Command::new("unshare").args(["-Ur", "sh", "-c", &script]).output().unwrap();
    let reported = text(&output.stderr);
    let refusals = ["unshare:", "setpriv:", "Permission denied"];
    if refusals.iter().any(|refusal| reported.contains(refusal)) {
        skip::report_skip(&reported);
        return None;
    }
    Some(output)
}

#[test]
fn where_namespaces_are_forbidden_a_sentence_names_the_setting_and_sockets_are_watched() {
    if !skip::has("python3") {
        return;
    }
    for (write_mode, expected) in [("apart", 1), ("whole", 0)] {
        let command = format!("python3 {EXCHANGE} {write_mode} {} 0", if expected == 1 { 8 } else { 400 });
        let Some(output) = without_namespaces("--isolated", "--format json", &command) else { return };
        let (reported, warned) = (text(&output.stdout), text(&output.stderr));
        assert!(warned.lines().all(|line| line.chars().count() <= 80), "{warned}");
        let warned = warned.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(expected), "{write_mode}: {reported} {warned}");
        assert!(warned.contains("user.max_user_namespaces is 0") && warned.contains("sysctl"), "{warned}");
        assert!(warned.contains("watched instead") && warned.matches("roundtrip:").count() == 1, "{warned}");
        let reported: Value = serde_json::from_str(&reported).unwrap();
        assert_eq!((&reported["packets"], &reported["command_status"]), (&0.into(), &0.into()));
        assert_eq!(reported["verdict"]["fails"], expected == 1, "{reported:#}");
        let stalls = reported["watched"]["stalls"].as_array().unwrap();
        assert_eq!(stalls.len(), usize::try_from(expected).unwrap(), "{reported:#}");
    }
    for format in ["table", "markdown", "junit", "sarif", "github", "tap"] {
        let command = format!("python3 {EXCHANGE} apart 8 0");
        let flags = format!("--format {format}");
        let Some(output) = without_namespaces("--isolated", &flags, &command) else { return };
        assert_eq!(output.status.code(), Some(1), "{format}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("nagle-delayed-ack"), "{format}: {}", text(&output.stdout));
    }
}

#[test]
fn options_that_need_packets_are_refused_where_namespaces_are_forbidden() {
    for (isolated, flags, culprit) in [
        ("--isolated", "--since 1s", "--since needs packets"),
        ("--isolated=dsl", "", "max_user_namespaces is 0"),
    ] {
        let Some(output) = without_namespaces(isolated, flags, "true") else { return };
        let reported = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{reported}");
        assert!(reported.contains(culprit) && reported.lines().count() == 1, "{reported}");
    }
}

#[test]
fn a_commands_connections_cross_the_network_that_is_named() {
    for (write_mode, expected) in [("apart", 1), ("whole", 0)] {
        if !skip::has("python3") {
            return;
        }
        let run =
            ["--format", "json", "--run", "--isolated=dsl", "--", "python3", EXCHANGE, write_mode, "8", "0"];
        let output = diagnose(&run);
        if text(&output.stderr).contains("cannot measure here") {
            return skip::refused(&text(&output.stderr));
        }
        let Some(output) = permitted(output) else { return };
        let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            output.status.code(),
            Some(expected),
            "{write_mode}: {reported:#} {}",
            text(&output.stderr)
        );
        assert_eq!(reported["connections"], 1, "{reported:#}");
        // 8 requests over a round trip of 50 ms.
        let flow = &reported["flows"][0];
        assert!(flow["rtt_ms"].as_f64() >= Some(50.0), "{flow:#}");
        assert!(flow["elapsed_ms"].as_f64() >= Some(9.0 * 50.0), "{flow:#}");
        assert_eq!(flow["captured_at"], "client", "{flow:#}");
    }
    let unknown = diagnose(&["--run", "--isolated=dls", "--", "true"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("did you mean `dsl`"), "{}", text(&unknown.stderr));
}

/// The action's directory.
const ACTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/action");

#[test]
fn the_actions_script_annotates_summarises_and_fails() {
    if !skip::has("python3") {
        return;
    }
    let summary = file("action", "summary.md");
    for (write_mode, level, expected) in
        [("apart", "::error file=.github/workflows/ci.yml,", 1), ("whole", "::notice ", 0)]
    {
        let mut command = Command::new("bash");
        command
            .arg(format!("{ACTION}/diagnose.sh"))
            .env("ROUNDTRIP", PROGRAM)
            .env("GITHUB_STEP_SUMMARY", &summary);
        command.env("GITHUB_WORKFLOW_REF", "owner/project/.github/workflows/ci.yml@refs/heads/main");
        command.env("ROUNDTRIP_RUN", format!("python3 '{EXCHANGE}' {write_mode} 12 0"));
        let Some(output) = permitted(command.output().unwrap()) else { return };
        let reported = text(&output.stdout);
        assert!(
            output.status.code() == Some(expected) && reported.starts_with(level),
            "{write_mode}: {reported}"
        );
    }
    let written = fs::read_to_string(&summary).unwrap();
    assert!(written.contains("1 stall fails") && written.contains("no stall fails"), "{written}");
    fs::remove_dir_all(summary.parent().unwrap()).unwrap();
}

#[test]
fn the_action_declares_every_input_that_it_uses() {
    let action = fs::read_to_string(format!("{ACTION}/action.yml")).unwrap();
    let script = fs::read_to_string(format!("{ACTION}/diagnose.sh")).unwrap();
    let used = action.split("${{ inputs.").skip(1).map(|rest| rest.split(' ').next().unwrap());
    let used: Vec<&str> = used.collect();
    assert!(used.len() >= 6, "{used:?}");
    for name in used {
        assert!(action.contains(&format!("\n  {name}:\n    description: ")), "{name} is not declared");
        let variable = if name == "program" {
            "ROUNDTRIP".to_owned()
        } else {
            format!("ROUNDTRIP_{}", name.to_uppercase().replace('-', "_"))
        };
        assert!(
            script.contains(&format!("${{{variable}:-")) || script.contains(&format!("${variable}\"")),
            "{variable}"
        );
    }
}
