//! Start and stop of the helper: complete or not at all, without changes to other programs' rules.

use std::io::{Read, Write};
use std::process::Command;

use super::lab::{Lab, PROGRAM, RunningProgram, available, inside, sh};
use super::translation;

fn refusal(lab: &Lab, flags: &'static [&'static str]) -> String {
    let output = inside(&lab.router, move || Command::new(PROGRAM).arg("nat").args(flags).output().unwrap());
    assert_eq!(output.status.code(), Some(2), "{flags:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn rules_of_others_are_unchanged_after_it_stops() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    lab.rules(&translation("port-restricted"));
    let before = lab.router_state();
    let nat = lab.nat(&["--access-log", "-"]);
    assert!(nat.first.contains("appear at 11.0.100.1, ports 61000-65535"), "{}", nat.first);
    let during = lab.router_state();
    assert!(during.contains("table ip roundtrip_nat") && during.contains("fwmark 0x7470"), "{during}");
    let printed = sh(&lab.router, &format!("{PROGRAM} nat --inside lan --outside wan --print-rules"));
    assert!(printed.contains("tproxy to 127.0.0.1:80") && printed.contains("@holes3"), "{printed}");
    nat.signal("HUP");
    let (ended_well, reported) = nat.stop();
    assert!(ended_well && reported.contains("reloaded the configuration"), "{reported}");
    assert_eq!(lab.router_state(), before);
}

#[test]
fn rules_of_a_killed_helper_are_reported_and_removed() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    let before = lab.router_state();
    let nat = lab.nat(&[]);
    nat.signal("KILL");
    drop(nat);
    let reported = refusal(&lab, &["--inside", "lan", "--outside", "wan"]);
    assert!(
        reported.contains("roundtrip_nat is there already") && reported.contains("--clean"),
        "{reported}"
    );
    // Also if its interfaces have lost their addresses since.
    let cleaned = sh(
        &lab.router,
        &format!(
            "ip addr del 11.0.100.1/24 dev wan; {PROGRAM} nat --clean; ip addr add 11.0.100.1/24 dev wan"
        ),
    );
    assert_eq!((cleaned.as_str(), lab.router_state()), ("removed the rules of a killed helper\n", before));
}

#[test]
fn a_refusal_during_installation_leaves_nothing_half_installed() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    // Another program has the routing rule number that ours would have.
    sh(&lab.router, "ip route add local default dev lo table 29808");
    let before = lab.router_state();
    let reported = refusal(&lab, &["--inside", "lan", "--outside", "wan"]);
    assert!(reported.contains("nothing is installed") && reported.lines().count() == 1, "{reported}");
    assert_eq!(lab.router_state(), before);
}

#[test]
fn a_kernel_without_the_module_is_one_sentence_and_no_rule_is_left() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    let before = lab.router_state();
    // Such a kernel's error for the rule that needs the module; the real program handles everything else.
    let script = "#!/bin/sh\nPATH=/usr/sbin:/usr/bin:/sbin:/bin\ntext=$(cat)\ncase \"$text\" in *tproxy*) echo \
                  '/dev/stdin:9:3-8: Error: Could not process rule: No such file or directory' >&2; exit 1;; esac\n\
                  printf '%s' \"$text\" | nft \"$@\"\n";
    std::fs::write(lab.directory.join("nft"), script).unwrap();
    sh(&lab.router, &format!("chmod +x {}", lab.directory.join("nft").display()));
    let directory = lab.directory.display().to_string();
    for family in [&[][..], &["--ipv6", "--firewall"]] {
        let path = format!("{directory}:/usr/bin:/bin");
        let output = inside(&lab.router, move || {
            let flags = ["nat", "--inside", "lan", "--outside", "wan"];
            Command::new(PROGRAM).args(flags).args(family).env("PATH", path).output().unwrap()
        });
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), reported.lines().count()), (Some(2), 1), "{reported}");
        assert!(reported.contains("nothing is installed") && reported.contains("nft_tproxy"), "{reported}");
        assert_eq!(lab.router_state(), before);
    }
}

