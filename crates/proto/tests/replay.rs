//! Replays the fuzzers' corpora through the very checks that the fuzz targets run, without a fuzzer. Not a
//! substitute for fuzzing: that finds the inputs, this keeps them.

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/checks/http_client.rs"]
mod http_client;
#[path = "../../../fuzz/checks/http_server.rs"]
mod http_server;

#[test]
fn every_stored_input_holds_for_the_client() {
    replay("http_client", http_client::check);
}

#[test]
fn every_stored_input_holds_for_the_server() {
    replay("http_server", http_server::check);
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
