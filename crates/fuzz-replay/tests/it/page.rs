//! Replay of the fuzzers' corpora through the fuzz targets' own checks, without a fuzzer, and then proptest's
//! inputs made from pieces of them. It does not replace fuzzing: fuzzing finds the inputs, this replays them.

use proptest::prelude::*;

#[path = "../../../../fuzz/checks/har.rs"]
mod har;
#[path = "../../../../fuzz/checks/html.rs"]
mod html;

#[path = "../../../../fuzz/checks/page_toml.rs"]
mod page_toml;

use roundtrip_fuzz_replay::{corpus, pieces};

#[test]
fn every_stored_har_holds() {
    for input in corpus("har") {
        har::check(&input);
    }
}

#[test]
fn every_stored_page_in_toml_holds() {
    for input in corpus("page_toml") {
        page_toml::check(&input);
    }
}

#[test]
fn every_stored_input_holds_for_documents() {
    for input in corpus("html") {
        html::check(&input);
    }
}

proptest! {
    #[test]
    fn pieces_of_stored_inputs_hold_for_pages_in_toml(input in pieces("page_toml")) {
        page_toml::check(&input);
    }

    #[test]
    fn pieces_of_stored_inputs_hold_for_documents(input in pieces("html")) {
        html::check(&input);
    }
}