#[test]
fn a_file_is_equivalent_to_flags_and_counters_report_the_work() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    lab.rules(&translation("port-restricted"));
    let file = lab.directory.join("nat.toml").display().to_string();
    let text = "inside = \"lan\"\noutside = \"wan\"\nby-id = true\nmetrics = \"127.0.0.1:9100\"\n";
    std::fs::write(&file, text).unwrap();
    let checked = sh(&lab.router, &format!("ip link set lo up; {PROGRAM} nat --config {file} --check"));
    assert!(
        checked.starts_with("clients on lan that send requests to port 80 of servers on wan"),
        "{checked}"
    );
    let _server = lab.serve(&[]);
    let _nat = RunningProgram::start(&lab.router, &["nat", "--config", &file]);
    lab.channels();
    let reported = inside(&lab.router, || {
        let mut stream = std::net::TcpStream::connect("127.0.0.1:9100").unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut reported = String::new();
        stream.read_to_string(&mut reported).unwrap();
        reported
    });
    for line in [
        "roundtrip_nat_requests_total 2",
        "roundtrip_nat_holes_opened_total 2",
        "roundtrip_nat_holes_closed_total 1",
        "roundtrip_nat_failed_total 0",
    ] {
        assert!(reported.contains(line), "{line} in\n{reported}");
    }
}

#[test]
fn a_changed_file_is_in_force_after_a_signal_without_a_gap_in_the_rules() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    lab.rules(&translation("port-restricted"));
    let file = lab.directory.join("nat.toml").display().to_string();
    let write = |more: &str| {
        std::fs::write(&file, format!("inside = \"lan\"\noutside = \"wan\"\n{more}")).unwrap();
    };
    write("");
    let _server = lab.serve(&[]);
    let mut nat = RunningProgram::start(&lab.router, &["nat", "--config", &file]);
    assert_eq!(lab.channels(), ("udp".to_owned(), "tcp-opened".to_owned()));
    let before = lab.router_state();
    for (invalid_line, expected) in [
        ("by-ids = true\n", "line 3"),
        ("ports = \"80\"\n", "--ports"),
        ("address = \"127.0.0.300\"\n", "is not an IPv4 address"),
    ] {
        write(invalid_line);
        nat.signal("HUP");
        let reported = nat.next_line();
        assert!(
            reported.contains(expected) && reported.contains("the configuration is unchanged"),
            "{reported}"
        );
        assert_eq!(lab.router_state(), before);
    }
    write("by-id = true\nports = \"62000-62010\"\n");
    nat.signal("HUP");
    assert!(nat.next_line().contains("reloaded the configuration"));
    assert!(lab.router_state().contains("set ids"), "{}", lab.router_state());
    assert_eq!(lab.channels(), ("udp".to_owned(), "tcp-opened".to_owned()));
    // Flushing all rules removes ours too; the same signal restores them, and only them.
    sh(&lab.router, "nft flush ruleset");
    lab.rules(&translation("port-restricted"));
    assert_eq!(lab.channels(), ("udp".to_owned(), "tcp-client".to_owned()), "as without a helper");
    nat.signal("HUP");
    assert!(nat.next_line().contains("reloaded the configuration"));
    assert_eq!(lab.channels(), ("udp".to_owned(), "tcp-opened".to_owned()));
    write("");
    nat.signal("HUP");
    assert!(nat.next_line().contains("reloaded the configuration"));
    assert_eq!(lab.channels(), ("udp".to_owned(), "tcp-opened".to_owned()));
    assert!(nat.stop().0);
    assert!(!lab.router_state().contains("roundtrip_nat"));
}

#[test]
fn invalid_settings_are_one_sentence() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    for (flags, expected) in [
        (&["--outside", "wan"][..], "--inside: name the network interface"),
        (&["--inside", "lan", "--outside", "w\"an"], "is not a network interface"),
        (&["--inside", "lan", "--outside", "eth7"], "eth7 has no IPv4 address here"),
        (&["--inside", "lan", "--outside", "wan", "--ports", "1-99"], "--ports"),
        (&["--inside", "lan", "--outside", "wan", "--address", "fe80::1"], "is not an IPv4 address"),
    ] {
        let reported = refusal(&lab, flags);
        assert!(reported.contains(expected) && reported.lines().count() == 1, "{reported}");
    }
}
