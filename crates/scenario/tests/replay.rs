//! Replay of the fuzzers' corpora through the fuzz targets' own checks, without a fuzzer. Not a substitute
//! for fuzzing: fuzzing finds the inputs, this replays them.

extern crate roundtrip_scenario as scenario;

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/checks/har.rs"]
mod har;
#[path = "../../../fuzz/checks/scenario_flags.rs"]
mod scenario_flags;
#[path = "../../../fuzz/checks/scenario_toml.rs"]
mod scenario_toml;

#[test]
fn every_stored_file_holds() {
    replay("scenario_toml", scenario_toml::check);
}

#[test]
fn every_stored_har_holds() {
    replay("har", har::check);
}

#[test]
fn every_stored_list_of_flags_holds() {
    replay("scenario_flags", scenario_flags::check);
}

fn replay(target: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut replayed = 0;
    for file in files {
        let path = file.unwrap().path();
        println!("{}", path.display());
        check(&fs::read(&path).unwrap());
        replayed += 1;
    }
    assert!(replayed >= 12, "{} holds only {replayed} inputs", corpus.display());
}
