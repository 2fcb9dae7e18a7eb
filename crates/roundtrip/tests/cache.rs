//! `roundtrip cache` on a router, as people run it: rules that come and go, in network namespaces that are gone when the
//! test is over. Without the right to make them it says so, and passes.

use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");

/// Runs a script in a namespace of its own; `None` if there can be none, or no nftables.
fn in_namespace(script: &str) -> Option<Output> {
    let probe =
        Command::new("unshare").args(["--net", "sh", "-c", "nft list tables && ip rule show"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: it takes root, unshare, nft and ip");
        return None;
    }
    let preamble = r#"
        ip link set lo up
        start() {
            "$ROUNDTRIP" cache --intercept 80,8080 --threads 1 2> "$SAID" &
            cache=$!
            for _ in $(seq 200); do grep -q "on their way" "$SAID" && return; sleep 0.05; done
        }
        rules() { echo "$(nft list tables) / $(ip -4 rule show | grep -c fwmark) / $(ip -4 route show table all | grep -c "local default")"; }
    "#;
    let said = std::env::temp_dir().join(format!("roundtrip-cache-{}-{}", std::process::id(), script.len()));
    let output = Command::new("timeout")
        .args(["30", "unshare", "--net", "sh", "-c", &format!("{preamble}{script}")])
        .env("ROUNDTRIP", PROGRAM)
        .env("SAID", &said)
        .output()
        .unwrap();
    let _ = std::fs::remove_file(said);
    Some(output)
}

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn rules_are_there_as_long_as_the_cache_is() {
    let Some(output) = in_namespace("start; rules; kill $cache; wait $cache; rules") else { return };
    assert_eq!(lines(&output), ["table ip roundtrip_cache / 1 / 1", "/ 0 / 0"], "{output:?}");
}

#[test]
fn what_a_killed_cache_leaves_is_said_and_cleaned() {
    let script = r#"start; kill -9 $cache; wait $cache; rules
        "$ROUNDTRIP" cache --intercept 80 2>&1; echo $?
        "$ROUNDTRIP" cache --clean; rules; "$ROUNDTRIP" cache --clean"#;
    let Some(output) = in_namespace(script) else { return };
    let lines = lines(&output);
    assert_eq!(lines[0], "table ip roundtrip_cache / 1 / 1", "{output:?}");
    assert!(lines[1].contains("--clean"), "{output:?}");
    assert_eq!(lines[2..], ["2", "the rules are gone", "/ 0 / 0", "there were no rules"], "{output:?}");
}

#[test]
fn rules_that_cannot_be_are_one_sentence_and_nothing_is_left() {
    // Somebody else's route is where ours would be.
    let script = r#"ip -4 route add local default dev lo table 29811
        "$ROUNDTRIP" cache --intercept 80 2>&1; echo $?; rules"#;
    let Some(output) = in_namespace(script) else { return };
    let lines = lines(&output);
    assert!(lines[0].starts_with("roundtrip: ip refused the rules"), "{output:?}");
    assert_eq!(lines[1..], ["2", "/ 0 / 1"], "{output:?}");
}

#[test]
fn rules_are_shown_without_being_there() {
    let output =
        Command::new(PROGRAM).args(["cache", "--intercept", "80,8080", "--print-rules"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("udp dport { 80, 8080 }"), "{text}");
    for (flags, said) in [
        (&["--intercept", "x"][..], "is no list of ports"),
        (&["--intercept", "80", "--listen", "127.0.0.1:3129"], "0.0.0.0"),
        (&["--intercept", "3129"], "none of those of --intercept"),
        (&[], "there is nobody to ask"),
        (&["--origin", "http://h/", "--memory", "much"], "is no size"),
    ] {
        let output = Command::new(PROGRAM).arg("cache").args(flags).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(said), "{flags:?}: {text}");
    }
}
