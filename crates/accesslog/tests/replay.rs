//! Replays the fuzzers' corpora of access logs through the same checks as the fuzz targets, without a fuzzer. Not a
//! substitute for fuzzing: that finds the inputs, this retains them.

extern crate roundtrip_accesslog as accesslog;

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/checks/access_log.rs"]
mod access_log;

#[test]
fn every_stored_access_log_holds() {
    replay("access_log_clf", access_log::check_clf);
    replay("access_log_template", access_log::check_template);
    replay("access_log_w3c", access_log::check_w3c);
    replay("access_log_json", access_log::check_json);
    replay("access_log_alb", access_log::check_alb);
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
