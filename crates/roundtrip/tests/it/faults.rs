//! Live programs with known faults over several transports, and their healthy twins: a sample of the study in
//! `studies/faults`, which judges the program that was just built.

use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");
const STUDY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/faults/run.py");

/// Runs the study, and returns its output, unless a program or a privilege is missing.
fn run(arguments: &[&str]) -> Option<String> {
    if !["python3", "openssl", "unshare", "ip"].into_iter().all(skip::has) {
        return None;
    }
    let mut command = Command::new("python3");
    command.arg(STUDY).arg(PROGRAM).args(arguments).env("PATH", skip::path());
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let printed =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    if printed.contains("cannot capture here") || printed.contains("unshare failed") {
        skip::refused(&printed);
        return None;
    }
    assert!(output.status.success(), "{}: {printed}", output.status);
    Some(printed)
}

#[test]
fn faults_have_the_same_cause_over_tls_and_twins_are_silent() {
    if let Some(printed) = run(&["--sample", "--jobs", "2"]) {
        assert!(printed.contains("10 of 10 agree"), "{printed}");
    }
}

#[test]
fn unknown_arguments_of_the_study_are_refused() {
    if skip::has("python3") {
        let output = Command::new("python3").args([STUDY, PROGRAM, "--nonsense"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
    }
}
