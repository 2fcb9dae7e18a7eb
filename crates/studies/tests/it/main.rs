//! A sample of each study, run as a program: some need a process with one thread.

use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// Held by samples that compare times with a kernel's, and by those that need a CPU all the time: run concurrently, hosts are late.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs the sample of this study, and reports the parts that it skipped.
fn sample(program: &str) -> Output {
    // A line about a skipped part goes to stderr, past the harness.
    let output = Command::new(program).arg("sample").stderr(Stdio::inherit()).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}"))
}

fn assert_holds_alone(program: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    assert_holds(program);
}

fn assert_holds(program: &str) {
    let output = sample(program);
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_sample_of_stalls_is_named_as_endpoints_and_kernels_name_them() {
    assert_holds(env!("CARGO_BIN_EXE_corpus"));
}

#[test]
fn a_sample_of_pages_has_the_segments_of_this_kernel() {
    assert_holds_alone(env!("CARGO_BIN_EXE_conformance"));
}

#[test]
fn regress_a_sample_of_times_under_loss_is_the_stored_one() {
    assert_holds_alone(env!("CARGO_BIN_EXE_loss"));
}

#[test]
fn regress_a_sample_of_the_maps_is_the_stored_one() {
    assert_holds_alone(env!("CARGO_BIN_EXE_maps"));
}

#[test]
fn regress_a_sample_of_the_papers_tables_with_protocols_of_today_is_the_stored_one() {
    assert_holds_alone(env!("CARGO_BIN_EXE_tables"));
}

#[test]
fn a_sample_of_whole_pages_is_predicted_as_it_is_simulated() {
    assert_holds_alone(env!("CARGO_BIN_EXE_graphs"));
}

#[test]
fn a_sample_of_whole_pages_over_http2_has_the_packets_of_this_kernel() {
    assert_holds_alone(env!("CARGO_BIN_EXE_pages"));
}

#[test]
fn a_sample_page_in_chromium_takes_about_as_long_as_simulated_from_its_recording() {
    assert_holds_alone(env!("CARGO_BIN_EXE_chromium"));
}

#[test]
fn unknown_arguments_are_refused_with_the_known_ones() {
    for program in [env!("CARGO_BIN_EXE_corpus"), env!("CARGO_BIN_EXE_loss")] {
        let output = Command::new(program).arg("nonsense").output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && printed.contains("`all FILE.csv`"), "{printed}");
    }
}
