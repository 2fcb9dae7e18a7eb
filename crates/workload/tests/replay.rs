//! Replays the fuzzers' corpus of plans through the same check as the fuzz target, without a fuzzer. Not a
//! substitute for fuzzing: that finds the inputs, this retains them.

extern crate roundtrip_workload as workload;

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/checks/plan.rs"]
mod plan;

#[test]
fn every_stored_plan_holds() {
    replay("plan", plan::check);
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
