//! Replay of the fuzzers' corpora through the fuzz targets' own checks, without a fuzzer, and then proptest's
//! inputs made from pieces of them. It does not replace fuzzing: fuzzing finds the inputs, this replays them.

use proptest::prelude::*;

#[path = "../../../../fuzz/checks/http_client.rs"]
mod http_client;

use roundtrip_fuzz_replay::{corpus, pieces};

#[test]
fn every_stored_input_holds_for_the_client() {
    for input in corpus("http_client") {
        http_client::check(&input);
    }
}

proptest! {
    #[test]
    fn pieces_of_stored_inputs_hold_for_the_client(input in pieces("http_client")) {
        http_client::check(&input);
    }
}
