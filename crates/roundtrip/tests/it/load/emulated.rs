//! A load over an emulated link, with Roundtrip's server behind it; `measure` tests the link.

use std::process::Command;

use serde_json::Value;

/// 89 ms and 1.06 Mbit/s: no response takes less than a round trip, and over HTTP none on a new connection less than two.
#[test]
fn responses_over_an_emulated_link_take_its_round_trips() {
    for protocol in ["http11", "dhttp"] {
        let words = "load --network fast-internet --users 10 --for 2s --cap 5000 --format json --protocol";
        let printed = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
            .args(words.split(' '))
            .arg(protocol)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&printed.stderr);
        if error.contains("root") && !printed.status.success() {
            return skip::report_skip(&error);
        }
        let run = serde_json::from_slice::<Value>(&printed.stdout).unwrap()[0].take();
        assert_eq!(run["target"], "our own server over fast-internet");
        assert!(run["answered"].as_u64() > Some(0) && run["failed"] == 0, "{run}");
        assert!(run["experienced_ms"]["p50"].as_f64() > Some(89.0), "{run}");
        assert!(
            run["experienced_ms"]["mean"].as_f64() > Some(if protocol == "http11" { 120.0 } else { 89.0 })
        );
    }
}

#[test]
fn unsupported_protocols_over_an_emulated_link_are_refused_before_setup() {
    let refused = |words: &str| {
        let printed = Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(words.split(' ')).output().unwrap();
        assert_eq!(printed.status.code(), Some(2));
        String::from_utf8_lossy(&printed.stderr).into_owned()
    };
    assert!(refused("load --network nowhere").contains("unknown network `nowhere`"));
    assert!(refused("load --network modem --protocol http3").contains("choose --protocol http11, or dhttp"));
    assert!(refused("load --network modem http://127.0.0.1/").contains("exclude each other"));
}
