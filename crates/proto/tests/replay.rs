//! Replays the fuzzers' corpora through the very checks that the fuzz targets run, without a fuzzer, and then
//! what proptest makes from pieces of them. Not a substitute for fuzzing: that finds the inputs, this keeps them.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

#[path = "../../../fuzz/checks/dhttp_client.rs"]
mod dhttp_client;
#[path = "../../../fuzz/checks/dhttp_server.rs"]
mod dhttp_server;
#[path = "../../../fuzz/checks/html.rs"]
mod html;
#[path = "../../../fuzz/checks/http_client.rs"]
mod http_client;
#[path = "../../../fuzz/checks/http_server.rs"]
mod http_server;

#[test]
fn every_stored_input_holds_for_documents() {
    for input in corpus("html") {
        html::check(&input);
    }
}

#[test]
fn every_stored_input_holds_for_the_client() {
    for input in corpus("http_client") {
        http_client::check(&input);
    }
}

#[test]
fn every_stored_input_holds_for_the_server() {
    for input in corpus("http_server") {
        http_server::check(&input);
    }
}

#[test]
fn every_stored_input_holds_for_the_dhttp_client() {
    for input in corpus("dhttp_client") {
        dhttp_client::check(&input);
    }
}

#[test]
fn every_stored_input_holds_for_the_dhttp_server() {
    for input in corpus("dhttp_server") {
        dhttp_server::check(&input);
    }
}

proptest! {
    #[test]
    fn pieces_of_stored_inputs_hold_for_documents(input in pieces("html")) {
        html::check(&input);
    }

    #[test]
    fn pieces_of_stored_inputs_hold_for_the_dhttp_client(input in pieces("dhttp_client")) {
        dhttp_client::check(&input);
    }

    #[test]
    fn pieces_of_stored_inputs_hold_for_the_dhttp_server(input in pieces("dhttp_server")) {
        dhttp_server::check(&input);
    }

    #[test]
    fn pieces_of_stored_inputs_hold_for_the_client(input in pieces("http_client")) {
        http_client::check(&input);
    }

    #[test]
    fn pieces_of_stored_inputs_hold_for_the_server(input in pieces("http_server")) {
        http_server::check(&input);
    }
}

/// Lines of the corpus and single bytes, in any order.
fn pieces(target: &str) -> impl Strategy<Value = Vec<u8>> {
    let lines: Vec<Vec<u8>> = corpus(target)
        .iter()
        .flat_map(|input| input.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec))
        .collect();
    let piece = prop_oneof![9 => prop::sample::select(lines), 1 => any::<u8>().prop_map(|byte| vec![byte])];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// The stored inputs that have a name; what the fuzzer left behind is its own.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.len() != 40));
    paths.sort();
    assert!(paths.len() >= 12, "{} holds only {} inputs", folder.display(), paths.len());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}
