//! Replays the fuzzers' corpora through the checks of the fuzz targets, without a fuzzer, and then inputs that proptest builds
//! from pieces of them. Not a substitute for fuzzing: that finds the inputs, this retains them.

use proptest::prelude::*;

#[path = "../../../../fuzz/checks/http_server.rs"]
mod http_server;

use roundtrip_fuzz_replay::{corpus, pieces};

#[test]
fn every_stored_input_holds_for_the_server() {
    for input in corpus("http_server") {
        http_server::check(&input);
    }
}

proptest! {
    #[test]
    fn pieces_of_stored_inputs_hold_for_the_server(input in pieces("http_server")) {
        http_server::check(&input);
    }
}
